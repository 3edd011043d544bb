"""The availability and visibility of writes to other invocations."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from math import inf
from typing import Any, NamedTuple

from vkops.interpreter.operations import Array

ACQUIRES, RELEASES = 0x2 | 0x8 | 0x10, 0x4 | 0x8 | 0x10
MEMORY = (0x40, 0x100, 0x800)
"""Memory semantics of storage buffers, of shared memory, and of images."""
AVAILABLE, VISIBLE = 0x2000, 0x4000

ITSELF = 3
"""The nearness of an invocation to itself; it is above the levels of scopes."""


class _Operation(NamedTuple):
    """A fence, a barrier or an atomic operation of an invocation that releases or acquires.

    ``level`` is the level of its scope. A fence or a barrier ``is_fence``: it acquires the first
    ``reads`` atomic reads of the invocation. An atomic operation acquires the last of these only.
    """

    time: int
    level: int
    semantics: int
    reads: int
    is_fence: bool


class _Write(NamedTuple):
    """An atomic write, with the level of its scope.

    It comes after the first ``past`` operations of its invocation.
    """

    who: int
    level: int
    past: int
    own: _Operation | None


class Chains:
    """Which writes are available and visible, by Vulkan's memory model.

    A write is ordered before a later access if it happens before that, is available to a memory
    domain, and that domain is visible to the access (a write needs no visibility). Domains are the
    device, a workgroup and a subgroup; their levels are those of scopes:

    - A write is available to the domain of its own scope if it is coherent (MakePointerAvailable).
      The earlier writes of its invocation become available to the domain of the scope of an
      operation that releases with MakeAvailable, and those of the same element to that of a
      coherent write. What is available to a domain becomes available to a wider one by such an
      operation of any invocation in that domain, if the first one happens before it.
    - A read sees the domain of its own scope if it is coherent (MakePointerVisible). The later
      reads of its invocation see the domain of the scope of an operation that acquires with
      MakeVisible, and those of the same element that of a coherent read. A wider domain becomes
      visible to a narrower one by such an operation of any invocation in the narrower one, if it
      happens before that.

    So there is a path back from an access, on which each part happens before the next: first
    through operations that make ever wider domains visible, then through those that make writes
    available to ever narrower ones. Each part can be ordered by operations for another class of
    memory, if the operations at its ends are of that class as well.
    """

    def __init__(self, group_size: int, subgroup_size: int) -> None:
        self._group_size, self._subgroup_size = group_size, subgroup_size
        self._log: list[tuple[Any, ...]] = []
        self._flags = 0
        self._known: dict[tuple[object, ...], _Known] = {}
        self._coherent: dict[tuple[object, int], _Coherent] = {}
        self._operations: defaultdict[int, list[_Operation]] = defaultdict(list)
        self._locations: dict[tuple[object, int], list[_Write]] = {}
        self._seen: defaultdict[int, list[tuple[list[_Write], int, int]]] = defaultdict(list)
        self._waits: defaultdict[int, list[tuple[int, tuple[int, ...]]]] = defaultdict(list)

    # -- what is executed --------------------------------------------------------------------------

    def fence(self, who: Array, level: int, semantics: int, time: int) -> None:
        """Log a memory barrier."""
        self._note(semantics, time, who, level, semantics)

    def barrier(self, who: Array, instances: Array, level: int, semantics: int, time: int) -> None:
        """Log a control barrier; ``instances`` numbers the groups that invocations wait in."""
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
        by: int,
    ) -> None:
        """Log an atomic operation; see ``Order.atomic``."""
        self._note(semantics, time, who, level, semantics, shadow, units, kind, MEMORY[by])

    def coherent(
        self, shadow: object, units: Array, who: Array, level: int, time: int, *, is_write: bool
    ) -> None:
        """Log a coherent access that is not atomic."""
        semantics = AVAILABLE if is_write else VISIBLE
        self._note(0, time, who, level, semantics, shadow, units)

    def _note(self, semantics: int, *event: object) -> None:
        self._flags |= semantics
        self._log.append(event)
        self._known.clear()

    def _understand(self) -> None:
        """Distribute the log to the invocations."""
        log, self._log = self._log, []
        for time, who, level, semantics, *noted in log:
            each = [int(one) for one in who]
            if len(noted) == 2:
                shadow, units = noted
                for one, unit in zip(each, units.tolist(), strict=True):
                    self._make((shadow, unit), one, time, level, semantics)
                continue
            if len(noted) == 4:
                shadow, units, kind, by = noted
                for one, unit in zip(each, units.tolist(), strict=True):
                    self._change((shadow, unit), kind, by, one, time, level, semantics)
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

    def _make(
        self, at: tuple[object, int], who: int, time: int, level: int, semantics: int
    ) -> None:
        """Add a coherent access of an element; only the last one before each operation is kept."""
        made = self._coherent.setdefault(at, {}).setdefault(who, [])
        operation = _Operation(time, level, semantics, len(self._operations[who]), False)
        if made and made[-1][1:] == operation[1:]:
            made.pop()
        made.append(operation)

    def _change(
        self,
        at: tuple[object, int],
        kind: str,
        by: int,
        who: int,
        time: int,
        level: int,
        semantics: int,
    ) -> None:
        location, operations = self._locations.setdefault(at, []), self._operations[who]
        made = AVAILABLE * (kind != "load") | VISIBLE * (kind != "store")
        self._make(at, who, time, level, made | semantics & sum(MEMORY))
        own, seen = None, self._seen[who]
        is_ordered = all(
            max(level, last.level) <= self._near(who, last.who) for last in location[-1:]
        )
        if kind == "store" or not is_ordered:  # ends a sequence of releases
            location = []
            if kind != "load":
                self._locations[at] = location
        if kind == "store":
            semantics &= ~(ACQUIRES & ~RELEASES)
        else:
            if not seen or seen[-1][0] is not location or seen[-1][1] != len(location):
                seen.append((location, len(location), by))
            elif operations and operations[-1].reads == len(seen) and kind == "load":
                last = operations[-1]  # of a waiting loop
                if (last.level, last.semantics, last.is_fence) == (level, semantics, False):
                    operations.pop()
        if semantics & (ACQUIRES | RELEASES):
            own = _Operation(time, level, semantics, len(seen) * (kind != "store"), False)
            operations.append(own)
        if kind != "load":
            releases = own if own is not None and semantics & RELEASES else None
            location.append(_Write(who, level, len(operations), releases))

    # -- what is known -----------------------------------------------------------------------------

    def _near(self, one: int, other: int) -> int:
        (group, local), (other_group, other_local) = (
            divmod(each, self._group_size) for each in (one, other)
        )
        if one == other or group != other_group:
            return ITSELF * (one == other)
        size = self._subgroup_size
        return 1 + (local // size == other_local // size)

    def ordered(
        self, other: int, when: int, needs: int, who: int, need: int, c: int, at: tuple[object, int]
    ) -> bool:
        """Whether an access of another invocation is ordered before an access of an invocation now.

        ``needs`` and ``need`` are the levels of coherent accesses, 3 for other accesses, and 0 for
        accesses that need nothing. ``c`` is the class of the memory, and ``at`` the element of it.
        """
        if not self._flags & RELEASES:  # no operation has released anything
            return False
        self._understand()
        coherent = self._coherent.get(at)
        for element in (None, at) if coherent else (None,):
            known = self._known.get((who, need, c, element))
            if known is None:
                made = coherent if element else None
                known = self._known[who, need, c, element] = self._search(who, need, c, made or {})
            if known.available.get(other, 0) >= when:
                return True
            for level, one, times in known.times:
                if times.get(other, 0) >= when and max(needs, level) <= self._near(other, one):
                    return True
        return False

    def _search(self, who: int, need: int, c: int, coherent: _Coherent) -> _Known:
        """Go back from an access of an invocation on all paths.

        If ``coherent`` has accesses of the element, paths go through these, too.
        """
        known, done = _Known([], {}), set[tuple[int, float, int, bool]]()
        mine = MEMORY[c]

        def made(one: int, upto: float, kind: int, flag: int) -> Iterator[tuple[_Operation, int]]:
            """Yield operations up to a time that have a flag, each with the classes it orders."""
            operations = [
                each
                for each in self._operations[one]
                if each.time <= upto and each.semantics & mine and each.level < ITSELF
            ]
            for each in _latest(operations, kind, flag):
                yield each, each.semantics
            accesses = [each for each in coherent.get(one, ()) if each.time <= upto]
            for each in _latest(accesses, flag, flag):
                yield each, mine | each.semantics

        rest: list[tuple[int, float, int, bool, int]] = []
        if need < ITSELF:
            rest.append((who, inf, need, False, mine))
        for each, classes in made(who, inf, ACQUIRES, VISIBLE):
            rest.append((who, each.time, each.level, False, classes))
        while rest:
            one, upto, level, is_available, classes = rest.pop()
            if (one, upto, level, is_available) in done:
                continue
            done.add((one, upto, level, is_available))
            for bit in MEMORY:
                if not classes & bit:
                    continue
                times = self._before(one, upto, bit)
                if bit == mine:
                    known.times.append((level, one, times))
                for other, time in times.items():
                    near = self._near(other, one)
                    for each, of in made(other, time, RELEASES, AVAILABLE):
                        if max(level, each.level) <= near and of & bit:
                            known.available[other] = max(each.time, known.available.get(other, 0))
                            rest.append((other, each.time, 0, True, of))
                    if is_available or near < level:
                        continue
                    for each, of in made(other, time, ACQUIRES, VISIBLE):
                        if each.level < level and of & bit:
                            rest.append((other, each.time, each.level, False, of))
        return known

    def _before(self, one: int, upto: float, bits: int) -> dict[int, float]:
        """Return the times up to which other invocations' accesses happen before a time of one.

        Only operations whose semantics contain ``bits`` count.
        """
        known: dict[int, float] = {}
        rest = [(one, upto)]
        while rest:
            one, upto = rest.pop()
            if known.get(one, 0) >= upto:
                continue
            known[one] = upto
            operations = [
                each
                for each in self._operations[one]
                if each.time <= upto and each.semantics & bits == bits and each.level < ITSELF
            ]
            rest += self._synchronized(one, operations, bits)
        return known

    def _synchronized(
        self, one: int, operations: list[_Operation], bits: int
    ) -> Iterator[tuple[int, int]]:
        """Yield the invocations and times of the releases that some operations acquire."""
        acquires = [each for each in operations if each.semantics & ACQUIRES]
        fences = _latest([each for each in acquires if each.is_fence], ACQUIRES, 0)
        for acquire in (*(each for each in acquires if not each.is_fence), *fences):
            first = 0 if acquire.is_fence else max(acquire.reads - 1, 0)
            for location, count, by in self._seen[one][first : acquire.reads]:
                if acquire.is_fence and not acquire.semantics & by:
                    continue  # a fence is for memory in its semantics only
                for write in location[:count]:
                    before = self._operations[write.who][: write.past]
                    before = [
                        each
                        for each in before
                        if each is write.own or (each.is_fence and each.semantics & by)
                    ]
                    yield from self._released(one, acquire, write.who, before, bits)
            waits = self._waits[one] if acquire.is_fence else ()
            last = {members: time for time, members in waits if time <= acquire.time}
            for members, time in last.items():
                for member in members:
                    before = [each for each in self._operations[member] if each.is_fence]
                    before = [each for each in before if each.time <= time]
                    yield from self._released(one, acquire, member, before, bits)

    def _released(
        self, one: int, acquire: _Operation, other: int, before: Iterable[_Operation], bits: int
    ) -> Iterator[tuple[int, int]]:
        """Yield the last of these releases for which both scopes contain both invocations."""
        near = self._near(one, other)
        times = [
            each.time
            for each in before
            if each.semantics & RELEASES
            and each.semantics & bits == bits
            and max(each.level, acquire.level) <= near
        ]
        if times and one != other:
            yield other, max(times)


_Coherent = dict[int, list[_Operation]]
"""The coherent accesses of an element, by invocation."""


class _Known(NamedTuple):
    """The times up to which an invocation knows what others did.

    Each entry of ``times`` is for writes that are available to the domain of a level that contains
    an invocation. ``available`` is for writes that need nothing more, even if they are not
    coherent.
    """

    times: list[tuple[int, int, dict[int, float]]]
    available: dict[int, float]


def _latest(operations: list[_Operation], kind: int, flag: int) -> list[_Operation]:
    """Return, for each level, the last operation that releases or acquires, and has a flag."""
    chosen = [each for each in operations if each.semantics & kind]
    return [*{each.level: each for each in chosen if each.semantics & flag == flag}.values()]
