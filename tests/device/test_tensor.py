"""Tensors as NumPy, DLPack, pickle and Python meet them; views, and whose memory they hold."""

import copy
import gc
import pickle
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from adapters import memory_used
from arrays import Counter, agree, arrays, equal, on_device, small, viewed
from hypothesis import given
from hypothesis import strategies as st

import vkops

pytestmark = pytest.mark.memory

# -- views -----------------------------------------------------------------------------------------


@on_device
@given(array=small, data=st.data())
def test_views_of_views(any_device, array, data):
    """Read in place or copied, on either kind of memory, they hold what NumPy's hold."""
    tensor, array = viewed(data, any_device.tensor(array), array, steps=5)
    equal(tensor.T, array.T)
    agree(lambda: tensor.mT, lambda: np.swapaxes(array[..., :, :], -1, -2))
    assert (tensor.ndim, tensor.size, tensor.nbytes) == (array.ndim, array.size, array.nbytes)
    equal(tensor.copy(), array)
    equal(tensor, array)
    tensor.pack()
    equal(tensor, array)


@pytest.mark.parametrize("step", [2**31, 2**31 + 1, 2**62, 2**63 - 1, 2**70])
@pytest.mark.parametrize("start", [None, 0, 2, -1, 2**70, -(2**70)])
def test_slices_whose_step_is_larger_than_the_axis(any_device, start, step):
    """Views of them that are not contiguous can be read and written, too."""
    array = np.arange(24, dtype=np.int32).reshape(4, 6)
    for chosen in (slice(start, None, step), slice(start, None, -step)):
        for index in (chosen, (slice(1, 3), chosen), (slice(None, None, -2), chosen, None)):
            tensor, expected = any_device.tensor(array), array.copy()
            equal(tensor[index], expected[index])
            tensor[index] = expected[index] = -1
            equal(tensor, expected)


@pytest.mark.usefixtures("shared_memory")
@on_device
@given(array=small, data=st.data())
def test_views_cost_nothing(device, array, data):
    """No dispatch and no memory; binding one makes a packed copy, with one dispatch."""
    array = np.array(array)
    tensor = device.tensor(array)
    with Counter(device) as counter:
        chosen = tensor.transpose()[..., None].flip().broadcast_to((3, *array.T.shape, 4))
        expected = np.broadcast_to(np.flip(array.T[..., None]), (3, *array.T.shape, 4))
        used = device.memory_report().used
        equal(chosen, expected)
        assert counter.count == 0
        assert device.memory_report().used <= used
        strides = chosen.strides
        buffer = chosen.buffer
        assert counter.count == (1 if array.size else 0)
    if array.size:
        assert strides == expected.strides or 1 in array.shape
        assert buffer.read(0, chosen.nbytes) == expected.tobytes()
    assert chosen.pack() is chosen
    equal(chosen, expected)
    if array.size:
        assert chosen.strides == np.empty(chosen.shape, array.dtype).strides


@on_device
@given(array=small, data=st.data())
def test_reshape(device, array, data):
    """A view where NumPy has one, else packed with one dispatch; both refuse the same shapes."""
    tensor, array = viewed(data, device.tensor(array), array)
    shape = data.draw(st.lists(st.integers(-1, 6), max_size=4).map(tuple))
    if data.draw(st.booleans()):
        shape = (-1, *(n for n in array.shape if n in (1, 2, 5)))
    agree(lambda: tensor.reshape(shape), lambda: array.reshape(shape))
    if not array.size:
        return
    merged = (*array.shape[:-2], -1) if array.ndim > 1 else (1, -1)
    with Counter(device) as counter:
        reshaped = tensor.reshape(merged)
    expected = array.reshape(merged)
    equal(reshaped, expected)
    if np.shares_memory(array, expected) and array.strides:
        assert counter.count == 0


def test_whole_views_and_rows_cost_nothing(device):
    array = np.arange(12).reshape(3, 4)
    tensor = device.tensor(array)
    with Counter(device) as counter:
        assert tensor.reshape(2, 6)[None].buffer is tensor.buffer
        rows = list(tensor)
    assert counter.count == 0
    for row, expected in zip(rows, array, strict=True):
        equal(row, expected)


