"""Division of plans into chunks, whose inputs and outputs are few bytes each."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt

from vkops.plan.cut import cut
from vkops.plan.execute import Bytes
from vkops.plan.region import CopyPlan, Output, Read, Region
from vkops.plan.rounding import ceil_div, round_up
from vkops.plan.validation import ELEMENT_SIZES
from vkops.plan.view import View, packed_strides

ALIGNMENT = 256
"""Bytes; pieces begin at multiples of it in staging memory, as tensors do in device memory."""

MAX_GAP = 4096
"""The largest gap in bytes between two parts of an input that can become one piece."""

MAX_EXCESS = 2
"""A piece is contiguous if it has at most this many times the bytes that are read of it; otherwise
only the elements that are read are sent."""


@dataclass(frozen=True, slots=True)
class Piece:
    """Bytes of an input or an output, and the offset of a packed copy of them in staging memory.

    They are rows of ``width`` bytes; ``rows`` is the view of the first byte of each.
    """

    array: int
    rows: View
    width: int
    staged: int

    @property
    def nbytes(self) -> int:
        """Number of bytes."""
        return prod(self.rows.sizes) * self.width

    @property
    def end(self) -> int:
        """The offset in staging memory at which the next piece can begin."""
        return round_up(self.staged + self.nbytes, ALIGNMENT)

    def of(self, arrays: Sequence[Bytes]) -> npt.NDArray[Any]:
        """Return a view of the piece's rows in the arrays."""
        sizes, strides, offset = self.rows
        rows: npt.NDArray[Any] = np.ndarray(
            sizes, f"V{self.width}", arrays[self.array], offset, strides
        )
        return rows

    def packed(self, staging: Bytes) -> npt.NDArray[Any]:
        """Return a view of the piece's rows in staging memory."""
        rows: npt.NDArray[Any] = np.ndarray(self.rows.sizes, f"V{self.width}", staging, self.staged)
        return rows


@dataclass(frozen=True, slots=True)
class Chunk:
    """A part of a plan: the bytes to send, the plan to run on them, and the bytes to fetch.

    The plan has one input, the staging memory with all sources. Its outputs are the targets.
    """

    plan: CopyPlan
    sources: Sequence[Piece]
    targets: Sequence[Piece]


def chunks(plan: CopyPlan, nbytes: int) -> list[Chunk]:
    """Divide a plan without indices into chunks that write about ``nbytes`` bytes each.

    A chunk is sent at most ``MAX_EXCESS`` times the bytes that it reads. This also holds if it
    reads elements that are far apart, such as a column: these are gathered before they are sent.

    All outputs are cut into the same number of parts, so that outputs that share an input's rows
    share them in each chunk, too.
    """
    count = ceil_div(sum(output.nbytes for output in plan.outputs), nbytes)
    parts = [_parts(output, plan.element_size, count) for output in plan.outputs]
    whole = cut(plan, [[n] for n in plan.inputs], parts)
    candidates = [_chunk(whole, parts, number) for number in range(count)]
    return [chunk for chunk in candidates if chunk.targets]


def staged_bytes(pieces: Sequence[Piece]) -> int:
    """The bytes of staging memory that pieces need."""
    return pieces[-1].end if pieces else 0


