"""The functions of arithmetic against NumPy: random data types, views, numbers and special values."""

from __future__ import annotations

import warnings

import ml_dtypes
import numpy as np
import pytest
from arrays import equal
from kernel_numbers import ALL, FLOATS, INTEGERS

import vkops
from vkops.elementwise import kernel as elementwise_kernel
from vkops.elementwise.formats import EXTENSION_FLOATS, dtype_of
from vkops.kernels.table import TABLE
from vkops.kernels.ufuncs import FUNCTIONS

MOST_ULPS = {
    # What docs/arithmetic.md says, in units in the last place of float32 and of float64.
    "pow": (1, 1), "exp": (1, 1), "exp2": (1.1, 1.1), "expm1": (1.3, 1.3), "log": (1.1, 1.1),
    "log2": (1.2, 1.2), "log10": (1, 1), "log1p": (1.2, 1.2), "logaddexp": (1.4, 1.4), "hypot": (0.8, 0.8),
    "sin": (0.9, 0.9), "cos": (0.9, 0.9), "tan": (1.2, 1.2), "asin": (1, 1), "acos": (0.9, 0.9),
    "atan": (0.7, 0.7), "atan2": (0.7, 0.7), "sinh": (1.2, 1.2), "cosh": (1.4, 1.4), "tanh": (1, 1),
    "asinh": (1.3, 1.3), "acosh": (1.1, 1.1), "atanh": (1.2, 1.2), "deg2rad": (2, 2), "rad2deg": (2, 2),
    "divide": (0.5, 0.5), "reciprocal": (0.5, 0.5), "sqrt": (0.5, 0.5),
}  # fmt: skip
UNSIGNED_ZERO = {"maximum", "minimum", "fmax", "fmin"}
NUMPY_NAMES = {"round": "rint"}
FEATURES = {
    "int64": "shaderInt64", "uint64": "shaderInt64", "float64": "shaderFloat64",
}  # fmt: skip

pytestmark = pytest.mark.features


def has(device, *dtypes):
    """Whether a device has data types; float64 is read by its bits, in integers of 64 bits."""
    needed = {FEATURES[np.dtype(d).name] for d in dtypes if np.dtype(d).name in FEATURES}
    needed |= {"shaderInt64"} if "shaderFloat64" in needed else set()
    return needed <= device.features


def numbers(random, dtype, size, denormals=True):
    """Random numbers, with all special ones."""
    dtype = np.dtype(dtype)
    if dtype.kind == "b":
        return random.integers(0, 2, size).astype(bool)
    if dtype.kind in "iu":
        limits = np.iinfo(dtype)
        chosen = random.integers(limits.min, limits.max, size, dtype=dtype, endpoint=True)
        small = random.integers(0 if dtype.kind == "u" else -9, 10, size).astype(dtype)
        ends = random.choice(
            np.array([0, 1, 2, limits.max, limits.min, limits.max - 1], dtype), size
        )
        return np.choose(random.integers(0, 3, size), [chosen, small, ends])
    bits = random.integers(0, 256, (size, dtype.itemsize), np.uint8).view(dtype)[:, 0]
    normal = (random.normal(size=size) * 10.0 ** random.integers(-4, 5, size)).astype(dtype)
    whole = random.integers(-9, 10, size).astype(dtype)
    limits = np.finfo(dtype)
    special = [0, -0.0, np.inf, -np.inf, np.nan, 1, -1, 0.5, -0.5, 1.5, 2.5, limits.max, limits.tiny, limits.smallest_subnormal]  # fmt: skip
    ends = random.choice(np.array(special, dtype), size)
    found = np.choose(random.integers(0, 4, size), [bits, normal, whole, ends])
    if not denormals:
        found[np.abs(found) < limits.tiny] = 0
    return found


def numpys(name):
    entry = TABLE[name]
    return getattr(np, NUMPY_NAMES.get(name, entry.ufunc or (entry.aliases or (name,))[0]))


def keeps_denormals(device):
    """Whether the device computes with denormals: SwiftShader has zeros in their place."""
    return device.same_bits or "llvmpipe" in device.info.name


