"""Tensors made by choosing indices along each axis."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import product
from math import prod
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from vkops.onnx.node import MAX_PIECES, Call
from vkops.onnx.trace import Piece, Tensor
from vkops.plan.view import View


class Run(NamedTuple):
    """``size`` neighbours from ``target`` on, made of indices from ``start``, ``step`` apart."""

    target: int
    size: int
    start: int
    step: int

    def moved(self, by: int) -> Run:
        """The same of indices further on."""
        return self._replace(start=self.start + by)


def runs_of(indices: npt.NDArray[np.integer[Any]]) -> list[Run]:
    """Chosen indices as few runs.

    >>> runs_of(np.array([2, 1, 0, 0, 0]))
    [Run(target=0, size=3, start=2, step=-1), Run(target=3, size=2, start=0, step=0)]
    """
    steps = np.diff(indices)
    changes = np.flatnonzero(np.diff(steps)) + 1  # steps that differ from the one before
    runs, first = [], 0
    for change in (*changes.tolist(), len(indices)):
        # A run ends where its step does, but its last index may begin the next.
        if change < first + 1:
            continue
        end = min(change + 1, len(indices))
        step = int(steps[first]) if end - first > 1 else 0
        runs.append(Run(first, end - first, int(indices[first]), step))
        first = end
    return runs


def chosen(
    call: Call, name: str, data: Tensor, axes: Sequence[Sequence[Run]], target: View
) -> Iterator[Piece]:
    """The pieces of a target whose every axis is made of runs of the same axis of ``data``."""
    count = prod(map(len, axes))
    if count > MAX_PIECES:
        call.refuse(name, f"moves {count} pieces, must be {MAX_PIECES} at most")
    for runs in product(*axes):
        targets, sizes, starts, steps = _columns(runs)
        whole = target.window(targets, sizes, (1,) * len(sizes))
        yield whole, data, data.packed.window(starts, sizes, steps)


def _columns(runs: Iterable[Run]) -> Iterator[tuple[int, ...]]:
    rows = list(runs)
    return (tuple(row[column] for row in rows) for column in range(len(Run._fields)))
