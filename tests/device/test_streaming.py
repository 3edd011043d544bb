"""What does not fit on the device goes through it in chunks."""

import numpy as np
import pytest
from arrays import small_memory
from compiled_operators import compiled
from onnx_models import node_model

import vkops
from vkops import dml
from vkops.gpu.run.buffer import Buffer, HostBuffer
from vkops.onnx import Session
from vkops.runtime.device import StreamedOperator

CHUNK = 1 << 16


@pytest.fixture
def tight(adapter, monkeypatch):
    """A device with room for 1 MiB, which streams 64 KiB at a time."""
    monkeypatch.setattr("vkops.gpu.run.open_device.MAX_UNCHECKED_BYTES", 0)
    monkeypatch.setattr("vkops.gpu.run.streaming.CHUNK", CHUNK)
    monkeypatch.setattr("vkops.gpu.memory.pools.FIRST_NBYTES", 1 << 18)
    with vkops.Device(adapter.index) as device:
        memory = small_memory(device)
        memory.available = lambda: (1 << 20) - memory.reserved
        yield device


@pytest.mark.memory
@pytest.mark.parametrize(
    ("dtype", "n", "axis"),
    [
        (np.uint8, 1100, 0), (np.uint8, 1100, 1), (np.uint8, 1100, 2),
        (np.float16, 700, 2), (np.float32, 400, 1), (np.complex128, 200, 0),
    ],
)  # fmt: skip
def test_arrays_too_large_for_the_device_are_streamed(tight, dtype, n, axis):
    random = np.random.default_rng(0)
    x = random.integers(0, 256, (30, 70, n), np.uint8).astype(dtype)
    told = []
    cuts = [3, x.shape[axis] // 2]
    sizes = np.diff([0, *cuts, x.shape[axis]]).tolist()
    parts = vkops.split(x, sizes, axis, device=tight, progress=lambda *at: told.append(at))
    for part, expected in zip(parts, np.split(x, cuts, axis), strict=True):
        assert isinstance(part.buffer, HostBuffer)
        np.testing.assert_array_equal(part.numpy(), expected)
    assert told[-1] == (x.nbytes, x.nbytes)
    assert told == sorted(told)
    joined = vkops.join([part.numpy() for part in parts], axis, device=tight)
    np.testing.assert_array_equal(joined.numpy(), x)
    # Results on the host are arguments like any other, and go to the device where they fit.
    assert isinstance(joined.buffer, HostBuffer)
    np.testing.assert_array_equal(vkops.join(parts, axis).numpy(), x)
    few = vkops.slice(joined, [1, 2, n - 100], [20, 3, 30], [1, 2, -3])
    np.testing.assert_array_equal(few.numpy(), x[1:21, 2:7:2, n - 100 : n - 190 : -3])
    (fewer,) = vkops.split(few, 1)
    assert isinstance(fewer.buffer, Buffer)
    np.testing.assert_array_equal(fewer.numpy(), few.numpy())
    del fewer
    many = vkops.slice(x, [29, 0, 0], [30, 70, n], [-1, 1, 1], device=tight)
    np.testing.assert_array_equal(many.numpy(), x[::-1])
    assert tight.memory_report().used <= 1 << 14


@pytest.mark.memory
def test_tensors_on_the_device_are_not_moved_off_it(tight):
    held = tight.tensor(np.zeros(600_000, np.uint8))
    with pytest.raises(vkops.OutOfDeviceMemoryError, match="a buffer of 600064 bytes"):
        vkops.join([held])


@pytest.mark.memory
def test_operators_bound_to_host_memory(tight):
    """Host buffers are bound like others; what an operator does not write stays."""
    x = np.random.default_rng(1).integers(0, 1 << 30, (500, 700), np.int32)
    whole = dml.BufferTensorDesc(dml.TensorDataType.INT32, x.shape)
    # One output has gaps in memory, the other is on the device.
    left = dml.BufferTensorDesc(dml.TensorDataType.INT32, (500, 650), (660, 1))
    right = dml.BufferTensorDesc(dml.TensorDataType.INT32, (500, 50))
    desc = dml.SplitOperatorDesc(whole, [left, right], axis=1)
    source = tight.host_buffer(x.nbytes + 32)
    source.write(x, 32)
    gaps = tight.host_buffer(500 * 660 * 4)
    gaps.write(np.full(500 * 660, -7, np.int32))
    small = tight.buffer(500 * 50 * 4)
    operator = compiled(tight, desc).bind([(source, 32, x.nbytes)], [gaps, small])
    assert isinstance(operator, StreamedOperator)
    operator.dispatch()
    got = np.frombuffer(gaps.read(), np.int32).reshape(500, 660)
    np.testing.assert_array_equal(got[:, :650], x[:, :650])
    assert (got[:, 650:] == -7).all()
    np.testing.assert_array_equal(
        np.frombuffer(small.read(), np.int32).reshape(500, 50), x[:, 650:]
    )


LAYOUTS = {
    "transpose": lambda x: x.T.copy(),
    "rot90": lambda x: np.rot90(x).copy(),
    "rot90 of a transpose": lambda x: np.rot90(x.T, 3).copy(),
    "column-major": lambda x: np.reshape(x, (x.shape[0] // 2, -1), order="F"),
    "three axes": lambda x: x.reshape(20, -1, x.shape[1]).transpose(2, 1, 0).copy(),
    "steps": lambda x: x.T[::-3, ::2].copy(),
    "join": lambda x: np.concatenate([x.T, x.T], 1),
}
"""Each is made of a tensor, and of an array."""


@pytest.mark.parametrize(
    ("shape", "dtype"),
    [((1000, 1501), np.uint8), ((60, 25013), np.float16), ((2540, 61), np.complex128)],
)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_what_lies_apart_on_the_host_is_streamed(tight, layout, shape, dtype):
    x = np.random.default_rng(3).integers(0, 256, shape, np.uint8).astype(dtype)
    result = LAYOUTS[layout](vkops.asarray(x, device=tight))
    assert isinstance(result.buffer, HostBuffer)
    np.testing.assert_array_equal(result.numpy(), LAYOUTS[layout](x))


@pytest.mark.memory
@pytest.mark.parametrize("written", [False, True])
def test_operators_on_strided_tensors_on_the_host(tight, written):
    x = np.random.default_rng(4).integers(0, 1 << 30, (500, 700), np.int32)
    packed = dml.BufferTensorDesc(dml.TensorDataType.INT32, (700, 500))
    strided = dml.BufferTensorDesc(dml.TensorDataType.INT32, (700, 500), (1, 700))
    descs = (packed, strided) if written else (strided, packed)
    operator = compiled(tight, dml.ElementWiseIdentityOperatorDesc(*descs))
    source, target = tight.host_buffer(x.nbytes), tight.host_buffer(x.nbytes)
    source.write(np.ascontiguousarray(x.T) if written else x)
    operator.dispatch([source], [target])
    got = np.frombuffer(target.read(), np.int32)
    np.testing.assert_array_equal(got, (x if written else x.T).ravel())


@pytest.mark.parametrize("more", [1, 2, 3])
def test_arrays_whose_bytes_are_no_whole_words_are_streamed(tight, more):
    """The last word of an array is not a whole one, nor is that of any part."""
    n = (1 << 20) + more
    x = np.random.default_rng(5).integers(0, 256, n, np.uint8)
    sizes = [n // 2, n - n // 2]
    pairs = [
        (vkops.roll(x, 1, device=tight), np.roll(x, 1)),
        (vkops.pad(x, (2, 5), device=tight), np.pad(x, (2, 5))),
        (vkops.concat([x, x[:7]], device=tight), np.concatenate([x, x[:7]])),
        (vkops.tile(x, 3, device=tight), np.tile(x, 3)),
        (vkops.flip(x, device=tight), x[::-1]),
        (vkops.repeat(x, 3, device=tight), np.repeat(x, 3)),
        *zip(vkops.split(x, sizes, device=tight), np.split(x, sizes[:1]), strict=True),
    ]
    nodes = [
        (node_model("Concat", x, x[:7], axis=0), [np.concatenate([x, x[:7]])]),
        (node_model("Pad", x, np.array([2, 5])), [np.pad(x, (2, 5))]),
        (node_model("Split", x, np.array(sizes), outputs=2), np.split(x, sizes[:1])),
    ]
    for (proto, inputs), expected in nodes:
        pairs += zip(Session(proto, tight).run(inputs), expected, strict=True)
    for result, expected in pairs:
        np.testing.assert_array_equal(result.numpy(), expected)


def test_more_than_the_host_has(device):
    with pytest.raises(vkops.OutOfDeviceMemoryError, match="neither the device nor the host"):
        device.host_buffer(1 << 60)


@pytest.mark.memory
@pytest.mark.parametrize("columns", [300, 600])
def test_nodes_that_read_indices_from_data_on_the_host(tight, columns):
    """The host takes elements of data that do not fit on the device; so it does for its tensors."""
    rows = np.random.default_rng(2).integers(-400, 400, 50)
    data = np.arange(400 * columns, dtype=np.int32).reshape(400, columns)
    proto, inputs = node_model("Gather", data, rows)
    session = Session(proto, tight)
    (y,) = session.run(inputs)
    np.testing.assert_array_equal(y.numpy(), data[rows])
    on_host = vkops.Tensor(tight, y.shape, y.dtype, on_host=True)
    session.run(inputs, targets={0: on_host})
    np.testing.assert_array_equal(on_host.numpy(), data[rows])
