"""Where memory comes from, and what is synchronised, on imitated GPUs."""

import json

import pytest

pytestmark = [pytest.mark.memory, pytest.mark.system("cc")]

PLACES = """
layer().record(1)
other = vkops.Device(index)
big, small = np.arange(3 << 20, dtype=np.int32), np.arange(100, dtype=np.int32)
for x in (big, small):
    tensor = other.tensor(x)
    assert (vkops.roll(tensor, 1).copy().numpy() == np.roll(x, 1)).all()
    tensor[3:7] = x[:4]
    assert (tensor.numpy()[3:7] == x[:4]).all()
host = other.host_buffer(1 << 20)
vkops.flip(vkops.Tensor.from_array(other, big, on_host=True)).copy()
types = {int(line.split()[0].removeprefix("type=")) for line in records("vkAllocateMemory")}
print(json.dumps([other.mapped, sorted(types)]))
"""

TYPES = {
    # tensors, uploads, region tables, what the host reads
    "discrete": (False, [0, 1, 2, 3]),
    "small-bar": (False, [0, 1, 2, 3]),
    # tensors that the host sees and streams through the cached type, region tables and uploads
    # through the one that is coherent
    "integrated": (True, [1, 2]),
    "integrated-coherent": (True, [1, 2]),
}


@pytest.mark.parametrize("kind", TYPES)
def test_each_use_has_its_type_of_memory(adapter, faulty, kind):
    assert json.loads(faulty(PLACES, adapter.index, "direct", kind=kind)) == [*TYPES[kind]]


def test_tables_are_elsewhere_when_the_memory_that_both_see_is_full(adapter, faulty):
    """Many workgroups then read a copy in the device's own memory."""
    program = """
x = device.tensor(np.arange(1 << 20, dtype=np.int32).reshape(1024, 1024))
layer().fail(b"vkAllocateMemory", 0, 1, NO_DEVICE_MEMORY)
layer().record(1)
other = vkops.Device(index)
with other.record() as recorded:
    y = vkops.flip(x, axis=1).copy()
recorded.run()
assert (y.numpy() == x.numpy()[:, ::-1]).all()
print(layer().still_failing(), counts()["vkCmdCopyBuffer"] > 0)
"""
    assert faulty(program, adapter.index, "staged", kind="discrete") == "0 True\n"


def test_staging_memory_comes_on_top_of_a_limit(adapter, faulty):
    program = """
x = np.arange(90_000)
print((device.tensor(x).numpy() == x).all(), call(lambda: device.tensor(np.zeros(1 << 20)).shape))
"""
    variables = {"kind": "discrete", "VKOPS_MEMORY_LIMIT": str(1 << 20)}
    said = faulty(program, adapter.index, "staged", **variables)
    assert said.startswith("True OutOfDeviceMemoryError: a tensor of shape (1048576,)")


WRITES = """
rng = np.random.default_rng(0)
x = rng.integers(0, 256, 70_001, np.uint8)
tensor, buffer = device.tensor(x), device.buffer(70_001)
for start, count in ((0, 1), (255, 2), (1000, 300), (69_999, 2), (3, 69_990)):
    part = rng.integers(0, 256, count, np.uint8)
    x[start : start + count] = part
    tensor[start : start + count] = part
    buffer.write(x)
    buffer.write(part, start)
    assert (vkops.flip(tensor).copy().numpy() == x[::-1]).all(), start
    assert (tensor.numpy() == x).all(), start
    assert buffer.read(start, count) == part.tobytes()
assert call(tensor.mapped).startswith("DeviceError: ")
arrays = [rng.integers(0, 9, n, np.int16) for n in (3, 5, 4000)]
assert (vkops.concat(arrays, device=device).numpy() == np.concatenate(arrays)).all()
with device.record() as program:
    doubled = vkops.concat([tensor, tensor])
    doubled[:3] = np.uint8([1, 2, 3])
program.run()
assert (doubled.numpy() == np.concatenate([[1, 2, 3], x[3:], x])).all()
"""