def check(name, result, expected, operands):
    """A result is NumPy's, or near to it where the documentation says so."""
    assert (result.dtype, result.shape) == (expected.dtype, expected.shape)
    found = result.numpy()
    if expected.dtype.kind != "f":
        np.testing.assert_array_equal(found, expected)
        return
    bits = f"u{expected.dtype.itemsize}"
    is_same = (found.view(bits) == expected.view(bits)) | (np.isnan(found) & np.isnan(expected))
    if name in UNSIGNED_ZERO:
        is_same |= (found == 0) & (expected == 0)
    if not keeps_denormals(result.device):
        tiny = np.finfo(np.float32 if expected.dtype == np.float16 else expected.dtype).tiny
        is_same |= (found == 0) & (np.abs(expected) < tiny)
    if name in MOST_ULPS and not is_same.all():
        ulps = MOST_ULPS[name][expected.dtype == np.float64]
        if expected.dtype == np.float16:
            ulps = 1
        is_finite = np.isfinite(found) & np.isfinite(expected)
        exact = numpys(name)(*[x.astype(expected.dtype).astype(np.longdouble) for x in operands])
        # Where two terms of a sum nearly cancel, the result is as near as the larger one.
        scale = 0
        if name == "logaddexp":
            scale = np.maximum(*[np.abs(x.astype(expected.dtype)) for x in operands])
        apart = np.abs(found.astype(np.longdouble) - exact)
        apart /= np.spacing(np.maximum(np.abs(expected), scale))
        is_same |= is_finite & (apart <= ulps)
        # The largest number and infinity are neighbours.
        is_same |= np.isinf(found) != np.isinf(expected)
    wrong = np.nonzero(~is_same)[0][:4] if is_same.ndim else ...
    assert is_same.all(), (name, [x[wrong] for x in operands], found[wrong], expected[wrong])


@pytest.fixture(autouse=True)
def _quiet():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def called(function, *operands, **options):
    """The result, or None where the data types have no rule."""
    refused = vkops.InvalidDescTypeError if function in FUNCTIONS.values() else TypeError
    try:
        return function(*operands, **options)
    except refused:
        return None


ELEMENTS = 600

OLD_NUMPY = np.lib.NumpyVersion(np.__version__) < "2.0.0"
"""The rules of types are those of NumPy 2 with all versions of NumPy."""


@pytest.mark.parametrize("name", [name for name in TABLE if name not in ("clip", "real", "imag")])
def test_special_values(device, name):
    """Two data types of each function: all kinds of types are met among the functions."""
    random = np.random.default_rng(sum(map(ord, name)))
    entry, kinds = TABLE[name], [["bool", *INTEGERS], ["float16"], ["float32"], ["float64"]]
    function, reference = getattr(vkops, name), numpys(name)
    denormals = keeps_denormals(device)
    for dtype in [random.choice(kinds[k]) for k in (0, random.integers(1, 4))]:
        if name in ("conj", "round") and dtype == "bool":
            continue  # NumPy has other rules of its own
        if OLD_NUMPY and name in ("ceil", "floor", "trunc") and dtype in ("bool", *INTEGERS):
            continue
        operands = [numbers(random, dtype, ELEMENTS, denormals) for _ in range(entry.operands)]
        if name == "pow" and operands[0].dtype.kind in "iu":
            operands[1] = (np.abs(operands[1].astype(float)) % 70).astype(dtype)
        if name == "reciprocal" and operands[0].dtype.kind in "iu":
            operands[0][operands[0] == 0] = 1  # undefined in NumPy
        if name == "nextafter" and operands[0].dtype.kind != "f":
            continue
        expected = called(reference, *operands)
        if name == "round" and (expected is None or operands[0].dtype.kind != "f"):
            continue
        if expected is not None and not has(device, dtype, expected.dtype):
            with pytest.raises(vkops.InvalidDescError, match=r"dtype= \[SH-02\]$"):
                function(*map(device.tensor, operands))
            continue
        result = called(function, *map(device.tensor, operands))
        assert (result is None) == (expected is None), dtype
        if expected is not None:
            check(name, result, expected, operands)


