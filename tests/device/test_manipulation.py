"""Functions by NumPy's and the array API's names, against NumPy's own."""

import itertools

import numpy as np
import pytest
from adapters import memory_used
from arrays import Counter, agree, equal, on_device, small, small_arrays, viewed
from function_arguments import ARGUMENTS, axes
from hypothesis import given
from hypothesis import strategies as st

import vkops

VIEWS = [
    "broadcast_to", "diagonal", "expand_dims", "flip", "fliplr", "flipud", "moveaxis", "rollaxis", "rot90",
    "squeeze", "swapaxes", "transpose",
]  # fmt: skip
"""Functions without a dispatch."""


@pytest.mark.parametrize("name", ARGUMENTS)
@on_device
@given(array=small, data=st.data())
def test_functions(any_device, name, array, data):
    """Of views and of arrays; by NumPy's functions, too, and of split by them only: that of vkops takes sizes."""
    tensor, array = viewed(data, any_device.tensor(array), array)
    if name == "diagflat":
        tensor, array = tensor.reshape(-1)[:9], array.reshape(-1)[:9]
    make = ARGUMENTS[name]
    *positional, last = data.draw(make(array) if callable(make) else st.tuples(*make)) or [{}]
    positional, named = (positional, last) if isinstance(last, dict) else ([*positional, last], {})
    by_numpy = name == "split" or data.draw(st.booleans())
    x = tensor if by_numpy or data.draw(st.booleans()) else array

    def call():
        with Counter(any_device) as counter:
            if by_numpy:
                result = getattr(np, name)(x, *positional, **named)
            else:
                result = getattr(vkops, name)(x, *positional, **named, device=any_device)
        assert counter.count == 0 or name not in VIEWS or x is not tensor
        return result

    agree(call, lambda: getattr(np, name)(array, *positional, **named))


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


@pytest.mark.parametrize("size", [0, 3])
@pytest.mark.parametrize(
    "name", ["concat", "stack", "hstack", "vstack", "dstack", "column_stack", "block", "append"]
)
def test_joined_arrays_of_several_data_types_have_the_common_one(device, name, size):
    arrays = [
        np.arange(size).astype(dtype) for dtype in ("uint8", "int16", "float32", "bool", "int64")
    ]
    for one, other in itertools.permutations(arrays, 2):
        ours, theirs = [device.tensor(one), other], [one, other]
        if name == "append":
            equal(vkops.append(*ours), np.append(*theirs))
        else:
            equal(getattr(vkops, name)(ours), getattr(np, name.replace("cat", "catenate"))(theirs))


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


def test_constants_of_each_side(device):
    """Corners have those of the last axis; values are cast to the dtype, byte order and all."""
    array = np.arange(24, dtype=">i2").reshape(2, 3, 4)
    widths, values = ((1, 2), (3, 0), (2, 1)), ((1.5, 2), (3, 4), (-5, 600))
    result = vkops.pad(array, widths, constant_values=values, device=device)
    equal(result, np.pad(array, widths, constant_values=values))


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


def test_diagonals_are_read_only_views(device):
    tensor = device.tensor(np.arange(12).reshape(3, 4))
    with Counter(device) as counter:
        diagonal = tensor.diagonal(1)
    assert counter.count == 0
    tensor[0, 1] = 99
    assert diagonal.numpy().tolist() == [99, 6, 11]
    with pytest.raises(vkops.InvalidDescError, match="ARRAY-10"):
        diagonal[0] = 1


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
@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_function_of_views_is_one_dispatch(any_device, name):
    """Nothing is made in between: the memory taken is the results' own."""
    array = np.arange(8 * 12, dtype=np.int32).reshape(8, 12)
    tensor = any_device.tensor(array)
    view, expected = tensor.T[::2, 3:7], array.T[::2, 3:7]
    FUNCTIONS[name](view)
    before = memory_used(any_device)
    with Counter(any_device) as counter:
        results = FUNCTIONS[name](view)
    assert counter.count == 1
    results = results if isinstance(results, list) else [results]
    assert memory_used(any_device) - before == sum(-(-r.nbytes // 256) * 256 for r in results)
    packed = FUNCTIONS[name](any_device.tensor(expected))
    for one, other in zip(results, packed if isinstance(packed, list) else [packed], strict=True):
        equal(one, other.numpy())


def test_results_are_apart_from_what_they_are_made_of(device):
    tensor = device.tensor(np.arange(6))
    results = [function(tensor, 1) for function in (vkops.tile, vkops.repeat)]
    results += vkops.roll(tensor, 0), vkops.pad(tensor, 0), vkops.concat([tensor])
    tensor.release()
    for one in results:
        equal(one, np.arange(6))


def test_what_is_remembered_takes_other_views(device):
    """The same call on views of equal shapes, of tensors of different sizes."""
    for n in (4, 9, 30):
        array = np.arange(n * n).reshape(n, n)
        tensor = device.tensor(array)
        for chosen in (np.s_[:3, :3], np.s_[-3:, -3:], np.s_[2::-1, :3]):
            equal(vkops.roll(tensor[chosen], 1, 0), np.roll(array[chosen], 1, 0))
            equal(vkops.join([tensor[chosen]] * 2), np.concatenate([array[chosen]] * 2))
