"""Coverage: how often the lines, branches and functions of a shader's source were executed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from vkops.interpreter.observer import Observer
from vkops.interpreter.program import BasicBlock, Decoded, Function, ShaderProgram
from vkops.interpreter.recorder import function_name
from vkops.interpreter.values import SourceLine
from vkops.shaders.binary import Op

if TYPE_CHECKING:
    from vkops.interpreter.memory import Active

_BRANCHES = (Op.BranchConditional, Op.Switch)
_WITHOUT_LINES = (Op.Variable, Op.Unreachable)


class BranchTarget(NamedTuple):
    """A target of a branch: the line it goes to, and how often it was taken.

    The line is 0 if it is not known, or if it is outside the function or the file.
    """

    line: int
    taken: int


@dataclass
class FileCoverage:
    """How often parts of a source file were executed, counted for each invocation.

    Attributes:
        lines: the counts of the lines that have instructions. The count of a line is the largest
            of its blocks in a function, and the sum over the functions that share it.
        branches: the targets of each branch, by its line and its number in the line.
        functions: the calls of each function, by its line and its name.
    """

    lines: Counter[int] = field(default_factory=Counter)
    branches: dict[tuple[int, int], list[BranchTarget]] = field(default_factory=dict)
    functions: Counter[tuple[int, str]] = field(default_factory=Counter)

    def add(self, other: FileCoverage) -> None:
        """Add the counts of another run."""
        self.lines.update(other.lines)
        self.functions.update(other.functions)
        for key, targets in other.branches.items():
            self.add_branch(key, targets)

    def add_branch(self, key: tuple[int, int], targets: list[BranchTarget]) -> None:
        """Add the counts of the targets of a branch, in order."""
        known = self.branches.setdefault(key, [])
        for number, (line, taken) in enumerate(targets):
            if number == len(known):
                known.append(BranchTarget(line, taken))
            else:
                known[number] = BranchTarget(
                    line or known[number].line, known[number].taken + taken
                )

    @property
    def targets(self) -> list[BranchTarget]:
        """The targets of all branches."""
        return [target for targets in self.branches.values() for target in targets]


class Coverage(Observer):
    """Counts how many invocations execute each block, and take each target of a branch."""

    def __init__(self) -> None:
        self._blocks: Counter[int] = Counter()  # by the identity of a block
        self._taken: Counter[tuple[int, int]] = Counter()

    def block(self, block: BasicBlock) -> None:
        self._blocks[id(block)] += len(self.machine.active.slots)

    def branch(self, block: BasicBlock, target: BasicBlock, active: Active) -> None:
        self._taken[id(block), id(target)] += len(active.slots)

    def files(self) -> dict[str, FileCoverage]:
        """Return the coverage of each file, by the names in source lines."""
        files: dict[str, FileCoverage] = {}
        for function in self.machine.program.functions.values():
            for name, counts in self._of_function(function).items():
                files.setdefault(name, FileCoverage()).add(counts)
        return files

    def _of_function(self, function: Function) -> Mapping[str, FileCoverage]:
        program, files = self.machine.program, dict[str, FileCoverage]()
        # Code that is inlined for several calls counts as several functions.
        copies: dict[tuple[int, str], FileCoverage] = {}
        for block, step in _steps_with_lines(program, function):
            file, line = step.place
            counts = copies.setdefault((step.scope, file), FileCoverage())
            counts.lines[line] = max(counts.lines[line], self._blocks[id(block)])
            if targets := self._targets_of(function, block, step):
                number = sum(known == line for known, _ in counts.branches)
                counts.branches[line, number] = targets
        for (_, file), counts in copies.items():
            files.setdefault(file, FileCoverage()).add(counts)
        if files:
            place = program.function_place(function.id)
            if not place.line:
                place = next(step.place for _, step in _steps_with_lines(program, function))
            calls = files.setdefault(place.file, FileCoverage()).functions
            name = function_name(program, function.id)
            calls[place.line, name] = self._blocks[id(function.blocks[0])]
        return files

    def _targets_of(
        self, function: Function, block: BasicBlock, step: Decoded
    ) -> list[BranchTarget]:
        """Return the targets of a branch; none for other instructions, or if there is only one."""
        targets = []
        for label in _targets(step):
            number = function.numbers[label]
            taken = self._taken[id(block), id(function.blocks[number])]
            place = _first_place(self.machine.program, function, number)
            is_near = place is not None and place.file == step.place.file
            targets.append(BranchTarget(place.line if place and is_near else 0, taken))
        return targets[::-1] if self._is_negated(function, block, step) else targets

    def _is_negated(self, function: Function, block: BasicBlock, step: Decoded) -> bool:
        """Whether a branch belongs to ``||``, for which glslang negates the first operand.

        The result, an OpPhi, has the operand that is not negated.
        """
        if step.op != Op.BranchConditional:
            return False
        made = self.machine.program.made.get(step.operands[0])
        if made is None or made.op != Op.LogicalNot:
            return False
        end = function.blocks[function.numbers[step.operands[2]]]
        results = (
            pair
            for phi in end.phis
            for pair in zip(phi.operands[::2], phi.operands[1::2], strict=True)
        )
        return (made.operands[0], block.label) in results


def _steps_with_lines(
    program: ShaderProgram, function: Function
) -> Iterator[tuple[BasicBlock, Decoded]]:
    """Yield the instructions of a function that belong to a source line, with their blocks."""
    for block in function.blocks:
        for step in block.steps:
            if _has_line(program, step):
                yield block, step


def _has_line(program: ShaderProgram, step: Decoded) -> bool:
    """Whether an instruction belongs to a known source line.

    Compilers emit no line for jumps after a construct, and for the condition of a selection that is
    only a variable. The line of such a condition is found by its text. Only some versions of
    glslang emit a line for the end of a function, that of its brace, which is not counted.
    """
    if not step.place.line or step.op in _WITHOUT_LINES:
        return False
    if step.op == Op.Return and program.text(step.place) == "}":
        return False
    return step.has_line or bool(_targets(step))


def _first_place(program: ShaderProgram, function: Function, number: int) -> SourceLine | None:
    """Return the line of the first code from a block on; None if it depends on a branch."""
    seen: set[int] = set()
    head: SourceLine | None = None
    while number not in seen:
        seen.add(number)
        block = function.blocks[number]
        place = next((step.place for step in block.steps if _has_line(program, step)), None)
        last = block.steps[-1]
        goes_on = block.is_divided or last.op == Op.Branch
        if place is not None and block.is_loop and goes_on and head is None:
            head, place = place, None  # do ... while has the line of its end
        if place is not None or not goes_on:
            return min(place, head) if place and head else place or head
        number = number + 1 if block.is_divided else function.numbers[last.operands[0]]
    return head


def _targets(step: Decoded) -> list[int]:
    """Return the different labels that a branch can go to; the default of a switch is the last."""
    _, *labels = (*step.operands, 0)[:3]
    if step.op == Op.Switch:
        labels = [*step.operands[3::2], step.operands[1]]
    targets = [*dict.fromkeys(labels)] if step.op in _BRANCHES else []
    return targets if len(targets) > 1 else []
