"""Reductions: results of NumPy, and bits that a model of the order of operations says."""

from __future__ import annotations

import itertools
import warnings
from math import prod

import numpy as np
import pytest
from kernel_numbers import ALL, FLOATS, random, same
from refusals import check_refusals

import vkops
from vkops import kernels
from vkops.kernels.reduction import CHUNKS, ENDS, LANES

pytestmark = pytest.mark.features


def reduced(x, axes, operation):
    """The bits of a reduction: elements in the order that ``vkops.ReductionKernel`` documents."""
    axes = sorted(
        range(x.ndim) if axes is None else [axis % x.ndim for axis in np.atleast_1d(axes)]
    )
    kept = [axis for axis in range(x.ndim) if axis not in axes]
    shape, by_rows = [x.shape[axis] for axis in kept], not axes or axes[-1] == x.ndim - 1
    rows = x.transpose([*kept, *axes]).reshape(prod(shape), -1)
    first = True
    while first or rows.shape[1] > 1:
        count = rows.shape[1]
        lanes = 1 if count <= 32 or (not by_rows and len(rows) >= LANES) else LANES
        parts = [rows[:, i : i + CHUNKS[lanes]] for i in range(0, count, CHUNKS[lanes])]
        rows = np.stack([_of_chunk(part, lanes, operation) for part in parts], axis=1)
        by_rows, first = True, False
    return rows.reshape(shape)


def _of_chunk(part, lanes, operation):
    for width in (LANES, ENDS, 1) if lanes > 1 else (1,):
        part, rest = part[:, :width].copy(), part[:, width:]
        for start in range(0, rest.shape[1], width):
            more = rest[:, start : start + width]
            part[:, : more.shape[1]] = operation(part[:, : more.shape[1]], more)
    return part[:, 0]


SHAPES = [
    ((), None), ((1,), None), ((33,), 0), ((129,), None), ((16_385,), 0), ((3, 40_000), None),
    ((7, 300), 1), ((7, 300), 0), ((300, 7), 0), ((2100, 130), 0), ((5, 6, 7), (0, 2)),
    ((5, 6, 7), (1, -1)), ((5, 6, 7), 1), ((4, 5), ()),
]  # fmt: skip


@pytest.mark.parametrize(("shape", "axis"), SHAPES)
@pytest.mark.parametrize("dtype", ["float32", "float64", "float16"])
def test_sums_of_floats_have_the_bits_of_the_documented_order(device, shape, axis, dtype):
    x = random(shape, dtype)
    wide = x.astype(np.float32) if dtype == "float16" else x
    expected = reduced(wide, axis, np.add).astype(dtype)
    assert expected.shape == np.sum(x, axis=axis).shape
    same(kernels.sum(x, axis, device=device), expected)


FUNCTIONS = ["sum", "prod", "min", "max", "any", "all", "count_nonzero", "argmin", "argmax"]


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("dtype", ALL)
def test_functions_have_the_results_and_types_of_numpy(device, name, dtype):
    ours, theirs = getattr(kernels, name), getattr(np, name)
    for shape, axis in [*SHAPES[:5], ((7, 300), 1), ((7, 300), 0), ((40, 20, 3), 0)]:
        x = random(shape, dtype, len(shape))
        got, expected = ours(x, axis, device=device), np.asarray(theirs(x, axis=axis))
        assert (got.dtype, got.shape) == (expected.dtype, expected.shape)
        if dtype in FLOATS and name in {"sum", "prod"}:
            np.testing.assert_allclose(got.numpy(), expected, rtol=1e-2, atol=1e-2)
        else:
            np.testing.assert_array_equal(got.numpy(), expected)


@pytest.mark.parametrize("dtype", FLOATS)
def test_nan_infinities_and_zeros(device, dtype):
    values = [0.0, -0.0, 1.0, -np.inf, np.inf, np.nan]
    for size in (1, 2, 3):
        x = np.array([*itertools.product(values, repeat=size)], dtype)
        for name in ("min", "max", "argmin", "argmax", "any", "all", "count_nonzero"):
            got = getattr(kernels, name)(x, 1, device=device).numpy()
            np.testing.assert_array_equal(got, getattr(np, name)(x, axis=1), err_msg=name)


def exact(total, count):
    """The rounded quotient of a float and an integer: NumPy's division rounds correctly."""
    with np.errstate(all="ignore"):
        return total / np.asarray(count, total.dtype)


