"""Choice of the kernel of a plan: one kernel for all regions, so that one dispatch runs them.

The choice includes the form that the kernel takes: each region as a box, or each output as a stream
of rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise, product
from math import gcd, prod
from operator import itemgetter
from typing import NamedTuple, TypeVar

from vkops.gpu.kernels import layout
from vkops.gpu.kernels.layout import WORKGROUP_SIZE
from vkops.plan.region import CopyPlan, Read, Region
from vkops.plan.rounding import ceil_div, round_up
from vkops.plan.view import View

VECTOR = 16
"""Bytes of the widest access a shader has, and of a step of the kernels that copy bytes."""

_Item = TypeVar("_Item")
_Found = TypeVar("_Found")


@dataclass(frozen=True, slots=True)
class Kernel:
    """A shader variant: its addresses count ``unit`` bytes.

    If ``granule`` is not 0, a step is that many bytes of a contiguous run of the destination; if
    ``block`` is not 0, it is a square block of that many bytes. ``sources`` is the number of heaps
    it can read from at once; the second of an ``indexed`` kernel holds the indices. ``workgroup``
    is the number of invocations of a workgroup.
    """

    name: str
    unit: int
    granule: int
    sources: int = 1
    indexed: bool = False
    block: int = 0
    workgroup: int = WORKGROUP_SIZE

    @property
    def scatters(self) -> bool:
        """Whether it writes to the places that indices select."""
        return self.name.startswith("scatter")

    @property
    def step_bytes(self) -> int:
        """Bytes that a step copies."""
        return self.block or self.granule or self.unit

    @property
    def bindings(self) -> int:
        """Number of buffers that it is bound to: table, sources, and target once or twice."""
        return 1 + self.sources + (1 if self.indexed else 2)

    @property
    def wide(self) -> str | None:
        """The name of the same kernel with integers of 64 bits, if there is one."""
        wide = ("copy_16", "gather_16", "copy_run")
        return f"{self.name}_wide" if self.name in wide else None


WORDS = {size: Kernel(f"copy_{size}", size, 0) for size in (4, 8, 16)}
SUBWORDS = {size: Kernel(f"copy_{size}", size, 4) for size in (1, 2)}
RUNS = Kernel("copy_run", 1, VECTOR)
STREAM = Kernel("copy_stream", 1, VECTOR, sources=4)
STREAM_4 = Kernel("copy_stream_4", 1, VECTOR)
"""For rows of four segments at most, which it keeps in registers."""

STREAM_SHARED = Kernel("copy_stream_shared", 1, VECTOR, workgroup=256)
"""For GPUs: a workgroup loads each vector once, to shared memory."""

ROWS = Kernel("copy_rows", 1, VECTOR)
"""For GPUs: rows of one segment, or of four at most, each of which has a vector or more."""

ROWS_4 = Kernel("copy_rows_4", 1, VECTOR)

SHARED_TENSORS = 4
"""Tensors that it distinguishes: what it needs of each is near together."""

GRIDS = {size: Kernel(f"copy_grid_{size}", size, VECTOR) for size in (1, 2, 4, 8)}
"""For GPUs: outputs whose dimensions consist of parts, as those of pads do."""

MAX_PARTS = 4
"""Parts of a dimension."""

STREAMS = (STREAM, STREAM_4, STREAM_SHARED, ROWS, ROWS_4)
ELEMENTS = {size: Kernel(f"copy_elements_{size}", size, VECTOR) for size in (4, 8)}
"""For contiguous runs of the destination, which these kernels store in vectors."""

REVERSE = Kernel("copy_reverse", VECTOR, 0)
BLOCKS = {
    size: Kernel(f"copy_block_{size}", unit, 0, block=unit * unit // size)
    for size, unit in ((1, 8), (2, 8), (4, VECTOR), (8, VECTOR))
}
MAX_WORKGROUP = 256
"""The most invocations of a workgroup of any kernel."""

TILE_SIDE = 128
"""Bytes of a row, and of a column, of a tile."""

TILES = {
    size: Kernel(f"copy_tile_{size}", VECTOR, 0, workgroup=max(WORKGROUP_SIZE, 256 // size))
    for size in (1, 2, 4, 8, 16)
}
"""For transposes on GPUs, through shared memory: 64 bytes at most for each invocation."""


def _indexed(name: str, units: Sequence[int], granule: int = 0) -> Mapping[int, Kernel]:
    return {u: Kernel(f"{name}_{u}", u, granule, sources=2, indexed=True) for u in units}


GATHERS = _indexed("gather", (4, 8, 16))
GATHER_RUNS = _indexed("gather_run", (1, 2, 4, 8), VECTOR)
"""For runs of the destination, as ``ELEMENTS``."""

SCATTERS = _indexed("scatter", (4, 8, 16))
SCATTERED_WORDS = _indexed("scatter_words", (8, 16))
"""For elements of which each dispatch writes one word."""

GENERAL_GATHERS = {**_indexed("gather_any", (1, 2), 4), **_indexed("gather_any", (4, 8, 16))}
"""For tuples of several indices, and for tensors in several heaps: other gathers lack both."""

GENERAL_SCATTERS = _indexed("scatter_any", (1, 2, 4, 8, 16))

LIMITED_GATHERS = {**_indexed("gather_limited", (1, 2), 4), **_indexed("gather_limited", (4, 8))}
LIMITED_SCATTERS = _indexed("scatter_limited", (1, 2, 4, 8))
"""For indices that address memory within limits."""

MAX_DIMS = 8
"""Dimensions of a region that fit in a record, which has at most two digits more."""

MIN_LONG_RUN = 16
"""Bytes from which runs of words are copied by 16-byte accesses that are shifted into place.
Runs of smaller elements are copied so at any length, because other kernels would need atomics."""

LONG_RUN_THRESHOLD = 0.9
"""Share of a plan's elements in long runs from which the whole plan is copied that way."""

