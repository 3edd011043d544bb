"""Many operators, dispatches and devices in one process: its memory does not grow.

The process is one of its own: what other tests leave behind would count, and so would coverage.
"""

import gc
import json
from ctypes import CDLL
from pathlib import Path
from random import Random

import mixed_work
import numpy as np
import operator_table
import psutil
import pytest
from processes import call

import vkops
from vkops.tensors.array_plan import MAX_KILOBYTES

pytestmark = pytest.mark.measured

GROWTH = 50_000
"""Kilobytes of resident memory that all may take after the warm-up."""

PER_DEVICE = 200
"""Kilobytes that a driver keeps of each device opened and closed, at most."""


def soak(work, adapter, count):
    return json.loads(call(work, adapter.index, count))


@pytest.mark.parametrize(
    "count", [3_000, pytest.param(100_000, marks=pytest.mark.slow)], ids="{:,}".format
)
def test_memory_stays_as_it_is_over_many_operators(adapter, count):
    measured = soak(operators, adapter, count)
    assert measured["right"] >= count
    assert measured["used"] == 0, measured
    assert measured["reserved"][0] == measured["reserved"][-1], measured
    assert max(measured["resident"]) - measured["resident"][0] < GROWTH, measured


@pytest.mark.parametrize(
    "count", [4_000, pytest.param(1_000_000, marks=pytest.mark.slow)], ids="{:,}".format
)
def test_memory_stays_as_it_is_over_many_dispatches(adapter, count):
    measured = soak(dispatches, adapter, count)
    assert measured["right"] == count
    assert len(set(measured["reserved"])) == len(set(measured["used"])) == 1, measured
    assert max(measured["resident"]) - measured["resident"][0] < GROWTH, measured


@pytest.mark.parametrize("count", [10, pytest.param(300, marks=pytest.mark.slow)])
def test_devices_that_are_closed_leave_little(adapter, count):
    measured = soak(devices, adapter, count)
    first, last = measured["resident"]
    assert measured["threads"][0] == measured["threads"][1], measured
    assert measured["files"][0] == measured["files"][1], measured
    assert measured["maps"][1] - measured["maps"][0] < 50 + count, measured
    assert last - first < 20_000 + PER_DEVICE * count, measured


# -- the processes ---------------------------------------------------------------------------------


def operators(index, count):
    """Run work of every kind; what is held when it is over, and in between from the warm-up on."""
    mixed_work.stream_in_small_chunks()
    measured = {"resident": [], "reserved": []}
    with vkops.Device(index) as device:
        setup = mixed_work.WorkSetup(device)
        if count >= MAX_KILOBYTES:  # fewer would not fill them
            fill_caches(device)
        right = seed = 0
        while right < count:
            right += mixed_work.work(setup, seed)
            seed += 1
            if right >= count // 4 and seed % (count // 100) == 0:
                measured["resident"].append(resident())
                measured["reserved"].append(device.memory_report().reserved)
        setup.shared.clear()
        del setup
        gc.collect()
        device.buffer(4).read()  # what nobody has waited for is over, and let go
        measured["resident"].append(resident())
        measured |= {"right": right, "used": device.memory_report().used}
    print(json.dumps(measured))


def fill_caches(device):
    """Let functions remember as much as they ever will."""
    x = device.tensor(np.zeros(MAX_KILOBYTES + 1, np.uint8))
    for n in range(1, x.size):
        vkops.join(vkops.split(x, [n, x.size - n]))
        vkops.slice(x, [n], [1])


def dispatches(index, count, rounds=100, cases=20):
    """Dispatch bound operators, half of them without waiting; compare each with NumPy each round."""
    random = Random(0)
    right, found = 0, {"resident": [], "reserved": [], "used": []}
    with vkops.Device(index) as device:
        work = []
        for _ in range(cases):
            case = operator_table.random_case(random)
            inputs, outputs = mixed_work.bindings(device, random, case)
            ready = device.compile_operator(device.create_operator(case.desc))
            work.append((case, inputs, outputs, ready.bind(inputs, outputs)))
        for number in range(rounds):
            for case, inputs, outputs, bound in work:
                mixed_work.fill(random, case, inputs)
                for _ in range(count // rounds // cases // 2):
                    bound.dispatch()
                    bound.start()
                    right += 2
                mixed_work.check(case, inputs, outputs)
            if number >= rounds // 10:
                report = device.memory_report()
                found["resident"].append(resident())
                found["reserved"].append(report.reserved)
                found["used"].append(report.used)
    print(json.dumps({"right": right, **found}))


def devices(index, count):
    """Open, use and close one device after the other; what is held after the first ones, and then."""
    measured = {"resident": [], "threads": [], "files": [], "maps": []}
    process = psutil.Process()
    for most in (20, count):
        for number in range(most):
            with vkops.Device(index) as device:
                parts = vkops.split(device.tensor(np.arange(100)), 2)
                assert parts[1].numpy()[0] == 50
            if number % 2:
                del device  # while tensors of it live on
        gc.collect()
        CDLL(None).malloc_trim(0)  # what is free in the midst of its heap, the C library keeps
        measured["resident"].append(resident())
        measured["threads"].append(process.num_threads())
        measured["files"].append(process.num_fds())
        measured["maps"].append(len(Path("/proc/self/maps").read_text().splitlines()))
    print(json.dumps(measured))


def resident():
    """Kilobytes of this process that are in memory."""
    return psutil.Process().memory_info().rss >> 10
