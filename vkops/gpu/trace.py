"""Which invocation stores a byte: as the region table says, and as a device did it."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from vkops import shaders
from vkops.gpu import kernels
from vkops.gpu.dispatch import Dispatch
from vkops.gpu.executor import Executor, with_reclaim
from vkops.gpu.layout import HEADER_WORDS, RECORD_WORDS
from vkops.gpu.layout import WORKGROUP_SIZE as LANES

MOST = 16
"""Stores that the shader has room for: of more, it tells the first ones."""

_CONSTANT = 0xFFFFFFFF
_CHUNK = 1 << 22  # steps looked at together

_Counts = npt.NDArray[np.int64]


class Store(NamedTuple):
    """A store of the byte: by whom, from where, and what of it was stored from the byte on.

    ``source`` is a byte address in a heap, ``heap`` the number of that among the dispatch's;
    None for a constant.
    """

    workgroup: int
    lane: int
    record: int
    source: int | None
    heap: int
    value: bytes


def stores(executor: Executor, dispatch: Dispatch, address: int) -> list[Store]:
    """Run a dispatch, and tell of what it stored at a byte address of its target, MOST times."""
    variant = shaders.VARIANTS[dispatch.kernel.name]
    beyond = np.zeros(4 * (1 + 3 * MOST), np.uint32)
    beyond[1] = address
    spirv = variant.compile(defines={"TRACE": 1})
    words = with_reclaim(lambda: executor.run_traced(dispatch, spirv, beyond))
    found = []
    for told in words[4:].reshape(-1, 3, 4)[: min(int(words[0]), MOST)]:
        x, y, lane, record = told[0].tolist()
        first, source, heap, nbytes = told[1].tolist()
        constant = heap == _CONSTANT
        found.append(
            Store(
                y * executor.group_count(dispatch)[0] + x,
                lane,
                4 * (record - 1) // RECORD_WORDS,
                None if constant else source,
                0 if constant else heap,
                told[2].tobytes()[address - first : nbytes],
            )
        )
    return found


class Owner(NamedTuple):
    """Who is to store a byte, by the region table."""

    record: int
    workgroup: int
    lane: int


def _workgroup(dispatch: Dispatch, number: int) -> int:
    """The workgroup that find_group gives a number to."""
    spread = int(dispatch.words[2])
    return -(-((number + 1) << 32) // spread) - 1 if spread else number


def owner(dispatch: Dispatch, address: int) -> Owner | None:
    """Who stores a byte address of the target, if the dispatch does.

    This is region.glsl and the kernels once more, in NumPy.
    """
    records = dispatch.words[HEADER_WORDS:].reshape(-1, RECORD_WORDS).astype(np.int64)
    total = int(dispatch.words[1])
    ends = [*records[1:, 0].tolist(), total]
    for number, (record, end) in enumerate(zip(records, ends, strict=True)):
        count, chunk = end - int(record[0]), max(1, _CHUNK // int(record[4]))
        for start in range(0, count, chunk):
            items = np.arange(start, min(start + chunk, count))
            hits = _hits(dispatch.kernel, record, items, address)
            if hits.size:
                item = int(record[0]) + int(items[hits[0]])
                return Owner(number, _workgroup(dispatch, item // LANES), item % LANES)
    return None


def _hits(kernel: kernels.Kernel, record: _Counts, items: _Counts, address: int) -> _Counts:
    """Which of the items of a record store a byte."""
    dst, position, first = _starts(record, items)
    steps, dst_step, _, limit = record[4:8]
    if kernel in kernels.STREAMS:
        begin = dst + first * steps * 16
        end = np.minimum(begin + steps * 16, dst + dst_step)
        return np.flatnonzero((begin <= address) & (address < end))
    step_position, along = record[8], bool(record[9])
    run = record[12]
    n = np.arange(steps)[None, :]
    at = dst[:, None] + n * dst_step
    position = position[:, None] + n * step_position
    inside = position < limit
    if kernel in kernels.BLOCKS.values():
        side = kernel.unit // int(kernel.name.rpartition("_")[2])
        columns = at[..., None] + np.arange(side) * record[13]
        stored = (columns == address // kernel.unit).any(axis=-1)
    elif kernel.granule:
        granule = kernel.granule // kernel.unit
        granules = at // granule + (position if along else first[:, None])
        element = address // kernel.unit - at
        stored = (granules == address // kernel.granule) & (element >= 0) & (element < run)
    else:
        stored = at == address // kernel.unit
    return np.flatnonzero((stored & inside).any(axis=1))


def _starts(record: _Counts, items: _Counts) -> tuple[_Counts, _Counts, _Counts]:
    """Destination, position and digit 0 of items, as find_item has them."""
    rest = items.copy()
    dst = np.full(items.shape, record[1])
    position, first = np.zeros_like(items), np.zeros_like(items)
    for d in range(int(record[3])):
        size, _, stride, _ = record[20 + 4 * d : 24 + 4 * d]
        rest, value = np.divmod(rest, size)
        dst += value * _signed(stride)
        position += value * {0: record[9], 1: record[10], 3: record[11]}.get(d, 0)
        if d == 0:
            first = value
    return dst, position, first


def _signed(word: int) -> int:
    return int(word) - (1 << 32) if word >= 1 << 31 else int(word)
