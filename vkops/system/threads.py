"""Locks and computed attributes that work in threads and in forked children.

A forked child has only the thread that forked: locks that other threads held stay locked forever.
"""

from __future__ import annotations

import _thread
import os
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import RLock
from typing import TYPE_CHECKING, Any, Generic, Literal, TypeVar, overload
from weakref import WeakSet

if TYPE_CHECKING:
    from typing_extensions import Self

T = TypeVar("T")


def after_fork(action: Callable[[], None]) -> None:
    """Call a function in each process that is forked off this one, where there are forks."""
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=action)


class _Lock(_thread.RLock):  # type: ignore[misc]  # it is final only in typeshed
    """A lock that a ``with`` block always releases, even after an interrupt; it is reentrant.

    Python 3.14 may handle signals between an ``__enter__`` that is a C function and the block: the
    lock would stay locked. It handles none after a step of a loop, nor when a Python function
    returns, so ``__enter__`` is a Python function here, with a loop.
    """

    if sys.version_info >= (3, 14):

        def __enter__(self) -> bool:  # type: ignore[override]
            for _ in iter(self.acquire, None):
                break
            return True


locks: WeakSet[RLock] = WeakSet()
"""All locks that ``new_lock`` has made."""


def new_lock() -> RLock:
    """Make a lock that is free in a forked child even if another thread holds it in the parent.

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

    If threads read it at the same time, each may compute it, and all get the value that is ready
    first. Before Python 3.12, ``functools.cached_property`` has a lock: a forked child would wait
    for it forever if a thread of its parent was computing the attribute.
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


_changing_filters = new_lock()


@contextmanager
def filtered(action: Literal["error", "ignore"], category: type[Warning]) -> Iterator[None]:
    """Raise or ignore a kind of warnings in this block.

    Only one thread is in such a block at a time: Python saves the filters and restores them, so
    that one would restore those of another thread.
    """
    with _changing_filters, warnings.catch_warnings():
        warnings.simplefilter(action, category)
        yield
