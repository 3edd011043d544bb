"""Scans: results of NumPy, and bits that a model of the order of operations says."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import replace

import numpy as np
import pytest
from kernel_checks import checked
from kernel_numbers import ALL, FLOATS, random, same

import vkops
from vkops import kernels
from vkops.elementwise.kernel import ElementwiseKernel
from vkops.gpu.run.shader_dispatch import PreparedCall
from vkops.kernels import scan
from vkops.kernels.scan import RUN

pytestmark = pytest.mark.features

BLOCK = 32 * RUN
"""The elements that a workgroup of a GPU scans."""


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


@pytest.mark.parametrize(
    ("dtype", "sizes"), [("float32", (8, 32, 64)), ("int64", (32,)), ("bool", (32,))]
)
def test_nothing_is_found_by_checks_and_the_interpreter_computes_the_same_bits(
    either_device, dtype, sizes
):
    """With subgroups of several sizes for one type: invocations do the same with all types."""
    x = either_device.tensor(random((3, 1100), dtype))
    with checked(sizes) as names:
        kernels.cumsum(x, 1)
        kernels.cumsum(x[:, ::-70], 0)
        kernels.sum(x, 1)
    assert len(names) == (8 if either_device.tuning.is_cpu else 4)


def test_rows_are_scanned_in_place_without_a_race(either_device):
    """Rows of several runs, of which not all workgroups have as many."""
    for shape in ((20, 96), (7, 300), (2, 1000)):
        x = random(shape, "int32")
        tensor = either_device.tensor(x)
        with checked((32,)):
            kernels.cumsum(tensor, 1, dtype="int32", out=tensor)
        np.testing.assert_array_equal(tensor.numpy(), np.cumsum(x, 1, dtype=np.int32))


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


@pytest.mark.parametrize(("dtype", "schedules"), [("float32", 5), ("int32", 2)])
def test_workgroups_that_go_on_in_any_order_have_no_race(device, change_device, dtype, schedules):
    change_device(is_cpu=False)
    with checked(subgroup_sizes=(16,), schedules=schedules, seed=4) as names:
        kernels.cumsum(device.tensor(random(1100, dtype)), dtype=dtype)
    assert names == ["cumsum"]


@contextmanager
def _one_workgroup(device, block, monkeypatch, known=()):
    """Let one workgroup alone scan a block: those before it have begun, and never go on.

    ``known`` are the results that these have told, the words of ``run_sums`` but for the first.
    """
    zeros, run = scan.zeros, PreparedCall.run
    with monkeypatch.context() as patch:
        patch.setattr(ElementwiseKernel, "_signature", lambda *_: None)  # calls kept from before
        patch.setattr(device, "tuning", replace(device.tuning, is_cpu=False))

        def results(size, dtype, device):
            result = zeros(size, dtype, device=device)
            if len(known):
                result[...] = known
            result[:1] = np.array([block], np.uint32)
            return result

        def run_one(call, device, memory, groups, push):
            run(call, device, memory, (1, 1, 1), push)

        patch.setattr(scan, "zeros", results)
        patch.setattr(PreparedCall, "run", run_one)
        yield


@pytest.mark.parametrize("dtype", ["float32", "int64", "float64", "bool", "uint8"])
@pytest.mark.parametrize("block", [0, 1, 32, 33, 65])
def test_a_workgroup_computes_what_others_have_not_told(device, monkeypatch, dtype, block):
    """So it needs no progress of these."""
    x = random((block + 2) * BLOCK - 5, dtype)
    out = device.tensor(np.zeros(x.shape, dtype))
    with _one_workgroup(device, block, monkeypatch):
        most = "a || b" if dtype == "bool" else "a + b"
        vkops.ScanKernel("T x", "T y", "x", most, "y = item")(device.tensor(x), out=out)
    part = slice(block * BLOCK, (block + 1) * BLOCK)
    operation = np.logical_or if dtype == "bool" else np.add
    np.testing.assert_array_equal(out.numpy()[part], scanned(x, 0, operation)[part])


def test_a_workgroup_looks_for_parts_of_what_is_missing(device, monkeypatch):
    blocks, told, zeros = 1091, [], scan.zeros
    x = random(blocks * BLOCK, "float32")
    with monkeypatch.context() as patch:
        patch.setattr(device, "tuning", replace(device.tuning, is_cpu=False))
        patch.setattr(scan, "zeros", lambda *a, **b: told.append(zeros(*a, **b)) or told[-1])
        tensor = device.tensor(x)
        expected = kernels.cumsum(tensor).numpy()
    np.testing.assert_array_equal(expected, scanned(x, 0, np.add))
    begins = {"block": 0, "end": blocks, "group": 2 * blocks + blocks // 32}
    begins["groups"] = 2 * blocks + 1
    for missing in (
        ["block 0"], ["block 1088"], ["end 1089"], ["group 0"], ["group 33"], ["groups 0"],
        ["groups 0", "group 5", "block 165", "block 191", "group 31", "end 1089", "block 1089"],
    ):  # fmt: skip
        known = told[0].numpy().copy()
        for each in missing:
            kind, number = each.split()
            at = RUN + 2 * (begins[kind] + int(number))
            assert (known[at : at + 2] >= 1 << 16).all()
            known[at : at + 2] = 0
        out = device.tensor(np.zeros(x.shape, "float32"))
        with _one_workgroup(device, 1090, monkeypatch, known):
            kernels.cumsum(tensor, out=out)
        np.testing.assert_array_equal(out.numpy()[-BLOCK:], expected[-BLOCK:], err_msg=str(missing))


@pytest.mark.parametrize("block", [2, 40])
def test_a_workgroup_finds_segments_in_what_is_missing(device, monkeypatch, block):
    sums = vkops.ScanKernel(
        "T x, bool first", "T y", "x", "across_seg_boundary ? b : a + b", "y = item",
        is_segment_start_expr="first",
    )  # fmt: skip
    x = random((block + 1) * BLOCK, "int32")
    for start in (0, 7, BLOCK - 1, (block - 1) * BLOCK + 40, block * BLOCK + 3):
        first = np.arange(x.size) == start
        out = device.tensor(np.zeros(x.shape, "int32"))
        with _one_workgroup(device, block, monkeypatch):
            sums(device.tensor(x), device.tensor(first), out=out)
        expected = np.cumsum(x)
        expected[start:] -= expected[start] - x[start]
        np.testing.assert_array_equal(out.numpy()[block * BLOCK :], expected[block * BLOCK :])
