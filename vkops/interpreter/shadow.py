"""The last accesses to each unit of memory."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from vkops.interpreter.operations import Array
from vkops.interpreter.order import BY_BARRIER, LANE_BITS, LANES, SHARED, UNORDERED, Order

_CONFLICTS = {
    "read": ("written", "changed"), "load": ("written", "changed"),
    "write": ("written", "read", "changed", "loaded"),
    "atomic": ("written", "read", "changed", "loaded"),
}  # fmt: skip
"""For each kind of access, the kinds of earlier accesses that conflict with it."""
_ATOMIC = {"atomic": "changed", "load": "loaded"}


class Conflict(NamedTuple):
    """Accesses that are not ordered with earlier ones.

    ``at`` are their positions among the given accesses. ``others`` are the invocations of the
    earlier accesses; ``did`` is what these did, at the times ``when``. ``has_barrier`` says whether
    a barrier is between them, which does not order storage buffers.
    """

    did: str
    at: Array
    others: Array
    when: Array
    has_barrier: bool = False


class Shadow:
    """The last accesses to each unit of a memory.

    For reads, and for each kind of atomic operation, two accesses are stored: the last one, and one
    of another workgroup if there was any, else one of another invocation. Of writes, the last one
    is stored. Of writes and atomic operations with a scope below the device, the last one is stored
    separately, because a later access may be ordered when this one is not.
    """

    def __init__(self, units: int) -> None:
        self._units = units
        self._entries = {did: self._empty(did) for did in ("written", "read", "changed")}
        self._latest = dict.fromkeys(self._entries, 0)
        self._narrow: dict[str, Array] = {}

    def _empty(self, did: str) -> list[Array]:
        return [np.zeros(self._units, np.int64) for _ in range(1 if did == "written" else 2)]

    def access(
        self,
        kind: str,
        order: Order,
        at: Array,
        who: Array,
        time: int,
        c: int,
        need: int,
        scope: int,
    ) -> list[Conflict]:
        """Record accesses of units by invocations, and return a conflict of each kind.

        Their kind is "read", "write", "atomic", or "load" for an atomic one that does not write;
        ``need`` and ``scope`` are described at ``Order``.
        """
        does = {"read": "read", "write": "written", **_ATOMIC}[kind]
        code, befores, conflicts = time << LANE_BITS | (who + 1), [], []
        if does not in self._entries:  # few shaders have atomic loads
            self._entries[does] = self._empty(does)
        have_scopes = len(order.needs) > 1
        for did in _CONFLICTS[kind]:
            is_exempt = kind in _ATOMIC and did in _ATOMIC.values() and not have_scopes
            if did in self._entries and not is_exempt and not order.is_past(self._latest[did], c):
                befores += [(did, entries[at]) for entries in self._entries[did]]
                if did in self._narrow:
                    befores.append((did, self._narrow[did][at]))
        self._record(order, self._entries[does], at, code, c)
        self._latest[does] = time
        if does != "read" and order.is_narrow(time):
            self._narrow.setdefault(does, np.zeros(self._units, np.int64))[at] = code
        conflicts_with_own = kind == "write" or (kind == "atomic" and have_scopes)
        for entries in self._entries[does] if conflicts_with_own else ():
            befores += [(does, now)] if ((now := entries[at]) != code).any() else []
        for did, before in befores:
            unordered = order.unordered(
                before, who, c, need, (self, at), are_changes=did == "changed"
            )
            if kind in _ATOMIC and did in _ATOMIC.values() and unordered.any():
                unordered = unordered * order.apart(before, who, scope)
            for status in (UNORDERED, BY_BARRIER) if unordered.any() else ():
                rows = np.flatnonzero(unordered == status)
                if len(rows):
                    others, when = (before[rows] & LANES) - 1, before[rows] >> LANE_BITS
                    conflicts.append(Conflict(did, rows, others, when, status == BY_BARRIER))
        return conflicts

    def last_change(self, unit: int) -> tuple[int, int]:
        """Return time and invocation of the last change of a unit; time 0 if there was none."""
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
            one, other = candidates.astype(np.uint32), holder.astype(np.uint32)  # the invocations
            put = (one != other) & (one != 0)
            if c != SHARED and put.any():  # in shared memory, all invocations are of one workgroup
                lane, kept, new = ((e & LANES) - 1 for e in (holder, rest[0][at], candidates))
                group = lane // order.group_size
                has_far = (kept >= 0) & (kept // order.group_size != group)
                put &= (new // order.group_size != group) | ~has_far
            rows = np.flatnonzero(put)
            rest[0][at[rows]] = candidates[rows]
