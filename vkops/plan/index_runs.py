"""Copies that choose source indices along each axis: reversed, repeated, or in any order.

Consecutive indices of a target whose sources are equally far apart are a ``Run``. Rolling, padding
with copies and resampling are runs along each axis; a region copies a combination of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain, product
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from vkops.plan.movements import copy
from vkops.plan.region import Read, Region
from vkops.plan.view import Ints, View


class IndexRun(NamedTuple):
    """``size`` consecutive indices of a target, from ``target`` on.

    They are copies of the indices of a source from ``start`` on, ``step`` apart. There are
    ``repeats`` such runs, ``period`` apart in the target and ``advance`` apart in the source.
    """

    target: int
    size: int
    start: int
    step: int
    repeats: int = 1
    period: int = 0
    advance: int = 0


def runs_of(indices: npt.NDArray[np.integer[Any]]) -> Iterator[IndexRun]:
    """Describe chosen indices by few runs.

    >>> [run[:4] for run in runs_of(np.array([2, 1, 0, 0, 0]))]
    [(0, 3, 2, -1), (3, 2, 0, 0)]
    """
    steps = np.diff(indices)
    changes = np.flatnonzero(np.diff(steps)) + 1  # steps that differ from the one before
    first = 0
    for change in chain(map(int, changes), [len(indices)]):
        # A run ends where its step does, but its last index may begin the next.
        if change < first + 1:
            continue
        end = min(change + 1, len(indices))
        step = int(steps[first]) if end - first > 1 else 0
        yield IndexRun(first, end - first, int(indices[first]), step)
        first = end


def choose(source: Read, target: View, axes: Sequence[Sequence[IndexRun]]) -> Iterator[Region]:
    """Copy the indices that runs choose along each axis, one region for each combination of runs.

    >>> axes = [[IndexRun(0, 1, 1, 0), IndexRun(1, 1, 0, 0)], [IndexRun(0, 3, 2, -1)]]
    >>> source = Read(0, View.packed((2, 3)))
    >>> [region.source.view.offset for region in choose(source, View.packed((2, 3)), axes)]
    [5, 2]
    """
    ones = (1,) * len(axes)
    for runs in product(*axes):
        targets, sizes, starts, steps = (tuple(run[i] for run in runs) for i in range(4))
        read = source.view.window(starts, sizes, steps)
        written = target.window(targets, sizes, ones)
        for axis, run in enumerate(runs):
            if run.repeats > 1:
                read = read.insert(0, run.repeats, run.advance * source.view.strides[axis])
                written = written.insert(0, run.repeats, run.period * target.strides[axis])
        yield copy(read, written, source.input)


def roll(source: Read, target: View, shifts: Ints) -> Iterator[Region]:
    """Move elements ``shifts`` places on along each axis; elements past the end come first."""
    axes = []
    for size, shift in zip(target.sizes, shifts, strict=True):
        k = shift % size if size else 0
        axes.append(
            [IndexRun(k, size - k, 0, 1), IndexRun(0, k, size - k, 1)]
            if k
            else [IndexRun(0, size, 0, 1)]
        )
    return choose(source, target, axes)


def pad_with_copies(
    source: Read, target: View, starts: Ints, ends: Ints, mode: str
) -> Iterator[Region]:
    """Put a source into a target with ``starts`` and ``ends`` copies of its elements around it.

    ``mode`` says which elements are copied along each axis: ``"edge"`` (the first and the last
    again and again), ``"wrap"`` (the axis again and again), ``"reflect"`` (backwards and forwards,
    without its ends) or ``"symmetric"`` (backwards and forwards, with its ends). The source is not
    empty.
    """
    padding = zip(source.view.sizes, starts, ends, strict=True)
    return choose(source, target, [list(_pad_runs(mode, *axis)) for axis in padding])


def pad_count(sizes: Ints, starts: Ints, ends: Ints, mode: str) -> int:
    """The number of regions of ``pad_with_copies`` for a source of these sizes."""
    count = 1
    for size, before, after in zip(sizes, starts, ends, strict=True):
        if lengths := _run_lengths(mode, size):
            first, last = (_run_number(at, *lengths) for at in (-before, size + after - 1))
            count *= last - first + 1
        else:
            count *= 1 + bool(before) + bool(after)
    return count


def _pad_runs(mode: str, size: int, before: int, after: int) -> Iterator[IndexRun]:
    """Return the runs of an axis of ``size`` elements, padded with copies of its elements."""
    lengths = _run_lengths(mode, size)
    if not lengths:
        edges = (
            IndexRun(0, before, 0, 0),
            IndexRun(before, size, 0, 1),
            IndexRun(before + size, after, size - 1, 0),
        )
        yield from (run for run in edges if run.size)
        return
    _, backwards = lengths
    period = size + backwards
    position, end = -before, size + after
    while position < end:
        done = position % period
        if done < size:
            run = IndexRun(position + before, size - done, done, 1)
        else:  # a backward run leaves out as many places at either end of the axis
            start = period - 1 - done + (size - backwards) // 2
            run = IndexRun(position + before, period - done, start, -1)
        run = run._replace(size=min(run.size, end - position))
        yield run
        position += run.size


def _run_lengths(mode: str, size: int) -> tuple[int, int] | None:
    """Return the sizes of the forward and the backward runs, which alternate.

    The second size is 0 if all runs are forward. The result is None if there are no runs to
    repeat: the padding repeats the first and the last element.
    """
    if mode == "edge" or size == 1:
        return None
    return size, {"wrap": 0, "symmetric": size, "reflect": size - 2}[mode]


def _run_number(position: int, forwards: int, backwards: int) -> int:
    """Return the number of the run that contains a position; run 0 begins at position 0."""
    period, within = divmod(position, forwards + backwards)
    return period * (1 + bool(backwards)) + (within >= forwards)
