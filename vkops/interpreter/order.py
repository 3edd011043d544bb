"""The order of memory accesses."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from itertools import chain
from typing import Any, NamedTuple

import numpy as np

from vkops.interpreter.operations import Array
from vkops.interpreter.program import SUBGROUP_SCOPE, WORKGROUP_SCOPE
from vkops.interpreter.visibility import ACQUIRES, AVAILABLE, MEMORY, RELEASES, VISIBLE, Chains

LANE_BITS = 32
LANES = (1 << LANE_BITS) - 1

_FLAGS = (AVAILABLE | VISIBLE, AVAILABLE, VISIBLE, 0)
"""Semantics that order two accesses if both, the write, the read, or none is not coherent."""
AVAILABILITY = AVAILABLE | VISIBLE
"""The semantics that Vulkan's memory model requires, and that other models imply."""

BUFFERS, SHARED, IMAGES = range(3)
_INVOCATION_SCOPE = 4
LEVELS = {WORKGROUP_SCOPE: 1, SUBGROUP_SCOPE: 2, _INVOCATION_SCOPE: 3}
"""The minimum nearness of two invocations in the same scope: 0 for any two, 3 for none."""

INCOHERENT, PRIVATE = 3, 4
"""Needs of accesses in Vulkan's memory model, numbered after the levels: see ``Order``."""
_STORE = 8
"""The flag of an atomic store in ``needs``; bits above it have the scope of atomic accesses."""
_SCOPE_BITS = 4

UNORDERED, BY_BARRIER = 1, 2


