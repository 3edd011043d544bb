"""Arrays of tensors show what the tensor held when they were made, on all kinds of memory."""

import gc
import sys
import threading
import time
from importlib.util import find_spec

import numpy as np
import pytest
from compiled_operators import reverse

import vkops
from vkops import dml
from vkops.errors import DeviceError
from vkops.onnx import Session

pytestmark = pytest.mark.memory

ADD_ONE = """#version 450
layout(local_size_x = 64) in;
layout(std430, binding = 0) buffer X { int x[]; };
void main() { uint i = gl_GlobalInvocationID.x; if (i < x.length()) x[i] += 1; }"""

READERS = {
    "numpy": lambda t: t.numpy(),
    "np.asarray": np.asarray,
    "__array__": lambda t: t.__array__(),
    "np.from_dlpack": np.from_dlpack,
    "memoryview": lambda t: np.asarray(memoryview(t.numpy())),
    "transposed": lambda t: t.T.numpy().T,
    "reversed": lambda t: t[::-1, ::-1].numpy()[::-1, ::-1],
    "row by row": lambda t: np.stack([row.numpy() for row in t]),
}


def add_one(tensor):
    return tensor.device.compile_shader(ADD_ONE).bound({"X": tensor}, threads=tensor.size)


def write_by_operator(tensor):
    backwards = reverse(tensor.device, tensor.size, dml.TensorDataType.INT32)
    backwards.dispatch([tensor.device.tensor(tensor.numpy() + 1)], [tensor])


def write_by_recording(tensor):
    with tensor.device.record() as program:
        tensor[...] = vkops.flip(tensor)
    program.run()
    tensor[0, 0] = -9


def write_by_recorded_constants(tensor):
    with tensor.device.record() as program:
        tensor[1] = tensor.size + np.arange(3)
        tensor[0, 1:].fill(tensor.size)
    tensor[...] = np.flip(tensor.numpy())
    program.run(times=2)


def write_by_model(tensor):
    import onnx

    text = """<ir_version: 8, opset_import: ["" : 13]>
    g (int32[2,3] x) => (int32[2,3] y) { y = Identity (x) }"""
    session = Session(onnx.parser.parse_model(text), device=tensor.device)
    session.run({"x": tensor.numpy() + 1}, targets={0: tensor})


WRITERS = {
    "assignment": lambda t: t.__setitem__(..., t.numpy() + 1),
    "assignment of a part": lambda t: t.__setitem__((0, 1), -5),
    "assignment to a view": lambda t: t.T[::2].__setitem__(..., -5),
    "assignment of a tensor": lambda t: t.__setitem__(0, t.device.tensor(np.int32([7, 8, 9]))),
    "assignment of its own view": lambda t: t.__setitem__(..., t[::-1]),
    "assignment by indices": lambda t: t.__setitem__(([0, 1], [2, 0]), -5),
    "fill": lambda t: t.fill(-5),
    "fill of a view": lambda t: t[:, 1:].fill(-5),
    "view of another dtype": lambda t: t.view("uint32").__setitem__((1, 1), 77),
    "its buffer": lambda t: t.buffer.write(np.int32([5])),
    "bound operator": write_by_operator,
    "model": write_by_model,
}
ON_DEVICE = {
    "shader": lambda t: t.device.compile_shader(ADD_ONE)(t, threads=t.size),
    "bound shader": lambda t: add_one(t).dispatch(),
    "elementwise kernel": lambda t: vkops.ElementwiseKernel("T x", "T y", "y = x + 1")(t, out=t),
    "recorded program": write_by_recording,
    "recorded constants": write_by_recorded_constants,
}


def keeps_its_history(tensor, write, read):
    """Compare arrays that are kept between writes with copies that were made at the same time."""
    history, copies = [], []
    for _ in range(3):
        history.append(read(tensor))
        copies.append(np.array(history[-1]))
        write(tensor)
    assert not np.array_equal(copies[0], tensor.numpy()), "nothing was written"
    tensor.device.synchronize()
    np.testing.assert_array_equal(history, copies)


@pytest.mark.parametrize("read", READERS.values(), ids=READERS)
@pytest.mark.parametrize("write", WRITERS.values(), ids=WRITERS)
def test_arrays_keep_what_they_show(make, write, read):
    keeps_its_history(make(np.arange(6, dtype=np.int32).reshape(2, 3)), write, read)


