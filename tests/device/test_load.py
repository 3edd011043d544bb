"""Many threads and processes on one adapter: nothing wrong, nothing lost, nobody waits for ever.

Each process is one of its own, so that a deadlock ends in a report of where its threads are. Run as
a program, this file is such a process: ADAPTER THREADS OPERATORS SEED.
"""

import faulthandler
import json
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import vkops

SECONDS = 3000
"""After which a process is taken to hang: far above what it needs with others beside it."""

slow = pytest.mark.slow


def load(adapter, threads, operators, seed=0):
    """Run a process; operators found right, by thread."""
    from processes import python  # not there where this file is the program

    return json.loads(python(__file__, adapter.index, threads, operators, seed))


@pytest.mark.parametrize("operators", [50, pytest.param(10_000, marks=slow)], ids="{:,}".format)
def test_sixteen_threads(adapter, operators):
    right = load(adapter, 16, operators)
    assert len(right) == 16
    assert min(right) >= operators


@pytest.mark.parametrize(("processes", "operators"), [(2, 50), pytest.param(8, 2_000, marks=slow)])
def test_processes_at_once(adapter, processes, operators):
    with ThreadPoolExecutor(processes) as pool:
        rights = pool.map(lambda seed: load(adapter, 2, operators, seed), range(processes))
        assert all(min(right) >= operators for right in rights)


def main(index, threads, operators, seed):
    import mixed_work

    faulthandler.dump_traceback_later(SECONDS, exit=True)
    mixed_work.stream_in_small_chunks()

    def thread(number):
        """Seeds of its own."""
        right, at = 0, (seed * threads + number) * operators * 10
        while right < operators:
            right += mixed_work.work(place, at)
            at += 1
        return right

    with vkops.Device(index) as device:
        place = mixed_work.Place(device)
        with ThreadPoolExecutor(threads) as pool:
            return list(pool.map(thread, range(threads)))


if __name__ == "__main__":
    sys.path.append(str(Path(__file__).parents[1]))
    print(json.dumps(main(*map(int, sys.argv[1:]))))