EXACT = ["add", "subtract", "multiply", "maximum", "floor_divide", "remainder", "less", "equal",
         "bitwise_and", "copysign", "logical_or"]  # fmt: skip


def random_view(random, shape):
    """An array that has a shape after an index and a transpose, and these two."""
    order = random.permutation(len(shape))
    steps = random.choice([1, 1, 2, -1], len(shape))
    whole = tuple(int(shape[k] * abs(s) + 1) for k, s in zip(order, steps, strict=True))
    index = tuple(slice(None, None, s) if s > 0 else slice(None, 0, s) for s in steps.tolist())
    cut = tuple(slice(0, shape[k]) for k in order)
    return whole, index, cut, tuple(np.argsort(order).tolist())


@pytest.mark.skipif(OLD_NUMPY, reason="NumPy 1 chooses data types by the values of numbers")
@pytest.mark.parametrize("seed", range(6))
def test_random_programs(device, seed):
    """Operands of any data types, views, of fewer dimensions, numbers; out= and where=."""
    random = np.random.default_rng(seed)
    for _ in range(4):
        name = random.choice(EXACT)
        shape = tuple(random.integers(1, 6, random.integers(0, 4)).tolist())
        arrays, tensors = [], []
        for _ in range(2):
            dropped = random.integers(0, len(shape) + 1)
            own = tuple(random.choice([1, n]) for n in shape[dropped:])
            dtype = random.choice([*ALL, "float32"])
            if random.random() < 0.2:
                number = random.choice([2, 0.5, True, 0]).item()
                number = int(number) if random.random() < 0.5 else number
                arrays.append(number)
                tensors.append(number)
                continue
            whole, index, cut, back = random_view(random, own)
            array = numbers(random, dtype, int(np.prod(whole)), denormals=False).reshape(whole)
            arrays.append(np.asarray(array[index][cut].transpose(back)))
            tensors.append(device.tensor(array)[index][cut].transpose(back))
        if not any(isinstance(each, np.ndarray) for each in arrays):
            continue
        expected = called(getattr(np, name), *arrays)
        types = [x.dtype for x in arrays if isinstance(x, np.ndarray)]
        if expected is not None and not has(
            device, expected.dtype, *types, *np_loops(name, arrays)
        ):
            continue
        result = called(getattr(vkops, name), *tensors)
        assert (result is None) == (expected is None)
        if expected is None:
            continue
        broadcast = [np.broadcast_to(x, expected.shape) for x in arrays]
        check(name, result, np.asarray(expected), broadcast)
        mask = random.integers(0, 2, expected.shape).astype(bool)
        target = np.zeros(expected.shape, expected.dtype)
        written = device.tensor(target)
        getattr(np, name)(*arrays, out=target, where=mask)
        assert getattr(np, name)(*tensors, out=written, where=device.tensor(mask)) is written
        check(name, written, target, broadcast)


def np_loops(name, operands):
    kinds = [x.dtype if isinstance(x, np.ndarray) else type(x) for x in operands]
    kinds = [np.dtype(bool) if kind is bool else kind for kind in kinds]
    return getattr(np, name).resolve_dtypes((*kinds, None))


# -- small types -----------------------------------------------------------------------------------


@pytest.mark.parametrize("other", ["int8", "int16", "int32"])
def test_integers_of_several_widths(device, other):
    if not has(device, "int64"):
        pytest.skip("has no int64")
    narrow = np.array([-1, 1, -3, 7, -100, 0, 100, -2], other)
    wide = np.array([7, 7, -8, -1, 1 << 40, 5, -(1 << 40), 9], np.int64)
    with np.errstate(divide="ignore"):
        for name in ("floor_divide", "remainder", "fmod", "minimum", "less"):
            for pair in ((wide, narrow), (narrow, wide)):
                expected = getattr(np, name)(*pair)
                equal(FUNCTIONS[name](*map(vkops.asarray, pair)), expected)
    for name in ("abs", "sign"):
        expected = getattr(np, name)(narrow, dtype=np.int64)
        equal(FUNCTIONS[name](vkops.asarray(narrow), dtype="int64"), expected)
    unsigned = np.array([0, 1, 1 << 63, 6, 1, 0, 100, 1], np.uint64)
    assert (vkops.asarray(narrow) < vkops.asarray(unsigned)).tolist() == [
        a < b for a, b in zip(narrow.tolist(), unsigned.tolist(), strict=True)
    ]


