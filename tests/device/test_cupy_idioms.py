"""Idioms of CuPy's users: raw outputs, options, arrays of other libraries, and results of NumPy."""

import numpy as np
import pytest
from arrays import equal
from refusals import check_refusals

import vkops
from vkops import kernels

pytestmark = pytest.mark.features


class Exporter:
    """An array of another library, of which only DLPack is known."""

    def __init__(self, array):
        self._array = array

    def __dlpack__(self, **options):
        return self._array.__dlpack__(**options)

    def __dlpack_device__(self):
        return self._array.__dlpack_device__()


# -- kernels ---------------------------------------------------------------------------------------


def test_raw_outputs(device):
    counts = vkops.ElementwiseKernel("int32 x", "raw int32 y", "atomicAdd(y[x], 1)", "counts")
    y = vkops.zeros(6, "int32", device=device)
    x = np.array([0, 5, 5, 2, 5, 0], np.int32)
    assert counts(x, y) is y
    equal(y, np.bincount(x).astype(np.int32))
    counts(device.tensor(x), out=y)
    equal(y, 2 * np.bincount(x).astype(np.int32))


def test_raw_outputs_of_any_layout(device):
    put = vkops.ElementwiseKernel("raw int32 x", "raw int32 y", "y[x[i]] = i", "put")
    order = np.array([3, 0, 2, 1], np.int32)
    whole = np.full((4, 6), -1, np.int32)
    for index in ((slice(None), 1), (2, slice(1, 5)), (3, slice(4, 0, -1))):
        tensor, expected = device.tensor(whole), whole.copy()
        expected[index][order] = np.arange(4)
        for _ in range(2):
            put(order, tensor[index], size=4)
        equal(tensor, expected)
    # Where an input is the output, too, it is copied first.
    reverse = vkops.ElementwiseKernel("raw T x", "raw T y", "y[n - 1 - i] = x[i]")
    tensor = device.tensor(np.arange(300, dtype=np.int32))
    reverse(tensor, tensor, size=300)
    equal(tensor, np.arange(300, dtype=np.int32)[::-1])


def test_atomic_additions_of_floats(device):
    add = vkops.ElementwiseKernel("float32 x", "raw float32 y", "atomicAdd(y[0], x)", "add")
    y = vkops.zeros(1, "float32", device=device)
    if "shaderBufferFloat32AtomicAdd" not in device.features:
        with pytest.raises(vkops.DeviceError, match="shaderBufferFloat32AtomicAdd"):
            add(np.ones(5, np.float32), y)
        return
    add(np.arange(1000, dtype=np.float32), y)
    assert y.item() == 499_500


def test_statements_around_the_operation(device):
    total = vkops.ElementwiseKernel(
        "T x", "raw T y", "s += x", "total",
        loop_prep="T s = T(SEED)", after_loop="atomicAdd(y[0], s)", options=("-DSEED=1", "-D UNUSED"),
        no_return=True,
    )  # fmt: skip
    y = vkops.zeros(1, "int32", device=device)
    assert total(np.arange(10, dtype=np.int32), y) is None
    assert y.item() == 55
    one = vkops.ElementwiseKernel("T x", "T y", "y = x", return_tuple=True)
    for _ in range(2):
        (result,) = one(device.tensor(np.float32([1, 2])))
        assert result.tolist() == [1, 2]
    with pytest.raises(vkops.ShaderCompileError, match=r"^broken after_loop:2: "):
        vkops.ElementwiseKernel("T x", "T y", "y = x", "broken", after_loop="\nnothing = 3;")(
            device.tensor(np.float32([1, 2]))
        )


