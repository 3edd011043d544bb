"""Resampling: each index of an axis of the output is a copy of one index of the input's axis.

Each front end chooses the input's indices from sizes and scales by its own rules. The indices of
an axis that is resampled by p/q repeat a pattern: if index j reads index f(j) of the input, index
p * k + j reads index q * k + f(j). So a few runs that repeat describe the whole axis.
"""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise, product
from typing import Any

import numpy as np
import numpy.typing as npt

from vkops.plan.index_runs import IndexRun, runs_of
from vkops.plan.size_limits import MAX_PIECES, LimitError

MAX_RESAMPLED_SIZE = 1 << 24
"""Size of a resampled axis of an output: its indices are computed one by one."""

IndexArray = npt.NDArray[np.int64]


def repeated_run(size: int, factor: int) -> IndexRun:
    """Each of the ``size`` indices of an axis, ``factor`` times."""
    return IndexRun(0, factor, 0, 0, repeats=size, period=factor, advance=1)


def resampled_runs(indices: IndexArray) -> list[IndexRun]:
    """Describe the chosen indices of an axis by few runs.

    There are at most about p runs for a scale of p/q, and about twice the square root of the number
    of indices for any scale. Scaling by an integer gives one run; indices that are clamped to the
    ends of the input add some more.

    >>> resampled_runs(np.array([0, 2, 3, 5, 6, 8]))
    [IndexRun(target=0, size=2, start=0, step=2, repeats=3, period=2, advance=3)]

    Raises:
        LimitError: the indices have no such pattern, and too many runs are needed.
    """
    changes = np.flatnonzero(np.diff(indices)) + 1
    if not len(changes):
        return [IndexRun(0, len(indices), int(indices[0]), 0)] if len(indices) else []
    estimates = {p: _estimated_runs(indices, p) for p in _periods(indices, changes)}
    minimum = min(estimates.values())
    if minimum > MAX_PIECES:
        message = f"the indices of an axis make about {minimum:.0f} runs"
        raise LimitError(f"{message}, must be {MAX_PIECES} at most")
    periods = [period for period, estimate in estimates.items() if estimate <= 2 * minimum]
    # Indices that are clamped to the ends of the input break the pattern: also try without them.
    starts, stops = {0, int(changes[0])}, {len(indices), int(changes[-1])}
    return min((_cut(indices, *cut) for cut in product(periods, starts, stops)), key=len)


def _periods(indices: IndexArray, changes: npt.NDArray[Any]) -> set[int]:
    """Numbers of indices after which a pattern may repeat, at most half of all.

    These are the denominators of the continued fraction's convergents of the mean step, which is
    q/p: a convergent is nearer to it than any fraction with a smaller denominator. The mean step is
    computed from all indices, and again without the ends, which may be clamped.
    """
    first, last = changes[[0, -1]].tolist()
    steps = [Fraction(abs(int(indices[-1] - indices[0])) + 1, len(indices))]
    if first < last:
        steps.append(Fraction(abs(int(indices[last] - indices[first])), last - first))
    periods = {1}
    for step in steps:
        numerator, denominator = step.as_integer_ratio()
        before, period = 1, 0
        while denominator:
            quotient, remainder = divmod(numerator, denominator)
            before, period = period, quotient * period + before
            if period > len(indices) // 2:
                break
            periods.add(period)
            numerator, denominator = denominator, remainder
    return periods


def _estimated_runs(indices: IndexArray, period: int) -> float:
    """About how many runs there are if the pattern repeats after ``period`` indices."""
    steps = np.diff(indices)
    row = steps[: period - 1]
    changes = (row[1:] != row[:-1], steps[period:] != steps[:-period])
    # A step that differs from the others changes twice.
    return 1 + sum(map(np.count_nonzero, changes)) / 2


def _cut(indices: IndexArray, period: int, start: int, stop: int) -> list[IndexRun]:
    """Describe indices by runs that repeat after ``period`` indices between ``start`` and ``stop``.

    The columns of a table whose rows are periods are cut where the step to the next column is not
    the same in all rows.
    """
    if period == 1:
        return [*runs_of(indices)]
    table = indices[start:stop]
    steps = np.diff(table)
    uneven = np.flatnonzero(steps[period:] != steps[:-period]) % period + 1
    # The last row may be shorter: it ends at column len(table) % period.
    edges = sorted({0, len(table) % period, period, *uneven.tolist()})
    runs = [*runs_of(indices[:start])]
    for left, right in pairwise(edges):
        for columns in runs_of(table[left:right]):
            column = left + columns.target
            for rows in runs_of(table[column::period]):
                runs.append(
                    IndexRun(
                        target=start + rows.target * period + column,
                        size=columns.size,
                        start=rows.start,
                        step=columns.step,
                        repeats=rows.size,
                        period=period,
                        advance=rows.step,
                    )
                )
    runs += [run._replace(target=stop + run.target) for run in runs_of(indices[stop:])]
    return runs
