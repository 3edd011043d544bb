"""Indexing by arrays, take and put, against NumPy."""

import numpy as np
import pytest
from arrays import Counter, agree, equal, numbered, on_device, small, small_arrays, viewed
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst

import vkops
from vkops.gpu.kernels import encoding, layout

TYPES = ["int32", "int64", "uint32", "uint64"]


def places(data, n, shape, *, dtypes=(*TYPES, "int8", ">i4")):
    """Indices of an axis of so many elements, some of them counted from the end."""
    dtype = np.dtype(data.draw(st.sampled_from(dtypes)))
    bounds = np.iinfo(dtype)
    least = max(int(bounds.min), -n)
    most = min(int(bounds.max), max(0, n - 1))
    return data.draw(npst.arrays(dtype, shape, elements=st.integers(least, most)))


def given_as(data, make, array):
    """The same indices in a tensor, a view, a list or an array."""
    kinds = ["array", "list"] if array.size and array.ndim else ["array"]
    if array.dtype.name in TYPES and array.dtype.isnative:
        kinds += ["tensor", "view"]
    kind = data.draw(st.sampled_from(kinds))
    if kind == "list":
        return array.tolist()
    if kind == "tensor":
        return make(array)
    if kind == "view":
        return make(np.flip(array)).flip()
    return array


shapes = npst.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=4)


@on_device
@given(array=small, data=st.data())
def test_take(make, array, data):
    tensor, array = viewed(data, make(array), array)
    axis = data.draw(st.none() | st.integers(-array.ndim - 1, array.ndim))
    inside = axis is not None and -array.ndim <= axis < array.ndim
    n = array.shape[axis] if inside else array.size
    indices = places(data, n, data.draw(shapes))
    if indices.size and not n:
        with pytest.raises(vkops.InvalidDescError):
            vkops.take(tensor, indices, axis)
        return
    agree(
        lambda: vkops.take(tensor, given_as(data, make, indices), axis),
        lambda: np.take(array, indices.astype(np.int64), axis),
    )


def beside(data, shape, axis):
    """A shape of indices along an axis: each other size may be 1, or be broadcast from 1."""
    sizes = [data.draw(st.sampled_from([n, n, 1] if n != 1 else [1, 1, 3])) for n in shape]
    return (*sizes[:axis], data.draw(st.integers(0, 4)), *sizes[axis + 1 :])


@on_device
@given(array=small_arrays(min_dims=1), data=st.data())
def test_take_along_axis(make, array, data):
    tensor, array = viewed(data, make(array), array)
    if data.draw(st.booleans()) or not array.ndim:
        axis, shape = None, (data.draw(st.integers(0, 5)),)
        n = array.size
    else:
        axis = data.draw(st.integers(-array.ndim, array.ndim - 1))
        shape, n = beside(data, array.shape, axis % array.ndim), array.shape[axis]
    indices = places(data, n, shape)
    if indices.size and not n:
        with pytest.raises(vkops.InvalidDescError):
            vkops.take_along_axis(tensor, indices, axis)
        return
    agree(
        lambda: vkops.take_along_axis(tensor, given_as(data, make, indices), axis),
        lambda: np.take_along_axis(array, indices.astype(np.int64), axis),
    )


@on_device
@given(array=small_arrays(min_side=1), data=st.data())
def test_put_along_axis(make, array, data):
    """Where an element is written several times, all values are the same."""
    array = np.array(array)
    whole = make(array)
    tensor, target = viewed(data, whole, array, steps=2, writable=True)
    if not target.size:
        return
    axis = data.draw(st.integers(-target.ndim, target.ndim - 1) if target.ndim else st.none())
    if axis is None or data.draw(st.booleans()):
        axis, shape = None, target.size
    else:
        shape = target.shape
    random = np.random.default_rng(data.draw(st.integers(0, 2**32)))
    if data.draw(st.booleans()):  # each place once
        along = np.moveaxis(np.empty(shape, np.uint8), -1 if axis is None else axis, -1)
        orders = random.permuted(np.broadcast_to(np.arange(along.shape[-1]), along.shape), axis=-1)
        indices = np.moveaxis(orders, -1, -1 if axis is None else axis)
        values = numbered(indices.shape, array.dtype)
    else:
        sizes = (data.draw(st.integers(0, 5)),)
        sizes = sizes if axis is None else beside(data, target.shape, axis % target.ndim)
        indices = places(data, target.size if axis is None else target.shape[axis], sizes)
        values = numbered((), array.dtype)
    ours = make(values) if data.draw(st.booleans()) else values
    vkops.put_along_axis(tensor, given_as(data, make, indices), ours, axis)
    flat = np.array(target if axis is not None else target.reshape(-1))
    np.put_along_axis(flat, indices.astype(np.int64), values, axis or 0)
    target[...] = flat.reshape(target.shape)
    equal(whole, array)


