"""The region that each element of a tensor belongs to, and pictures of large tensors."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import prod
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from vkops.explain.explanation import Movement
from vkops.plan.region import Fill, Read
from vkops.plan.view import Ints, View

Numbers = npt.NDArray[Any]

NONE = -1
"""The region of an element that no region reads or writes, and the source of a constant."""

ROWS, COLUMNS = 48, 96
"""Rows and columns of elements that are sampled for a picture."""

COLUMNS_OF_ONE_ROW = 768
"""Elements that are sampled where the picture has one row."""

LEVELS = 24
"""Number of shades that show the order of the elements of a single region."""

MAX_REGIONS = 2048
"""Regions of a tensor that are looked up."""


class Box(NamedTuple):
    """The elements of one tensor that a region reads or writes, and the region's source.

    The source is None where indices decide which element is read.
    """

    region: int
    view: View
    source: Read | Fill | None


def boxes(movement: Movement, role: str, number: int) -> list[Box]:
    """The elements that each region reads of an ``"input"``, or writes to an ``"output"``.

    Of an input that indices select elements of, they are all that can be selected; elements of an
    output that indices select are left out.
    """
    found = []
    size = movement.element_size(role, number)
    for i, (output, region) in enumerate(movement.regions):
        source, indices = region.source, region.indices
        if role == "output":
            if output == number and region.kind != "scatter":
                found.append(Box(i, region.target, None if indices else source))
            continue
        if isinstance(source, Read) and source.input == number:
            if indices is None or region.kind == "scatter":
                found.append(Box(i, source.view, source))
            else:
                places = [(term.size, term.stride) for term in indices.terms]
                found.append(Box(i, _reached(source.view, places), None))
        if indices is not None and indices.input == number and size == 4 * indices.words:
            step = indices.terms[-1].offset // max(1, len(indices.terms) - 1)
            tuples = _reached(indices.view, [(len(indices.terms), step)])
            found.append(Box(i, tuples, None))
    return found


def _reached(view: View, places: Sequence[tuple[int, int]]) -> View:
    """The elements of a view and those that so many places (count, stride) move them to, once."""
    dims = [*zip(view.sizes, view.strides, strict=True), *places]
    sizes, strides = (tuple(dim[k] for dim in dims if dim[1]) for k in range(2))
    return View(sizes, strides, view.offset)


class Elements(NamedTuple):
    """For each of some elements: its region, and the element of the input that it is read from.

    Where several regions read an element, it belongs to the first of them.
    """

    region: Numbers
    source: Numbers

    @classmethod
    def none(cls, shape: Ints) -> Elements:
        """Elements that belong to no region."""
        return cls(np.full(shape, NONE), np.full(shape, NONE))

    @property
    def shades(self) -> Numbers:
        """For each element, its position between the first and the last source, from 0 to 1."""
        read = self.source[self.source != NONE]
        if not read.size:
            return np.zeros(self.source.shape)
        first, last = int(read.min()), int(read.max())
        return (self.source - first) / max(1, last - first)


def all_elements(count: int, found: Sequence[Box]) -> Elements:
    """Assign each of the ``count`` elements of a tensor to its region."""
    made = Elements.none((count,))
    for box in reversed(found):
        addresses = _addresses(box.view)
        made.region[addresses] = box.region
        if isinstance(box.source, Read):
            made.source[addresses] = _addresses(box.source.view)
    return made


def _addresses(view: View) -> Numbers:
    addresses = np.array([view.offset])
    for n, stride in zip(view.sizes, view.strides, strict=True):
        addresses = (addresses[:, None] + np.arange(n) * stride).ravel()
    return addresses


def sampled_elements(addresses: Numbers, found: Sequence[Box], slack: int) -> Elements:
    """Assign some elements of a tensor to their regions.

    An element up to ``slack`` behind one of a region belongs to that region, if to no other.
    """
    made = Elements.none(addresses.shape)
    for allowed in dict.fromkeys((0, slack)):
        for box in found:
            inside, indices = _inside(addresses, box, allowed)
            inside &= made.region == NONE
            made.region[inside] = box.region
            if isinstance(box.source, Read):
                made.source[inside] = box.source.view.offset
                for index, stride in zip(indices, box.source.view.strides, strict=True):
                    made.source[inside] += index[inside] * stride
    return made


def _inside(addresses: Numbers, box: Box, slack: int) -> tuple[Numbers, list[Numbers]]:
    """Find which elements are in a box, and their indices in it."""
    dims = list(zip(box.view.sizes, box.view.strides, strict=True))
    rest = addresses - box.view.bounds[0]
    inside = rest >= 0
    indices = [np.zeros_like(addresses) for _ in dims]
    for axis in sorted(range(len(dims)), key=lambda axis: -abs(dims[axis][1])):
        n, stride = dims[axis]
        if stride:
            index = np.clip(rest // abs(stride), 0, n - 1)
            rest = rest - index * abs(stride)
            indices[axis] = index if stride > 0 else n - 1 - index
    return inside & (rest <= slack), indices


# -- large tensors as rectangles ------------------------------------------------------------------


class Rectangle(NamedTuple):
    """A part of a picture, in percent of its width and height: its region, and its shade (0 to 1).

    Regions from a given number on, which have no colour of their own, are counted as one.
    """

    left: float
    top: float
    width: float
    height: float
    region: int
    shade: float


def rectangles(
    sizes: Ints, found: Sequence[Box], coloured: int, limit: int, *, shaded: bool
) -> list[Rectangle]:
    """Draw the regions of a tensor as rectangles; regions from ``coloured`` on count as one.

    A row of the picture holds some of the inner dimensions: as many as give the simplest picture.
    The picture is coarser where it would need more than ``limit`` rectangles.
    """
    found = found[:MAX_REGIONS]
    few = found[:coloured]

    def cost(shape: tuple[int, int]) -> tuple[int, int]:
        """The number of regions that would not be visible, and of rectangles."""
        drawn = _drawn(*shape, few, coloured, 2, shaded=False)
        return len(few) - len({rectangle.region for rectangle in drawn}), len(drawn)

    shapes = [(prod(sizes[:i]), prod(sizes[i:])) for i in range(max(1, len(sizes)))]
    rows, columns = min(shapes[::-1], key=cost)
    for coarseness in (1, 2, 4, 8):
        drawn = _drawn(rows, columns, found, coloured, coarseness, shaded)
        if len(drawn) <= limit:
            return drawn
    return []


def _drawn(
    rows: int, columns: int, found: Sequence[Box], coloured: int, coarseness: int, shaded: bool
) -> list[Rectangle]:
    """Draw a tensor of ``rows`` by ``columns`` elements from a raster of samples."""
    high = min(rows, ROWS // coarseness)
    wide = min(columns, (COLUMNS if rows > 1 else COLUMNS_OF_ONE_ROW) // coarseness)
    down, along = (
        np.array([(2 * i + 1) * size // (2 * parts) for i in range(parts)])  # middles of parts
        for size, parts in ((rows, high), (columns, wide))
    )
    slack = max(0, columns // wide - 1) if high == rows else columns * (rows // high)
    samples = sampled_elements(down[:, None] * columns + along, found, slack)
    values = np.minimum(samples.region, coloured) * LEVELS
    if shaded:
        values += (samples.shades * (LEVELS - 1)).round().astype(int)
    values[samples.region == NONE] = NONE
    return [
        Rectangle(
            100 * left / wide,
            100 * top / high,
            100 * (right - left) / wide,
            100 * (bottom - top) / high,
            value // LEVELS,
            value % LEVELS / (LEVELS - 1),
        )
        for left, top, right, bottom, value in _merged(values)
    ]


def _merged(values: Numbers) -> Iterator[tuple[int, int, int, int, int]]:
    """Cover a raster with boxes of equal values, except where the value is ``NONE``."""
    open_: dict[tuple[int, int, int], int] = {}
    for row, line in enumerate([*values.tolist(), []]):
        runs = set(_runs(line))
        for run in sorted(open_.keys() - runs):
            left, right, value = run
            yield left, open_.pop(run), right, row, value
        for run in runs:
            open_.setdefault(run, row)


def _runs(line: Sequence[int]) -> Iterator[tuple[int, int, int]]:
    start = 0
    for i in range(1, len(line) + 1):
        if i == len(line) or line[i] != line[start]:
            if line[start] != NONE:
                yield start, i, line[start]
            start = i