MIN_GPU_RUN = 128
"""The same on GPUs, for elements smaller than words, beside grids and streams in shared memory.
On an NVIDIA H200, runs of 170 bytes are 1.6 times as fast as that, and those of 21 bytes half."""

MIN_VERY_LONG_RUN = 4 << 10
"""The length in bytes from which CPU drivers copy runs faster one by one than as a stream."""

MIN_REPEATED_RUN = 128
"""The length in bytes from which a repeated element is stored as whole runs, not as blocks."""

MAX_SEGMENTS = 1024
"""Segments in a row of a stream: one dispatch has all of them, and searches them."""


class Dim(NamedTuple):
    """A dimension of a region: its size, and what a step along it adds to both addresses.

    In a region with indices, a step also adds to the index's address (in words) and the position.
    """

    size: int
    dst: int
    src: int
    indices: int = 0
    position: int = 0

    def times(self, count: int) -> Dim:
        """Return the dimension with every ``count``-th place; the last may go beyond the end."""
        size, dst, src, indices, position = self
        size = ceil_div(size, count)
        return Dim(size, dst * count, src * count, indices * count, position * count)


class Box(NamedTuple):
    """A region as its first address in output and source, and its dimensions, innermost first.

    If ``group`` is not None, the innermost dimension consists of groups of elements, and ``group``
    is the dimension inside a group.
    """

    output: int
    region: Region
    dst: int
    src: int
    dims: Sequence[Dim]
    group: Dim | None = None

    @classmethod
    def of(cls, output: int, region: Region) -> Box:
        """Return the box of a region, in elements."""
        target, source = region.target, region.source_view
        numbers = [target.sizes, target.strides, source.strides]
        if region.indices is not None:
            words = region.indices.words
            index, position = region.index_views
            numbers += [tuple([stride * words for stride in index.strides]), position.strides]
        dims = [Dim(*dim) for dim in zip(*numbers, strict=True)]
        return cls(output, region, target.offset, source.offset, dims[::-1])

    def scaled(self, scale: int) -> Box:
        """Return the box in smaller units: an element has ``scale`` of them."""
        dims = [Dim(d.size, d.dst * scale, d.src * scale) for d in self.dims]
        return self._replace(dst=self.dst * scale, src=self.src * scale, dims=dims)

    def divided(self, side: int) -> Box | None:
        """Return the box in units of ``side`` elements; None if an address is not a multiple."""
        strides = [stride for dim in self.dims for stride in (dim.dst, dim.src)]
        if gcd(self.dst, self.src, *strides) % side:
            return None
        dims = [Dim(d.size, d.dst // side, d.src // side) for d in self.dims]
        return self._replace(dst=self.dst // side, src=self.src // side, dims=dims)


ONE = Dim(1, 0, 0)
"""A dimension of size 1."""


class Side(NamedTuple):
    """A side of a region's tiles: two nested dimensions; ``outer`` is ``ONE`` if one is enough.

    ``inner`` is contiguous in one tensor, and ``outer`` continues it there.
    """

    inner: Dim
    outer: Dim

    @property
    def size(self) -> int:
        """The number of elements."""
        return self.inner.size * self.outer.size

    def step(self, side: int) -> int:
        """Return the number of elements along this side of a tile, at most ``side``."""
        size = self.inner.size
        return min(side, size) * min(max(1, side // size), self.outer.size)


class TiledBox(NamedTuple):
    """A region to transpose in tiles: ``box`` has the other dimensions, in vectors.

    The sides are contiguous in the destination (``across``) and in the source (``along``); their
    other strides count vectors, too.
    """

    box: Box
    across: Side
    along: Side


class RowSegment(NamedTuple):
    """A part of each row of a stream: input, first byte, length, and distance to the next row's."""

    input: int
    src: int
    nbytes: int
    row_src: int


class RowStream(NamedTuple):
    """An output as rows that cover it; all rows have the same segments."""

    rows: int
    segments: Sequence[RowSegment]


class DimPart(NamedTuple):
    """A part of a dimension: its first coordinate, what that and a step add to the address."""

    start: int
    src: int
    stride: int


class Grid(NamedTuple):
    """An output as the first address in a source, and its dimensions, innermost first, in parts."""

    input: int
    src: int
    sizes: Sequence[int]
    parts: Sequence[Sequence[DimPart]]


class KernelChoice(NamedTuple):
    """A kernel, and the regions in the form that it takes.

    These are boxes in its units, or tiles, or for each output a stream or a grid.
    """

    kernel: Kernel
    boxes: Sequence[Box] = ()
    streams: Sequence[RowStream] = ()
    tiles: Sequence[TiledBox] = ()
    grids: Sequence[Grid] = ()


def choose_kernel(
    plan: CopyPlan,
    sources: int = STREAM.sources,
    *,
    is_cpu: bool = True,
    invocations: int = MAX_WORKGROUP,
    by_word: bool = False,
) -> KernelChoice:
    """Choose the kernel for an optimized plan.

    The regions must be of one kind: all copy, all gather or all scatter, and all or none have
    limits. ``sources`` is the number of heaps that a dispatch can read from; 0 rules out streams.
    ``is_cpu`` and ``invocations`` are those of the tuning. ``by_word`` says that a dispatch writes
    one word of each element.
    """
    size = plan.element_size
    outputs = [_boxes(number, output.regions) for number, output in enumerate(plan.outputs)]
    boxes = [box for each in outputs for box in each]
    if boxes and boxes[0].region.indices is not None:
        return KernelChoice(_choose_indexed(boxes, size, by_word), boxes)
    may_tile = not is_cpu and TILES[size].workgroup <= invocations
    tiled = _each(partial(_tiles, size=size), boxes) if may_tile else None
    if tiled is not None:
        return KernelChoice(TILES[size], tiles=tiled)
    if size == VECTOR:
        return KernelChoice(WORDS[size], boxes)
    for kernel, form in ((BLOCKS[size], _blocks), (REVERSE, _reversed_vectors)):
        fitted = _each(partial(form, size=size), boxes)
        if fitted is not None:
            return KernelChoice(kernel, fitted)
    long_runs = _share_of_long_runs(boxes, size)
    by_streams = None
    are_very_long = (
        is_cpu and long_runs == 1 and _share_of_long_runs(boxes, size, MIN_VERY_LONG_RUN) == 1
    )
    if (size < 4 or long_runs == 1) and not are_very_long:
        streams = _each(partial(_stream, plan=plan, is_cpu=is_cpu), outputs)
        if streams is not None:
            kernel = _stream_kernel(streams, invocations, is_cpu=is_cpu)
            if kernel.sources <= sources:
                by_streams = KernelChoice(kernel, streams=streams)
    if by_streams is not None and (is_cpu or by_streams.kernel in (ROWS, ROWS_4)):
        return by_streams
    # Where a plan was cut, long runs can have short ends. Runs of the destination must be runs of
    # the source, or one element of it.
    are_runs = all(box.dims[0].dst != 1 or box.dims[0].src in (0, 1) for box in boxes)
    gpu_runs = _share_of_long_runs(boxes, size, MIN_GPU_RUN) if size < 4 and are_runs else 0
    if not is_cpu and gpu_runs < LONG_RUN_THRESHOLD:
        grids = _each(partial(_grid, plan=plan), outputs)
        if grids is not None:
            return KernelChoice(GRIDS[size], grids=grids)
        if by_streams is not None and size < 4:
            return by_streams
    if long_runs >= LONG_RUN_THRESHOLD and are_runs:
        return KernelChoice(RUNS, [box.scaled(size) for box in boxes])
    if size in ELEMENTS:
        fitted = _each(partial(_grouped, size=size, is_cpu=is_cpu), boxes)
        if fitted is not None:
            return KernelChoice(ELEMENTS[size], fitted)
    return KernelChoice(WORDS.get(size) or SUBWORDS[size], boxes)


def _boxes(output: int, regions: Iterable[Region]) -> list[Box]:
    """Return regions as boxes, split along outer dimensions until each fits into one record.

    A region that gathers rows can have more elements than any tensor.
    """
    boxes: list[Box] = []
    for region in regions:
        sizes = region.target.sizes
        if len(sizes) > MAX_DIMS:
            boxes += _boxes(output, [region.take(0, i) for i in range(sizes[0])])
        elif region.indices is not None and prod(sizes) > layout.MAX_ITEMS:
            axis = next(n for n, size in enumerate(sizes) if size > 1)
            half = sizes[axis] // 2
            parts = (0, half), (half, sizes[axis] - half)
            halves = [region.map(partial(_narrowed, axis, *part)) for part in parts]
            boxes += _boxes(output, halves)
        else:
            boxes.append(Box.of(output, region))
    return boxes


def _narrowed(axis: int, start: int, size: int, view: View) -> View:
    return view.narrow(axis, start, size)


def _each(
    find: Callable[[_Item], _Found | None], items: Iterable[_Item]
) -> Sequence[_Found] | None:
    """Return a function's results for all items; None if one of the results is None."""
    results = []
    for item in items:
        if (result := find(item)) is None:
            return None
        results.append(result)
    return results


def _choose_indexed(boxes: Sequence[Box], size: int, by_word: bool) -> Kernel:
    gathers = boxes[0].region.kind == "gather"
    indices = [box.region.indices for box in boxes if box.region.indices is not None]
    if boxes[0].region.has_limits:
        return (LIMITED_GATHERS if gathers else LIMITED_SCATTERS)[size]
    if any(len(i.terms) > 1 or i.within is not None for i in indices):
        return (GENERAL_GATHERS if gathers else GENERAL_SCATTERS)[size]
    if not gathers:
        return (SCATTERED_WORDS if by_word else SCATTERS).get(size) or GENERAL_SCATTERS[size]
    runs = [box.dims[0] for box in boxes]
    if size < VECTOR and all(run.dst == 1 and run.size * size >= VECTOR for run in runs):
        return GATHER_RUNS[size]
    return GATHERS.get(size) or GENERAL_GATHERS[size]


def _share_of_long_runs(boxes: Sequence[Box], size: int, least: int = MIN_LONG_RUN) -> float:
    total = long_runs = 0
    for box in boxes:
        run, count = box.dims[0], prod(box.region.sizes)
        total += count
        if run.dst == 1 and run.src in (0, 1) and run.size * size >= least:
            long_runs += count
    return long_runs / total


def _grouped(box: Box, size: int, *, is_cpu: bool) -> Box | None:
    """Return a box with runs of the output, each of two merged dimensions if possible.

    Return None if the runs of the output are too short for vectors. On GPUs, return None also if
    neighbouring invocations would load elements that are more than a vector apart.
    """
    run, *outer = box.dims
    group = Dim(1, 1, 0)
    if outer and (run.dst, outer[0].dst) == (1, run.size):
        group, (groups, *outer) = run, outer
        run = Dim(group.size * groups.size, 1, groups.src)
    if run.dst != 1 or run.size * size < VECTOR:
        return None
    groups_apart, rest = divmod(VECTOR // size, group.size)
    if not is_cpu and abs(groups_apart * run.src + rest * group.src) * size > VECTOR:
        return None
    return box._replace(dims=[run, *outer], group=None if box.region.input is None else group)


def _reversed_vectors(box: Box, size: int) -> Box | None:
    """Return a box in 16-byte vectors, if each is read whole, forwards or backwards."""
    side = VECTOR // size
    inner, *outer = box.dims
    if inner.dst != 1 or abs(inner.src) != 1 or inner.size % side or box.region.input is None:
        return None
    # Backwards, the first element is the last one of its vector.
    src = box.src - (side - 1) if inner.src == -1 else box.src
    vectors = Dim(inner.size // side, side, side * inner.src)
    return box._replace(src=src, dims=[vectors, *outer]).divided(side)


def _blocks(box: Box, size: int) -> Box | None:
    """Return a box divided into square blocks, in units of a block's side.

    The region must be contiguous along one dimension in the destination and along another in the
    source. The first dimension of the result counts blocks along the former dimension, and the
    second along the latter.
    """
    side = BLOCKS[size].unit // size
    dims = box.dims
    acrosses = [d for d in dims if d.dst == 1 and d.src != 1]
    alongs = [d for d in dims if d.src == 1 and d.dst != 1]
    if box.region.input is None or not acrosses or not alongs:
        return None
    across, along = acrosses[0], alongs[0]
    if gcd(across.size, across.src, along.size, along.dst) % side:
        return None
    if across.src == 0 and across.size * size >= MIN_REPEATED_RUN:
        return None
    numbers = (
        Dim(across.size // side, side, side * across.src),
        Dim(along.size // side, side * along.dst, side),
    )
    rest = [dim for dim in dims if dim not in (across, along)]
    return box._replace(dims=[*numbers, *rest]).divided(side)


def _tiles(box: Box, size: int) -> TiledBox | None:
    """Return a box as tiles, if these consist of whole vectors and are not too small."""
    per_vector, side = VECTOR // size, TILE_SIDE // size
    rest = list(box.dims)
    across = next((d for d in rest if d.dst == 1 and d.src not in (0, 1)), None)
    along = next((d for d in rest if d.src == 1 and d.dst != 1), None)
    if box.region.input is None or across is None or along is None:
        return None
    rest = [d for d in rest if d not in (across, along)]
    more = {"dst": ONE, "src": ONE}
    # A dimension that could extend either side extends the shorter one.
    for inner, name in sorted([(across, "dst"), (along, "src")], key=lambda each: each[0].size):
        if inner.size < side:
            more[name] = next((d for d in rest if getattr(d, name) == inner.size), ONE)
            rest = [d for d in rest if d is not more[name]]
    # Tiles consist of whole vectors: all strides but those of 1, along the contiguous dimensions,
    # must be multiples of a vector.
    dims = [across._replace(dst=0), more["dst"], along._replace(src=0), more["src"], *rest]
    vectors = box._replace(dims=dims).divided(per_vector)
    if vectors is None or gcd(across.size, along.size) % per_vector:
        return None
    across, more_across, along, more_along, *rest = vectors.dims
    sides = Side(across, more_across), Side(along, more_along)
    if 4 * sides[0].step(side) * sides[1].step(side) < side * side:
        return None
    return TiledBox(vectors._replace(dims=rest), *sides)


def _stream(boxes: Sequence[Box], plan: CopyPlan, *, is_cpu: bool) -> RowStream | None:
    """Return the boxes of an output as rows of contiguous runs, if these cover it without a gap.

    On GPUs, a row may have the runs of several dimensions, if they are not too short.
    """
    size = plan.element_size
    if not 0 < len(boxes) <= MAX_SEGMENTS:
        return None
    runs = [_runs(box) for box in boxes]
    if len(boxes) == 1 and runs[0][0].size == 1:
        return None  # other kernels store each word once, too: a stream has no advantage
    shapes = {(dims[-1].size, dims[-1].dst) if dims else (1, 0) for _, dims in runs}
    rows, row_dst = shapes.pop() if len(shapes) == 1 else (1, 0)
    segments: list[tuple[int, RowSegment]] = []
    for box, (run, dims) in zip(boxes, runs, strict=True):
        row_src = 0
        if dims and not shapes:
            *dims, row = dims
            row_src = row.src * size
        source, count = box.region.source, prod([dim.size for dim in dims])
        if not isinstance(source, Read) or len(segments) + count > MAX_SEGMENTS:
            return None
        if dims and is_cpu:
            return None
        for places in product(*[range(dim.size) for dim in dims]):
            dst = box.dst + sum([n * dim.dst for n, dim in zip(places, dims, strict=True)])
            src = box.src + sum([n * dim.src for n, dim in zip(places, dims, strict=True)])
            segment = RowSegment(source.input, src * size, run.size * size, row_src)
            segments.append((dst * size, segment))
    end = 0
    segments.sort(key=itemgetter(0))
    for dst, segment in segments:
        if dst != end:
            return None
        end += segment.nbytes
    if row_dst * size not in (0, end) or (size >= 4 and end < MIN_LONG_RUN * len(segments)):
        return None
    if not _has_last_word(rows * end, boxes, plan):
        return None
    return RowStream(rows, [segment for _, segment in segments])


def _stream_kernel(streams: Sequence[RowStream], invocations: int, *, is_cpu: bool) -> Kernel:
    """The kernel of streams, which depends on the segments of their rows."""
    most = max([len(stream.segments) for stream in streams])
    shortest = min([segment.nbytes for stream in streams for segment in stream.segments])
    if not is_cpu and most <= 4 and shortest >= VECTOR:
        return ROWS if most == 1 else ROWS_4
    if not is_cpu and STREAM_SHARED.workgroup <= invocations:
        return STREAM_SHARED
    return STREAM_4 if most <= 4 else STREAM


_Interval = tuple[int, int]
"""Coordinates of a dimension: the first one, and how many they are."""


def _grid(boxes: Sequence[Box], plan: CopyPlan) -> Grid | None:
    """Return the boxes of an output as a grid, if they are the cells of one, without a gap.

    Its last word is not shared with another dispatch, which would have to write it atomically.
    """
    size, targets = plan.element_size, [box.region.target for box in boxes]
    count = sum([prod(target.sizes) for target in targets])
    input = boxes[0].region.input if boxes else None
    if len(boxes) < 2 or input is None or any(box.region.input != input for box in boxes):
        return None
    if max([target.extent for target in targets]) != count:
        return None
    if size < 4 and not _has_last_word(count * size, boxes, plan):
        return None
    boxes = [box._replace(dims=[dim for dim in box.dims if dim.size > 1]) for box in boxes]
    steps = sorted({1, count, *[dim.dst for box in boxes for dim in box.dims]})
    if steps[0] < 1 or any(n % step for step, n in pairwise(steps)):
        return None
    sizes = [n // step for step, n in pairwise(steps)]
    cells: dict[tuple[_Interval, ...], tuple[int, list[int]]] = {}
    for box in boxes:
        cell = _cell(box, steps, sizes)
        if cell is None:
            return None
        intervals, strides = cell
        cells[intervals] = box.src, strides
    parts = _parts(cells, sizes)
    if parts is None or sizes[0] * size < VECTOR:
        return None
    return Grid(input, next(box.src for box in boxes if box.dst == 0), sizes, parts)


def _cell(
    box: Box, steps: Sequence[int], sizes: Sequence[int]
) -> tuple[tuple[_Interval, ...], list[int]] | None:
    """Return what a box has of each dimension of an output, and its strides in the source."""
    starts = [box.dst // step % size for step, size in zip(steps, sizes, strict=False)]
    counts, strides = [1] * len(sizes), [0] * len(sizes)
    for dim in box.dims:
        level, count, stride = steps.index(dim.dst), dim.size, dim.src
        # Dimensions that are merged in this box are several in others.
        while count > sizes[level]:
            if count % sizes[level]:
                return None
            counts[level], strides[level] = sizes[level], stride
            count, stride, level = count // sizes[level], stride * sizes[level], level + 1
        counts[level], strides[level] = count, stride
    return tuple(zip(starts, counts, strict=True)), strides


def _parts(
    cells: Mapping[tuple[_Interval, ...], tuple[int, list[int]]], sizes: Sequence[int]
) -> list[list[DimPart]] | None:
    """Return the parts of each dimension, if all combinations of them are cells.

    A part must have one stride in all cells, and be equally far from the first part.
    """
    intervals = [sorted(set(each)) for each in zip(*cells, strict=True)]
    if max(map(len, intervals)) > MAX_PARTS or len(cells) != prod(map(len, intervals)):
        return None
    corner = [each[0] for each in intervals]
    src, _ = cells[tuple(corner)]
    found: list[dict[_Interval, DimPart]] = []
    for level, each in enumerate(intervals):
        ends = [start + count for start, count in each]
        if [start for start, _ in each] != [0, *ends[:-1]] or ends[-1] != sizes[level]:
            return None
        found.append({})
        for interval in each:
            beside = (*corner[:level], interval, *corner[level + 1 :])
            at, strides = cells[beside]
            found[-1][interval] = DimPart(interval[0], at - src, strides[level])
    for cell, (at, strides) in cells.items():
        parts = [of[interval] for of, interval in zip(found, cell, strict=True)]
        moved = sum([part.src for part in parts])
        if at != src + moved or strides != [part.stride for part in parts]:
            return None
    return [[*each.values()] for each in found]


def _has_last_word(nbytes: int, boxes: Sequence[Box], plan: CopyPlan) -> bool:
    """Whether the first ``nbytes`` of the boxes' output end in its last word."""
    return round_up(nbytes, 4) == round_up(plan.outputs[boxes[0].output].nbytes, 4)


def _runs(box: Box) -> tuple[Dim, Sequence[Dim]]:
    """Return the contiguous runs of a box, or single elements, and the box's other dimensions."""
    inner, *outer = box.dims
    if inner.dst == inner.src == 1:
        return inner, outer
    return Dim(1, 1, 1), box.dims
