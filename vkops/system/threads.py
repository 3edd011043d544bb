"""Locks and computed attributes for threads, of which a forked child has only one."""

from __future__ import annotations

import _thread
import os
import sys
from collections.abc import Callable
from threading import RLock
from typing import TYPE_CHECKING, Any, Generic, TypeVar, overload
from weakref import WeakSet

if TYPE_CHECKING:
    from typing_extensions import Self

T = TypeVar("T")


def after_fork(action: Callable[[], None]) -> None:
    """Call a function in each process that is forked off this one, where there are forks."""
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=action)


class _Lock(_thread.RLock):  # type: ignore[misc]  # it is final only in typeshed
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


locks: WeakSet[RLock] = WeakSet()
"""All locks that ``new_lock`` has made."""


def new_lock() -> RLock:
    """Make a lock that is free in a forked child, whichever other thread holds it in the parent.

    If the thread that forks holds it, the child holds it, too.
    """
    lock = _Lock()
    locks.add(lock)
    return lock


def _free_locks() -> None:
    for lock in locks:
        if not lock._is_owned():  # type: ignore[attr-defined]
            lock._at_fork_reinit()  # type: ignore[attr-defined]


after_fork(_free_locks)


class cached_property(Generic[T]):  # noqa: N801  # the name of the one in functools
    """An attribute that is computed when it is first read.

    Threads that read it at the same time may each compute it, and all get the value of the first
    that is done. ``functools.cached_property`` has a lock before Python 3.12, which a forked child
    would wait for if a thread of its parent was computing the attribute.
    """

    def __init__(self, compute: Callable[[Any], T]) -> None:
        self._compute = compute
        self.__doc__ = compute.__doc__

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    @overload
    def __get__(self, instance: None, owner: type | None = None) -> Self: ...

    @overload
    def __get__(self, instance: object, owner: type | None = None) -> T: ...

    def __get__(self, instance: object | None, owner: type | None = None) -> Any:
        if instance is None:
            return self
        return instance.__dict__.setdefault(self._name, self._compute(instance))
