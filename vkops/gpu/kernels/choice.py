"""Choice of the kernel of a plan: one for all its regions, so that one dispatch runs them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import NamedTuple

from vkops.plan.region import CopyPlan, Output, Read, Region
from vkops.plan.rounding import ceil_div, round_up

VECTOR = 16
"""Bytes of the widest access a shader has, and of a step of the kernels that copy bytes."""


@dataclass(frozen=True, slots=True)
class Kernel:
    """A shader variant: its addresses count ``unit`` bytes.

    If ``granule`` is not 0, a step is that many bytes of a contiguous run of the destination.
    ``sources`` is the number of heaps it can read from at once; the second of an ``indexed`` kernel
    holds the indices.
    """

    name: str
    unit: int
    granule: int
    sources: int = 1
    indexed: bool = False

    @property
    def wide(self) -> str | None:
        """The name of the same kernel with integers of 64 bits, if there is one."""
        return f"{self.name}_wide" if self.name in ("copy_16", "gather_16") else None


WORDS = {size: Kernel(f"copy_{size}", size, 0) for size in (4, 8, 16)}
SUBWORDS = {size: Kernel(f"copy_{size}", size, 4) for size in (1, 2)}
RUNS = Kernel("copy_run", 1, VECTOR)
STREAM = Kernel("copy_stream", 1, VECTOR, sources=4)
STREAM_4 = Kernel("copy_stream_4", 1, VECTOR)
"""For rows of four segments at most, which it keeps in registers."""

STREAMS = (STREAM, STREAM_4)
ELEMENTS = {size: Kernel(f"copy_elements_{size}", size, VECTOR) for size in (4, 8)}
"""For contiguous runs of the destination, of which they store vectors."""

REVERSE = Kernel("copy_reverse", VECTOR, 0)
BLOCKS = {
    size: Kernel(f"copy_block_{size}", unit, 0)
    for size, unit in ((1, 8), (2, 8), (4, VECTOR), (8, VECTOR))
}


def _indexed(name: str, units: Sequence[int], granule: int = 0) -> Mapping[int, Kernel]:
    return {u: Kernel(f"{name}_{u}", u, granule, sources=2, indexed=True) for u in units}


GATHERS = _indexed("gather", (4, 8, 16))
GATHER_RUNS = _indexed("gather_run", (1, 2, 4, 8), VECTOR)
"""For runs of the destination, as ``ELEMENTS``."""

SCATTERS = _indexed("scatter", (4, 8, 16))
SCATTERED_WORDS = _indexed("scatter_words", (8, 16))
"""For elements of which each dispatch writes one word."""

GENERAL_GATHERS = {**_indexed("gather_any", (1, 2), 4), **_indexed("gather_any", (4, 8, 16))}
"""For tuples of several indices and tensors in several heaps, which the others do not know."""

GENERAL_SCATTERS = _indexed("scatter_any", (1, 2, 4, 8, 16))

MIN_LONG_RUN = 16
"""Bytes from which runs of words are copied by 16-byte accesses that are shifted into place.
Runs of smaller elements are copied so at any length, because other kernels would need atomics."""

LONG_RUN_THRESHOLD = 0.9
"""Share of a plan's elements in long runs from which the whole plan is copied that way."""

MIN_REPEATED_RUN = 128
"""Bytes of runs from which one element, repeated, is stored to whole runs instead of to blocks."""

MAX_SEGMENTS = 1024
"""Segments in a row of a stream: one dispatch has all of them, and searches them."""


class Dim(NamedTuple):
    """A dimension of a region: its size, and what a step along it adds to both addresses.

    With indices, it adds to the address of the index, in words, and to the position, too.
    """

    size: int
    dst: int
    src: int
    indices: int = 0
    position: int = 0

    def times(self, count: int) -> Dim:
        """Return the dimension with every ``count``-th place; the last may go beyond the end."""
        size, *strides = self
        return Dim(ceil_div(size, count), *(stride * count for stride in strides))


