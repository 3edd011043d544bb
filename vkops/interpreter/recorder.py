"""Records the execution of one invocation: the lines, and the variables that it sees."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary, WeakSet

import numpy as np

from vkops.interpreter.memory import Active, MemoryVariable, Variable
from vkops.interpreter.observer import Observer
from vkops.interpreter.operations import Array
from vkops.interpreter.program import BasicBlock, Decoded, Function, ShaderProgram, is_pointer
from vkops.interpreter.values import Pointer, SourceLine, Value, take
from vkops.shaders.binary import Op
from vkops.shaders.layout import Type

MAX_STOPS = 1 << 18
"""The number of lines after which recording ends."""

ALONE = Active(np.zeros(1, np.int64), np.zeros(1, np.int64), np.zeros(1, np.int64), 1)
"""The invocation alone, for variables of its own."""


class History:
    """The values of a variable for an invocation: its changes, with the numbers of the stops."""

    def __init__(self, memory: MemoryVariable) -> None:
        self.kind, self.nbytes = memory.kind, memory.nbytes
        self._alone = MemoryVariable(memory.name, memory.type, "", 1, memory.nbytes)
        self._alone.unit = memory.unit
        self._changes: list[tuple[int, Any, Array]] = []
        self._last: Array = np.zeros(0, np.uint8)
        self._state, self._applied = self._last, 0

    def update(self, stop: int, memory: MemoryVariable, active: Active) -> None:
        """Add the changes before a stop."""
        row = {"": 0, "group": active.groups[0], "invocation": active.slots[0]}[self.kind]
        before, self._last = self._last, memory.state(int(row))
        changed = np.flatnonzero(before != self._last) if len(before) else slice(None)
        self._changes.append((stop, changed, self._last[changed]))

    @property
    def stops(self) -> list[int]:
        """The stops before which the variable changed."""
        return [when for when, _, _ in self._changes]

    def since(self, stop: int) -> int:
        """Return the stop before which the variable was written last."""
        return max((when for when in self.stops if when <= stop), default=-1)

    def name(self, type_: Type, offset: int) -> str:
        """Return the name of a part of the variable."""
        return self._alone.element(offset, type_)

    def at(self, stop: int) -> MemoryVariable:
        """Return the variable as it is at a stop; it is valid until the next call."""
        count = bisect_right(self.stops, stop)
        if count < self._applied or self._state.shape != self._last.shape:
            self._state, self._applied = np.zeros_like(self._last), 0
        for _, changed, values in self._changes[self._applied : count]:
            self._state[changed] = values
        self._applied = count
        self._alone.restore(self._state)
        return self._alone


@dataclass(eq=False)
class Scope:
    """A call of a function; its variables and parameters are pointers to histories, by id.

    ``caller`` is the scope of the calling function, with the line of the call.
    """

    function: str
    caller: tuple[Scope, SourceLine] | None
    depth: int
    parameters: dict[int, Pointer] = field(default_factory=dict)
    variables: dict[int, Pointer] = field(default_factory=dict)


class Stop(NamedTuple):
    """A line that the invocation is about to execute.

    ``is_return`` says whether a call in this line has just returned. ``faults`` are the faults of
    the line.
    """

    scope: Scope
    place: SourceLine
    is_return: bool
    faults: list[str]


def function_name(program: ShaderProgram, id_: int) -> str:
    """Return the name that a function has in the source."""
    return program.name(id_).partition("(")[0].lstrip("@")


class VariableBytes(NamedTuple):
    """Some bytes of a global variable, which is given by its id."""

    id: int
    offset: int
    nbytes: int


class Lane(NamedTuple):
    """An invocation of the workgroup: whether it is in the same line, and the variables it sees."""

    who: int
    is_active: bool
    scopes: Sequence[Mapping[int, Pointer]]


class Recorder(Observer):
    """A record of the invocation ``watched``.

    ``globals`` are pointers to the histories of global variables, by id. The last of the ``stops``
    is the end, without a line. ``writes`` has, for each of ``parts``, the writes: the invocation,
    the stop that follows, and the line. ``lanes`` are the invocations of the workgroup at the stop
    ``around``.
    """

    needs_addresses = True

    def __init__(self, watched: int, parts: Sequence[VariableBytes] = (), around: int = -1) -> None:
        self.watched = watched
        self.parts, self._around = parts, around
        self.writes: list[list[tuple[int, int, SourceLine]]] = [[] for _ in parts]
        self.lanes: list[Lane] = []

    def begin(self) -> None:
        self.machine.shown = self.watched
        self.stops: list[Stop] = []
        self.globals: dict[int, Pointer] = {}
        self._own = self.machine.active
        self._scopes: list[Scope] = []
        self._callers: list[Array] = []  # the invocations in each of the scopes
        self._last: tuple[Scope, SourceLine] | None = None  # the last stop of the invocation
        self._latest: dict[SourceLine, int] = {}  # the last stop at each line
        self._loops: dict[int, int] = {}
        self._histories: WeakKeyDictionary[Variable, History] = WeakKeyDictionary()
        self._changed: WeakSet[Variable] = WeakSet()

    def end(self) -> None:
        self._update()
        end = SourceLine(self.stops[-1].place.file if self.stops else "", 0)
        self.stops.append(Stop(Scope("", None, 0), end, False, []))

    def workgroups(self, active: Active) -> None:
        slots = active.slots[active.who == self.watched]
        self._slot = int(slots[0]) if len(slots) else -1
        lane = self._lane(active)
        self._group = -1 if lane is None else int(active.groups[lane])
        self._all = active

    def _lane(self, active: Active) -> int | None:
        """Return the index of the invocation among the active ones; None if it is not active."""
        at = int(active.slots.searchsorted(self._slot))
        return at if at < len(active.slots) and active.slots[at] == self._slot else None

    # -- where the invocation is -------------------------------------------------------------------

    def enter(self, function: Function, active: Active) -> None:
        if self._lane(active) is None:
            return
        program, step = self.machine.program, self.machine.step
        caller = (self._scopes[-1], step.place) if self._scopes else None
        self._scopes.append(Scope(function_name(program, function.id), caller, len(self._scopes)))
        self._callers.append(active.who)

    def leave(self, function: Function, active: Active) -> None:
        if self._lane(active) is not None:
            self._scopes.pop()
            self._callers.pop()
            if not self._scopes:
                self._update()

    def block(self, block: BasicBlock) -> None:
        """Stop in each iteration of a loop, even if all iterations are in one line."""
        if block.is_loop and self._lane(self.machine.active) is not None:
            if self._loops.get(block.label) == len(self.stops):
                self._last = None
            self._loops[block.label] = len(self.stops) + (self._last is None)

    def instruction(self, step: Decoded) -> None:
        """Stop if the line has changed."""
        if not self._scopes or (self._scopes[-1], step.place) == self._last:
            return
        scope, lane = self._scopes[-1], self._lane(self.machine.active)
        is_hidden = step.op in (Op.Branch, Op.Return) and not step.has_line
        if lane is None or is_hidden or step.op == Op.Variable or not step.place.line:
            return
        if len(self.stops) >= MAX_STOPS:
            return
        if not self.stops:
            self._own = self.machine.active.one(lane)
            self.globals = self._all_seen(self.machine.variables)
        if not (scope.variables or scope.parameters):
            scope.parameters |= self._parameters()
            scope.variables |= self._all_seen(self.machine.frame.variables)
        self._update()
        self._last = scope, step.place
        is_return = bool(self.stops) and self.stops[-1].scope.caller == self._last
        if len(self.stops) == self._around:
            self._look_around()
        self._latest[step.place] = len(self.stops)
        self.stops.append(Stop(*self._last, is_return, []))

    def _look_around(self) -> None:
        machine = self.machine
        for row in np.flatnonzero(self._all.groups == self._group).tolist():
            active = self._all.one(row)
            seen = [self._all_seen(machine.variables, active)]
            if active.who[0] in self._callers[-1]:
                variables = self._all_seen(machine.frame.variables, active)
                seen = [variables, self._parameters(active), *seen]
            who = int(active.who[0])
            self.lanes.append(Lane(who, who in machine.active.who, seen))

    # -- what it sees ------------------------------------------------------------------------------

    def _parameters(self, other: Active | None = None) -> dict[int, Pointer]:
        """Return pointers to the histories of the function's parameters."""
        frame, active = self.machine.frame, other or self._own
        types = frame.function.parameters
        return {
            id_: self._seen(
                take(frame.values[id_], active.slots), self.machine.program.type(t), other
            )
            for id_, t in types.items()
        }

    def _all_seen(
        self, variables: Mapping[int, Value], other: Active | None = None
    ) -> dict[int, Pointer]:
        """Return pointers to the histories of variables, except for variables without values."""
        return {
            id_: self._seen(each, other=other)
            for id_, each in variables.items()
            if isinstance(each, Pointer) and not is_pointer(each.type)
        }

    def _seen(
        self, value: Value, type_: Type | None = None, other: Active | None = None
    ) -> Pointer:
        """Return a pointer to the history of a variable, or to a value, from this stop on.

        For another invocation, the history has only the present value.
        """
        active = other or self._own
        if isinstance(value, Pointer) and not isinstance(
            value.variable, MemoryVariable
        ):  # a built-in variable
            type_ = value.variable.type
            value = value.variable.load(type_, 0, active, self.machine.step.place)
        if type_ is not None and not isinstance(value, Pointer):
            active, memory = ALONE, MemoryVariable("", type_, "invocation", 1, type_.nbytes)
            memory.store(type_, 0, value, active)
            value = Pointer(memory, type_, 0)
        assert isinstance(value, Pointer)
        memory = value.variable
        history = self._histories.get(memory) if other is None else None
        if history is None:
            history = History(memory)
            history.update(len(self.stops), memory, active)
            if other is None:
                self._histories[memory] = history
        return Pointer(history, value.type, int(np.atleast_1d(value.offset)[0]))

    def _update(self) -> None:
        for variable in self._changed:
            if isinstance(variable, MemoryVariable) and variable in self._histories:
                self._histories[variable].update(len(self.stops), variable, self._own)
        self._changed.clear()

    def access(self, kind: str, pointer: Pointer, active: Active) -> None:
        if kind == "read":
            return
        self._changed.add(pointer.variable)
        for part, writes in zip(self.parts, self.writes, strict=True):
            memory = self.machine.pointer(part.id).variable
            if pointer.variable.shadow is None or pointer.variable.shadow is not memory.shadow:
                continue
            moved = (pointer.variable.first - memory.first) * memory.unit
            start = np.atleast_1d(pointer.offset) + moved
            hit = start + pointer.type.nbytes > part.offset
            hit &= start < part.offset + part.nbytes
            hit = hit & (active.groups == self._group) if memory.kind else hit
            who = active.who[np.broadcast_to(hit, active.who.shape)]
            if len(who):
                writes.append((len(self.stops), int(who[-1]), self.machine.step.place))

    def finding(self, kind: str, text: str, who: Array, place: SourceLine) -> None:
        """Add a fault to the last stop at its line."""
        if self.watched in who and self.stops:
            faults = self.stops[self._latest.get(place, -1)].faults
            if (text := f"{kind}: {text}") not in faults:
                faults.append(text)
