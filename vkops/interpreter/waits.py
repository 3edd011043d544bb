"""Invocations that wait: they sleep until another one changes memory that they read in a loop."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from vkops.interpreter.memory import Active, MemoryVariable, Register
from vkops.interpreter.operations import Array
from vkops.interpreter.order import LANE_BITS, LANES
from vkops.interpreter.polling import Polling
from vkops.interpreter.shadow import Shadow
from vkops.interpreter.state import FORWARD_PROGRESS
from vkops.interpreter.values import Pointer, SourceLine, differ

if TYPE_CHECKING:
    from vkops.interpreter.program import Function
    from vkops.interpreter.state import Frame, State

PATIENCE = 256
"""The iterations after which a loop that may wait lets others continue, even if it changes."""

_FIRST, _FIRST_PLAIN = 2, 64
"""The first iteration that is observed, with and without atomic operations."""

WORKGROUP, SUBGROUP, INVOCATION = "a workgroup", "a subgroup", "an invocation"
"""The names in findings of what must continue while others wait."""


class Wait(NamedTuple):
    """A line of a loop in which an invocation waited, or would wait in another order.

    ``group`` and ``subgroup`` are those of the invocation that waits. ``level`` names what it waits
    for.
    """

    place: SourceLine
    level: str
    group: int
    subgroup: int


@dataclass
class _Observation:
    """An iteration of a loop by some invocations, and the state in which it began.

    ``dirty`` are invocations that changed memory. ``reads`` and ``changes`` are the units that were
    read and changed in the iteration; ``reads`` also has the workgroups.
    """

    slots: Array
    state: list[Any]
    dirty: Array
    reads: list[tuple[MemoryVariable, Array, Array]] = field(default_factory=list)
    changes: list[tuple[Shadow, Array]] = field(default_factory=list)


class Waits:
    """The invocations of a batch that wait, and what they wait for.

    An iteration of a loop that changes neither variables nor memory repeats until another
    invocation changes memory that it has read. If all invocations of a workgroup are in such a
    loop, they sleep until then. Invocations in a loop that may wait, but whose state changes, sleep
    from time to time.
    """

    def __init__(self, run: State, polling: Polling) -> None:
        self._run, self._polling = run, polling
        self._has_atomics = run.program.has_atomics
        self.found: dict[tuple[SourceLine, str], Wait] = {}
        self.is_polling = False
        self.level = ""

    def begin(self, active: Active) -> None:
        """Start the workgroups of a batch."""
        count = active.together // self._run.group_size
        self._observed: dict[tuple[Frame, int, int], _Observation] = {}
        self._polled: list[tuple[MemoryVariable, Array, Array]] = []
        self.sleeping, self.napping, self._spent = np.zeros((3, count), bool)
        self._writers: dict[Shadow, Array] = {}
        self._barriers = np.zeros(count, np.int64)

    @property
    def is_watching(self) -> bool:
        """Whether it matters which invocations change the content of memory that they write."""
        turns = self._run.turns
        return bool(self._observed or self._polled or (turns and turns.has_rounds))

    @property
    def are_any(self) -> bool:
        """Whether some invocations wait."""
        return bool(self.sleeping.any() or self.napping.any())

    def can_be_in(self, function: Function, number: int) -> bool:
        """Whether invocations may wait in a block of a function."""
        return number in self._polling.blocks(function)

    def holds(self, slots: Array, *, by_subgroup: bool) -> Array:
        """Return which invocations are in a workgroup or a subgroup with waiting invocations."""
        if not by_subgroup:
            return (self.sleeping | self.napping)[slots // self._run.group_size]
        parts = [p for frame in self._run.frames for d in (frame.asleep, frame.napping)
                 for each in d.values() for p in each]  # fmt: skip
        who = self._run.all.who
        waiting = self._run.subgroup(who[np.concatenate(parts)]) if parts else ()
        return np.isin(self._run.subgroup(who[slots]), waiting)

    def sleepers(self) -> Array:
        """Return the sleeping invocations."""
        parts = [p for f in self._run.frames for each in f.asleep.values() for p in each]
        return np.concatenate(parts) if parts else np.zeros(0, np.int64)

    def block(self, frame: Frame, number: int) -> None:
        """Record the block of the active invocations."""
        self.is_polling = frame.is_polling or self.can_be_in(frame.function, number)

    def barrier(self, active: Active) -> None:
        """Record a barrier of workgroups."""
        self._barriers[active.groups] = self._run.time

    # -- what is read and changed ------------------------------------------------------------------

    def effect(self, active: Active) -> None:
        """Record that invocations have an effect that must happen in each iteration."""
        for observation in self._observed.values():
            observation.dirty[active.slots] = True

    def access(self, kind: str, pointer: Pointer, active: Active, changed: Array | None) -> None:
        """Record an access; ``changed`` says whose accesses changed memory, None means all."""
        if kind == "read":
            if not self._observed:
                return
            changed = np.zeros(1, bool)
        memory, count = pointer.variable, len(active.slots)
        rows = np.ones(count, bool) if changed is None else np.broadcast_to(changed, count)
        does_change = rows.any()
        for units in memory.touched(pointer.type, pointer.offset, active):
            for observation in self._observed.values():
                observation.reads.append((memory, units, active.groups))
            wide = np.broadcast_to(units, (count, units.shape[1]))
            if kind == "atomic" and self.is_polling:
                self._find(memory.shadow, wide[~rows], active.some(~rows))
            if does_change:
                self._change(memory, wide[rows], active.some(rows))

    def _change(self, memory: MemoryVariable, units: Array, active: Active) -> None:
        shadow, flat = memory.shadow, units.reshape(-1)
        assert shadow is not None
        if self._run.turns is not None:
            self._run.turns.changed()
        if self._has_atomics:
            if shadow not in self._writers:
                self._writers[shadow] = np.zeros(memory.units, np.int64)
            code = self._run.time << LANE_BITS | (active.who + 1)
            self._writers[shadow][units] = code[:, None]
        for observation in self._observed.values():
            observation.dirty[active.slots] = True
            observation.changes.append((shadow, flat))
        woken = [
            groups[np.isin(polled, flat)] for each, polled, groups in self._polled
            if each.shadow is shadow
        ]  # fmt: skip
        if any(map(len, woken)):
            self._wake(np.unique(np.concatenate(woken)), memory, int(flat[0]), active)

    def _find(self, shadow: Shadow | None, units: Array, active: Active) -> None:
        """Record reads, in loops that may wait, of memory that other invocations have changed."""
        writers = self._writers.get(shadow) if shadow else None
        run, place = self._run, self._run.step.place
        if writers is None or {(place, WORKGROUP), (place, SUBGROUP)} <= self.found.keys():
            return
        codes, size = writers[units].max(1), run.group_size
        who, other = active.who, (codes & LANES) - 1
        is_near = who // size == other // size
        apart = run.subgroup(who) != run.subgroup(np.maximum(other, 0))
        is_recent = codes >> LANE_BITS > self._barriers[active.groups]
        for level, rows in ((WORKGROUP, ~is_near), (SUBGROUP, is_near & apart & is_recent)):
            rows = np.flatnonzero(rows & (codes != 0))
            if len(rows) and (place, level) not in self.found:
                group, local = divmod(int(who[rows[0]]), size)
                subgroup = local // run.settings.subgroup_size
                self.found[place, level] = Wait(place, level, group, subgroup)

    # -- who sleeps --------------------------------------------------------------------------------

    def enter(self, frame: Frame, loop: tuple[int, int], active: Active) -> None:
        """Record that invocations start a loop again: its observation does not apply to them."""
        observation = self._observed.get((frame, *loop))
        if observation is not None:
            observation.dirty[active.slots] = True

    def leave(self, frame: Frame) -> None:
        """Forget the loops of a call that has ended."""
        for key in [key for key in self._observed if key[0] is frame]:
            del self._observed[key]

    def arrive(self, frame: Frame, loop: tuple[int, int], active: Active, done: int) -> Array:
        """Return the invocations that begin the next iteration of a loop; the others sleep.

        ``loop`` is the number of the loop and of the team. ``done`` is the number of iterations
        since an invocation has left it.
        """
        (number, _), limit = loop, self._run.settings.max_iterations
        key, turns = (frame, *loop), self._run.turns
        observation, stays = self._observed.pop(key, None), np.ones(len(active.slots), bool)
        if done >= limit:
            self._spent[active.groups] = True
            stays[:] = False
        elif done == PATIENCE and not (turns and turns.has_rounds):
            self.napping[active.groups] = True
            frame.napping.setdefault(number, []).append(active.slots)
            return active.slots[:0]
        elif observation is not None:
            stays = self._stays(frame, number, observation, active)
        if not stays.all():
            asleep = active.some(~stays)
            self.sleeping[asleep.groups] = True
            frame.asleep.setdefault(number, []).append(asleep.slots)
            self._poll(observation, asleep)
            active = active.some(stays)
        first = _FIRST if self._has_atomics else _FIRST_PLAIN
        is_due = done >= first and done & (done - 1) == 0
        if len(active.slots) and (is_due or done + 1 >= limit):
            dirty = np.zeros(active.together, bool)
            self._observed[key] = _Observation(active.slots, self._state(frame, number), dirty)
        return active.slots

    def _stays(self, frame: Frame, number: int, observation: _Observation, active: Active) -> Array:
        """Return the invocations of workgroups that changed something, or are not complete here."""
        slots, groups = active.slots, active.groups
        was_there = np.isin(slots, observation.slots)
        stays = observation.dirty[slots] | ~was_there
        now = self._state(frame, number)
        at = np.searchsorted(observation.slots, slots[was_there])
        for one, other in zip(observation.state, now, strict=False):
            stays[was_there] |= differ(one, other, observation.slots)[at]
        stays |= len(now) != len(observation.state)
        size, count = self._run.group_size, len(self.sleeping)
        before = np.bincount(observation.slots // size, minlength=count)
        bad = before != np.bincount(groups, minlength=count)
        bad[groups[stays]] = True
        for shadow, units in observation.changes:
            for memory, read, of_groups in observation.reads:
                if memory.shadow is shadow:
                    hit = np.isin(read, units).any(1)
                    bad[of_groups[np.broadcast_to(hit, len(of_groups))]] = True
        return bad[groups]

    def _poll(self, observation: _Observation | None, asleep: Active) -> None:
        """Record the memory that sleeping invocations have read."""
        is_asleep = np.zeros(len(self.sleeping), bool)
        is_asleep[asleep.groups] = True
        for memory, units, groups in observation.reads if observation else ():
            rows = np.flatnonzero(is_asleep[groups])
            wide = np.broadcast_to(units, (len(groups), units.shape[1]))[rows]
            pairs = np.column_stack((wide.reshape(-1), np.repeat(groups[rows], wide.shape[1])))
            if len(pairs):
                pairs = np.unique(pairs, axis=0)
                self._polled.append((memory, pairs[:, 0], pairs[:, 1]))

    def _state(self, frame: Frame, number: int) -> list[Any]:
        """Return the values of all invocations that an iteration of a loop can depend on."""
        state = []
        for phi in frame.function.blocks[number].phis:
            state.append(frame.values.get(phi.result))
        variables = [*self._run.variables.values()]
        call: Frame | None = frame
        while call is not None:
            variables += call.variables.values()
            call = call.caller.frame if call.caller else None
        for pointer in variables:
            variable = pointer.variable if isinstance(pointer, Pointer) else None
            if isinstance(variable, Register):
                state.append(variable.value)
            elif isinstance(variable, MemoryVariable) and variable.kind == "invocation":
                state.append(variable.rows())
        return state

    # -- who wakes ---------------------------------------------------------------------------------

    def wake_naps(self) -> bool:
        """Wake invocations that slept for a while; return whether there were any."""
        had_any = bool(self.napping.any())
        self.napping[:] = False
        for frame in self._run.frames:
            for number, parts in frame.napping.items():
                frame.waiting.setdefault(number, []).extend(parts)
            frame.napping.clear()
        return had_any

    def _wake(self, groups: Array, memory: MemoryVariable, unit: int, active: Active) -> None:
        """Wake workgroups whose invocations wait for memory that has been changed."""
        if self.level:
            self._report(memory, unit, active)
        woken, size = np.zeros(len(self.sleeping), bool), self._run.group_size
        woken[groups] = True
        for frame in self._run.frames:
            for number, parts in [*frame.asleep.items()]:
                slots = np.concatenate(parts)
                wakes = woken[slots // size]
                if wakes.any():
                    for key in [key for key in frame.iterations if key[0] == number]:
                        del frame.iterations[key]
                    frame.waiting.setdefault(number, []).append(slots[wakes])
                    frame.asleep[number] = [slots[~wakes]]
                    if wakes.all():
                        del frame.asleep[number]
        self.sleeping[groups] = self._spent[groups] = False
        polled = ((m, units[~woken[g]], g[~woken[g]]) for m, units, g in self._polled)
        self._polled = [each for each in polled if len(each[1])]

    def _report(self, memory: MemoryVariable, unit: int, active: Active) -> None:
        """Report that a workgroup continues while it waits, which Vulkan does not guarantee."""
        run, level, changed = self._run, self.level, memory.element(memory.place_of(unit))
        rows = np.flatnonzero(self.sleeping[active.groups])
        sleepers = self._sleepers(int(active.groups[rows[0]])) if len(rows) else None
        if sleepers is None:
            return
        slots, place, name = sleepers
        place_of_change = run.step.place
        text = (
            f"needs forward progress of {level}: the first invocation waits for {name} to change, "
            f"and only if {'another invocation' if level == INVOCATION else 'another subgroup'} of "
            f"its {'subgroup' if level == INVOCATION else 'workgroup'} goes on meanwhile does the "
            f"second change '{changed}'{place_of_change.seen_from(place)}, which Vulkan does not "
            "promise"
        )
        pair = np.array([run.all.who[slots[0]], active.who[rows[0]]])
        run.report(FORWARD_PROGRESS, text, pair, level, place, place_of_change, 1)

    def _sleepers(self, group: int | None = None) -> tuple[Array, SourceLine, str] | None:
        """Return invocations of a workgroup, or of any, that wait together in one line."""
        for frame in self._run.frames:
            for number, parts in sorted(frame.asleep.items()):
                slots = np.sort(np.concatenate(parts))
                slots = slots if group is None else slots[slots // self._run.group_size == group]
                if len(slots):
                    place = frame.function.blocks[number].steps[0].place
                    return slots, place, self._names(int(slots[0]) // self._run.group_size)
        return None

    def _names(self, group: int) -> str:
        """Return the names of the memory that a workgroup waits for.

        Shared memory is left out if there is other memory.
        """
        polled = [each for each in self._polled if (each[2] == group).any()]
        polled = [each for each in polled if not each[0].kind] or polled
        names = {
            f"'{memory.element(memory.place_of(int(unit)))}'": None
            for memory, units, groups in polled
            for unit in units[groups == group][:2]
        }
        return " or ".join([*names][:2])

    def hang(self) -> tuple[Array, SourceLine, str, bool]:
        """Return invocations that wait for ever, their line, for what, and if the loop counts."""
        sleepers = self._sleepers()
        assert sleepers is not None
        return *sleepers, bool(self._spent[sleepers[0][0] // self._run.group_size])