def test_words_of_glsl_as_names(device):
    names = ["in", "out", "input", "output", "buffer", "filter", "sample", "inout"]
    x = device.tensor(np.float32([1, 2, 3]))
    for name in names:
        double = vkops.ElementwiseKernel(
            f"T {name}, raw T table", f"T {name}_", f"{name}_ = {name} + table[i]"
        )
        assert double(x, x).tolist() == [2, 4, 6]
        scaled = vkops.ElementwiseKernel("T x", f"T {name}", f"{name} = x * T(2)", "scaled")
        sums = vkops.ReductionKernel(f"T {name}", "T y", f"{name} * {name}", "a + b", "y = a", "0")
        assert scaled(x).tolist() == [2, 4, 6]
        assert vkops.fuse(lambda x, f=scaled: f(f(x)) + 1)(x).tolist() == [5, 9, 13]
        assert vkops.fuse(lambda x, f=scaled, g=sums: g(f(x)))(x).item() == 56
    outputs = vkops.ReductionKernel("T x", "T out", "x", "a + b", "out = a", "0")
    assert outputs(x).item() == 6


def test_lists_and_arrays_of_other_libraries(device):
    axpy = vkops.ElementwiseKernel("float32 a, T x, raw T y", "T z", "z = a * x + y[i]", "axpy")
    x = np.float32([1, 2, 3])
    for other in (Exporter(x), x.tolist(), [1, 2, 3], (1, 2, 3)):
        equal(axpy(2, x, other, device=device), 3 * x)
        equal(axpy(2, other, device.tensor(x)), 3 * x)
        if isinstance(other, Exporter) or "shaderFloat64" in device.features:  # as NumPy's lists
            np.testing.assert_array_equal(vkops.add(device.tensor(x), other).numpy(), 2 * x)
        equal(kernels.sum(other, dtype="float32", device=device), np.float32(6))
        fused = vkops.fuse(lambda a, b: a * b)
        assert fused(device.tensor(x), other).tolist() == [1, 4, 9]
    with pytest.raises(vkops.InvalidDescError, match=r"EW-09|EW-03"):
        vkops.fuse(lambda a: vkops.add(a, [1, 2, 3]))(x)


def test_tensors_of_torch_are_arguments(device):
    torch = pytest.importorskip("torch")
    axpy = vkops.ElementwiseKernel("float32 a, T x, raw T y", "T z", "z = a * x + y[i]", "axpy")
    x = np.float32([1, 2, 3])
    equal(axpy(2, torch.tensor(x), torch.tensor(x), device=device), 3 * x)


def test_arrays_of_other_libraries_as_arguments_of_shaders(device):
    source = """#version 450
layout(local_size_x = 4) in;
layout(std430, binding = 0) readonly buffer X { float x[]; };
layout(std430, binding = 1) buffer Y { float y[]; };
void main() { uint i = gl_GlobalInvocationID.x; if (i < x.length()) y[i] = 2 * x[i]; }"""
    shader = device.compile_shader(source)
    x = np.float32([1, 2, 3])
    for other in (Exporter(x), x.tolist(), [1, 2, 3]):
        equal(shader(other, out=3, threads=3), 2 * x)
        with pytest.raises(vkops.BindingError, match="SH-12"):
            shader(x, other, threads=3)
    with pytest.raises(vkops.BindingError, match="SH-"):
        shader(["a"], out=3, threads=3)


def test_results_of_reductions_that_are_vectors_and_structures(device):
    x = np.random.default_rng(1).integers(-99, 99, (3, 40_000)).astype(np.float32)
    span = vkops.ReductionKernel(
        "T x", "T y", "vec2(x, x)", "vec2(min(a.x, b.x), max(a.y, b.y))", "y = a.y - a.x",
        name="span", reduce_type="vec2",
    )  # fmt: skip
    best = vkops.ReductionKernel(
        "T x", "T value, int32 at", "Best(x, i)", "best(a, b)", "value = a.value; at = a.at",
        "Best(T(-1), 0)", "best", "Best",
        """struct Best { T value; int at; };
Best best(Best a, Best b) {
    if (a.value > b.value || (a.value == b.value && a.at < b.at)) return a;
    return b;
}""",
    )  # fmt: skip
    for axis in (None, 0, 1):
        equal(span(x, axis=axis, device=device), np.ptp(x, axis=axis))
        value, at = best(device.tensor(x), axis=axis)
        equal(value, x.max(axis=axis))
        equal(at, x.argmax(axis=axis).astype(np.int32))
    assert best(device.tensor(x[:0]), axis=0)[0][:2].tolist() == [-1, -1]
    equal(vkops.fuse(lambda x: best(x * 2))(x[0])[0], x[0].max() * 2)
    if {"storageBuffer8BitAccess", "shaderInt8"} <= device.features:  # structures of 2 bytes
        pair = "struct Pair { int8_t most; uint8_t count; };"
        both = "Pair(int8_t(max(a.most, b.most)), uint8_t(a.count + b.count))"
        counted = vkops.ReductionKernel(
            "int8 x", "int32 y", "Pair(x, uint8_t(1))", both, "y = 256 * int(a.count) + int(a.most)",
            None, "counted", "Pair", pair,
        )  # fmt: skip
        assert counted(np.arange(100, dtype=np.int8)).item() == 256 * 100 + 99


