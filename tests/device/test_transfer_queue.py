"""The queue for transfers, on an imitated discrete device that has one."""

import pytest
from random_transfers import PROGRAM

from vkops.gpu.adapters.adapter import LAYERS, VALIDATION_LAYER
from vkops.gpu.adapters.kompute import loader

pytestmark = pytest.mark.system("cc")

FAMILY = {"VKOPS_TRANSFER_FAMILY": "1", "VKOPS_TRANSFER_QUEUE": "1"}

HELP = """
def transfers():
    return sum("transfers" in line for line in records("vkQueueSubmit"))
big = np.arange(1_000_000, dtype=np.uint32)
"""


@pytest.fixture
def discrete(adapter, faulty):
    """Runs a program on such a device, and returns its output."""

    def run(program, **variables):
        return faulty(
            HELP + program, adapter.index, "direct", **{"kind": "discrete", **FAMILY, **variables}
        )

    return run


def test_random_programs_while_each_queue_overtakes_the_other(discrete):
    """Without semaphores, they fail: the layer ignores them for the second half."""
    program = (
        PROGRAM
        + """
layer().record(1)
for seed in range(25):
    one(seed)
found = transfers() > 100, layer().reordered() > 200
layer().forget_waits(1)
failed = 0
for seed in range(25):
    try:
        one(seed)
    except AssertionError:
        failed += 1
print(*found, failed > 3)
"""
    )
    assert discrete(program) == "True True True\n"


CHECKS = "VK_VALIDATION_FEATURE_ENABLE_SYNCHRONIZATION_VALIDATION"


def test_validation_finds_no_hazards(discrete, monkeypatch, tmp_path):
    if not any(VALIDATION_LAYER in layer for layer in loader()["layers"]):
        pytest.skip("the validation layer is not installed")
    monkeypatch.setenv(LAYERS, VALIDATION_LAYER)  # above the layer that has the second queue
    log = tmp_path / "log.txt"
    (tmp_path / "vk_layer_settings.txt").write_text(
        f"khronos_validation.enables = {CHECKS}_EXT,{CHECKS}_QUEUE_SUBMIT\n"
        "khronos_validation.report_flags = error,warn\n"
        f"khronos_validation.log_filename = {log}\n"
    )
    program = (
        PROGRAM
        + """
for seed in range(5):
    one(seed)
print(device.vulkan.validated, device.vulkan.native.transfers)
"""
    )
    output = discrete(program, VK_LAYER_SETTINGS_PATH=str(tmp_path))
    # Some layers name their file, before anything is written to it.
    notice = f"Validation Layer Info - Logging validation error to {log}\n"
    assert output in ("True True\n", f"True True\n{notice}")
    assert log.read_text() == ""


def test_transfers_do_not_wait_for_dispatches_of_other_tensors(discrete):
    program = """
x = device.tensor(big)
device.synchronize()
pinned, out = device.pinned_like(big), device.pinned_like(big)
pinned[...] = big
layer().slow(2_000_000)
y = vkops.roll(x, 1)
assert not y.is_ready
layer().slow(0)
z = device.tensor(big)
assert (z.numpy() == big).all() and (z.numpy(out=out) == big).all()
w = device.tensor(pinned)
with vkops.debug.checking():  # which knows that the transfers have been waited for
    pinned[...], out[...] = 7, 7
    w[...] = pinned
began = y.is_ready
assert (y.numpy() == np.roll(big, 1)).all() and (w.numpy() == 7).all()
print(began)
"""
    assert discrete(program) == "False\n"


JOINED = """
double = device.compile_shader('''#version 450
layout(local_size_x = 64) in;
layout(std430, binding = 0) buffer Data { uint data[]; };
void main() { uint i = gl_GlobalInvocationID.x; if (i < data.length()) data[i] *= 2u; }''')
pinned = device.pinned_like(big)
pinned[...] = big
first, second = device.tensor(big), device.tensor(big)
copy = vkops.roll(first, 1)
where = first.handles.buffer, first.handles.offset
assert (second.handles.buffer, second.handles.offset) == (where[0], where[1] + big.nbytes)
double(copy, threads=big.size)  # compiles everything
device.synchronize()
layer().hold(1)
if READS:
    copy = vkops.roll(first, 1)
else:
    double(first, threads=big.size)
assert not (copy if READS else first).is_ready  # submitted, and held back
event = second.set(pinned, wait=WAITS)  # a later number, which waits for no dispatch
del first, second
values = np.concatenate([big[::-1], big])
joined = device.tensor(values)
assert (joined.handles.buffer, joined.handles.offset) == where
assert (joined.numpy() == values).all()  # the uploads have run: what they did not wait for has not
layer().hold(0)
device.synchronize()
print((joined.numpy() == values).all(), not READS or (copy.numpy() == np.roll(big, 1)).all())
"""


