"""Who accessed memory last."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from vkops.interpreter.operations import Array
from vkops.interpreter.order import BY_BARRIER, LANE_BITS, LANES, UNORDERED, Order


class Conflict(NamedTuple):
    """Accesses that are not ordered with earlier ones.

    ``at`` are their numbers among those that were given; ``others`` are the invocations of the
    earlier ones, which did what ``did`` says at times ``when``. ``has_barrier`` says whether there
    is a barrier between, which does not order storage buffers.
    """

    did: str
    at: Array
    others: Array
    when: Array
    has_barrier: bool = False


class Shadow:
    """The last accesses to each unit of a memory.

    Two readers and two atomic operations are kept: the last one, and one of another workgroup if
    there was any, else of another invocation.
    """

    def __init__(self, units: int) -> None:
        self._writes, self._reads, self._readers, self._atomics, self._others = (
            np.zeros(units, np.int64) for _ in range(5)
        )

    def access(
        self, kind: str, order: Order, at: Array, who: Array, time: int, c: int, need: int
    ) -> list[Conflict]:
        """Record accesses of units by invocations, and return a conflict of each kind.

        Their kind is "read", "write" or "atomic", and ``need`` is what ``Order`` says.
        """
        kinds, atomics = [(self._writes[at], "written")], (self._atomics, self._others)
        kinds += [(each[at], "read") for each in (self._reads, self._readers) if kind != "read"]
        if kind != "atomic" or order.needs:
            kinds += [(each[at], "changed") for each in atomics]
        if kind == "atomic":
            self._record(order, *atomics, at, who, time)
            kinds += [(each[at], "changed") for each in atomics if order.needs]  # at this time
        found = []
        for before, did in kinds:
            unordered = order.unordered(before, who, c, need)
            if (kind, did) == ("atomic", "changed") and unordered.any():
                unordered = unordered * order.apart(before, who, need)
            statuses = (UNORDERED,) if did == "read" else (UNORDERED, BY_BARRIER)
            for status in statuses if unordered.any() else ():
                numbers = np.flatnonzero(unordered == status)
                if len(numbers):
                    code = before[numbers]
                    others, when = (code & LANES) - 1, code >> LANE_BITS
                    found.append(Conflict(did, numbers, others, when, status == BY_BARRIER))
        if kind == "read":
            self._record(order, self._reads, self._readers, at, who, time)
        elif kind == "write":
            code = time << LANE_BITS | (who + 1)
            self._writes[at] = code
            lost = np.flatnonzero(self._writes[at] != code)
            if len(lost):
                others = (self._writes[at[lost]] & LANES) - 1
                found.append(Conflict("written", lost, others, np.full(len(lost), time)))
        return found

    def last_change(self, unit: int) -> tuple[int, int]:
        """Return when a unit was written or changed last, and by whom; time 0 if it was not."""
        code = max(int(each[unit]) for each in (self._writes, self._atomics))
        return code >> LANE_BITS, (code & LANES) - 1

    @staticmethod
    def _record(order: Order, last: Array, others: Array, at: Array, who: Array, time: int) -> None:
        code = time << LANE_BITS | (who + 1)
        size = order.group_size
        old = last[at]
        for candidates in (old, None):
            if candidates is None:
                last[at] = code
                candidates, holder = code, last[at]
            else:
                holder = code
            differs = (candidates & LANES) != (holder & LANES)
            differs &= candidates != 0
            if not differs.any():
                continue
            lane, kept = ((each & LANES) - 1 for each in (holder, others[at]))
            group = lane // size
            has_far = (kept >= 0) & (kept // size != group)
            is_far = ((candidates & LANES) - 1) // size != group
            put = differs & (is_far | ~has_far)
            others[at[put]] = candidates[put]
