"""Memory that is not there: an error in one line, and the device goes on."""

import asyncio
import gc
import re
from types import SimpleNamespace

import numpy as np
import pytest
from compiled_operators import reverse
from processes import outcome, python
from refusals import fault

import vkops
from vkops import dml
from vkops.gpu.adapters import adapter as adapters
from vkops.gpu.adapters.kompute import load_native
from vkops.gpu.memory import host_memory
from vkops.gpu.memory.pools import held_bytes
from vkops.gpu.run import vulkan_device
from vkops.gpu.run.open_device import release_empty_heaps

pytestmark = pytest.mark.memory

MIB = 1 << 20
INT32 = dml.TensorDataType.INT32
WORDS = "layout(std430, binding = 0) buffer B { uint b[]; };"
SHADER = f"#version 450\nlayout(local_size_x = 1) in;\n{WORDS}\nvoid main() {{ b[0] = 7; }}"


def works(device):
    return vkops.split(np.arange(4), 2, device=device)[1].numpy().tolist() == [2, 3]


def held(adapter):
    """The bytes that this process has of all heaps."""
    return sum(held_bytes((adapter.index, heap)) for heap in range(4))


@pytest.fixture
def full(adapter, monkeypatch):
    """Open a device, and leave the process so many more bytes of its memory."""

    def full(left, **options):
        device = vkops.Device(adapter.index, **options)
        release_empty_heaps()
        before = held(adapter)
        monkeypatch.setattr(adapters, "available_memory", lambda *_: left + before - held(adapter))
        return device

    gc.collect()
    gc.disable()
    yield full
    gc.enable()
    gc.collect()


@pytest.mark.parametrize("staged", [False, True])
def test_until_it_is_full_again_and_again(full, staged):
    with full(96 * MIB, staged=staged) as device:
        assert works(device)
        for _ in range(3):
            held = []
            text = r"^a buffer of \d+ bytes: the device has \d+ bytes available \(\d+ reserved by "
            with pytest.raises(vkops.OutOfDeviceMemoryError, match=text):  # noqa: PT012
                while True:
                    held.append(device.buffer(3 * MIB))
            assert len(held) >= 16
            held.clear()
            assert works(device)


def test_no_room_for_staging_memory(full):
    with full(16 * MIB + 4096, staged=True) as device:
        held = device.buffer(16 * MIB)
        with pytest.raises(
            vkops.OutOfDeviceMemoryError, match=r"^a buffer of 131072 bytes: the dev"
        ):
            held.write(bytes(1 << 17))
        del held
        adapters.available_memory = lambda _i, _h, now: 1 << 30  # monkeypatch puts it back
        assert works(device)


@pytest.mark.usefixtures("shared_memory")
def test_no_room_for_the_copy_of_a_view(full):
    with full(132 * MIB) as device:  # more than other devices have left in theirs
        shader, x = device.compile_shader(SHADER), device.tensor(np.zeros((16 * MIB, 2), np.int32))
        with pytest.raises(vkops.OutOfDeviceMemoryError, match=r"^a buffer of 67108864 bytes: "):
            shader.dispatch({"B": x[:, 1]})
        shader.dispatch({"B": x})
        assert x[0, 0].numpy() == 7


def test_no_room_for_a_chunk(full):
    n = 32 * MIB  # more than a chunk
    with full(8 * MIB) as device:
        x, y = device.host_buffer(n), device.host_buffer(n)
        x.write(bytes(n - 1) + b"x")
        bound = reverse(device, n).bind([x], [y])
        with pytest.raises(vkops.OutOfDeviceMemoryError, match=r"^\d+ bytes: "):
            bound.dispatch()
        adapters.available_memory = lambda _i, _h, now: 1 << 30
        bound.dispatch()
        assert y.read(0, 4) == b"x\0\0\0"


def in_a_cycle(thing):
    cycle = [thing]
    cycle.append(cycle)