@pytest.mark.parametrize("dtype", FLOATS)
def test_means_are_rounded_quotients_of_the_sums(device, dtype):
    wide = np.float32 if dtype == "float16" else dtype
    integer = {"float32": np.uint32, "float64": np.uint64}[np.dtype(wide).name]
    bits = np.random.default_rng(5).integers(0, np.iinfo(integer).max, 4000, integer, endpoint=True)
    some = bits.view(wide)
    small = (np.arange(4000) - 2000).astype(wide) * np.finfo(wide).smallest_subnormal
    with np.errstate(all="ignore"):
        large = some / np.asarray(1e30, wide)
    tiny = np.finfo(wide).smallest_subnormal
    if not kernels.sum(np.array([tiny, 0], wide), device=device).item():  # the device flushes these
        some, large = (np.where(abs(x) < np.finfo(wide).tiny, 0, x) for x in (some, large))
        small = np.zeros_like(small)
    for first in (some, small, large) if dtype != "float16" else (small,):
        for count in (1, 3, 7, 20):
            x = np.zeros((len(first), count), dtype)
            x[:, 0] = first.astype(dtype)
            got = kernels.mean(x, 1, device=device).numpy()
            expected = exact(x[:, 0].astype(wide), count).astype(dtype)
            np.testing.assert_array_equal(got, expected, err_msg=str(count))
    x = random((50, 70), dtype)
    expected = exact(reduced(x.astype(wide), None, np.add), x.size).astype(dtype)
    np.testing.assert_array_equal(kernels.mean(x, device=device).numpy(), expected)
    assert kernels.mean(np.arange(10, dtype=np.int16), device=device).item() == 4.5
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert np.isnan(kernels.mean(np.zeros(0, dtype), device=device).item())


@pytest.mark.parametrize("correction", [0, 1])
@pytest.mark.parametrize("axis", [None, 0, 1])
def test_variances_follow_from_the_means(device, axis, correction):
    x = random((60, 170), "float32") + np.float32(100)
    middle = kernels.mean(x, axis, keepdims=True, device=device).numpy()
    squares = (x - middle) ** 2
    total = reduced(squares, axis, np.add)
    count = x.size // max(total.size, 1) - correction
    got = kernels.var(x, axis, correction=correction, device=device).numpy()
    np.testing.assert_array_equal(got, exact(total, count))
    np.testing.assert_allclose(got, np.var(x.astype(float), axis=axis, ddof=correction), rtol=1e-5)


def test_half_precision_is_rounded_as_by_numpy(device):
    bits = np.random.default_rng(1).integers(0, 2**32, 50_000, np.uint32)
    near = np.arange(2**16, dtype=np.uint16).view(np.float16).astype(np.float32)
    ties = near.view(np.uint32) + np.random.default_rng(2).choice([0, 4095, 4096, 4097], 2**16)
    values = np.concatenate([bits, ties.astype(np.uint32)]).view(np.float32)
    got = kernels.sum(values[:, None], 1, dtype="float16", device=device).numpy()
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(got, values.astype(np.float16))


VIEWS = [
    "x[::-2, ::3]", "x.T", "x.reshape(5, 20, 100).T", "x[3:, None]", "x[:, :0]", "x[3]", "x[3:4, 0]", "0 * x",
]  # fmt: skip


@pytest.mark.parametrize("view", VIEWS)
def test_views_are_read_where_they_are(device, view):
    """By reductions, and by the kernels of the other modules."""
    array = random((50, 200), "int32")
    tensor, x = device.tensor(array), eval(view, {"x": array})
    part = device.tensor(x) if view == "0 * x" else eval(view, {"x": tensor})
    for axis in (None, *range(x.ndim), (0, -1)[: x.ndim]):
        expected = np.sum(x, axis, "int32", keepdims=True)
        same(kernels.sum(part, axis, dtype="int32", keepdims=True), expected)
    for axis in (None, *range(x.ndim)):
        expected = np.cumsum(x, axis, "int32")
        same(kernels.cumsum(part, axis, dtype="int32"), expected)
        large = device.tensor(np.zeros((3, *expected.shape), np.int32))
        kernels.cumsum(part, axis, dtype="int32", out=large[1])
        same(large[1], expected)
        same(kernels.sort(part, axis), np.sort(x, axis))
        order = np.argsort(x, axis, kind="stable").astype(np.int32)
        same(kernels.argsort(part, axis, dtype="int32"), order)
    for ours, theirs in zip(kernels.nonzero(part, dtype="int32"), np.nonzero(x), strict=True):
        same(ours, theirs.astype(np.int32))
    names = ("return_index", "return_inverse", "return_counts")
    got = kernels.unique(part, **dict.fromkeys(names, True), dtype="int32")
    expected = np.unique(x, **dict.fromkeys(names, True))
    for ours, theirs in zip(got, expected, strict=True):
        np.testing.assert_array_equal(ours.numpy().reshape(theirs.shape), theirs)
    same(kernels.compress(part.reshape(-1), part), np.compress(x.reshape(-1), x))
    same(tensor, array)


