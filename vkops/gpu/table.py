"""Plans as the region table that shaders/region.glsl reads. Pure NumPy: no Vulkan here."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from math import prod

import numpy as np
import numpy.typing as npt

from vkops.plan.region import CopyPlan, Fill, Read, Region

Words = npt.NDArray[np.uint32]
Counts = npt.NDArray[np.int64]

LANES = 64
"""Invocations of a workgroup; region.glsl's local size."""

MAX_DIGITS = 9
HEADER_WORDS = 4
RECORD_WORDS = 56
FIRST, DST, SRC = 0, 1, 2


@dataclass(frozen=True, slots=True)
class Kernel:
    """A shader variant: its addresses count ``unit`` bytes.

    Where ``granule`` is not 0, a step is that many bytes of a contiguous destination run.
    """

    name: str
    unit: int
    granule: int


WORDS = {size: Kernel(f"copy_{size}", size, 0) for size in (4, 8, 16)}
SUBWORDS = {size: Kernel(f"copy_{size}", size, 4) for size in (1, 2)}
RUNS = Kernel("copy_run", 1, 16)

SHORTEST_RUN = 16
"""Bytes from which a run is worth 16-byte accesses that have to be shifted into place."""


@dataclass(frozen=True, slots=True)
class Tuning:
    """How work is laid out over invocations.

    ``steps``: most elements (granules, where a kernel has them) that an invocation copies.
    ``workgroups``: fewer steps are taken where there would be fewer workgroups than this.
    ``interleave``: neighbouring invocations copy neighbouring elements, each stepping over the
    others; else each copies consecutive ones. ``long_run``: runs from this length on are stepped
    along, shorter ones across.
    """

    steps: int
    workgroups: int
    interleave: int
    long_run: int

    def steps_for(self, elements: int) -> int:
        """Steps of an invocation where there is so much to copy in all."""
        return max(1, min(self.steps, elements // (self.workgroups * LANES)))


GPU = Tuning(steps=8, workgroups=1024, interleave=LANES, long_run=4 * LANES)
"""Coalesced: a workgroup's accesses fall into the same memory transactions."""

CPU = Tuning(steps=128, workgroups=8, interleave=1, long_run=4)
"""A lane is a scalar loop: consecutive elements are three times as fast as interleaved ones on
lavapipe, and long loops make up for what it costs to find the first."""


@dataclass(frozen=True, slots=True)
class RegionTable:
    """The records of a plan, addresses counted from the start of each binding.

    ``records`` is (regions, RECORD_WORDS); ``items``, ``inputs`` and ``outputs`` give each
    region's number of items and its binding numbers (input -1: a constant).
    """

    kernel: Kernel
    records: Words
    items: Counts
    inputs: Counts
    outputs: Counts


def encode(plan: CopyPlan, tuning: Tuning) -> RegionTable:
    """Encode an optimized plan."""
    indexed = [
        (output, region)
        for output, target in enumerate(plan.outputs)
        for whole in target.regions
        for region in _peel(whole)
    ]
    kernel = choose_kernel(plan)
    nbytes = sum(prod(region.sizes) for _, region in indexed) * plan.element_size
    tuning = replace(tuning, steps=tuning.steps_for(nbytes // (kernel.granule or kernel.unit)))
    records = np.zeros((len(indexed), RECORD_WORDS), np.uint32)
    items = [
        _encode_region(record, region, plan.element_size, kernel, tuning)
        for record, (_, region) in zip(records, indexed, strict=True)
    ]
    return RegionTable(
        kernel=kernel,
        records=records,
        items=np.array(items, np.int64),
        inputs=np.array([_input(region) for _, region in indexed], np.int64),
        outputs=np.array([output for output, _ in indexed], np.int64),
    )


def choose_kernel(plan: CopyPlan) -> Kernel:
    """The kernel for an optimized plan: one for all its regions, so that one dispatch does."""
    size = plan.element_size
    if size == 16:
        return WORDS[size]
    regions = [region for output in plan.outputs for region in output.regions]
    if all(_run(region) * size >= SHORTEST_RUN for region in regions):
        return RUNS
    return WORDS.get(size) or SUBWORDS[size]


def _run(region: Region) -> int:
    """Elements that are contiguous on both sides."""
    source = region.source
    contiguous = isinstance(source, Read) and region.dst_strides[-1] == source.strides[-1] == 1
    return region.sizes[-1] if contiguous else 1


def _input(region: Region) -> int:
    return region.source.input if isinstance(region.source, Read) else -1


def _peel(region: Region) -> Iterator[Region]:
    """Split off outer dimensions that the record has no digits for (it holds eight)."""
    if len(region.sizes) < MAX_DIGITS:
        yield region
        return
    for i in range(region.sizes[0]):
        source = region.source
        if isinstance(source, Read):
            offset = source.offset + i * source.strides[0]
            source = Read(source.input, offset, source.strides[1:])
        dst_offset = region.dst_offset + i * region.dst_strides[0]
        yield from _peel(Region(region.sizes[1:], dst_offset, region.dst_strides[1:], source))


@dataclass(frozen=True, slots=True)
class _Digit:
    size: int
    dst: int
    src: int


def _encode_region(
    record: Words, region: Region, element_size: int, kernel: Kernel, tuning: Tuning
) -> int:
    """Write a region's record, but for the number of its first item; return how many it has."""
    source = region.source
    strides = source.strides if isinstance(source, Read) else (0,) * len(region.sizes)
    scale = element_size // kernel.unit
    # Innermost dimension first.
    dims = [
        _Digit(size, dst * scale, src * scale)
        for size, dst, src in zip(region.sizes, region.dst_strides, strides, strict=True)
    ][::-1]
    dst_offset = region.dst_offset * scale
    run, run_src = 0, 0
    if kernel.granule:
        run, run_src, dims = _granules(dims, dst_offset, scale, kernel.granule // kernel.unit)

    inner, *outer = dims
    if inner.size >= tuning.long_run or not outer:
        lanes = min(tuning.interleave, inner.size)
        steps = min(tuning.steps, -(-inner.size // lanes))
        chunk = lanes * steps
        digits = [
            _Digit(lanes, inner.dst, inner.src),
            _Digit(-(-inner.size // chunk), inner.dst * chunk, inner.src * chunk),
            *outer,
        ]
        step = _Digit(lanes, inner.dst * lanes, inner.src * lanes)
        limit, position = inner.size, (1, chunk)
    else:
        row, *outer = outer
        steps = min(tuning.steps, row.size)
        digits = [
            inner,
            _Digit(-(-row.size // steps), row.dst * steps, row.src * steps),
            *outer,
        ]
        step = _Digit(1, row.dst, row.src)
        limit, position = row.size, (0, steps)

    src_offset = source.offset * scale if isinstance(source, Read) else 0
    # In the order of region.glsl's vectors.
    words = [0, dst_offset, src_offset, len(digits)]
    words += [steps, step.dst, step.src, limit]
    words += [step.size, *position, 0]
    words += [run, run_src, int(isinstance(source, Fill)), 0]
    words += _pattern(source)
    words += [word for digit in digits for word in _digit_words(digit)]
    # Negative strides wrap: the shader's addresses are modulo 2^32, and so come out right.
    record[: len(words)] = np.array(words, np.int64).astype(np.uint32)
    return prod(digit.size for digit in digits)


def _granules(
    dims: list[_Digit], dst_offset: int, scale: int, granule: int
) -> tuple[int, int, list[_Digit]]:
    """Turn elements into runs of granules: (run, its source stride, dimensions), all in units.

    The new innermost dimension numbers the granules that a run touches; it moves no addresses.
    """
    run, run_src = scale, 1
    if dims[0].dst == scale:
        run, run_src = dims[0].size * scale, dims[0].src // scale
        dims = dims[1:]
    aligned = all(offset % granule == 0 for offset in (dst_offset, *(d.dst for d in dims)))
    slack = 0 if aligned else granule - 1
    return run, run_src, [_Digit(-(-(run + slack) // granule), 0, 0), *dims]


def _digit_words(digit: _Digit) -> Iterable[int]:
    """Size, factor for division by multiplication (round-up method), strides."""
    power = 1 << (digit.size - 1).bit_length()
    factor = ((power - digit.size) << 32) // digit.size + 1
    return digit.size, factor, digit.dst, digit.src


def _pattern(source: Read | Fill) -> list[int]:
    if isinstance(source, Read):
        return [0, 0, 0, 0]
    pattern = source.pattern * max(1, 4 // len(source.pattern))
    return [int(w) for w in np.frombuffer(pattern.ljust(16, b"\0"), np.uint32)]
