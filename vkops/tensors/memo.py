"""An LRU cache that threads, interrupts and re-entry leave whole."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

from cachetools import LRUCache

V = TypeVar("V")


class Memo(Generic[V]):
    """Values that were used last, of so much size in all.

    cachetools changes a cache in several steps. So whoever uses it takes it away meanwhile: what
    comes in between, be it another thread, a signal handler or an interrupt, finds none. At worst
    values are made again.
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
        """The value of a key; made, and kept unless it is too large, where there is none."""
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
