"""Scans: results of NumPy, and bits that a model of the order of operations says."""

from __future__ import annotations

import numpy as np
import pytest
from kernel_checks import checked
from kernel_numbers import ALL, FLOATS, random, same

import vkops
from vkops import kernels
from vkops.kernels.scan import RUN

pytestmark = pytest.mark.features


def scanned(x, axis, operation):
    """The bits of a scan: elements in the order that ``vkops.ScanKernel`` documents."""
    if axis is None:
        return scanned(x.reshape(-1), 0, operation)
    rows = np.moveaxis(x, axis, -1)
    return np.moveaxis(
        _rows(rows.reshape(-1, x.shape[axis]), operation).reshape(rows.shape), -1, axis
    )


def _rows(rows, operation):
    result, runs = rows.copy(), range(0, rows.shape[1], RUN)
    for first in runs:
        for k in range(first + 1, min(first + RUN, rows.shape[1])):
            result[:, k] = operation(result[:, k - 1], rows[:, k])
    if len(runs) > 1:
        sums = _rows(result[:, [min(first + RUN, rows.shape[1]) - 1 for first in runs]], operation)
        for number, first in enumerate(runs[1:]):
            last = sums[:, number]
            for k in range(first, min(first + RUN, rows.shape[1])):
                last = result[:, k] = operation(last, rows[:, k])
    return result


SHAPES = [
    ((1,), None), ((32,), 0), ((33,), None), ((1024,), 0), ((1025,), 0), ((3, 2100), 1), ((3, 70), None),
    ((70, 5), 0), ((4, 40, 3), 1), ((4, 3, 40), -1), ((0,), 0), ((3, 0), 1), ((0, 3), 1), ((), None),
]  # fmt: skip


@pytest.mark.parametrize(
    ("name", "dtype"), [*[("cumsum", dtype) for dtype in FLOATS], ("cumprod", "float32")]
)
def test_floats_have_the_bits_of_the_documented_order(device, name, dtype):
    operation = np.add if name == "cumsum" else np.multiply
    for shape, axis in SHAPES[:10]:
        x = random(shape, dtype)
        wide = x.astype(np.float32) if dtype == "float16" else x
        got = getattr(kernels, name)(x, axis, device=device)
        with np.errstate(all="ignore"):
            expected = scanned(wide, axis, operation).astype(dtype)
        if name == "cumprod":  # devices may flush denormal numbers
            small = abs(expected) <= np.finfo(dtype).tiny * 2**24
            expected[small] = got.numpy()[small]
        same(got, expected)


@pytest.mark.parametrize("dtype", ALL)
def test_functions_have_the_results_and_types_of_numpy(device, dtype):
    for name in ("cumsum", "cumprod")[: 1 + (dtype in ("bool", "uint8", "int32"))]:
        for shape, axis in SHAPES:
            x = random(shape, dtype, len(shape))
            got = getattr(kernels, name)(x, axis, device=device)
            with np.errstate(all="ignore"):
                expected = getattr(np, name)(x, axis)
            if dtype not in FLOATS:
                same(got, expected)
            assert (got.dtype, got.shape) == (expected.dtype, expected.shape)
    zeros = kernels.cumsum(np.array([-0.0, 0.0], np.float32), device=device).numpy()
    assert np.signbit(zeros).tolist() == [True, False]


def test_a_recorded_scan_in_place(device):
    array = random((50, 40), "int32")
    tensor = device.tensor(array)
    with device.record() as program:
        kernels.cumsum(tensor, 0, dtype="int32", out=tensor)
    program.run()
    np.testing.assert_array_equal(tensor.numpy(), np.cumsum(array, 0))


