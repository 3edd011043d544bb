"""Encode plans as the region tables that the shaders read. Pure NumPy: no Vulkan here."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from math import gcd, prod
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from vkops.gpu import kernels
from vkops.gpu.kernels import VECTOR, Dim, Kernel, choose_kernel
from vkops.gpu.layout import (
    RECORD_WORDS,
    WORKGROUP_SIZE,
    Block,
    Digit,
    Head,
    Pattern,
    Position,
    Row,
    Run,
    Segment,
    Steps,
    Stream,
    Vector,
    word,
)
from vkops.plan.region import CopyPlan, Fill, Read, Region

Words = npt.NDArray[np.uint32]
Counts = npt.NDArray[np.int64]

MAX_DIMS = 8
"""Dimensions of a region that fit in a record: they become two digits more at most."""


@dataclass(frozen=True, slots=True)
class Tuning:
    """How work is laid out over invocations.

    ``steps``: most elements (granules, where a kernel has them) that an invocation copies along a
    run, ``item_bytes``: most bytes; ``across``: most elements across runs, or blocks.
    ``workgroups``: fewer steps are taken where there would be fewer workgroups than this.
    ``interleave``: neighbouring invocations copy neighbouring elements, each stepping over the
    others; else each copies consecutive ones. ``long_run``: runs from this length on are stepped
    along, shorter ones across. ``sources``: heaps that a dispatch can be given to read from.
    """

    steps: int
    item_bytes: int
    across: int
    workgroups: int
    interleave: int
    long_run: int
    sources: int = kernels.STREAM.sources

    def for_work(self, nbytes: int, step_bytes: int) -> Tuning:
        """The same with fewer steps, where there are so many bytes in all, and in a step."""
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
"""Coalesced: a workgroup's accesses fall into the same memory transactions."""

CPU = Tuning(
    steps=1728,
    item_bytes=432 * VECTOR,
    across=128,
    workgroups=4 * (os.cpu_count() or 1),
    interleave=1,
    long_run=4,
)
"""A lane is a scalar loop: consecutive elements are three times as fast as interleaved ones on
lavapipe, and long loops make up for what it costs to find the first."""


@dataclass(frozen=True, slots=True)
class RegionTable:
    """The records of a plan, addresses counted from the start of each binding.

    ``records`` is (records, RECORD_WORDS); ``items``, ``inputs`` and ``outputs`` give each
    record's number of items and its binding numbers (input -1: a constant). A record without
    items belongs to the last one before it that has some.
    """

    kernel: Kernel
    records: Words
    items: Counts
    inputs: Counts
    outputs: Counts


class _Record(NamedTuple):
    """One record, without the number of its first item and the pattern of a constant."""

    dst: int
    src: int
    vectors: Sequence[Vector]
    digits: Sequence[Dim]

    @property
    def items(self) -> int:
        return prod(digit.size for digit in self.digits) if self.digits else 0


def encode(plan: CopyPlan, tuning: Tuning, *, streams: bool = True) -> RegionTable:
    """Encode an optimized plan; without ``streams``, its sources may be in any number of heaps."""
    kernel = choose_kernel(plan, tuning.sources if streams else 0)
    nbytes = plan.element_size * sum(
        prod(region.sizes) for output in plan.outputs for region in output.regions
    )
    tuning = tuning.for_work(nbytes, _step_bytes(kernel, plan))
    encoded = list(
        _streams(plan, tuning) if kernel in kernels.STREAMS else _regions(plan, kernel, tuning)
    )
    words = [_words(record, source) for _, source, record in encoded]
    return RegionTable(
        kernel=kernel,
        # Negative strides wrap: the shaders' addresses are modulo 2^32.
        records=np.array(words, np.int64).reshape(-1, RECORD_WORDS).astype(np.uint32),
        items=np.array([record.items for _, _, record in encoded], np.int64),
        inputs=np.array([_input(source) for _, source, _ in encoded], np.int64),
        outputs=np.array([output for output, _, _ in encoded], np.int64),
    )


_Encoded = tuple[int, Read | Fill, _Record]


def _step_bytes(kernel: Kernel, plan: CopyPlan) -> int:
    if kernel in kernels.BLOCKS.values():
        return kernel.unit**2 // plan.element_size
    return kernel.granule or kernel.unit


def _input(source: Read | Fill) -> int:
    return source.input if isinstance(source, Read) else -1


def _regions(plan: CopyPlan, kernel: Kernel, tuning: Tuning) -> Iterator[_Encoded]:
    """One record for each region that has few enough dimensions."""
    for output, target in enumerate(plan.outputs):
        for whole in target.regions:
            for region in _peel(whole):
                yield output, region.source, _region(region, plan.element_size, kernel, tuning)


def _peel(region: Region) -> Iterator[Region]:
    """Split off outer dimensions that a record has no digits for."""
    if len(region.sizes) <= MAX_DIMS:
        yield region
        return
    for i in range(region.sizes[0]):
        yield from _peel(region.take(0, i))


