"""Kompute's tensors, algorithms and operations on the device of vkops."""

import gc

import numpy as np
import pytest

import vkops
from vkops.gpu.adapters.kompute import load_kompute
from vkops.gpu.copies.rule import COPY

pytestmark = pytest.mark.memory

X = np.arange(64, dtype=np.float32)

DOUBLE = """#version 450
layout(local_size_x = 64) in;
layout(std430, binding = 0) buffer Data { float data[]; };
void main() { data[gl_GlobalInvocationID.x] *= 2; }"""


@pytest.fixture
def kp(device):
    return load_kompute()


@pytest.fixture(params=["device", "host"])
def kind(request, kp):
    return getattr(kp.TensorTypes, request.param)


def data_of(device, tensor):
    """The elements that Kompute shows."""
    device.kompute.run(load_kompute().OpTensorSyncLocal([tensor]))
    device.synchronize()
    return tensor.data()


def test_shaders_of_vkops_and_of_kompute_take_turns_on_one_memory(device, kp, kind):
    tensor = device.kompute.tensor(X, kind)
    shader = device.compile_shader(DOUBLE)
    algorithm = device.kompute.algorithm([tensor], shader.shader.spirv, (1, 1, 1))
    x = device.from_kompute(tensor)
    device.kompute.run(kp.OpTensorSyncDevice([tensor]))
    for times in (4, 16, 64):
        shader(x, threads=64)
        device.kompute.run(kp.OpAlgoDispatch(algorithm))
        assert (x.numpy() == times * X).all()  # waits for Kompute's operation
    assert (data_of(device, tensor) == 64 * X).all()
    x[...] = vkops.flip(x).copy()
    assert (data_of(device, tensor) == 64 * X[::-1]).all()


def test_a_buffer_is_made_once_and_keeps_what_it_is_made_of(device, kp, kind):
    gc.collect()  # what other tests have left
    before = device.memory_report().heaps
    tensor = device.kompute.tensor_t(X.view(np.int32), kind)
    device.kompute.run(kp.OpTensorSyncDevice([tensor]))
    x = device.from_kompute(tensor)
    assert x.dtype == np.int32
    assert device.from_kompute(tensor).handles == x.handles
    assert device.memory_report().heaps == before + 1
    del tensor
    gc.collect()
    y = vkops.roll(x, 1)
    del x
    assert (y.numpy() == np.roll(X.view(np.int32), 1)).all()
    device.synchronize()
    assert device.memory_report().heaps == before or device.memory_report().heaps == before + 1


def test_programs_record_operations_of_kompute(device, kp, kind):
    tensor, other = device.kompute.tensor(X, kind), device.kompute.tensor(0 * X, kind)
    device.kompute.run(kp.OpTensorSyncDevice([tensor, other]))
    x = device.from_kompute(tensor)
    double = device.compile_shader(DOUBLE)
    with device.record() as program:
        double(x, threads=64)
        device.kompute.run(kp.OpTensorCopy([tensor, other]))
    program.run(times=3)
    assert (device.from_kompute(other).numpy() == 8 * X).all()
    program.close()


def test_what_needs_another_usage_gets_copies(device, kp, kind):
    tensor = device.kompute.tensor_t(np.uint32([2, 1, 1, 7]), kind)
    device.kompute.run(kp.OpTensorSyncDevice([tensor]))
    counts = device.from_kompute(tensor)
    shader = device.compile_shader("""#version 450
layout(std140, binding = 0) uniform Values { uvec4 values; };
layout(std430, binding = 1) buffer Sums { uint sums[]; };
layout(binding = 2) uniform utextureBuffer texels;
void main() { atomicAdd(sums[0], values.w); atomicAdd(sums[1], texelFetch(texels, 3).x); }""")
    sums = vkops.zeros(2, "uint32", device=device)
    shader(counts, sums, counts, groups=counts)
    own = device.tensor(np.uint32([1, 1, 1, 5]))  # the calls of both are prepared apart
    shader(own, sums, own, groups=own)
    assert sums.tolist() == [19, 19]
    with pytest.raises(vkops.VkopsError, match="address"):
        _ = counts.device_address


def test_columns_are_copied_without_images(adapter, kp, kind, monkeypatch):
    monkeypatch.setenv(COPY, "regions")
    with vkops.Device(adapter.index) as device:
        x = np.arange(2000 * 3 * 16, dtype=np.float32)
        tensor = device.kompute.tensor(x, kind)
        device.kompute.run(kp.OpTensorSyncDevice([tensor]))
        parts = vkops.split(device.from_kompute(tensor).reshape(2000, 48), 3, axis=1)
        for part, expected in zip(parts, np.split(x.reshape(2000, 48), 3, 1), strict=True):
            np.testing.assert_array_equal(part.numpy(), expected)


def test_what_is_refused(device, kp, message):
    manager = device.kompute
    own = manager.tensor(X)
    foreign = kp.Manager(device.info.index).tensor(X)
    for call in (
        lambda: manager.sequence(),
        lambda: device.from_kompute(foreign),
        lambda: manager.algorithm([own, foreign], b""),
        lambda: device.from_kompute(X),
        lambda: device.from_kompute(manager.tensor([1])),
        lambda: device.from_kompute(manager.tensor(X, kp.TensorTypes.storage)),
        lambda: manager.tensor([]),
        lambda: manager.tensor_t(np.int8([1])),
        lambda: manager.run(own),
    ):
        with pytest.raises(vkops.DeviceError) as raised:
            call()
        message(str(raised.value).split(" at 0x")[0])
    own.destroy()
    with pytest.raises(vkops.DeviceError, match="got 0 bytes"):
        device.from_kompute(own)
