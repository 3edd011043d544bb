"""Sorts: the elements and the indices that NumPy's stable sorts return."""

from __future__ import annotations

from contextlib import contextmanager
from importlib import import_module

import numpy as np
import pytest
from kernel_checks import checked
from kernel_numbers import ALL

import vkops
from vkops import kernels
from vkops.elementwise.kernel import ElementwiseKernel
from vkops.errors import InvalidDescError
from vkops.gpu.run.shader_dispatch import PreparedCall

pytestmark = pytest.mark.features
sort = import_module("vkops.kernels.sort")  # its name is also that of a function


def any_bits(shape, dtype, seed=0):
    """Random bits: many NaN, infinities, zeros and denormal numbers; most are equal to others."""
    dtype, random = np.dtype(dtype), np.random.default_rng(seed)
    some = random.integers(0, 256, (np.prod(shape) // 2 + 1, dtype.itemsize), np.uint8)
    if dtype.kind == "b":
        some %= 2
    values = some.view(dtype)[:, 0]
    if dtype.kind == "f":
        some[..., -1] |= random.choice([0, 0x7F, 0xFF], len(some)).astype(np.uint8)
        some[random.random(len(some)) < 0.2, :-1] = 0
        some[random.random(len(some)) < 0.2, -1] &= 0x80
        values[::9], values[1::9] = np.inf, -np.inf
    return random.choice(values, shape)


def bits(array):
    return np.ascontiguousarray(array).view(f"u{array.itemsize}")


FORMS = [("as on CPUs", dtype) for dtype in ALL]
FORMS += [("as on GPUs", dtype) for dtype in ("int8", "float16", "float64")]  # others are below


@pytest.mark.parametrize(("either_device", "dtype"), FORMS, indirect=["either_device"])
def test_sorts_are_those_of_numpy_bit_by_bit(either_device, dtype):
    """As on GPUs only elements, whose bits tell whether their order is kept: places are below."""
    for count in (0, 1, 2, 65, 5000):
        x = any_bits((count,), dtype, count)
        tensor, order = either_device.tensor(x), np.argsort(x, kind="stable")
        np.testing.assert_array_equal(bits(kernels.sort(tensor).numpy()), bits(x[order]))
        if either_device.tuning.is_cpu:
            np.testing.assert_array_equal(kernels.argsort(tensor, dtype="int32").numpy(), order)
    if either_device.tuning.is_cpu:
        assert kernels.argsort(tensor).dtype == np.int64


@pytest.fixture(params=[128, 256])
def gpu(request, device, change_device):
    """A device for which kernels are written as for GPUs, with so many invocations at most."""
    if request.param > device.info.limits.max_workgroup:
        pytest.skip("the device has smaller workgroups")
    change_device(is_cpu=False, invocations=request.param)
    return device


# Drivers for CPUs take long to compile these kernels: not all types are sorted by workgroups of both sizes.
TILES = [(128, "uint8"), (128, "float32"), (128, "int64"), (256, "uint8"), (256, "int64")]


@pytest.mark.parametrize(("gpu", "dtype"), TILES, indirect=["gpu"])
def test_sorts_on_gpus_of_whole_tiles_and_rows(gpu, dtype):
    tile = sort._tile_length(8 * np.dtype(dtype).itemsize, sort._lanes(gpu))
    for shape in (tile - 1, tile, tile + 1, 3 * tile + 5, (3, tile), (70, 33), (300, 9)):
        x = any_bits(shape, dtype, np.prod(shape))
        order, tensor = np.argsort(x, kind="stable"), gpu.tensor(x)
        np.testing.assert_array_equal(kernels.argsort(tensor, dtype="int32").numpy(), order)
        expected = bits(np.take_along_axis(x, order, -1))
        np.testing.assert_array_equal(bits(kernels.sort(tensor).numpy()), expected)
    columns = tensor[::-1].T
    order = np.argsort(x[::-1].T, 0, kind="stable")
    np.testing.assert_array_equal(kernels.argsort(columns, 0, dtype="int32").numpy(), order)


def test_equal_keys_of_many_tiles_keep_their_order(gpu):
    zeros, few = np.zeros(30_000, np.uint8), np.arange(30_000) // 9_999
    for x, descending in ((zeros, False), (few.astype(np.uint8), True), (few, False)):
        order = np.argsort(-x.astype(np.int32) if descending else x, kind="stable")
        got = kernels.argsort(gpu.tensor(x), descending=descending, dtype="int32")
        np.testing.assert_array_equal(got.numpy(), order)


def test_nothing_is_found_by_checks_of_sorts_on_gpus(gpu):
    x = any_bits((3, 700), "uint8")
    with checked((4, 64)) as names:
        order = kernels.argsort(gpu.tensor(x), dtype="int32").numpy()
    np.testing.assert_array_equal(order, np.argsort(x, kind="stable"))
    # All digits are counted, and where they begin is found; then those of keys and rows are sorted.
    assert names == ["sort"] * 4 + ["converted", "argsort"]


@pytest.mark.parametrize("gpu", [128], indirect=True)
def test_tiles_of_a_sort_that_go_on_in_any_order_have_no_race(gpu):
    x = any_bits((3600,), "uint8")
    with checked((32,), schedules=3, seed=4) as names:
        got = kernels.sort(gpu.tensor(x)).numpy()
    np.testing.assert_array_equal(got, np.sort(x))
    assert names == ["sort"] * 3


@contextmanager
def _one_tile(tile, known=None):
    """Let one workgroup alone move a tile: those before it have begun, and never go on.

    ``known`` is the state that these have left, for a sort by one digit; else they did nothing.
    """
    zeros, run = sort.zeros, PreparedCall.run

    def state_of(shape, dtype, device):
        result = zeros(shape, dtype, device=device)
        if known is not None:
            result[:, 2:] = known[:, 2:]
        result[:, 0, 0] = np.uint32(tile)
        return result

    def run_one(call, device, memory, groups, push):
        moves = any(block.name == "moved" for block in call.shader.blocks)
        run(call, device, memory, (1, 1, 1) if moves else groups, push)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ElementwiseKernel, "_signature", lambda *_: None)  # calls kept from before
        patch.setattr(sort, "zeros", state_of)
        patch.setattr(PreparedCall, "run", run_one)
        yield


@pytest.mark.parametrize("number", [0, 1, 4])
def test_a_workgroup_counts_the_tiles_that_others_have_not_counted(gpu, number):
    """So it needs no progress of these."""
    tile = sort._tile_length(8, sort._lanes(gpu))
    x = any_bits((5 * tile - 3,), "uint8")
    with _one_tile(number):
        got = kernels.sort(gpu.tensor(x)).numpy()
    places = np.argsort(np.argsort(x, kind="stable"))[number * tile :][:tile]
    np.testing.assert_array_equal(got[places], x[number * tile :][:tile])


def test_a_workgroup_goes_back_to_the_last_offsets_that_are_known(gpu):
    tile = sort._tile_length(8, sort._lanes(gpu))
    x = any_bits((5 * tile,), "uint8")
    tiles = [np.bincount(each, minlength=256) for each in x.reshape(5, tile)]
    starts = np.cumsum(sum(tiles)) - sum(tiles)
    ends = np.cumsum([starts, *tiles], 0).astype(np.uint32)
    state = np.concatenate([ends[:1], ends | 1 << 31])[None]  # its first row is that of numbers
    counts = np.diff(ends, axis=0) + 1
    places = np.argsort(np.argsort(x, kind="stable"))[4 * tile :]
    for missing, counted in ([], [5]), ([5], [4]), ([3], [4, 5]), ([2, 4], []), ([], [2, 3, 4, 5]):
        known = state.copy()
        for row in counted:
            known[0, row] = counts[row - 2]
        for row in missing:
            known[0, row, ::3] = 0  # of some digits
        with _one_tile(4, known):
            got = kernels.sort(gpu.tensor(x)).numpy()
        np.testing.assert_array_equal(got[places], x[4 * tile :], err_msg=str((missing, counted)))


def test_descending_partitions_and_the_largest(device):
    x = np.random.default_rng(5).integers(-9, 9, (6, 100)).astype(np.float32)
    x[2, 7] = np.nan
    tensor = device.tensor(x)
    order = np.argsort(np.where(np.isnan(x), -np.inf, -x), axis=1, kind="stable")
    got = kernels.argsort(tensor, descending=True, dtype="int32").numpy()
    np.testing.assert_array_equal(got, order)
    for k in (0, 1, 7, 100):
        values, indices = kernels.topk(tensor, k, dtype="int32")
        np.testing.assert_array_equal(indices.numpy(), order[:, :k])
        np.testing.assert_array_equal(values.numpy(), np.take_along_axis(x, order[:, :k], 1))
    values, _ = kernels.topk(tensor, 2, axis=0, largest=False, dtype="int32")
    np.testing.assert_array_equal(values.numpy(), np.sort(x, 0)[:2])
    parts = kernels.partition(tensor, (3, -2)).numpy()
    np.testing.assert_array_equal(parts[:, (3, -2)], np.partition(x, (3, -2))[:, (3, -2)])


def test_keys_with_values_in_a_recorded_program(device):
    rng = np.random.default_rng(6)
    keys = device.tensor(rng.integers(0, 99, 1000, np.uint32))
    values = device.tensor(np.arange(1000.0))
    with device.record() as program:
        order = kernels.argsort(keys, dtype="int32")
        moved = vkops.take_along_axis(values, order)
    keys[...] = again = rng.integers(0, 99, 1000, np.uint32)
    program.run()
    np.testing.assert_array_equal(moved.numpy(), np.argsort(again, kind="stable"))


def test_elements_are_not_copied_before_they_are_sorted(device):
    tensor = device.tensor(any_bits((2, 70), "float32"))
    with vkops.profile() as profile:
        kernels.sort(tensor)
    copies = sum(row.count for row in profile.by_kernel() if "copy" in row.name)
    assert copies <= (not device.tuning.is_cpu)  # of zeros, to what workgroups of GPUs share


def test_an_array_that_is_too_large_to_sort(small_buffers):
    x = small_buffers.tensor(np.zeros(1024, np.float32))
    generator = kernels.random.Philox(0)
    for name, call in (("argsort", kernels.argsort), ("permutation", generator.permutation)):
        message = rf"{name} x: needs 8192 bytes .* \[EW-07\]"
        with pytest.raises(InvalidDescError, match=message):
            call(x, dtype="int32")
    assert generator.position == 0
    with pytest.raises(InvalidDescError, match=r"histogram x: covers 8192 bytes, .* \[EW-07\]"):
        kernels.histogram(x.broadcast_to((2, 1024)).copy(), 5, (0, 1), dtype="int32")
