"""Functions of the array API that compute with whole arrays, against array_api_strict and NumPy.

The project data-apis/array-api-tests tests them further: scripts/test --array-api.
"""

import operator

import array_api_strict as strict
import numpy as np
import pytest
from arrays import equal

import vkops

pytestmark = [pytest.mark.features, pytest.mark.usefixtures("device")]

DTYPES = ["bool", "int8", "uint32", "float32"]  # of each kind; test_reductions.py has the others
NUMBERS = DTYPES[1:]
FLOATS = ["float32"]
SHAPES = [(), (5,), (0, 3), (3, 4), (2, 1, 33)]


@pytest.fixture(autouse=True, scope="module")
def version():
    with strict.ArrayAPIStrictFlags(api_version="2024.12"):
        yield


def some(shape, dtype, seed=0):
    """An array of small numbers, of which some are equal."""
    low = -3 if np.dtype(dtype).kind in "if" else 0
    return np.random.default_rng(seed).integers(low, 4, shape).astype(dtype)


def check(name, arrays, *, exact=True, **options):
    """Compare the results of a function, or the kinds of errors, with those of array_api_strict."""
    try:
        expected = getattr(strict, name)(*map(strict.asarray, arrays), **options)
    except (ValueError, TypeError, IndexError) as error:
        with pytest.raises((ValueError, TypeError, IndexError)):
            getattr(vkops, name)(*map(vkops.asarray, arrays), **options)
        return error
    actual = getattr(vkops, name)(*map(vkops.asarray, arrays), **options)
    many = isinstance(expected, tuple)
    for ours, theirs in zip(*(x if many else [x] for x in (actual, expected)), strict=True):
        assert isinstance(ours, vkops.Tensor)
        theirs = np.asarray(theirs)
        assert (ours.dtype, ours.shape) == (theirs.dtype, theirs.shape)
        np.testing.assert_allclose(ours.numpy(), theirs, rtol=0 if exact else 1e-5)
    return None


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(
    "name", ["sum", "prod", "max", "min", "all", "any", "count_nonzero", "argmax", "argmin"]
)
def test_reductions(name, dtype):
    if dtype == "bool" and name not in ("all", "any", "count_nonzero"):
        return
    for shape in SHAPES:
        x = some(shape, dtype)
        axes = (None, -1, 0, *([(0, 1), ()] if "arg" not in name else []))
        for axis in axes if shape else axes[:1]:  # NumPy takes an axis of no dimensions
            check(name, [x], axis=axis, keepdims=axis == 0)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("name", ["mean", "var", "std"])
def test_averages(name, dtype):
    for shape in SHAPES[1:]:
        if 0 in shape:
            continue
        for axis in (None, -1, 0, (0, 1)):
            check(name, [some(shape, dtype)], axis=axis, exact=False)
    if name != "mean":
        for correction in (1, 1.0, 0.5, 2):
            check(name, [some((3, 4), dtype)], axis=1, correction=correction, exact=False)


@pytest.mark.parametrize("dtype", NUMBERS)
def test_cumulative_results(dtype):
    for name in ("cumulative_sum", "cumulative_prod"):
        for shape in SHAPES[1:]:
            for initial in (False, True):
                check(name, [some(shape, dtype)], axis=-1, include_initial=initial)
        check(name, [some(5, dtype)])
        check(name, [some((3, 4), dtype)])


@pytest.mark.parametrize("dtype", DTYPES)
def test_sorts_and_sets(dtype):
    for shape in SHAPES[1:]:
        x = some(shape, dtype)
        if dtype != "bool":
            for descending in (False, True):
                check("sort", [x], axis=-1, descending=descending)
                check("argsort", [x], axis=0, descending=descending, stable=True)
        check("unique_values", [x])
        values, counts = vkops.unique_counts(x)
        equal(values, np.unique(x))
        equal(counts, np.unique(x, return_counts=True)[1])
        values, inverse = vkops.unique_inverse(x)
        equal(vkops.take(values, inverse.reshape(-1)).reshape(x.shape), x)
        if x.size:
            ours = vkops.unique_all(x)
            assert ours._fields == ("values", "indices", "inverse_indices", "counts")
            equal(ours.indices, np.unique(x, return_index=True)[1])
        check("nonzero", [x])
    assert vkops.unique_values(np.array([np.nan, 1, np.nan], np.float32)).shape == (3,)


