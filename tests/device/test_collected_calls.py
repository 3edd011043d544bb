"""Calls that are collected while the device is busy: when they are submitted, and what fails."""

import pytest

pytestmark = [pytest.mark.memory, pytest.mark.system("cc")]

# The first of three calls is submitted at once. It runs until the layer's ``release``.
CALLS = """
import os, threading, time
from vkops.gpu.run.vulkan_device import MAX_OPEN
values = np.arange(64, dtype=np.float32)
x, right = device.tensor(values), np.roll(values, 3)
vkops.roll(vkops.roll(x, 1), 1).numpy()
def submissions():
    return counts()["vkQueueSubmit"]
def three_calls():
    device.synchronize()
    layer().record(1)
    layer().hang()
    y = x
    for _ in range(3):
        y = vkops.roll(y, 1)
    assert submissions() == 1, records()
    return y
def is_submitted():
    until = time.monotonic() + 10
    while submissions() < 2 and time.monotonic() < until:
        time.sleep(0.001)
    return submissions() >= 2
def check(y):
    layer().release()
    assert np.array_equal(y.numpy(), right)
"""
each_kind = pytest.mark.parametrize("kind", [None, "discrete"])

ASKS = """
with device.record() as program:
    vkops.roll(x, 1)
def measure():
    device.measure_dispatches()(stop=True)
def write(y):
    y[0] = y[0].item()
asks = {
    "an array": lambda y: y.numpy(),
    "a question": lambda y: y.is_ready,
    "a wait": lambda y: device.synchronize(),
    "a measurement": lambda y: measure(),
    "a write by the host": write,
    "a recorded program": lambda y: program.run(),
    "many calls": lambda y: [vkops.roll(x, 1) for _ in range(MAX_OPEN - 2)],
    "a closed device": lambda y: vkops.Device(index).close(),
}
for name, ask in asks.items():
    y = three_calls()
    asking = threading.Thread(target=ask, args=[y])
    asking.start()
    assert is_submitted(), name
    layer().release()
    asking.join()
    check(y)
print("right")
"""


@each_kind
def test_what_asks_for_results_submits_what_is_collected(adapter, faulty, kind):
    assert faulty(CALLS + ASKS, adapter.index, "direct", kind=kind) == "right\n"


IDLE = """
y = three_calls()
layer().release()
assert is_submitted()  # no call of vkops is made here
device.vulkan.native.wait(3)
layer().record(1)
check(y)
print(submissions() == (0 if device.mapped else 1))  # a transfer
"""


FAILURES = """
for function in ("vkBeginCommandBuffer", "vkEndCommandBuffer", "vkQueueSubmit"):
    for result in (NO_HOST_MEMORY, NO_DEVICE_MEMORY):
        y = three_calls()
        layer().fail(function.encode(), 0, 1, result)
        first = call(y.numpy) if function != "vkBeginCommandBuffer" else None
        assert first is None or first.startswith("OutOfDeviceMemoryError"), first
        layer().fail(b"", 0, 0, 0)
        check(y)
more = vkops.ElementwiseKernel("T x", "T y", "y = x + 1")
more(x)
y = three_calls()
layer().fail(b"vkAllocateDescriptorSets", 0, 2, NO_DEVICE_MEMORY)
refused = call(lambda: more(x[:5]))
assert refused.startswith("OutOfDeviceMemoryError"), refused
check(y)
print("right")
"""


KEPT = """
more, y = vkops.ElementwiseKernel("T x", "T y", "y = x + 1"), x.copy()
for _ in range(40):
    more(x, out=y)
    device.synchronize()
layer().fail(b"vkAllocateDescriptorSets", 0, 99, NO_DEVICE_MEMORY)
more(x, out=y)
print(call(lambda: more(y, out=x.copy())).startswith("OutOfDeviceMemoryError"))
layer().fail(b"", 0, 0, 0)
print((y.numpy() == values + 1).all())
"""


LOST = """
y = three_calls()
z = vkops.flip(x).copy()
layer().release()
layer().lose(b"vkWaitForFences")
print(call(y.numpy))
print(call(z.numpy) == call(y.numpy))
print(device.mapped)
"""


def test_no_collected_call_is_lost(adapter, faulty):
    """Idle devices submit them, a lack of memory loses none, and known descriptor sets are used again.

    The error of a lost device names what was collected.
    """
    programs = CALLS + IDLE + FAILURES + KEPT + LOST
    idle, *outcome, found, same, mapped = faulty(programs, adapter.index, "direct").splitlines()
    assert (idle, outcome, same) == ("True", ["right", "True", "True"], "True")
    # The thread that submits collected calls may see the loss before the transfer is submitted.
    possible = ["roll, copy_view"]
    if mapped != "True":
        possible.append("roll, copy_view, a transfer")
    assert found in [
        f"DeviceError: {adapter.label} failed while it ran {ran}: vkWaitForFences: "
        "ErrorDeviceLost; it must be opened again"
        for ran in possible
    ]


INTERRUPTED = """
from interrupts import interrupted_at
axpy = vkops.ElementwiseKernel("T x", "T y", "y = x + 1")
uses = {
    "assign": (lambda z: z.__setitem__(slice(None), vkops.flip(z)), values[::-1]),
    "compute": (lambda z: axpy(z, out=z), values + 1),
    "make": (lambda z: vkops.split(vkops.roll(z, 1), 2), values),
    "send": (lambda z: z.__setitem__(slice(None), values * 2), values * 2),
}
for name, (use, after) in uses.items():
    use(device.tensor(values))
    number, goes_on = 1, True
    while goes_on:
        z, y = device.tensor(values), three_calls()
        layer().release()
        goes_on = interrupted_at(number, lambda: use(z))
        check(y)
        numbers = z.numpy().tolist()
        assert numbers == after.tolist() or (goes_on and numbers == values.tolist()), (name, number)
        number += 1
    assert number > 10
print("right")
"""


@each_kind
def test_an_interrupt_at_each_point_loses_no_collected_call(adapter, faulty, kind):
    assert faulty(CALLS + INTERRUPTED, adapter.index, "direct", kind=kind) == "right\n"


ENDS = {
    # Newer versions of Python warn of forks beside threads.
    "a fork": "import warnings\nwarnings.simplefilter('ignore')\npid = os.fork()\nif pid == 0:\n    os._exit(7)\nassert os.waitpid(pid, 0)[1] == 7 << 8\ncheck(y)",
    "a close": "layer().release()\ndevice.close()\nassert is_submitted()",
    "an exit": "layer().release()",
    "a device that is dropped": "layer().release()\ndel device, x, y\nassert is_submitted()",
}


@pytest.mark.parametrize("end", ENDS)
def test_a_process_ends_with_collected_calls(adapter, faulty, end):
    program = f"{CALLS}\ny = three_calls()\n{ENDS[end]}\nprint('right', flush=True)"
    assert faulty(program, adapter.index, "direct") == "right\n"


def test_with_vkops_sync_each_call_is_submitted_and_waited_for(adapter, faulty):
    program = CALLS + "layer().record(1)\nfor _ in range(3):\n    y = vkops.roll(x, 1)\n"
    program += "print(submissions(), device.vulkan.native.pending)"
    assert faulty(program, adapter.index, "direct", VKOPS_SYNC="1") == "3 []\n"
