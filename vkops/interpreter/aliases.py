"""The check of blocks and buffer references that are declared ``restrict``."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence

import numpy as np

from vkops.interpreter.memory import Active, MemoryVariable
from vkops.interpreter.observer import Observer
from vkops.interpreter.operations import Array
from vkops.interpreter.order import LANE_BITS, LANES
from vkops.interpreter.program import Decoded, Function, ShaderProgram
from vkops.interpreter.races import PAST, VERBS
from vkops.interpreter.values import Pointer
from vkops.shaders.binary import Decoration, Op, Storage

_CHAINS = (Op.AccessChain, Op.InBoundsAccessChain, Op.PtrAccessChain, Op.InBoundsPtrAccessChain)

_AccessPath = MemoryVariable | tuple[int, bool]
"""A block; or a restrict reference, with False for accesses through it, and True for others."""


class Aliases(Observer):
    """Finds accesses to the same memory in two ways, of which one is restrict and one writes.

    A restrict reference must be the only way to its memory until the function that declares it
    returns. A pointer that may be derived from the reference is not reported.
    """

    def begin(self) -> None:
        run, has = self.machine, self.machine.program.declared.has
        pointers_of = {id_: v if isinstance(v, tuple) else (v,) for id_, v in run.variables.items()}
        known = [(id_, each.variable) for id_, pointers in pointers_of.items() for each in pointers]
        self._restrict = {memory for id_, memory in known if has(id_, Decoration.RESTRICT)}
        self._others: dict[MemoryVariable, list[MemoryVariable]] = {}
        for id_, memory in known:
            others = [m for n, m in known if n != id_ and memory.shadow is m.shadow is not None]
            others = [other for other in others if {memory, other} & self._restrict]
            self._others |= {memory: others} if others else {}
        self._references = References(run.program)
        self._live: list[int] = []
        self._inside: list[list[int]] = []  # calls: the function, and how many are in it
        # The last reads and changes of each unit, each with the invocation, encoded as in Shadow.
        self._seen: dict[_AccessPath, Array] = {}
        for memory in self._others:
            self._seen[memory] = np.zeros((2, memory.units), np.int64)

    def enter(self, function: Function, active: Active) -> None:
        memory, declared = self.machine.tensor_memory, self._references.declared(function)
        self._live += declared
        self._inside.append([function.id, len(active.slots)])
        for way in ((id_, other) for id_ in declared for other in (False, True)):
            self._seen[way] = np.zeros((2, memory.units if memory else 0), np.int64)

    def leave(self, function: Function, active: Active) -> None:
        """Forget the references of a call when all invocations have left it, perhaps in parts."""
        call = next(each for each in reversed(self._inside) if each[0] == function.id)
        call[1] -= len(active.slots)
        if not call[1]:
            self._inside.remove(call)
            for id_ in self._references.declared(function):
                self._live.remove(id_)

    def _ways(self, kind: str, memory: MemoryVariable) -> Iterator[tuple[_AccessPath, _AccessPath]]:
        """Yield the ways of an access, each with the way that excludes it."""
        for other in self._others.get(memory, ()):
            yield memory, other
        step = self.machine.step
        if self._live and memory is self.machine.tensor_memory and step.op != Op.ExtInst:
            pointer = step.operands[step.op == Op.CopyMemory and kind == "read"]
            through, sources = self._references.through(pointer), self._references.sources(pointer)
            for id_ in self._live:
                if id_ == through or id_ not in sources:
                    yield (id_, id_ != through), (id_, id_ == through)

    def access(self, kind: str, pointer: Pointer, active: Active) -> None:
        memory, run = pointer.variable, self.machine
        if memory not in self._others and not self._live:
            return
        ways, first = [*self._ways(kind, memory)], int(kind == "read")  # two reads do not conflict
        for units in memory.touched(pointer.type, pointer.offset, active) if ways else ():
            code = run.time << LANE_BITS | (active.who[: len(units), None] + 1)
            for way, other in ways:
                codes = self._seen[other][first:, units].max(0)
                if codes.any():
                    self._report(kind, memory, other, codes, units, active.who)
                self._seen[way][1 - first, units] = code

    def _report(
        self,
        kind: str,
        memory: MemoryVariable,
        way: _AccessPath,
        codes: Array,
        units: Array,
        who: Array,
    ) -> None:
        run, place, rows = self.machine, self.machine.step.place, codes.any(1)
        row = run.example(rows, who)
        at = row, int(codes[row].argmax())
        unit, code = int(units[at]), int(codes[at])
        did = PAST["written" if self._seen[way][1, unit] == code else "read"]
        where = run.access_places[code >> LANE_BITS]
        one = memory.element(memory.place_of(unit))
        if isinstance(way, MemoryVariable):
            two = way.element(way.place_of(unit))
            block, name = (memory, one) if memory in self._restrict else (way, two)
            head = f"the same memory as '{two}', and '{block.name or name.partition('[')[0]}' is"
            now, then, key = "", f"as '{two}'", two
        else:
            key = run.program.name(way[0])
            head = f"the memory of '{key}', which is"
            then, now = f"through '{key}'", "through another reference"
            then, now = (now, f" {then}") if way[1] else (then, f" {now}")
        message = (
            f"'{one}' is {head} declared restrict: the first invocation {VERBS[kind]}{now}, "
            f"the second {did} {then}{where.seen_from(place)}"
        )
        pair = np.array([who[row], (code & LANES) - 1])
        run.report("restrict", message, pair, f"{key} {where}", place, where, int(rows.sum()))


class References:
    """The ids of the variables and parameters that hold restrict references.

    The ids that a pointer may be derived from are collected over all paths, so that the check never
    takes a copy of a reference for another reference.
    """

    def __init__(self, program: ShaderProgram) -> None:
        decorated = program.declared.decorations.items()
        self.restrict = {id_ for (id_, *_), own in decorated if Decoration.RESTRICT_POINTER in own}
        self._program = program
        self._declared: dict[int, Sequence[int]] = {}
        self._chains: dict[int, int] = {}  # the root of a chain of accesses
        self._loads: dict[int, int] = {}  # the variable from which a value is loaded
        self._sources: defaultdict[int, set[int]] = defaultdict(set)
        self._known: dict[int, set[int]] = {}
        for id_, function in program.functions.items() if self.restrict else ():
            own = {*function.parameters, *(step.result for step in function.steps)}
            self._declared[id_] = sorted(self.restrict & own)
            for step in function.steps:
                self._add(id_, step)

    def _add(self, function: int, step: Decoded) -> None:
        first, *rest = (*step.operands, 0)
        if step.op in _CHAINS:
            self._chains[step.result] = self._root(first)
            self._sources[step.result].add(first)
        elif step.op == Op.Load:
            self._loads[step.result] = self._root(first)
            self._sources[step.result] |= {first, self._variable(first)}
        elif step.op == Op.Store:
            self._sources[self._variable(first)].add(rest[0])
        elif step.op == Op.FunctionCall:
            self._sources[step.result].add(first)
            parameters = self._program.functions[first].parameters
            for parameter, given in zip(parameters, rest, strict=False):
                self._sources[parameter].add(given)
                self._sources[self._variable(given)].add(parameter)
        else:
            self._sources[step.result or function].update(step.ids)

    def _root(self, pointer: int) -> int:
        return self._chains.get(pointer, pointer)

    def _variable(self, pointer: int) -> int:
        """Return the variable that a pointer points into; 0 means memory with an address."""
        root = self._root(pointer)
        type_ = self._program.declared.defined[self._program.value_types[root]]
        is_address = type_.op != Op.TypePointer or type_.words[1] == Storage.PHYSICAL
        return 0 if is_address else root

    def declared(self, function: Function) -> Sequence[int]:
        """Return the restrict references that a function declares."""
        return self._declared.get(function.id, ())

    def through(self, pointer: int) -> int:
        """Return the variable from which a pointer is loaded; 0 if there is none."""
        return self._loads.get(self._root(pointer), 0)

    def sources(self, pointer: int) -> set[int]:
        """Return the ids of all values that a pointer can be derived from."""
        if pointer not in self._known:
            seen, rest = {pointer}, [pointer]
            while rest:
                new = self._sources[rest.pop()] - seen
                seen |= new
                rest += new
            self._known[pointer] = seen
        return self._known[pointer]