@pytest.mark.parametrize("read", READERS.values(), ids=READERS)
@pytest.mark.parametrize("write", ON_DEVICE.values(), ids=ON_DEVICE)
def test_arrays_keep_what_they_show_while_the_device_writes(any_device, write, read):
    tensor = any_device.tensor(np.arange(6, dtype=np.int32).reshape(2, 3))
    keeps_its_history(tensor, write, read)


def test_bound_and_recorded_work_stays_with_its_tensor(any_device):
    x = any_device.tensor(np.zeros(6, np.int32))
    history = [x.numpy()]
    bound = add_one(x)
    bound.dispatch()
    history.append(x.numpy())
    with any_device.record() as program:
        y = vkops.roll(x, 1)
        x[...] = y
    history.append(x.numpy())
    x[0] = 5
    program.run()
    history.append(x.numpy())
    bound.dispatch()
    rolled = [1, 5, 1, 1, 1, 1]
    assert [array.tolist() for array in history] == [[0] * 6, [1] * 6, [1] * 6, rolled]
    assert y.numpy().tolist() == rolled
    assert x.numpy().tolist() == [2, 6, 2, 2, 2, 2]


def test_a_tensor_in_several_pieces_of_memory(device):
    nbytes = device.pool.max_range + 4096
    x = vkops.zeros(nbytes, np.uint8, device=device)
    before = x.numpy()
    x[-1] = 7
    after = x[-2:].numpy()
    x.fill(1)
    assert not before.any()
    assert after.tolist() == [0, 7]


@pytest.mark.usefixtures("shared_memory")
def test_no_copy_where_nothing_else_holds_the_memory(device):
    """Reading a tensor, and other tensors' reading of it, copies nothing."""
    gc.collect()
    x = vkops.roll(device.tensor(np.arange(6)), 1)
    first, used = x.numpy(), device.memory_report().used
    vkops.split(x, 2)
    second = x[::-1].numpy()[::-1]
    assert np.shares_memory(first, second)
    assert np.shares_memory(first, np.asarray(x.reshape(2, 3).T[::-1]))
    assert np.shares_memory(first, np.from_dlpack(_Asking(x, copy=False)))
    assert device.memory_report().used == used
    del first, second
    address = x.numpy().ctypes.data
    x[0] = 7  # no array is left
    assert x.numpy().ctypes.data == address


@pytest.mark.usefixtures("shared_memory")
def test_memory_of_arrays_counts(device):
    gc.collect()
    x = device.tensor(np.zeros(1 << 18, np.uint8))
    used = device.memory_report().used
    array = x.numpy()
    x[0] = 1
    assert device.memory_report().used == used + (1 << 18)
    del x
    gc.collect()
    assert device.memory_report().used == used
    assert not array.any()
    del array
    gc.collect()
    assert device.memory_report().used == used - (1 << 18)


def test_flags(make):
    tensor = make(np.arange(6, dtype=np.int32).reshape(2, 3))
    for each in (tensor, tensor[:, 1:], tensor[::-1], tensor[0:0]):
        for array in (each.numpy(), np.asarray(each)):
            assert not array.flags.writeable
    assert not np.asarray(tensor).flags.writeable
    assert np.array(tensor).flags.writeable
    assert tensor.numpy().copy().flags.writeable
    assert memoryview(tensor.numpy()).readonly
    converted = np.asarray(tensor.T, np.int64)  # by NumPy
    assert converted.flags.writeable
    assert converted.tolist() == [[0, 3], [1, 4], [2, 5]]


def test_without_a_copy(make):
    """``copy=False`` gives a snapshot without a copy, or an error."""
    tensor = make(np.arange(6, dtype=np.int32).reshape(2, 3))
    on_host = isinstance(tensor.buffer, vkops.HostBuffer)
    if on_host or tensor.device.mapped:
        first = tensor.__array__(copy=False)
        second = np.from_dlpack(_Asking(tensor, copy=False))
        assert np.shares_memory(first, second)
        assert not first.flags.writeable
        tensor[...] = 7
        assert first.tolist() == second.tolist() == [[0, 1, 2], [3, 4, 5]]
    held = tensor.buffer
    with pytest.raises(ValueError, match="without a copy"):
        tensor.__array__(copy=False)
    with pytest.raises(BufferError, match="without a copy"):
        tensor.__dlpack__(max_version=(1, 0), copy=False)
    del held
    assert tensor.__array__(copy=True).flags.writeable