@pytest.mark.parametrize("staged", [False, True])
@pytest.mark.parametrize("same", [True, False], ids=["same device", "other device"])
def test_memory_in_dead_cycles_and_empty_heaps_is_found(adapter, full, same, staged):
    with full(64 * MIB, staged=staged) as device, vkops.Device(adapter.index) as other:
        in_a_cycle((device if same else other).buffer(60 * MIB))
        assert device.tensor(np.zeros(48 * MIB, np.uint8)).nbytes == 48 * MIB


@pytest.mark.usefixtures("shared_memory")
def test_shaders_streams_and_new_devices_find_it_too(adapter, full):
    with full(80 * MIB) as device:
        shader, small = device.compile_shader(SHADER), device.buffer(16)
        source, target = device.host_buffer(40 * MIB), device.host_buffer(40 * MIB)
        for use in (
            reverse(device, 40 * MIB).bind([source], [target]).dispatch,
            lambda: shader.dispatch({"B": small}),
            lambda: vkops.Device(adapter.index).close(),
        ):
            in_a_cycle(device.buffer(64 * MIB))
            use()


LIMITED = """
import resource, sys
import numpy as np, psutil, vkops
device = vkops.Device(int(sys.argv[1]))
vkops.split(np.arange(4), 2, device=device)
limit = psutil.Process().memory_info().vms + (300 << 20)
resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
held = []
try:
    while True:
        held.append(device.buffer(16 << 20))
        held[-1].write(b"ends", (16 << 20) - 4)
except vkops.OutOfDeviceMemoryError as error:
    print(error)
held.clear()
print(vkops.split(np.arange(4), 2, device=device)[1].numpy().tolist())
"""


@pytest.mark.posix("limits of a process", tests_only=True)
def test_a_limit_of_the_process_for_real(adapter, monkeypatch):
    """The driver would promise more than the system gives, and may crash on it."""
    if adapter.type != "CPU":
        pytest.skip("the memory of a GPU is not that of the process")
    monkeypatch.setenv("VKOPS_IMITATED", "")  # it is the memory of the driver itself
    said, after = python("-c", LIMITED, adapter.index).splitlines()
    assert said.endswith("bytes: the host has no more memory available")
    assert after == "[2, 3]"


OPENED = """
import resource, sys
import numpy as np, psutil, vkops
vkops.Device, vkops.roll  # Python itself needs memory for modules
limit = psutil.Process().memory_info().vms + (int(sys.argv[2]) << 20)
resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
try:
    device = vkops.Device(int(sys.argv[1]))
    print(vkops.roll(device.tensor(np.arange(3)), 1).numpy().tolist())
except vkops.DeviceError as error:
    print(error)
"""


@pytest.mark.posix("limits of a process", tests_only=True)
@pytest.mark.parametrize("more", [*range(50, 850, 100), 300, 1 << 20])
def test_opening_a_device_under_a_limit_of_address_space(adapter, more, monkeypatch):
    """It works, or there is one clear error: drivers crash where their threads get no memory."""
    if adapter.type != "CPU":
        pytest.skip("it may be Python itself that gets no memory beside the driver of a GPU")
    monkeypatch.setenv("VKOPS_IMITATED", "")  # it is the threads of the driver itself
    (said,) = python("-W", "ignore", "-c", OPENED, adapter.index, more).splitlines()
    if 250 <= more <= 300:
        assert re.fullmatch(
            r"\d+ bytes: opening '.*' needs that much address space for its \d+ threads, and "
            r"limits of this process \(ulimit -v, -d\) leave less; LP_NUM_THREADS=1 needs less",
            said,
        )
    assert (said == "[2, 0, 1]") if more > 1000 else said


