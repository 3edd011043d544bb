"""The source lines of conditions that are only variables, for which glslang emits no lines."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import chain
from typing import Any, NamedTuple

from vkops.interpreter.values import SourceLine
from vkops.shaders.binary import HLSL, Declarations, Instruction, Op

_CONDITION = re.compile(r"(?:[^/]|/(?!/))*?\b(?:if|while|switch)\b")
_SELECTIONS = (Op.BranchConditional, Op.Switch)


class Raw(NamedTuple):
    """An instruction of a block; its other attributes are those of Decoded."""

    block: Any  # a BasicBlock
    instruction: Instruction
    place: SourceLine
    has_line: bool
    scope: int


class Conditions:
    """Finds the lines of conditions in a function.

    ``heads`` has the source lines of loops by the labels of their heads.
    """

    def __init__(self, declared: Declarations) -> None:
        self._declared = declared
        self._last = SourceLine("", 0)
        self.heads: dict[int, SourceLine] = {}

    def place(
        self,
        raw: list[Raw],
        at: int,
        before: SourceLine,
        after: SourceLine,
        lines: Sequence[str],
    ) -> None:
        """Set the lines of the instructions from ``at`` on, which have none.

        They are between ``before`` and ``after``, and ``lines`` are the lines of the file. An
        instruction gets the next line with a condition between the two. It gets the line ``before``
        at the head of a loop, and at the end of && or ||, which is an OpPhi.
        """
        if self._last.file != before.file or self._last.line < before.line:
            self._last = before
        # After a loop, the line before is that of the loop's head.
        between = range(self._last.line + 1, min(after.line, len(lines)) + 1)
        places: Iterator[SourceLine] = (
            SourceLine(before.file, number)
            for number in between
            if before.file == after.file and _CONDITION.match(lines[number - 1])
        )
        if self._is_misplaced(raw[max(0, at - 3) : at], before, lines):
            at -= 1
        elif _is_condition_of_loop(raw, at):
            places = chain((before,), places)
        if raw[at:]:
            raw[at:] = self._placed(raw[at:], before, places)

    def _is_misplaced(self, raw: Sequence[Raw], before: SourceLine, lines: Sequence[str]) -> bool:
        """Whether the last instruction has a statement's line, but is a selection by a variable."""
        if not raw or raw[-1].instruction.op not in _SELECTIONS or raw[-1].place != before:
            return False
        condition, earlier = raw[-1].instruction.words[0], [each.instruction for each in raw[:-1]]
        is_loaded = any(op == Op.Load and words[1] == condition for op, words in earlier)
        is_variable = is_loaded or condition in self._declared.defined
        return is_variable and not any(map(_CONDITION.match, lines[before.line - 1 : before.line]))

    def _placed(
        self, raw: Sequence[Raw], before: SourceLine, places: Iterator[SourceLine]
    ) -> Iterator[Raw]:
        choice = 0
        if raw[0].instruction.op == Op.Phi and self._declared.language != HLSL:
            choice = raw[0].instruction.words[1]
        place = before if choice else next(places, before)
        for each in raw:
            op, words = each.instruction
            loops = [self.heads[label] for label in words[1:3] if label in self.heads]
            if op not in _SELECTIONS:
                yield each._replace(place=place)
            elif op == Op.BranchConditional and loops:  # the condition of do ... while
                yield each._replace(place=loops[0])
            else:
                if choice and words[0] != choice:
                    place = next(places, before)
                yield each._replace(place=place)
                place, choice = next(places, place), 0


def _is_condition_of_loop(raw: Sequence[Raw], at: int) -> bool:
    """Whether the first selection after the head of a loop can leave the loop.

    If so, its line is the line of the head.
    """
    head = [each.instruction for each in raw[max(0, at - 2) : at]]
    if [op for op, _ in head] != [Op.LoopMerge, Op.Branch]:
        return False
    targets = (e.instruction.words[1:] for e in raw[at:] if e.instruction.op in _SELECTIONS)
    return head[0].words[0] in next(targets, ())
