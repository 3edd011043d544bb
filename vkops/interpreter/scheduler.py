"""Runs the invocations of a dispatch, block by block.

After a branch, invocations are in different blocks of a function. Each workgroup executes the first
block that any of its invocations has reached. A construct comes before the block where its paths
merge, so the invocations meet there again. Invocations of several workgroups that are in the same
block execute it together.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import copy
from typing import Any, NoReturn

import numpy as np

from vkops.errors import OutOfDeviceMemoryError
from vkops.interpreter import operations, schedules, subgroups
from vkops.interpreter.instructions import HANDLERS
from vkops.interpreter.memory import Active, MemoryVariable, Register, Variable
from vkops.interpreter.observer import EVENTS, Observer
from vkops.interpreter.operations import Array
from vkops.interpreter.polling import Polling
from vkops.interpreter.program import BasicBlock, Decoded, Function
from vkops.interpreter.state import (
    FORWARD_PROGRESS,
    Caller,
    Frame,
    State,
    TooManyInstructionsError,
)
from vkops.interpreter.turns import Turns
from vkops.interpreter.values import Choice, Pointer, Value, merge, take
from vkops.interpreter.waits import INVOCATION, SUBGROUP, Waits
from vkops.shaders.binary import Decoration, Op
from vkops.shaders.grammar import BUILT_IN
from vkops.shaders.layout import Member, StructType

MAX_TOGETHER = 1 << 16
"""The number of invocations that run together, in whole workgroups."""

_STRICT, _AT_BARRIERS, _OTHER_SUBGROUPS, _ALL = range(4)
"""The invocations that may continue while others of their workgroup wait: none; none, except at
barriers, which then do not wait for invocations elsewhere; those of other subgroups; or all."""


class _EndlessLoopError(Exception):
    """An endless loop was reported."""


_FOR_ALL = (Op.Select, Op.ControlBarrier, Op.MemoryBarrier, *subgroups.OPERATIONS)
"""Instructions that are executed for all invocations together, and OpSelect."""


class Run(State):
    """The execution of a dispatch of a shader.

    Afterwards, the memory has the results, and ``executed`` is the number of instructions, counted
    for each invocation. ``stopped`` says whether the run stopped at an endless loop.
    """

    def __init__(self, *arguments: Any, observers: Sequence[Observer] = ()) -> None:
        super().__init__(*arguments)
        self.has_addresses = any(each.needs_addresses for each in observers)
        self._live: Array = np.zeros(0, np.int64)
        self._jumped = self.step.place, self._live
        for observer in observers:
            observer.machine = self
            for name in EVENTS:
                if getattr(type(observer), name) is not getattr(Observer, name):
                    self.told[name].append(getattr(observer, name))

    def run(self) -> None:
        """Run all workgroups, many at a time; stop at an endless loop."""
        count = int(np.prod(self.groups))
        together = max(1, MAX_TOGETHER // self.group_size)
        subgroups_ = -(-self.group_size // self.settings.subgroup_size)
        sizes = schedules.Sizes(count, subgroups_, together, self.program.has_atomics)
        polling = Polling(self.program, self._shared_variables())
        self.waits = Waits(self, polling) if polling else None
        self._polling = polling
        self.tell("begin")
        with np.errstate(all="ignore"):
            for batch in schedules.batches(self.settings.schedule, sizes):
                try:
                    self.begun += len(batch.groups)
                    self.run_groups(batch)
                except _EndlessLoopError:
                    self.stopped = True  # later findings may only be consequences of it
                    break
                except MemoryError as error:
                    message = f"{self.step.place}: the host has no more memory available"
                    raise OutOfDeviceMemoryError(message) from error
        self.tell("end")

    def _shared_variables(self) -> set[int]:
        """Return the ids of variables that invocations share and can change."""
        shared = {id_ for declared in self.shared.values() for id_, _, _ in declared}
        for id_, pointers in self.variables.items():
            each = pointers if isinstance(pointers, tuple) else (pointers,)
            shared |= {id_ for pointer in each if pointer.variable.shadow is not None}
        return shared

    def run_groups(self, batch: schedules.Batch) -> None:
        """Run workgroups together."""
        groups, size = batch.groups, self.group_size
        who = (groups[:, None] * size + np.arange(size)).reshape(-1)
        slots = np.arange(len(who))
        active = self.all = Active(slots, who, slots // size, len(who))
        self.turns = None if batch.turns is None else Turns(self, batch, self._polling)
        self._live = np.full(len(groups), size)
        inputs = self._inputs(who)
        shared = {id_ for declared in self.shared.values() for id_, _, _ in declared}
        for declared in self.shared.values():
            members = tuple(Member(name, 0, type_) for _, name, type_ in declared)
            nbytes = max(member.type.nbytes for member in members)
            memory = MemoryVariable("", StructType(members, nbytes), "group", len(groups), nbytes)
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
        """Return the built-in variables by number."""
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
        """Execute a function and the functions that it calls, to any depth.

        Invocations can be in blocks of several calls; the last call is continued first.
        """
        self.frames = []
        if self.waits is not None:
            self.waits.begin(active)
        self._enter(function, [], active, None)
        while self.frames:
            frame = self.frames[-1]
            if self.turns is not None or (self.waits is not None and self.waits.are_any):
                for call in self.frames[::-1]:
                    if call.returned:
                        self._leave(call)
                if not self.frames:
                    break
                frame, number, slots = self._chosen()
            elif frame.live:
                number = min(frame.waiting)
                slots = _joined(frame.waiting.pop(number))
            else:
                self._leave(frame)
                continue
            self.frame, self.values, self.active = frame, {}, self._active(frame, slots)
            block = frame.function.blocks[number]
            branches = self._block(frame, block)
            has_jumped = False
            for target, mask in branches:
                has_jumped |= self._branch(frame, block, target, mask)
            if self.turns is not None and self.turns.executed(frame, number, has_jumped=has_jumped):
                self._repeat()

    def _active(self, frame: Frame, slots: Array) -> Active:
        """Return the invocations with these slots, which continue a call."""
        all_, rest = self.all, frame if len(slots) == frame.live else None
        if len(slots) == all_.together:
            return Active(all_.slots, all_.who, all_.groups, all_.together, rest)
        return Active(slots, all_.who[slots], all_.groups[slots], all_.together, rest)

    def _enter(
        self, function: Function, arguments: Sequence[Value], active: Active, caller: Caller | None
    ) -> None:
        """Start a call of a function for invocations."""
        self.tell("enter", function, active)
        is_polling = self.waits is not None and self.waits.is_polling and caller is not None
        frame = Frame(function, len(active.slots), caller, is_polling)
        for id_, value in zip(function.parameters, arguments, strict=True):
            frame.values[id_] = merge(None, value, active.at, active.together)
        frame.waiting[0] = [active.slots]
        self.frames.append(frame)

    def _leave(self, frame: Frame) -> None:
        """Let the invocations that have returned continue after the call."""
        slots, frame.returned = _joined(frame.returned), []
        if not frame.live:
            self.frames.remove(frame)
            if self.waits is not None:
                self.waits.leave(frame)
        caller = frame.caller
        if caller is None:
            self.tell("leave", frame.function, self._active(frame, slots))
            np.subtract.at(self._live, slots // self.group_size, 1)
            return
        self.frame, self.values = caller.frame, {}
        self.active = active = self._active(caller.frame, slots)
        self.tell("leave", frame.function, active)
        self.step = step = caller.step
        value = None if frame.result is None else take(frame.result, active.at)
        for tell in self.told["result"]:
            tell(step, value)
        if step.escapes and value is not None:
            self._put(caller.frame, step.result, value, active)
        caller.frame.waiting.setdefault(caller.number, []).append(slots)

    def _chosen(self) -> tuple[Frame, int, Array]:
        """Remove and return the next block to execute, if some invocations wait or take turns.

        The other invocations of the workgroup wait, too, because Vulkan does not guarantee that
        they continue. Only if no invocation can be executed otherwise, they continue: first those
        of other subgroups, then those of the same subgroup.
        """
        waits = self.waits
        for relaxed in _STRICT, _AT_BARRIERS, _OTHER_SUBGROUPS, _ALL:
            ready = [
                (frame, number, slots)
                for frame in reversed(self.frames)
                for number in sorted(frame.waiting)
                if len(slots := self._ready(frame, number, relaxed))
            ]
            if waits is not None:
                waits.level = INVOCATION if relaxed == _ALL else ""
                if relaxed == _OTHER_SUBGROUPS and self.turns is not None:
                    waits.level = SUBGROUP
            if ready:
                return self._taken(ready)
            if relaxed == _AT_BARRIERS and waits is not None and waits.wake_naps():
                return self._chosen()
        return self._hang()

    def _ready(self, frame: Frame, number: int, relaxed: int) -> Array:
        """Return the invocations that can execute a block."""
        slots = _joined(frame.waiting[number])
        frame.waiting[number] = [slots]
        groups = slots // self.group_size
        can = np.ones(len(slots), bool)
        if self.waits is not None and relaxed <= _OTHER_SUBGROUPS:
            rounds = relaxed == _STRICT and self.turns is not None and self.turns.has_rounds
            can = ~self.waits.holds(slots, by_subgroup=rounds or relaxed == _OTHER_SUBGROUPS)
            if rounds and self.turns is not None:
                can &= self.turns.may(slots, self.waits.sleepers())
        if frame.function.blocks[number].is_barrier and relaxed != _AT_BARRIERS:
            counts = np.bincount(groups, minlength=len(self._live))
            can &= (counts == self._live)[groups]
        return slots[can]

    def _taken(self, ready: list[tuple[Frame, int, Array]]) -> tuple[Frame, int, Array]:
        """Remove and return the first block; with turns, only for subgroups whose turn it is."""
        if self.turns is not None:
            ready = self.turns.of_turn(ready)
        frame, number, slots = ready[0]
        (all_,) = frame.waiting.pop(number)
        if len(slots) < len(all_):
            frame.waiting[number] = [np.setdiff1d(all_, slots, assume_unique=True)]
        return frame, number, slots

    def _hang(self) -> NoReturn:
        """Report that no invocation can continue."""
        assert self.waits is not None
        slots, place, names, has_counted = self.waits.hang()
        count, who = int(np.prod(self.groups)), self.all.who[slots]
        if self.begun < count:
            text = "needs forward progress of a workgroup that need not have begun: waits for "
            text += (
                f"{names or 'memory'} to change, while {self.begun:,} of {count:,} workgroups ran"
            )
            self.report(FORWARD_PROGRESS, text, who, place=place)
        elif has_counted or not names:
            self.report("loop", self._endless, who, place=place)
        else:
            self.report(
                "loop", f"did not end: waits for {names}, which nothing changes", who, place=place
            )
        raise _EndlessLoopError

    def _repeat(self) -> NoReturn:
        """Report invocations that take turns, and return to a state that they were in before."""
        place, who = self._jumped
        if self.begun < (count := int(np.prod(self.groups))):
            text = "needs forward progress of a workgroup that need not have begun: invocations "
            text += "that take turns come back to the same state for ever, while "
            text += f"{self.begun:,} of {count:,} workgroups ran"
            self.report(FORWARD_PROGRESS, text, who, place=place)
        else:
            text = "need not end: invocations that take turns come back to the same state for ever"
            self.report("loop", text, who, place=place)
        raise _EndlessLoopError

    @property
    def _endless(self) -> str:
        return f"did not end: no invocation left it in {self.settings.max_iterations:,} iterations"

    def _branch(self, frame: Frame, block: BasicBlock, target: int, mask: Array | None) -> bool:
        """Let invocations go to a block, and set its phis.

        Return whether they begin the next iteration of a loop.
        """
        number = frame.function.numbers[target]
        to = frame.function.blocks[number]
        active = self.active if mask is None else self.active.some(mask)
        if mask is not None and len(active.slots) == len(self.active.slots):
            active, mask = self.active, None
        key = number, 0 if self.turns is None else self.turns.team
        if number <= block.number:
            done, fewest = frame.iterations.get(key, (0, len(active.slots)))
            if len(active.slots) < fewest:  # some have left the loop
                done, fewest = 0, len(active.slots)
            frame.iterations[key] = done + 1, fewest
            self._jumped = to.steps[0].place, active.who
            if done >= self.settings.max_iterations and not self._may_wait(frame, number):
                self.report("loop", self._endless, active.who, place=to.steps[0].place)
                raise _EndlessLoopError
        elif to.is_loop:
            frame.iterations.pop(key, None)
            if self.waits is not None:
                self.waits.enter(frame, key, active)
        self.tell("branch", block, to, active)
        chosen = None if mask is None else np.flatnonzero(mask)
        chosen_values = []
        for phi in to.phis:
            pairs = dict(zip(phi.operands[1::2], phi.operands[::2], strict=True))
            if block.label in pairs:
                chosen_values.append((phi.result, take(self.raw(pairs[block.label]), chosen)))
        for id_, value in chosen_values:
            self._put(frame, id_, value, active)
        slots = active.slots
        if number <= block.number and self._may_wait(frame, number):
            assert self.waits is not None
            slots = self.waits.arrive(frame, key, active, done)
        if len(slots):
            frame.waiting.setdefault(number, []).append(slots)
        return number <= block.number

    def _may_wait(self, frame: Frame, number: int) -> bool:
        return self.waits is not None and self.waits.can_be_in(frame.function, number)

    def _put(self, frame: Frame, id_: int, value: Value, active: Active) -> None:
        old = None if active.rest is frame else frame.values.get(id_)
        frame.values[id_] = merge(old, value, active.at, active.together)

    def _block(self, frame: Frame, block: BasicBlock) -> list[tuple[int, Array | None]]:
        """Execute a block; return the labels of its branches with masks of the invocations."""
        self.executed += len(self.active.slots) * len(block.steps)
        if self.executed > self.settings.max_instructions:
            raise TooManyInstructionsError
        before, after = self.told["instruction"], self.told["result"]
        self.tell("block", block)
        if self.waits is not None:
            self.waits.block(frame, block.number)
        last = block.steps[-1]
        is_call = last.op == Op.FunctionCall
        for step in block.steps if block.is_divided and not is_call else block.steps[:-1]:
            self.step = step
            for tell in before:
                tell(step)
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
        if block.is_divided and not is_call:
            frame.waiting.setdefault(block.number + 1, []).append(self.active.slots)
            return []
        step = self.step = last
        for tell in before:
            tell(step)
        op, operands = step.op, step.operands
        if is_call:
            arguments = [self.raw(id_) for id_ in operands[1:]]
            function, caller = (
                self.program.functions[operands[0]],
                Caller(frame, block.number + 1, step),
            )
            self._enter(function, arguments, self.active, caller)
            return []
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
        frame.returned.append(self.active.slots)
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


def _joined(parts: list[Array]) -> Array:
    """Return the invocations of several arrays, sorted."""
    return parts[0] if len(parts) == 1 else np.sort(np.concatenate(parts))