def subgroup_of(who: Any, group_size: int, subgroup_size: int) -> Any:
    """Return the numbers of the subgroups of invocations, counted over all workgroups."""
    group, local = divmod(who, group_size)
    return group * -(-group_size // subgroup_size) + local // subgroup_size


class _Release(NamedTuple):
    """An atomic write after a release.

    ``fences`` has the time of the release, by the nearness that an acquiring invocation must have,
    and by the class of memory. ``barriers`` has the times of the workgroup's last barriers before
    the release, and ``last`` before the write.
    """

    who: int
    fences: Array
    barriers: Array
    last: Array


class _Acquire(NamedTuple):
    """An acquire of ``reads`` atomic reads, and of its workgroup's reads before a barrier.

    The acquire of an atomic operation is ``own``: it acquires the last of the reads, its own.
    """

    time: int
    level: int
    semantics: int
    reads: int
    barrier: int
    own: bool = False


class _Known(NamedTuple):
    """The times up to which an invocation knows what others did.

    The times are by invocation; by workgroup; and by workgroup for everything that was released
    before a barrier.
    """

    invocations: dict[int, float]
    groups: dict[int, int]
    released: dict[int, int]


class Order:
    """The happens-before order of accesses, by Vulkan's memory model.

    A barrier orders the accesses of a workgroup or a subgroup to the memory in its semantics. What
    others have released before it, it orders for all memory; if the barrier itself only releases,
    the next acquire in the workgroup does. Otherwise, what an invocation did before a release
    happens before what another one does after an acquire under these conditions: the first wrote an
    atomic variable after its release, the second read it before its acquire, and both scopes
    contain both invocations. An atomic operation that releases or acquires does so for its own
    write or read, which is itself ordered.

    A plain ``barrier()`` is treated as if it ordered buffers as well, and as if it acquired
    everything that an invocation of the workgroup has read; ``unordered`` reports where the first
    matters. Atomic operations are only logged; the log is evaluated when a conflict needs it. Times
    are those of the machine.

    An access can need more, which ``needs`` has by the time of the access. An atomic operation
    needs that invocations are as near as its scope says. In a module that declares Vulkan's memory
    model, a write that is not coherent for both invocations must be made available, and a read that
    is not coherent must be made visible, as ``Chains`` says. For this, each class of memory exists
    four times, for operations that have these semantics in every step, which is the usual case.
    Private accesses are never ordered.
    """

    def __init__(
        self, groups: int, group_size: int, subgroup_size: int, *, is_declared: bool
    ) -> None:
        self.group_size = group_size
        self.subgroup_size = subgroup_size
        self.needs: Array = np.zeros(1, np.int8)  # the last entry is 0
        self._has_narrow = False  # accesses to shared memory with a scope below the workgroup
        self._classes = 3 * len(_FLAGS) if is_declared else 3
        self.chains = Chains(group_size, subgroup_size) if is_declared else None
        self._barriers = np.zeros((self._classes, groups), np.int64)
        # For the memory in their semantics:
        self._full_barriers: Array = np.zeros_like(self._barriers)
        self._subgroup_barriers: Array | None = None
        # The last release before the last barrier, and before the last barrier after which it
        # was acquired by the workgroup.
        self._published: Array | None = None
        self._has_releases = False
        self._log: list[tuple[Any, ...]] = []
        # What an invocation knows, until it acquires more, and an iterator that adds to it.
        self._memoized: dict[tuple[int, int], tuple[_Known, Iterator[None]]] = {}
        self._locations: dict[tuple[object, int], list[_Release]] = {}
        self._writers: dict[tuple[object, int], tuple[int, int]] = {}  # last, with scopes
        self._seen: defaultdict[int, list[tuple[int, list[_Release], int, int]]] = defaultdict(list)
        self._seen_by_group: defaultdict[int, list[Any]] = defaultdict(list)
        self._acquires: defaultdict[int, list[_Acquire]] = defaultdict(list)
        self._members: defaultdict[int, set[int]] = defaultdict(set)

    def begin(self, who: Array) -> None:
        """Start workgroups, whose invocations have not released anything."""
        self._first = int(who.min())
        self._count = int(who.max()) + 1 - self._first  # others between may have begun earlier
        self._met = 0  # the earliest of workgroups' last barriers for shared memory
        self._fences: Array | None = None
        self._fence_barriers = np.zeros((self._classes, self._count), np.int64)
        self._observes = np.zeros(self._count // self.group_size, bool)

    def _subgroup(self, who: Any) -> Any:
        return subgroup_of(who, self.group_size, self.subgroup_size)

    def barrier(self, who: Array, scope: int, semantics: int, time: int) -> None:
        """Order the accesses of the workgroups or the subgroups of invocations."""
        classes = self._chosen(semantics, AVAILABILITY)
        classes = classes if semantics & ACQUIRES & RELEASES else []
        if scope == SUBGROUP_SCOPE:
            if self._subgroup_barriers is None:
                count = int(self._subgroup(self._barriers.shape[1] * self.group_size))
                self._subgroup_barriers = np.zeros((self._classes, count), np.int64)
            for c in classes:
                self._subgroup_barriers[c, self._subgroup(who)] = time
            return
        groups = np.flatnonzero(np.bincount(who // self.group_size))
        if self._fences is not None:
            if self._published is None:
                count = self._barriers.shape[1] * self.group_size
                self._published = np.zeros((2, self._classes, count), np.int64)
            for c in range(self._classes):
                self._published[0, c, who] = self._fences[1, c, c % 3, who - self._first]
            acquires = semantics & ACQUIRES
            if self.chains is None and (acquires or not semantics & RELEASES):
                self._published[1][:, who] = self._published[0][:, who]
            for c in self._chosen(semantics, VISIBLE) if self.chains and acquires else ():
                self._published[1, c, who] = self._published[0, c, who]
        self._memoized.clear()
        for c in classes:
            self._full_barriers[c, groups] = time
        if classes:
            workgroups = slice(
                *(n // self.group_size for n in (self._first, self._first + self._count))
            )
            self._met = int(self._full_barriers[self._classes - 3 + SHARED, workgroups].min())
            self._barriers[:, groups] = self._full_barriers[:, groups]
            if self.chains is None:  # not Vulkan's memory model: a plain barrier
                self._barriers[BUFFERS, groups] = self._barriers[IMAGES, groups] = time
                self.acquire(who, 0, ACQUIRES | sum(MEMORY) | AVAILABILITY, time)
            self._observes[groups - self._first // self.group_size] = False

    def _chosen(self, semantics: int, flags: int) -> list[int]:
        """Return the classes in semantics that need none of the flags which the semantics lack."""
        return [
            c
            for c in range(self._classes)
            if semantics & MEMORY[c % 3] and not _FLAGS[c // 3] & flags & ~semantics
        ]

    def release(self, who: Array, scope: int, semantics: int, time: int) -> None:
        """Let later atomic operations of the invocations release their accesses until now."""
        if not semantics & RELEASES or scope == _INVOCATION_SCOPE:
            return
        if self._fences is None:
            self._fences = np.zeros((3, self._classes, len(MEMORY), self._count), np.int64)
        rows = who - self._first
        for c in self._chosen(semantics, AVAILABLE):
            for by in (by for by, bit in enumerate(MEMORY) if semantics & bit):
                self._fences[LEVELS.get(scope, 0) :, c, by, rows] = time
        self._fence_barriers[:, rows] = self._barriers[:, who // self.group_size]

    def acquire(self, who: Array, scope: int, semantics: int, time: int) -> None:
        """Let invocations acquire what they have read by atomic operations, or at barriers."""
        if self._published is not None and semantics & ACQUIRES and LEVELS.get(scope, 0) < 2:
            groups = np.unique(who // self.group_size)
            members = (groups[:, None] * self.group_size + np.arange(self.group_size)).reshape(-1)
            for c in self._chosen(semantics, VISIBLE):
                self._published[1, c, members] = self._published[0, c, members]
        if self._has_releases and semantics & ACQUIRES and scope != _INVOCATION_SCOPE:
            who = who[self._observes[(who - self._first) // self.group_size]]
            barriers = self._barriers[BUFFERS, who // self.group_size]
            self._log.append((time, who, LEVELS.get(scope, 0), semantics, barriers))
            self._forget(who)

    def atomic(
        self,
        shadow: object,
        units: Array,
        who: Array,
        scope: int,
        semantics: int,
        time: int,
        kind: str,
        by: int,
    ) -> None:
        """Log an atomic operation: a "load", a "store", or a "change", which is both.

        ``by`` is the class of the memory. The operation only synchronizes fences whose semantics
        contain this class, too.
        """
        level = LEVELS.get(scope, 0)
        if self.chains is not None:
            self.chains.atomic(shadow, units, who, level, semantics, time, kind, by)
        semantics = 0 if scope == _INVOCATION_SCOPE else semantics
        releases = kind != "load" and semantics & RELEASES
        rows, shape = who - self._first, (3, self._classes, len(who))
        fences = None if self._fences is None else self._fences[:, :, by, rows]
        self._has_releases |= bool(releases or (fences is not None and fences.any()))
        if not self._has_releases:
            return
        fences = np.zeros(shape, np.int64) if fences is None else fences
        before, last = self._fence_barriers[:, rows], self._barriers[:, who // self.group_size]
        if releases:
            own = self._chosen(semantics, AVAILABLE)
            fences[level:, own] = time
            before[own] = last[own]
        acquires = kind != "store" and semantics & ACQUIRES
        own_acquire = (level, semantics) if acquires else None
        self._observes[rows // self.group_size] = True
        self._log.append(
            (time, who, shadow, units, fences, before, last, kind, level, by, own_acquire)
        )
        if acquires:
            self._forget(who)

    def _forget(self, who: Array) -> None:
        """Forget what the invocations know, because they acquire more; other invocations do not."""
        acquirers = {*who.tolist()}
        self._memoized = {at: e for at, e in self._memoized.items() if at[0] not in acquirers}

    def _understand(self) -> None:
        """Evaluate the log: add what each invocation has seen and acquired."""
        for time, who, *noted in self._log:
            if len(noted) == 3:
                level, semantics, barriers = noted
                for one, barrier in zip(who.tolist(), barriers.tolist(), strict=True):
                    acquire = _Acquire(time, level, semantics, len(self._seen[one]), barrier)
                    self._acquires[one].append(acquire)
                    self._members[one // self.group_size].add(one)
                continue
            shadow, units, fences, before, last, kind, level, by, acquires = noted
            for n, (one, unit) in enumerate(zip(who.tolist(), units.tolist(), strict=True)):
                location = self._locations.setdefault((shadow, unit), [])
                writer, scope = self._writers.get((shadow, unit), (one, 0))
                is_ordered = max(level, scope) <= self._nearness(one, writer)
                if kind != "load":
                    self._writers[shadow, unit] = one, level
                if location and kind != "store" and is_ordered:
                    seen, past = (time, location, len(location), MEMORY[by]), self._seen[one]
                    if not past or past[-1][1] is not location or past[-1][2] != len(location):
                        past.append(seen)
                        self._seen_by_group[one // self.group_size].append(seen)
                    if acquires:
                        own = _Acquire(time, acquires[0], acquires[1], len(past), 0, own=True)
                        self._acquires[one].append(own)
                        self._members[one // self.group_size].add(one)
                if kind == "store" or (kind == "change" and not is_ordered):
                    location = self._locations[shadow, unit] = []  # a sequence of releases ends
                if kind != "load" and fences[..., n].any():
                    location.append(_Release(one, fences[..., n], before[:, n], last[:, n]))
        self._log.clear()

    def _learn(self, known: _Known, who: int, c: int) -> Iterator[None]:
        """Add, step by step, what an invocation knows; the latest releases come first."""
        self._understand()
        done: dict[tuple[int, int, int], int] = {}
        now = int(self._barriers[c, who // self.group_size])
        rest: list[tuple[int, float]] = []

        def add(one: int, upto: float, barrier: int, last: int) -> None:
            group = one // self.group_size
            if upto > known.invocations.get(one, 0):
                known.invocations[one] = upto
                rest.append((one, upto))
            known.groups[group] = max(barrier, known.groups.get(group, 0))
            if last > known.released.get(group, 0):
                known.released[group] = last
                rest.extend((member, last) for member in self._members[group])

        add(who, np.inf, now, now)
        for member, limit in rest:  # the list grows in the loop
            for location, count, level in reversed(self._acquired(member, limit, c)):
                at = (id(location), member, level)
                for release in reversed(location[done.get(at, 0) : count]):
                    near = self._nearness(member, release.who)
                    if level <= near and release.fences[near, c]:
                        when = int(release.barriers[c]), int(release.last[c])
                        add(release.who, release.fences[near, c], *when)
                done[at] = max(count, done.get(at, 0))
            yield

    def _acquired(self, member: int, limit: float, c: int) -> list[tuple[list[_Release], int, int]]:
        """Return the releases that an invocation has acquired up to a time, with their levels."""
        last: dict[object, _Acquire] = {}
        for each in self._acquires[member]:
            if each.time <= limit and c in self._chosen(each.semantics, VISIBLE):
                last[each.level, each.reads if each.own else each.semantics, each.own] = each
        acquired = []
        for each in last.values():
            near = self._seen_by_group[member // self.group_size] if self.chains is None else []
            near = [seen for seen in near if seen[0] <= each.barrier]
            first = each.reads - 1 if each.own else 0
            for _, location, count, by in (*self._seen[member][first : each.reads], *near):
                if each.own or each.semantics & by:
                    acquired.append((location, count, each.level))
        return acquired

    def _nearness(self, one: Any, other: Any) -> Any:
        """Return 2 for invocations of the same subgroup, 1 for the same workgroup, else 0."""
        same = one // self.group_size == other // self.group_size
        return same * (1 + (self._subgroup(one) == self._subgroup(other)))

    def note(self, kind: str, time: int, need: int, scope: int, c: int, *, is_store: bool) -> None:
        """Store what accesses at a time need of later accesses, and the scope of atomic accesses.

        What a read needs only concerns earlier accesses. ``is_store`` says whether an atomic
        operation does not read.
        """
        self._has_narrow |= c == SHARED and max(need, scope) > LEVELS[WORKGROUP_SCOPE]
        if kind == "read" and need < PRIVATE:
            return
        if time + 1 >= len(self.needs):
            self.needs = np.r_[self.needs, np.zeros(2 * time + 2, np.int8)]
        self.needs[time] = need | _STORE * is_store | scope << _SCOPE_BITS

    def is_narrow(self, time: int) -> bool:
        """Whether accesses at a time need anything, or have a scope."""
        return bool(self.needs[min(time, len(self.needs) - 1)] & ~_STORE)

    def _pairs(self, before: Array, who: Array) -> tuple[Array, Array]:
        """Return the stored needs of earlier accesses, and how near the invocations are."""
        other = (before & LANES) - 1
        noted = self.needs.take(before >> LANE_BITS, mode="clip")
        return noted, self._nearness(who, other)

    def apart(self, before: Array, who: Array, scope: int) -> Array:
        """Return which atomic operations are not in the scope of earlier ones, or vice versa."""
        noted, near = self._pairs(before, who)
        return near < np.maximum(noted >> _SCOPE_BITS, scope)

    def unordered(
        self,
        before: Array,
        who: Array,
        c: int,
        need: int,
        element: tuple[object, Array],
        *,
        are_changes: bool,
    ) -> Array:
        """Return which accesses conflict with earlier ones, which are entries of a shadow.

        ``element`` is a shadow and the units of it that are accessed. ``are_changes`` says whether
        the earlier accesses are atomic. The result is 0, or UNORDERED. It is BY_BARRIER if a
        barrier between both does not order this memory, in a module without Vulkan's memory model.
        A read that happens before an access is ordered before it without further needs; so is an
        atomic operation that both reads and writes.
        """
        if self.chains is None or not before.any():
            return self._unordered(before, who, c)
        other = (before & LANES) - 1
        noted, near = self._pairs(before, who)
        needs = noted & _STORE - 1
        need_each = np.full(len(before), need)
        if are_changes and need < PRIVATE:
            need_each *= (noted & _STORE) != 0
        # The class of memory for each pair, by its flags.
        flavor = 2 * (near >= needs) + (near >= need_each)
        result = np.zeros(len(before), bool)
        for each in np.unique(flavor[before != 0]).tolist():
            unordered = self._unordered(before, who, c + 3 * each) != 0
            result |= (flavor == each) & unordered
        for at in np.flatnonzero(result).tolist():
            first = int(other[at]), int(before[at]) >> LANE_BITS, int(needs[at])
            last, place = (int(who[at]), int(need_each[at])), (element[0], int(element[1][at]))
            result[at] = not self.chains.ordered(*first, *last, c, place)
        return result | ((before != 0) & (other != who) & (np.maximum(needs, need) == PRIVATE))

    def is_past(self, time: int, c: int) -> bool:
        """Whether a time is 0, or before barriers of all workgroups that order shared memory."""
        return time <= (self._met if c == SHARED and not self._has_narrow else 0)

    def _unordered(self, before: Array, who: Array, c: int) -> Array:
        """Return the same for a class of memory."""
        if self.is_past(int(before.max()) >> LANE_BITS, c):
            return np.zeros(len(before), bool)
        other = (before & LANES) - 1
        unordered = (before != 0) & (other != who)
        if not unordered.any():
            return unordered
        when = before >> LANE_BITS
        group, other_group = who // self.group_size, other // self.group_size
        same = group == other_group
        if self._subgroup_barriers is not None:
            subgroup = self._subgroup(who)
            near = same & (self._subgroup(np.maximum(other, 0)) == subgroup)
            unordered &= ~(near & (self._subgroup_barriers[c, subgroup] >= when))
        if self._published is not None:
            unordered &= ~(same & (self._published[1, c, other] >= when))
        has_barrier = same & (self._barriers[c, group] >= when)
        unordered &= ~(same & (self._full_barriers[c, group] >= when))
        if self._has_releases:
            for at in np.flatnonzero(unordered).tolist():
                one, last = int(who[at]), int(when[at])
                if (one, c) not in self._memoized:
                    known = _Known({}, {}, {})
                    self._memoized[one, c] = known, self._learn(known, one, c)
                known, more = self._memoized[one, c]
                unordered[at] = not any(
                    self._knows(known, int(other[at]), last, c) for _ in chain((None,), more)
                )
        return np.where(unordered & has_barrier, BY_BARRIER, unordered)

    def _knows(self, known: _Known, other: int, when: int, c: int) -> bool:
        """Whether what another invocation did at a time is known."""
        group = other // self.group_size
        is_published = self._published is not None and self._published[1, c, other] >= when
        return bool(
            known.invocations.get(other, 0) >= when
            or known.groups.get(group, 0) >= when
            or (is_published and known.released.get(group, 0) >= when)
        )
