"""Strided views of an array of elements, and copies between them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import accumulate
from operator import mul

from vkops.plan.region import Ints, Read, Region


def packed_strides(sizes: Ints) -> Ints:
    """Row-major strides, in elements.

    >>> packed_strides((2, 3, 4))
    (12, 4, 1)
    """
    return tuple(accumulate(reversed(sizes[1:]), mul, initial=1))[::-1] if sizes else ()


@dataclass(frozen=True, slots=True)
class View:
    """``sizes`` elements of an array, the first at ``offset``, ``strides`` apart.

    >>> View.packed((4, 6)).narrow(1, 2, 3)
    View(sizes=(4, 3), strides=(6, 1), offset=2)
    """

    sizes: Ints
    strides: Ints
    offset: int = 0

    @classmethod
    def packed(cls, sizes: Ints) -> View:
        """The whole of a row-major array."""
        return cls(sizes, packed_strides(sizes))

    def narrow(self, axis: int, start: int, size: int) -> View:
        """The part of an axis that begins at ``start``."""
        sizes = (*self.sizes[:axis], size, *self.sizes[axis + 1 :])
        return replace(self, sizes=sizes, offset=self.offset + start * self.strides[axis])

    def window(self, starts: Ints, sizes: Ints, steps: Ints) -> View:
        """Element ``c`` of the result is element ``starts + c * steps`` of this view."""
        return View(
            sizes,
            tuple(map(mul, self.strides, steps)),
            self.offset + sum(map(mul, self.strides, starts)),
        )

    def permute(self, axes: Ints) -> View:
        """Axis ``i`` of the result is axis ``axes[i]`` of this view."""
        sizes, strides = (tuple(of[axis] for axis in axes) for of in (self.sizes, self.strides))
        return replace(self, sizes=sizes, strides=strides)

    def broadcast(self, sizes: Ints) -> View:
        """The same elements again and again along axes of size 1, and along new ones in front."""
        new = len(sizes) - len(self.sizes)
        strides = (
            stride if own == size else 0
            for own, size, stride in zip(self.sizes, sizes[new:], self.strides, strict=True)
        )
        return replace(self, sizes=sizes, strides=((0,) * new) + tuple(strides))


def copy(source: View, target: View, input: int = 0) -> Region:
    """The region that copies a view of an input to a view of an output, element by element."""
    return Region(
        target.sizes, target.offset, target.strides, Read(input, source.offset, source.strides)
    )
