"""Locks and computed attributes of objects that threads share, also in forked children."""

import re
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from forked_children import in_child

import vkops
from vkops.system.threads import cached_property, new_lock

PACKAGE = Path(vkops.__file__).parent
ELSEWHERE = {"system/threads.py", "gpu/run/pending.py"}
"""The second has locks that say whether work has ended, and asks for a fork first."""


LOCK = re.compile(
    r"\b(R?Lock|Condition|(Bounded)?Semaphore|allocate_lock)\(|functools(\.| import .*)cached_property"
)
"""A lock that is made, and an attribute that has one in Python 3.10 and 3.11."""


def test_all_locks_are_free_in_forked_children():
    found = {
        path.relative_to(PACKAGE).as_posix()
        for path in PACKAGE.rglob("*.py")
        if LOCK.search(path.read_text(encoding="utf-8"))
    }
    assert found == ELSEWHERE


@pytest.mark.posix("forks")
def test_a_lock_that_another_thread_holds_is_free_in_the_child():
    lock, ready, end = new_lock(), threading.Event(), threading.Event()

    def hold():
        with lock:
            ready.set()
            end.wait()

    thread = threading.Thread(target=hold)
    thread.start()
    ready.wait()
    assert not lock.acquire(blocking=False)
    assert in_child(lambda: lock.acquire(blocking=False)) == "True"
    end.set()
    thread.join()


@pytest.mark.posix("forks")
def test_a_lock_that_the_forking_thread_holds_is_held_in_the_child():
    lock = new_lock()

    def work():
        held = lock._is_owned()
        lock.release()
        return held, lock._is_owned()

    with lock:
        assert in_child(work) == "(True, False)"
        assert lock._is_owned()


class Slow:
    """An object whose attribute two threads compute at once."""

    def __init__(self):
        self.both, self.end = threading.Barrier(2), threading.Event()

    @cached_property
    def value(self):
        """Documented."""
        self.both.wait(10)
        return object()

    @cached_property
    def late(self):
        """Waits for the test."""
        self.both.wait(10)
        self.end.wait(10)
        return 1


def test_threads_get_one_value():
    slow = Slow()
    with ThreadPoolExecutor(2) as pool:
        one, other = pool.map(lambda _: slow.value, range(2))
    assert one is other is slow.value
    assert Slow.value.__doc__ == "Documented."


@pytest.mark.posix("forks")
def test_a_child_does_not_wait_for_an_attribute_that_a_thread_computes():
    slow, other = Slow(), Slow()
    thread = threading.Thread(target=lambda: slow.late)
    thread.start()
    slow.both.wait(10)
    other.both, _ = threading.Barrier(1), other.end.set()
    assert in_child(lambda: other.late) == "1"
    slow.end.set()
    thread.join()
