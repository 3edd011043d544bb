"""A device that is lost, or a driver without memory, in the middle of work: imitated by a layer."""

import json
import re

import pytest
from imitated import VALIDATED_BELOW

pytestmark = [pytest.mark.memory, pytest.mark.system("cc")]

LOST = """
other = vkops.Device(index)
N = 1 << 10
desc = vkops.dml.BufferTensorDesc(vkops.dml.TensorDataType.INT32, [N])
reverse = vkops.dml.Slice1OperatorDesc(desc, desc, [0], [N], [-1])
operator = device.compile_operator(device.create_operator(reverse))
shader = device.compile_shader('''#version 450
layout(local_size_x = 64) in;
layout(std430, binding = 0) buffer Data { int data[]; };
void main() { data[gl_GlobalInvocationID.x] *= 2; }''')
values = np.arange(N, dtype=np.int32)
x, y, foreign = device.tensor(values), device.tensor(values), other.tensor(values)
host, target = device.host_buffer(4 * N), device.buffer(4 * N)
view = y[::2]
bound = operator.bind([x], [target])
bound.dispatch()
with device.record() as program:
    vkops.flip(y).copy()
pending = bound.start()
for tensor in (x, y, foreign):
    assert tensor.numpy().tolist() == values.tolist()
device.synchronize()
by = sys.argv[3]
faulty.lose(by.encode())
a = call(lambda: vkops.roll(x, 1))
first = a if by == "vkQueueSubmit" else call(device.synchronize)
uses = {
    "read": y.numpy, "read a view": view.numpy, "item": lambda: y[3].item(),
    "read of another device": foreign.numpy, "buffer.read": target.read,
    "DLPack": lambda: np.from_dlpack(y), "write": lambda: y.__setitem__(..., values),
    "buffer.write": lambda: target.write(bytes(4)), "tensor": lambda: device.tensor(values),
    "function": lambda: vkops.roll(y, 2), "function of another device": lambda: vkops.roll(foreign, 2),
    "copy": y.copy, "to": lambda: y.to(other), "shader": lambda: shader(y, threads=N),
    "synchronize": device.synchronize, "synchronize another device": other.synchronize,
    "is_ready": lambda: y.is_ready, "is_ready of another device": lambda: foreign.is_ready,
    "dispatch": bound.dispatch, "bind": lambda: operator.dispatch([x], [target]),
    "start": bound.start, "wait": pending.wait, "stream": lambda: operator.dispatch([host], [target]),
    "stream in a thread": lambda: operator.dispatch([host], [target], wait=False).wait(),
    "record": lambda: device.record().__enter__(), "run": program.run,
    "measure": device.measure_dispatches, "memory_report": device.memory_report,
}
found = {name: call(use) for name, use in uses.items()}
faulty.mend()
new = vkops.Device(index)
after = [vkops.flip(new.tensor([1, 2, 3])).numpy().tolist(), call(y.numpy), call(device.close)]
shared = new.shares_memory_with(vkops.Device(index))
print(json.dumps([first, found, after, call(y.numpy), shared], default=str))
"""
DEFAULT = """
faulty.lose(b"vkQueueSubmit")
first = call(lambda: vkops.roll([1, 2, 3], 1).numpy().tolist())
faulty.mend()
print(json.dumps([first, call(lambda: vkops.roll([1, 2, 3], 1).numpy().tolist())]))
"""


@pytest.mark.parametrize("by", ["vkQueueSubmit", "vkWaitForFences", "vkGetFenceStatus"])
@pytest.mark.parametrize("kind", ["mapped", "staged"])
def test_a_lost_device_stays_lost(faulty, adapter, kind, by):
    """Whatever reads, waits, submits, records or asks raises, on all Devices of the adapter."""
    first, found, after, closed, shared = json.loads(faulty(LOST, adapter.index, kind, by))
    while_it_ran = "" if by == "vkQueueSubmit" else " while it ran roll"
    message = (
        f"{adapter.label} failed{while_it_ran}: {by}: ErrorDeviceLost; it must be opened again"
    )
    assert first == f"DeviceError: {message}"
    assert found == dict.fromkeys(found, first)
    assert after == [[3, 2, 1], first, None]
    assert (closed, shared) == (first, True)


