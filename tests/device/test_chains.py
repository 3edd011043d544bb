"""Random chains of everything that uses a device, each compared with the same on NumPy.

They run in processes of their own. Each submission takes at least so many microseconds, while which
further calls are collected.
"""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from chains import Chain, ChainSetup
from imitated import environment, layer
from processes import call

import vkops

DEVICES = {"mapped": [False], "staged": [True], "two": [False, True, False]}
"""By kind of chain: for each device, whether it moves data through staging memory."""


def main(index, kind, threads, steps, seed, microseconds=0):
    if microseconds:
        layer().slow(microseconds)
    devices = [vkops.Device(index, staged=staged) for staged in DEVICES[kind]]
    setup = ChainSetup(devices)

    def thread(number):
        for at in range(steps // 60):
            Chain(setup, (seed * threads + number) * 100_000 + at).run(60)

    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(thread, range(threads)))
    for tensor, array in setup.shared:
        np.testing.assert_array_equal(tensor.numpy(), array)
    print("right")


@pytest.mark.parametrize(
    ("threads", "steps"),
    [(1, 360), (8, 60), *[pytest.param(n, 36_000 // n, marks=pytest.mark.slow) for n in (1, 8)]],
)
@pytest.mark.parametrize("kind", DEVICES)
def test_chains(adapter, kind, threads, steps):
    assert call(main, adapter.index, kind, threads, steps, 0) == "right\n"


@pytest.mark.memory
@pytest.mark.system("cc")
@pytest.mark.parametrize(
    ("threads", "steps"),
    [(1, 120), (4, 60), *[pytest.param(n, 7_200 // n, marks=pytest.mark.slow) for n in (1, 8)]],
)
def test_chains_of_collected_calls(adapter, monkeypatch, threads, steps):
    for name, value in environment().items():
        monkeypatch.setenv(name, value)
    assert call(main, adapter.index, "two", threads, steps, 5, 1_000) == "right\n"


@pytest.mark.memory
def test_chains_with_waits(adapter, monkeypatch):
    monkeypatch.setenv("VKOPS_SYNC", "1")
    assert call(main, adapter.index, "two", 2, 120, 7) == "right\n"