# -- functions -------------------------------------------------------------------------------------

NAN_SUMS = ["nansum", "nanprod", "nanmean", "nanvar", "nanstd"]
NAN_EXTREMES = ["nanmin", "nanmax"]
AXES = [None, 0, (0, 2)]


def needs(device, *dtypes):
    features = {"int64": "shaderInt64", "uint64": "shaderInt64", "float64": "shaderFloat64"}
    lacking = {features.get(dtype, "") for dtype in dtypes} - {"", *device.features}
    if lacking:
        pytest.skip(f"has no {', '.join(lacking)}")


def with_nan(dtype):
    """Numbers of which some are NaN, as are all of some rows and columns."""
    random = np.random.default_rng(3)
    x = random.normal(size=(4, 5, 6)).astype(dtype)
    x[random.random(x.shape) < 0.3] = np.nan
    x[2, :, 3] = x[3] = np.nan
    x[:3, 1, 1] = np.inf, 1, -np.inf
    return x


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("dtype", ["float16", "float32"])
def test_reductions_of_what_is_not_nan(device, dtype):
    needs(device, dtype)
    x = with_nan(dtype)
    tensor = device.tensor(x)
    for axis in AXES:
        for name in NAN_SUMS + NAN_EXTREMES:
            options = {"axis": axis, "keepdims": axis == 0}
            expected = np.asarray(getattr(np, name)(x, **options))
            actual = getattr(kernels, name)(tensor, **options)
            assert (actual.dtype, actual.shape) == (expected.dtype, expected.shape)
            # NumPy adds up in another order: each of its 120 additions rounds.
            bound = 0 if name in NAN_EXTREMES else 120 * np.finfo(dtype).eps
            np.testing.assert_allclose(actual.numpy(), expected, rtol=bound, atol=bound)
        # The sums have the bits of those of the elements with 0 in place of NaN.
        zeros = np.where(np.isnan(x), 0, x).astype(dtype)
        equal(kernels.nansum(tensor, axis), kernels.sum(zeros, axis, device=device).numpy())
    numbers = np.where(np.isnan(x).all(axis=1, keepdims=True), 1, x).astype(dtype)
    for name in ("nanargmin", "nanargmax"):
        for axis in (None, 1):
            expected = np.asarray(getattr(np, name)(numbers, axis=axis)).astype(np.int32)
            equal(getattr(kernels, name)(numbers, axis, dtype="int32", device=device), expected)
        assert getattr(kernels, name)(tensor[3], dtype="int32").item() == -1
    assert np.isnan(kernels.nanmean(tensor[:0]).item())
    assert kernels.nansum(tensor[:, :0], axis=1).tolist() == np.zeros((4, 6)).tolist()
    for correction in (1, 1.5, 4):
        expected = np.nanvar(x, axis=0, ddof=correction)
        actual = kernels.nanvar(tensor, 0, correction=correction).numpy()
        np.testing.assert_allclose(actual, expected, rtol=20 * np.finfo(dtype).eps)
    out = device.empty((4, 6), dtype)
    assert kernels.nanstd(tensor, 1, out=out) is out
    equal(np.nanstd(tensor, axis=1), out.numpy())


