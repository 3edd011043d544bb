"""NumPy's functions on tensors (NEP 18): those of vkops, with NumPy's results."""

import inspect
import io
from itertools import product

import numpy as np
import pytest
from arrays import equal
from function_arguments import ARGUMENTS

import vkops
from vkops.kernels.ufuncs import FUNCTIONS
from vkops.tensors.array_protocols import UNCHANGED


def put(target, values):
    np.put_along_axis(target, np.array([[1], [0], [3]]), values[:, 2:3], 1)
    return target


# Each call is made with an array, and with a tensor of the same elements. test_manipulation.py makes others.
CALLS = {
    "append": lambda t: np.append(t, t[:1], axis=0),
    "append, flat": lambda t: np.append(t, t[0]),
    "astype": lambda t: np.astype(t, bool) if hasattr(np, "astype") else t,
    "atleast_1d": lambda t: np.atleast_1d(t[0, 0, ...], t),
    "atleast_2d": lambda t: np.atleast_2d(t[0]),
    "atleast_3d": lambda t: np.atleast_3d(t[0]),
    "atleast_3d, two dimensions": np.atleast_3d,
    "block": lambda t: np.block([[t, t[:, ::-1]], [t[::-1], t]]),
    "broadcast_arrays": lambda t: np.broadcast_arrays(t, t[:1], subok=False),
    "column_stack": lambda t: np.column_stack([t[0], t[1]]),
    "concatenate": lambda t: np.concatenate([t, t[::-1]], axis=1),
    "concat": lambda t: np.concatenate((t, t), 0),
    "concat, flat": lambda t: np.concatenate((t, t[:1]), None),
    "copy": lambda t: np.copy(t.T, order="K"),
    "delete": lambda t: np.delete(t, [0, -1], axis=1),
    "delete, flat": lambda t: np.delete(t, slice(2, 9, 3)),
    "dstack": lambda t: np.dstack((t, t)),
    "flip": lambda t: np.flip(m=t, axis=0),
    "full_like": lambda t: np.full_like(t, 7, dtype="f8", shape=(2, 3)),
    "hstack": lambda t: np.hstack([t, t]),
    "insert": lambda t: np.insert(t, [1, 0, 1], t[:, :3], axis=1),
    "insert, one place": lambda t: np.insert(t, -1, t[:, 0], axis=1),
    "insert, flat": lambda t: np.insert(t, slice(1, 4), t[1, :3]),
    "matrix_transpose": lambda t: np.swapaxes(t, 0, 1),
    "meshgrid": lambda t: np.meshgrid(t[0], t[1], indexing="ij"),
    "meshgrid, xy": lambda t: np.meshgrid(t[0], t[:, 1], t[1, :2]),
    "moveaxis": lambda t: np.moveaxis(t, source=0, destination=-1),
    "ones_like": lambda t: np.ones_like(t, subok=True),
    "put_along_axis": lambda t: put(t.copy(), t),
    "permute_dims": lambda t: np.transpose(t, axes=(1, 0)),
    "resize, no elements": lambda t: np.resize(t[:0], (2, 3)),
    "roll": lambda t: np.roll(shift=(1, 2, 1), a=t, axis=(0, 1, 0)),
    "stack, first axis": lambda t: np.stack([t, t]),
    "stack": lambda t: np.stack([t, np.asarray(t)], axis=2, out=None),
    "swapaxes": lambda t: np.swapaxes(t, 0, axis2=1),
    "take": lambda t: np.take(t, [2, 0, -1], axis=1, mode="raise"),
    "take_along_axis": lambda t: np.take_along_axis(t, np.array([[2], [0], [1]]), axis=1),
    "tile": lambda t: np.tile(t, reps=(2, 2)),
    "tril": lambda t: np.tril(t, 1),
    "triu": np.triu,
    "unstack": lambda t: list(t),
    "unstack, last axis": lambda t: (
        vkops.unstack(t, -1) if isinstance(t, vkops.Tensor) else tuple(np.moveaxis(t, -1, 0))
    ),
    "vstack": lambda t: np.vstack((t, t)),
    "zeros_like": lambda t: np.zeros_like(t, None, "K", True, (3,)),
    "zeros_like, shape": lambda t: np.zeros_like(t, dtype="f4", order="C", shape=1),
    # Of an array that is ``like`` a tensor:
    "arange": lambda t: np.arange(2, 9, like=t),
    "array": lambda t: np.array([[1, 2], [3, 4]], np.int8, like=t),
    "array, ndmin": lambda t: np.array([1, 2], ndmin=3, like=t),
    "asanyarray": lambda t: np.asanyarray([1, 2], dtype=np.int8, order=None, like=t),
    "asarray": lambda t: np.asarray([1, 2], like=t, order="C"),
    "empty_like": lambda t: np.empty_like(t[:0]),
    "empty": lambda t: np.empty((2, 0), like=t),
    "eye": lambda t: np.eye(2, 3, k=1, like=t),
    "full": lambda t: np.full((2,), 3, like=t),
    "identity": lambda t: np.identity(3, like=t),
    "ones": lambda t: np.ones(2, dtype="i4", like=t),
    "zeros": lambda t: np.zeros((2, 3), like=t),
}