def test_several_inputs_and_outputs(device):
    x, y = random((30, 40), "int32"), random((40,), "int32", 3)
    bounds = vkops.ReductionKernel(
        "T x, T y, T less", "T total, float32 average", "x * y - less", "a + b",
        "total = a; average = float(a) / float(n)", "0", "dot",
    )  # fmt: skip
    total, average = bounds(device.tensor(x), y, 2, axis=1)
    expected = (x * y - 2).sum(axis=1)
    np.testing.assert_array_equal(total.numpy(), expected)
    np.testing.assert_allclose(average.numpy(), expected / 40, rtol=1e-6)
    table = device.tensor(np.zeros((30, 2), np.int32))
    bounds(device.tensor(x), y, 2, axis=1, out=(table[:, 1], average))
    np.testing.assert_array_equal(table[:, 1].numpy(), expected)
    x_on, y_on = device.tensor(x), device.tensor(y)
    with device.record() as program:
        bounds(x_on, y_on, 2, axis=1, out=(table[:, 0], average))
    x_on[...] = x + 1
    program.run()
    np.testing.assert_array_equal(table[:, 0].numpy(), ((x + 1) * y - 2).sum(axis=1))


def test_no_elements(device):
    x = device.tensor(np.zeros((0, 3), np.float32))
    assert kernels.sum(x, 0).numpy().tolist() == [0, 0, 0]
    assert kernels.prod(x).item() == 1
    assert kernels.sum(x, 1).shape == (0,)
    assert not kernels.any(x).item()
    assert kernels.all(x).item()


def test_refusals(device, message):
    """By reductions, and by the kernels of the other modules."""
    x, ints = device.tensor(random((3, 4), "float32")), device.tensor(np.arange(-1, 3, dtype="i4"))
    make, scan = vkops.ReductionKernel, vkops.ScanKernel
    mean = make("T1 x", "T1 y", "x", "a + b", "y = a", None, "mean")
    place = scan("T x", "raw T y", "x", "a + b", "y[i] = item", name="place")
    check_refusals(
        message,
        lambda: kernels.max(x[:0]),
        lambda: kernels.argmax(x[:0], dtype="int32"),
        lambda: kernels.sum(x, 2),
        lambda: kernels.sum(x, (0, -2)),
        lambda: kernels.sum(x, 0, out=device.tensor(np.zeros(3, "f4"))),
        lambda: kernels.sum(x, 0, out=device.tensor(np.zeros(4, int))),
        lambda: kernels.sum(x, dtype="complex64"),
        lambda: kernels.sum(x, dtype="bool"),
        lambda: kernels.sum(x, dtype="no type"),
        lambda: kernels.mean(x, dtype="int32"),
        lambda: kernels.argmax(x, (0, 1), dtype="int32"),
        lambda: mean(3),
        lambda: make("T a", "T y", "a", "a + b", "y = a"),
        lambda: make("T x", "T y", "x", "a + b", "y = a", reduce_type="S"),
        lambda: kernels.cumsum(x, 2),
        lambda: kernels.cumsum(x, (0, 1)),
        lambda: kernels.cumsum(x, 0, out=x[:2].copy()),
        lambda: scan("T item", "T y", "a", "a + b", "y = a"),
        lambda: scan("T x", "T y", "x", "a + b", "y = a", scan_type="S"),
        lambda: place(x),
        lambda: kernels.sort(x, 2),
        lambda: kernels.sort(device.tensor(np.float32(3))),
        lambda: kernels.argsort(x, (0, 1), dtype="int32"),
        lambda: kernels.sort(np.zeros(3, complex), device=device),
        lambda: kernels.topk(x, 5, dtype="int32"),
        lambda: kernels.partition(x, "a"),
        lambda: kernels.partition(x, (0, 3), 0),
        lambda: kernels.partition(x, -13, None),
        lambda: kernels.nonzero(ints, size=-1, dtype="int32"),
        lambda: kernels.nonzero(ints[0], dtype="int32"),
        lambda: kernels.unique(ints, size="a"),
        lambda: kernels.unique(ints, size=-1),
        lambda: kernels.bincount(ints, dtype="int32"),
        lambda: kernels.bincount(ints, minlength=-1, dtype="int32"),
        lambda: kernels.bincount(ints, size=-1, dtype="int32"),
        lambda: kernels.bincount(x, dtype="int32"),
        lambda: kernels.searchsorted(ints.reshape(2, 2), ints, dtype="int32"),
        lambda: kernels.searchsorted(ints, ints, "middle", dtype="int32"),
        lambda: kernels.searchsorted(ints, 1.5, dtype="int32"),
        lambda: kernels.searchsorted(ints, 1, sorter=[0], dtype="int32"),
        lambda: kernels.searchsorted(ints, 1, sorter=[9] * len(ints), dtype="int32"),
        lambda: kernels.searchsorted(ints, 1, sorter=x, dtype="int32"),
        lambda: kernels.histogram(ints, 0, dtype="int32"),
        lambda: kernels.histogram(ints, [3, 1], dtype="int32"),
        lambda: kernels.histogram(ints, "auto", dtype="int32"),
        lambda: kernels.compress(np.ones(5, bool), ints),
    )


def test_wrong_arguments_name_the_function(device):
    with pytest.raises(TypeError, match=r"^sum\(\): missing a required argument: 'x'$"):
        kernels.sum()
    with pytest.raises(TypeError, match=r"^max\(\): got an unexpected keyword argument 'dtype'$"):
        kernels.max(device.tensor(np.ones(2)), dtype="float32")