def test_integers_are_never_nan(device):
    needs(device, "int64", "float64")
    x = np.random.default_rng(3).integers(-9, 9, (3, 4), np.int16)
    tensor = device.tensor(x)
    for name in ("nansum", "nanmin", "nanargmax", "nanvar"):
        plain = getattr(kernels, name.removeprefix("nan"))(tensor, 1)
        equal(getattr(kernels, name)(tensor, 1), plain.numpy())
        if name != "nanvar":
            equal(plain, getattr(np, name)(x, axis=1))


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "int16", "bool"])
def test_medians_and_scans_of_what_is_not_nan(device, dtype):
    is_float = dtype.startswith("float")
    needs(device, dtype if is_float else "float64", "float32" if is_float else "int64")
    x = (
        with_nan(dtype)
        if is_float
        else np.random.default_rng(3).integers(0, 2, (4, 5, 6)).astype(dtype)
    )
    tensor = device.tensor(x)
    for axis in AXES:
        expected = np.asarray(np.nanmedian(x, axis=axis, keepdims=axis == 0))
        equal(kernels.nanmedian(tensor, axis, keepdims=axis == 0), expected)
    for name, plain, instead in (("nancumsum", "cumsum", 0), ("nancumprod", "cumprod", 1)):
        numbers = np.where(np.isnan(x), instead, x).astype(dtype)
        for axis in (None, 0, 2):
            found = getattr(kernels, name)(tensor, axis)
            equal(found, getattr(kernels, plain)(numbers, axis, device=device).numpy())
            expected = getattr(np, name)(x, axis=axis)
            assert (found.dtype, found.shape) == (expected.dtype, expected.shape)
            if is_float and axis is not None:
                np.testing.assert_allclose(
                    found.numpy(),
                    expected,
                    rtol=8 * np.finfo(dtype).eps,
                    atol=8 * np.finfo(dtype).eps,
                )
            elif not is_float:
                equal(found, expected)


def test_medians_are_means_of_the_two_in_the_middle(device):
    """Also of zeros of both signs and of numbers whose sum overflows, as in NumPy."""
    for row in (
        [3e38, np.nan, 3.2e38, 1e38],
        [3e38, np.nan],
        [3e38, 3e38],
        [-0.0, 0.0],
        [np.nan, -0.0, 0.0],
    ):
        x = np.array(row, np.float32)
        with np.errstate(over="ignore"):
            equal(kernels.nanmedian(device.tensor(x)), np.asarray(np.nanmedian(x)))


@pytest.mark.parametrize("dtype", ["int8", "uint16", "int32", "float32"])
def test_inner_products(device, dtype):
    random = np.random.default_rng(3)
    x, y = (random.integers(0, 9, shape).astype(dtype) for shape in ((3, 4, 5), (2, 5)))
    for a, b in ((x, y), (x[0, 0], y), (x[0, 0], y[0]), (y, x), (x, y[0, 0]), (y[0, 0], x)):
        equal(kernels.inner(device.tensor(a), b), np.inner(a, b))
    for a, b in ((x, x[::-1]), (y.T, y), (x.T, x.reshape(-1)), (y[0, 0], y[1, 1])):
        equal(kernels.vdot(device.tensor(a), b), np.asarray(np.vdot(a, b)))
    for name in ("inner", "vdot"):
        with pytest.raises(ValueError, match=f"^{name} .*EW-06"):
            getattr(kernels, name)(device.tensor(x), x[..., :2])


METHODS = [
    "linear", "lower", "higher", "midpoint", "nearest", "inverted_cdf", "averaged_inverted_cdf",
    "closest_observation", "interpolated_inverted_cdf", "hazen", "weibull", "median_unbiased",
    "normal_unbiased",
]  # fmt: skip
NEW_NUMPY = np.lib.NumpyVersion(np.__version__) >= "2.4.0"
"""Earlier versions of NumPy round quantiles of float32 otherwise."""