@pytest.fixture(params=[False, True])
def in_words(request, monkeypatch):
    """Use small types as they are, and as on devices without storage of 8 and 16 bits."""
    if request.param:
        monkeypatch.setattr(
            elementwise_kernel, "words_are_read", lambda dtype, _: dtype.itemsize < 4
        )


@pytest.mark.usefixtures("in_words")
@pytest.mark.parametrize("name", ["float16", *EXTENSION_FLOATS])
def test_conversions_of_small_floats(device, name):
    """All numbers of a type, those between them, and others; in memory of words, too."""
    dtype = dtype_of(name)
    bits = f"u{dtype.itemsize}"
    every = np.arange(1 << 8 * dtype.itemsize).astype(bits).view(dtype)
    floats = every.astype(np.float32)
    if not keeps_denormals(device):
        every = every[(floats == 0) | ~(np.abs(floats) < np.finfo(np.float32).tiny)]
        floats = every.astype(np.float32)
    finite = np.unique(floats[np.isfinite(floats)])
    middles = (finite[1:] + finite[:-1]) / 2
    random = np.random.default_rng(5)
    others = numbers(random, "float32", 2000, denormals=False)
    wide = np.concatenate([floats, middles, np.nextafter(middles, np.float32(1e38)), others])
    if not keeps_denormals(device):
        wide = wide[~(np.abs(wide) < np.finfo(np.float32).tiny)]
    added = wide.astype(np.float32) + np.float32(0)
    narrow, expected = (
        vkops.add(device.tensor(added), 0, out=vkops.empty(added.size, dtype, device=device)),
        added.astype(dtype),
    )
    found = narrow.numpy()
    is_nan = np.isnan(expected.astype(np.float32))
    np.testing.assert_array_equal(found.view(bits)[~is_nan], expected.view(bits)[~is_nan])
    assert np.isnan(found.astype(np.float32)[is_nan]).all()
    back = vkops.add(device.tensor(every), np.float32(0)).numpy()
    np.testing.assert_array_equal(back, floats)


@pytest.mark.usefixtures("in_words")
def test_small_integers_in_words(device):
    """Invocations that share a word write their own bits only."""
    random = np.random.default_rng(3)
    for dtype in ("int8", "uint8", "int16", "uint16", "bool"):
        array = numbers(random, dtype, 101)
        tensor = device.tensor(array)
        function = "bitwise_xor"
        getattr(vkops, function)(tensor[1::3], tensor[::3], out=tensor[1::3])
        array[1::3] ^= array[::3]
        np.testing.assert_array_equal(tensor.numpy(), array)


def test_bfloat16(device):
    """Results are computed in float32 and rounded once, as by ml_dtypes."""
    random = np.random.default_rng(2)
    x, y = (random.normal(size=500).astype(ml_dtypes.bfloat16) for _ in range(2))
    a, b = device.tensor(x), device.tensor(y)
    for name in ("add", "subtract", "multiply", "maximum", "less"):
        result, expected = getattr(vkops, name)(a, b), getattr(np, name)(x, y)
        assert result.dtype == expected.dtype
        np.testing.assert_array_equal(result.numpy(), expected)
    assert (a + 1).dtype == x.dtype
    kernel = vkops.ElementwiseKernel("T x, bfloat16 y", "T z", "z = x * y + T(1)", "fma")
    result = kernel(a, b).numpy()
    exact = x.astype(np.float32) * y.astype(np.float32) + np.float32(1)
    np.testing.assert_array_equal(result, exact.astype(x.dtype))
    for name in ("sum", "prod", "min", "max", "mean", "any", "argmax", "cumsum", "sort"):
        function = getattr(vkops.kernels, name)
        expected = function(device.tensor(x.astype(np.float32))).numpy()
        np.testing.assert_array_equal(function(a).numpy(), expected.astype(function(a).dtype))
    values, counts = vkops.kernels.unique(a, return_counts=True)
    expected, expected_counts = np.unique(x, return_counts=True)
    np.testing.assert_array_equal(values.numpy(), expected)
    np.testing.assert_array_equal(counts.numpy(), expected_counts)
    assert vkops.kernels.searchsorted(values, values).tolist() == list(range(len(expected)))


