"""Runs the invocations of a dispatch, block by block.

Invocations are in different blocks of a function after a branch. Each workgroup executes the first
block that any of its invocations has reached; as a construct comes before the block where it
merges, they meet there again. Invocations of several workgroups that are in the same block execute
it together.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from copy import copy
from typing import Any, TypeAlias

import numpy as np

from vkops.errors import OutOfDeviceMemoryError
from vkops.interpreter import operations, subgroups
from vkops.interpreter.instructions import HANDLERS
from vkops.interpreter.memory import Active, Memory, Register, Variable
from vkops.interpreter.observer import EVENTS, Observer
from vkops.interpreter.operations import Array
from vkops.interpreter.program import BasicBlock, Decoded, Function
from vkops.interpreter.state import Frame, State, TooManyInstructionsError
from vkops.interpreter.values import Choice, Pointer, Value, merge, take
from vkops.shaders.binary import Decoration, Op
from vkops.shaders.grammar import BUILT_IN
from vkops.shaders.layout import Member, Struct

MAX_TOGETHER = 1 << 16
"""Invocations that run together, in whole workgroups."""

_PATIENCE = 256
"""Iterations of a loop after which it alternates with other workgroups: it may wait for them."""


class _EndlessLoopError(Exception):
    """A loop that does not end was reported."""


_FOR_ALL = (Op.Select, Op.ControlBarrier, Op.MemoryBarrier, *subgroups.OPERATIONS)
"""Instructions that are not executed for some invocations after others, and OpSelect."""

Call: TypeAlias = "Generator[Any, Value | None, Any]"
"""A call of a function, or a part of it: it yields the calls in it, and is sent their results."""


class Run(State):
    """A dispatch of a shader.

    Afterwards, the memory has the results, and ``executed`` is the number of instructions, by
    invocation. ``stopped`` says whether it stopped at a loop that does not end.
    """

    def __init__(self, *arguments: Any, observers: Sequence[Observer] = ()) -> None:
        super().__init__(*arguments)
        self.has_addresses = any(each.needs_addresses for each in observers)
        for observer in observers:
            observer.machine = self
            for name in EVENTS:
                if getattr(type(observer), name) is not getattr(Observer, name):
                    self.told[name].append(getattr(observer, name))

    def run(self) -> None:
        """Run all workgroups, many at a time; stop at a loop that does not end."""
        count = int(np.prod(self.groups))
        together = max(1, MAX_TOGETHER // self.group_size)
        step = -1 if self.settings.order == "descending" else 1
        if self.program.has_atomics and step == 1:  # to find those that wait for later ones
            together = min(together, -(-count // 2))
        order = np.arange(count)
        self.tell("begin")
        with np.errstate(all="ignore"):
            for first in range(0, count, together):
                try:
                    self.begun = min(first + together, count)
                    self.run_groups(order[first : first + together][::step])
                except _EndlessLoopError:
                    self.stopped = True  # what is found later may only follow from that
                    break
                except MemoryError as error:
                    message = f"{self.step.place}: the host has no more memory available"
                    raise OutOfDeviceMemoryError(message) from error
        self.tell("end")

    def run_groups(self, groups: Array) -> None:
        """Run workgroups together."""
        size = self.group_size
        who = (groups[:, None] * size + np.arange(size)).reshape(-1)
        slots = np.arange(len(who))
        active = Active(slots, who, slots // size, len(who))
        inputs = self._inputs(who)
        shared = {id_ for declared in self.shared.values() for id_, _, _ in declared}
        for declared in self.shared.values():
            members = tuple(Member(name, 0, type_) for _, name, type_ in declared)
            nbytes = max(member.type.nbytes for member in members)
            memory = Memory("", Struct(members, nbytes), "group", len(groups), nbytes)
            memory.follow(self.program.module)
            for id_, name, type_ in declared:
                renamed = copy(memory)
                renamed.name, renamed.type = name, type_
                self.variables[id_] = Pointer(renamed, type_, 0)
        for id_, name, type_, value in self.private:
            built_in = self.program.declared.decorated(id_).get(Decoration.BUILTIN)
            if built_in is not None:
                if built_in[0] not in inputs:
                    self.refuse(f"the built-in variable {built_in[0]}")
                variable: Variable = Register(name, type_, inputs[built_in[0]])
                self.variables[id_] = Pointer(variable, type_, 0)
                continue
            if id_ not in shared:
                self.variables[id_] = Pointer(self.variable(name, type_, active), type_, 0)
            if value is not None:
                self.pointer(id_).variable.store(type_, 0, value, active)
        self.tell("workgroups", active)
        self._execute(self.program.functions[self.program.main], active)

    def _inputs(self, who: Array) -> dict[int, Array]:
        """Return built-in variables."""
        group, index = np.divmod(who, self.group_size)
        nx, ny, _ = self.groups
        lx, ly, _ = self.local
        groups = np.stack((group % nx, group // nx % ny, group // (nx * ny)), 1)
        local = np.stack((index % lx, index // lx % ly, index // (lx * ly)), 1)
        size = self.settings.subgroup_size
        lane, lanes = index % size, np.arange(size)
        masks = {
            "Eq": np.equal, "Ge": np.greater_equal, "Gt": np.greater, "Le": np.less_equal,
            "Lt": np.less,
        }  # fmt: skip

        def constant(*numbers: int) -> Array:
            return np.array([numbers], np.uint32)

        inputs = {
            "NumWorkgroups": constant(*self.groups), "WorkgroupSize": constant(*self.local),
            "WorkgroupId": groups.astype(np.uint32), "LocalInvocationId": local.astype(np.uint32),
            "GlobalInvocationId": (groups * self.local + local).astype(np.uint32),
            "LocalInvocationIndex": index.astype(np.uint32), "SubgroupSize": constant(size)[0],
            "NumSubgroups": constant(-(-self.group_size // size))[0],
            "SubgroupId": (index // size).astype(np.uint32),
            "SubgroupLocalInvocationId": lane.astype(np.uint32),
            "DeviceIndex": constant(0)[0],
        }  # fmt: skip
        for name, compare in masks.items():
            inputs[f"Subgroup{name}Mask"] = subgroups.words(compare(lanes, lanes[:, None]))[lane]
        return {BUILT_IN[name]: values for name, values in inputs.items()}

    def _execute(self, function: Function, active: Active) -> None:
        """Execute a function and those that it calls, to any depth."""
        calls, result = [self.call(function, [], active)], None
        while calls:
            try:
                calls.append(calls[-1].send(result))
                result = None
            except StopIteration as end:
                calls.pop()
                result = end.value

    def call(self, function: Function, arguments: Sequence[Value], active: Active) -> Call:
        """Execute a function's blocks, and return its results for all; yield calls in it."""
        self.tell("enter", function, active)
        saved = self.frame, self.values, self.active
        frame = self.frame = Frame(function, len(active.slots))
        for id_, value in zip(function.parameters, arguments, strict=True):
            frame.values[id_] = merge(None, value, active.at, active.together)
        frame.waiting[0] = [active.slots]
        while frame.waiting:
            number, slots = self._next(frame)
            groups = slots // self.group_size
            is_all = len(slots) == len(active.slots)
            who = active.who if is_all else active.who[np.searchsorted(active.slots, slots)]
            rest = frame if len(slots) == frame.live else None
            self.active = Active(slots, who, groups, active.together, rest)
            self.values = {}
            block = function.blocks[number]
            targets = yield from self._block(frame, block)
            for target, mask in targets:
                self._branch(frame, block, target, mask)
        self.frame, self.values, self.active = saved
        self.tell("leave", function, active)
        return frame.result

    def _next(self, frame: Frame) -> tuple[int, Array]:
        """Remove the block to execute next from those that wait; with its invocations."""
        waiting = frame.waiting
        number = min(waiting)
        done, _ = frame.iterations.get(number, (0, 0))
        if len(waiting) > 1 and done >= _PATIENCE and done % 2:
            # Workgroups of which no invocation waits in an earlier block.
            busy = np.concatenate(waiting[number]) // self.group_size
            for later in sorted(waiting)[1:]:
                slots = np.concatenate(waiting[later])
                free = ~np.isin(slots // self.group_size, busy)
                if free.any():
                    chosen, rest = slots[free], slots[~free]
                    del waiting[later]
                    if len(rest):
                        waiting[later] = [rest]
                    return later, np.sort(chosen)
                busy = np.concatenate((busy, slots // self.group_size))
        parts = waiting.pop(number)
        return number, parts[0] if len(parts) == 1 else np.sort(np.concatenate(parts))

    def _branch(self, frame: Frame, block: BasicBlock, target: int, mask: Array | None) -> None:
        """Let invocations go to a block, and give its phis their values."""
        number = frame.function.numbers[target]
        to = frame.function.blocks[number]
        active = self.active if mask is None else self.active.some(mask)
        if mask is not None and len(active.slots) == len(self.active.slots):
            active, mask = self.active, None
        if number <= block.number:
            done, fewest = frame.iterations.get(number, (0, len(active.slots)))
            if len(active.slots) < fewest:  # some have left it
                done, fewest = 0, len(active.slots)
            frame.iterations[number] = done + 1, fewest
            if done >= self.settings.max_iterations:
                message = f"did not end: no invocation left it in {done:,} iterations"
                self.report("loop", message, active.who, place=to.steps[0].place)
                raise _EndlessLoopError
        elif to.is_loop:
            frame.iterations.pop(number, None)
        self.tell("branch", block, to, active)
        chosen = None if mask is None else np.flatnonzero(mask)
        chosen_values = []
        for phi in to.phis:
            pairs = dict(zip(phi.operands[1::2], phi.operands[::2], strict=True))
            if block.label in pairs:
                chosen_values.append((phi.result, take(self.raw(pairs[block.label]), chosen)))
        for id_, value in chosen_values:
            self._put(frame, id_, value, active)
        frame.waiting.setdefault(number, []).append(active.slots)

    def _put(self, frame: Frame, id_: int, value: Value, active: Active) -> None:
        old = None if active.rest is frame else frame.values.get(id_)
        frame.values[id_] = merge(old, value, active.at, active.together)

    def _block(self, frame: Frame, block: BasicBlock) -> Call:
        """Execute a block, and return where invocations go; yield calls of functions."""
        self.executed += len(self.active.slots) * len(block.steps)
        if self.executed > self.settings.max_instructions:
            raise TooManyInstructionsError
        before, after = self.told["instruction"], self.told["result"]
        self.tell("block", block)
        for step in block.steps[:-1]:
            self.step = step
            for tell in before:
                tell(step)
            if step.op == Op.FunctionCall:
                function = self.program.functions[step.operands[0]]
                arguments = [self.raw(id_) for id_ in step.operands[1:]]
                value = yield self.call(function, arguments, self.active)
                value = None if value is None else take(value, self.active.at)
            else:
                handler = HANDLERS.get(step.op)
                if handler is None:
                    self.refuse()
                value = self._handled(handler, step)
            for tell in after:
                tell(step, value)
            if step.result and value is not None:
                self.values[step.result] = value
                if step.escapes:
                    self._put(frame, step.result, value, self.active)
        step = self.step = block.steps[-1]
        for tell in before:
            tell(step)
        op, operands = step.op, step.operands
        if op == Op.Branch:
            return [(operands[0], None)]
        if op == Op.BranchConditional:
            condition = self.value(operands[0])
            if len(condition) == 1:
                return [(operands[1] if condition[0] else operands[2], None)]
            pairs = ((operands[1], condition), (operands[2], ~condition))
            return [(target, mask) for target, mask in pairs if mask.any()]
        if op == Op.Switch:
            return self._switch(operands)
        if op in (Op.Return, Op.ReturnValue):
            if op == Op.ReturnValue:
                active, value = self.active, self.raw(operands[0])
                frame.result = merge(frame.result, value, active.at, active.together)
        elif op not in (Op.Kill, Op.Unreachable, Op.TerminateInvocation):
            self.refuse()
        frame.live -= len(self.active.slots)
        return []

    def _handled(
        self, handler: Callable[[State, Decoded], Value | None], step: Decoded
    ) -> Value | None:
        """Execute an instruction, once for each variable that its pointers point into."""
        if not self.program.has_variable_pointers or step.op in _FOR_ALL:
            return handler(self, step)
        for id_ in step.ids[: 1 if step.op == Op.Store else None]:
            if id_ in self.values or id_ in self.frame.values:
                value = self.raw(id_)
                if isinstance(value, Choice):
                    break
        else:
            return handler(self, step)
        return self.spread(id_, value, lambda: self._handled(handler, step))

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