@pytest.mark.parametrize(("reads", "waits"), [(True, False), (False, True)])
def test_an_upload_to_joined_ranges_waits_for_the_dispatches_of_both(discrete, reads, waits):
    """The range that was transferred has the later number, and is joined to that of a dispatch."""
    program = JOINED.replace("READS", str(reads)).replace("WAITS", str(waits))
    assert discrete(program) == "True True\n"


ABSENT = """
layer().record(1)
other = vkops.Device(index)
assert (other.tensor(big).numpy() == big).all()
print(other.vulkan.native.transfers, transfers())
"""


@pytest.mark.parametrize("kind", ["integrated", "minimum", "discrete"])
def test_devices_without_one(discrete, kind):
    off = {"VKOPS_TRANSFER_QUEUE": ""} if kind == "discrete" else {}
    assert discrete(ABSENT, kind=kind, **off) == "False 0\n"


def test_what_uses_the_queue_of_dispatches(discrete):
    """Shared tensors, what is transferred while a profile measures, and all after others had the queue."""
    program = """
with vkops.profile():
    assert not device.vulkan.native.transfers
assert device.vulkan.native.transfers
y = device.tensor(big)
layer().record(1)
if device.vulkan.native.shares_memory:
    x = device.tensor(big, shared=True)
    assert (vkops.open_shared(x.share(), device).numpy() == big).all()
with device.handles.locked():
    pass
assert (y.numpy() == big).all()
print(device.vulkan.native.transfers, transfers())
"""
    assert discrete(program) == "False 0\n"


def test_a_loss_in_a_transfer(discrete):
    program = """
for function in (b"vkQueueSubmit", b"vkWaitForFences"):
    device = vkops.Device(index)
    x = device.tensor(big)
    device.synchronize()  # the layer then reports all fences as signalled
    layer().lose(function)
    for use in (x.numpy, lambda: device.tensor(big), lambda: vkops.roll(x, 1).numpy()):
        print(call(use).partition(";")[0])
    layer().mend()
device = vkops.Device(index)
assert (device.tensor(big).numpy() == big).all()
"""
    lines = discrete(program).splitlines()
    assert len(lines) == 6
    assert all(line.startswith("DeviceError: ") and "ErrorDeviceLost" in line for line in lines)


def test_a_failed_submission_loses_nothing(discrete):
    program = """
x = device.tensor(big)
for skipped in range(3):
    layer().fail(b"vkQueueSubmit", skipped, 1, NO_HOST_MEMORY)
    print(call(lambda: device.tensor(big)) if skipped else call(x.numpy))
    layer().fail(b"", 0, 0, 0)
assert (x.numpy() == big).all() and (device.tensor(big).numpy() == big).all()
"""
    assert "OutOfDeviceMemoryError" in discrete(program)


def test_an_interrupt_ends_a_wait_for_a_transfer(discrete):
    program = """
import signal
x = device.tensor(big)
def handler(*_):
    layer().release()
    raise InterruptedError("now")
signal.signal(signal.SIGALRM, handler)
layer().hang()
signal.setitimer(signal.ITIMER_REAL, 0.3)
print(call(x.numpy))
assert (x.numpy() == big).all()
y = device.tensor(big[::-1].copy())
assert (y.numpy() == big[::-1]).all()
"""
    assert discrete(program) == "InterruptedError: now\n"


def test_a_fork_and_the_end_with_transfers_that_run(discrete):
    program = """
import warnings
warnings.simplefilter("ignore")  # newer versions of Python warn of forks beside threads
pinned = device.pinned_like(big)
pinned[...] = big
x = device.tensor(big)
layer().slow(300_000)
event = x.set(pinned, wait=False)
if not (child := os.fork()):
    os._exit("fork" not in call(x.numpy))
print(os.waitpid(child, 0)[1], x.is_ready)
"""
    assert discrete(program, VKOPS_SYNC="1") == "0 True\n"
    assert discrete(program) == "0 False\n"
