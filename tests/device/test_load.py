"""Many threads and processes on one adapter: nothing wrong, nothing lost, nobody waits for ever.

Each process is one of its own, so that a deadlock ends in a report of where its threads are. Run as
a program, this file is such a process: ADAPTER THREADS OPERATORS SEED, and 1 if each thread has a
device of its own.
"""

import faulthandler
import json
import sys
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import pytest

import vkops

SECONDS = 3000
"""After which a process is taken to hang: far above what it needs with others beside it."""

slow = pytest.mark.slow


def load(adapter, threads, operators, seed=0, own=0):
    """Run a process; operators found right, by thread."""
    from processes import python  # not there where this file is the program

    return json.loads(python(__file__, adapter.index, threads, operators, seed, own))


@pytest.mark.parametrize("operators", [50, pytest.param(10_000, marks=slow)], ids="{:,}".format)
def test_sixteen_threads(adapter, operators):
    right = load(adapter, 16, operators)
    assert len(right) == 16
    assert min(right) >= operators


def test_threads_with_devices_of_their_own(adapter):
    assert min(load(adapter, 4, 50, own=1)) >= 50


@pytest.mark.parametrize(("processes", "operators"), [(2, 50), pytest.param(8, 2_000, marks=slow)])
def test_processes_at_once(adapter, processes, operators):
    with ThreadPoolExecutor(processes) as pool:
        rights = pool.map(lambda seed: load(adapter, 2, operators, seed), range(processes))
        assert all(min(right) >= operators for right in rights)


def main(index, threads, operators, seed, own=0):
    import mixed_work

    faulthandler.dump_traceback_later(SECONDS, exit=True)
    mixed_work.stream_in_small_chunks()

    def thread(number, place):
        """Seeds of its own."""
        right, at = 0, (seed * threads + number) * operators * 10
        while right < operators:
            right += mixed_work.work(place, at)
            at += 1
        return right

    def thread_with_a_device(number):
        with vkops.Device(index) as device:
            return thread(number, mixed_work.Place(device))

    with vkops.Device(index) as device, ThreadPoolExecutor(threads) as pool:
        place = mixed_work.Place(device)
        work = thread_with_a_device if own else partial(thread, place=place)
        return list(pool.map(work, range(threads)))


if __name__ == "__main__":
    sys.path.append(str(Path(__file__).parents[1]))
    print(json.dumps(main(*map(int, sys.argv[1:]))))