def _region(region: Region, size: int, kernel: Kernel, tuning: Tuning) -> _Record:
    if kernel in kernels.BLOCKS.values():
        return _blocks(region, size, tuning)
    if kernel == kernels.REVERSE:
        vectors = kernels.reversed_vectors(region, size)
        assert vectors is not None
        run = Run(0, 0, 0, vectors.elements)
        return _walk(vectors.dst, vectors.src, vectors.dims, run, tuning)
    scale = size // kernel.unit
    dims = [Dim(n, dst * scale, src * scale) for n, dst, src in kernels.dims(region)]
    dst, src = region.target.offset * scale, region.source_view.offset * scale
    length, run_src = 0, 0
    if kernel.granule:
        length, run_src, dims = _granules(dims, dst, scale, kernel.granule // kernel.unit)
    run = Run(length, run_src, int(region.input is None), 0)
    return _walk(dst, src, dims, run, tuning)


def _walk(dst: int, src: int, dims: Sequence[Dim], run: Run, tuning: Tuning) -> _Record:
    """Cut the innermost dimension, or the next, into the steps of items."""
    inner, *outer = dims
    if inner.size >= tuning.long_run or not outer:
        lanes = min(tuning.interleave, inner.size)
        steps = _even(-(-inner.size // lanes), tuning.steps)
        chunk = lanes * steps
        digits = [
            Dim(lanes, inner.dst, inner.src),
            Dim(-(-inner.size // chunk), inner.dst * chunk, inner.src * chunk),
            *outer,
        ]
        step = Dim(lanes, inner.dst * lanes, inner.src * lanes)
        limit, position = inner.size, Position(lanes, 1, chunk, 0)
    else:
        row, *outer = outer
        steps = _even(row.size, min(tuning.steps, tuning.across))
        digits = [inner, Dim(-(-row.size // steps), row.dst * steps, row.src * steps), *outer]
        step = Dim(1, row.dst, row.src)
        limit, position = row.size, Position(1, 0, steps, 0)
    return _Record(dst, src, (Steps(steps, step.dst, step.src, limit), position, run), digits)


def _even(size: int, most: int) -> int:
    """The length of equal chunks, at most so long."""
    return -(-size // -(-size // most))


def _granules(
    dims: list[Dim], dst_offset: int, scale: int, granule: int
) -> tuple[int, int, list[Dim]]:
    """Turn elements into runs of granules: (run, its source stride, dimensions), all in units.

    The new innermost dimension numbers the granules that a run touches; it moves no addresses.
    """
    run, run_src = scale, 1
    if dims[0].dst == scale:
        run, run_src = dims[0].size * scale, dims[0].src // scale
        dims = dims[1:]
    aligned = all(offset % granule == 0 for offset in (dst_offset, *(d.dst for d in dims)))
    slack = 0 if aligned else granule - 1
    return run, run_src, [Dim(-(-(run + slack) // granule), 0, 0), *dims]


def _blocks(region: Region, size: int, tuning: Tuning) -> _Record:
    """Cut a row of blocks into steps; a few rows and chunks of steps are neighbouring items.

    On CPU drivers, so that items run together write whole cache lines, and those run soon after
    write to the same pages; on GPUs, so that they read and write whole memory transactions.
    """
    b = kernels.blocks(region, size)
    assert b is not None
    across, along = b.across, b.along
    cpu = tuning.interleave == 1
    steps = _even(along.size, min(tuning.steps, tuning.across)) if cpu else 1
    chunk = Dim(-(-along.size // steps), along.dst * steps, along.src * steps)
    rows, far_rows = _cut(across, gcd(across.size, 4))
    near, far = _cut(chunk, min(2, chunk.size) if cpu else gcd(chunk.size, 8))
    digits = [rows, near, far_rows, far] if cpu else [near, rows, far, far_rows]
    position = Position(1, 0, steps, near.size * steps) if cpu else Position(1, 0, 0, 0)
    vectors = Steps(steps, along.dst, along.src, along.size), position, Block(b.row, b.column)
    return _Record(b.dst, b.src, vectors, [*digits, *b.outer])


def _cut(dim: Dim, size: int) -> tuple[Dim, Dim]:
    """A dimension as two, the inner one of that size; the outer one may go beyond the end."""
    return dim._replace(size=size), Dim(-(-dim.size // size), dim.dst * size, dim.src * size)


def _streams(plan: CopyPlan, tuning: Tuning) -> Iterator[_Encoded]:
    """Rows of segments, one record each; all items belong to the first."""
    # Neighbouring invocations of a GPU fill neighbouring vectors.
    steps = tuning.steps if tuning.interleave == 1 else 1
    for output, target in enumerate(plan.outputs):
        stream = kernels.stream(target, plan.element_size)
        assert stream is not None
        row = stream.row_nbytes
        nbytes = stream.rows * row
        items = [Dim(-(-nbytes // (steps * VECTOR)), 0, 0)]
        start = 0
        for source, length, row_src in stream.segments:
            vectors = (
                Stream(steps, nbytes, len(stream.segments)),
                Segment(start, length, row_src, 0),
                Row(row, _factor(row)),
            )
            src = source.view.offset * plan.element_size
            yield output, source, _Record(0, src, vectors, [] if start else items)
            start += length


def _words(record: _Record, source: Read | Fill) -> list[int]:
    """The words of a record, with 0 for the number of its first item."""
    words = [0] * RECORD_WORDS
    head = Head(0, record.dst, record.src, len(record.digits))
    for vector in (head, *record.vectors, _pattern(source)):
        start = word(type(vector))
        words[start : start + len(vector)] = vector
    digits = (Digit(size, _factor(size), dst, src) for size, dst, src in record.digits)
    start = word(Digit)
    words[start : start + 4 * len(record.digits)] = chain.from_iterable(digits)
    return words


def _factor(size: int) -> int:
    """The factor for the shaders' division by multiplication (round-up method)."""
    power = 1 << (size - 1).bit_length()
    return ((power - size) << 32) // size + 1


def _pattern(source: Read | Fill) -> Pattern:
    if isinstance(source, Read):
        return Pattern()
    pattern = source.pattern * max(1, 4 // len(source.pattern))
    return Pattern(*np.frombuffer(pattern.ljust(16, b"\0"), np.uint32).tolist())