def parts(data, make, shape):
    """An index with arrays, for us and for NumPy; and whether one is of an empty axis."""
    common = data.draw(npst.array_shapes(min_dims=0, max_dims=2, min_side=0, max_side=4))
    ours, theirs, empty, axis = [], [], False, 0
    dtype = data.draw(st.sampled_from(TYPES))  # of all indices in tensors
    rest = data.draw(st.integers(0, len(shape)))  # axes that the ellipsis stands for
    kinds = ["array", "array", "integer", "slice", "mask", "None", "..."]
    while axis < len(shape):
        kind = data.draw(st.sampled_from(kinds))
        n = shape[axis]
        if kind == "None":
            ours, theirs = [*ours, None], [*theirs, None]
            continue
        if kind == "...":
            kinds.remove(kind)
            ours, theirs = [*ours, ...], [*theirs, ...]
            axis += min(rest, len(shape) - axis)
            continue
        if kind == "array":
            sizes = tuple(data.draw(st.sampled_from([size, size, 1])) for size in common)
            sizes = sizes[data.draw(st.integers(0, len(sizes))) :]
            indices = places(data, n, sizes, dtypes=(dtype, "int8"))
            empty |= bool(indices.size) and not n
            ours.append(given_as(data, make, indices))
            theirs.append(indices.astype(np.int64))
        elif kind == "mask":
            sizes = shape[axis : axis + data.draw(st.integers(1, 2))]
            mask = data.draw(npst.arrays(bool, sizes))
            ours.append(mask.tolist() if mask.size and data.draw(st.booleans()) else mask)
            theirs.append(mask)
            axis += mask.ndim - 1
        else:
            part = data.draw(st.integers(-n, n - 1)) if kind == "integer" and n else slice(None)
            if kind == "slice":
                part = data.draw(st.slices(n))
            ours, theirs = [*ours, part], [*theirs, part]
        axis += 1
    return tuple(ours), tuple(theirs), empty


@on_device
@given(array=small, data=st.data())
def test_index(make, array, data):
    tensor, array = viewed(data, make(array), array)
    ours, theirs, empty = parts(data, make, array.shape)
    if empty:
        with pytest.raises(IndexError):
            tensor[ours]
        return
    agree(lambda: tensor[ours], lambda: array[theirs])


@on_device
@given(array=small_arrays(min_dims=1), data=st.data())
def test_assignment(make, array, data):
    """Where an element is written several times, all values are the same."""
    array = np.array(array)
    whole = make(array)
    tensor, target = viewed(data, whole, array, steps=2, writable=True)
    ours, theirs, empty = parts(data, make, target.shape)
    if empty or not any(np.ndim(part) for part in theirs if isinstance(part, np.ndarray)):
        return  # test_views tries the others
    new = np.array(np.flip(target))
    try:
        values = np.asarray(new[theirs], array.dtype)
    except IndexError:
        return
    forms = ["all", "scalar", "wrong"] if values.size else ["all"]
    form = data.draw(st.sampled_from(forms))
    if form == "scalar":
        values = values.reshape(-1)[:1].reshape((1,) * values.ndim)
    elif form == "wrong":
        values = np.zeros((2, *values.shape), array.dtype)
    try:
        target[theirs] = values
    except Exception:
        with pytest.raises(vkops.InvalidDescError):
            tensor[ours] = values
    else:
        tensor[ours] = make(values) if data.draw(st.booleans()) else values
    equal(whole, array)


def test_one_dispatch_each(device):
    array = np.arange(60, dtype=np.float32).reshape(3, 4, 5)
    tensor = device.tensor(array)
    rows, columns = device.tensor([2, 0]), np.array([[1], [3]])
    order = np.argsort(-array, axis=2)
    calls = [
        lambda xp, x, rows: x[rows],
        lambda xp, x, rows: x[::-1, columns, 1:],
        lambda xp, x, rows: x[[0, 2], :, [1, 3]],
        lambda xp, x, rows: xp.take(x.T, columns, 1),
        lambda xp, x, rows: xp.take_along_axis(x, order, 2),
    ]
    with Counter(device) as counter:
        results = [call(vkops, tensor, rows) for call in calls]
        tensor[:, rows] = 7
    assert counter.count == 6
    for one, call in zip(results, calls, strict=True):
        equal(one, call(np, array, [2, 0]))
    array[:, [2, 0]] = 7
    equal(tensor, array)