@pytest.mark.parametrize("dtype", ["float16", "float32", "int8"])
def test_percentiles_have_the_bits_of_numpy(device, dtype):
    x = np.random.default_rng(5).integers(-20, 20, (5, 3, 4)).astype(dtype)
    if x.dtype.kind == "f":
        x = (x / 7).astype(dtype)
        x[1, 2, 3], x[2, 0, 0], x[0, 0, 1] = np.nan, np.inf, -np.inf
    else:
        needs(device, "float64")
    needs(device, dtype)
    tensor = device.tensor(x)
    with np.errstate(invalid="ignore"):
        for method in METHODS:
            for q in (0, 16.7, 50, 66.6, 100):
                expected = np.asarray(np.percentile(x, q, axis=(0, 1), method=method))
                actual = kernels.percentile(tensor, q, (0, 1), method=method)
                if NEW_NUMPY:
                    equal(actual, expected)
                else:
                    np.testing.assert_allclose(actual.numpy(), expected, rtol=1e-2, atol=1e-2)
        for axis in AXES:
            for keepdims in (False, True):
                expected = [np.quantile(x, q, axis, keepdims=keepdims) for q in (0.2, 0.9)]
                actual = kernels.quantile(tensor, [[0.2], [0.9]], axis, keepdims=keepdims)
                assert (actual.dtype, actual.shape[:2]) == (expected[0].dtype, (2, 1))
                if NEW_NUMPY:
                    np.testing.assert_array_equal(actual.numpy()[:, 0], expected)
                median = np.asarray(np.median(x, axis, keepdims=keepdims))
                np.testing.assert_array_equal(
                    np.median(tensor, axis, keepdims=keepdims).numpy(), median
                )
                assert kernels.median(tensor, axis, keepdims=keepdims).shape == median.shape


def test_sums_of_weights(device):
    random = np.random.default_rng(7)
    x, weights = random.integers(0, 7, 60), random.normal(size=60).astype(np.float32)
    chosen = x.astype(np.int32)
    actual = kernels.bincount(chosen, weights, 9, dtype="float32", device=device)
    # Each of the at most 60 additions of a sum rounds.
    bound = 60 * np.finfo(np.float32).eps * np.abs(weights).sum()
    np.testing.assert_allclose(actual.numpy(), np.bincount(x, weights, 9), rtol=0, atol=bound)
    whole = weights.round()
    equal(
        kernels.bincount(chosen - 1, whole, size=4, dtype="float32", device=device),
        np.bincount(x[x > 0] - 1, whole[x > 0])[:4].astype(np.float32),
    )
    assert kernels.bincount(chosen[:0], weights[:0], size=2, dtype="float32").tolist() == [0, 0]
    if "shaderFloat64" in device.features:
        equal(np.bincount(device.tensor(chosen), whole), np.bincount(x, whole))


def test_traces_and_places_that_are_true(device):
    x = np.arange(60, dtype=np.float32).reshape(3, 4, 5)
    for options in ({}, {"offset": 1}, {"offset": -2, "axis1": 2, "axis2": 0}):
        equal(kernels.trace(x, device=device, **options), np.trace(x, **options))
        equal(np.trace(device.tensor(x), **options), np.trace(x, **options))
    needs(device, "int64")
    for condition in (x % 7 > 4, x % 3):
        for ours in (vkops.where(condition, device=device), np.where(device.tensor(condition))):
            for actual, expected in zip(ours, np.where(condition), strict=True):
                equal(actual, expected)


def test_dot_products(device):
    random = np.random.default_rng(2)
    for shapes in (((), ()), ((3,), ()), ((), (2, 3)), ((4,), (4,)), ((3, 4), (4,)), ((4,), (2, 4, 3)), ((3, 4), (2, 4, 5)),
                   ((0, 4), (4, 2)), ((2, 0), (0, 3))):  # fmt: skip
        a, b = (random.integers(-9, 9, shape).astype(np.float32) for shape in shapes)
        equal(kernels.dot(a, b, device=device), np.asarray(np.dot(a, b)))
        equal(np.dot(device.tensor(a), b), np.asarray(np.dot(a, b)))


