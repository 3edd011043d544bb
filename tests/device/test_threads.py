"""Threads with devices of their own, and spawned processes.

One device and all kinds of work: test_load.py.
"""

from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from multiprocessing import get_context

import numpy as np
import pytest

import vkops

pytestmark = pytest.mark.memory


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


def test_many_devices_at_once(adapter):
    def own_device(seed):
        with vkops.Device(adapter.index) as device:
            return shuffle(device, seed)

    with ThreadPoolExecutor(4) as pool:
        assert all(pool.map(own_device, range(4)))


def in_a_spawned_process(adapter, seed):
    with vkops.Device(adapter) as device:
        return shuffle(device, seed)


def test_spawned_processes_have_devices_of_their_own(device):
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as pool:
        done = pool.map(in_a_spawned_process, [device.info.index] * 4, range(4))
        assert all(done)
