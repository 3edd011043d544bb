"""Results that are computed, but not used by a selection.

HLSL before 2021, which glslang compiles, evaluates both sides of ``?:``, ``&&`` and ``||``.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from vkops.interpreter import composites, operations
from vkops.interpreter.program import Decoded, ShaderProgram
from vkops.shaders.binary import HLSL, Op

_OPERATORS = {Op.Select: "?:", Op.LogicalAnd: "&&", Op.LogicalOr: "||"}
_WITHOUT_EFFECT = {
    *operations.TABLE, *composites.TABLE, Op.CompositeConstruct, Op.Bitcast, Op.CopyObject,
    Op.AccessChain, Op.InBoundsAccessChain, Op.Load, Op.ImageRead, Op.ImageFetch,
} - {*_OPERATORS}  # fmt: skip


class Selection(NamedTuple):
    """An instruction that uses a result only if the boolean ``condition`` has a value."""

    op: int
    condition: int
    value: bool

    def note(self, language: int) -> str:
        """Return the end of a message about a result that is not used."""
        if language == HLSL:
            text = f"this side of {_OPERATORS[self.op]} is not chosen, but HLSL before 2021, "
            return f"{text}which glslang compiles, evaluates both: use if"
        return "this operand of a selection is not chosen, but both are evaluated: use a branch"


def selections(program: ShaderProgram, result: int) -> Iterator[Selection]:
    """Yield the selections that a result is passed through, if it is used for nothing else."""
    while len(users := program.users.get(result, [])) == 1:
        (step,) = users
        if step.op == Op.Select and result != step.operands[0]:
            yield Selection(step.op, _scalar(program, step), result == step.operands[1])
        elif step.op in (Op.LogicalAnd, Op.LogicalOr) and result == step.operands[1]:
            yield Selection(step.op, step.operands[0], step.op == Op.LogicalAnd)
        elif step.op not in _WITHOUT_EFFECT:
            return
        result = step.result


def _scalar(program: ShaderProgram, step: Decoded) -> int:
    """Return the condition of OpSelect; if it is a vector of one boolean, return this boolean."""
    condition = step.operands[0]
    made = program.made.get(condition)
    is_same = made and made.op == Op.CompositeConstruct and len({*made.operands}) == 1
    return made.operands[0] if made and is_same else condition