class Box(NamedTuple):
    """A region's two first addresses and its dimensions, innermost first."""

    dst: int
    src: int
    dims: Sequence[Dim]

    @classmethod
    def of(cls, region: Region, scale: int = 1) -> Box:
        """Return a region's box, in units of which an element has ``scale``."""
        target, source = region.target, region.source_view
        strides = zip(target.sizes, target.strides, source.strides, strict=True)
        dims = [Dim(size, dst * scale, src * scale) for size, dst, src in strides]
        if region.indices is not None:
            words = region.indices.words
            index, position = (view.strides for view in region.index_views)
            dims = [
                dim._replace(indices=index * words, position=position)
                for dim, index, position in zip(dims, index, position, strict=True)
            ]
        return cls(target.offset * scale, source.offset * scale, dims[::-1])

    def divided(self, side: int) -> Box | None:
        """Return the box in units that are ``side`` times as large; None if an address is none."""
        strides = (stride for dim in self.dims for stride in (dim.dst, dim.src))
        if any(value % side for value in (self.dst, self.src, *strides)):
            return None
        dims = [Dim(d.size, d.dst // side, d.src // side) for d in self.dims]
        return Box(self.dst // side, self.src // side, dims)


def choose_kernel(
    plan: CopyPlan, sources: int = STREAM.sources, *, by_word: bool = False
) -> Kernel:
    """Return the kernel for an optimized plan.

    Its regions are all without indices, or all gather, or all scatter. ``sources`` is the number
    of heaps that a dispatch can read from; 0 rules out streams. ``by_word`` says that a dispatch
    writes one word of each element.
    """
    size = plan.element_size
    regions = [region for _, region in plan.regions]
    if regions and regions[0].kind != "copy":
        return _choose_indexed(regions, size, by_word)
    if size == VECTOR:
        return WORDS[size]
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
    # Where a plan was cut, long runs can have short ends.
    if long_runs >= LONG_RUN_THRESHOLD and all(map(_is_runs, regions)):
        return RUNS
    if size in ELEMENTS and all(_is_grouped(region, size) for region in regions):
        return ELEMENTS[size]
    return WORDS.get(size) or SUBWORDS[size]


def _choose_indexed(regions: Sequence[Region], size: int, by_word: bool) -> Kernel:
    gathers = regions[0].kind == "gather"
    indices = [region.indices for region in regions if region.indices is not None]
    if any(len(i.terms) > 1 or i.within is not None for i in indices):
        return (GENERAL_GATHERS if gathers else GENERAL_SCATTERS)[size]
    if by_word:
        return SCATTERED_WORDS[size]
    if not gathers:
        return SCATTERS.get(size) or GENERAL_SCATTERS[size]
    targets = [region.target for region in regions]
    if size < VECTOR and all(t.strides[-1] == 1 and t.sizes[-1] * size >= VECTOR for t in targets):
        return GATHER_RUNS[size]
    return GATHERS.get(size) or GENERAL_GATHERS[size]


def _share_of_long_runs(regions: Sequence[Region], size: int) -> float:
    elements = [(prod(region.sizes), run(region) * size >= MIN_LONG_RUN) for region in regions]
    return sum(n for n, is_long in elements if is_long) / sum(n for n, _ in elements)


def _is_runs(region: Region) -> bool:
    """Whether runs of the destination are runs of the source, or one element of it."""
    target, source = region.target, region.source_view
    return target.strides[-1] != 1 or source.strides[-1] in (0, 1)


def run(region: Region) -> int:
    """Return the number of elements of the runs of the destination, if ``_is_runs``."""
    target = region.target
    return target.sizes[-1] if target.strides[-1] == 1 and _is_runs(region) else 1


def _is_grouped(region: Region, size: int) -> bool:
    run = grouped(region).box.dims[0]
    return run.dst == 1 and run.size * size >= VECTOR


class Grouped(NamedTuple):
    """A box whose runs consist of groups of elements; its stride in the source is that of groups.

    ``size`` is the number of elements in a group, and ``src`` their stride.
    """

    box: Box
    size: int
    src: int


def grouped(region: Region) -> Grouped:
    """Return a region with its two innermost dimensions as one, if the destination allows it."""
    dst, src, (inner, *outer) = Box.of(region)
    if not outer or (inner.dst, outer[0].dst) != (1, inner.size):
        return Grouped(Box(dst, src, [inner, *outer]), 1, 0)
    groups, *outer = outer
    run = Dim(inner.size * groups.size, 1, groups.src)
    return Grouped(Box(dst, src, [run, *outer]), inner.size, inner.src)


def reversed_vectors(region: Region, size: int) -> Box | None:
    """Return a region in 16-byte vectors, if each is read whole, forwards or backwards."""
    side = VECTOR // size
    dst, src, (inner, *outer) = Box.of(region)
    if region.input is None or inner.dst != 1 or abs(inner.src) != 1 or inner.size % side:
        return None
    if inner.src == -1:  # the first element is the last one of its vector
        src -= side - 1
    vectors = Dim(inner.size // side, side, side * inner.src)
    return Box(dst, src, [vectors, *outer]).divided(side)


def blocks(region: Region, size: int) -> Box | None:
    """Return a region in square blocks, in units of their sides.

    The region is contiguous along one dimension in the destination and along another in the
    source. The first dimension of the box numbers the blocks along the former, the second those
    along the latter.
    """
    side = BLOCKS[size].unit // size
    dst, src, dims = Box.of(region)
    across = next((d for d in dims if d.dst == 1 and d.src != 1), None)
    along = next((d for d in dims if d.src == 1 and d.dst != 1), None)
    if region.input is None or across is None or along is None:
        return None
    if any(value % side for value in (across.size, across.src, along.size, along.dst)):
        return None
    if across.src == 0 and across.size * size >= MIN_REPEATED_RUN:
        return None
    numbers = (
        Dim(across.size // side, side, side * across.src),
        Dim(along.size // side, side * along.dst, side),
    )
    rest = [dim for dim in dims if dim not in (across, along)]
    return Box(dst, src, [*numbers, *rest]).divided(side)


class RowSegment(NamedTuple):
    """A part of each row of a stream: its source, its bytes, what a row adds to the address."""

    source: Read
    nbytes: int
    row_src: int


class RowStream(NamedTuple):
    """An output as rows with the same segments, which cover it."""

    rows: int
    segments: Sequence[RowSegment]

    @property
    def row_nbytes(self) -> int:
        """Bytes of a row."""
        return sum(segment.nbytes for segment in self.segments)


def stream(output: Output, size: int) -> RowStream | None:
    """Return an output as rows of contiguous runs, if these cover it without a gap."""
    if len(output.regions) > MAX_SEGMENTS:
        return None
    shape: tuple[int, int] | None = None
    end = 0
    segments = []
    for region in sorted(output.regions, key=lambda region: region.target.offset):
        inner, *rows = Box.of(region).dims
        if not inner.dst == inner.src == 1:
            if len(output.regions) == 1:
                return None  # one invocation stores each word in other kernels, too
            inner, rows = Dim(1, 1, 1), [inner, *rows]  # rows of one element
        row = rows[0] if rows else Dim(1, 0, 0)
        shape = shape or (row.size, row.dst)
        if len(rows) > 1 or shape != (row.size, row.dst) or region.target.offset != end:
            return None
        if not isinstance(region.source, Read):
            return None
        segments.append(RowSegment(region.source, inner.size * size, row.src * size))
        end += inner.size
    if shape is None or shape[1] not in (0, end):
        return None
    if round_up(shape[0] * end * size, 4) != round_up(output.nbytes, 4):
        return None
    return RowStream(shape[0], segments)
