"""Windows that slide along the axes of a tensor, side by side: the meaning of UNFOLD."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise, product
from typing import NamedTuple

import numpy as np

from vkops.plan.movements import copy, fill
from vkops.plan.region import Fill, Read, Region
from vkops.plan.size_limits import MAX_PIECES, LimitError
from vkops.plan.view import View


class Sliding(NamedTuple):
    """A window that slides along an axis of ``size`` elements, with padding around them.

    The window has ``window`` elements, ``dilation`` apart; its positions are ``stride`` apart. A
    dilation of 0 repeats one element.

    >>> Sliding(size=5, window=3, stride=1, dilation=1, before=1, after=0).positions
    4
    """

    size: int
    window: int
    stride: int
    dilation: int
    before: int
    after: int

    @property
    def extent(self) -> int:
        """Elements from the first to the last of the window."""
        return self.dilation * (self.window - 1) + 1

    @property
    def positions(self) -> int:
        """The number of positions at which the whole window is within the padded axis."""
        return (self.before + self.size + self.after - self.extent) // self.stride + 1

    def boxes(self) -> tuple[list[_WindowBox], list[_WindowBox]]:
        """Return boxes of (window element, position) pairs: those on the axis, those in padding."""
        end = self.stride * (self.positions - 1) + self.extent
        if self.before == 0 and end <= self.size:
            return [_WindowBox(0, self.window, 0, self.positions)], []
        # A row has the pairs of one element of the window, or of one position if these are fewer.
        by_position = self.positions < self.window and self.dilation > 0
        steps = [(self.window, self.dilation), (self.positions, self.stride)]
        (rows, row_step), (length, step) = reversed(steps) if by_position else steps
        if rows > MAX_PIECES:
            message = f"has {rows} positions of its window or elements of it, with padding"
            raise LimitError(f"an axis {message}; must be {MAX_PIECES} at most")
        starts = np.arange(rows, dtype=np.int64) * row_step - self.before
        first = np.clip(-(starts // step), 0, length)
        last = np.clip((self.size - 1 - starts) // step + 1, first, length)
        changes = np.flatnonzero(np.diff(first) | np.diff(last)) + 1
        inside: list[_WindowBox] = []
        outside: list[_WindowBox] = []
        for row, end in pairwise((0, *changes.tolist(), rows)):
            low, high = int(first[row]), int(last[row])
            for boxes, start, stop in (
                (outside, 0, low),
                (inside, low, high),
                (outside, high, length),
            ):
                if start < stop:
                    box = _WindowBox(row, end - row, start, stop - start)
                    boxes.append(_WindowBox(*box[2:], *box[:2]) if by_position else box)
        return inside, outside


class _WindowBox(NamedTuple):
    """Consecutive elements of the window at consecutive positions: first and count of each."""

    element: int
    elements: int
    position: int
    positions: int

    def of(self, region: Region, axis: int, count: int) -> Region:
        """Return the box of a region: elements are on ``axis``, positions on ``axis + count``."""
        return region.map(
            lambda view: view.narrow(axis, self.element, self.elements).narrow(
                axis + count, self.position, self.positions
            )
        )


def unfold(source: Read, target: View, axes: Sequence[Sliding], padding: Fill) -> Iterator[Region]:
    """Copy what a window holds at each of its positions.

    The source has batch, channels, and one dimension for each of ``axes``; the target has batch,
    channels times elements of the window, and positions.

    >>> source, target = Read(0, View.packed((1, 1, 5))), View.packed((1, 2, 4))
    >>> [region] = unfold(source, target, [Sliding(5, 2, 1, 1, 0, 0)], Fill(b"0"))
    >>> region.source.view
    View(sizes=(1, 1, 2, 4), strides=(5, 5, 1, 1), offset=0)
    """
    batch, channels = source.view.sizes[:2]
    windows = tuple(axis.window for axis in axes)
    positions = tuple(axis.positions for axis in axes)
    spatial = source.view.strides[2:]
    elements = tuple(axis.dilation * n for axis, n in zip(axes, spatial, strict=True))
    blocks = tuple(axis.stride * n for axis, n in zip(axes, spatial, strict=True))
    # Where there is padding, this view begins before the source; no part that is read does.
    read = View(
        (batch, channels, *windows, *positions),
        (*source.view.strides[:2], *elements, *blocks),
        source.view.offset - sum(axis.before * n for axis, n in zip(axes, spatial, strict=True)),
    )
    written = target.unflatten(2, positions).unflatten(1, (channels, *windows))
    parts = [copy(read, written, source.input)]
    for dimension, axis in enumerate(axes, 2):
        inside, outside = axis.boxes()
        for part, box in product(parts, outside):
            yield fill(padding, box.of(part, dimension, len(axes)).target)
        parts = [box.of(part, dimension, len(axes)) for part, box in product(parts, inside)]
    yield from parts


def check_unfold(axes: Sequence[Sliding]) -> None:
    """Check that ``unfold`` returns few enough regions."""
    copies, fills = 1, 0
    for axis in axes:
        inside, outside = axis.boxes()
        fills += copies * len(outside)
        copies *= len(inside)
    if copies + fills > MAX_PIECES:
        raise LimitError(f"makes {copies + fills} regions, must be {MAX_PIECES} at most")