class _Asking:
    """An exporter that passes other arguments on than NumPy gives."""

    def __init__(self, tensor, **arguments):
        self._tensor, self._arguments = tensor, arguments

    def __dlpack__(self, **arguments):
        return self._tensor.__dlpack__(**{"max_version": (1, 0), **arguments, **self._arguments})

    def __dlpack_device__(self):
        return self._tensor.__dlpack_device__()


@pytest.mark.skipif(find_spec("torch") is None, reason="needs PyTorch")
def test_pytorch(any_device):
    import torch

    x = any_device.tensor(np.arange(4))
    shown = torch.from_dlpack(x)
    x[...] = 7
    assert shown.tolist() == [0, 1, 2, 3]
    assert torch.from_dlpack(x).tolist() == [7] * 4


def test_mapped(device, staged_device):
    """A view that follows the device has a name of its own, and is refused where there is none."""
    if device.mapped and device.buffer(4).is_coherent:
        x = device.tensor(np.arange(6).reshape(2, 3))
        before = x.numpy()
        follows, turned = x.mapped(), x.T.mapped()
        during = x.numpy()
        x[0, 1] = 7
        vkops.roll(x, 1)
        assert follows[0, 1] == turned[1, 0] == 7
        assert before[0, 1] == during[0, 1] == 1
        with pytest.raises(ValueError, match="read-only"):
            follows[0] = 1
        del x
        assert follows.tolist() == [[0, 7, 2], [3, 4, 5]]
        buffer = device.buffer(8)
        whole = buffer.mapped()
        buffer.write(b"12345678")
        assert whole.tobytes() == b"12345678"
    with pytest.raises(DeviceError, match="is not mapped"):
        staged_device.tensor([1, 2]).mapped()
    assert vkops.zeros((0, 2), device=staged_device).mapped().shape == (0, 2)


def test_threads_that_read_and_write(any_device):
    """No write is lost while other threads read, and no array changes after it was made."""
    x = any_device.tensor(np.zeros(4, np.int32))
    stop, wrong = threading.Event(), []

    def read():
        kept = []
        while not stop.is_set():
            array = x.numpy()
            kept.append((array, array.copy()))
            del kept[:-20]
            wrong.extend(1 for a, b in kept if not np.array_equal(a, b))

    def write(place):
        for number in range(1, 301):
            x[place] = number

    readers = [threading.Thread(target=read) for _ in range(2)]
    writers = [threading.Thread(target=write, args=(place,)) for place in range(4)]
    for thread in (*readers, *writers):
        thread.start()
    for thread in writers:
        thread.join()
    stop.set()
    for thread in readers:
        thread.join()
    assert x.numpy().tolist() == [300] * 4
    # An array of a tensor that another thread writes may have been copied while it was written.
    assert not wrong


@pytest.mark.usefixtures("shared_memory")
def test_an_array_that_is_asked_for_while_the_elements_move(device):
    """It shows where they are then: a thread may still write where they were."""
    x, moved = (device.tensor(np.int32([n, 0, 0, 0])) for n in (1, 5))
    before, arrays = x.buffer, []
    reader = threading.Thread(target=lambda: arrays.append(x.numpy()))

    def calls():  # of the reader, beginning with the innermost
        frame = sys._current_frames()[reader.ident]
        while frame:
            yield frame.f_code.co_name
            frame = frame.f_back

    with device.vulkan.lock:
        reader.start()
        while "_snapshot" not in calls():
            time.sleep(0.001)  # until it waits for the lock
        x._buffer = moved.buffer
    moved.release()
    reader.join()
    before.write(np.full(4, 9, np.int32))
    assert arrays[0].tolist() == x.numpy().tolist() == [5, 0, 0, 0]


def test_arrays_that_are_freed_while_the_elements_move(device):
    """Another thread may free them at any time."""
    x = device.tensor(np.arange(4))
    buffer = x.buffer
    buffer.shown = iter(["a view", None]).__next__  # in place of a reference to one
    assert x.buffer is buffer
    assert buffer.read() == np.arange(4).tobytes()