@pytest.mark.parametrize("dtype", NUMBERS)
def test_searches_and_differences(dtype):
    x, y = np.sort(some(20, dtype)), some((3, 4), dtype, 1)
    for side in ("left", "right"):
        check("searchsorted", [x, y], side=side)
    order = np.argsort(-some(20, "int32"), kind="stable")
    expected = np.searchsorted(x[np.argsort(order)], y, sorter=order)
    equal(vkops.searchsorted(x[np.argsort(order)], y, sorter=vkops.asarray(order)), expected)
    for n in (0, 1, 3, 9):
        check("diff", [y], n=n)
        equal(vkops.diff(y, n, 0, y[:1], 0), np.diff(y, n, 0, y[:1], np.zeros((1, 4), dtype)))


def test_where_takes_numbers_and_promotes(device):
    mask = np.array([[True], [False]])
    for a in DTYPES:
        for b in ("int8", "uint16", "float32", "bool"):
            if {a, b} <= {"bool", *NUMBERS}:
                x, y = some((2, 3), a), some(3, b)
                equal(vkops.where(mask, x, y), np.where(mask, x, y))
    x = some((2, 3), "float32")
    equal(vkops.where(vkops.asarray(mask), x, -1), np.where(mask, x, np.float32(-1)))
    equal(vkops.where(x, 7, vkops.asarray(x)), np.where(x, np.float32(7), x))
    assert vkops.where(True, 1, 2.5).item() == 1.0
    with pytest.raises(TypeError, match="ARITH-01"):
        vkops.where(mask, x, np.array(["a"]))


@pytest.mark.features
@pytest.mark.parametrize("dtype", [*DTYPES, "float16", "int64", "float64"])
def test_products_of_matrices(device, dtype):
    needed = {"int64": "shaderInt64", "uint64": "shaderInt64", "float64": "shaderFloat64"}.get(
        dtype
    )
    narrow = np.dtype(dtype).itemsize < 4 and not {
        "storageBuffer8BitAccess", "storageBuffer16BitAccess"
    } <= device.features  # fmt: skip
    if narrow or (needed and needed not in device.features):
        pytest.skip("the device lacks the data type")
    shapes = [
        ((5, 7), (7, 3)), ((3, 1, 33, 40), (2, 40, 65)), ((7,), (7,)), ((2, 3, 4), (4,)),
        ((4,), (5, 4, 3)), ((70, 1), (1, 70)), ((2, 0), (0, 3)), ((0, 2), (2, 3)), ((2, 2), (3, 2)),
    ]  # fmt: skip
    for left, right in shapes:
        x, y = some(left, dtype), some(right, dtype, 1)
        try:
            expected = np.matmul(x, y)
        except ValueError:
            with pytest.raises(ValueError, match="do not fit together"):
                vkops.matmul(device.tensor(x), y)
            continue
        equal(vkops.matmul(device.tensor(x), y), expected)
        if x.ndim > 1 and y.ndim > 1:  # of views
            across = device.tensor(np.ascontiguousarray(x.swapaxes(-1, -2))).mT
            equal(across @ device.tensor(y), expected)


@pytest.mark.features
def test_the_order_of_additions(device):
    """Each sum has one term after the other, as in the documentation."""
    random = np.random.default_rng(0)
    x, y = random.normal(size=(40, 50)), random.normal(size=(50, 70))
    x, y = x.astype(np.float32), y.astype(np.float32)
    expected = np.zeros((40, 70), np.float32)
    for k in range(50):
        expected += x[:, k, None] * y[k]
    equal(vkops.matmul(device.tensor(x), y), expected)


def test_operators_of_products():
    x, y = some((3, 3), "float32"), some((3, 3), "float32", 1)
    a, b = vkops.asarray(x), vkops.asarray(y)
    for each in (a @ b, x @ b, a @ y, np.matmul(a, y), operator.matmul(a, y.tolist())):
        equal(vkops.astype(each, np.float32), x @ y)
    a @= b
    equal(a, x @ y)
    with pytest.raises(ValueError, match="EW-06"):
        vkops.matmul(a, b, out=vkops.zeros((2, 2), "float32"))
    with pytest.raises(ValueError, match="EW-04"):
        vkops.matmul(a, vkops.zeros((3, 3), "complex64"))


def test_other_products():
    for dtype in ("int8", "int32", "float32"):
        x, y = some((2, 3, 4), dtype), some((4, 3, 2), dtype, 1)
        for axes in (0, 1, ((1,), (1,)), ((0, 1), (2, 1)), ((2, 1), (0, 1)), (2, 0)):
            equal(vkops.tensordot(x, y, axes=axes), np.tensordot(x, y, axes))
        check("vecdot", [x, x[0]])
        check("vecdot", [x, x[:, ::-1]], axis=-2)
        check("vecdot", [x, y])
    for axes in (-1, 5, ((0,), (0,)), ((0, 0), (1, 1)), (1, 2, 3)):
        with pytest.raises(ValueError, match="tensordot"):
            vkops.tensordot(x, y, axes=axes)


