"""Functions by NumPy's and the array API's names, against NumPy's own."""

from __future__ import annotations

import numpy as np
import pytest
from adapters import memory_used
from arrays import Counter, agree, equal, on_device, small, small_arrays, viewed
from hypothesis import given
from hypothesis import strategies as st

import vkops

axes = st.integers(-5, 5)
some = st.one_of(st.none(), axes, st.lists(axes, max_size=3).map(tuple))
both = pytest.mark.parametrize("kind", ["direct", "staged"])


@on_device
@given(array=small, data=st.data())
def test_array_split(any_device, array, data):
    tensor, array = viewed(data, any_device.tensor(array), array)
    at = data.draw(st.integers(-1, 8) | st.lists(st.integers(-7, 7), max_size=4))
    axis = data.draw(axes)
    agree(lambda: vkops.array_split(tensor, at, axis), lambda: np.array_split(array, at, axis))


@on_device
@given(array=small, data=st.data())
def test_concat_and_stack(any_device, array, data):
    """Views of one tensor, of several, and arrays between them."""
    tensor = any_device.tensor(array)
    first = viewed(data, tensor, array)
    pairs = [first, first, data.draw(st.sampled_from([first, (array, array)]))]
    if data.draw(st.booleans()):
        pairs.append(viewed(data, tensor, array))
    ours, theirs = zip(*pairs, strict=True)
    axis = data.draw(axes | st.none())
    for name in ("concat", "concatenate"):
        function = getattr(vkops, name)
        agree(lambda f=function: f(ours, axis), lambda: np.concatenate(theirs, axis))
    if axis is not None:
        agree(lambda: vkops.stack(ours, axis), lambda: np.stack(theirs, axis))


@on_device
@given(array=small, data=st.data())
@pytest.mark.parametrize("name", ["hsplit", "vsplit", "dsplit"])
def test_splits_along_an_axis(any_device, name, array, data):
    tensor, array = viewed(data, any_device.tensor(array), array)
    at = data.draw(st.integers(-1, 4) | st.lists(st.integers(-7, 7), max_size=3))
    agree(lambda: getattr(vkops, name)(tensor, at), lambda: getattr(np, name)(array, at))


@on_device
@given(array=small, data=st.data())
def test_flips_and_moved_axes(any_device, array, data):
    tensor, array = viewed(data, any_device.tensor(array), array)
    for name in ("fliplr", "flipud"):
        agree(lambda n=name: getattr(vkops, n)(tensor), lambda n=name: getattr(np, n)(array))
    axis, start = data.draw(axes), data.draw(axes)
    agree(lambda: vkops.rollaxis(tensor, axis, start), lambda: np.rollaxis(array, axis, start))


numbers = st.integers(-6, 6)
indices = st.one_of(
    numbers,
    st.lists(numbers, max_size=4),
    st.lists(numbers, max_size=4).map(lambda given: np.array(given, int)),
    st.builds(slice, numbers | st.none(), numbers | st.none(), st.sampled_from([None, 1, 2, -1])),
)


@on_device
@given(array=small, data=st.data())
def test_insert_delete_and_append(any_device, array, data):
    tensor, array = viewed(data, any_device.tensor(array), array)
    axis, places = data.draw(axes | st.none()), data.draw(indices)
    ours = any_device.tensor(places) if isinstance(places, np.ndarray) else places
    agree(lambda: vkops.delete(tensor, ours, axis), lambda: np.delete(array, places, axis))
    agree(lambda: vkops.delete(tensor, places, axis), lambda: np.delete(array, places, axis))
    part = data.draw(st.sampled_from([..., slice(0, 1), 0, (..., slice(0, 1))]))
    try:
        values, theirs = tensor[part], array[part]
    except IndexError:
        values, theirs = tensor, array
    if axis is None:
        values, theirs = values.reshape(-1), theirs.reshape(-1)
    if data.draw(st.booleans()):
        values = theirs
    agree(
        lambda: vkops.insert(tensor, places, values, axis),
        lambda: np.insert(array, places, theirs, axis),
    )
    agree(lambda: vkops.append(tensor, values, axis), lambda: np.append(array, theirs, axis))


@on_device
@given(array=small, data=st.data())
def test_resize_and_diagflat(any_device, array, data):
    tensor, array = viewed(data, any_device.tensor(array), array)
    shape = data.draw(st.integers(-1, 20) | st.lists(st.integers(-1, 6), max_size=4).map(tuple))
    agree(lambda: vkops.resize(tensor, shape), lambda: np.resize(array, shape))
    k = data.draw(st.integers(-3, 3))
    few = array.reshape(-1)[:9]
    agree(lambda: vkops.diagflat(tensor.reshape(-1)[:9], k), lambda: np.diagflat(few, k))


