"""Kernels whose results have a size that elements decide, and those that count: as NumPy's."""

from __future__ import annotations

import numpy as np
import pytest
from kernel_numbers import ALL, FLOATS, INTEGERS, random, same

import vkops
from vkops import kernels

pytestmark = pytest.mark.features


@pytest.mark.parametrize("dtype", ALL)
def test_chosen_elements_of_all_types(device, dtype):
    x = random((7, 160), dtype)
    x[x == x[0, 3]] = 0
    if dtype in FLOATS:
        x[2, ::3], x[3, 1] = np.nan, -0.0
    tensor = device.tensor(x)
    for ours, theirs in zip(kernels.nonzero(tensor), np.nonzero(x), strict=True):
        same(ours, theirs)
    same(kernels.unique(tensor), np.unique(x))
    same(kernels.compress(x[0] != 0, tensor, 1), np.compress(x[0] != 0, x, 1))


def test_a_given_size_does_not_wait(device):
    x = np.array([5, 0, 3, 5, 0, 9], np.int32)
    tensor = device.tensor(np.zeros(6, np.int32))
    with device.record() as program:
        (few,), (many,) = (kernels.nonzero(tensor, size=n, dtype="int32") for n in (2, 7))
        chosen = kernels.compress(tensor, tensor, size=5)
        some = kernels.unique(tensor, size=2, return_counts=True, dtype="int32")
        more = kernels.unique(tensor, size=6, return_counts=True, dtype="int32")
        counts = kernels.bincount(tensor, size=6, dtype="int32")
        parts, _ = kernels.histogram(tensor, 2, (0, 8), dtype="int32")
    for call in (kernels.nonzero, kernels.unique, kernels.bincount, kernels.histogram):
        with device.record(), pytest.raises(vkops.DeviceError, match=r"size=|range="):
            call(tensor, dtype="int32")
    tensor[...] = x
    program.run()
    assert (few.tolist(), many.tolist()) == ([0, 2], [0, 2, 3, 5, 0, 0, 0])
    assert chosen.tolist() == [5, 3, 5, 9, 5]
    assert [each.tolist() for each in some] == [[0, 3], [2, 1]]
    assert [each.tolist() for each in more] == [[0, 3, 5, 9, 0, 0], [2, 1, 2, 1, 0, 0]]
    assert (counts.tolist(), parts.tolist()) == ([2, 0, 0, 1, 0, 2], [3, 2])


@pytest.mark.parametrize("wrong", [[1, 2.5], (1 << 40,), [[1], [2, 3]], ["a"]])
def test_lists_of_numbers_that_are_searched_for_have_the_data_type(device, wrong):
    with pytest.raises(vkops.InvalidDescError, match=r"^searchsorted v: .* \[EW-05\]$"):
        kernels.searchsorted(np.arange(4, dtype=np.int32), wrong, dtype="int32", device=device)


@pytest.mark.parametrize("dtype", ALL)
def test_searched_and_counted_numbers(device, dtype):
    a, v = np.sort(random((300,), dtype)), random((20, 30), dtype, 1)
    if dtype in FLOATS:
        a[-5:], v[0, :3] = np.nan, np.nan
    for side in ("left", "right"):
        same(kernels.searchsorted(a, v, side, device=device), np.searchsorted(a, v, side))
    assert kernels.searchsorted(a, a[3].item(), device=device).shape == ()
    same(kernels.searchsorted(a[:0], v, device=device), np.searchsorted(a[:0], v))
    same(kernels.searchsorted(a, v.tolist(), device=device), np.searchsorted(a, v))
    if dtype in INTEGERS:
        tensor = device.tensor(v)
        for options in ({}, {"minlength": 300}):
            expected = np.bincount(v.reshape(-1).astype(int), **options)
            same(kernels.bincount(tensor, **options), expected)


CASES = [
    (10, None), (7, (5, 60)), (3, (0.25, 40.75)), ([0, 1.5, 20, 99], None), ([-900, 10, 5000], None), (1, (99, 99)),
]  # fmt: skip