@pytest.mark.parametrize("dtype", ["bool", "float16", "float32", "complex64", "complex128"])
def test_masks(dtype):
    x, mask = some((3, 4), dtype), some((3, 4), "bool", 2)
    tensor, device_mask = vkops.asarray(x), vkops.asarray(mask)
    cases = [
        lambda m: m, lambda m: m[1], lambda m: m[:, 0], lambda m: (m[:, 0], 1), lambda m: m[0, 0],
        lambda m: (slice(None), m[2]), lambda m: (m[:, 0], None, [0]), lambda m: (m[1, 2], 0),
        lambda m: m[:0], lambda m: (..., m[0]),
    ]  # fmt: skip
    for case in cases:
        try:
            chosen = x[case(mask)]
        except IndexError:
            with pytest.raises(IndexError):
                tensor[case(device_mask)]
            continue
        equal(tensor[case(device_mask)], chosen)
        equal(tensor[case(mask)], chosen)
        for value in (1, chosen):
            expected, written = x.copy(), vkops.asarray(x, copy=True)
            expected[case(mask)] = value
            written[case(device_mask)] = value
            equal(written, expected)
    expected = x.copy()
    expected.T[mask.T] = 0
    tensor = vkops.asarray(x)
    tensor.T[device_mask.T] = 0
    equal(tensor, expected)
    equal(tensor[True], expected[True])
    equal(tensor[False], expected[False])


def test_scalars_are_written_with_masks_in_recorded_programs(device):
    x = device.tensor(np.arange(4, dtype=np.float32))
    mask = x > 1
    with device.record() as program:
        x[mask] = 9
    equal(x, np.arange(4, dtype=np.float32))
    program.run()
    equal(x, np.float32([0, 1, 9, 9]))
    with device.record(), pytest.raises(vkops.DeviceError, match="give size="):
        x[mask]


def test_functions_of_numpy(device):
    """NumPy's functions run those of vkops that have their names."""
    x = some((3, 4), "float32")
    tensor = device.tensor(x)
    for call in (
        lambda t: np.sum(t, axis=0),
        lambda t: np.prod(t, axis=1, keepdims=True),
        lambda t: np.max(t),
        lambda t: np.argmin(t, axis=1),
        lambda t: np.count_nonzero(t),
        lambda t: np.any(t, axis=0),
        lambda t: np.sort(t, axis=0),
        lambda t: np.argsort(t, axis=1),
        lambda t: np.diff(t, axis=0),
        lambda t: np.where(t > 0, t, 0),
        lambda t: np.tensordot(t, t, axes=([0], [0])),
        lambda t: np.searchsorted(t[0] * 0, t),
        lambda t: np.concatenate([t, t.astype("float64")]),
    ):
        made = call(tensor)
        assert isinstance(made, vkops.Tensor)
        equal(made, np.asarray(call(x)))
    for made, expected in zip(np.nonzero(tensor), np.nonzero(x), strict=True):
        equal(made, expected)


def test_data_types():
    for name in strict.__array_namespace_info__().dtypes():
        dtype, theirs = np.dtype(name), getattr(strict, name)
        for function in ("finfo", "iinfo"):
            try:
                expected = getattr(strict, function)(theirs)
            except (TypeError, ValueError):
                with pytest.raises(ValueError, match="T-02"):
                    getattr(vkops, function)(dtype)
                continue
            actual = getattr(vkops, function)(vkops.zeros(0, dtype))
            for field in actual._fields[:-1]:
                value = getattr(actual, field)
                assert value == getattr(expected, field)
                assert type(value) in (int, float)
            assert actual.dtype == np.dtype(f"float{actual.bits}" if dtype.kind == "c" else dtype)
        kinds = (
            "bool|signed integer|unsigned integer|integral|real floating|complex floating|numeric"
        )
        for kind in (*kinds.split("|"), ("bool", "integral"), ()):
            assert vkops.isdtype(dtype, kind) == strict.isdtype(theirs, kind)
        for other in strict.__array_namespace_info__().dtypes():
            assert vkops.isdtype(dtype, np.dtype(other)) == (name == other)
            assert vkops.can_cast(dtype, other) == np.can_cast(dtype, np.dtype(other))
            assert vkops.result_type(dtype, np.dtype(other)) == np.result_type(dtype, other)
    assert vkops.result_type(vkops.zeros(2, "int8"), 3) == np.int8
    assert vkops.finfo("bfloat16").bits == 16
    for wrong in (lambda: vkops.isdtype("int8", "text"), vkops.result_type):
        with pytest.raises(vkops.InvalidDescError):
            wrong()
