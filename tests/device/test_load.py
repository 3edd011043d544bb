"""Many threads and processes on one adapter: nothing wrong, nothing lost, nobody waits for ever."""

import json
import sys
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import mixed_work
import pytest
from processes import call

import vkops

slow = pytest.mark.slow


def load(adapter, threads, operators, seed=0, own=0, interval=0.005):
    """Run a process; operators found right, by thread."""
    return json.loads(call(main, adapter.index, threads, operators, seed, own, interval))


@pytest.mark.parametrize("operators", [50, pytest.param(10_000, marks=slow)], ids="{:,}".format)
def test_sixteen_threads(adapter, operators):
    right = load(adapter, 16, operators)
    assert len(right) == 16
    assert min(right) >= operators


@pytest.mark.parametrize("operators", [30, pytest.param(2_000, marks=slow)], ids="{:,}".format)
def test_threads_that_take_turns_every_microsecond(adapter, operators):
    """What two threads do at the same time, they do here in nearly any order."""
    assert min(load(adapter, 8, operators, interval=1e-6)) >= operators


def test_threads_with_devices_of_their_own(adapter):
    assert min(load(adapter, 4, 50, own=1)) >= 50


@pytest.mark.parametrize(("processes", "operators"), [(2, 50), pytest.param(8, 2_000, marks=slow)])
def test_processes_at_once(adapter, processes, operators):
    with ThreadPoolExecutor(processes) as pool:
        rights = pool.map(lambda seed: load(adapter, 2, operators, seed), range(processes))
        assert all(min(right) >= operators for right in rights)


def main(index, threads, operators, seed, own, interval):
    sys.setswitchinterval(interval)
    mixed_work.stream_in_small_chunks()

    def thread(number, setup):
        """Seeds of its own."""
        right, at = 0, (seed * threads + number) * operators * 10
        while right < operators:
            right += mixed_work.work(setup, at)
            at += 1
        return right

    def thread_with_a_device(number):
        with vkops.Device(index) as device:
            return thread(number, mixed_work.WorkSetup(device))

    with vkops.Device(index) as device, ThreadPoolExecutor(threads) as pool:
        setup = mixed_work.WorkSetup(device)
        work = thread_with_a_device if own else partial(thread, setup=setup)
        print(json.dumps(list(pool.map(work, range(threads)))))