def same(device, made, expected):
    """A call made the same with a tensor of a device as with an array, byte order included."""
    several = isinstance(expected, (list, tuple))
    assert isinstance(made, (list, tuple)) == several
    for one, other in zip(
        made if several else [made], expected if several else [expected], strict=True
    ):
        assert isinstance(one, vkops.Tensor)
        assert one.device is device
        assert one.dtype == other.dtype or not one.ndim  # scalars of NumPy forget their byte order
        equal(one, other)


VIEWS = {
    "no view": lambda t: t[:3, :4].copy(),
    "the first rows": lambda t: t.reshape(-1)[:12].reshape(3, 4),
    "the last rows": lambda t: t.reshape(-1)[-12:].reshape(3, 4),
    "the first columns": lambda t: t[:3, :4],
    "the last columns": lambda t: t[3:, 4:],
    "steps": lambda t: t[::2, ::2],
    "backwards": lambda t: t[4::-2, ::-2],
    "transposed": lambda t: t[2:, 5:].T,
    "the first element": lambda t: np.broadcast_to(t[:1, :1], (3, 4)),
    "the last row": lambda t: np.broadcast_to(t[5:, 4:], (3, 4)),
    "a diagonal": lambda t: np.broadcast_to(np.diagonal(t, 1)[:4], (3, 4)),
}
DTYPES = ("?", "i2", ">i2", ">i4", ">f8", ">c16", ">M8[s]", ">U2", [("a", ">i2"), ("b", "S2")])


@pytest.mark.parametrize("name", CALLS)
def test_results(device, staged_device, name):
    call = CALLS[name]
    for number, (dtype, view) in enumerate(product(DTYPES, VIEWS.values())):
        home = (device, staged_device)[number % 2]
        array = np.arange(48).reshape(6, 8).astype(dtype)
        tensor, array = view(home.tensor(array)), view(array)
        try:
            expected = call(array)
        except (TypeError, ValueError):  # conversions that NumPy does not have
            with pytest.raises(vkops.InvalidDescError):
                call(tensor)
        else:
            same(home, call(tensor), expected)


def test_every_function_that_numpy_dispatches_has_a_result_above():
    """By name: another function of NumPy's with the name of one of vkops would be taken for it."""
    names = {name for name in vkops.__all__ if inspect.isfunction(getattr(vkops, name))}
    # Most of these are universal functions, with a protocol of their own: test_arithmetic.py.
    names -= FUNCTIONS.keys()
    # Others compute, too: test_standard.py.
    names -= {name for name in names if "vkops.kernels" in getattr(vkops, name).__module__}
    names -= {"can_cast", "finfo", "iinfo", "isdtype", "result_type"}
    dispatched = {name for name in names if hasattr(np, name)}
    # NumPy has these two as well, but takes no tensors there: it makes arrays.
    dispatched -= {"from_dlpack", "__array_namespace_info__"}
    tested = {name.partition(",")[0] for name in CALLS} | ARGUMENTS.keys() | {"linspace"}
    assert dispatched <= tested
    of_newer_versions = {"astype", "concat", "matrix_transpose", "permute_dims", "unstack"}
    assert tested <= dispatched | {"array", "asanyarray"} | of_newer_versions


def test_array_copies_a_tensor_and_asanyarray_does_not(device):
    tensor = device.tensor(np.arange(3))
    copy = np.array(tensor, like=tensor)
    tensor[0] = 7
    assert (copy.tolist(), np.asanyarray(tensor, like=copy) is tensor) == ([0, 1, 2], True)


