"""Runs the invocations of a dispatch, block by block.

Invocations are in different blocks of a function after a branch. Each workgroup executes the first
block that any of its invocations has reached; as a construct comes before the block where it
merges, they meet there again. Invocations of several workgroups that are in the same block execute
it together.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NoReturn

import numpy as np

from vkops.debug.interpreter import glsl_functions, operations, subgroups
from vkops.debug.interpreter.findings import Findings, Invocation, number_text
from vkops.debug.interpreter.memory import Active, Memory, Register, Variable
from vkops.debug.interpreter.operations import Array, dtype_of
from vkops.debug.interpreter.program import (
    Block,
    Function,
    Program,
    Step,
    composed,
    scalar_of,
    shape_of,
    zeros,
)
from vkops.debug.interpreter.races import Conflict, Order, Shadow
from vkops.debug.interpreter.values import (
    Outside,
    Partial,
    Place,
    Pointer,
    Value,
    joined,
    merge,
    take,
)
from vkops.errors import OutOfDeviceMemoryError, ShaderCompileError
from vkops.shaders import layout
from vkops.shaders.binary import Decoration, Storage
from vkops.shaders.layout import Number, Struct, Type
from vkops.shaders.shader import Shader

MAX_ITERATIONS = 65_535
"""After which llvmpipe ends a loop."""

MAX_TOGETHER = 1 << 16
"""Invocations that run together, in whole workgroups."""

_PATIENCE = 256
"""Iterations of a loop after which other workgroups go on first: it may wait for them."""

_UNSUPPORTED = "is not supported by the interpreter"
_RELEASES = 0x2 | 0x4 | 0x8 | 0x10
_SUBGROUP_SCOPE = 3


@dataclass
class _Frame:
    """A call of a function."""

    function: Function
    values: dict[int, Value]
    live: int
    variables: dict[int, Pointer] = field(default_factory=dict)
    result: Value = None


@dataclass
class Settings:
    """How to run: the order of workgroups, and what to look for."""

    subgroup_size: int = 32
    order: str = "ascending"  # or descending
    findings: Findings = field(default_factory=Findings)
    floats: bool = False


class Run:
    """A dispatch of a shader.

    ``buffers`` has the memory of each binding, by set and number; ``push`` the bytes of push
    constants. Afterwards, the memory has the results, ``printed`` what debugPrintfEXT printed with
    the invocations that did, and ``executed`` is the number of instructions, by invocation.
    """

    def __init__(
        self,
        shader: Shader,
        buffers: Mapping[tuple[int, int], Memory],
        groups: Sequence[int],
        push: bytes,
        settings: Settings,
    ) -> None:
        self.program = Program(shader.module, shader.name)
        self.settings = settings
        self.findings = settings.findings
        self.groups = (groups[0], groups[1], groups[2])
        self.local = shader.module.local_size
        self.group_size = int(np.prod(self.local))
        self.printed: list[tuple[Invocation, str]] = []
        self.executed = 0
        self._shared: list[tuple[int, str, Type]] = []
        self._private: list[tuple[int, str, Type, Value]] = []
        self._global: dict[int, Pointer] = {}
        self._order = Order(int(np.prod(self.groups)), self.group_size, settings.subgroup_size)
        self._access_places: list[Place] = [Place(shader.name, 0)]
        self._deferred: list[tuple[Variable, Array, Array, Callable[[int], None]]] = []
        self._exchanged: dict[Variable, list[Array]] = {}
        nothing = np.zeros(0, np.int64)
        self._active = Active(None, nothing, nothing, nothing, 0)
        self._frame = _Frame(self.program.functions[self.program.main], {}, 0)
        self._step = Step(0, 0, 0, (), Place(shader.name, 0), False)
        self._local: dict[int, Value] = {}
        self._declare(buffers, push)

    # -- variables ---------------------------------------------------------------------------------

    def _declare(self, buffers: Mapping[tuple[int, int], Memory], push: bytes) -> None:
        found = self.program.found
        for id_, storage, pointee in found.variables():
            if id_ not in self.program.used:
                continue
            type_, decorations = self.program.type(pointee), found.decorated(id_)
            name = found.names.get((id_,), "") or found.names.get((pointee,), "")
            initial = found.defined[id_].words[3:]
            if Decoration.BINDING in decorations:
                place = decorations.get(Decoration.DESCRIPTOR_SET, (0,))[0]
                memory = buffers[place, decorations[Decoration.BINDING][0]]
                memory.name, memory.type = found.names.get((id_,), ""), type_
                self._global[id_] = Pointer(memory, type_, 0)
            elif storage == Storage.PUSH_CONSTANT:
                memory = Memory(name, type_, "", 1, len(push), is_written=True)
                memory.fill(push)
                self._global[id_] = Pointer(memory, type_, 0)
            elif storage == Storage.WORKGROUP:
                self._shared.append((id_, name, type_))
                if initial:
                    self._private.append((id_, name, type_, self.program.constants[initial[0]]))
            else:
                value = self.program.constants[initial[0]] if initial else None
                self._private.append((id_, name, type_, value))

    def _variable(
        self, name: str, type_: Type, active: Active, call: _Frame | None = None
    ) -> Variable:
        """Make a variable that each invocation has for itself."""
        if scalar_of(type_) is not None:
            return Register(name, type_, None, call)
        return Memory(name, type_, "invocation", active.together, type_.nbytes)

    # -- running -----------------------------------------------------------------------------------

    def run(self) -> None:
        """Run all workgroups, many at a time."""
        count = int(np.prod(self.groups))
        together = max(1, MAX_TOGETHER // self.group_size)
        order = np.arange(count)
        if self.settings.order == "descending":
            order = order[::-1]
        with np.errstate(all="ignore"):
            for first in range(0, count, together):
                try:
                    self._run_groups(order[first : first + together])
                except (
                    ArithmeticError,
                    AssertionError,
                    LookupError,
                    TypeError,
                    ValueError,
                ) as error:
                    message = f"{self._step.place}: instruction {self._step.op} with these operands"
                    raise ShaderCompileError(f"{message} {_UNSUPPORTED}") from error
                except MemoryError as error:
                    message = f"{self._step.place}: the host has no more memory available"
                    raise OutOfDeviceMemoryError(message) from error
        for variable, addresses, who, report in self._deferred:
            known = self._exchanged.get(variable)
            pairs = addresses << 32 | who
            kept = pairs if known is None else pairs[~np.isin(pairs, np.concatenate(known))]
            if len(kept):
                report(int(np.flatnonzero(pairs == kept[0])[0]))

    def _run_groups(self, groups: Array) -> None:
        size = self.group_size
        who = (groups[:, None] * size + np.arange(size)).reshape(-1)
        places = np.arange(len(who))
        active = Active(None, places, who, places // size, len(who))
        inputs, shared = self._inputs(who), {id_ for id_, _, _ in self._shared}
        for id_, name, type_ in self._shared:
            memory = Memory(name, type_, "group", len(groups), type_.nbytes)
            memory.shadow = Shadow(memory.units)
            self._global[id_] = Pointer(memory, type_, 0)
        for id_, name, type_, value in self._private:
            built_in = self.program.found.decorated(id_).get(Decoration.BUILTIN)
            if built_in is not None:
                if built_in[0] not in inputs:
                    self._refuse(f"the built-in variable {built_in[0]}")
                variable: Variable = Register(name, type_, inputs[built_in[0]])
                self._global[id_] = Pointer(variable, type_, 0)
                continue
            if id_ not in shared:
                self._global[id_] = Pointer(self._variable(name, type_, active), type_, 0)
            if value is not None:
                self._global[id_].variable.store(type_, 0, value, active)
        self._call(self.program.functions[self.program.main], [], active)

    def _inputs(self, who: Array) -> dict[int, Array]:
        """Return built-in variables."""
        group, index = np.divmod(who, self.group_size)
        nx, ny, _ = self.groups
        lx, ly, _ = self.local
        groups = np.stack((group % nx, group // nx % ny, group // (nx * ny)), 1)
        local = np.stack((index % lx, index // lx % ly, index // (lx * ly)), 1)
        size = self.settings.subgroup_size
        column = (index % size).astype(np.uint64)
        one, bits = np.uint64(1), np.uint64(min(size, 64))
        all_ = ~np.uint64(0) >> (np.uint64(64) - bits)
        equal, below = one << column, (one << column) - one
        masks = (equal, all_ & ~below, all_ & ~below & ~equal, below | equal, below)

        def constant(*numbers: int) -> Array:
            return np.array([numbers], np.uint32)

        found: dict[int, Array] = {
            24: constant(*self.groups), 25: constant(*self.local),
            26: groups.astype(np.uint32), 27: local.astype(np.uint32),
            28: (groups * self.local + local).astype(np.uint32), 29: index.astype(np.uint32),
            36: constant(size)[0], 38: constant(-(-self.group_size // size))[0],
            40: (index // size).astype(np.uint32), 41: column.astype(np.uint32),
        }  # fmt: skip
        for number, mask in enumerate(masks):
            words = np.zeros((len(who), 4), np.uint32)
            words[:, :2] = np.ascontiguousarray(mask).view(np.uint32).reshape(-1, 2)
            found[4416 + number] = words
        return found

    def _call(self, function: Function, arguments: Sequence[Value], active: Active) -> Value:
        saved = self._frame, self._local, self._active
        frame = self._frame = _Frame(function, {}, len(active.places))
        for id_, value in zip(function.parameters, arguments, strict=True):
            frame.values[id_] = merge(None, value, active.at, active.together)
        waiting: dict[int, list[Array]] = {0: [active.places]}
        iterations: dict[int, int] = {}
        while waiting:
            number, places = self._next(waiting, iterations)
            at = None if len(places) == active.together else places
            groups = places // self.group_size
            who = outer_who(active, places)
            rest = frame if len(places) == frame.live else None
            self._active = Active(at, places, who, groups, active.together, rest)
            self._local = {}
            block = function.blocks[number]
            for target, mask in self._block(frame, block):
                self._branch(frame, block, target, mask, waiting, iterations)
        self._frame, self._local, self._active = saved
        return frame.result

    def _next(
        self, waiting: dict[int, list[Array]], iterations: Mapping[int, int]
    ) -> tuple[int, Array]:
        """Remove the block to execute next from those that wait; with its invocations."""
        number = min(waiting)
        if len(waiting) > 1 and iterations.get(number, 0) % _PATIENCE == _PATIENCE - 1:
            # Workgroups of which no invocation waits in an earlier block.
            busy = np.concatenate(waiting[number]) // self.group_size
            for later in sorted(waiting)[1:]:
                places = np.concatenate(waiting[later])
                free = ~np.isin(places // self.group_size, busy)
                if free.any():
                    chosen, rest = places[free], places[~free]
                    del waiting[later]
                    if len(rest):
                        waiting[later] = [rest]
                    return later, np.sort(chosen)
                busy = np.concatenate((busy, places // self.group_size))
        parts = waiting.pop(number)
        return number, parts[0] if len(parts) == 1 else np.sort(np.concatenate(parts))

    def _branch(
        self,
        frame: _Frame,
        block: Block,
        target: int,
        mask: Array | None,
        waiting: dict[int, list[Array]],
        iterations: dict[int, int],
    ) -> None:
        """Let invocations go to a block, and give its phis their values."""
        number = frame.function.numbers[target]
        to = frame.function.blocks[number]
        active = self._active if mask is None else self._active.some(mask)
        if mask is not None and len(active.places) == len(self._active.places):
            active, mask = self._active, None
        if number <= block.number:
            iterations[number] = iterations.get(number, 0) + 1
            if iterations[number] > MAX_ITERATIONS and to.merge:
                self._report("loop", f"did not end after {MAX_ITERATIONS:,} iterations", active)
                number, iterations[number] = frame.function.numbers[to.merge], 0
                to = frame.function.blocks[number]
        elif to.is_loop:
            iterations[number] = 0
        chosen = None if mask is None else np.flatnonzero(mask)
        made = []
        for phi in to.phis:
            pairs = dict(zip(phi.operands[1::2], phi.operands[::2], strict=True))
            if block.label in pairs:
                made.append((phi.result, take(self.raw(pairs[block.label]), chosen)))
        for id_, value in made:
            self._put(frame, id_, value, active)
        waiting.setdefault(number, []).append(active.places)

    def _put(self, frame: _Frame, id_: int, value: Value, active: Active) -> None:
        at = active.at
        if active.rest is frame and isinstance(value, np.ndarray) and len(value) == 1:
            at = None
        frame.values[id_] = merge(frame.values.get(id_), value, at, active.together)

    def _block(self, frame: _Frame, block: Block) -> list[tuple[int, Array | None]]:
        """Execute a block, and return where invocations go."""
        self.executed += len(self._active.places) * len(block.steps)
        for step in block.steps[:-1]:
            self._step = step
            handler = _HANDLERS.get(step.op)
            if handler is None:
                self._refuse(f"instruction {step.op}")
            value = handler(self, step)
            if step.result:
                self._local[step.result] = value
                if step.escapes:
                    self._put(frame, step.result, value, self._active)
        self._step = step = block.steps[-1]
        op, operands = step.op, step.operands
        if op == 249:  # Branch
            return [(operands[0], None)]
        if op == 250:  # BranchConditional
            condition = self.value(operands[0])
            if len(condition) == 1:
                return [(operands[1] if condition[0] else operands[2], None)]
            pairs = ((operands[1], condition), (operands[2], ~condition))
            return [(target, mask) for target, mask in pairs if mask.any()]
        if op == 251:  # Switch
            return self._switch(operands)
        if op in (253, 254):  # Return, ReturnValue
            if op == 254:
                active = self._active
                frame.result = merge(
                    frame.result, self.raw(operands[0]), active.at, active.together
                )
        elif op not in (252, 255, 4416):  # Kill, Unreachable, TerminateInvocation
            self._refuse(f"instruction {op}")
        frame.live -= len(self._active.places)
        return []

    def _switch(self, operands: tuple[int, ...]) -> list[tuple[int, Array | None]]:
        selector = self.value(operands[0])
        bits = operations.integers(selector, "u").astype(np.uint64)
        left = np.ones(len(bits), bool)
        targets: dict[int, Array] = {}
        for literal, target in zip(operands[2::2], operands[3::2], strict=True):
            mask = bits == (literal & ((1 << 8 * selector.itemsize) - 1))
            targets[target] = targets.get(target, False) | mask
            left &= ~mask
        targets[operands[1]] = targets.get(operands[1], False) | left
        whole = len(bits) == 1
        return [(t, None if whole else mask) for t, mask in targets.items() if mask.any()]

    # -- operands ----------------------------------------------------------------------------------

    def raw(self, id_: int) -> Value:
        """Return the value of an id, perhaps with numbers that were never written."""
        if id_ in self._local:
            return self._local[id_]
        constant = self.program.constants.get(id_)
        if constant is not None:
            return constant
        if id_ in self._global:
            return self._global[id_]
        if id_ in self._frame.variables:
            return self._frame.variables[id_]
        return take(self._frame.values[id_], self._active.at)

    def value(self, id_: int) -> Value:
        """Return the value of an id for a use; numbers that were never written are a finding."""
        value = self.raw(id_)
        return self.checked(value)

    def checked(self, value: Value) -> Value:
        """Report numbers that were never written, and return them."""
        if isinstance(value, Partial):
            missing = value.missing.reshape(len(value.missing), -1).any(1)
            if not missing.any():
                return value.numbers
            active = self._active.some(missing)
            message = f"reads '{value.source}', which was never written"
            self._report("never written", message, active, value.source, value.place)
            return value.numbers
        if isinstance(value, list):
            return [self.checked(member) for member in value]
        return value

    def last_write(self, memory: Memory, address: int) -> Place:
        """Return where the number at an address was written or changed last."""
        assert memory.shadow is not None
        when = memory.shadow.last_change(address // memory.unit)
        return self._access_places[when]

    # -- reports -----------------------------------------------------------------------------------

    def _global_id(self, who: int) -> Invocation:
        group, index = divmod(who, self.group_size)
        (nx, ny, _), (lx, ly, lz) = self.groups, self.local
        return (
            group % nx * lx + index % lx,
            group // nx % ny * ly + index // lx % ly,
            group // (nx * ny) * lz + index // (lx * ly),
        )

    def _report(
        self, kind: str, message: str, active: Active, key: str = "", place: Place | None = None
    ) -> None:
        who = tuple(self._global_id(int(each)) for each in active.who[:1])
        count = len(active.who)
        self.findings.add(kind, place or self._step.place, message, who, count, key)

    def _refuse(self, what: str) -> NoReturn:
        raise ShaderCompileError(f"{self._step.place}: {what} {_UNSUPPORTED}")

    # -- memory ------------------------------------------------------------------------------------

    def _inside(self, pointer: Pointer, active: Active) -> tuple[Pointer, Active, Array | None]:
        """Report invocations whose index is out of bounds, and return the others."""
        outside = pointer.outside
        if outside is None or not outside.mask.any():
            return pointer, active, None
        wrong = np.broadcast_to(outside.mask, len(active.places))
        first = int(np.flatnonzero(wrong)[0])
        name = outside.name
        index = number_text(outside.indices, first)
        message = f"index {index} of '{name}' is out of bounds: it has {outside.length} elements"
        self._report("out of bounds", message, active.some(wrong), name)
        inside = take(pointer._replace(outside=None), np.flatnonzero(~wrong))
        return inside, active.some(~wrong), ~wrong

    def load(self, pointer: Pointer) -> Value:
        """Return what a pointer points to; zeros out of bounds."""
        place = self._step.place
        pointer, active, mask = self._inside(pointer, self._active)
        if mask is not None and not len(active.places):
            return zeros(pointer.type)
        value = pointer.variable.load(pointer.type, pointer.offset, active, place)
        self._record("read", pointer, active)
        if mask is None:
            return value
        count = len(mask)
        chosen = np.flatnonzero(mask)
        base = merge(None, zeros(pointer.type), None, count)
        return merge(base, value, chosen, count)

    def store(self, pointer: Pointer, value: Value) -> None:
        """Store a value; out of bounds, nothing."""
        pointer, active, mask = self._inside(pointer, self._active)
        if mask is not None:
            value = take(value, np.flatnonzero(mask))
        if len(active.places):
            if isinstance(pointer.variable, Memory) and pointer.variable.kind == "":
                value = self.checked(value)
            pointer.variable.store(pointer.type, pointer.offset, value, active)
            self._record("write", pointer, active)

    def _record(self, kind: str, pointer: Pointer, active: Active) -> None:
        """Record an access in the shadow of a memory, and report races."""
        memory = pointer.variable
        if memory.shadow is None:
            return
        assert isinstance(memory, Memory)
        self._order.clock += 1
        self._access_places += [Place("", 0)] * (self._order.clock - len(self._access_places))
        self._access_places.append(self._step.place)
        for number, type_, offset in _scalars(pointer.type, pointer.offset):
            addresses = memory.addresses(type_, offset, active)
            units = memory.units_of(number, addresses)
            units = units.reshape(len(units), -1)
            who = active.who
            if len(units) == 1 and len(who) > 1:
                if kind == "read":
                    who = who[[0, -1]]
                units = np.broadcast_to(units, (len(who), units.shape[1]))
            who = np.repeat(who, units.shape[1])
            units = units.reshape(-1)
            for conflict in getattr(memory.shadow, kind)(self._order, units, who):
                self._race(kind, memory, conflict, units, who)
        if kind == "atomic":
            self._order.atomic(active.who)

    def _race(
        self, kind: str, memory: Memory, conflict: Conflict, units: Array, who: Array
    ) -> None:
        """Report a data race.

        A read that an atomic operation conflicts with may be the first of a loop with
        atomicCompSwap, which is no fault: it is reported at the end if the invocation that read
        did not execute one.
        """
        verbs = {"read": "reads", "write": "writes", "atomic": "changes atomically"}
        dids = {"read": "read", "written": "wrote", "changed": "changed atomically"}
        place = self._step.place
        places = self._access_places

        def report(number: int) -> None:
            at, other = int(conflict.at[number]), int(conflict.others[number])
            where = places[int(conflict.when[number])]
            line = "in the same line" if where == place else f"in line {where.line}"
            name = memory.element(int(units[at]) * memory.unit)
            room = "shared memory" if memory.kind else "a storage buffer"
            between = "no barrier between" if memory.kind else "nothing orders"
            message = (
                f"'{name}' in {room}: the first invocation {verbs[kind]} it, the second "
                f"{dids[conflict.did]} it {line}, and {between} them"
            )
            ids = self._global_id(int(who[at])), self._global_id(other)
            key = f"{name.partition('[')[0]} {where}"
            self.findings.add("data race", place, message, ids, len(conflict.at), key)

        if {kind, conflict.did} <= {"read", "atomic", "changed"}:
            readers = who[conflict.at] if kind == "read" else conflict.others
            self._deferred.append((memory, units[conflict.at], readers, report))
        else:
            report(0)


def outer_who(active: Active, places: Array) -> Array:
    """Return the numbers of some of the active invocations."""
    if len(places) == len(active.places):
        return active.who
    return active.who[np.searchsorted(active.places, places)]


def _scalars(type_: Type, offset: int | Array) -> list[tuple[Number, Type, int | Array]]:
    """Return the parts of a type that are scalars, vectors or matrices, with their offsets."""
    number = scalar_of(type_)
    if number is not None:
        return [(number, type_, offset)]
    if isinstance(type_, Struct):
        parts = [(member.type, member.offset) for member in type_.members]
    else:
        assert isinstance(type_, layout.Array)
        parts = [(type_.element, n * type_.stride) for n in range(type_.count or 0)]
    return [each for part, at in parts for each in _scalars(part, offset + at)]


# -- instructions ----------------------------------------------------------------------------------


def _load(run: Run, step: Step) -> Value:
    return run.load(run.raw(step.operands[0]))


def _store(run: Run, step: Step) -> None:
    run.store(run.raw(step.operands[0]), run.raw(step.operands[1]))


def _copy_memory(run: Run, step: Step) -> None:
    run.store(run.raw(step.operands[0]), run.load(run.raw(step.operands[1])))


def _declare(run: Run, step: Step) -> Pointer:
    _, pointee = run.program.pointee(step.type)
    type_ = run.program.type(pointee)
    frame, id_ = run._frame, step.result
    known = frame.variables.get(id_)
    if known is None:
        variable = run._variable(run.program.name(id_), type_, run._active, frame)
        known = frame.variables[id_] = Pointer(variable, type_, 0)
    if step.operands[1:]:
        run.store(known, run.raw(step.operands[1]))
    return known


def _access(run: Run, step: Step) -> Pointer:
    base: Pointer = run.raw(step.operands[0])
    part, offset, outside = base.type, base.offset, base.outside
    for id_ in step.operands[1:]:
        index = run.value(id_)
        wide: Any = int(index[0]) if len(index) == 1 else index.astype(np.int64)
        if isinstance(part, Struct):
            member = part.members[wide]
            offset, part = offset + member.offset, member.type
            continue
        assert isinstance(part, layout.Array)
        count = part.count
        if count is None:
            assert isinstance(base.variable, Memory)
            start = offset if isinstance(offset, int) else int(offset[0])
            count = max(base.variable.nbytes - start, 0) // part.stride
        wrong = np.atleast_1d((wide < 0) | (wide >= count))
        if wrong.any():
            mask = wrong if outside is None else wrong | outside.mask
            name = base.variable.name
            if isinstance(base.variable, Memory):
                name = base.variable.element(int(np.atleast_1d(offset)[0]), part)
            outside = Outside(name, mask, np.atleast_1d(np.asarray(wide)), count)
            wide = np.where(wrong, 0, wide)
        offset, part = offset + wide * part.stride, part.element
    return Pointer(base.variable, part, offset, outside)


def _array_length(run: Run, step: Step) -> Array:
    pointer: Pointer = run.raw(step.operands[0])
    assert isinstance(pointer.type, Struct)
    assert isinstance(pointer.variable, Memory)
    member = pointer.type.members[step.operands[1]]
    assert isinstance(member.type, layout.Array)
    size = max(pointer.variable.nbytes - member.offset, 0)
    return np.array([size // member.type.stride], np.uint32)


def _marked(found: Value, masks: list[Array] | None, known: Partial | None) -> Value:
    """Mark results of numbers that were never written: what uses them reports that."""
    if masks is None or known is None:
        return found
    if isinstance(found, list):
        return [_marked(member, masks, known) for member in found]
    missing = np.zeros(found.shape, bool)
    for mask in masks:  # most operations work by components
        if mask.shape[1:] != found.shape[1:]:
            mask = mask.reshape(len(mask), -1).any(1).reshape(-1, *(1,) * (found.ndim - 1))
        missing = missing | mask
    return known._replace(numbers=found, missing=missing, is_computed=True)


def _arithmetic(run: Run, step: Step) -> Value:
    operands, masks, known = joined([run.raw(id_) for id_ in step.operands])
    number = scalar_of(run.program.type(step.type))
    if step.op in operations.DIVISIONS:
        _report_where(run, operands[1] == 0, "division by zero", "divides an integer by zero")
    elif step.op in operations.SHIFTS:
        bits = 8 * operands[0].itemsize
        count = operations.integers(operands[1], "u")
        text = f"shifts a number of {bits} bits by {bits} bits or more"
        _report_where(run, count >= bits, "shift", text)
    found = operations.apply(step.op, operands, number)
    if masks is not None and step.op in operations.LOGICAL:  # one operand can decide
        decides = step.op == operations.LOGICAL[0]
        known_ones = [(a == decides) & ~mask for a, mask in zip(operands, masks, strict=True)]
        masks = [(masks[0] | masks[1]) & ~known_ones[0] & ~known_ones[1]]
        if not masks[0].any():
            return found
    return _marked(_finite(run, operands, found), masks, known)


def _finite(run: Run, operands: list[Value], found: Value) -> Value:
    """Report NaN and infinity that were not in the operands."""
    if run.settings.floats and isinstance(found, np.ndarray) and found.dtype.kind == "f":
        wrong = ~np.isfinite(found)
        if wrong.any():
            rows = wrong.reshape(len(found), -1).any(1)
            for operand in operands:
                if isinstance(operand, np.ndarray) and operand.dtype.kind == "f":
                    rows = rows & np.isfinite(operand).reshape(len(operand), -1).all(1)
            name = "NaN" if np.isnan(found).any() else "infinity"
            _report_where(run, rows, "floats", f"makes {name} of finite numbers")
    return found


def _report_where(run: Run, wrong: Array, kind: str, message: str) -> None:
    if wrong.any():
        rows = wrong.reshape(len(wrong), -1).any(1)
        run._report(kind, message, run._active.some(rows))


def _glsl(run: Run, step: Step) -> Value:
    name = run.program.found.strings[step.operands[0]]
    number, ids = step.operands[1], step.operands[2:]
    if name == "NonSemantic.DebugPrintf":
        return _print(run, ids)
    if name != "GLSL.std.450":
        return None
    type_ = run.program.type(step.type)
    scalar = scalar_of(type_)
    if number in glsl_functions.STORING:
        value = run.value(ids[0])
        first, second = glsl_functions.apply(glsl_functions.STORING[number], [value], None)
        target: Pointer = run.raw(ids[1])
        stored = scalar_of(target.type) or Number("int", 4)
        run.store(target, second.astype(dtype_of(stored)))
        return first
    if number not in glsl_functions.FUNCTIONS:
        run._refuse(f"function {number} of GLSL.std.450")
    operands, masks, known = joined([run.raw(id_) for id_ in ids])
    dtype = None if scalar is None else dtype_of(scalar)
    found = _finite(run, operands, glsl_functions.apply(number, operands, dtype))
    return _marked(found, masks, known)


_CONVERSION = re.compile(r"%[-+ #0]*\d*(?:\.\d+)?(?:v([234]))?(?:ul|lu|l|u)?([diouxXeEfFgGaA])?")


def _print(run: Run, ids: tuple[int, ...]) -> None:
    form = run.program.found.strings[ids[0]]
    operands = [run.value(id_) for id_ in ids[1:]]
    for number, who in enumerate(run._active.who.tolist()):
        values = iter([v[number if len(v) > 1 else 0] for v in operands])

        def text(match: re.Match[str], values: Any = values) -> str:
            if match[0].startswith("%%"):
                return "%"
            letter = match[2] or "u"
            parts = np.atleast_1d(next(values)).tolist()
            spec = match[0].split("v")[0] if match[1] else match[0].rstrip("uldioxXeEfFgGaA")
            return ", ".join(f"{spec}{letter}" % part for part in parts)

        made = re.sub(rf"%%|{_CONVERSION.pattern}", text, form)
        run.printed.append((run._global_id(who), made))


def _call(run: Run, step: Step) -> Value:
    function = run.program.functions[step.operands[0]]
    at = run._active.at
    result = run._call(function, [run.raw(id_) for id_ in step.operands[1:]], run._active)
    return take(result, at)


def _construct(run: Run, step: Step) -> Value:
    type_ = run.program.type(step.type)
    parts, masks, known = joined([run.raw(id_) for id_ in step.operands])
    if scalar_of(type_) is None:
        return [run.raw(id_) for id_ in step.operands]
    made = composed(type_, parts)
    if masks is None or known is None:
        return made
    return known._replace(numbers=made, missing=composed(type_, masks))


def _extract(run: Run, step: Step) -> Value:
    value = run.raw(step.operands[0])
    for index in step.operands[1:]:
        value = value[index] if isinstance(value, list) else _component(value, index)
    return value


def _component(value: Value, index: int) -> Value:
    """Return a component of a vector or a column of a matrix."""
    if not isinstance(value, Partial):
        return value[:, index]
    missing = value.missing[:, index]
    made = value._replace(numbers=value.numbers[:, index], missing=missing)
    return made if missing.any() else made.numbers


def _insert(run: Run, step: Step) -> Value:
    part, whole = (run.raw(id_) for id_ in step.operands[:2])
    return _inserted(whole, part, step.operands[2:])


def _inserted(whole: Value, part: Value, path: Sequence[int]) -> Value:
    if not path:
        return part
    if isinstance(whole, list):
        made = list(whole)
        made[path[0]] = _inserted(whole[path[0]], part, path[1:])
        return made
    (numbers, new), masks, known = joined([whole, part])
    at: Any = (slice(None), *path)
    count = max(len(numbers), len(new))

    def changed(before: Array, after: Array) -> Array:
        copy = np.array(np.broadcast_to(before, (count, *before.shape[1:])))
        copy[at] = after
        return copy

    if masks is None or known is None:
        return changed(numbers, new)
    return known._replace(numbers=changed(numbers, new), missing=changed(*masks))


def _shuffle(run: Run, step: Step) -> Value:
    (a, b), masks, known = joined([run.raw(id_) for id_ in step.operands[:2]])
    chosen = [0 if n == 0xFFFFFFFF else n for n in step.operands[2:]]
    count = max(len(a), len(b))

    def both(one: Array, two: Array) -> Array:
        wide = [np.broadcast_to(each, (count, each.shape[1])) for each in (one, two)]
        return np.concatenate(wide, 1)[:, chosen]

    if all(n < a.shape[1] for n in chosen) and masks is None:
        return a[:, chosen]
    if masks is None or known is None:
        return both(a, b)
    missing = both(*masks)
    made = known._replace(numbers=both(a, b), missing=missing)
    return made if missing.any() else made.numbers


def _dynamic(run: Run, step: Step) -> Value:
    value, index = run.value(step.operands[0]), run.value(step.operands[1])
    wide = np.clip(index.astype(np.int64), 0, value.shape[1] - 1)
    _report_where(run, wide != index, "out of bounds", "index of a vector is out of bounds")
    if len(wide) == 1:
        return value[:, wide[0]]
    rows = np.arange(len(wide)) if len(value) > 1 else np.zeros(len(wide), np.int64)
    return value[rows, wide]


def _dynamic_insert(run: Run, step: Step) -> Value:
    value, part, index = (run.value(id_) for id_ in step.operands)
    columns = np.arange(value.shape[1]) == index[:, None]
    return np.where(columns, part[:, None], value)


def _copy(run: Run, step: Step) -> Value:
    return run.raw(step.operands[0])


def _undefined(run: Run, step: Step) -> Value:
    return run.program.undefined(step.result, step.type, step.place)


def _select(run: Run, step: Step) -> Value:
    condition, *rest = (run.raw(id_) for id_ in step.operands)
    one, other = rest
    count = len(run._active.places)
    if isinstance(one, (Pointer, list)):
        mask = np.flatnonzero(np.broadcast_to(run.checked(condition), count))
        if isinstance(one, Pointer) and one.variable is not other.variable:
            run._refuse("a choice of pointers to different variables")
        base = (
            merge(None, other, None, count) if isinstance(other, Pointer) else _wide(other, count)
        )
        return merge(base, take(one, mask), mask, count)
    (chosen, a, b), masks, known = joined([condition, one, other])
    made = operations.select(chosen, a, b)
    if masks is None or known is None:
        return made
    missing = operations.select(chosen, masks[1], masks[2])
    marked = _marked(made, [masks[0]], known)
    missing = missing | marked.missing
    return marked._replace(missing=missing) if missing.any() else made


def _wide(value: Value, count: int) -> Value:
    """Return a value that has one row for each of ``count`` invocations."""
    if isinstance(value, list):
        return [_wide(member, count) for member in value]
    return np.broadcast_to(value, (count, *value.shape[1:]))


def _bitcast(run: Run, step: Step) -> Value:
    (value,), masks, known = joined([run.raw(step.operands[0])])
    type_ = run.program.type(step.type)
    number = scalar_of(type_)
    assert number is not None
    flat = np.ascontiguousarray(value).reshape(len(value), -1)
    found = flat.view(dtype_of(number)).reshape(len(value), *shape_of(type_))
    return _marked(found, masks, known)


def _barrier(run: Run, step: Step) -> None:
    scope, active, order = int(run.value(step.operands[0])[0]), run._active, run._order
    if scope == _SUBGROUP_SCOPE:
        order.subgroup_barrier(active.who)
        return
    counts = np.bincount(active.groups)
    short = np.flatnonzero((counts > 0) & (counts < run.group_size))
    if len(short):
        message = (
            f"only {counts[short[0]]} of the {run.group_size} invocations of a workgroup reach "
            "this barrier"
        )
        run._report("barrier", message, active.some(active.groups == short[0]))
    if int(run.value(step.operands[2])[0]) & _RELEASES:
        order.fence(active.who)
    order.barrier(active.who)


def _memory_barrier(run: Run, step: Step) -> None:
    if int(run.value(step.operands[0])[0]) == _SUBGROUP_SCOPE:
        run._order.subgroup_barrier(run._active.who)
    else:
        run._order.fence(run._active.who)


# By opcode: how operands are taken, the function, and whether it is one of NumPy's own.
_ATOMIC: dict[int, tuple[str, Callable[[Array, Array], Array], bool]] = {
    229: ("", lambda old, new: new, False), 232: ("one", np.add, True),
    233: ("one", np.subtract, True), 234: ("", np.add, True), 235: ("", np.subtract, True),
    236: ("s", np.minimum, True), 237: ("u", np.minimum, True), 238: ("s", np.maximum, True),
    239: ("u", np.maximum, True), 240: ("", np.bitwise_and, True),
    241: ("", np.bitwise_or, True), 242: ("", np.bitwise_xor, True), 6035: ("", np.add, True),
    5614: ("", np.fmin, True), 5615: ("", np.fmax, True),
    227: ("", lambda old, new: old, False),
    230: ("", lambda old, pair: np.where(old == pair[:, 1], pair[:, 0], old), False),
}  # fmt: skip
_ATOMIC_STORE, _EXCHANGE = 228, 230


def _atomic(run: Run, step: Step) -> Value:
    pointer: Pointer = run.raw(step.operands[0])
    semantics = int(run.value(step.operands[2])[0])
    pointer, active, mask = run._inside(pointer, run._active)
    if not len(active.places):
        return zeros(pointer.type)
    memory, number = pointer.variable, pointer.type
    assert isinstance(memory, Memory)
    assert isinstance(number, Number)
    if semantics & _RELEASES & ~2:
        run._order.fence(active.who)
    op = 229 if step.op == _ATOMIC_STORE else step.op
    if step.op != _ATOMIC_STORE:
        run.checked(memory.load(number, pointer.offset, active, step.place))
    kind, update, accumulates = _ATOMIC[op]
    dtype = dtype_of(number)
    if op in (227, 232, 233):
        operand = np.ones(1, dtype)
    elif op == _EXCHANGE:
        new, old = run.value(step.operands[4]), run.value(step.operands[5])
        operand = np.stack(np.broadcast_arrays(new.view(dtype), old.view(dtype)), 1)
    else:
        operand = run.value(step.operands[3]).view(dtype)
    if mask is not None:
        operand = take(operand, np.flatnonzero(mask))
    if kind in ("s", "u") and kind != {"int": "s", "uint": "u"}[number.kind]:
        number = Number("int" if kind == "s" else "uint", number.nbytes)
        operand = operations.integers(operand, kind)
    before = memory.change(number, pointer.offset, active, operand, update, accumulates=accumulates)
    before = before.view(dtype)
    run._record("atomic", pointer, active)
    if op == _EXCHANGE:
        units = memory.addresses(number, pointer.offset, active) // memory.unit
        run._exchanged.setdefault(memory, []).append(units << 32 | active.who)
    if mask is None:
        return before
    return merge(np.zeros(len(mask), dtype), before, np.flatnonzero(mask), len(mask))


def _subgroup(run: Run, step: Step) -> Value:
    active, size = run._active, run.settings.subgroup_size
    subgroup = run._order.subgroup(active.who)
    _, rows = np.unique(subgroup, return_inverse=True)
    where = subgroups.Subgroups(rows, active.who % run.group_size % size, size)
    ids, operation = step.operands[1:], 0
    if step.op == 342 or 349 <= step.op <= 364:
        operation, ids = ids[0], ids[1:]
    values = [run.value(id_) for id_ in ids]
    found = subgroups.execute(step.op, where, operation, values)
    number = scalar_of(run.program.type(step.type))
    assert number is not None
    dtype = dtype_of(number)
    return found if dtype.kind == "b" or found.dtype == dtype else found.view(dtype)


def _nothing(run: Run, step: Step) -> None:
    pass


_HANDLERS: dict[int, Callable[[Run, Step], Any]] = {
    **dict.fromkeys(operations.TABLE, _arithmetic),
    **dict.fromkeys(_ATOMIC, _atomic), _ATOMIC_STORE: _atomic,
    **dict.fromkeys(subgroups.OPCODES, _subgroup),
    0: _nothing, 256: _nothing, 257: _nothing, 5630: _nothing,
    1: _undefined, 12: _glsl, 57: _call, 59: _declare, 61: _load, 62: _store, 63: _copy_memory,
    65: _access, 66: _access, 68: _array_length,
    77: _dynamic, 78: _dynamic_insert, 79: _shuffle, 80: _construct, 81: _extract, 82: _insert,
    83: _copy, 400: _copy, 124: _bitcast, 169: _select, 224: _barrier, 225: _memory_barrier,
}  # fmt: skip
"""By opcode."""
