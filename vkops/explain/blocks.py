"""Large tensors as rectangles: what a picture of so many elements looks like from afar."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import prod
from typing import NamedTuple

import numpy as np

from vkops.explain.places import NONE, Box, Numbers, lookup
from vkops.plan.view import Ints

ROWS, COLUMNS = 48, 96
"""Places of a block that are looked at."""

IN_A_ROW = 768
"""The same, where there is one row."""

LEVELS = 24
"""Shades of a region that is alone."""

MOST_LOOKED_AT = 2048
"""Regions of a tensor that are looked for."""


class Rectangle(NamedTuple):
    """Part of a block, in hundredths of its width and height: a region, and its shade (0 to 1)."""

    left: float
    top: float
    width: float
    height: float
    region: int
    shade: float


def rectangles(
    sizes: Ints, found: Sequence[Box], coloured: int, most: int, *, shaded: bool
) -> list[Rectangle]:
    """A tensor's regions, its elements laid out in rows; regions from ``coloured`` on are one.

    Rows are of the inner dimensions, as many of them as make the simplest picture; it is coarser
    where more than ``most`` rectangles would be needed.
    """
    found = found[:MOST_LOOKED_AT]
    few = found[:coloured]
    layouts = [(prod(sizes[:i]), prod(sizes[i:])) for i in range(max(1, len(sizes)))]
    rows, columns = min(layouts[::-1], key=lambda layout: _cost(layout, few, coloured))
    for coarse in (1, 2, 4, 8):
        drawn = _drawn(rows, columns, found, coloured, coarse, shaded)
        if len(drawn) <= most:
            return drawn
    return []


def _cost(layout: tuple[int, int], found: Sequence[Box], coloured: int) -> tuple[int, int]:
    """How good a layout is: regions that get lost, and rectangles."""
    drawn = _drawn(*layout, found, coloured, 2, shaded=False)
    return len(found) - len({rectangle.region for rectangle in drawn}), len(drawn)


def _drawn(
    rows: int, columns: int, found: Sequence[Box], coloured: int, coarse: int, shaded: bool
) -> list[Rectangle]:
    """The rectangles of one layout, from a raster that is so many times coarser."""
    high = min(rows, ROWS // coarse)
    wide = min(columns, (COLUMNS if rows > 1 else IN_A_ROW) // coarse)
    down, along = (_centres(*size) for size in ((rows, high), (columns, wide)))
    slack = max(0, columns // wide - 1) if high == rows else columns * (rows // high)
    owner, depth = lookup(down[:, None] * columns + along, found, slack)
    values = np.where(owner == NONE, NONE, np.minimum(owner, coloured) * LEVELS)
    if shaded:
        values += np.where(owner == NONE, 0, (depth * (LEVELS - 1)).round().astype(int))
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


def _centres(size: int, parts: int) -> Numbers:
    """The middle of each part, in elements."""
    return np.array([(2 * i + 1) * size // (2 * parts) for i in range(parts)])


def _merged(values: Numbers) -> Iterator[tuple[int, int, int, int, int]]:
    """Boxes of equal values that cover a raster, but for those that nothing has."""
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
