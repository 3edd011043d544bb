"""Sorts: the elements and the indices that NumPy's stable sorts return."""

from __future__ import annotations

import numpy as np
import pytest
from kernel_checks import checked
from kernel_numbers import ALL

import vkops
from vkops import kernels
from vkops.errors import InvalidDescError

pytestmark = pytest.mark.features


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


@pytest.mark.parametrize("dtype", ALL)
def test_sorts_are_those_of_numpy_bit_by_bit(either_device, dtype):
    for count in (0, 1, 2, 65, 5000):
        x = any_bits((count,), dtype, count)
        tensor, order = either_device.tensor(x), np.argsort(x, kind="stable")
        np.testing.assert_array_equal(kernels.argsort(tensor, dtype="int32").numpy(), order)
        np.testing.assert_array_equal(bits(kernels.sort(tensor).numpy()), bits(x[order]))
    assert kernels.argsort(tensor).dtype == np.int64


@pytest.mark.parametrize("dtype", ["uint8", "float32", "int64"])
def test_sorts_on_gpus_of_whole_tiles_and_rows(device, dtype, change_device):
    change_device(is_cpu=False)
    for shape in ((1023,), (1024,), (1025,), (2047,), (2048,), (2049,), (3, 2048), (70, 33)):
        x = any_bits(shape, dtype, sum(shape))
        order, tensor = np.argsort(x, kind="stable"), device.tensor(x)
        np.testing.assert_array_equal(kernels.argsort(tensor, dtype="int32").numpy(), order)
        expected = bits(np.take_along_axis(x, order, -1))
        np.testing.assert_array_equal(bits(kernels.sort(tensor).numpy()), expected)


def test_nothing_is_found_by_checks_of_sorts_on_gpus(device, change_device):
    change_device(is_cpu=False)
    x = any_bits((3, 700), "uint8")
    with checked((8, 64)) as names:
        order = kernels.argsort(device.tensor(x), dtype="int32").numpy()
    np.testing.assert_array_equal(order, np.argsort(x, kind="stable"))
    assert len(names) > 9


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
    assert not [row.name for row in profile.by_kernel() if "copy" in row.name]


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
