"""A cache that an interrupt leaves empty at worst, never broken."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from cachetools import LRUCache

K = TypeVar("K")
V = TypeVar("V")


class Kept(LRUCache[K, V]):
    """What was used last, of so much size in all; cachetools changes it in several steps."""

    def __init__(self, maxsize: float, getsizeof: Callable[[V], float] | None = None) -> None:
        self._arguments = maxsize, getsizeof
        super().__init__(maxsize, getsizeof)

    def __setitem__(self, key: K, value: V) -> None:
        try:
            super().__setitem__(key, value)
        except ValueError:  # too large
            raise
        except BaseException:
            super().__init__(*self._arguments)
            raise
