"""An LRU cache that is safe with threads, interrupts and re-entry."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

from cachetools import LRUCache

V = TypeVar("V")


class Memo(Generic[V]):
    """The most recently used values, up to a total size.

    cachetools changes a cache in several steps, so each call takes the cache out while it uses it:
    another thread or a signal handler meanwhile finds none, and starts a new one. At worst, values
    are made again.
    """

    def __init__(self, maxsize: int, size: Callable[[V], int] = lambda value: 1) -> None:
        self._arguments = maxsize, size
        self._idle: list[LRUCache[Hashable, V]] = []

    def _take(self) -> LRUCache[Hashable, V]:
        try:
            return self._idle.pop()
        except IndexError:
            return LRUCache(*self._arguments)

    def get(self, key: Hashable, make: Callable[[], V]) -> V:
        """The value of a key; if there is none, it is made, and kept unless it is too large."""
        cache = self._take()
        value = cache.get(key)
        if value is None:
            self._idle[:] = [cache]
            value = make()
            cache = self._take()
            if cache.getsizeof(value) <= cache.maxsize:
                cache[key] = value
        self._idle[:] = [cache]
        return value

    def values(self) -> list[V]:
        """The values that are kept now."""
        return [value for cache in self._idle for value in cache.values()]
