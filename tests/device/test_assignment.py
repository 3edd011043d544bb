"""Assignment to tensors and their views, against NumPy."""

import re
import warnings
from functools import partial
from itertools import product, starmap

import numpy as np
import pytest
from arrays import Counter, dtypes, equal, on_device, small, viewed
from compiled_operators import identity
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst

import vkops

BUILT_IN = (TypeError, ValueError, OverflowError)
plain = st.sampled_from(
    [
        0, -1, 7, 300, 1 << 70, 2.5, True, 1j, "5", "x", b"ab", None, {}, [1, 2], [[1], [2]],
        [[1, [2]]],
    ]
)  # fmt: skip


def counted(shape, dtype):
    """An array that every dtype that holds numbers can be cast from and to."""
    numbers = (np.arange(int(np.prod(shape))) % 100).reshape(shape)
    try:
        return numbers.astype(dtype)
    except TypeError:
        return np.zeros(shape, dtype)


def outcome(assign):
    """The built-in exceptions that an assignment raises, by class."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of casts that lose something
            assign()
    except Exception as error:
        return error, {kind for kind in BUILT_IN if isinstance(error, kind)}
    return None, set()


@pytest.mark.memory
@on_device
@given(array=small, data=st.data())
def test_assignment(make, array, data):
    """Views of views take values of all kinds, parts of their own memory included, or refuse them."""
    array = np.array(array)
    tensor = make(array)
    target, wanted = viewed(data, tensor, array, steps=2)
    index = data.draw(npst.basic_indices(wanted.shape, allow_newaxis=True, max_dims=5))
    parts = index if isinstance(index, tuple) else (index,)
    part = wanted[parts if ... in parts else (*parts, ...)]
    kind = data.draw(st.sampled_from(["plain", "array", "tensor", "overlapping"]))
    if kind == "plain":
        ours = theirs = data.draw(plain)
    elif kind == "overlapping":
        ours, theirs = viewed(data, target, wanted, steps=2)
    else:
        shape = [data.draw(st.sampled_from([n, n, 1])) for n in np.shape(part)]
        shape = [*data.draw(st.sampled_from([[], [], [1], [2]])), *shape]
        shape = shape[data.draw(st.integers(0, len(shape))) if data.draw(st.booleans()) else 0 :]
        same = data.draw(st.booleans())
        theirs = counted(shape, array.dtype if same else data.draw(dtypes))
        ours = make(theirs) if kind == "tensor" else theirs
    before = array.tobytes()
    error, kinds = outcome(lambda: part.__setitem__(..., theirs))
    if error is not None:
        array[...] = np.frombuffer(before, array.dtype).reshape(array.shape)
    refusal, own = outcome(lambda: target.__setitem__(index, ours))
    assert (refusal is None) == (error is None), (refusal, error)
    # Where both the shape and the type are wrong, either may be named.
    assert kinds <= own or "cannot be broadcast" in str(refusal), (refusal, error)
    assert refusal is None or isinstance(refusal, vkops.VkopsError)
    assert np.ascontiguousarray(tensor.numpy()).tobytes() == array.tobytes()
    assert np.ascontiguousarray(target.numpy()).tobytes() == wanted.tobytes()


def slices(n):
    """Slices of an axis of size ``n``, one for each sequence of indices that is not empty."""
    bounds = [None, *range(n)]
    steps = [step for step in range(1 - n, n) if step]
    parts = {tuple(range(n)[part]): part for part in starmap(slice, product(bounds, bounds, steps))}
    parts.pop((), None)
    return parts.values()


@pytest.mark.parametrize(("shape", "every"), [((5,), 1), ((3, 3), 5)])
@pytest.mark.parametrize("given_as", ["tensor", "array", "transposed tensor"])
def test_assignment_between_views_of_one_tensor(make, shape, every, given_as):
    """The value is read before anything is written, as a copy of it would be."""
    array = np.arange(np.prod(shape)).reshape(shape)
    tensor = make(array)
    value = {"tensor": tensor, "array": tensor.numpy(), "transposed tensor": tensor.T}[given_as]
    parts = list(product(*map(slices, shape)))
    pairs = [p for p in product(parts, repeat=2) if array[p[0]].shape == array[p[1]].shape]
    for target, source in pairs[::every]:
        tensor[...] = array
        tensor[target] = value[source]
        expected = array.copy()
        expected[target] = (array.T if "transposed" in given_as else array)[source]
        assert np.array_equal(tensor.numpy(), expected), (target, source)


@on_device
@given(array=small, data=st.data())
def test_fill(make, array, data):
    array = np.array(array)
    tensor = make(array)
    target, wanted = viewed(data, tensor, array, steps=2)
    value = data.draw(plain | dtypes.map(lambda dtype: counted((), dtype)))
    error, _ = outcome(lambda: wanted.fill(value))
    if error is not None or not wanted.flags.writeable:  # NumPy fills read-only scalars
        return
    refusal, _ = outcome(lambda: target.fill(value))
    assert refusal is None
    assert np.ascontiguousarray(tensor.numpy()).tobytes() == array.tobytes()


@pytest.mark.memory
def test_tensors_in_many_heaps(small_buffers):
    array = np.arange(1 << 13, dtype=np.uint16).reshape(64, 128)
    tensor = small_buffers.tensor(array)
    assert tensor.buffer.extents[1:]
    rows = np.arange(64, dtype=np.int32)[::-3]
    equal(tensor[rows, 5:], array[rows, 5:])
    parts = np.s_[:20:3], np.s_[::-1, 5:], np.s_[40:, ::-2], np.s_[63], np.s_[:2], np.s_[...], rows
    for index in parts:
        array[index] = array[index] + 1
        tensor[index] = array[index]
        equal(tensor, array)
        equal(tensor[index], array[index])
        joined = vkops.join([tensor[index].T, tensor[index].T])
        equal(joined, np.concatenate([array[index].T] * 2))
    tensor[1:, ::2], array[1:, ::2] = tensor[:-1, 1::2], array[:-1, 1::2].copy()
    tensor.T[7], array.T[7] = 5, 5
    equal(tensor, array)
    message = "indices of 8000 bytes: a buffer of the device holds 4096; use fewer at a time"
    with pytest.raises(vkops.OutOfDeviceMemoryError, match=f"^{re.escape(message)}$"):
        tensor[np.arange(2000, dtype=np.int32) % 64]


@pytest.mark.memory
def test_the_device_copies_between_tensors_that_the_host_does_not_see(staged_device):
    x = staged_device.tensor(np.zeros((4, 6), np.float32))
    y = staged_device.tensor(np.arange(6, dtype=np.float32))
    x[0] = y  # prepared once
    with Counter(staged_device) as counter:
        x[1] = y
        x[:, ::2] = y[:3]
    assert counter.count == 2
    assert x.numpy().tolist() == [[0, 1, 1, 3, 2, 5]] * 2 + [[0, 0, 1, 0, 2, 0]] * 2


@pytest.mark.memory
def test_views_are_views_whatever_they_were_used_for(any_device):
    """Reading and binding a view leave it a view; `pack` makes it a tensor of its own."""
    operator = identity(any_device, 3, 2)
    tensor = any_device.tensor(np.arange(6, dtype=np.int32).reshape(2, 3))
    view, result = tensor.T, any_device.tensor(np.zeros((3, 2), np.int32))
    for number in range(2):
        tensor[0, 0] = number
        view.numpy()
        operator.dispatch([view], [result])
        assert result.numpy().tolist() == [[number, 3], [1, 4], [2, 5]]
    view[0] = 9
    assert tensor.numpy().tolist() == [[9, 1, 2], [9, 4, 5]]
    copied = view.reshape(6)
    copied[...] = 0
    view.pack()[...] = 0
    assert tensor.numpy().tolist() == [[9, 1, 2], [9, 4, 5]]


def test_views_are_no_outputs(device):
    operator = identity(device, 4)
    x, base = device.tensor(np.arange(4, dtype=np.int32)), device.tensor(np.zeros((2, 4), np.int32))
    message = (
        "ELEMENT_WISE_IDENTITY output_tensor: got a view of a tensor, whose packed copy would be "
        "written: must be a tensor with memory of its own [B-21]"
    )
    for binding in (base[1], (base[1], 0, 16), base.T[:, 0]):
        with pytest.raises(vkops.BindingError, match=f"^{re.escape(message)}$"):
            operator.dispatch([x], [binding])
    assert not base.numpy().any()
    operator.dispatch([x], [base[:1].copy()])
    operator.dispatch([x], [(base[None].reshape(8), 0, 16)])
    assert base.numpy().tolist() == [[0, 1, 2, 3], [0, 0, 0, 0]]


@pytest.mark.memory
def test_assignment_waits_for_what_runs(device):
    operator = identity(device, 1 << 18)
    x, y = device.tensor(np.ones(1 << 18, np.int32)), device.tensor(np.zeros(1 << 18, np.int32))
    pending = operator.dispatch([x], [y], wait=False)
    x[...] = 0
    pending.wait()
    assert y.numpy().all()


SCALARS = [
    np.timedelta64(3, "h"), np.datetime64("2020-01-01"), np.float64("nan"), np.int64(-5),
    np.complex64(1j), np.str_("7"), np.bytes_(b"8"), np.void(b"abcd"),
]  # fmt: skip


@pytest.mark.memory
@pytest.mark.parametrize("dtype", ["i1", ">i4", "f8", "c8", "S16", "m8[s]", "M8[s]", "?"])
def test_scalars_and_arrays_without_dimensions(make, dtype):
    for scalar, shape in product(SCALARS, [(), (3,), (0,)]):
        for value in (scalar, np.array(scalar), make(np.array(scalar))):
            known = value.numpy() if isinstance(value, vkops.Tensor) else value
            for assign in (lambda t, v: t.fill(v), lambda t, v: t.__setitem__(..., v)):
                array = np.zeros(shape, dtype)
                tensor = make(array)
                expected, kinds = outcome(partial(assign, array, known))
                error, _ = outcome(partial(assign, tensor, value))
                if expected is None:
                    assert error is None
                    assert tensor.numpy().tobytes() == array.tobytes()
                else:
                    assert isinstance(error, vkops.VkopsError)
                    assert isinstance(error, tuple(kinds))


def test_what_a_tensor_is_cannot_be_changed(device):
    tensor = device.tensor(np.zeros((2, 3), np.float32))
    for name in ("device", "dtype", "nbytes", "shape", "size"):
        before = getattr(tensor, name)
        with pytest.raises(AttributeError):
            setattr(tensor, name, before)
        assert getattr(tensor, name) is before