@pytest.mark.parametrize("dtype", ["uint8", "int16", "int32", "uint64", *FLOATS])
def test_histograms(device, dtype):
    x = random((40, 50), dtype)
    if dtype in FLOATS:
        x = (abs(x) * 30).astype(dtype)
    for bins, limits in CASES:
        expected, edges = np.histogram(x, bins, limits)
        got, found = kernels.histogram(x, bins, limits, device=device)
        np.testing.assert_array_equal(found, edges)
        assert found.dtype == edges.dtype
        same(got, expected)
    same(kernels.histogram(x[:0], 4, device=device)[0], np.histogram(x[:0], 4)[0])


def test_histograms_of_what_is_next_to_evenly_spaced_edges(either_device):
    for bins, limits in ((1, (0, 1)), (7, (-1, 1)), (256, (0, 1)), (1000, (-3, 1e-3))):
        edges = np.linspace(*limits, bins + 1, dtype=np.float32)
        near = [np.nextafter(edges, np.float32(to)) for to in (-np.inf, np.inf)]
        others = np.array([np.inf, -np.inf, np.nan, 3e38, -3e38, 0], np.float32)
        x = np.concatenate([edges, *near, others])
        got, found = kernels.histogram(x, bins, limits, device=either_device)
        same(got, np.histogram(x, found)[0])


@pytest.mark.parametrize("size", [1, 255, 256, 300, 1024, 1030])
def test_neighbours_that_count_the_same(either_device, size):
    x = np.repeat(np.arange(size, dtype=np.int32), 70)
    got = kernels.bincount(either_device.tensor(x), size=size, dtype="int32")
    same(got, np.full(size, 70, np.int32))


@pytest.mark.parametrize("dtype", ["uint8", "int64", *FLOATS])
def test_histograms_of_infinite_elements_and_edges(device, dtype):
    x = np.array([0, 1, 2, 100], dtype)
    if dtype in FLOATS:
        x = np.array([0, 2, np.nan, np.inf, -np.inf, np.inf, 9], dtype)
    for edges in ([0, 1.5, np.inf], [-np.inf, 1, 1e300], [-np.inf, np.inf], [1, np.inf, np.inf]):
        same(kernels.histogram(x, edges, device=device)[0], np.histogram(x, edges)[0])


# All sorts have the same shaders, because these take long to compile.
LEAST = """
from vkops import kernels
x = np.random.default_rng(0).integers(-50, 50, (3, 3000), np.int32)
t, f = device.tensor(x), device.tensor(x.astype(np.float32) / 8)
def same(ours, theirs):
    np.testing.assert_array_equal(ours.numpy(), theirs)
same(kernels.cumsum(t, 1, dtype="int32"), np.cumsum(x, 1))
same(kernels.cumsum(f, 0), np.cumsum(f.numpy(), 0))
same(kernels.sort(f, 1), np.sort(f.numpy(), 1))
same(kernels.argsort(f, None, dtype="int32"), np.argsort(x, None, kind="stable"))
same(kernels.topk(f, 5, largest=False, dtype="int32")[0], np.sort(f.numpy(), 1)[:, :5])
same(kernels.unique(f), np.unique(f.numpy()))
same(kernels.nonzero(t, dtype="int32")[1], np.nonzero(x)[1])
same(kernels.bincount(t, size=9, dtype="int32"), np.bincount(x[(x >= 0) & (x < 9)], minlength=9))
same(kernels.histogram(t, 7, dtype="int32")[0], np.histogram(x, 7)[0])
same(kernels.searchsorted(kernels.sort(f[0]), f, dtype="int32"), np.searchsorted(np.sort(x[0]), x))
print(*{call(lambda: use(t)) for use in (
    kernels.cumsum, kernels.argsort, lambda t: kernels.topk(t, 5), kernels.nonzero, kernels.bincount,
    kernels.histogram, lambda t: kernels.searchsorted(t[0], t), lambda t: kernels.unique(t, return_index=True),
)}, sep="\\n")
"""


@pytest.mark.system("cc")
def test_a_device_with_the_least_limits_and_no_features(adapter, faulty):
    printed = faulty(
        LEAST, adapter.index, "mapped", kind="minimum", VKOPS_LIMITS="minimum", VKOPS_EXPECT=""
    )
    names = "cumsum, argsort, topk, nonzero, bincount, histogram, searchsorted, unique"
    refused = f"InvalidDescError: NAME dtype: is int64, which needs shaderInt64, which {adapter.label} does not have: "
    expected = {
        refused.replace("NAME", name) + "give another dtype= [SH-02]" for name in names.split(", ")
    }
    assert {*printed.splitlines()} == expected
