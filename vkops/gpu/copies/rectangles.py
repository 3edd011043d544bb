"""Rectangles: rows of bytes at two pitches, which copies between a buffer and an image move.

A linear image is laid over the memory of one of the two tensors; the other one is the buffer. Its
pitch is a multiple of the driver's alignment, so that a row of the image may have to hold several
rows of the tensor.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import gcd, prod
from typing import NamedTuple

import numpy as np

from vkops.gpu.adapters.kompute import ImageLimits
from vkops.gpu.copies.runs import Numbers, find_runs, run_starts
from vkops.gpu.kernels.choice import VECTOR
from vkops.plan.region import Region

MAX_ROWS = 4096
"""Rows of an image."""

CACHED_BYTES = 1 << 20
"""Bytes of an image that are copied in one go, where its rows hold several rows of the tensor."""

HEIGHT_ALIGNMENT = 4
"""llvmpipe pads images to a multiple of 4 rows, and SwiftShader to a multiple of 2."""

MIN_ROWS = 4
"""Rows that a rectangle must have."""

MAX_RECTANGLES = 1 << 16
"""Rectangles of a region; one that has more is copied otherwise."""


class Grid(NamedTuple):
    """A linear image over a tensor's memory, from byte ``base`` on, in rows of ``pitch`` bytes.

    Each of them holds ``rows`` rows of the tensor.
    """

    over_target: bool
    base: int
    pitch: int
    rows: int


@dataclass(frozen=True, slots=True)
class Rectangles:
    """A region as rectangles of ``height`` rows of ``width`` bytes.

    ``nbytes`` are those of the source and the target, ``starts`` the byte offsets of each rectangle
    in them, and ``pitches`` the bytes from one row to the next. Offsets, pitches and widths are
    multiples of ``unit``. ``source`` and ``target`` are the grids of an image over either tensor,
    if it can have one.
    """

    nbytes: tuple[int, int]
    starts: Numbers
    pitches: tuple[int, int]
    width: int
    height: int
    unit: int
    source: Grid | None
    target: Grid | None

    @property
    def grid(self) -> Grid | None:
        """The grid that needs fewer copies."""
        found = [grid for grid in (self.source, self.target) if grid is not None]
        return min(found, key=lambda grid: grid.rows, default=None)

    def count(self, grid: Grid) -> int:
        """About how many copies they are."""
        passes = min(grid.rows, self.height)
        chunks = self.height // grid.rows // _chunk(grid)
        side = int(grid.over_target)
        last = int(np.max(self.starts[:, side]) - grid.base) // self.pitches[side]
        beyond = last + self.height - _whole_rows(grid, self.nbytes[side]) * grid.rows
        return len(self.starts) * passes * (1 + chunks) + max(0, beyond)


def rectangles(
    region: Region, size: int, nbytes: tuple[int, int], limits: ImageLimits
) -> Rectangles | None:
    """Divide a region into rectangles, if an image can be laid over one of its tensors.

    ``nbytes`` are those of the source and the target.
    """
    runs = find_runs(region, size)
    if runs is None:
        return None
    width, axes = runs
    views = region.source_view, region.target
    possible = [
        axis
        for axis in axes
        if region.sizes[axis] >= MIN_ROWS
        and all(view.strides[axis] * size >= width for view in views)
    ]
    row_axis = max(possible, key=lambda axis: region.sizes[axis], default=None)
    if row_axis is None:
        return None
    others = [axis for axis in axes if axis != row_axis]
    if prod([region.sizes[axis] for axis in others]) > MAX_RECTANGLES:
        return None
    pitches = views[0].strides[row_axis] * size, views[1].strides[row_axis] * size
    starts = run_starts(region, size, others)
    unit = gcd(VECTOR, width, *pitches, *set(starts.ravel().tolist()))
    source, target = (
        _grid(bool(side), starts[:, side], pitches[side], width, unit, limits) for side in range(2)
    )
    if source is target is None:
        return None
    return Rectangles(nbytes, starts, pitches, width, region.sizes[row_axis], unit, source, target)


def _grid(
    over_target: bool, starts: Numbers, pitch: int, width: int, unit: int, limits: ImageLimits
) -> Grid | None:
    alignment = limits.alignment
    rows = alignment // gcd(pitch, alignment)
    if rows * pitch > limits.side * unit:
        return None
    # Regions of the same tensor share an image if it begins where the tensor does.
    for base in (0, int(np.min(starts)) // alignment * alignment):
        if int(np.max((starts - base) % pitch)) + width <= pitch:
            return Grid(over_target, base, rows * pitch, rows)
    return None


def _whole_rows(grid: Grid, nbytes: int) -> int:
    """The rows of an image that lie within ``nbytes`` bytes of a tensor, padding included."""
    return (nbytes - grid.base) // grid.pitch // HEIGHT_ALIGNMENT * HEIGHT_ALIGNMENT


def _chunk(grid: Grid) -> int:
    """The number of rows of the image that are copied in one go: a power of two."""
    if grid.rows == 1:
        return MAX_ROWS
    return min(MAX_ROWS, 1 << max(0, (CACHED_BYTES // grid.pitch).bit_length() - 1))


def divide(found: Rectangles, grid: Grid) -> tuple[Numbers, Numbers]:
    """Return the copies of rectangles, and what lies beyond the last whole row of the image.

    The former are rows of (x, y, width, height, offset in the buffer, pitch in the buffer), the
    latter runs: source offset, target offset, bytes. All but y and height are bytes.
    """
    side = int(grid.over_target)
    pitch, buffer_pitch = found.pitches[side], found.pitches[1 - side]
    passes = min(grid.rows, found.height)
    first, x = np.divmod(found.starts[:, side] - grid.base, pitch)
    row = first[:, None] + np.arange(passes)
    y, place = np.divmod(row, grid.rows)
    x = place * pitch + x[:, None]
    buffer = found.starts[:, 1 - side, None] + np.arange(passes) * buffer_pitch
    height = np.broadcast_to(
        (found.height - np.arange(passes) + grid.rows - 1) // grid.rows, y.shape
    )
    x, y, height, buffer = (numbers.ravel() for numbers in (x, y, height, buffer))

    inside = np.clip(_whole_rows(grid, found.nbytes[side]) - y, 0, height)
    step = grid.rows * buffer_pitch
    left, index = _spread(height - inside)
    at = grid.base + (y + inside)[left] * grid.pitch + x[left] + index * grid.pitch
    other = buffer[left] + (inside[left] + index) * step
    columns = (other, at) if grid.over_target else (at, other)
    runs = np.stack([*columns, np.full(at.size, found.width)], 1)

    chunk = _chunk(grid)
    pieces = np.where(inside, (y + inside - 1) // chunk - y // chunk + 1, 0)
    of, index = _spread(pieces)
    top = (y // chunk)[of] + index
    begin = np.maximum(y[of], top * chunk)
    end = np.minimum((y + inside)[of], (top + 1) * chunk)
    copies = np.stack(
        [
            x[of],
            begin,
            np.full(of.size, found.width),
            end - begin,
            buffer[of] + (begin - y[of]) * step,
            np.full(of.size, step),
        ],
        1,
    )
    return copies, runs


def in_order(copies: Numbers, grid: Grid) -> Numbers:
    """The order of copies by which each chunk of the image stays in the cache."""
    return np.argsort(copies[:, 1] // _chunk(grid), kind="stable")


def _spread(counts: Numbers) -> tuple[Numbers, Numbers]:
    """For each of ``counts`` things of each kind: the kind, and its number within the kind."""
    kinds = np.repeat(np.arange(counts.size), counts)
    return kinds, np.arange(kinds.size) - np.repeat(np.cumsum(counts) - counts, counts)
