"""Which kernel a plan gets: one for all its regions, so that one dispatch does."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import NamedTuple

from vkops.plan.region import CopyPlan, Output, Read, Region

VECTOR = 16
"""Bytes of the widest access a shader has, and of a step of the kernels that copy bytes."""


@dataclass(frozen=True, slots=True)
class Kernel:
    """A shader variant: its addresses count ``unit`` bytes.

    Where ``granule`` is not 0, a step is that many bytes of a contiguous destination run.
    ``sources`` is how many heaps it can read from at once.
    """

    name: str
    unit: int
    granule: int
    sources: int = 1


WORDS = {size: Kernel(f"copy_{size}", size, 0) for size in (4, 8, 16)}
SUBWORDS = {size: Kernel(f"copy_{size}", size, 4) for size in (1, 2)}
RUNS = Kernel("copy_run", 1, VECTOR)
STREAM = Kernel("copy_stream", 1, VECTOR, sources=4)
STREAM_4 = Kernel("copy_stream_4", 1, VECTOR)
"""For at most four segments a row, which it keeps in registers."""

STREAMS = (STREAM, STREAM_4)
REVERSE = Kernel("copy_reverse", VECTOR, 0)
BLOCKS = {
    size: Kernel(f"copy_block_{size}", unit, 0)
    for size, unit in ((1, 8), (2, 8), (4, VECTOR), (8, VECTOR))
}

SHORTEST_RUN = 16
"""Bytes from which a run is worth 16-byte accesses that have to be shifted into place, where
elements are words; smaller ones would need atomics, and are worth it at any length."""

MOSTLY = 0.9
"""Share of a plan's elements in such runs from which all of it is copied that way."""

MAX_SEGMENTS = 1024
"""Segments of a stream's row: they are searched, and stay in one dispatch."""


class Dim(NamedTuple):
    """A dimension of a region: its size, and what a step along it adds to both addresses."""

    size: int
    dst: int
    src: int


def dims(region: Region) -> list[Dim]:
    """A region's dimensions, innermost first; a constant's source does not move."""
    target, source = region.target, region.source_view
    return [Dim(*d) for d in zip(target.sizes, target.strides, source.strides, strict=True)][::-1]


def choose_kernel(plan: CopyPlan, sources: int = STREAM.sources) -> Kernel:
    """The kernel for an optimized plan.

    ``sources`` is how many heaps a dispatch can be given to read from; 0: streams are out.
    """
    size = plan.element_size
    if size == VECTOR:
        return WORDS[size]
    regions = [region for output in plan.outputs for region in output.regions]
    if all(blocks(region, size) for region in regions):
        return BLOCKS[size]
    if all(reversed_vectors(region, size) for region in regions):
        return REVERSE
    long_runs = _share_of_long_runs(regions, size)
    worthwhile = size < 4 or long_runs == 1
    if worthwhile and all(stream(output, size) for output in plan.outputs):
        few = all(len(output.regions) <= 4 for output in plan.outputs)
        kernel = STREAM_4 if few else STREAM
        if kernel.sources <= sources:
            return kernel
    # Short ends of long runs, where a plan is cut, do not matter.
    if long_runs >= MOSTLY and all(map(_is_runs, regions)):
        return RUNS
    return WORDS.get(size) or SUBWORDS[size]


def _share_of_long_runs(regions: Sequence[Region], size: int) -> float:
    """Which part of the elements lies in runs that are worth 16-byte accesses."""
    elements = [(prod(region.sizes), run(region) * size >= SHORTEST_RUN) for region in regions]
    return sum(n for n, is_long in elements if is_long) / sum(n for n, _ in elements)


def _is_runs(region: Region) -> bool:
    """Whether what is contiguous in the destination is so in the source."""
    inner = dims(region)[0]
    return region.input is not None and (inner.dst != 1 or inner.src == 1)


def run(region: Region) -> int:
    """Elements that are contiguous on both sides."""
    inner = dims(region)[0]
    return inner.size if inner.dst == inner.src == 1 else 1


# -- vectors -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Vectors:
    """A region in 16-byte vectors: offsets and dimensions count them.

    ``elements``: bytes of the elements whose order is reversed in each vector (16: none is).
    """

    dst: int
    src: int
    dims: Sequence[Dim]
    elements: int