@on_device
@given(array=small, data=st.data())
def test_roll(any_device, array, data):
    tensor, array = viewed(data, any_device.tensor(array), array)
    shift = data.draw(st.integers(-9, 9) | st.lists(st.integers(-9, 9), max_size=3).map(tuple))
    # NumPy fails where neither the array nor the axes have anything.
    axis = data.draw(some if array.ndim else axes | st.none())
    agree(lambda: vkops.roll(tensor, shift, axis), lambda: np.roll(array, shift, axis))


@on_device
@given(array=small, data=st.data())
def test_tile(any_device, array, data):
    tensor, array = viewed(data, any_device.tensor(array), array)
    reps = data.draw(st.integers(0, 3) | st.lists(st.integers(0, 3), max_size=5))
    agree(lambda: vkops.tile(tensor, reps), lambda: np.tile(array, reps))


@on_device
@given(array=small, data=st.data())
def test_repeat(any_device, array, data):
    tensor, array = viewed(data, any_device.tensor(array), array)
    axis = data.draw(axes | st.none())
    valid = axis is not None and -array.ndim <= axis < array.ndim
    n = array.shape[axis] if valid else array.size
    counts = st.integers(0, 3)
    lists = st.lists(counts, max_size=3) | st.lists(counts, min_size=n, max_size=n)
    repeats = data.draw(counts | lists if n <= 200 else counts)
    agree(lambda: vkops.repeat(tensor, repeats, axis), lambda: np.repeat(array, repeats, axis))


MODES = ["constant", "edge", "reflect", "symmetric", "wrap"]


@on_device
@given(array=small, data=st.data())
def test_pad(any_device, array, data):
    tensor, array = viewed(data, any_device.tensor(array), array)
    widths = st.integers(0, 9) | st.integers(-1, 3)
    pairs = st.tuples(widths, widths)
    for_each = st.lists(pairs, min_size=array.ndim, max_size=array.ndim)
    width = data.draw(widths | pairs | for_each | st.lists(st.tuples(widths), max_size=4))
    mode = data.draw(st.sampled_from(MODES))
    value = data.draw(st.integers(0, 99) | st.tuples(st.integers(0, 99), st.integers(0, 99)))
    more = {"constant_values": value} if mode == "constant" else {}
    agree(
        lambda: vkops.pad(tensor, width, mode, **more), lambda: np.pad(array, width, mode, **more)
    )


def test_constants_of_each_side(device):
    """Corners have those of the last axis; values are cast to the dtype, byte order and all."""
    array = np.arange(24, dtype=">i2").reshape(2, 3, 4)
    widths, values = ((1, 2), (3, 0), (2, 1)), ((1.5, 2), (3, 4), (-5, 600))
    made = vkops.pad(array, widths, constant_values=values, device=device)
    equal(made, np.pad(array, widths, constant_values=values))


diagonals = st.integers(-6, 6) | st.sampled_from([-(2**70), 2**70])


def clamped(k):
    """NumPy's functions take no ``k`` of so many bits; beyond the sizes all are alike."""
    return max(-99, min(99, k))


@on_device
@given(array=small_arrays(min_dims=2), k=diagonals, data=st.data())
def test_tril_and_triu(any_device, array, k, data):
    tensor, array = any_device.tensor(array), array
    if data.draw(st.booleans()):
        tensor, array = tensor[..., ::-1, 1:], array[..., ::-1, 1:]
    agree(lambda: vkops.tril(tensor, k), lambda: np.tril(array, clamped(k)))
    agree(lambda: vkops.triu(tensor, k), lambda: np.triu(array, clamped(k)))


@on_device
@given(array=small, k=st.integers(-6, 6), data=st.data())
def test_diagonal_and_diag(any_device, array, k, data):
    tensor, array = viewed(data, any_device.tensor(array), array)
    first, second = data.draw(axes), data.draw(axes)
    agree(
        lambda: vkops.diagonal(tensor, k, first, second),
        lambda: np.diagonal(array, k, first, second),
    )
    agree(lambda: vkops.diag(tensor, k), lambda: np.diag(array, k))
    if array.ndim:
        row, column = tensor.reshape(-1)[:50], array.reshape(-1)[:50]
        agree(lambda: vkops.diag(row, k), lambda: np.diag(column, k))


