"""The items of a dispatch: where each invocation begins, rows and steps, as shaders/region.glsl.

Numbers of invocations are arrays of 32-bit words, whose arithmetic wraps as that of shaders.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from vkops.gpu.kernels import layout
from vkops.gpu.kernels.choice import Kernel
from vkops.gpu.kernels.encoding import Words

Bools = npt.NDArray[np.bool_]
Numbers = npt.NDArray[np.int64]

_INDEX = {vector: index for index, vectors in enumerate(layout.RECORD) for vector in vectors}


class Where(NamedTuple):
    """The active invocations, and the addresses of each: of elements, indices and positions."""

    active: Bools
    dst: Words
    src: Words
    indices: Words
    place: Words
    position: Words


class Items:
    """The items of some workgroups of a dispatch.

    ``table`` has the vectors of a region table, and ``groups`` the numbers of the workgroups. If
    they are ``aligned``, each has items of one record.
    """

    def __init__(self, kernel: Kernel, table: Words, groups: Numbers, *, aligned: bool) -> None:
        self.kernel: Kernel = kernel
        self.aligned: bool = aligned
        self._table = table
        records, total, turns, _ = table[0].tolist()
        size = kernel.workgroup
        numbers = (groups[:, None] * size + np.arange(size)).ravel()
        self.active: Bools = numbers < total
        rest = np.where(self.active, numbers, 0).astype(np.uint32)
        heads = 1 + layout.RECORD_VECTORS * np.arange(records)
        if turns:
            turn, number = np.divmod(rest // layout.TURN, records)
            self._record, rest = heads[number], turn * layout.TURN + rest % layout.TURN
        else:
            self._record = heads[np.searchsorted(table[heads, 0], rest, side="right") - 1]
            rest -= table[self._record, 0]
        head, position = self.vector(layout.Head), self.vector(layout.Position)
        start = self.vector(layout.Start, 1) if kernel.indexed else layout.Start(0, 0)
        index, place = (np.zeros_like(rest) + value for value in start)
        dst, src, at = head.dst.copy(), head.src.copy(), np.zeros_like(rest)
        self.first, self.row = at.copy(), at.copy()
        factors = {0: position.digit_0, 1: position.digit_1, 3: position.digit_3}
        for d in range(head.digits.max()):
            digit = self.vector(layout.Digit, number=d)
            has = d < head.digits
            rest, value = np.divmod(rest, np.where(has, digit.size, 1))
            value *= has
            dst += value * digit.dst
            src += value * digit.src
            at += value * factors.get(d, 0)
            if d == 0:
                self.first = value
            if d == 2:
                self.row = value * self.vector(layout.Rows).number
            if kernel.indexed:
                added = self.vector(layout.Place, 1, d)
                index += value * added.indices
                place += value * added.position
        self.active = self.active & (rest == 0)  # a workgroup may have items of one record only
        self.start: Where = Where(self.active, dst, src, index, place, at)

    def vector(self, kind: type[NamedTuple], record: int | Words = 0, number: int = 0) -> Any:
        """Return a vector of the table for each invocation: ``kind`` with arrays as its fields.

        ``record`` counts from that of the region, and ``number`` from the first such vector.
        """
        place = self._record + record * layout.RECORD_VECTORS + _INDEX[kind] + number
        return kind(*self._table[place, : len(kind._fields)].T)

    def rows(self) -> Iterator[Where]:
        """Yield the place of each row of the items."""
        rows = self.vector(layout.Rows)
        more = self.vector(layout.RowAdvance, 1) if self.kernel.indexed else layout.RowAdvance(0, 0)
        active, dst, src, index, place, position = self.start
        for r in range(int(rows.number[active].max())):
            yield Where(
                active & (r < rows.number) & (self.row + r < rows.limit),
                dst + rows.dst * r,
                src + rows.src * r,
                index + more.indices * r,
                place + more.position * r,
                position,
            )

    def steps(self, row: Where) -> Iterator[Where]:
        """Yield the place of each step in a row."""
        steps, position = self.vector(layout.Steps), self.vector(layout.Position)
        more = self.vector(layout.Advance, 1) if self.kernel.indexed else layout.Advance(0, 0, 0, 0)
        active, dst, src, index, place, at = row
        for i in range(int(steps.number[active].max(initial=0))):
            yield Where(
                active & (i < steps.number) & (at + position.step * i < steps.limit),
                dst + steps.dst * i,
                src + steps.src * i,
                index + more.indices * i,
                place + more.position * i,
                at + position.step * i,
            )
