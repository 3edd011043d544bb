"""The state of a dispatch: variables, values of ids, findings, and the observers."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field, replace
from math import inf
from typing import Any, NamedTuple, NoReturn

import numpy as np

from vkops.errors import ShaderCompileError
from vkops.interpreter import addresses
from vkops.interpreter.findings import Finding, Findings, Invocation
from vkops.interpreter.memory import Active, MemoryVariable, Register, Variable
from vkops.interpreter.operations import Array
from vkops.interpreter.order import subgroup_of
from vkops.interpreter.program import (
    Decoded,
    Function,
    is_pointer,
    parts_of,
    program_of,
    scalar_of,
    zeros,
)
from vkops.interpreter.schedules import ASCENDING
from vkops.interpreter.selections import selections
from vkops.interpreter.values import (
    Choice,
    Numbers,
    Outside,
    Pointer,
    SourceLine,
    Value,
    differ,
    merge,
    replaced,
    take,
)
from vkops.shaders.binary import Decoration, Storage
from vkops.shaders.grammar import INSTRUCTIONS
from vkops.shaders.layout import Type
from vkops.shaders.shader import Shader

Blocks = MemoryVariable | Sequence[MemoryVariable]
"""The memory of a block, or the memories of the elements of an array of blocks."""

UNSUPPORTED = "is not supported by the interpreter"

FORWARD_PROGRESS = "forward progress"
"""The kind of findings about code that ends only by progress that Vulkan does not guarantee."""

MAX_ITERATIONS = 16_384
"""A loop with so many iterations that no invocation leaves counts as endless: a few seconds."""


@dataclass(eq=False)
class Frame:
    """A call of a function; ``waiting`` has the invocations by the number of their next block.

    ``asleep`` are invocations that wait for others, ``napping`` those that let others continue, and
    ``returned`` those that have returned, but have not continued after the call. ``iterations``
    has, by the number of a loop and the team, how often it was repeated since an invocation left
    it, and how many invocations execute it. ``is_polling`` says whether the call is in a loop that
    may wait.
    """

    function: Function
    live: int
    caller: Caller | None = None
    is_polling: bool = False
    values: dict[int, Value] = field(default_factory=dict)
    variables: dict[int, Pointer] = field(default_factory=dict)
    waiting: dict[int, list[Array]] = field(default_factory=dict)
    asleep: dict[int, list[Array]] = field(default_factory=dict)
    napping: dict[int, list[Array]] = field(default_factory=dict)
    returned: list[Array] = field(default_factory=list)
    iterations: dict[tuple[int, int], tuple[int, int]] = field(default_factory=dict)
    result: Value | None = None


class Caller(NamedTuple):
    """Where invocations continue when a function returns: a block of the calling function."""

    frame: Frame
    number: int
    step: Decoded


class TooManyInstructionsError(Exception):
    """The run was aborted after ``max_instructions``, counted for each invocation."""


@dataclass
class Settings:
    """The settings of a run: subgroup size, schedule, and when a loop counts as endless."""

    subgroup_size: int = 32
    schedule: str = ASCENDING
    max_iterations: int = MAX_ITERATIONS
    max_instructions: float = inf


class State:
    """A shader that is executed, with its variables.

    ``active`` are the invocations that execute ``step`` in the call ``frame``. ``values`` are the
    values of the block's ids. ``all`` are the invocations that run together, and ``frames`` the
    calls that they are in. ``time`` counts the accesses to shared memory and to buffers, and
    ``access_places`` has their lines. ``buffers`` has the memory of each binding, by set and
    number. ``push`` has the bytes of push constants. ``told`` has the methods of observers by name.
    If the invocation ``shown`` has a fault, the finding names this invocation.
    """

    def __init__(
        self,
        shader: Shader,
        buffers: Mapping[tuple[int, int], Blocks],
        groups: Sequence[int],
        push: bytes,
        settings: Settings,
    ) -> None:
        self.findings = Findings()
        self.told: defaultdict[str, list[Callable[..., None]]] = defaultdict(list)
        self.has_addresses = False
        self.shown = -1
        self.groups = (groups[0], groups[1], groups[2])
        self.local = shader.local_size
        self.group_size = int(np.prod(self.local))
        self.program = program_of(shader, self.group_size, settings.subgroup_size)
        self.settings = settings
        self.executed = 0
        self.stopped = False
        self.begun = 0
        self.waits: Any = None  # a Waits object, if invocations can wait for others
        self.turns: Any = None  # a Turns object, if subgroups run one after the other
        self.frames: list[Frame] = []
        self.shared: dict[int, list[tuple[int, str, Type]]] = {}
        self.private: list[tuple[int, str, Type, Value | None]] = []
        self.variables: dict[int, Pointer | tuple[Pointer, ...]] = {}
        self.time = 0
        self.access_places: list[SourceLine] = [SourceLine(shader.name, 0)]
        nothing = np.zeros(0, np.int64)
        self.active = self.all = Active(nothing, nothing, nothing, 0)
        self.frame = Frame(self.program.functions[self.program.main], 0)
        self.step = Decoded(0, 0, 0, (), SourceLine(shader.name, 0), False)
        self.values: dict[int, Value] = {}
        memory = buffers.get(addresses.PLACE)
        self.tensor_memory = memory if isinstance(memory, addresses.TensorMemory) else None
        self._declare(buffers, push)

    # -- variables ---------------------------------------------------------------------------------

    def _declare(self, buffers: Mapping[tuple[int, int], Blocks], push: bytes) -> None:
        declared = self.program.declared
        for id_, storage, pointee in declared.variables():
            if id_ not in self.program.used:
                continue
            type_, decorations = self.program.type(pointee), declared.decorated(id_)
            name = declared.names.get((id_,), "") or declared.names.get((pointee,), "")
            initial = declared.defined[id_].words[3:]
            if Decoration.BINDING in decorations:
                place = decorations.get(Decoration.DESCRIPTOR_SET, (0,))[0]
                memory = buffers[place, decorations[Decoration.BINDING][0]]
                self.variables[id_] = self._bound(declared.names.get((id_,), ""), type_, memory)
            elif storage == Storage.PUSH_CONSTANT:
                memory = MemoryVariable(name, type_, "", 1, len(push), is_written=True)
                memory.fill(push)
                self.variables[id_] = Pointer(memory, type_, 0)
            elif storage == Storage.WORKGROUP:
                key = declared.shared_memory(id_, pointee)
                self.shared.setdefault(key, []).append((id_, name or f"%{id_}", type_))
                if initial:
                    self.private.append((id_, name, type_, self.program.constants[initial[0]]))
            else:
                value = self.program.constants[initial[0]] if initial else None
                self.private.append((id_, name or f"%{id_}", type_, value))

    def _bound(self, name: str, type_: Type, memory: Blocks) -> Pointer | tuple[Pointer, ...]:
        """Return a pointer to a block, or several pointers for an array of blocks."""
        if isinstance(memory, MemoryVariable):
            return _named(memory, name, type_)
        element = getattr(type_, "element", type_)
        return tuple(_named(each, f"{name}[{n}]", element) for n, each in enumerate(memory))

    def variable(
        self, name: str, type_: Type, active: Active, call: Frame | None = None
    ) -> Variable:
        """Return a new variable of which each invocation has its own."""
        is_number = scalar_of(type_) is not None
        variable: Variable
        if is_pointer(type_) or (is_number and not self.has_addresses):
            variable = Register(name, type_, None, call)
        elif not is_number and any(is_pointer(part) for part, _ in parts_of(type_)):
            self.refuse(f"the variable '{name}', which has pointers in it,")
        else:
            variable = MemoryVariable(name, type_, "invocation", active.together, type_.nbytes)
        words = self.program.words
        variable.is_temporary = name not in words if words else name.startswith("%")
        return variable

    # -- operands ----------------------------------------------------------------------------------

    def raw(self, id_: int) -> Value:
        """Return the value of an id; its numbers may be undefined."""
        if id_ in self.values:
            return self.values[id_]
        constant = self.program.constants.get(id_)
        if constant is not None:
            return constant
        if id_ in self.variables:
            return self.variables[id_]
        if id_ in self.frame.variables:
            return self.frame.variables[id_]
        if id_ in self.frame.values:
            return take(self.frame.values[id_], self.active.at)
        return self.program.undefined(id_, self.step.place)

    def numbers(self, id_: int) -> Numbers:
        """Return the numbers that are the value of an id; some may be undefined."""
        value = self.raw(id_)
        assert isinstance(value, Numbers)
        return value

    def value(self, id_: int) -> Array:
        """Return the numbers of an id for a use; undefined numbers are a finding."""
        return self.checked(self.numbers(id_)).array

    def pointer(self, id_: int) -> Pointer:
        """Return the pointer that is the value of an id; numbers are converted from addresses."""
        value = self.raw(id_)
        if isinstance(value, Numbers):
            _, pointee = self.program.pointee(self.program.value_types[id_])
            return addresses.pointer(
                self.tensor_memory, self.program.type(pointee), self.value(id_)
            )
        assert isinstance(value, Pointer)
        return value

    def spread(self, id_: int, value: Choice, execute: Callable[[], Value | None]) -> Value | None:
        """Call a function for each variable that an id points into; return the merged results."""
        active, values = self.active, self.values
        result: Value | None = None
        for number, pointer in enumerate(value.pointers):
            rows = np.flatnonzero(value.which == number)
            if len(rows):
                self.active = active.some(value.which == number)
                self.values = {other: take(each, rows) for other, each in values.items()}
                self.values[id_] = take(pointer, rows)
                partial = execute()
                result = None if partial is None else merge(result, partial, rows, len(value.which))
        self.active, self.values = active, values
        return result

    def checked(self, value: Numbers, active: Active | None = None) -> Numbers:
        """Report undefined numbers, and return them as if they were defined."""
        if value.missing is None:
            return value
        for number, why in enumerate(value.why, 1):
            rows = (value.missing == number).reshape(len(value.missing), -1).any(1)
            if rows.any():
                self.tell("undefined", why, (active or self.active).some(rows))
        return Numbers(value.array)

    def subgroup(self, who: Array) -> Array:
        """Return the numbers of the subgroups of invocations, counted over all workgroups."""
        return subgroup_of(who, self.group_size, self.settings.subgroup_size)

    # -- reports -----------------------------------------------------------------------------------

    def global_id(self, who: int) -> Invocation:
        """Return the global id of an invocation."""
        group, index = divmod(who, self.group_size)
        (nx, ny, _), (lx, ly, lz) = self.groups, self.local
        return (
            group % nx * lx + index % lx,
            group // nx % ny * ly + index // lx % ly,
            group // (nx * ny) * lz + index // (lx * ly),
        )

    def tell(self, event: str, *about: Any) -> None:
        """Notify observers of an event."""
        for tell in self.told[event]:
            tell(*about)

    def report(
        self,
        kind: str,
        message: str,
        who: Array,
        key: str = "",
        place: SourceLine | None = None,
        other: SourceLine | None = None,
        count: int = 0,
        block: str = "",
    ) -> None:
        """Add a finding of these invocations; with ``count``, it is one of ``count`` pairs.

        ``other`` is a second line that the finding is about.
        """
        named = tuple(self.global_id(int(each)) for each in who[: 2 if count else 1])
        place = place or self.step.place
        is_usual = self.settings.schedule == ASCENDING and kind != FORWARD_PROGRESS
        schedule = "" if is_usual else self.settings.schedule
        finding = Finding(
            kind, place, message, named, count or len(who), other, (), block, schedule
        )
        self.findings.add(finding, key)
        if count:
            message = "{}; invocations {} and {}".format(message, *named)
        self.tell("finding", kind, message, who[:1] if count else who, place)

    def report_where(self, rows: Array, kind: str, message: str) -> None:
        """Add a finding of the active invocations in a mask, if there are any."""
        for part, note in self._by_selection(rows, self.active):
            self.report(kind, message + note, self.active.who[part], note)

    def report_outside(
        self, name: str, indices: Array, wrong: Array, count: str, active: Active
    ) -> None:
        """Notify observers of invocations whose index is out of bounds."""
        for part, note in self._by_selection(wrong, active):
            index = np.broadcast_to(indices, len(active.who))[self.example(part, active.who)]
            self.tell("outside", name, str(index), count + note, active.some(part))

    def _by_selection(self, wrong: Array, active: Active) -> Iterator[tuple[Array, str]]:
        """Yield masks of invocations with a fault, and the end of the message for each mask.

        The end says so if a selection does not use the result of this instruction.
        """
        left = np.array(np.broadcast_to(wrong, len(active.who)))
        for selection in selections(self.program, self.step.result) if left.any() else ():
            try:
                condition = self.raw(selection.condition)
            except KeyError:  # computed later
                continue
            if isinstance(condition, Numbers) and condition.array.ndim == 1:
                unused = np.broadcast_to(condition.array != selection.value, len(self.active.who))
                rows = left & np.isin(active.who, self.active.who[unused])
                if rows.any():
                    yield rows, f"; {selection.note(self.program.declared.language)}"
                    left &= ~rows
        if left.any():
            yield left, ""

    def example(self, wrong: Array, who: Array) -> int:
        """Return the row of an invocation in a mask, as an example for a message."""
        rows = np.flatnonzero(wrong)
        return int(rows[(who[rows] == self.shown).argmax()])

    def refuse(self, what: str = "") -> NoReturn:
        """Raise an error for an unsupported feature: ``what``, or else the present instruction."""
        what = what or INSTRUCTIONS.get(self.step.op, f"instruction {self.step.op}")
        raise ShaderCompileError(f"{self.step.place}: {what} {UNSUPPORTED}")

    # -- memory ------------------------------------------------------------------------------------

    def inside(self, pointer: Pointer, active: Active) -> tuple[Pointer, Active, Array | None]:
        """Report invocations whose index is out of bounds; return the pointer for the others.

        The other results are these invocations, and a mask of them, or None if it is all.
        """
        outside, variable = pointer.outside, pointer.variable
        if variable is None:
            self.refuse("a null pointer")
        if pointer.stride:
            at = np.atleast_1d(pointer.offset)
            wrong = (at < 0) | (at + pointer.type.nbytes > variable.nbytes)
            if wrong.any():
                mask = wrong if outside is None else wrong | outside.mask
                length, name = variable.nbytes // pointer.stride, variable.element(0)
                outside = Outside(name.partition("[")[0], mask, at // pointer.stride, length)
        if isinstance(variable, addresses.TensorMemory):
            outside = variable.outside(pointer)
        if outside is None or not outside.mask.any():
            return pointer, active, None
        wrong = np.broadcast_to(outside.mask, len(active.slots))
        count = f"{outside.length} elements" if isinstance(outside.length, int) else outside.length
        self.report_outside(f"'{outside.name}'", outside.indices, wrong, count, active)
        inside = replace(pointer, outside=None).take(np.flatnonzero(~wrong))
        return inside, active.some(~wrong), ~wrong

    def load(self, pointer: Pointer) -> Value:
        """Return the value that a pointer points to; zeros out of bounds.

        A pointer to an image is returned unchanged.
        """
        if is_pointer(pointer.type) and isinstance(pointer.variable, MemoryVariable):
            return pointer
        pointer, active, mask = self.inside(pointer, self.active)
        if mask is not None and not len(active.slots):
            return zeros(pointer.type)
        value: Value = pointer.variable.load(pointer.type, pointer.offset, active, self.step.place)
        self.access("read", pointer, active)
        if mask is None:
            return value
        return merge(zeros(pointer.type), value, np.flatnonzero(mask), len(mask))

    def load_numbers(self, pointer: Pointer) -> Numbers:
        """Return the scalar, vector or matrix that a pointer points to."""
        value = self.load(pointer)
        assert isinstance(value, Numbers)
        return value

    def store(self, pointer: Pointer, value: Value) -> None:
        """Store a value; stores out of bounds have no effect."""
        pointer, active, mask = self.inside(pointer, self.active)
        if mask is not None:
            value = take(value, np.flatnonzero(mask))
        if len(active.slots):
            if isinstance(pointer.variable, MemoryVariable) and pointer.variable.kind == "":
                value = replaced(value, lambda numbers: self.checked(numbers, active))
            value = addresses.numbers(value) if scalar_of(pointer.type) else value
            before = changed = None
            if self.waits is not None and self.waits.is_watching and pointer.variable.shadow:
                before = self._contents(pointer, active)
            pointer.variable.store(pointer.type, pointer.offset, value, active)
            if before is not None:
                at = np.arange(len(active.slots))
                changed = differ(before, self._contents(pointer, active), at)
            self.access("write", pointer, active, changed)

    def _contents(self, pointer: Pointer, active: Active) -> Value:
        memory: Variable = pointer.variable
        return memory.load(pointer.type, pointer.offset, active, self.step.place)

    def access(
        self, kind: str, pointer: Pointer, active: Active, changed: Array | None = None
    ) -> None:
        """Notify observers of an access: "read", "write" or "atomic".

        ``changed`` says for which invocations memory has changed; None if that is not known.
        """
        if pointer.variable.shadow is not None:
            self.tick()
            if self.waits is not None:
                self.waits.access(kind, pointer, active, changed)
        self.tell("access", kind, pointer, active)

    def tick(self) -> None:
        """Advance the time."""
        self.time += 1
        self.access_places.append(self.step.place)


def _named(memory: MemoryVariable, name: str, type_: Type) -> Pointer:
    """Return a pointer to a block; another variable of the same binding has its own."""
    memory.name, memory.type = name, type_
    return Pointer(copy(memory), type_, 0)
