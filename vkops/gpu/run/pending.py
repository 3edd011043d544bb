"""Handles of work that runs while the host continues."""

from __future__ import annotations

from collections.abc import Callable
from threading import Event, Thread, current_thread
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
    """Work in a thread of its own, for streaming keeps the host busy."""

    def __init__(self, work: Callable[[], None]) -> None:
        self._work = work
        self._error: BaseException | None = None
        self._done = Event()
        self._thread = Thread(target=self._run, daemon=True)

    def start(self) -> None:
        """Start the thread.

        Raises:
            RuntimeError: the system has no more threads.
        """
        try:
            self._thread.start()
        except BaseException:
            self._done.set()
            raise

    def _run(self) -> None:
        try:
            self._work()
        except BaseException as error:
            self._error = error
        finally:
            del self._work  # it refers to what it streams
            self._done.set()

    @property
    def is_current(self) -> bool:
        """Whether the work itself is asking."""
        return current_thread() is self._thread

    def finish(self) -> None:
        """Wait until the work has ended, with an error or without; called by the work, return."""
        if not self.is_current:
            self._done.wait()

    def wait(self) -> None:
        """Wait until the results are complete; a second call returns at once.

        Raises:
            VkopsError: what went wrong.
        """
        self.finish()
        if self._error is not None:
            raise self._error