def test_random_numbers_by_their_names_in_numpy(device):
    def new():
        return kernels.random.Philox(11, 5)

    numbers = new().random((3, 40), "float32", device=device).numpy()
    generator = new()
    uniform = generator.uniform(-2, 5, (3, 40), "float32", device=device)
    equal(uniform, np.float32(-2) + np.float32(7) * numbers)
    assert generator.position == 125
    normal = new().normal(size=9, dtype="float32", device=device).numpy()
    equal(new().standard_normal(9, "float32", device=device), normal)
    x = np.arange(12, dtype=np.int32).reshape(3, 4)
    tensor = device.tensor(x)
    new().shuffle(tensor, 1)
    equal(tensor, new().permutation(x, 1).numpy())
    assert sorted(tensor[0].tolist()) == [0, 1, 2, 3]


def test_random_choices(device):
    def new():
        return kernels.random.Philox(11)

    options = {"dtype": "int32", "device": device}
    equal(new().choice(9, (2, 5), **options), new().integers(9, size=(2, 5), **options).numpy())
    equal(new().choice(9, 4, replace=False, **options), new().permutation(9, **options).numpy()[:4])
    x = np.arange(12, dtype=np.int16).reshape(3, 4)
    places = new().choice(4, (2, 2), **options).numpy()
    equal(new().choice(device.tensor(x), (2, 2), axis=1), x[:, places])
    assert new().choice([5], device=device).item() == 5
    p = np.array([0.1, 0, 0.7, 0.2])
    counts = np.bincount(new().choice(4, 20_000, p=p, **options).numpy())
    # Six deviations of each of the counts.
    assert (np.abs(counts - 20_000 * p) <= 6 * np.sqrt(20_000 * p * (1 - p))).all()
    assert new().choice(3, 4, p=[0, 1, 0], **options).tolist() == [1] * 4


def test_elements_by_the_name_in_cupy(device):
    tensor = device.tensor(np.arange(6, dtype=np.int32))
    equal(tensor, tensor.get())
    out = device.pinned(6, "int32")
    event = tensor.get(out=out, blocking=False)
    event.wait()
    assert out.tolist() == [0, 1, 2, 3, 4, 5]


def test_refused_functions(device, message):
    x = device.tensor(np.ones((2, 3), np.float32))
    generator = kernels.random.Philox(1)
    check_refusals(
        message,
        lambda: kernels.median(x[:0]),
        lambda: kernels.median(x, 2),
        lambda: kernels.median(np.ones(2, complex), device=device, dtype="float32"),
        lambda: kernels.quantile(x, 1.5),
        lambda: kernels.quantile(x, ["a"]),
        lambda: kernels.quantile(x, np.nan),
        lambda: kernels.percentile(x, -1),
        lambda: kernels.percentile(x, 5, method="cubic"),
        lambda: kernels.percentile(x, 5, keepdims=2),
        lambda: kernels.nanmax(x[:0]),
        lambda: kernels.nanmean(x, dtype="int32"),
        lambda: kernels.bincount(np.int32([1]), np.float32([1, 2]), dtype="float32", device=device),
        lambda: kernels.trace(x[0], dtype="float32"),
        lambda: vkops.where(x, 1),
        lambda: generator.choice(0, device=device),
        lambda: generator.choice(3, 4, replace=False, device=device),
        lambda: generator.choice(3, 2, replace=False, p=[1, 0, 0], device=device),
        lambda: generator.choice(3, 2, p=[0.5, 0.6, 0], device=device),
        lambda: generator.choice(2, 2, p=[-0.5, 1.5], device=device),
        lambda: generator.shuffle(np.ones(3)),
        lambda: generator.uniform("a", dtype="float32", device=device),
        lambda: generator.uniform(np.nan, dtype="float32", device=device),
        lambda: generator.uniform(0, 10**400, dtype="float32", device=device),
        lambda: generator.uniform(-3e38, 3e38, dtype="float32", device=device),
        lambda: x.get(blocking=False),
    )
