"""Strided views of an array of elements."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import accumulate
from math import prod
from operator import mul
from typing import NamedTuple

Ints = tuple[int, ...]


def packed_strides(sizes: Ints) -> Ints:
    """Row-major strides, in elements."""
    return tuple(accumulate(reversed(sizes[1:]), mul, initial=1))[::-1] if sizes else ()


class View(NamedTuple):
    """``sizes`` elements of an array, the first at ``offset``, ``strides`` apart.

    Its dimensions are the caller's axes: those of size 1 are kept, and none are merged. The views
    of a region have a canonical form only together, because dimensions can be merged only where
    they are contiguous in all of them; ``plan.algebra.coalesce`` returns it.

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

    @property
    def bounds(self) -> tuple[int, int]:
        """The first and the last element that the view reaches; it must not be empty."""
        reach = [(n - 1) * stride for n, stride in zip(self.sizes, self.strides, strict=True)]
        first = self.offset + sum([r for r in reach if r < 0])
        return first, self.offset + sum([r for r in reach if r > 0])

    @property
    def extent(self) -> int:
        """Elements that the array must have for this view; 0 if the view is empty."""
        return 1 + self.bounds[1] if prod(self.sizes) else 0

    @property
    def is_contiguous(self) -> bool:
        """Whether the elements are stored one after the other, in row-major order."""
        packed = packed_strides(self.sizes)
        return self.strides == packed or all(
            n == 1 or stride == expected
            for n, stride, expected in zip(self.sizes, self.strides, packed, strict=True)
        )

    def narrow(self, axis: int, start: int, size: int, step: int = 1) -> View:
        """Take ``size`` indices of an axis, from ``start`` on and ``step`` apart."""
        sizes = (*self.sizes[:axis], size, *self.sizes[axis + 1 :])
        stride = self.strides[axis]
        strides = (*self.strides[:axis], step * stride, *self.strides[axis + 1 :])
        return View(sizes, strides, self.offset + start * stride)

    def window(self, starts: Ints, sizes: Ints, steps: Ints) -> View:
        """Element ``c`` of the result is element ``starts + c * steps`` of this view."""
        return View(
            sizes,
            tuple(map(mul, self.strides, steps)),
            self.offset + sum(map(mul, self.strides, starts)),
        )

    def select(self, parts: Sequence[int | range | None]) -> View:
        """Take one index of an axis, which is dropped, or a range of them; None adds an axis.

        >>> View.packed((4, 6)).select([1, None, range(4, 0, -2)])
        View(sizes=(1, 2), strides=(0, -2), offset=10)
        """
        sizes: list[int] = []
        strides: list[int] = []
        offset, old_strides = self.offset, iter(self.strides)
        for part in parts:
            if part is None:
                sizes.append(1)
                strides.append(0)
                continue
            stride = next(old_strides)
            if isinstance(part, range):
                sizes.append(len(part))
                strides.append(part.step * stride)
                part = part.start
            offset += part * stride
        return View(tuple(sizes), tuple(strides), offset)

    def shift(self, elements: int) -> View:
        """Move the view by a number of elements."""
        return View(self.sizes, self.strides, self.offset + elements)

    def permute(self, axes: Ints) -> View:
        """Axis ``i`` of the result is axis ``axes[i]`` of this view."""
        sizes, strides, offset = self
        return View(
            tuple([sizes[axis] for axis in axes]), tuple([strides[axis] for axis in axes]), offset
        )

    def broadcast(self, sizes: Ints) -> View:
        """Repeat the elements along axes of size 1, and along new axes in front."""
        new = len(sizes) - len(self.sizes)
        strides = (
            stride if old == size else 0
            for old, size, stride in zip(self.sizes, sizes[new:], self.strides, strict=True)
        )
        return View(sizes, ((0,) * new) + tuple(strides), self.offset)

    def flip(self, axes: Ints) -> View:
        """Reverse some axes."""
        steps = tuple([-1 if axis in axes else 1 for axis in range(len(self.sizes))])
        starts = tuple([n - 1 if axis in axes else 0 for axis, n in enumerate(self.sizes)])
        return self.window(starts, self.sizes, steps)

    def insert(self, axis: int, size: int = 1, stride: int = 0) -> View:
        """Add an axis; with stride 0, the elements repeat along it."""
        sizes = (*self.sizes[:axis], size, *self.sizes[axis:])
        return View(sizes, (*self.strides[:axis], stride, *self.strides[axis:]), self.offset)

    def with_rank(self, rank: int) -> View:
        """Drop axes of size 1 in front, or add some, so that there are ``rank`` axes."""
        view = self
        while len(view.sizes) > rank:
            view = view.take(0, 0)
        while len(view.sizes) < rank:
            view = view.insert(0)
        return view

    def unflatten(self, axis: int, sizes: Ints) -> View:
        """Split an axis into several, whose sizes multiply to its own.

        >>> View.packed((2, 6)).unflatten(1, (3, 2))
        View(sizes=(2, 3, 2), strides=(6, 2, 1), offset=0)
        """
        strides = tuple(stride * self.strides[axis] for stride in packed_strides(sizes))
        return View(
            (*self.sizes[:axis], *sizes, *self.sizes[axis + 1 :]),
            (*self.strides[:axis], *strides, *self.strides[axis + 1 :]),
            self.offset,
        )

    def take(self, axis: int, at: int) -> View:
        """Take one index of an axis, and drop the axis."""
        sizes, strides = (of[:axis] + of[axis + 1 :] for of in (self.sizes, self.strides))
        return View(sizes, strides, self.offset + at * self.strides[axis])

    def diagonal(self, offset: int, axis1: int, axis2: int) -> View:
        """The elements whose index along one axis is that along another plus ``offset``.

        They become the last axis, in place of the two.

        >>> View.packed((3, 4)).diagonal(2, 0, 1)
        View(sizes=(2,), strides=(5,), offset=2)
        """
        rows, columns = self.sizes[axis1], self.sizes[axis2]
        down, right = self.strides[axis1], self.strides[axis2]
        first, last = max(0, -offset), min(rows, columns - offset)
        others = [axis for axis in range(len(self.sizes)) if axis not in (axis1, axis2)]
        return View(
            (*(self.sizes[axis] for axis in others), max(0, last - first)),
            (*(self.strides[axis] for axis in others), down + right),
            self.offset + (first * (down + right) + offset * right if first < last else 0),
        )

    def reshape(self, sizes: Ints) -> View | None:
        """Return the elements in row-major order with other sizes; None if no strides express that.

        >>> View((4, 6), (12, 2)).reshape((2, 2, 2, 3))
        View(sizes=(2, 2, 2, 3), strides=(24, 12, 6, 2), offset=0)
        """
        runs: list[tuple[int, int]] = []  # (size, stride) of merged axes
        for size, stride in zip(self.sizes, self.strides, strict=True):
            if runs and runs[-1][1] == size * stride:
                runs[-1] = (runs[-1][0] * size, stride)
            elif size != 1:
                runs.append((size, stride))
        strides: list[int] = []
        remaining, stride = 1, 1
        for size in reversed(sizes):
            if size != 1 and remaining == 1:
                remaining, stride = runs.pop()
            if remaining % size:
                return None
            strides.append(stride)
            remaining, stride = remaining // size, stride * size
        return View(sizes, tuple(reversed(strides)), self.offset)

    def boxes(self, start: int, stop: int) -> Iterator[View]:
        """Views that together hold the elements from ``start`` to ``stop``, in row-major order.

        >>> [box.sizes for box in View.packed((4, 3)).boxes(1, 9)]
        [(2,), (2, 3)]
        """
        if start >= stop:
            return
        if not self.sizes:
            yield self
            return
        inner = prod(self.sizes[1:])
        (first, head), (last, tail) = divmod(start, inner), divmod(stop, inner)
        if head:
            end = tail if first == last else inner
            yield from self.take(0, first).boxes(head, end)
            first += 1
        if first < last:
            yield self.narrow(0, first, last - first)
        if first <= last:
            yield from self.take(0, last).boxes(0, tail)
