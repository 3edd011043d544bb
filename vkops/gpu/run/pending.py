"""Handles of work that runs while the host continues."""

from __future__ import annotations

from _thread import start_new_thread
from collections.abc import Callable
from threading import Lock, get_ident
from typing import Protocol, runtime_checkable


@runtime_checkable
class Pending(Protocol):
    """The handle that ``dispatch(..., wait=False)`` returns."""

    def wait(self) -> None:
        """Wait until the results are complete; a second call returns at once.

        Raises:
            VkopsError: what went wrong.
        """


class BackgroundTask:
    """Work in a thread of its own, for streaming keeps the host busy.

    Python's Event and Thread are made of locks that an interrupt (KeyboardInterrupt) can leave
    held forever. This class waits for one lock, held until the work has ended.
    """

    def __init__(self, work: Callable[[], None]) -> None:
        self._work = work
        self._error: BaseException | None = None
        self._thread: int | None = None
        self._running = Lock()
        self._running.acquire()
        self._begun = Lock()  # taken by the thread, or by whoever cancels the work

    def start(self) -> None:
        """Start the thread."""
        start_new_thread(self._run, ())

    def cancel(self) -> None:
        """End the work, unless the thread has begun it."""
        if self._begun.acquire(blocking=False):
            del self._work
            self._running.release()

    def _run(self) -> None:
        if not self._begun.acquire(blocking=False):
            return
        try:
            self._thread = get_ident()
            self._work()
        except BaseException as error:
            self._error = error
        finally:
            del self._work  # it refers to what it streams
            self._thread = None  # a later thread can have the same number
            self._running.release()

    def finish(self) -> None:
        """Wait until the work has ended, with an error or without; called by the work, return."""
        if get_ident() != self._thread:
            with self._running:
                pass

    def wait(self) -> None:
        """Wait until the results are complete; a second call returns at once.

        Raises:
            VkopsError: what went wrong.
        """
        self.finish()
        if self._error is not None:
            raise self._error