def test_views_of_what_is_on_the_host(device, monkeypatch, change_device):
    """What does not fit stays there; its views are read there, and streamed into results."""
    change_device(fits=lambda nbytes: False)
    array = np.arange(60, dtype=np.int16).reshape(5, 12)
    flipped = vkops.flip(array, device=device)
    before = memory_used(device)
    equal(flipped, np.flip(array))
    joined = vkops.join([flipped[:, ::2].T, flipped[:, 1::2].T])
    expected = np.concatenate([np.flip(array)[:, ::2].T, np.flip(array)[:, 1::2].T])
    equal(joined, expected)
    equal(joined.T.copy(), expected.T)
    assert memory_used(device) == before
    monkeypatch.undo()
    equal(vkops.join([joined, device.tensor(expected)]), np.concatenate([expected] * 2))


def test_pack_from_many_threads(device):
    array = np.arange(1000).reshape(10, 100)
    for _ in range(10):
        view = device.tensor(array).T
        with ThreadPoolExecutor(8) as pool:
            assert len(set(pool.map(lambda _, v=view: id(v.pack().buffer), range(8)))) == 1
        equal(view, array.T)


# -- life ------------------------------------------------------------------------------------------


def test_release_gives_memory_back(any_device):
    before = memory_used(any_device)
    with any_device.tensor(np.zeros(5000)) as tensor:
        view = tensor[::2]
        assert memory_used(any_device) > before
    assert memory_used(any_device) == before
    tensor.release()  # again: nothing happens
    text = r"^the tensor \(\d+,\) float64 was released$"
    uses = (
        lambda t: t.numpy(), lambda t: t.buffer, lambda t: t.copy(), lambda t: t[0],
        lambda t: t.flip(), lambda t: vkops.join([t, t]), lambda t: vkops.roll(t, 1),
        lambda t: t.fill(0), lambda t: t.__setitem__(0, 0), lambda t: t.owns_buffer,
        lambda t: vkops.from_dlpack(t), lambda t: t.pack(), np.asarray, pickle.dumps,
    )  # fmt: skip
    for use in uses:
        for released in (tensor, view):
            with pytest.raises(vkops.DeviceError, match=text):
                use(released)
    assert repr(tensor).startswith("<released vkops.Tensor (5000,)")


def test_release_of_a_view(device):
    """It gives up its share; memory of its own goes."""
    tensor = device.tensor(np.arange(1000))
    used = memory_used(device)
    with tensor[::2] as view:
        view.pack()
        assert memory_used(device) > used
    assert memory_used(device) == used
    tensor[1:].release()
    assert int(tensor[999]) == 999
    with tensor[1:] as last:
        del tensor
        assert int(last[998]) == 999
    assert memory_used(device) < used


def test_a_packed_view_outlives_its_tensor(device):
    tensor = device.tensor(np.arange(6).reshape(2, 3))
    view = tensor.T.pack()
    tensor.release()
    assert view.numpy().tolist() == [[0, 3], [1, 4], [2, 5]]


def test_arrays_outlive_a_tensor_and_its_device(adapter):
    device = vkops.Device(adapter.index)
    tensor = device.tensor(np.arange(1000))
    array, other = tensor.numpy(), tensor[::-1].numpy()
    tensor.release()
    del tensor
    gc.collect()
    device.tensor(np.zeros(1000, int))  # would take the memory
    assert array.sum() == other.sum() == 499500
    device.close()
    del device
    gc.collect()
    assert array.sum() == other.sum() == 499500


def test_copies_are_apart(device):
    tensor = device.tensor(np.arange(4))
    for made in (tensor.copy(), copy.copy(tensor), copy.deepcopy(tensor), tensor[:].copy()):
        assert made.device is device
        assert made.buffer is not tensor.buffer
        equal(made, np.arange(4))


# -- other libraries -------------------------------------------------------------------------------


@on_device
@given(array=arrays, data=st.data())
def test_pickle(device, array, data):
    tensor, array = viewed(data, device.tensor(array), array)
    again = pickle.loads(pickle.dumps(tensor, data.draw(st.integers(2, 5))))
    assert again.dtype == array.dtype
    assert again.device is vkops.split([1], 1)[0].device
    equal(again, array)
