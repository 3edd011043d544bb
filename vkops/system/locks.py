"""Locks that an interrupt does not leave held."""

from __future__ import annotations

import _thread
import sys


class Lock(_thread.RLock):  # type: ignore[misc]  # it is final only in typeshed
    """A lock that ``with`` releases whenever an interrupt comes; a thread may take it again.

    Python 3.14 serves signals between ``__enter__``, if it is a function of C, and the block: the
    lock would be kept. It serves none after a step of a loop, nor when a function of Python
    returns.
    """

    if sys.version_info >= (3, 14):

        def __enter__(self) -> bool:  # type: ignore[override]
            for _ in iter(self.acquire, None):
                break
            return True
