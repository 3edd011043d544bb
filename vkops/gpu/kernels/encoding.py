"""Encode plans as the region tables that the shaders read. Pure NumPy: no Vulkan here."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from math import gcd, prod
from operator import attrgetter
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from vkops.gpu.copies.rule import SHADERS, CopyRule
from vkops.gpu.kernels import layout
from vkops.gpu.kernels.choice import (
    MAX_WORKGROUP,
    ONE,
    ROWS,
    ROWS_4,
    SHARED_TENSORS,
    STREAM,
    TILE_SIDE,
    TILES,
    VECTOR,
    Box,
    Dim,
    Grid,
    Kernel,
    KernelChoice,
    RowStream,
    TiledBox,
    choose_kernel,
)
from vkops.plan.region import CopyPlan, Fill, Indices
from vkops.plan.rounding import ceil_div, factor, round_up

Words = npt.NDArray[np.uint32]
Counts = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class Tuning:
    """The parameters by which invocations share the elements of a plan, for a kind of driver.

    ``steps``: the maximum number of elements (or granules, if the kernel has them) that an
    invocation copies along one run or several. ``item_bytes``: the maximum number of bytes that it
    copies. ``across``: the maximum number of elements that it copies across runs, or of blocks.
    ``workgroups``: the number of workgroups below which invocations copy fewer elements each.
    ``is_cpu``: whether each invocation copies consecutive elements, as suits a CPU; on a GPU,
    neighbouring invocations copy neighbouring elements, and each skips those of the others.
    ``long_run``: the length from which steps go along a run; else they go across. ``sources``: the
    number of heaps that a dispatch can read from. ``invocations``: the maximum of a workgroup.
    ``copies``: the rule for using Vulkan's own copies instead of shaders.
    """

    steps: int
    item_bytes: int
    across: int
    workgroups: int
    is_cpu: bool
    long_run: int
    sources: int = STREAM.sources
    invocations: int = MAX_WORKGROUP
    copies: CopyRule = SHADERS

    def for_bytes(self, nbytes: int, step_bytes: int) -> Tuning:
        """Return the tuning for ``nbytes`` bytes: few bytes get fewer steps, but all workgroups."""
        share = nbytes // step_bytes // (self.workgroups * layout.WORKGROUP_SIZE)
        steps = min(self.steps, self.item_bytes // step_bytes, share)
        return replace(self, steps=max(1, steps))

    def choose_kernel(self, plan: CopyPlan, sources: int, *, by_word: bool = False) -> KernelChoice:
        """Choose the kernel for an optimized plan; see ``choice.choose_kernel``."""
        return choose_kernel(
            plan, sources, is_cpu=self.is_cpu, invocations=self.invocations, by_word=by_word
        )


GPU = Tuning(
    steps=8,
    item_bytes=8 * VECTOR,
    across=8,
    workgroups=1024,
    is_cpu=False,
    long_run=4 * layout.WORKGROUP_SIZE,
)
"""Coalesced: the accesses of a workgroup are in the same memory transactions."""

CPU = Tuning(
    steps=1728,
    item_bytes=432 * VECTOR,
    across=128,
    workgroups=4 * (os.cpu_count() or 1),
    is_cpu=True,
    long_run=4,
)
"""An invocation is a scalar loop: consecutive elements are three times as fast as interleaved ones
on lavapipe, and long loops make up for the cost of finding the first element."""


@dataclass(frozen=True, slots=True)
class RegionTable:
    """The records of a plan, with addresses counted from the start of each binding.

    ``records`` has the shape (records, RECORD_WORDS). ``items``, ``inputs`` and ``outputs`` hold,
    for each record, its number of items and the numbers of its bindings (input -1: a constant). A
    record without items continues the last record that has some. With ``turns``, neighbouring
    invocations work on different records, a little of each. ``may_align`` says that each record may
    begin with a new workgroup, although the last workgroup of a record is then not full.
    ``nbytes`` counts the bytes of the elements that are read and written.
    """

    kernel: Kernel
    records: Words
    items: Counts
    inputs: Counts
    outputs: Counts
    turns: bool = False
    may_align: bool = False
    nbytes: int = 0


LONG_ROW = 4096
"""Streams with rows of this many bytes or more do not take turns."""

ONE_ROW: tuple[int, ...] = layout.Rows(1, 0, 0, layout.ALL_WORDS)
NO_DIM = Dim(0, 0, 0)
UNUSED: tuple[int, ...] = layout.Pattern()


class _Record(NamedTuple):
    """A record of a table; its word for the first item is 0 until ``DispatchTable`` sets it."""

    words: Sequence[int]
    items: int
    input: int
    output: int

    @classmethod
    def of(
        cls,
        output: int,
        input: int | None,
        addresses: tuple[int, int],
        digits: Sequence[Dim],
        vectors: Iterable[Sequence[int]],
    ) -> _Record:
        """Return the record that consists of its head, these vectors, and its digits."""
        head = layout.Head(0, *addresses, len(digits))
        numbers = [
            layout.Digit(digit.size, factor(digit.size), digit.dst, digit.src) for digit in digits
        ]
        items = prod([digit.size for digit in digits]) if digits else 0
        words = _padded((head, *vectors, *numbers))
        return cls(words, items, -1 if input is None else input, output)


def encode(
    plan: CopyPlan, tuning: Tuning, *, streams: bool = True, word: int = layout.ALL_WORDS
) -> RegionTable:
    """Encode an optimized plan.

    ``streams=False`` rules out kernels that read several sources in one heap, so that sources may
    be in any number of heaps. ``word`` is the only word of each element that a scatter writes.
    """
    sources = tuning.sources if streams else 0
    choice = tuning.choose_kernel(plan, sources, by_word=word != layout.ALL_WORDS)
    kernel, size = choice.kernel, plan.element_size
    nbytes = read = 0
    for _, region in plan.regions:
        nbytes += size * prod(region.target.sizes)
        read += 0 if region.source.__class__ is Fill else size * prod(region.target.sizes)
    tuning = tuning.for_bytes(nbytes, kernel.step_bytes)
    records: list[_Record] = []
    for box in choice.boxes:
        if kernel.block:
            records.append(_blocks(box, kernel.block // kernel.unit, tuning))
        else:
            records += _walk(box, kernel, size, tuning, word)
    records += [_tiled(tiles, size) for tiles in choice.tiles]
    inputs = sorted({segment.input for stream in choice.streams for segment in stream.segments})
    for output, stream in enumerate(choice.streams):
        records += _segments(stream, output, inputs, tuning, kernel)
    for output, grid in enumerate(choice.grids):
        records += _grid_levels(grid, output, tuning, size)
    return RegionTable(
        kernel=kernel,
        # Negative strides wrap: the shaders' addresses are modulo 2^32.
        records=np.array([record.words for record in records], np.int64)
        .reshape(-1, layout.RECORD_WORDS)
        .astype(np.uint32),
        items=np.array([record.items for record in records], np.int64),
        inputs=np.array([record.input for record in records], np.int64),
        outputs=np.array([record.output for record in records], np.int64),
        turns=not tuning.is_cpu and _can_take_turns(choice, records),
        may_align=not tuning.is_cpu,
        nbytes=nbytes + read,
    )


def _can_take_turns(choice: KernelChoice, records: Sequence[_Record]) -> bool:
    """Whether to copy regions of short runs together, a few vectors of each in turn.

    This is faster if the regions are interleaved: their bytes are then in the same cache lines.
    """
    counts = {record.items for record in records}
    if len(records) == 1 or len(counts) > 1 or counts.pop() % layout.TURN:
        return False
    if choice.kernel.step_bytes != VECTOR:
        return False
    if choice.streams:
        return all(stream.segments[0].nbytes < LONG_ROW for stream in choice.streams)
    return any(
        (run.dst, run.src) != (1, 1) or run.size * choice.kernel.unit < layout.TURN * VECTOR
        for run in [box.dims[0] for box in choice.boxes]
    )


def _walk(box: Box, kernel: Kernel, size: int, tuning: Tuning, word: int) -> list[_Record]:
    """Return the record of a box, and two more for its indices if it has some.

    An item is the work of one invocation. Its steps go along the innermost dimension; if they
    cover all of it, an item has several rows along the next dimension. If runs are short, steps go
    across them instead, along the next dimension, unless they store vectors.
    """
    source, indices = box.region.source, box.region.indices
    # The kernel copies a vector as one element, unless it reads it backwards.
    element = size if box.dims[0].src < 0 else max(size, kernel.unit)
    run, (inner, *outer) = NO_DIM, box.dims
    if kernel.granule:
        run, (inner, *outer) = _granules(box, size // kernel.unit, kernel.granule // kernel.unit)
    rows, row = ONE_ROW, NO_DIM
    long = inner.size >= tuning.long_run
    across, lines = NO_DIM, 1
    if not (tuning.is_cpu or kernel.granule or indices):
        across, lines = _across(inner, outer, kernel.unit)
    if lines == 1 and not across.size and (long or not outer or kernel.granule == VECTOR):
        lanes = 1 if tuning.is_cpu else min(layout.WORKGROUP_SIZE, inner.size)
        number = _even(ceil_div(inner.size, lanes), tuning.steps)
        chunk = lanes * number
        first = Dim(lanes, *inner[1:])
        if outer and chunk >= inner.size and 2 * number <= tuning.steps:
            row, *outer = outer
            maximum = tuning.steps // number
            count = _even(row.size, maximum if long else min(maximum, tuning.across))
            rows = layout.Rows(count, row.dst, row.src, row.size)
            outer = [row.times(count), *outer]
        digits = [first, inner.times(chunk), *outer]
        step, limit, position = inner.times(lanes), inner.size, layout.Position(lanes, 1, chunk, 0)
    else:
        step = across if across.size else outer[0]
        outer = [dim for dim in outer if dim is not step]
        limit = step.size
        lanes = 1
        if not (tuning.is_cpu or across.size) and len(outer) <= layout.MAX_DIGITS - 4:
            lanes = min(lines * max(1, layout.WORKGROUP_SIZE // (inner.size * lines)), limit)
        number = _even(ceil_div(limit, lanes), min(tuning.steps, tuning.across))
        chunk = lanes * number
        if across.size:
            near = [*outer[:2], *[ONE] * (2 - len(outer))]
            digits = [inner, *near, step.times(chunk), *outer[2:]]
            position = layout.Position(1, 0, 0, chunk)
        elif lanes == 1:
            digits = [inner, step.times(chunk), *outer]
            position = layout.Position(1, 0, chunk, 0)
        else:  # the shaders take digit 2 for the rows of an item, so a digit of size 1 is put there
            digits = [inner, Dim(lanes, *step[1:]), ONE, step.times(chunk), *outer]
            position, step = layout.Position(lanes, 0, 1, chunk), step.times(lanes)
    group = box.group and layout.Group(box.group.size, factor(box.group.size), box.group.src)
    vectors = (
        layout.Steps(number, step.dst, step.src, limit),
        position,
        layout.Run(run.size, run.src, int(isinstance(source, Fill)), element),
        rows,
        group or (_pattern(source) if isinstance(source, Fill) else UNUSED),
    )
    record = _Record.of(box.output, box.region.input, (box.dst, box.src), digits, vectors)
    if indices is None:
        return [record]
    return [record, *_index_records(indices, record, digits, (step, row, run), word)]


def _across(inner: Dim, outer: Sequence[Dim], unit: int) -> tuple[Dim, int]:
    """Decide for a GPU whether steps go across runs; return a dimension for them, or ``NO_DIM``.

    If a dimension repeats the source, steps go along it: an element is loaded once and stored many
    times. Otherwise the second result is how many runs make whole cache lines together, if runs
    follow one another without gaps; 1 in all other cases.
    """
    repeated = [dim for dim in outer if dim.src == 0]
    if repeated:
        return max(repeated, key=attrgetter("size")), 1
    if not outer or (inner.src, inner.dst, outer[0].dst) != (1, 1, inner.size):
        return NO_DIM, 1
    return NO_DIM, layout.LINE // unit // gcd(inner.size, layout.LINE // unit)


def _index_records(
    indices: Indices, record: _Record, digits: Sequence[Dim], dims: tuple[Dim, Dim, Dim], word: int
) -> tuple[_Record, _Record]:
    """Return the two records with the indices of a region; its own record is ``record``.

    ``dims`` are the dimensions of the record's steps, rows and runs.
    """
    step, row, run = dims
    words, limits = indices.words, indices.limits or range(1)
    within = range(layout.ALL_WORDS) if indices.within is None else indices.within
    if indices.limits is not None and indices.rule == "skip":
        within = range(max(within.start, limits.start), min(within.stop, limits.stop))
    vectors = (
        UNUSED,
        layout.Format(len(indices.terms), words, indices.is_signed, indices.rule == "reverse"),
        layout.Advance(step.indices, step.position, run.indices, run.position),
        layout.Within(within.start, len(within), word),
        layout.RowAdvance(row.indices, row.position),
        layout.Start(indices.view.offset * words, indices.position.offset),
        *(layout.DigitAdvance(digit.indices, digit.position) for digit in digits),
    )
    before = [UNUSED, layout.Limits(limits.start, len(limits) - 1)]
    before += [UNUSED] * (len(layout.RECORD) - 1 - len(before))
    terms = (layout.Term(offset * words, size, stride) for offset, size, stride in indices.terms)
    return (
        _Record(_padded(vectors), 0, indices.input, record.output),
        _Record(_padded((*before, *terms)), 0, record.input, record.output),
    )


def _even(size: int, max_length: int) -> int:
    """Return the length of chunks of ``size`` that are as equal as possible, up to a maximum."""
    return size if size <= max_length else ceil_div(size, ceil_div(size, max_length))


def _granules(box: Box, scale: int, granule: int) -> tuple[Dim, Sequence[Dim]]:
    """Turn elements into runs of granules: (units of a run, dimensions).

    The new innermost dimension counts the granules that a run touches. Its strides are 0, because
    the kernel computes where a granule is.
    """
    run, dims = Dim(scale, 1, 1), box.dims
    if dims[0].dst == scale:
        inner, *dims = dims
        run = inner._replace(size=inner.size * scale, src=inner.src // scale)
    aligned = gcd(box.dst, *[dim.dst for dim in dims]) % granule == 0
    slack = 0 if aligned else granule - 1
    return run, [Dim(ceil_div(run.size + slack, granule), 0, 0), *dims]


def _blocks(box: Box, side: int, tuning: Tuning) -> _Record:
    """Cut a row of blocks into steps, and order the items so that neighbours share memory.

    Neighbouring items are in a few adjacent rows and chunks of steps. On CPU drivers, items that
    run at the same time then write whole cache lines, and items that run soon after write to the
    same pages. On GPUs they read and write whole memory transactions.
    """
    across, along, *outer = box.dims
    number = _even(along.size, min(tuning.steps, tuning.across)) if tuning.is_cpu else 1
    chunk = along.times(number)
    near_rows = gcd(across.size, 4)
    near_chunks = min(2, chunk.size) if tuning.is_cpu else gcd(chunk.size, 8)
    rows, far_rows = across._replace(size=near_rows), across.times(near_rows)
    near, far = chunk._replace(size=near_chunks), chunk.times(near_chunks)
    if tuning.is_cpu:
        digits = [rows, near, far_rows, far]
        position = layout.Position(1, 0, number, near_chunks * number)
    else:
        digits = [near, rows, far, far_rows]
        position = layout.Position(1, 0, 0, 0)
    vectors = (
        layout.Steps(number, along.dst, along.src, along.size),
        position,
        layout.Block(across.src // side, along.dst // side),
        ONE_ROW,
        UNUSED,
    )
    digits += outer
    return _Record.of(box.output, box.region.input, (box.dst, box.src), digits, vectors)


def _tiled(tiles: TiledBox, size: int) -> _Record:
    """Return the record of a region in tiles; a workgroup copies one tile."""
    box, *sides = tiles
    rows, columns = (side.step(TILE_SIDE // size) for side in sides)
    (across, more_across), (along, more_along) = sides
    digits = [
        Dim(TILES[size].workgroup, 0, 0),
        more_across.times(rows // across.size)
        if rows >= across.size
        else Dim(ceil_div(across.size, rows), rows * size // VECTOR, rows * across.src),
        more_along.times(columns // along.size)
        if columns >= along.size
        else Dim(ceil_div(along.size, columns), columns * along.dst, columns * size // VECTOR),
        *box.dims,
    ]
    vectors = (
        layout.Across(across.size, factor(across.size), across.src, sides[0].size),
        layout.Position(0, 0, rows, 0),
        layout.Along(along.size, factor(along.size), along.dst, sides[1].size),
        layout.Rows(columns, 0, 0, layout.ALL_WORDS),
        layout.Outer(more_across.dst, more_across.src, more_along.dst, more_along.src),
    )
    return _Record.of(box.output, box.region.input, (box.dst, box.src), digits, vectors)


def _segments(
    stream: RowStream, output: int, inputs: Sequence[int], tuning: Tuning, kernel: Kernel
) -> list[_Record]:
    """Return a record for each segment of a row; the first one has all the items."""
    # On a GPU, neighbouring invocations fill neighbouring vectors.
    is_apart = kernel in (ROWS, ROWS_4)
    steps = tuning.steps if tuning.is_cpu or is_apart else 1
    row = sum([segment.nbytes for segment in stream.segments])
    nbytes = stream.rows * row
    multiple = layout.WORKGROUP_SIZE if is_apart else 1 if tuning.is_cpu else layout.TURN
    digits = _numbered(nbytes, steps, multiple)
    first = layout.Stream(steps, nbytes, len(stream.segments))
    row_factor = layout.Row(row, factor(row))
    start = 0
    records = []
    for input, src, length, row_src in stream.segments:
        segment = layout.Segment(start, length, row_src, inputs.index(input) % SHARED_TENSORS)
        far = (stream.rows - 1) * row_src
        reach = layout.Reach(min(0, far), max(0, far) + length - 1)
        vectors = first, segment, row_factor, reach, UNUSED
        records.append(_Record.of(output, input, (0, src), digits, vectors))
        start += length
        digits = []
    return records


def _grid_levels(grid: Grid, output: int, tuning: Tuning, size: int) -> list[_Record]:
    """Return a record for each dimension of a grid; the innermost one has all the items."""
    nbytes = prod(grid.sizes) * size
    digits = _numbered(nbytes, tuning.steps, layout.WORKGROUP_SIZE)
    records = []
    for count, parts in zip(grid.sizes, grid.parts, strict=True):
        vectors = (
            layout.Stream(tuning.steps, nbytes, len(grid.sizes)),
            layout.Level(count, factor(count)),
            layout.Starts(*[part.start for part in parts]),
            layout.Origins(*[part.src - part.start * part.stride for part in parts]),
            layout.Strides(*[part.stride for part in parts]),
        )
        records.append(_Record.of(output, grid.input, (0, grid.src), digits, vectors))
        digits = []
    return records


def _numbered(nbytes: int, steps: int, multiple: int) -> list[Dim]:
    """Return the digit that numbers the items of a stream, of some vectors each."""
    return [Dim(round_up(ceil_div(nbytes, steps * VECTOR), multiple), 0, 0)]


def _padded(vectors: Iterable[Sequence[int]]) -> list[int]:
    words = [0] * layout.RECORD_WORDS
    for number, vector in enumerate(vectors):
        words[4 * number : 4 * number + len(vector)] = vector
    return words


def _pattern(fill: Fill) -> layout.Pattern:
    pattern = fill.pattern * (VECTOR // len(fill.pattern))
    return layout.Pattern(*np.frombuffer(pattern, np.uint32).tolist())
