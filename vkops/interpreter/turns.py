"""The turns of subgroups that run one after the other, or alternate."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from vkops.interpreter.memory import MemoryVariable, Register
from vkops.interpreter.operations import Array
from vkops.interpreter.polling import Polling
from vkops.interpreter.values import Pointer, differ

if TYPE_CHECKING:
    from vkops.interpreter.schedules import Batch, Rounds
    from vkops.interpreter.state import Frame, State

Ready = list[tuple["Frame", int, Array]]
"""The blocks that can be executed: call, number of the block, and invocations."""


class Turns:
    """The turns of the subgroups of a batch.

    Attributes:
        ranks: for each invocation, the turn in which its subgroup begins.
        team: the team whose turn it is; 0 without rounds.
        has_rounds: whether teams take turns.
    """

    def __init__(self, run: State, batch: Batch, polling: Polling) -> None:
        slots, size = run.all.slots, run.group_size
        subgroups = slots % size // run.settings.subgroup_size
        assert batch.turns is not None
        self._run, self._rounds = run, batch.rounds
        self.ranks = batch.turns[subgroups]
        self.has_rounds = batch.rounds is not None
        self.team, self._teams = 0, np.zeros(0, np.int64)
        if batch.rounds is not None:
            self._teams = batch.rounds.teams[slots // size, subgroups]
            self._at = -len(batch.rounds.first)
            self.team = [*batch.rounds.first, *batch.rounds.round][0]
            self._sharing = polling.reading_blocks()
            self._states = _States(run)

    def may(self, slots: Array, asleep: Array) -> Array:
        """Return which invocations may continue in rounds while others sleep: those that began."""
        size, last = self._run.group_size, self.ranks.max(initial=0)
        limits = np.full(len(self.ranks) // size, last)
        np.minimum.at(limits, asleep // size, self.ranks[asleep])
        return self.ranks[slots] <= limits[slots // size]

    def of_turn(self, ready: Ready) -> Ready:
        """Return the blocks of the subgroups whose turn it is, and the barriers of workgroups."""
        size = self._run.group_size
        first = np.full(len(self.ranks) // size, self.ranks.max())
        for _, _, slots in ready:
            np.minimum.at(first, slots // size, self.ranks[slots])
        own = _some(ready, self.ranks == np.repeat(first, size))
        while self._rounds is not None and not (mine := _some(own, self._teams == self.team)):
            self._next(self._rounds)
        return own if self._rounds is None else mine

    def _next(self, rounds: Rounds) -> None:
        self._at += 1
        if self._at == len(rounds.round):
            self._at = 0
        self.team = rounds.first[self._at] if self._at < 0 else rounds.round[self._at]

    def executed(self, frame: Frame, number: int, *, has_jumped: bool) -> bool:
        """End a turn after a block, if the turn ends there.

        Return whether the run has returned to the state of an earlier round, although memory was
        changed in between.
        """
        if self._rounds is None:
            return False
        ends = (
            has_jumped
            if self._rounds.by_iteration
            else (frame.function.id, number) in self._sharing
        )
        if not ends:
            return False
        self._next(self._rounds)
        return self._at == 0 and self._states.is_known()

    def changed(self) -> None:
        """Record that memory has changed."""
        if self.has_rounds:
            self._states.has_changed = True


def _some(ready: Ready, chosen: Array) -> Ready:
    """Return the blocks of the chosen invocations, and the barriers of workgroups."""
    parts = [
        (f, n, slots if f.function.blocks[n].is_barrier else slots[chosen[slots]])
        for f, n, slots in ready
    ]
    return [each for each in parts if len(each[2])]


class _States:
    """States of a run; each is compared with an earlier one, as in Brent's cycle detection."""

    def __init__(self, run: State) -> None:
        self._run = run
        self.has_changed = False
        self._known: tuple[Any, list[Any]] | None = None
        self._count, self._limit = 0, 1

    def is_known(self) -> bool:
        """Whether the state equals the earlier one, and memory was changed in between."""
        places = [
            (frame.function.id, kind, number, np.sort(np.concatenate(parts)).tobytes())
            for frame in self._run.frames
            for kind, blocks in enumerate((frame.waiting, frame.asleep))
            for number, parts in sorted(blocks.items())
            if sum(map(len, parts))
        ]
        ids = [sorted(frame.values) for frame in self._run.frames]
        known, slots = self._known, self._run.all.slots
        if self.has_changed and known is not None and known[0] == (places, ids):
            values = self._values()
            if len(values) == len(known[1]) and not any(
                _differ(a, b, slots) for a, b in zip(values, known[1], strict=True)
            ):
                return True
        self._count += 1
        if self._count == self._limit:
            self._known, self.has_changed = ((places, ids), self._values()), False
            self._count, self._limit = 0, 2 * self._limit
        return False

    def _values(self) -> list[Any]:
        """Return all values, and the content of memory."""
        values: list[Any] = []
        pointers: list[Any] = [*self._run.variables.values()]
        if self._run.tensor_memory is not None:
            values.append(self._run.tensor_memory.rows())
        for frame in self._run.frames:
            values += [frame.values[id_] for id_ in sorted(frame.values)]
            pointers += frame.variables.values()
        for each in pointers:
            for pointer in each if isinstance(each, tuple) else (each,):
                variable = pointer.variable if isinstance(pointer, Pointer) else None
                if isinstance(variable, Register):
                    values.append(variable.value)
                elif isinstance(variable, MemoryVariable) and (
                    variable.kind or variable.shadow is not None
                ):
                    values.append(variable.rows())
        return values


def _differ(one: Any, other: Any, slots: Array) -> bool:
    if isinstance(one, np.ndarray) and isinstance(other, np.ndarray):  # the content of memory
        return not np.array_equal(one, other)
    return bool(differ(one, other, slots).any())
