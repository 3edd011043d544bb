"""Handles of work that runs while the host continues."""

from __future__ import annotations

from _thread import start_new_thread
from collections.abc import Callable, Sequence
from threading import Lock, get_ident
from typing import Protocol, runtime_checkable

from vkops.gpu.adapters import forks


@runtime_checkable
class Pending(Protocol):
    """The handle that ``dispatch(..., wait=False)`` returns."""

    def wait(self) -> None:
        """Wait until the results are complete; a second call returns at once.

        Raises:
            VkopsError: the work failed.
        """


class BackgroundTask:
    """Work in a thread of its own, because streaming keeps the host busy.

    It begins when the tasks in ``after`` have ended. Waiting for an abandoned task waits for these.

    It uses bare locks: an interrupt inside of ``threading.Event.wait`` or ``Thread.start`` can
    leave an internal lock of theirs held, and whoever waits next would wait forever.
    """

    def __init__(self, work: Callable[[], None], after: Sequence[BackgroundTask] = ()) -> None:
        self._work = work
        self._after = after
        self._error: BaseException | None = None
        self._begun = Lock()  # taken by the thread when it begins, or by ``abandon``
        self._running = Lock()  # until the work has ended
        self._running.acquire()
        self._thread: int | None = None  # while it runs

    def start(self) -> None:
        """Start the thread."""
        start_new_thread(self._run, ())

    def abandon(self) -> None:
        """Drop the work if it has not begun, because nobody waits for it any more."""
        if self._begun.acquire(blocking=False):
            self._running.release()

    def _run(self) -> None:
        if not self._begun.acquire(blocking=False):
            return
        self._thread = get_ident()
        try:
            self._finish_others()
            self._work()
        except BaseException as error:
            self._error = error
        finally:
            del self._work  # it refers to what it streams
            self._after = ()
            self._thread = None  # another thread may get the number
            self._running.release()

    @property
    def is_running(self) -> bool:
        """Whether it has not ended."""
        return self._running.locked()

    @property
    def is_current(self) -> bool:
        """Whether the calling thread is the one that does the work."""
        return get_ident() == self._thread

    def finish(self) -> None:
        """Wait until the work has ended, with an error or without; in its own thread, do nothing.

        Raises:
            DeviceError: it ran when this process was forked off the one that has its thread.
        """
        if self.is_running:
            forks.check_not_forked()
        if not self.is_current:
            # Not ``with``: Python 3.14 may serve an interrupt between taking the lock and the
            # block, and the lock would stay taken. Here it serves none before the release.
            for _ in iter(self._running.acquire, None):
                self._running.release()
                break
            self._finish_others()

    def _finish_others(self) -> None:
        for each in self._after:
            each.finish()

    def wait(self) -> None:
        """Wait until the results are complete; see ``Pending``."""
        self.finish()
        if self._error is not None:
            raise self._error
