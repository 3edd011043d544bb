"""Encode plans as the region tables that the shaders read. Pure NumPy: no Vulkan here."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from math import gcd, prod
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from vkops.gpu.copies.copy_costs import CopyCosts
from vkops.gpu.kernels import choice
from vkops.gpu.kernels.choice import VECTOR, Box, Dim, Kernel, choose_kernel
from vkops.gpu.kernels.layout import (
    ALL_WORDS,
    RECORD,
    RECORD_WORDS,
    WORKGROUP_SIZE,
    Advance,
    Block,
    Digit,
    Format,
    Group,
    Head,
    Pattern,
    Place,
    Position,
    Row,
    RowAdvance,
    Rows,
    Run,
    Segment,
    Start,
    Steps,
    Stream,
    Term,
    Within,
)
from vkops.plan.region import CopyPlan, Fill, Indices, Read, Region
from vkops.plan.rounding import ceil_div

Words = npt.NDArray[np.uint32]
Counts = npt.NDArray[np.int64]

MAX_DIMS = 8
"""Dimensions of a region that fit in a record, which has at most two digits more."""


@dataclass(frozen=True, slots=True)
class Tuning:
    """How a driver's invocations share the elements.

    ``steps``: the maximum number of elements (or granules, if the kernel has them) that an
    invocation copies along runs, of which it can have several. ``item_bytes``: the maximum number
    of bytes. ``across``: the maximum number of elements across runs, or of blocks.
    ``workgroups``: fewer steps are taken if there would be fewer workgroups than this.
    ``interleave``: this many neighbouring invocations copy neighbouring elements, each stepping
    over those of the others; with 1, each copies consecutive ones. ``long_run``: the length from
    which steps go along a run; else they go across. ``sources``: the heaps that a dispatch can
    read from. ``copies``: what copies with regions cost, if the device has them.
    """

    steps: int
    item_bytes: int
    across: int
    workgroups: int
    interleave: int
    long_run: int
    sources: int = choice.STREAM.sources
    copies: CopyCosts | None = None

    def for_bytes(self, nbytes: int, step_bytes: int) -> Tuning:
        """Return it with as many steps at most as ``nbytes`` bytes need of ``step_bytes`` each."""
        share = nbytes // step_bytes // (self.workgroups * WORKGROUP_SIZE)
        steps = min(self.steps, self.item_bytes // step_bytes, share)
        return replace(self, steps=max(1, steps))


GPU = Tuning(
    steps=8,
    item_bytes=8 * VECTOR,
    across=8,
    workgroups=1024,
    interleave=WORKGROUP_SIZE,
    long_run=4 * WORKGROUP_SIZE,
)
"""Coalesced: the accesses of a workgroup are in the same memory transactions."""

CPU = Tuning(
    steps=1728,
    item_bytes=432 * VECTOR,
    across=128,
    workgroups=4 * (os.cpu_count() or 1),
    interleave=1,
    long_run=4,
)
"""An invocation is a scalar loop: consecutive elements are three times as fast as interleaved ones
on lavapipe, and long loops make up for the cost of finding the first element."""


@dataclass(frozen=True, slots=True)
class RegionTable:
    """The records of a plan, with addresses counted from the start of each binding.

    ``records`` has the shape (records, RECORD_WORDS). ``items``, ``inputs`` and ``outputs`` hold
    the number of items of each record and the numbers of its bindings (input -1: a constant). A
    record without items belongs to the last one before it that has some.
    """

    kernel: Kernel
    records: Words
    items: Counts
    inputs: Counts
    outputs: Counts


ONE_ROW = Rows(1, 0, 0, ALL_WORDS)


class _Record(NamedTuple):
    """One record, without the number of its first item and the pattern of a constant.

    ``step`` is the dimension that the steps of an item go along, ``row`` that of its rows,
    ``element`` a run's.
    """

    dst: int
    src: int
    vectors: tuple[Steps | Stream, Position | Segment, Run | Block | Row]
    digits: Sequence[Dim]
    rows: Rows = ONE_ROW
    step: Dim = Dim(0, 0, 0)
    row: Dim = Dim(0, 0, 0)
    element: Dim = Dim(0, 0, 0)
    group: Group | None = None

    @property
    def items(self) -> int:
        return prod(digit.size for digit in self.digits) if self.digits else 0


def encode(
    plan: CopyPlan, tuning: Tuning, *, streams: bool = True, word: int = ALL_WORDS
) -> RegionTable:
    """Encode an optimized plan; without ``streams``, for sources in any number of heaps.

    ``word`` is the only word of each element that a scatter writes.
    """
    sources = tuning.sources if streams else 0
    kernel = choose_kernel(plan, sources, by_word=word != ALL_WORDS)
    nbytes = plan.element_size * sum(prod(region.sizes) for _, region in plan.regions)
    tuning = tuning.for_bytes(nbytes, _step_bytes(kernel, plan))
    encoded = list(
        _streams(plan, tuning) if kernel in choice.STREAMS else _regions(plan, kernel, tuning, word)
    )
    words = [word for record in encoded for word in record.words]
    return RegionTable(
        kernel=kernel,
        # Negative strides wrap: the shaders' addresses are modulo 2^32.
        records=np.array(words, np.int64).reshape(-1, RECORD_WORDS).astype(np.uint32),
        items=np.array([record.items for record in encoded], np.int64),
        inputs=np.array([record.input for record in encoded], np.int64),
        outputs=np.array([record.output for record in encoded], np.int64),
    )


class _Encoded(NamedTuple):
    """The words of a record, with 0 for the number of its first item, and a row of the table."""

    words: Sequence[int]
    items: int
    input: int
    output: int


def _step_bytes(kernel: Kernel, plan: CopyPlan) -> int:
    if kernel in choice.BLOCKS.values():
        return kernel.unit**2 // plan.element_size
    return kernel.granule or kernel.unit


def _regions(plan: CopyPlan, kernel: Kernel, tuning: Tuning, word: int) -> Iterator[_Encoded]:
    """One record for each region that has few enough dimensions, and two more for its indices."""
    encoder = _encoder(kernel, plan.element_size, tuning)
    for output, target in enumerate(plan.outputs):
        for whole in target.regions:
            for region in _peel(whole):
                record = encoder(region)
                encoded = _encoded(output, region.source, record)
                yield encoded
                if region.indices is not None:
                    yield from _index_records(region.indices, record, encoded, word)


def _index_records(
    indices: Indices, record: _Record, encoded: _Encoded, word: int
) -> Iterator[_Encoded]:
    """The records with the indices of a region, of which ``record`` and ``encoded`` are."""
    words, step, element = indices.words, record.step, record.element
    within = range(ALL_WORDS) if indices.within is None else indices.within
    vectors = (
        Head(0, 0, 0, 0),
        Format(len(indices.terms), words, indices.dtype[0] == "i", indices.rule == "reverse"),
        Advance(step.indices, step.position, element.indices, element.position),
        Within(within.start, len(within), word),
        RowAdvance(record.row.indices, record.row.position),
        Start(indices.view.offset * words, indices.position.offset),
        *(Place(digit.indices, digit.position) for digit in record.digits),
    )
    yield encoded._replace(words=_padded(vectors), items=0, input=indices.input)
    before = [Head(0, 0, 0, 0)] + [Pattern()] * (len(RECORD) - 2)
    terms = (Term(offset * words, size, stride) for offset, size, stride in indices.terms)
    yield encoded._replace(words=_padded((*before, *terms)), items=0)


def _peel(region: Region) -> Iterator[Region]:
    """Split a region along its outer dimensions until a record has digits for the rest."""
    if len(region.sizes) <= MAX_DIMS:
        yield region
        return
    for i in range(region.sizes[0]):
        yield from _peel(region.take(0, i))


def _encoder(kernel: Kernel, size: int, tuning: Tuning) -> Callable[[Region], _Record]:
    """Return the function that encodes regions of elements of that size for a kernel."""
    scale = size // kernel.unit
    granule = kernel.granule // kernel.unit

    def in_blocks(region: Region) -> _Record:
        box = choice.blocks(region, size)
        assert box is not None
        return _blocks(box, kernel.unit // size, tuning)

    def in_vectors(region: Region) -> _Record:
        box = choice.reversed_vectors(region, size)
        assert box is not None
        return _walk(box, Run(0, 0, 0, size if box.dims[0].src < 0 else VECTOR), tuning)

    def in_units(region: Region) -> _Record:
        box, group, run = Box.of(region, scale), None, Dim(0, 0, 0)
        constant = region.input is None
        if kernel in choice.ELEMENTS.values():
            box, number, src = choice.grouped(region)
            group = None if constant else Group(number, _factor(number), src)
        if granule:
            run, box = _granules(box, scale, granule)
        vectors = Run(run.size, run.src, int(constant), size)
        record = _walk(box, vectors, tuning, across=kernel.granule != VECTOR)
        return record._replace(element=run, group=group)

    if kernel in choice.BLOCKS.values():
        return in_blocks
    return in_vectors if kernel == choice.REVERSE else in_units


def _walk(box: Box, run: Run, tuning: Tuning, *, across: bool = True) -> _Record:
    """Cut the innermost dimension, or the next, into the steps of items.

    Where these have the whole innermost dimension, the next one makes their rows. Steps go
    ``across`` short runs, if they may.
    """
    inner, *outer = box.dims
    rows, row = ONE_ROW, Dim(0, 0, 0)
    long = inner.size >= tuning.long_run
    if long or not outer or not across:
        lanes = min(tuning.interleave, inner.size)
        number = _even(ceil_div(inner.size, lanes), tuning.steps)
        chunk = lanes * number
        first = inner._replace(size=lanes)
        if outer and chunk >= inner.size and 2 * number <= tuning.steps:
            row, *outer = outer
            maximum = tuning.steps // number
            count = _even(row.size, maximum if long else min(maximum, tuning.across))
            rows = Rows(count, row.dst, row.src, row.size)
            outer = [row.times(count), *outer]
        digits = [first, inner.times(chunk), *outer]
        step, limit, position = inner.times(lanes), inner.size, Position(lanes, 1, chunk, 0)
    else:
        step, *outer = outer
        number = _even(step.size, min(tuning.steps, tuning.across))
        digits = [inner, step.times(number), *outer]
        limit, position = step.size, Position(1, 0, number, 0)
    steps = Steps(number, step.dst, step.src, limit)
    return _Record(box.dst, box.src, (steps, position, run), digits, rows, step, row)


def _even(size: int, max_length: int) -> int:
    """The length of equal chunks of ``max_length`` at most."""
    return ceil_div(size, ceil_div(size, max_length))


def _granules(box: Box, scale: int, granule: int) -> tuple[Dim, Box]:
    """Turn elements into runs of granules: (units of a run, box).

    The new innermost dimension numbers the granules that a run reaches; it moves no addresses.
    """
    run, dims = Dim(scale, 1, 1), box.dims
    if dims[0].dst == scale:
        inner, *dims = dims
        run = inner._replace(size=inner.size * scale, src=inner.src // scale)
    aligned = all(offset % granule == 0 for offset in (box.dst, *(d.dst for d in dims)))
    slack = 0 if aligned else granule - 1
    granules = Dim(ceil_div(run.size + slack, granule), 0, 0)
    return run, box._replace(dims=[granules, *dims])


def _blocks(box: Box, side: int, tuning: Tuning) -> _Record:
    """Cut a row of blocks into steps; a few rows and chunks of steps are neighbouring items.

    On CPU drivers, items that run together then write whole cache lines, and those that run soon
    after write to the same pages. On GPUs they read and write whole memory transactions.
    """
    across, along, *outer = box.dims
    cpu = tuning.interleave == 1
    number = _even(along.size, min(tuning.steps, tuning.across)) if cpu else 1
    chunk = along.times(number)
    near_rows = gcd(across.size, 4)
    near_chunks = min(2, chunk.size) if cpu else gcd(chunk.size, 8)
    rows, far_rows = across._replace(size=near_rows), across.times(near_rows)
    near, far = chunk._replace(size=near_chunks), chunk.times(near_chunks)
    digits = [rows, near, far_rows, far] if cpu else [near, rows, far, far_rows]
    position = Position(1, 0, number, near_chunks * number) if cpu else Position(1, 0, 0, 0)
    steps = Steps(number, along.dst, along.src, along.size)
    block = Block(across.src // side, along.dst // side)
    return _Record(box.dst, box.src, (steps, position, block), [*digits, *outer])


def _streams(plan: CopyPlan, tuning: Tuning) -> Iterator[_Encoded]:
    """One record for each segment of a row; all items belong to the first."""
    # On a GPU, neighbouring invocations fill neighbouring vectors.
    steps = tuning.steps if tuning.interleave == 1 else 1
    for output, target in enumerate(plan.outputs):
        stream = choice.stream(target, plan.element_size)
        assert stream is not None
        row = stream.row_nbytes
        nbytes = stream.rows * row
        items = [Dim(ceil_div(nbytes, steps * VECTOR), 0, 0)]
        start = 0
        for source, length, row_src in stream.segments:
            vectors = (
                Stream(steps, nbytes, len(stream.segments)),
                Segment(start, length, row_src, 0),
                Row(row, _factor(row)),
            )
            src = source.view.offset * plan.element_size
            yield _encoded(output, source, _Record(0, src, vectors, [] if start else items))
            start += length


def _encoded(output: int, source: Read | Fill, record: _Record) -> _Encoded:
    dst, src, vectors, digits, rows = record[:5]
    head = Head(0, dst, src, len(digits))
    numbers = (Digit(digit.size, _factor(digit.size), digit.dst, digit.src) for digit in digits)
    words = _padded((head, *vectors, rows, record.group or _pattern(source), *numbers))
    return _Encoded(words, record.items, source.input if isinstance(source, Read) else -1, output)


def _padded(vectors: Iterable[Iterable[int]]) -> list[int]:
    words = list(chain.from_iterable(vectors))
    return words + [0] * (RECORD_WORDS - len(words))


def _factor(size: int) -> int:
    """The factor for the shaders' division by multiplication (round-up method)."""
    power = 1 << (size - 1).bit_length()
    return ((power - size) << 32) // size + 1


def _pattern(source: Read | Fill) -> Pattern:
    if isinstance(source, Read):
        return Pattern()
    pattern = source.pattern * (VECTOR // len(source.pattern))
    return Pattern(*np.frombuffer(pattern, np.uint32).tolist())