def test_shaders_take_bfloat16(device):
    """As their bits, in blocks of integers of 16 bits."""
    shader = device.compile_shader(
        """#version 450
#extension GL_EXT_shader_16bit_storage : require
layout(local_size_x = 1) in;
layout(binding = 0) buffer X { uint16_t x[]; };
void main() { uint at = gl_GlobalInvocationID.x; x[at] = uint16_t(uint(x[at]) ^ 0x8000u); }"""
    )
    tensor = device.tensor(np.arange(5).astype(ml_dtypes.bfloat16))
    shader(tensor, groups=5)
    assert tensor.numpy().astype(float).tolist() == [0, -1, -2, -3, -4]


# -- numbers, limits, rounding ---------------------------------------------------------------------


def test_numbers_of_python(device):
    small = device.tensor(np.uint8([1, 200]))
    assert (small + 100).tolist() == [101, 44]
    assert [(small < 300).tolist(), (small == -1).tolist(), np.greater(300, small).tolist()] == [
        [True, True], [False, False], [True, True],
    ]  # fmt: skip
    with pytest.raises(OverflowError):
        vkops.add(small, 300)
    floats = device.tensor(np.float32([1, -2]))
    assert (floats * 1e300).tolist() == [np.inf, -np.inf]
    assert (floats + np.float64(1)).dtype == np.float64
    assert (device.tensor(True) + 1).dtype == np.int64
    assert vkops.add(device.tensor(3), 4).shape == ()
    assert (device.tensor(np.zeros((0, 3))) + 1).shape == (0, 3)
    with pytest.raises(vkops.InvalidDescError, match=r"EW-06"):
        floats + device.tensor([1.0, 2.0, 3.0])


def test_clip_and_round(device):
    array = np.float32([-3.5, -0.5, 0.5, 1.5, np.nan, 9])
    tensor = device.tensor(array)
    for limits in (
        (0, 2),
        (None, 1),
        (-1, None),
        (np.float32([0, 0, 0, 1, 1, 1]), 5),
    ):
        np.testing.assert_array_equal(vkops.clip(tensor, *limits).numpy(), np.clip(array, *limits))
    np.testing.assert_array_equal(vkops.clip(tensor).numpy(), array)
    np.testing.assert_array_equal(np.clip(tensor, 0, 2).numpy(), np.clip(array, 0, 2))
    for decimals in (0, 1, -1):
        np.testing.assert_array_equal(np.round(tensor, decimals).numpy(), np.round(array, decimals))
    for name in ("real", "imag", "conj", "around"):
        np.testing.assert_array_equal(
            getattr(vkops, name)(tensor).numpy(), getattr(np, name)(array)
        )
        np.testing.assert_array_equal(getattr(np, name)(tensor).numpy(), getattr(np, name)(array))
    swapped = device.tensor(array.astype(">f4"))
    assert (swapped + 1).numpy().tobytes() == (array + 1).tobytes()
    assert np.round(device.tensor([True])).dtype == np.float16
    whole = device.tensor([15, 25])
    assert (vkops.round(whole).tolist(), vkops.round(whole, 2).dtype) == ([15, 25], np.int64)


# -- NumPy's universal functions -------------------------------------------------------------------


