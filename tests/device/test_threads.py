"""One device used from many threads, and many devices in one process."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np

import vkops


def shuffle(device, seed):
    """Split, reverse, join, many times, on arrays of sizes of their own; True if all is right."""
    random = np.random.default_rng(seed)
    for _ in range(40):
        array = random.integers(0, 1000, tuple(random.integers(1, 60, 2)))
        cut = int(random.integers(0, array.shape[0] + 1))
        first, second = vkops.split(array, [cut, array.shape[0] - cut], device=device)
        joined = vkops.join([second, first])[::-1]
        if not np.array_equal(joined.numpy(), np.concatenate([array[cut:], array[:cut]])[::-1]):
            return False
    return True


def test_one_device_many_threads(device):
    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(lambda seed: shuffle(device, seed), range(16)))


def test_many_devices_at_once(adapter):
    def own_device(seed):
        with vkops.Device(adapter.index) as device:
            return shuffle(device, seed)

    with ThreadPoolExecutor(4) as pool:
        assert all(pool.map(own_device, range(4)))