UNDER_A_LIMIT = """
import os, resource, sys
import numpy as np, psutil, vkops
os.closerange(3, 256)
vkops.Device, vkops.roll  # Python itself needs memory for modules
ones = np.ones(12 << 20, np.uint8)
name, amount, opened = sys.argv[2], int(sys.argv[3]), sys.argv[4] == "True"
used = {"RLIMIT_DATA": psutil.Process().memory_info().data, "RLIMIT_NOFILE": 3}
try:
    if opened:
        device = vkops.Device(int(sys.argv[1]))
    resource.setrlimit(getattr(resource, name), 2 * (used.get(name, 0) + amount,))
    if not opened:
        device = vkops.Device(int(sys.argv[1]))
    held = []
    for _ in range(3):
        held.append(device.tensor(ones))
        print(vkops.flip(held[-1])[-1:].numpy()[0])
        held += [vkops.concat([each[:99], each[1:]]) for each in held]  # small data, too
except vkops.VkopsError as error:
    print(type(error).__name__, error)
"""
LIMITS = [
    *(("RLIMIT_FSIZE", n) for n in (0, 1 << 16, 16 * MIB, 16 * MIB + 4096, 40 * MIB, 1 << 40)),
    *(("RLIMIT_DATA", n * MIB) for n in (1, 64, 128, 1 << 20)),
    *(("RLIMIT_NOFILE", n) for n in (0, 1, 2)),
    ("RLIMIT_MEMLOCK", 0),
]


@pytest.mark.posix("limits of a process", tests_only=True)
@pytest.mark.parametrize("opened", [False, True])
@pytest.mark.parametrize(("name", "amount"), LIMITS)
def test_no_limit_of_the_process_ends_it(adapter, monkeypatch, name, amount, opened):
    """What can be done is done, and then there is one clear error.

    Mesa 25's CPU driver has the memory of small data in a file.
    """
    if adapter.type != "CPU":
        pytest.skip("the memory of a GPU is not that of the process")
    no_code = (name, amount) == ("RLIMIT_FSIZE", 1 << 16)
    no_code |= name == "RLIMIT_DATA" and opened and amount <= 128 * MIB
    if "SwiftShader" in adapter.name and no_code:
        pytest.skip("SwiftShader crashes where it gets no memory for the code of shaders")
    monkeypatch.setenv("VKOPS_IMITATED", "")  # it is the memory of the driver itself
    arguments = (adapter.index, name, amount, opened)
    printed = python("-W", "ignore", "-c", UNDER_A_LIMIT, *arguments).splitlines()
    assert printed == ["1"] * 3 or {*printed[:-1]} <= {"1"} != {printed[-1]}
    assert amount <= 256 * MIB or printed == ["1"] * 3
    if name == "RLIMIT_FSIZE" and printed[-1].startswith("OutOfDeviceMemoryError"):
        assert printed[-1].endswith(f"a limit of this process (ulimit -f) allows {amount}")


def test_a_limit_of_threads_is_named(adapter, monkeypatch):
    """Limits of threads (``ulimit -u``) do not hold for root."""
    if adapter.type != "CPU":
        pytest.skip("a GPU's driver may need none")
    monkeypatch.setattr(vulkan_device, "can_start_threads", lambda: False)

    def refuse(*_):
        raise load_native().Error("ErrorUnknown")

    device = vkops.Device(adapter.index)
    module = SimpleNamespace(**{**vars(device.vulkan.module), "Device": refuse})
    monkeypatch.setattr(vulkan_device, "load_native", lambda: module)
    said = fault(lambda: vulkan_device.VulkanDevice(adapter, None), vkops.DeviceError)
    assert said.endswith(
        "ErrorUnknown; it needs threads, and limits allow no more of them (ulimit -u)"
    )


def test_the_host_s_memory_is_the_limit_of_cpu_drivers(adapter, monkeypatch):
    with vkops.Device(adapter.index) as device:
        monkeypatch.setattr(host_memory, "available", lambda: MIB)
        if adapter.type == "CPU":
            with pytest.raises(vkops.OutOfDeviceMemoryError, match="the device has 1048576 bytes"):
                device.buffer(2 * MIB)
        monkeypatch.undo()
        assert works(device)


