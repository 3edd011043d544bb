"""Plans as the region table that shaders/region.glsl reads. Pure NumPy: no Vulkan here."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from math import gcd, prod

import numpy as np
import numpy.typing as npt

from vkops.gpu import kernels
from vkops.gpu.kernels import VECTOR, Dim, Kernel, choose_kernel
from vkops.plan.region import CopyPlan, Fill, Read, Region

Words = npt.NDArray[np.uint32]
Counts = npt.NDArray[np.int64]

LANES = 64
"""Invocations of a workgroup; region.glsl's local size."""

MAX_DIMS = 8
"""Dimensions of a region that fit in a record: they become ten digits at most."""

HEADER_WORDS = 4
RECORD_WORDS = 60
FIRST, DST, SRC, SOURCE = 0, 1, 2, 11


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
        share = nbytes // step_bytes // (self.workgroups * LANES)
        steps = min(self.steps, self.item_bytes // step_bytes, share)
        return replace(self, steps=max(1, steps))


GPU = Tuning(
    steps=8,
    item_bytes=8 * VECTOR,
    across=8,
    workgroups=1024,
    interleave=LANES,
    long_run=4 * LANES,
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


@dataclass(frozen=True, slots=True)
class _Record:
    """One record, in the order of region.glsl's vectors but for the constant's pattern."""

    dst: int
    src: int
    steps: Sequence[int]
    position: Sequence[int]
    run: Sequence[int]
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
    records = np.zeros((len(encoded), RECORD_WORDS), np.uint32)
    for words, (_, source, record) in zip(records, encoded, strict=True):
        _write(words, record, source)
    return RegionTable(
        kernel=kernel,
        records=records,
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
        run = (0, 0, 0, vectors.elements)
        return _walk(vectors.dst, vectors.src, vectors.dims, run, tuning)
    scale = size // kernel.unit
    dims = [Dim(n, dst * scale, src * scale) for n, dst, src in kernels.dims(region)]
    dst, src = region.target.offset * scale, region.source_view.offset * scale
    length, run_src = 0, 0
    if kernel.granule:
        length, run_src, dims = _granules(dims, dst, scale, kernel.granule // kernel.unit)
    run = (length, run_src, int(region.input is None), 0)
    return _walk(dst, src, dims, run, tuning)


def _walk(dst: int, src: int, dims: Sequence[Dim], run: Sequence[int], tuning: Tuning) -> _Record:
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
        limit, position = inner.size, (1, chunk)
    else:
        row, *outer = outer
        steps = _even(row.size, min(tuning.steps, tuning.across))
        digits = [inner, Dim(-(-row.size // steps), row.dst * steps, row.src * steps), *outer]
        step = Dim(1, row.dst, row.src)
        limit, position = row.size, (0, steps)
    return _Record(
        dst, src, (steps, step.dst, step.src, limit), (step.size, *position, 0), run, digits
    )


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
    position = (1, 0, steps, near.size * steps) if cpu else (1, 0, 0, 0)
    return _Record(
        b.dst,
        b.src,
        (steps, along.dst, along.src, along.size),
        position,
        (b.row, b.column, 0, 0),
        [*digits, *b.outer],
    )


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
            yield (
                output,
                source,
                _Record(
                    0,
                    source.view.offset * plan.element_size,
                    (steps, nbytes, len(stream.segments), 0),
                    (start, length, row_src, 0),
                    (row, _factor(row), 0, 0),
                    [] if start else items,
                ),
            )
            start += length


def _write(words: Words, record: _Record, source: Read | Fill) -> None:
    """Write a record, but for the number of its first item."""
    values = [0, record.dst, record.src, len(record.digits)]
    values += [*record.steps, *record.position, *record.run, *_pattern(source)]
    values += [word for digit in record.digits for word in _digit_words(digit)]
    # Negative strides wrap: the shader's addresses are modulo 2^32, and so come out right.
    words[: len(values)] = np.array(values, np.int64).astype(np.uint32)


def _digit_words(digit: Dim) -> Iterable[int]:
    return digit.size, _factor(digit.size), digit.dst, digit.src


def _factor(size: int) -> int:
    """Factor for division by multiplication (round-up method)."""
    power = 1 << (size - 1).bit_length()
    return ((power - size) << 32) // size + 1


def _pattern(source: Read | Fill) -> list[int]:
    if isinstance(source, Read):
        return [0, 0, 0, 0]
    pattern = source.pattern * max(1, 4 // len(source.pattern))
    return [int(w) for w in np.frombuffer(pattern.ljust(16, b"\0"), np.uint32)]
