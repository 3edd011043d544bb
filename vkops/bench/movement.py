"""What a work moves, in neutral terms: what NumPy and the peers are given."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]
Shape = tuple[int, ...]


@dataclass(frozen=True)
class Split:
    """The pieces of an array, ``sizes`` long along ``axis``."""

    axis: int
    sizes: Shape

    @cached_property
    def _cuts(self) -> list[int]:
        return [int(cut) for cut in np.cumsum(self.sizes)[:-1]]

    def views(self, array: Array) -> list[Array]:
        """Each output as a view of the input."""
        return np.split(array, self._cuts, self.axis)


@dataclass(frozen=True)
class Step:
    """Every n-th element along each axis, from the first on, or backwards from the last."""

    strides: Shape

    def views(self, array: Array) -> list[Array]:
        """Each output as a view of the input."""
        return [array[tuple(slice(None, None, stride) for stride in self.strides)]]


@dataclass(frozen=True)
class Window:
    """A box of ``sizes`` elements."""

    offsets: Shape
    sizes: Shape

    def views(self, array: Array) -> list[Array]:
        """Each output as a view of the input."""
        box = zip(self.offsets, self.sizes, strict=True)
        return [array[tuple(slice(offset, offset + size) for offset, size in box)]]


@dataclass(frozen=True)
class Permute:
    """All elements, with the input's axes in another order."""

    order: Shape

    def views(self, array: Array) -> list[Array]:
        """Each output as a view of the input."""
        return [array.transpose(self.order)]


@dataclass(frozen=True)
class Join:
    """All inputs, one after the other along ``axis``."""

    axis: int


Movement = Split | Step | Window | Permute | Join


def with_numpy(movement: Movement, arrays: Sequence[Array]) -> list[Array]:
    """NumPy's way: new arrays, each packed.

    >>> with_numpy(Split(0, (1, 2)), [np.array([7, 8, 9])])
    [array([7]), array([8, 9])]
    """
    if isinstance(movement, Join):
        return [np.concatenate(arrays, movement.axis)]
    return [view.copy() for view in movement.views(arrays[0])]