@pytest.mark.parametrize("dtype", [np.float32, "int8", bool, ">i2", "complex128", "S1"])
@pytest.mark.parametrize(
    ("n", "m", "k"), [(3, None, 0), (3, 5, 1), (5, 3, -2), (4, 4, 9), (0, 3, 0), (70, 90, -7)]
)
def test_eye(device, dtype, n, m, k):
    equal(vkops.eye(n, m, k, dtype, device=device), np.eye(n, m, k, dtype))


def test_diagonals_are_read_only_views(device):
    tensor = device.tensor(np.arange(12).reshape(3, 4))
    with Counter(device) as counter:
        found = tensor.diagonal(1)
    assert counter.count == 0
    tensor[0, 1] = 99
    assert found.numpy().tolist() == [99, 6, 11]
    with pytest.raises(vkops.InvalidDescError, match="ARRAY-10"):
        found[0] = 1


FUNCTIONS = {
    "split": lambda t: vkops.split(t, [2, 4], 0),
    "array_split": lambda t: vkops.array_split(t, 4),
    "slice": lambda t: vkops.slice(t, [1, 2], [3, 3], [1, -1]),
    "join": lambda t: vkops.join([t, t[:, ::-1], t]),
    "concat": lambda t: vkops.concat([t, t.T], None),
    "stack": lambda t: vkops.stack([t, t[::-1]], 2),
    "roll": lambda t: vkops.roll(t, 3),
    "roll_axes": lambda t: vkops.roll(t, (1, 2), (0, 1)),
    "tile": lambda t: vkops.tile(t, (2, 3)),
    "repeat": lambda t: vkops.repeat(t, range(6), 0),
    "repeat_flat": lambda t: vkops.repeat(t, [1, 2] * 12),
    "pad": lambda t: vkops.pad(t, 2, constant_values=((1, 2), (3, 4))),
    "pad_copies": lambda t: vkops.pad(t, ((9, 1), (0, 7)), "reflect"),
    "tril": lambda t: vkops.tril(t, -1),
    "triu": vkops.triu,
    "diag": lambda t: vkops.diag(t[0], 2),
    "copy": lambda t: t.copy(),
}


@pytest.mark.usefixtures("by_shaders")
@both
@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_function_of_views_is_one_dispatch(device, staged_device, kind, name):
    """Nothing is made in between: the memory taken is the results' own."""
    device = device if kind == "direct" else staged_device
    array = np.arange(8 * 12, dtype=np.int32).reshape(8, 12)
    tensor = device.tensor(array)
    view, expected = tensor.T[::2, 3:7], array.T[::2, 3:7]
    FUNCTIONS[name](view)
    before = memory_used(device)
    with Counter(device) as counter:
        results = FUNCTIONS[name](view)
    assert counter.count == 1
    results = results if isinstance(results, list) else [results]
    assert memory_used(device) - before == sum(-(-r.nbytes // 256) * 256 for r in results)
    packed = FUNCTIONS[name](device.tensor(expected))
    for one, other in zip(results, packed if isinstance(packed, list) else [packed], strict=True):
        equal(one, other.numpy())


def test_results_are_apart_from_what_they_are_made_of(device):
    tensor = device.tensor(np.arange(6))
    made = [
        vkops.tile(tensor, 1),
        vkops.repeat(tensor, 1),
        vkops.roll(tensor, 0),
        vkops.pad(tensor, 0),
        vkops.concat([tensor]),
    ]
    tensor.release()
    for one in made:
        equal(one, np.arange(6))


def test_what_is_remembered_takes_other_views(device):
    """The same call on views of equal shapes, of tensors of different sizes."""
    for n in (4, 9, 30):
        array = np.arange(n * n).reshape(n, n)
        tensor = device.tensor(array)
        for chosen in (np.s_[:3, :3], np.s_[-3:, -3:], np.s_[2::-1, :3]):
            equal(vkops.roll(tensor[chosen], 1, 0), np.roll(array[chosen], 1, 0))
            equal(vkops.join([tensor[chosen]] * 2), np.concatenate([array[chosen]] * 2))


X = np.zeros((4, 6))


@pytest.mark.parametrize(
    "use",
    [
        lambda: vkops.flip(X, 9),
        lambda: vkops.stack([X], 9),
        lambda: vkops.split(X, 1, 9),
        lambda: vkops.concat([X], -9),
        lambda: vkops.expand_dims(X, 9),
        lambda: vkops.permute_dims(X, (0, 9)),
    ],
)
def test_axes_out_of_range_are_index_and_value_errors_as_in_numpy(use):
    with pytest.raises(vkops.InvalidDescIndexError) as caught:
        use()
    assert isinstance(caught.value, IndexError)
    assert isinstance(caught.value, ValueError)
