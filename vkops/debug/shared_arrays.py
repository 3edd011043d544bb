"""Arguments of a shader whose arrays have bytes in common, so that their blocks share memory."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

_MAX_WORK = 10_000
"""The number of steps to search for a common byte; if it is exceeded, there may be one."""


class Layout(NamedTuple):
    """Arrays whose bytes, one array after the other, are those of a block or an image.

    If ``padded``, the block or image has more bytes.
    """

    arrays: Sequence[npt.NDArray[Any]] = ()
    padded: bool = False

    @property
    def key(self) -> object:
        """The addresses, strides and shapes of the arrays: equal for the same bytes."""
        places = ((_address(each), each.strides, each.shape) for each in self.arrays)
        return (*places, self.padded)

    def distance(self, other: Layout) -> int | None:
        """Return the byte at which another one begins, or None if the order of bytes differs."""
        if self.key == other.key:
            return 0
        both = (self, other)
        if any(each.padded or len(each.arrays) != 1 for each in both):
            return None
        (one,), (two,) = self.arrays, other.arrays
        if not (one.flags.c_contiguous and two.flags.c_contiguous):
            return None
        return _address(two) - _address(one)


def _address(array: npt.NDArray[Any]) -> int:
    return int(array.__array_interface__["data"][0])


def _bounds(array: npt.NDArray[Any]) -> tuple[int, int]:
    """Return the address of the first byte, and the address after the last byte."""
    spans = [(n - 1) * s for n, s in zip(array.shape, array.strides, strict=True)]
    low = _address(array) + sum(min(span, 0) for span in spans)
    return low, low + sum(map(abs, spans)) + array.itemsize


def overlaps(layouts: Sequence[Layout]) -> dict[int, list[int]]:
    """Return, by the number of a layout, the numbers of the layouts that overlap it."""
    result = defaultdict[int, list[int]](list)
    for one, other in {tuple(sorted(pair)) for pair in _pairs(layouts)}:
        result[one].append(other)
        result[other].append(one)
    return result


def _pairs(layouts: Sequence[Layout]) -> Iterator[tuple[int, int]]:
    arrays = [(n, each) for n, layout in enumerate(layouts) for each in layout.arrays if each.size]
    live: list[tuple[int, int, npt.NDArray[Any]]] = []
    for (low, high), number, array in sorted(
        ((_bounds(each), n, each) for n, each in arrays), key=lambda known: known[0]
    ):
        live = [each for each in live if each[0] > low]
        for _, other, another in live:
            if other != number and _share(array, another):
                yield number, other
        live.append((high, number, array))


def _share(one: npt.NDArray[Any], other: npt.NDArray[Any]) -> bool:
    shares_memory: Any = np.shares_memory  # NumPy's types of it differ between versions
    try:
        return bool(shares_memory(one, other, max_work=_MAX_WORK))
    except np.exceptions.TooHardError:
        return True
