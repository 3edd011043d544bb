"""Who accessed memory, and whether two accesses are ordered."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from vkops.interpreter.operations import Array
from vkops.interpreter.program import SUBGROUP_SCOPE

_RELEASES, _STORAGE_BUFFERS = 0x4 | 0x8 | 0x10, 0x40
_WORKGROUP_SCOPE, _INVOCATION_SCOPE = 2, 4
_LANE_BITS = 32
_LANES = (1 << _LANE_BITS) - 1


class Conflict(NamedTuple):
    """Accesses that are not ordered with earlier ones.

    ``at`` are their numbers among those that were given; ``others`` are the invocations of the
    earlier ones, which did what ``did`` says at times ``when``.
    """

    did: str
    at: Array
    others: Array
    when: Array


class Order:
    """When invocations synchronized with each other.

    Invocations of a workgroup are ordered by its barriers, those of a subgroup also by its own.
    What a workgroup wrote before a memory barrier and an atomic operation is visible to a
    workgroup that executes an atomic operation later, and what an invocation wrote before these to
    another one of its workgroup. Times are numbers of memory accesses.
    """

    def __init__(self, groups: int, group_size: int, subgroup_size: int) -> None:
        self.group_size = group_size
        self.subgroup_size = subgroup_size
        self._subgroups = -(-group_size // subgroup_size)
        self._barriers = np.zeros(groups, np.int64)
        self._subgroup_barriers: Array | None = None
        self._fences = np.zeros(groups, np.int64)
        self._acquired = np.zeros(groups, np.int64)
        self._released: dict[int, list[tuple[int, int]]] = {}
        # The same for each invocation: the last fence, the atomic operation after it, and the last.
        self._own = np.zeros((3, 0), np.int64)

    def _subgroup(self, who: Array) -> Array:
        group, local = np.divmod(who, self.group_size)
        return group * self._subgroups + local // self.subgroup_size

    def barrier(self, who: Array, scope: int, memory_scope: int, semantics: int, time: int) -> None:
        """Order the workgroups or the subgroups of invocations."""
        if scope == SUBGROUP_SCOPE:
            if self._subgroup_barriers is None:
                self._subgroup_barriers = np.zeros(len(self._barriers) * self._subgroups, np.int64)
            self._subgroup_barriers[self._subgroup(who)] = time
            return
        self.fence(who, memory_scope, semantics, time)
        self._barriers[who // self.group_size] = time

    def fence(self, who: Array, scope: int, semantics: int, time: int) -> None:
        """Let the next atomic operation release what was written, to other workgroups or not."""
        if not semantics & _RELEASES or scope == _INVOCATION_SCOPE:
            return
        if not self._own.size:
            self._own = np.zeros((3, len(self._fences) * self.group_size), np.int64)
        self._own[0, who] = time
        if scope not in (_WORKGROUP_SCOPE, SUBGROUP_SCOPE) and semantics & _STORAGE_BUFFERS:
            self._fences[who // self.group_size] = time

    def atomic(self, who: Array, time: int) -> None:
        """Release what was written before the last memory barrier, and acquire."""
        if self._own.size:
            fence, released, _ = self._own[:, who]
            self._own[1, who] = np.where(fence > released, time, released)
            self._own[2, who] = time
        groups = np.unique(who // self.group_size)
        self._acquired[groups] = time
        for group in groups[self._fences[groups] > 0].tolist():
            known = self._released.setdefault(group, [])
            if not known or known[-1][0] < self._fences[group]:
                known.append((int(self._fences[group]), time))

    def unordered(self, before: Array, who: Array) -> Array:
        """Return whether accesses conflict with earlier ones, which are entries of a shadow."""
        other = (before & _LANES) - 1
        found = (before != 0) & (other != who)
        if not found.any():
            return found
        when = before >> _LANE_BITS
        group, other_group = who // self.group_size, other // self.group_size
        same = group == other_group
        found &= ~(same & (self._barriers[group] >= when))
        if self._subgroup_barriers is not None and found.any():
            subgroup = self._subgroup(who)
            near = same & (self._subgroup(np.maximum(other, 0)) == subgroup)
            found &= ~(near & (self._subgroup_barriers[subgroup] >= when))
        if self._own.size and found.any():
            (fence, released, _), acquired = self._own[:, np.maximum(other, 0)], self._own[2, who]
            found &= ~(same & (fence >= when) & (released > when) & (released < acquired))
        if self._released:
            for at in np.flatnonzero(found & ~same).tolist():
                acquired = self._acquired[group[at]]
                pairs = self._released.get(int(other_group[at]), ())
                released = (at_ for upto, at_ in pairs if upto >= when[at])
                found[at] = next(released, np.inf) > acquired
        return found


class Shadow:
    """The last accesses to each unit of a memory.

    Two readers and two atomic operations are kept: the last one, and one of another workgroup if
    there was any, else of another invocation.
    """

    def __init__(self, units: int) -> None:
        self._writes, self._reads, self._readers, self._atomics, self._others = (
            np.zeros(units, np.int64) for _ in range(5)
        )

    def access(self, kind: str, order: Order, at: Array, who: Array, time: int) -> list[Conflict]:
        """Record accesses of units by invocations, and return a conflict of each kind.

        Their kind is "read", "write" or "atomic".
        """
        kinds = [(self._writes, "written")]
        kinds += [(each, "read") for each in (self._reads, self._readers) if kind != "read"]
        kinds += [(each, "changed") for each in (self._atomics, self._others) if kind != "atomic"]
        found = []
        for entries, did in kinds:
            before = entries[at]
            numbers = np.flatnonzero(order.unordered(before, who))
            if len(numbers):
                code = before[numbers]
                found.append(Conflict(did, numbers, (code & _LANES) - 1, code >> _LANE_BITS))
        if kind == "read":
            self._record(order, self._reads, self._readers, at, who, time)
        elif kind == "atomic":
            self._record(order, self._atomics, self._others, at, who, time)
        else:
            code = time << _LANE_BITS | (who + 1)
            self._writes[at] = code
            lost = np.flatnonzero(self._writes[at] != code)
            if len(lost):
                others = (self._writes[at[lost]] & _LANES) - 1
                found.append(Conflict("written", lost, others, np.full(len(lost), time)))
        return found

    def last_change(self, unit: int) -> tuple[int, int]:
        """Return when a unit was written or changed last, and by whom; time 0 if it was not."""
        code = max(int(each[unit]) for each in (self._writes, self._atomics))
        return code >> _LANE_BITS, (code & _LANES) - 1

    @staticmethod
    def _record(order: Order, last: Array, others: Array, at: Array, who: Array, time: int) -> None:
        code = time << _LANE_BITS | (who + 1)
        size = order.group_size
        old = last[at]
        for candidates in (old, None):
            if candidates is None:
                last[at] = code
                candidates, holder = code, last[at]
            else:
                holder = code
            differs = (candidates & _LANES) != (holder & _LANES)
            differs &= candidates != 0
            if not differs.any():
                continue
            lane, kept = ((each & _LANES) - 1 for each in (holder, others[at]))
            group = lane // size
            has_far = (kept >= 0) & (kept // size != group)
            is_far = ((candidates & _LANES) - 1) // size != group
            put = differs & (is_far | ~has_far)
            others[at[put]] = candidates[put]