def test_the_default_device_is_opened_again(faulty, adapter):
    said = faulty(DEFAULT, adapter.index, "mapped", VKOPS_ADAPTER=str(adapter.index))
    first, after = json.loads(said)
    assert "ErrorDeviceLost" in first
    assert after == [3, 1, 2]


UNKNOWN = """
x = device.tensor(np.arange(8, dtype=np.int32))
vkops.roll(x, 1).numpy()
more = vkops.ElementwiseKernel("T x", "T y", "y = x + 1")
more(x).numpy()
failed = []
while not isinstance(failed, str):  # the thread of the queue may have met the failure instead
    faulty.fail(sys.argv[3].encode(), 0, 1, UNKNOWN)
    failed = call(lambda: more(vkops.roll(x, 1)).numpy().tolist())
faulty.fail(b"", 0, 0, 0)
again = [vkops.roll(x, k).numpy().tolist() for k in range(9)]
assert again == [np.roll(range(8), k).tolist() for k in range(9)]
print(json.dumps(failed))
"""


@pytest.mark.parametrize("name", ["vkQueueSubmit", "vkWaitForFences", "vkGetFenceStatus"])
@pytest.mark.parametrize("kind", ["mapped", "staged"])
def test_only_the_loss_of_a_device_ends_it(faulty, adapter, kind, name):
    """Another failure is that of one call."""
    failed = json.loads(faulty(UNKNOWN, adapter.index, kind, name))
    assert re.fullmatch(
        rf"DeviceError: {re.escape(adapter.label)} failed.*: {name}: ErrorUnknown", failed
    )


MEMORY = """
x = device.tensor(np.arange(8, dtype=np.int32))
vkops.roll(x, 1).numpy()
more = vkops.ElementwiseKernel("T x", "T y", "y = x + 1")
more(x).numpy()
columns = device.tensor(np.arange(1 << 20).astype(np.uint8).reshape(1 << 12, 256))
def halves():
    return vkops.split(columns, 2, axis=1)[1].numpy()
name = sys.argv[3].encode()
faulty.fail(name, 0, 2, NO_DEVICE_MEMORY if b"Descriptor" in name else NO_HOST_MEMORY)
failed = [call(use) for use in (halves, lambda: more(x[:5]).numpy())]
faulty.fail(b"", 0, 0, 0)
assert (halves() == columns.numpy()[:, 128:]).all()
again = [vkops.roll(x, k).numpy().tolist() for k in range(1, 80)]
assert again == [np.roll(range(8), k).tolist() for k in range(1, 80)]
print(json.dumps(failed, default=str))
"""


@pytest.mark.parametrize("name", ["vkAllocateDescriptorSets", "vkQueueSubmit", "vkWaitForFences"])
@pytest.mark.parametrize("kind", ["mapped", "staged"])
def test_no_memory_while_commands_are_recorded_submitted_or_waited_for(faulty, adapter, kind, name):
    """The next call works, and Vulkan is used correctly meanwhile."""
    said = faulty(MEMORY, adapter.index, kind, name)
    failed = [text for text in json.loads(said.splitlines()[-1]) if "OutOfDeviceMemory" in text]
    assert failed
    assert all(": the driver has no memory for commands (vk" in text for text in failed)


@pytest.mark.system("VkLayer_khronos_validation")
@pytest.mark.parametrize("name", ["vkAllocateDescriptorSets", "vkQueueSubmit"])
def test_the_validation_layer_finds_nothing_wrong_after_a_lack_of_memory(faulty, adapter, name):
    said = faulty(MEMORY, adapter.index, "mapped", name, **VALIDATED_BELOW)
    assert len(said.splitlines()) == 1, said