def test_after_close(adapter):
    """Whatever uses the device says so, and other devices go on."""
    device = vkops.Device(adapter.index)
    buffer, tensor = device.buffer(16), device.tensor(np.arange(32, dtype=np.uint8))
    host, shown = device.host_buffer(16), tensor.numpy()
    host.write(bytes(16))
    shader, operator = device.compile_shader(SHADER), reverse(device, 16)
    bound, bound_shader = operator.bind([buffer], [tensor]), shader.bound({"B": buffer}, 1)
    on_host, nothing = shader.bound({"B": host}), shader.bound({"B": host}, threads=0)
    graph = dml.Graph()
    expression = dml.identity(dml.input_tensor(graph, 0, dml.BufferTensorDesc(INT32, (8,))))
    with device.record() as program:
        vkops.flip(tensor).copy()
    for _ in range(3):
        bound.dispatch()
        bound_shader.dispatch()
    pending = bound.start()
    device.close()
    device.close()
    for use in (
        lambda: buffer.write(bytes(16)), buffer.read, lambda: device.buffer(16), tensor.numpy,
        lambda: device.tensor([1.0]), lambda: reverse(device, 16),
        lambda: device.compile_graph([expression]), lambda: device.compile_shader(SHADER),
        device.memory_report, device.synchronize, device.record, device.measure_dispatches,
        lambda: vkops.split(tensor, 2), lambda: vkops.join([tensor, tensor]), tensor[::-1].numpy,
        lambda: shader.dispatch({"B": buffer}), lambda: operator.dispatch([buffer], [buffer]),
        lambda: shader.dispatch({"B": host}, threads=0), lambda: shader(host, threads=0),
        bound.dispatch, bound.start, pending.wait, bound_shader.dispatch, program.run,
        on_host.dispatch, nothing.dispatch,
        lambda: asyncio.run(device.synchronize_async()), lambda: asyncio.run(tensor.numpy_async()),
    ):  # fmt: skip
        assert fault(use, vkops.DeviceError) == f"the device {device.name!r} is closed"
    assert host.read() == bytes(16)
    assert shown.tolist() == list(range(32))  # memory stays as long as it is seen
    with vkops.Device(adapter.index) as other:
        assert works(other)


def test_a_limit_of_the_memory_of_a_process(adapter, monkeypatch):
    """VKOPS_MEMORY_LIMIT bounds what all tensors together take from the driver."""
    code = """
import numpy as np, vkops
device = vkops.Device()
held = []
try:
    while len(held) < 100:
        held.append(device.tensor(np.zeros(4 << 20, np.uint8)))
except vkops.DeviceError as error:
    print(error)
print(len(held), device.memory_report().reserved)
"""

    variables = {"VKOPS_ADAPTER": str(adapter.index), "VKOPS_EXPECT": adapter.name}
    _, printed, _ = outcome("-c", code, **variables, VKOPS_MEMORY_LIMIT=str(100 * MIB))
    refused, last = printed.splitlines()
    tensor = r"a tensor of shape \(4194304,\) and dtype uint8: "
    assert re.match(tensor + r"a buffer of 4194304 bytes: the device has \d+ bytes", refused)
    count, reserved = map(int, last.split())
    assert 20 <= count <= 25
    assert reserved <= 100 * MIB  # region tables come on top
    monkeypatch.setenv(adapters.MEMORY_LIMIT, "")
    assert adapters.memory_limit(MIB) == MIB
    for wrong in ("1 GB", "-1", "9" * 20):
        monkeypatch.setenv(adapters.MEMORY_LIMIT, wrong)
        text = fault(lambda: vkops.Device(adapter.index).buffer(16), vkops.DeviceError)
        assert text == f"VKOPS_MEMORY_LIMIT: got '{wrong}', must be a number of bytes"