@pytest.mark.parametrize("count", [1, 32, 100, 3000])
def test_segments_and_items_before(either_device, count):
    device = either_device
    sums = vkops.ScanKernel(
        "T x, bool first", "T y, T z, int32 place", "x", "across_seg_boundary ? b : a + b",
        "y = item; z = prev_item; place = i + n", 0, "segments", None, "first",
    )  # fmt: skip
    x, first = random((2, count), "int32"), random((2, count), "bool", 1)
    first[1] = np.arange(count) % 1100 == 7
    got = [each.numpy() for each in sums(device.tensor(x), first, axis=1)]
    expected = np.zeros_like(x)
    for row in range(2):
        for k in range(count):
            expected[row, k] = x[row, k] + (expected[row, k - 1] if k and not first[row, k] else 0)
    np.testing.assert_array_equal(got[0], expected)
    np.testing.assert_array_equal(got[1], expected - x)
    np.testing.assert_array_equal(got[2], np.arange(count)[None] + count + 0 * x)


def test_expressions_that_are_not_commutative_and_raw_outputs(device):
    affine = vkops.ScanKernel(
        "uint32 x", "uint32 y", "x", "(a & 0xffffu) * (b & 0xffffu) & 0xffffu"
        " | ((a >> 16) * (b & 0xffffu) + (b >> 16)) << 16", "y = item", name="affine",
    )  # fmt: skip
    x = np.random.default_rng(0).integers(0, 2**32, 2000, np.uint32)
    expected, (factor, term) = [], (1, 0)
    for each in x.tolist():
        factor = factor * (each & 0xFFFF) & 0xFFFF
        term = (term * (each & 0xFFFF) + (each >> 16)) & 0xFFFF
        expected.append(factor | term << 16)
    assert affine(x, device=device).numpy().tolist() == expected
    evens = vkops.ScanKernel(
        "T x", "raw T y", "x % 2 == 0 ? 1 : 0", "a + b",
        "if (prev_item != item) y[prev_item] = x", 0, "evens", "int32",
    )  # fmt: skip
    x = random(5000, "int32")
    out = device.tensor(np.zeros(5000, np.int32))
    assert evens(x, out=out) is out
    even = x[x % 2 == 0]
    np.testing.assert_array_equal(out.numpy(), [*even, *[0] * (5000 - len(even))])


def test_a_raw_output_that_is_the_input(device):
    """The statement writes elements that other invocations have not read yet."""
    reverse = vkops.ScanKernel("T x", "raw T y", "x", "a + b", "y[n - 1 - i] = item")
    x = random(100, "int32")
    tensor = device.tensor(x)
    reverse(tensor, out=tensor)
    same(tensor, np.cumsum(x, dtype="int32")[::-1])


def test_any_and_most_of_booleans_and_floats(device):
    any_ = vkops.ScanKernel("bool x", "bool y", "x", "a || b", "y = item", name="any")
    x = np.arange(3000) == 2000
    np.testing.assert_array_equal(any_(x, device=device).numpy(), np.logical_or.accumulate(x))
    most = vkops.ScanKernel("T x", "T y", "x", "max(a, b)", "y = item", name="most")
    x = random((50, 60), "float32")
    got = most(x, axis=0, device=device).numpy()
    np.testing.assert_array_equal(got, np.maximum.accumulate(x, 0))
    assert repr(most) == "<vkops.ScanKernel 'most'>"


@pytest.mark.parametrize("dtype", ["float32", "int64", "bool"])
def test_nothing_is_found_by_checks_and_the_interpreter_computes_the_same_bits(
    either_device, dtype
):
    x = either_device.tensor(random((3, 1100), dtype))
    with checked() as names:
        kernels.cumsum(x, 1)
        kernels.cumsum(x[:, ::-70], 0)
        kernels.sum(x, 1)
    assert len(names) == 8


def test_all_layouts_have_the_bits_of_the_documented_order(either_device):
    for shape in ((70, 9), (3, 31), (65, 33), (2, 1024), (2, 1025), (4099, 8), (20011,)):
        x = random(shape, "float32")
        tensor = either_device.tensor(x)
        views = [(x, tensor), (x[..., ::-2], tensor[..., ::-2]), (x.T, tensor.T)]
        views.append((np.broadcast_to(x[:1], x.shape), tensor[:1].broadcast_to(shape)))
        for array, view in views:
            same(kernels.cumsum(view, -1), scanned(np.ascontiguousarray(array), -1, np.add))
        kernels.cumsum(tensor, -1, out=tensor)
        same(tensor, scanned(x, -1, np.add))
