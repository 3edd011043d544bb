"""Whether what an invocation writes is available and visible to another one."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from math import inf
from typing import Any, NamedTuple

from vkops.interpreter.operations import Array

ACQUIRES, RELEASES = 0x2 | 0x8 | 0x10, 0x4 | 0x8 | 0x10
MEMORY = (0x40, 0x100, 0x800)
"""Memory semantics: of storage buffers, of shared memory, and of images."""
AVAILABLE, VISIBLE = 0x2000, 0x4000

ITSELF = 3
"""How near an invocation is to itself: the level behind those of scopes."""


class _Operation(NamedTuple):
    """A fence, a barrier or an atomic operation of an invocation that releases or acquires.

    ``level`` is that of its scope. A fence or a barrier is a ``fence``, which acquires what the
    first ``reads`` atomic reads of the invocation have read; another one acquires the last of
    these.
    """

    time: int
    level: int
    semantics: int
    reads: int
    is_fence: bool


class _Write(NamedTuple):
    """An atomic write, after the first ``past`` operations of its invocation."""

    who: int
    past: int
    own: _Operation | None


class Chains:
    """Which writes are available and visible, by Vulkan's memory model.

    A write is ordered before a later access if it happens before that, is available to a memory
    domain, and that domain is visible to the access (a write needs no visibility). Domains are the
    device, a workgroup and a subgroup; their levels are those of scopes:

    - A write is available to the domain of its own scope if it is coherent (MakePointerAvailable),
      and an operation that releases with MakeAvailable makes the earlier writes of its invocation
      available to the domain of its scope. What is available to a domain becomes available to a
      wider one by such an operation of any invocation in that domain, if the first one happens
      before it.
    - A read sees the domain of its own scope if it is coherent (MakePointerVisible), and an
      operation that acquires with MakeVisible makes the domain of its scope visible to the later
      reads of its invocation. A wider domain becomes visible to a narrower one by such an operation
      of any invocation in the narrower one, if it happens before that.

    So there is one path back from an access, on which each part happens before the next: first
    through operations that make ever wider domains visible, then through those that make writes
    available to ever narrower ones. On the path, an invocation is in one of these states: the
    number of a level up to which all is visible (3 is the invocation itself), or 4 and the number
    of a subgroup, one of whose invocations has made available what is available to it.
    """

    def __init__(self, group_size: int, subgroup_size: int) -> None:
        self._group_size, self._subgroup_size = group_size, subgroup_size
        self._subgroups = -(-group_size // subgroup_size)
        self._log: list[tuple[Any, ...]] = []
        self._flags = 0
        self._known: dict[tuple[int, int, int], _Known] = {}
        self._operations: defaultdict[int, list[_Operation]] = defaultdict(list)
        self._locations: dict[tuple[object, int], list[_Write]] = {}
        self._seen: defaultdict[int, list[tuple[list[_Write], int]]] = defaultdict(list)
        self._waits: defaultdict[int, list[tuple[int, tuple[int, ...]]]] = defaultdict(list)

    # -- what is executed --------------------------------------------------------------------------

    def fence(self, who: Array, level: int, semantics: int, time: int) -> None:
        """Note a memory barrier."""
        self._note(semantics, time, who, level, semantics)

    def barrier(self, who: Array, instances: Array, level: int, semantics: int, time: int) -> None:
        """Note a control barrier, with the number of what each invocation waits in."""
        self._note(semantics, time, who, level, semantics, instances)

    def atomic(
        self,
        shadow: object,
        units: Array,
        who: Array,
        level: int,
        semantics: int,
        time: int,
        kind: str,
    ) -> None:
        """Note an atomic operation, as ``Order`` does."""
        self._note(semantics, time, who, level, semantics, shadow, units, kind)

    def _note(self, semantics: int, *event: object) -> None:
        self._flags |= semantics
        self._log.append(event)
        self._known.clear()

    def _understand(self) -> None:
        """Divide what was noted among invocations."""
        log, self._log = self._log, []
        for time, who, level, semantics, *noted in log:
            each = [int(one) for one in who]
            if len(noted) == 3:
                shadow, units, kind = noted
                for one, unit in zip(each, units.tolist(), strict=True):
                    self._change((shadow, unit), kind, one, time, level, semantics)
                continue
            if noted:
                instances: dict[int, list[int]] = {}
                for one, number in zip(each, noted[0].tolist(), strict=True):
                    instances.setdefault(number, []).append(one)
                for members in instances.values():
                    for one in members:
                        self._waits[one].append((time, tuple(members)))
            for one in each if semantics & (ACQUIRES | RELEASES) else ():
                operation = _Operation(time, level, semantics, len(self._seen[one]), True)
                self._operations[one].append(operation)

    def _change(
        self, at: tuple[object, int], kind: str, who: int, time: int, level: int, semantics: int
    ) -> None:
        location, operations = self._locations.setdefault(at, []), self._operations[who]
        own, seen = None, self._seen[who]
        if kind == "store":  # it ends a sequence of releases
            semantics &= ~(ACQUIRES & ~RELEASES)
            location = self._locations[at] = []
        else:
            if not seen or seen[-1][0] is not location or seen[-1][1] != len(location):
                seen.append((location, len(location)))
            elif operations and operations[-1].reads == len(seen) and kind == "load":
                last = operations[-1]  # of a loop that waits
                if (last.level, last.semantics, last.is_fence) == (level, semantics, False):
                    operations.pop()
        if semantics & (ACQUIRES | RELEASES):
            own = _Operation(time, level, semantics, len(seen) * (kind != "store"), False)
            operations.append(own)
        if kind != "load":
            releases = own if own is not None and semantics & RELEASES else None
            location.append(_Write(who, len(operations), releases))

    # -- what is known -----------------------------------------------------------------------------

    def _near(self, one: int, other: int) -> int:
        if one == other:
            return ITSELF
        return self._near_subgroup(one, self._subgroup(other))

    def _subgroup(self, one: int) -> int:
        group, local = divmod(one, self._group_size)
        return group * self._subgroups + local // self._subgroup_size

    def _near_subgroup(self, one: int, subgroup: int) -> int:
        if self._subgroup(one) == subgroup:
            return 2
        return int(one // self._group_size == subgroup // self._subgroups)

    def ordered(self, other: int, when: int, needs: int, who: int, need: int, c: int) -> bool:
        """Whether what another invocation did is ordered before what an invocation does now.

        The needs are the levels of coherent accesses, and 3 for others; 0 for those that need
        nothing. ``c`` is the class of the memory.
        """
        flags = self._flags  # of all that was executed
        can_be_available = needs < ITSELF or flags & AVAILABLE
        if not (flags & RELEASES and can_be_available and (need < ITSELF or flags & VISIBLE)):
            return False
        known = self._known.get((who, need, c))
        if known is None:
            self._understand()
            known = self._known[who, need, c] = self._search(who, need, c)
        if known.available.get(other, 0) >= when:
            return True
        for state, times in known.times.items():
            if state > ITSELF:
                is_available = needs <= self._near_subgroup(other, state - ITSELF - 1)
            else:
                is_available = max(needs, state) <= self._near(other, who)
            if is_available and times.get(other, 0) >= when:
                return True
        return False

    def _search(self, who: int, need: int, c: int) -> _Known:
        """Go back from an access of an invocation on all paths."""
        known = _Known(defaultdict(dict), {})
        rest: list[tuple[int, float, int]] = [(who, inf, need)]
        while rest:
            one, upto, state = rest.pop()
            better = range(state + 1) if state <= ITSELF else (state,)
            if any(known.times[each].get(one, 0) >= upto for each in better):
                continue
            known.times[state][one] = upto
            operations = [
                each
                for each in self._operations[one]
                if each.time <= upto and each.semantics & MEMORY[c] and each.level < ITSELF
            ]
            if state <= ITSELF and self._near(one, who) >= state:
                visible = _latest(operations, ACQUIRES, VISIBLE)
                rest += [(one, each.time, min(state, each.level)) for each in visible]
            for each in _latest(operations, RELEASES, AVAILABLE):
                if state > ITSELF:
                    is_inside = each.level <= self._near_subgroup(one, state - ITSELF - 1)
                else:
                    is_inside = max(state, each.level) <= self._near(one, who)
                if is_inside:
                    known.available[one] = max(each.time, known.available.get(one, 0))
                    rest.append((one, each.time, ITSELF + 1 + self._subgroup(one)))
            for release in self._synchronized(one, operations, c):
                rest.append((*release, state))
        return known

    def _synchronized(
        self, one: int, operations: list[_Operation], c: int
    ) -> Iterator[tuple[int, int]]:
        """Yield the invocations, and the times, of releases that some operations acquire."""
        acquires = [each for each in operations if each.semantics & ACQUIRES]
        fences = _latest([each for each in acquires if each.is_fence], ACQUIRES, 0)
        for acquire in (*(each for each in acquires if not each.is_fence), *fences):
            first = 0 if acquire.is_fence else max(acquire.reads - 1, 0)
            for location, count in self._seen[one][first : acquire.reads]:
                for write in location[:count]:
                    before = self._operations[write.who][: write.past]
                    before = [each for each in before if each.is_fence or each is write.own]
                    yield from self._released(one, acquire, write.who, before, c)
            waits = self._waits[one] if acquire.is_fence else ()
            last = {members: time for time, members in waits if time <= acquire.time}
            for members, time in last.items():
                for member in members:
                    before = [each for each in self._operations[member] if each.is_fence]
                    before = [each for each in before if each.time <= time]
                    yield from self._released(one, acquire, member, before, c)

    def _released(
        self, one: int, acquire: _Operation, other: int, before: Iterable[_Operation], c: int
    ) -> Iterator[tuple[int, int]]:
        """Yield the last release of these that is in scope, and in whose scope the acquire is."""
        near = self._near(one, other)
        times = [
            each.time
            for each in before
            if each.semantics & RELEASES
            and each.semantics & MEMORY[c]
            and max(each.level, acquire.level) <= near
        ]
        if times and one != other:
            yield other, max(times)


class _Known(NamedTuple):
    """Up to when an invocation knows what others did, by state and invocation.

    What is ``available`` needs no more, even if it is not coherent.
    """

    times: defaultdict[int, dict[int, float]]
    available: dict[int, int]


def _latest(operations: list[_Operation], kind: int, flag: int) -> list[_Operation]:
    """Return the last operation of each level that releases or acquires, and has a flag."""
    chosen = [each for each in operations if each.semantics & kind]
    return [*{each.level: each for each in chosen if each.semantics & flag == flag}.values()]