def _parts(output: Output, size: int, count: int) -> list[int]:
    """Return the sizes in bytes of equal parts of an output; the last ones are shorter, or empty.

    Each part begins at a multiple of the widest element, which has 16 bytes. If rows are short, the
    number of rows in a part is a multiple of 16, too: the part of a transpose is then one region,
    whose input rows are whole vectors.
    """
    least, widest = ceil_div(output.nbytes, count), ELEMENT_SIZES[-1]
    strides = {abs(stride) for region in output.regions for stride in region.target.strides}
    rows = [stride * size * widest for stride in strides if stride]
    part = round_up(least, max([unit for unit in rows if unit <= least // 8], default=widest))
    edges = [min(output.nbytes, part * k) for k in range(count + 1)]
    return [end - start for start, end in pairwise(edges)]


def _chunk(whole: CopyPlan, parts: Sequence[Sequence[int]], number: int) -> Chunk:
    size = whole.element_size
    outputs = [whole.outputs[index * len(sizes) + number] for index, sizes in enumerate(parts)]
    targets: list[Piece] = []
    for index, output in enumerate(outputs):
        if output.nbytes:
            start = View((), (), parts[index][0] * number)
            targets.append(Piece(index, start, output.nbytes, staged_bytes(targets)))
    regions = (region for output in outputs for region in output.regions)
    reads = {region.source for region in regions if isinstance(region.source, Read)}
    sources, staged = _gather(reads, size)
    plan = CopyPlan(
        size,
        (staged_bytes(sources),),
        tuple(
            Output(
                output.nbytes,
                tuple(Region(r.target, staged.get(r.source, r.source)) for r in output.regions),
            )
            for output in outputs
            if output.nbytes
        ),
    )
    return Chunk(plan, sources, targets)


def _gather(reads: Iterable[Read], size: int) -> tuple[list[Piece], dict[Any, Read]]:
    """Return pieces that hold all elements of some reads, and the reads of these from staging."""
    pieces: list[Piece] = []
    staged: dict[Any, Read] = {}
    unit = ALIGNMENT // size
    for group in _neighbours(reads, MAX_GAP // size):
        start = group[0].view.bounds[0] // unit * unit  # vectors stay aligned
        span = View((max(read.view.bounds[1] for read in group) + 1 - start,), (1,), start)
        boxes = [_in_memory_order(read.view) for read in group]
        if span.sizes[0] <= MAX_EXCESS * sum(prod(box.sizes) for box, _ in boxes):
            pieces.append(_piece(group[0].input, span, size, staged_bytes(pieces)))
            moved = pieces[-1].staged // size - start
            staged |= {read: Read(0, read.view.shift(moved)) for read in group}
            continue
        for read, (box, packed) in zip(group, boxes, strict=True):
            pieces.append(_piece(read.input, box, size, staged_bytes(pieces)))
            staged[read] = Read(0, packed.shift(pieces[-1].staged // size))
    return pieces, staged


def _neighbours(reads: Iterable[Read], gap: int) -> Iterator[list[Read]]:
    """Group the reads of one input that are at most ``gap`` elements apart."""
    group: list[Read] = []
    end = 0
    for read in sorted(reads, key=lambda read: (read.input, *read.view.bounds)):
        low, high = read.view.bounds
        if group and (group[0].input != read.input or low > end + gap):
            yield group
            group, end = [], 0
        group.append(read)
        end = max(end, high)
    if group:
        yield group


def _in_memory_order(view: View) -> tuple[View, View]:
    """The elements of a view in the order of their addresses, and the view of their packed copy."""
    axes = [axis for axis, stride in enumerate(view.strides) if stride and view.sizes[axis] > 1]
    axes.sort(key=lambda axis: -abs(view.strides[axis]))
    sizes = tuple([view.sizes[axis] for axis in axes])
    strides = tuple([abs(view.strides[axis]) for axis in axes])
    steps = [0] * len(view.sizes)
    for axis, step in zip(axes, packed_strides(sizes), strict=True):
        steps[axis] = step if view.strides[axis] > 0 else -step
    packed = View(view.sizes, tuple(steps))
    return View(sizes, strides, view.bounds[0]), packed.shift(-packed.bounds[0])


def _piece(array: int, view: View, size: int, staged: int) -> Piece:
    """The piece of some elements; the last axes are the rows, if they are contiguous."""
    sizes, strides, offset = view
    axes, width = len(sizes), size
    while axes and strides[axes - 1] * size == width:
        axes -= 1
        width *= sizes[axes]
    steps = tuple([stride * size for stride in strides[:axes]])
    return Piece(array, View(sizes[:axes], steps, offset * size), width, staged)