def test_indices_in_tensors_are_clamped_or_skipped(make):
    array = np.arange(6, dtype=np.int16).reshape(2, 3)
    tensor, far = make(array), make(np.array([-4, -3, 2, 3, 1 << 40]))
    nearest = [0, 0, 2, 2, 2]
    equal(tensor[:, far], array[:, nearest])
    equal(vkops.take(tensor, far, axis=1), array[:, nearest])
    equal(vkops.take_along_axis(tensor, far[None], axis=1), array[:, nearest])
    equal(tensor[[1], far], array[1, nearest])
    unsigned = make(np.uint32([0, 2, 7]))
    equal(tensor[np.int8([-1, -2, 1]), unsigned], array[[-1, -2, 1], [0, 2, 2]])
    tensor[:, far] = np.array([10, 11, 12, 13, 14])
    equal(tensor, np.int16([[11, 1, 12], [11, 4, 12]]))
    vkops.put_along_axis(tensor, far[None], 9, axis=1)
    equal(tensor, np.int16([[9, 1, 9], [9, 4, 9]]))
    vkops.put_along_axis(tensor.T, far, 8, axis=None)
    equal(tensor, np.int16([[9, 8, 9], [9, 8, 9]]))


def test_what_is_written_is_read_before(make):
    """Values and indices in the memory that is written."""
    array = np.array([3, 0, 2, 1])
    tensor = make(array)
    tensor[tensor] = tensor[::-1]
    array[array.copy()] = array[::-1].copy()
    equal(tensor, array)
    tensor[[0, 1, 2]], array[[0, 1, 2]] = tensor.numpy()[1:], array[1:].copy()
    equal(tensor, array)


def test_what_the_device_cannot_hold_is_copied_by_the_host(device, monkeypatch, change_device):
    monkeypatch.setattr("vkops.gpu.run.program.MAX_HOST_ELEMENTS", 50)
    change_device(fits=lambda nbytes: nbytes < 1000)
    array = np.arange(300, dtype=np.int32).reshape(30, 10)
    indices = np.array([[29, 3], [-1, 0]])
    result = vkops.take(array, indices, 0, device=device)
    assert isinstance(result.buffer, vkops.HostBuffer)
    equal(result, array[indices])
    expected = array[indices]
    result[:, [1]], expected[:, [1]] = 0, 0
    result[[1], 0], expected[[1], 0] = result[[0], 0], expected[[0], 0]
    equal(result, expected)


@pytest.mark.parametrize("tuning", [encoding.CPU, encoding.GPU], ids=["cpu", "gpu"])
@pytest.mark.parametrize("dtype", ["int8", "int32", "int64"])
def test_more_elements_than_a_table_counts(any_device, monkeypatch, dtype, tuning):
    """Indices that repeat write more elements than there are; here a table counts 100."""
    x = np.zeros((5, 33), dtype)
    indices, rows = np.arange(20) % 3, (np.arange(20 * 33) % 90).reshape(20, 33).astype(dtype)
    rows = rows[indices]  # the same for each index, so that any may remain
    tensor = any_device.tensor(x)
    monkeypatch.setattr(layout, "MAX_ITEMS", 100)
    monkeypatch.setattr(any_device, "tuning", tuning)
    tensor[indices] = rows
    x[indices] = rows
    equal(tensor, x)
    tensor[indices[3:]] = 7
    x[indices[3:]] = 7
    equal(tensor, x)
    equal(tensor[indices], x[indices])


def test_index_arrays_of_more_dimensions_than_numpy_broadcasts(device):
    """``numpy.broadcast_shapes`` takes 32 at most, ``numpy.take`` has no such limit."""
    array = np.arange(12).reshape(3, 4)
    tensor = device.tensor(array)
    for rank in (33, 60):
        places = np.array([2, 0]).reshape((1,) * (rank - 1) + (2,))
        equal(tensor[places], array[places])
        equal(tensor[places, places], array[places, places])
        equal(vkops.take(tensor, device.tensor(places), axis=1), np.take(array, places, 1))
        both = vkops.broadcast_arrays(tensor[0, :1], device.tensor(places))
        equal(both[0], np.broadcast_to(array[0, :1], places.shape))
