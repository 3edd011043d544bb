"""Plans as the region table that shaders/region.glsl reads. Pure NumPy: no Vulkan here."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
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
FIRST_BLOCK, ITEMS, DST, SRC = 0, 1, 2, 3


@dataclass(frozen=True, slots=True)
class Tuning:
    """How work is laid out over invocations.

    ``steps``: most elements (below a word: words) that an invocation copies. ``interleave``:
    neighbouring invocations copy neighbouring elements, each stepping over the others; else each
    copies consecutive ones. ``long_run``: runs from this length on are stepped along, shorter
    ones across.
    """

    steps: int
    interleave: int
    long_run: int


GPU = Tuning(steps=8, interleave=LANES, long_run=4 * LANES)
"""Coalesced: a workgroup's accesses fall into the same memory transactions."""

CPU = Tuning(steps=32, interleave=1, long_run=4)
"""A lane is a scalar loop: three times the speed of interleaving on lavapipe."""


@dataclass(frozen=True, slots=True)
class RegionTable:
    """The records of a plan, addresses counted from the start of each binding.

    ``records`` is (regions, RECORD_WORDS); ``blocks``, ``inputs`` and ``outputs`` give each
    region's workgroup count and its binding numbers (input -1: a constant).
    """

    element_size: int
    records: Words
    blocks: Counts
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
    records = np.zeros((len(indexed), RECORD_WORDS), np.uint32)
    for record, (_, region) in zip(records, indexed, strict=True):
        _encode_region(record, region, plan.element_size, tuning)
    return RegionTable(
        element_size=plan.element_size,
        records=records,
        blocks=-(-records[:, ITEMS].astype(np.int64) // LANES),
        inputs=np.array([_input(region) for _, region in indexed], np.int64),
        outputs=np.array([output for output, _ in indexed], np.int64),
    )


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


def _encode_region(record: Words, region: Region, element_size: int, tuning: Tuning) -> None:
    source = region.source
    strides = source.strides if isinstance(source, Read) else (0,) * len(region.sizes)
    # Innermost dimension first.
    dims = [_Digit(*dim) for dim in zip(region.sizes, region.dst_strides, strides, strict=True)][
        ::-1
    ]
    run, run_src = 0, 0
    if element_size < 4:
        run, run_src, dims = _runs_of_words(dims, region.dst_offset, 4 // element_size)

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

    src_offset = source.offset if isinstance(source, Read) else 0
    # In the order of region.glsl's vectors.
    words = [0, prod(d.size for d in digits), region.dst_offset, src_offset]
    words += [steps, step.dst, step.src, limit]
    words += [step.size, *position, len(digits)]
    words += [run, run_src, int(isinstance(source, Fill)), 0]
    words += _pattern(source)
    words += [word for digit in digits for word in _digit_words(digit)]
    # Negative strides wrap: the shader's addresses are modulo 2^32, and so come out right.
    record[: len(words)] = np.array(words, np.int64).astype(np.uint32)


def _runs_of_words(
    dims: list[_Digit], dst_offset: int, per_word: int
) -> tuple[int, int, list[_Digit]]:
    """Turn elements smaller than a word into runs of words: (run, its source stride, dimensions).

    The new innermost dimension numbers the words that a run touches; it moves no addresses.
    """
    run, run_src = 1, 1
    if dims[0].dst == 1:
        run, run_src = dims[0].size, dims[0].src
        dims = dims[1:]
    aligned = all(offset % per_word == 0 for offset in (dst_offset, *(d.dst for d in dims)))
    slack = 0 if aligned else per_word - 1
    return run, run_src, [_Digit(-(-(run + slack) // per_word), 0, 0), *dims]


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
