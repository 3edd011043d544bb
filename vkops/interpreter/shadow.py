"""Who accessed memory last."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from vkops.interpreter.operations import Array
from vkops.interpreter.order import BY_BARRIER, LANE_BITS, LANES, SHARED, UNORDERED, Order


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
        counts = {"written": 1, "read": 2, "changed": 2}
        self._entries = {
            did: [np.zeros(units, np.int64) for _ in range(n)] for did, n in counts.items()
        }
        self._latest = dict.fromkeys(counts, 0)

    def access(
        self, kind: str, order: Order, at: Array, who: Array, time: int, c: int, need: int
    ) -> list[Conflict]:
        """Record accesses of units by invocations, and return a conflict of each kind.

        Their kind is "read", "write" or "atomic", and ``need`` is what ``Order`` says.
        """
        does = {"read": "read", "write": "written", "atomic": "changed"}[kind]
        code, befores, conflicts = time << LANE_BITS | (who + 1), [], []
        conflicts_with_own = kind == "write" or (kind == "atomic" and len(order.needs) > 1)
        for did, kept in self._entries.items():
            if (did != does or conflicts_with_own) and not order.is_past(self._latest[did], c):
                befores += [(did, entries[at]) for entries in kept]
        self._record(order, self._entries[does], at, code, c)
        self._latest[does] = time
        for entries in self._entries[does] if conflicts_with_own else ():
            befores += [(does, now)] if ((now := entries[at]) != code).any() else []
        for did, before in befores:
            unordered = order.unordered(before, who, c, need)
            if kind == "atomic" and did == does and unordered.any():
                unordered = unordered * order.apart(before, who, need)
            for status in (UNORDERED, BY_BARRIER) if unordered.any() else ():
                rows = np.flatnonzero(unordered == status)
                if len(rows):
                    others, when = (before[rows] & LANES) - 1, before[rows] >> LANE_BITS
                    conflicts.append(Conflict(did, rows, others, when, status == BY_BARRIER))
        return conflicts

    def last_change(self, unit: int) -> tuple[int, int]:
        """Return when a unit was written or changed last, and by whom; time 0 if it was not."""
        code = max(int(self._entries[did][0][unit]) for did in ("written", "changed"))
        return code >> LANE_BITS, (code & LANES) - 1

    @staticmethod
    def _record(order: Order, entries: list[Array], at: Array, code: Array, c: int) -> None:
        last, *rest = entries
        old = last[at] if rest else code
        last[at] = code
        for candidates, holder in ((old, code), (code, last[at])) if rest else ():
            if order.is_past(int(candidates.max()) >> LANE_BITS, c):
                continue
            one, other = candidates.astype(np.uint32), holder.astype(np.uint32)  # who they are
            put = (one != other) & (one != 0)
            if c != SHARED and put.any():  # in shared memory, all are of one workgroup
                lane, kept, new = ((e & LANES) - 1 for e in (holder, rest[0][at], candidates))
                group = lane // order.group_size
                has_far = (kept >= 0) & (kept // order.group_size != group)
                put &= (new // order.group_size != group) | ~has_far
            rows = np.flatnonzero(put)
            rest[0][at[rows]] = candidates[rows]
