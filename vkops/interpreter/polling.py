"""The loops of a shader that may wait for other invocations."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable

from vkops.interpreter.program import Decoded, Function, ShaderProgram
from vkops.shaders.binary import Op

_CHAINS = (
    Op.AccessChain, Op.InBoundsAccessChain, Op.PtrAccessChain, Op.InBoundsPtrAccessChain,
    Op.CopyObject,
)  # fmt: skip


class Polling:
    """The blocks of loops whose condition depends on memory that other invocations can change.

    That is the memory of ``shared`` variables, and the memory behind pointers whose variable is not
    known, if it is read in the loop or in functions that it calls. The analysis ignores the order
    of instructions, so it also finds some loops that never wait.
    """

    def __init__(self, program: ShaderProgram, shared: Collection[int]) -> None:
        self._made = program.made
        outside = program.declared.variables()
        self._outside = {id_: id_ in shared for id_, _, _ in outside}
        self._stored: defaultdict[int, set[int]] = defaultdict(set)  # by the variable
        self._reading: set[int] = set()  # functions
        self._functions = functions = program.functions
        before = -1
        for function in functions.values():
            for step in function.steps:
                self._note(step)
        while before < len(self._reading):
            before = len(self._reading)
            self._reading |= {
                id_ for id_, function in functions.items() if any(map(self._reads, function.steps))
            }
        self._blocks = {id_: frozenset(self._polling(each)) for id_, each in functions.items()}

    def __bool__(self) -> bool:
        return any(self._blocks.values())

    def blocks(self, function: Function) -> frozenset[int]:
        """Return the numbers of the blocks of a function that are in such loops."""
        return self._blocks[function.id]

    def reading_blocks(self) -> frozenset[tuple[int, int]]:
        """Return the blocks that read shared memory, as pairs of function and number."""
        return frozenset(
            (function.id, block.number)
            for function in self._functions.values()
            for block in function.blocks
            if any(step.op != Op.FunctionCall and self._reads(step) for step in block.steps)
        )

    def _root(self, id_: int) -> int:
        while (step := self._made.get(id_)) is not None and step.op in _CHAINS:
            id_ = step.operands[0]
        return id_

    def _note(self, step: Decoded) -> None:
        if step.op == Op.Store:
            self._stored[self._root(step.operands[0])].add(step.operands[1])
        elif step.op == Op.CopyMemory:
            self._stored[self._root(step.operands[0])].add(self._root(step.operands[1]))
        elif step.op == Op.FunctionCall:  # it may store through pointer arguments
            for argument in step.operands[1:]:
                self._stored[self._root(argument)].add(step.result)

    def _reads(self, step: Decoded) -> bool:
        """Whether an instruction reads memory that other invocations can change."""
        if step.op == Op.Load:
            root = self._root(step.operands[0])
            is_local = root in self._made and self._made[root].op == Op.Variable
            return self._outside.get(root, not is_local)
        if step.op == Op.FunctionCall:
            return step.operands[0] in self._reading
        return step.op in Op.ATOMICS or step.op == Op.ImageRead

    def _polling(self, function: Function) -> Iterable[int]:
        for first in function.blocks:
            if first.is_loop:
                end = function.numbers.get(first.merge, len(function.blocks))
                body = function.blocks[first.number : end]
                ends = [block.steps[-1] for block in body if block.steps]
                branches = (Op.BranchConditional, Op.Switch)
                if self._depends(end.operands[0] for end in ends if end.op in branches):
                    yield from range(first.number, end)

    def _depends(self, ids: Iterable[int]) -> bool:
        """Whether a value depends on memory that other invocations can change."""
        rest, seen = [*ids], set[int]()
        while rest:
            id_ = rest.pop()
            if id_ in seen:
                continue
            seen.add(id_)
            rest += self._stored.get(id_, ())
            step = self._made.get(id_)
            if step is None:
                continue
            if self._reads(step):
                return True
            if step.op == Op.Load:
                rest.append(self._root(step.operands[0]))
            elif step.op != Op.Variable:
                rest += step.ids
        return False