def test_memory_that_is_not_coherent_is_flushed_and_invalidated(adapter, faulty):
    """The layer has a copy of it for the host, which only flushes and invalidations change."""
    assert faulty(WRITES, adapter.index, "direct", kind="integrated") == ""


WAITS = """
import threading, time
x, small = device.tensor(np.arange(6 << 20, dtype=np.int32)), device.tensor(np.arange(8))
y = vkops.roll(x, 1)
vkops.roll(small, 1).numpy(), y.numpy()
layer().hang()
y = vkops.roll(x, 2)
reader = threading.Thread(target=y.numpy)
reader.start()
time.sleep(0.05)  # until it waits
z = vkops.roll(small, 1)
reads = reader.is_alive()
layer().release()
reader.join()
assert (y.numpy() == np.roll(np.arange(6 << 20), 2)).all() and z.numpy()[0] == 7
print(reads)
"""


@pytest.mark.parametrize(("kind", "memory"), [(None, "direct"), ("discrete", "staged")])
def test_a_thread_that_reads_does_not_keep_others_from_submitting(adapter, faulty, kind, memory):
    assert faulty(WAITS, adapter.index, memory, kind=kind) == "True\n"


FULL = """
import threading, time
x = device.tensor(np.arange(8))
vkops.roll(x, 1).numpy()
layer().hang()
from vkops.gpu.run.vulkan_device import MAX_OPEN, MAX_SUBMISSIONS
for _ in range(1 + (MAX_SUBMISSIONS - 1) * MAX_OPEN):  # the first one is submitted alone
    vkops.roll(x, 1)
waiting = threading.Thread(target=vkops.roll, args=(x, 1))
waiting.start()
time.sleep(0.05)  # until it waits
device.buffer(16), device.memory_report()
print(waiting.is_alive())
layer().release()
"""


def test_a_thread_that_waits_for_room_does_not_keep_others_from_memory(adapter, faulty):
    assert faulty(FULL, adapter.index, "direct") == "True\n"


COMMANDS = """
x, y = (device.tensor(np.arange(1 << 19, dtype=np.float32) + i) for i in range(2))
def again():
    parts = vkops.split(x, 2)
    device.synchronize()
    return parts, vkops.roll(y, 3)
again()
device.synchronize()
layer().record(1)
kept = again()
device.synchronize()  # what comes next is not collected
with device.record() as program:
    a = vkops.flip(x).copy()
    b = vkops.flip(a).copy()
program.run()
program.run(3)
device.synchronize()
seen = records()
print(json.dumps([line for line in seen if "Begin" in line or "Barrier" in line or "Dispatch" in line]))
"""

HOST_STAGE, ONE_TIME, SIMULTANEOUS = 0x4000, 1, 4


def test_barriers_and_flags_are_those_that_are_needed(adapter, faulty):
    """The host is waited for at the end of commands alone, and only what runs once says so."""
    lines = json.loads(
        faulty(COMMANDS, adapter.index, "direct", kind="discrete", VKOPS_COPY="shader")
    )
    commands = []
    for name, *values in map(str.split, lines):
        if name == "vkBeginCommandBuffer":
            commands.append([])
        commands[-1].append((name, dict(value.split("=") for value in values)))
    flags = [int(own[0][1]["flags"], 0) for own in commands]
    # A split, a roll, the program, and the same to be submitted while it runs.
    assert flags == [ONE_TIME, ONE_TIME, 0, SIMULTANEOUS]
    for own in commands:
        barriers = [values for name, values in own if name == "vkCmdPipelineBarrier"]
        at_host = [int(values["stages"].split(",")[1], 0) & HOST_STAGE != 0 for values in barriers]
        assert at_host == [False] * (len(barriers) - 1) + [True]
    dispatches = [sum(name == "vkCmdDispatch" for name, _ in own) for own in commands]
    barriers = [sum(name == "vkCmdPipelineBarrier" for name, _ in own) for own in commands]
    assert barriers[2] == dispatches[2] == 2
    assert all(barriers[i] == 1 for i in range(2))
