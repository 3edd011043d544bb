"""Buffer references that are declared restrict, and the pointers that are made of them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from vkops.interpreter.program import Decoded, Function, ShaderProgram
from vkops.shaders.binary import Decoration, Op, Storage

_CHAINS = (Op.AccessChain, Op.InBoundsAccessChain, Op.PtrAccessChain, Op.InBoundsPtrAccessChain)


class References:
    """The variables and parameters ``restrict`` that hold such references, by id.

    What pointers are made of is that in all paths: the check must not take a copy for another one.
    """

    def __init__(self, program: ShaderProgram) -> None:
        decorated = program.found.decorations.items()
        self.restrict = {id_ for (id_, *_), own in decorated if Decoration.RESTRICT_POINTER in own}
        self._program = program
        self._declared: dict[int, Sequence[int]] = {}
        self._chains: dict[int, int] = {}  # what a pointer points into
        self._loads: dict[int, int] = {}  # the variable that a value is read from
        self._sources: defaultdict[int, set[int]] = defaultdict(set)
        self._known: dict[int, set[int]] = {}
        for id_, function in program.functions.items() if self.restrict else ():
            steps = [s for block in function.blocks for s in (*block.phis, *block.steps)]
            own = {*function.parameters, *(s.result for s in steps if s.op == Op.Variable)}
            self._declared[id(function)] = sorted(self.restrict & own)
            for step in steps:
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
        """Return the variable that a pointer points into; 0 stands for memory with an address."""
        root = self._root(pointer)
        type_ = self._program.found.defined[self._program.value_types[root]]
        is_address = type_.op != Op.TypePointer or type_.words[1] == Storage.PHYSICAL
        return 0 if is_address else root

    def declared(self, function: Function) -> Sequence[int]:
        """Return those that a function declares."""
        return self._declared.get(id(function), ())

    def through(self, pointer: int) -> int:
        """Return the variable that a pointer is read from; 0 if there is none."""
        return self._loads.get(self._root(pointer), 0)

    def sources(self, pointer: int) -> set[int]:
        """Return the ids of all that a pointer can be made of."""
        if pointer not in self._known:
            seen, rest = {pointer}, [pointer]
            while rest:
                new = self._sources[rest.pop()] - seen
                seen |= new
                rest += new
            self._known[pointer] = seen
        return self._known[pointer]
