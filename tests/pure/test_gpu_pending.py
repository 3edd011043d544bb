"""Work in the background: interrupts at any moment of its start, and of a wait for it."""

import time
from threading import Thread

import pytest
from interrupts import interrupted_at

from vkops.gpu.run.pending import BackgroundTask

SECONDS = 10
"""After which a thread is taken to wait forever."""


@pytest.mark.parametrize("name", ["start", "wait"])
def test_others_can_wait_after_an_interrupt_at_any_moment(name):
    number, was_interrupted = 0, True
    while was_interrupted:
        number += 1
        task = BackgroundTask(lambda: time.sleep(0.002))
        if name == "wait":
            task.start()
        was_interrupted = interrupted_at(number, getattr(task, name))
        if was_interrupted and name == "start":
            task.abandon()
        other = Thread(target=task.wait, daemon=True)
        other.start()
        other.join(SECONDS)
        assert not other.is_alive(), f"interrupt {number}"
    assert number > 2


def test_an_error_of_the_work_is_raised_by_each_wait():
    def fail():
        raise ValueError("wrong")

    task = BackgroundTask(fail)
    task.start()
    for _ in range(2):
        with pytest.raises(ValueError, match="wrong"):
            task.wait()


def test_the_work_does_not_wait_for_itself():
    seen = []
    task = BackgroundTask(lambda: seen.append((task.is_current, task.finish())))
    task.start()
    task.wait()
    assert (seen, task.is_current) == ([(True, None)], False)