def test_functions_that_describe_save_and_read(device, tmp_path):
    array = np.arange(6, dtype=">i4").reshape(2, 3)
    tensor = device.tensor(array)
    for name in ("shape", "ndim", "size", "iscomplexobj", "isrealobj"):
        assert name in UNCHANGED
        assert getattr(np, name)(tensor) == getattr(np, name)(array)
    file = io.BytesIO()
    np.save(file, tensor.T)
    file.seek(0)
    loaded = np.load(file)
    assert loaded.dtype == array.dtype
    np.testing.assert_array_equal(loaded, array.T)
    np.savez(tmp_path / "both.npz", tensor, other=tensor[0])
    with np.load(tmp_path / "both.npz") as both:
        assert (both["arr_0"].tolist(), both["other"].tolist()) == (array.tolist(), [0, 1, 2])
    host = np.zeros((2, 3), int)
    np.copyto(host, tensor)
    assert host.tolist() == array.tolist()
    np.put_along_axis(tensor, np.array([[2], [0]]), 9, axis=1)
    assert tensor.tolist() == [[0, 1, 9], [9, 4, 5]]


def test_other_array_types_take_precedence(device):
    """As NEP 18 says, a function of two libraries is for the one that knows the other."""

    class Knowing:
        def __array_function__(self, func, types, args, kwargs):
            return func.__name__, len(types)

    assert np.concatenate([device.tensor([1]), Knowing()]) == ("concatenate", 2)


@pytest.mark.parametrize("compare", [np.array_equal, np.array_equiv, np.allclose])
def test_whole_arrays_are_compared_on_the_host(device, compare):
    array = np.arange(6.0).reshape(2, 3)
    tensor = device.tensor(array)
    assert compare(tensor, array)
    assert compare(array, tensor)
    assert compare(tensor, tensor)
    assert not compare(tensor, array + 1)
    first, second, *_ = inspect.signature(compare).parameters
    assert compare(**{first: tensor, second: tensor})


METHODS = {
    "all": [{}, {"axis": 0}],
    "any": [{"axis": 1}],
    "argmax": [{}, {"axis": 0}],
    "argmin": [{"axis": 1}],
    "argsort": [{}, {"axis": 0}],
    "clip": [{"min": 0, "max": 3}, {"min": 1}],
    "cumprod": [{"axis": 0}],
    "cumsum": [{}, {"axis": 1, "dtype": "float64"}],
    "max": [{}, {"axis": 0, "keepdims": True}],
    "mean": [{"axis": 1}],
    "min": [{"axis": (0, 1)}],
    "nonzero": [{}],
    "prod": [{"axis": 0}],
    "round": [{}, {"decimals": 1}],
    "std": [{}, {"axis": 0, "ddof": 1}],
    "sum": [{}, {"axis": 0}, {"axis": (0, 1), "keepdims": True}],
    "var": [{"axis": 1, "ddof": 1}],
}


@pytest.mark.features
@pytest.mark.parametrize("name", METHODS)
def test_methods_that_compute(device, name):
    """They have the results, data types and shapes of those of NumPy's arrays."""
    array = np.float32([[3.25, -1, 2], [0, 5.5, 4]])
    tensor = device.tensor(array)
    for options in METHODS[name]:
        results, expected = (getattr(x, name)(**options) for x in (tensor, array))
        if name != "nonzero":
            results, expected = (results,), (expected,)
        for one, other in zip(results, expected, strict=True):
            assert (one.dtype, one.shape) == (other.dtype, np.shape(other))
            np.testing.assert_allclose(one.numpy(), other, rtol=1e-6)


@pytest.mark.features
def test_functions_of_numpy_that_are_kernels(device):
    tensor = device.tensor(np.int32([1, 2, 1, 5]))
    assert np.bincount(tensor).tolist() == [0, 2, 1, 0, 0, 1]
    values, counts = np.unique(tensor, return_counts=True)
    assert (values.tolist(), counts.tolist()) == ([1, 2, 5], [2, 1, 1])
    assert np.cumsum(tensor).tolist() == [1, 3, 4, 9]
    assert np.compress([True, False, True, False], tensor).tolist() == [1, 1]
    with pytest.raises(vkops.InvalidDescTypeError, match=r"'initial'.*ARRAY-08"):
        tensor.sum(initial=3)
    with pytest.raises(vkops.InvalidDescTypeError, match=r"numpy\.cov.*ARRAY-08"):
        np.cov(tensor)
