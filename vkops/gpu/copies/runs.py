"""Runs: the bytes of a region that are contiguous in both of its tensors."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from vkops.plan.region import Fill, Region
from vkops.plan.validation import ELEMENT_SIZES

WORD = 4
"""Bytes of the value that vkCmdFillBuffer repeats."""

Int64Array = npt.NDArray[np.int64]


class Runs(NamedTuple):
    """Runs that are contiguous in both tensors of a region: their bytes, and the other axes."""

    width: int
    axes: tuple[int, ...]


def find_runs(region: Region, size: int) -> Runs | None:
    """Return the contiguous runs that a region copies or fills with a word; None without any."""
    if region.indices is not None:
        return None
    axes = tuple(range(len(region.sizes)))
    target, source = region.target, region.source
    if isinstance(source, Fill):
        *outer, inner = target.strides
        runs = Runs(region.sizes[-1] * size, axes[:-1]) if inner == 1 else None
        whole = size % WORD == 0 or not any(
            number * size % WORD for number in (region.sizes[-1], target.offset, *outer)
        )
        return runs if whole and filled_word(source) is not None else None
    if target.strides[-1] == source.view.strides[-1] == 1:
        return Runs(region.sizes[-1] * size, axes[:-1])
    return Runs(size, axes) if size == ELEMENT_SIZES[-1] else None  # the largest are runs


def filled_word(fill: Fill) -> int | None:
    """Return the word that a constant repeats; None if it is not one word again and again."""
    pattern = fill.pattern * (WORD // min(WORD, len(fill.pattern)))
    word = pattern[:WORD]
    return int.from_bytes(word, "little") if word * (len(pattern) // WORD) == pattern else None


def run_rows(region: Region, size: int) -> Int64Array:
    """The runs of a region: byte offsets in the source and the target, and bytes."""
    runs = find_runs(region, size)
    assert runs is not None
    starts = []
    for view in (region.source_view, region.target):
        start = np.array([view.offset])
        for axis in runs.axes:
            start = np.add.outer(start, np.arange(view.sizes[axis]) * view.strides[axis]).ravel()
        starts.append(start * size)
    return np.column_stack([*starts, np.full(len(start), runs.width)])