def test_methods_of_ufuncs(device):
    array = np.arange(6, dtype=np.int32).reshape(2, 3)
    tensor = device.tensor(array)
    for ufunc, method, arguments in [
        (np.add, "reduce", {}), (np.add, "reduce", {"axis": 1}), (np.multiply, "reduce", {"axis": None}),
        (np.maximum, "reduce", {"axis": 1, "keepdims": True}), (np.logical_or, "reduce", {}),
        (np.add, "accumulate", {"axis": 1}), (np.multiply, "accumulate", {}),
    ]:  # fmt: skip
        result = getattr(ufunc, method)(tensor, **arguments)
        expected = getattr(ufunc, method)(array, **arguments)
        assert isinstance(result, vkops.Tensor)
        np.testing.assert_array_equal(result.numpy(), expected)
    outer = np.subtract.outer(tensor, np.int32([10, 20]))
    np.testing.assert_array_equal(outer.numpy(), np.subtract.outer(array, np.int32([10, 20])))
    for call in (
        lambda: np.add.reduceat(tensor, [0, 1]), lambda: np.cbrt(tensor),
        lambda: np.add(tensor, 1, casting="unsafe"), lambda: np.add.reduce(tensor, initial=3),
        lambda: np.subtract.reduce(tensor), lambda: np.subtract.at(tensor, [0], 1),
    ):  # fmt: skip
        with pytest.raises(vkops.InvalidDescTypeError, match=r"ARRAY-08"):
            call()
    with pytest.raises(vkops.InvalidDescTypeError, match=r"add out: .*EW-03"):
        np.add(tensor, 1, out=np.zeros((2, 3)))
    quotient, rest = np.divmod(tensor, 4)
    np.testing.assert_array_equal(quotient.numpy(), array // 4)
    np.testing.assert_array_equal(rest.numpy(), array % 4)


@pytest.mark.parametrize("dtype", ["int32", "uint8", "float32"])
def test_scatter_add(device, dtype):
    random = np.random.default_rng(1)
    array = random.integers(0, 9, (7, 3)).astype(dtype)
    indices = random.integers(-7, 7, (40, 5))
    values = random.integers(0, 5, (40, 5, 3)).astype(dtype)
    tensor = device.tensor(array)
    np.add.at(tensor, indices, values)
    np.add.at(tensor, device.tensor(indices.astype(np.int32)), 1)
    vkops.kernels.scatter_add(tensor, 2, [1, 2, 3])
    np.add.at(array, indices, values)
    np.add.at(array, indices, np.array(1, dtype))
    array[2] += np.array([1, 2, 3], dtype)
    np.testing.assert_array_equal(tensor.numpy(), array)


def test_refused_scatter_add(device, message):
    tensor = device.tensor(np.zeros((3, 2), np.int32))
    for arguments in (([3], 1), ([0.5], 1), ([0], [1, 2, 3]), (device.tensor([True]), 1)):
        with pytest.raises(vkops.InvalidDescError) as caught:
            vkops.kernels.scatter_add(tensor, *arguments)
        message(caught.value)
    with pytest.raises(vkops.InvalidDescError, match="EW-03"):
        vkops.kernels.scatter_add(np.zeros(3), [0], 1)
    assert not tensor.numpy().any()


# -- refusals --------------------------------------------------------------------------------------


def test_refusals(device, message):
    x = device.tensor(np.int32([1, 2]))
    cases = [
        lambda: vkops.bitwise_and(x, 1.5), lambda: vkops.subtract(x == 1, x == 1),
        lambda: vkops.add(x, "a"), lambda: vkops.add(x, None), lambda: vkops.add(x, 1j),
        lambda: vkops.exp(np.array([1j])), lambda: vkops.add(x, 1, out=[1, 2]),
        lambda: vkops.add(x, 1.5, out=x), lambda: vkops.add(x, x, dtype="uint8"),
        lambda: vkops.add(x, 1, dtype="S3"), lambda: vkops.pow(x, -2),
        lambda: vkops.add(x, 1, where=np.int32([1, 0])), lambda: vkops.round(x, 1.5),
        lambda: vkops.nextafter(*[np.ones(2, ml_dtypes.float8_e4m3fnuz)] * 2),
    ]  # fmt: skip
    for case in cases:
        with pytest.raises(vkops.InvalidDescError) as caught:
            case()
        message(caught.value)


@pytest.mark.parametrize("feature", ["shaderFloat64", "shaderInt64"])
def test_a_type_that_the_device_lacks(device, feature):
    """The error names ``dtype=``, which chooses another type."""
    if feature in device.features:
        pytest.skip("the device has it: see scripts/test --driver lavapipe-minimum")
    x = device.tensor(np.int32([4, 9]))
    if feature == "shaderFloat64":
        with pytest.raises(
            vkops.InvalidDescError, match=r"needs shaderFloat64.* dtype= \[SH-02\]$"
        ):
            vkops.sqrt(x)
        assert vkops.sqrt(x, dtype="float32").tolist() == [2, 3]
    else:
        with pytest.raises(vkops.InvalidDescError, match=r"needs shaderInt64.* dtype= \[SH-02\]$"):
            vkops.add(x, device.tensor([1, 2]))


# -- fusion ----------------------------------------------------------------------------------------


def test_fused_operators(device):
    """One dispatch, with the bits of the separate calls."""

    @vkops.fuse()
    def squared_difference(x, y):
        return (x - y) * (x - y)

    @vkops.fuse(kernel_name="named")
    def several(x, y):
        z = vkops.sqrt(abs(x)) + 2 * y
        return -z, z > 1, np.maximum(x, y) // 3

    random = np.random.default_rng(7)
    for dtype in ("float32", "float16", "int8", "uint16", ml_dtypes.bfloat16):
        x, y = (random.integers(-50, 50, (5, 4)).astype(dtype) for _ in range(2))
        a, b = device.tensor(x), device.tensor(y)
        same = squared_difference(a, b).numpy()
        np.testing.assert_array_equal(same, ((a - b) * (a - b)).numpy())
        np.testing.assert_array_equal(same, (x - y) * (x - y))
        z = vkops.sqrt(abs(a)) + 2 * b
        if has(device, z.dtype) and device.limits.max_per_stage_descriptor_storage_buffers >= 5:
            for fused, apart in zip(several(a, b), (-z, z > 1, np.maximum(a, b) // 3), strict=True):
                np.testing.assert_array_equal(fused.numpy(), apart.numpy())
    assert "named" in repr(several)
    with vkops.profile() as profile:
        squared_difference(a, b)
    measured = device.info.limits.timestamp_valid_bits > 0
    assert [row.count for row in profile.by_kernel()] == [1] * measured
    total = vkops.fuse(lambda x, y: vkops.kernels.sum(x * y + 1, axis=0))
    np.testing.assert_array_equal(
        total(device.tensor(np.float32([[1, 2], [3, 4]])), 2).numpy(), np.float32([10, 14])
    )
    with pytest.raises(vkops.InvalidDescError, match="EW-09"):
        vkops.fuse(lambda x: x.__iadd__(1))(a)


def test_aliases():
    """NumPy's names and the array API's are the same functions."""
    assert vkops.absolute is vkops.abs
    assert vkops.arcsin is vkops.asin
    assert all(getattr(vkops, name) is function for name, function in FUNCTIONS.items())


def test_exact_types_of_all(device):
    """Each function has NumPy's data type of the result, for all data types of operands."""
    lists = [*ALL, "bfloat16"] if device.features >= set(FEATURES.values()) else ["float32"]
    for dtype in lists:
        kind = dtype_of(dtype)
        x = np.ones(1, kind)
        for name in ("add", "divide", "sqrt", "isnan", "abs"):
            operands = [x] * TABLE[name].operands
            expected = called(numpys(name), *operands)
            result = called(getattr(vkops, name), *map(device.tensor, operands))
            assert (result is None) == (expected is None)
            assert result is None or result.dtype == expected.dtype
    assert [*FLOATS] == ["float16", "float32", "float64"]