def reversed_vectors(region: Region, size: int) -> Vectors | None:
    """A region whose vectors are read whole, the elements in each forwards or backwards."""
    side = VECTOR // size
    inner, *outer = dims(region)
    if region.input is None or inner.dst != 1 or abs(inner.src) != 1:
        return None
    backwards = inner.src == -1
    # Backwards, the first element is the last one of its vector.
    offset = region.source_view.offset - (side - 1) * backwards
    if not _divides(side, region.target.offset, offset, inner.size, outer):
        return None
    scaled = [Dim(inner.size // side, 1, inner.src), *_scaled(outer, side)]
    elements = size if backwards else VECTOR
    return Vectors(region.target.offset // side, offset // side, scaled, elements)


class Blocks(NamedTuple):
    """A region in square blocks; all figures but sizes count vectors.

    ``across`` numbers the blocks along the destination's rows, ``along`` those along the source's;
    within a block, ``row`` is the source's stride and ``column`` the destination's.
    """

    dst: int
    src: int
    across: Dim
    along: Dim
    outer: Sequence[Dim]
    row: int
    column: int


def blocks(region: Region, size: int) -> Blocks | None:
    """A region that is contiguous along one dimension in the source and another in the destination.

    All its figures have to divide by the side of a block.
    """
    side = BLOCKS[size].unit // size
    rest = dims(region)
    if region.input is None:
        return None
    across = next((d for d in rest if d.dst == 1 and d.src != 1), None)
    along = next((d for d in rest if d.src == 1 and d.dst != 1), None)
    if across is None or along is None:
        return None
    rest = [d for d in rest if d not in (across, along)]
    if any(value % side for value in (across.size, across.src, along.size, along.dst)):
        return None
    if not _divides(side, region.target.offset, region.source_view.offset, 0, rest):
        return None
    return Blocks(
        region.target.offset // side,
        region.source_view.offset // side,
        Dim(across.size // side, 1, across.src),
        Dim(along.size // side, along.dst, 1),
        _scaled(rest, side),
        across.src // side,
        along.dst // side,
    )


def _divides(side: int, dst: int, src: int, size: int, outer: Sequence[Dim]) -> bool:
    values = [dst, src, size, *(stride for dim in outer for stride in dim[1:])]
    return not any(value % side for value in values)


def _scaled(outer: Sequence[Dim], side: int) -> list[Dim]:
    return [Dim(size, dst // side, src // side) for size, dst, src in outer]


# -- streams -------------------------------------------------------------------------------------


class Segment(NamedTuple):
    """A part of each row of a stream: bytes from a source, and what a row adds to it."""

    source: Read
    nbytes: int
    row_src: int


class Stream(NamedTuple):
    """An output as rows of the same segments, which cover it."""

    rows: int
    segments: Sequence[Segment]

    @property
    def row_nbytes(self) -> int:
        """Bytes of a row."""
        return sum(segment.nbytes for segment in self.segments)


def stream(output: Output, size: int) -> Stream | None:
    """An output that its regions cover without a gap, as rows of contiguous runs."""
    if len(output.regions) > MAX_SEGMENTS:
        return None
    shape: tuple[int, int] | None = None
    end = 0
    segments = []
    for region in sorted(output.regions, key=lambda region: region.target.offset):
        inner, *rows = dims(region)
        if not inner.dst == inner.src == 1:
            if len(output.regions) == 1:
                return None  # every word has one owner as it is
            inner, rows = Dim(1, 1, 1), [inner, *rows]  # rows of one element
        row = rows[0] if rows else Dim(1, 0, 0)
        shape = shape or (row.size, row.dst)
        if len(rows) > 1 or shape != (row.size, row.dst) or region.target.offset != end:
            return None
        if not isinstance(region.source, Read):
            return None
        segments.append(Segment(region.source, inner.size * size, row.src * size))
        end += inner.size
    if shape is None or shape[1] not in (0, end):
        return None
    if _words(shape[0] * end * size) != _words(output.nbytes):
        return None
    return Stream(shape[0], segments)


def _words(nbytes: int) -> int:
    return -(-nbytes // 4) * 4
