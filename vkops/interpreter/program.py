"""Decoded modules: functions, their blocks in an order of execution, types and constants."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import chain
from typing import Any, NamedTuple

import numpy as np

from vkops.interpreter import composites, operations
from vkops.interpreter.conditions import Conditions, Raw
from vkops.interpreter.operations import dtype_of
from vkops.interpreter.values import Numbers, Pointer, Reason, SourceLine, Value, replaced
from vkops.shaders import constants
from vkops.shaders.binary import (
    DEBUG_INFO,
    GL_COMPUTE,
    SLANG,
    Instruction,
    Op,
    declarations,
    string,
)
from vkops.shaders.compiler import TEXT
from vkops.shaders.grammar import WITH_RESULT
from vkops.shaders.layout import ArrayType, ScalarType, StructType, Type, Types
from vkops.shaders.module import Module
from vkops.shaders.sources import embedded_lines
from vkops.system.threads import cached_property

_LINE = re.compile(r'\s*#\s*line\s+0*([1-9]\d{0,5})(?:\s+"(.*)")?')
_DEBUG_SCOPE, _DEBUG_NO_SCOPE, _DEBUG_DECLARE = 23, 24, 28
_DEBUG_FUNCTION_DEFINITION, _DEBUG_LINE = 101, 103

WORKGROUP_SCOPE, SUBGROUP_SCOPE = 2, 3
_BARRIERS = (Op.ControlBarrier, Op.MemoryBarrier)
_VARIABLE_POINTERS = {"VariablePointersStorageBuffer", "VariablePointers"}


class Decoded(NamedTuple):
    """A decoded instruction.

    ``result`` is the id that it defines and ``type`` the id of its type, 0 if there is none.
    ``escapes`` says whether other blocks use the result. ``has_line`` says whether ``place`` comes
    from an OpLine in its block. ``scope`` is the id of the call that it was inlined for, or 0.
    """

    op: int
    result: int
    type: int
    operands: tuple[int, ...]
    place: SourceLine
    escapes: bool
    has_line: bool = False
    scope: int = 0

    @property
    def ids(self) -> tuple[int, ...]:
        """The operands that are ids."""
        head = (self.type, self.result) if self.result else ()
        return Instruction(self.op, head + self.operands).ids[len(head) :]


@dataclass
class BasicBlock:
    """A block of a function; ``number`` is its position in the order of execution.

    Blocks are divided into parts with the same label. A call is the last instruction of a part. A
    barrier of the workgroup is the first instruction of a part (``is_barrier``), where invocations
    wait for others. After a part that ``is_divided``, the next part is executed.
    """

    label: int
    steps: list[Decoded] = field(default_factory=list)
    phis: list[Decoded] = field(default_factory=list)
    merge: int = 0
    continues: int = 0
    is_loop: bool = False
    is_barrier: bool = False
    is_divided: bool = False
    number: int = 0


@dataclass(frozen=True)
class Function:
    """A function; the types of its parameters are by id, and its first block is number 0."""

    id: int
    parameters: Mapping[int, int]
    blocks: tuple[BasicBlock, ...]
    numbers: Mapping[int, int]

    @property
    def steps(self) -> Iterator[Decoded]:
        """The instructions of all blocks."""
        return (step for block in self.blocks for step in (*block.phis, *block.steps))


@lru_cache(maxsize=4)
def program_of(module: Module, group_size: int, subgroup_size: int) -> ShaderProgram:
    """Return the program of a module; it is immutable, and the runs of a check share it."""
    return ShaderProgram(module, {WORKGROUP_SCOPE: group_size, SUBGROUP_SCOPE: subgroup_size})


class ShaderProgram:
    """A module and its entry point, as a scheduler runs them.

    ``scopes`` has the number of invocations in each scope of cooperative matrices.

    Raises LookupError for a damaged module, as ``Module.read`` does.
    """

    def __init__(self, module: Module, scopes: Mapping[int, int]) -> None:
        self.module, self.scopes = module, scopes
        self.declared = declared = declarations(module.spirv)
        self._numbers = constants.numbers(declared)
        self._known = constants.values(declared, self._numbers)
        self._types = Types(declared, self._numbers, self._known, scopes)
        self._lines = {file: embedded_lines(text) for file, text in declared.sources.items()}
        entry = next(
            words[1]
            for _, words in declared.entries
            if words[0] == GL_COMPUTE and string(words[2:]) == module.entry_point
        )
        self.main = entry
        self.used = declared.used(entry)
        is_variable = not _VARIABLE_POINTERS.isdisjoint(module.capabilities)
        self.has_variable_pointers = is_variable or any(b.is_array for b in module.blocks)
        self.functions = {
            id_: self._function(id_, body) for id_, body in declared.functions.items()
        }

    # -- types and constants -----------------------------------------------------------------------

    def type(self, id_: int) -> Type:
        """Return the type with an id."""
        return self._types.type(id_)

    def pointee(self, id_: int) -> tuple[int, int]:
        """Return the storage class and the id of the pointee's type of a pointer type."""
        _, storage, pointee = self.declared.defined[id_].words
        return storage, pointee

    def name(self, id_: int) -> str:
        """Return the name of an id in the source, or a text that stands for it."""
        return self.declared.names.get((id_,), "") or f"%{id_}"

    def text(self, place: SourceLine) -> str:
        """Return the text of a line; "" if the module does not contain it."""
        lines = self.sources.get(place.file, []) if place.line else []
        return "".join(lines[place.line - 1 : place.line]).strip()

    @cached_property
    def sources(self) -> dict[str, list[str]]:
        """The lines of the source files that the module contains, by the names in source lines.

        Lines after a ``#line`` directive have the name and the numbers of the directive.
        """
        sources: dict[str, list[str]] = {"": []}  # first, as others have this name, too
        for id_, text in self._lines.items():
            file, number = self.declared.strings.get(id_, "").replace(TEXT, ""), 1
            for line in text:
                lines = sources.setdefault(file, [])
                lines += [""] * (number - len(lines))
                lines[number - 1] = lines[number - 1] or line
                number += 1
                if directive := _LINE.match(line):
                    number, file = int(directive[1]), directive[2] or file
        return {self._place(file, 0).file: lines for file, lines in sources.items() if lines}

    @cached_property
    def words(self) -> frozenset[str]:
        """The words of the source files, except for those of the compiler's own variables."""
        text = "\n".join(map("\n".join, self.sources.values()))
        return frozenset(re.findall(r"\w+", text))

    @cached_property
    def constants(self) -> dict[int, Value]:
        """The values of constants by id."""
        values: dict[int, Value] = {}
        for id_, (op, words) in self.declared.defined.items():
            if Op.ConstantTrue <= op <= Op.SpecConstantOp:
                values[id_] = self._constant(id_, op, words, values)
            elif op == Op.Undef:  # a part of a constant
                values[id_] = self.undefined(id_, SourceLine(self.module.name, 0))
        return {id_: value for id_, value in values.items() if id_ not in self._undefined}

    def _constant(
        self, id_: int, op: int, words: tuple[int, ...], values: Mapping[int, Value]
    ) -> Value:
        type_ = self.type(words[0])
        if op == Op.ConstantNull:
            return zeros(type_)
        if op in (Op.ConstantComposite, Op.SpecConstantComposite):
            return composed(type_, [values[member] for member in words[2:]])
        value = self._known.get(id_)
        if value is None and words[2] in composites.TABLE:
            return composites.TABLE[words[2]](words[3:], values.__getitem__)
        if value is None:  # an operation on floats or vectors
            operands = [values[operand] for operand in words[3:] if operand in values]
            arrays = [each.array for each in operands if isinstance(each, Numbers)]
            return Numbers(operations.apply(operations.TABLE[words[2]], arrays, dtype_in(type_)))
        return Numbers(np.array([value], dtype_of(scalar_of(type_) or ScalarType("uint", 4))))

    def number(self, id_: int) -> int:
        """Return the value of an integer constant."""
        constant = self.constants[id_]
        assert isinstance(constant, Numbers)
        return int(constant.array[0])

    @cached_property
    def _undefined(self) -> dict[int, int]:
        """The types of the results of OpUndef, by id."""
        types = {i: words[0] for i, (op, words) in self.declared.defined.items() if op == Op.Undef}
        return types | {step.result: step.type for step in self._steps() if step.op == Op.Undef}

    def undefined(self, id_: int, place: SourceLine) -> Value:
        """Return the result of OpUndef for a use at a line; KeyError if the id is not one."""
        type_ = self.type(self._undefined[id_])
        why = Reason(f"reads '{self.name(id_)}', which was never written", place)
        return replaced(
            zeros(type_), lambda n: Numbers(n.array, np.ones_like(n.array, bool), (why,))
        )

    # -- functions ---------------------------------------------------------------------------------

    def function_place(self, id_: int) -> SourceLine:
        """Return the line in which a function begins; line 0 if the module does not have it."""
        if (line := self.declared.lines.get(id_)) is not None:
            return self._place(self.declared.strings.get(line[0], ""), line[1])
        for op, words in self.declared.functions[id_]:
            if (
                op == Op.ExtInst
                and self._is_debug(words)
                and words[3] == _DEBUG_FUNCTION_DEFINITION
            ):
                function = self.declared.extended.get((*words, 0)[4], Instruction(0, ()))
                source, line_id = (*function.words, *[0] * 8)[6:8]
                return self._debug_place(source, line_id)
        return SourceLine(self.module.name, 0)

    def _steps(self) -> Iterator[Decoded]:
        return chain.from_iterable(function.steps for function in self.functions.values())

    @cached_property
    def value_types(self) -> dict[int, int]:
        """The types of parameters and of the results of instructions, by id."""
        types = {id_: words[0] for id_, (_, words) in self.declared.defined.items()}
        for function in self.functions.values():
            types.update(function.parameters)
        return types | {step.result: step.type for step in self._steps()}

    @cached_property
    def made(self) -> dict[int, Decoded]:
        """The instructions of functions, by their results."""
        return {step.result: step for step in self._steps() if step.result}

    @cached_property
    def users(self) -> dict[int, list[Decoded]]:
        """The instructions of functions, by the ids that they use."""
        users: dict[int, list[Decoded]] = {}
        for step in self._steps():
            for id_ in {*step.ids}:
                users.setdefault(id_, []).append(step)
        return users

    @cached_property
    def argument_names(self) -> dict[int, tuple[str, SourceLine]]:
        """The parameters for which compilers create variables: their names, and the lines of calls.

        glslang names these variables "param".
        """
        names: dict[int, tuple[str, SourceLine]] = {}
        for step in self._steps() if self.words else ():
            if step.op == Op.FunctionCall:
                callee, *arguments = step.operands
                for id_, parameter in zip(
                    arguments, self.functions[callee].parameters, strict=False
                ):
                    made = self.made.get(id_)
                    if made and made.op == Op.Variable and self.name(id_) not in self.words:
                        names[id_] = self.name(parameter), step.place
        return names

    @property
    def has_atomics(self) -> bool:
        """Whether the shader executes atomic operations."""
        return any(step.op in Op.ATOMICS for step in self._steps())

    @property
    def has_subgroup_barriers(self) -> bool:
        """Whether the shader executes barriers of subgroups."""
        scopes = {id_ for id_, number in self._known.items() if number == SUBGROUP_SCOPE}
        return any(s.op in _BARRIERS and s.operands[0] in scopes for s in self._steps())

    def _function(self, id_: int, body: list[Instruction]) -> Function:
        self._name_variables(body)
        blocks: dict[int, BasicBlock] = {}
        parameters: dict[int, int] = {}
        uses: dict[int, set[int]] = {}
        parts: dict[int, int] = {}
        raw: list[Raw] = []
        part = scope = 0  # carried from block to block
        unplaced = 0  # from this entry on, lines are those of conditions
        conditions = Conditions(self.declared)
        block: BasicBlock | None = None
        place, place_is_known = SourceLine(self.module.name, 0), False
        for instruction in body:
            op, words = instruction
            if op == Op.Line:
                file = self.declared.strings.get(words[0], "")
                before, place = place, self._place(file, words[1])
                conditions.place(raw, unplaced, before, place, self._lines.get(words[0], ()))
                place_is_known = True
            elif op == Op.ExtInst and (moved := self._line(words, place)) is not None:
                if words[3] == _DEBUG_LINE:
                    if self.declared.language != SLANG:
                        lines = self._lines.get(self._file((*words, 0)[4]), ())
                        conditions.place(raw, unplaced, place, moved, lines)
                    place, place_is_known = moved, True
                if words[3] in (_DEBUG_SCOPE, _DEBUG_NO_SCOPE):
                    scope = (*words[5:], 0)[0]
            elif op == Op.FunctionParameter:
                parameters[words[1]] = words[0]
            elif op == Op.Label:
                block = blocks[words[0]] = BasicBlock(words[0])
                part += 1
                unplaced = len(raw) if place_is_known else unplaced
                place_is_known, scope = False, 0
            elif block is not None and op not in (Op.NoLine, Op.FunctionEnd):
                part += self._is_barrier(op, words)
                if op in WITH_RESULT:
                    parts[words[1]] = part
                if op == Op.LoopMerge:
                    conditions.heads[block.label] = place
                raw.append(Raw(block, instruction, place, place_is_known, scope))
                if place_is_known:
                    unplaced = len(raw)
                for used in instruction.ids:
                    uses.setdefault(used, set()).add(0 if op == Op.Phi else part)
                part += op == Op.FunctionCall
        conditions.place(raw, unplaced, place, place, ())
        for block, (op, words), place, has_line, scope in raw:
            if op in (Op.LoopMerge, Op.SelectionMerge):
                block.merge, block.is_loop = words[0], op == Op.LoopMerge
                block.continues = words[1] if block.is_loop else 0
                continue
            if op in WITH_RESULT:
                escapes = uses[words[1]] != {parts[words[1]]}
                step = Decoded(op, words[1], words[0], words[2:], place, escapes, has_line, scope)
            else:
                step = Decoded(op, 0, 0, words, place, False, has_line, scope)
            (block.phis if op == Op.Phi else block.steps).append(step)
        order = [p for b in _ordered(blocks) for p in self._divided(b)] if blocks else []
        for number, block in enumerate(order):
            block.number = number
        numbers = {block.label: block.number for block in reversed(order)}
        return Function(id_, parameters, tuple(order), numbers)

    def _name_variables(self, body: list[Instruction]) -> None:
        """Name the variables of a function that Slang has not named.

        Slang emits each variable twice: one for debuggers, which DebugDeclare names, and one that
        is used. If nothing is stored in either, the second has no name; it is identified by its
        type if no other has this type. A parameter that is an array is copied to a variable without
        a name.
        """
        names, stored, used = self.declared.names, dict[int, int](), set[int]()
        parameters, declared = set[int](), dict[int, str]()
        for instruction in body:
            op, words = instruction
            if op == Op.ExtInst and self._is_debug(words):
                if words[3] == _DEBUG_DECLARE:
                    local = self.declared.extended[words[4]].words
                    declared[words[5]] = self.declared.strings.get(local[4], "")
            elif op == Op.FunctionParameter:
                parameters.add(words[1])
            elif op != Op.Variable:
                used.update(instruction.ids)
                if op == Op.Store:
                    stored[words[0]] = words[1]
        variables = {words[1]: words[0] for op, words in body if op == Op.Variable}
        unused: dict[int, list[int]] = {}  # variables for debuggers, by type
        for id_, name in declared.items():
            names.setdefault((id_,), name or f"%{id_}")
            if id_ not in used and id_ in variables:
                unused.setdefault(variables[id_], []).append(id_)
        for id_, type_ in variables.items():
            alike = [stored[id_]] if stored.get(id_) in parameters else unused.get(type_, [])
            if len(alike) == 1 and stored.get(id_, alike[0]) == alike[0]:
                names.setdefault((id_,), names.get((alike[0],), f"%{id_}"))

    def _is_debug(self, words: tuple[int, ...]) -> bool:
        """Whether an extended instruction is debug information."""
        return self.declared.strings.get(words[2]) in DEBUG_INFO

    def _is_barrier(self, op: int, operands: Sequence[int]) -> bool:
        return op == Op.ControlBarrier and self._known.get(operands[0]) != SUBGROUP_SCOPE

    def _divided(self, block: BasicBlock) -> list[BasicBlock]:
        """Return the parts into which a block is divided."""
        parts, steps, block.steps = [block], block.steps, []
        for step in steps:
            part, is_barrier = parts[-1], self._is_barrier(step.op, step.operands)
            if part.is_divided or (is_barrier and part.steps):
                part.is_divided = True
                parts.append(part := BasicBlock(block.label))
            part.is_barrier |= is_barrier
            part.steps.append(step)
            part.is_divided = step.op == Op.FunctionCall
        return parts

    def _line(self, words: tuple[int, ...], place: SourceLine) -> SourceLine | None:
        """Return the line after an instruction of a set of debug information."""
        if not self._is_debug(words):
            return None
        if words[3] != _DEBUG_LINE:
            return place
        source, line, *_ = (*words[4:], 0, 0)
        return self._debug_place(source, line)

    def _debug_place(self, source: int, line: int) -> SourceLine:
        """Return the line that the ids of a DebugSource and of a constant stand for."""
        file = self.declared.strings.get(self._file(source), "")
        return self._place(file, self._known.get(line) or 0)

    def _file(self, source: int) -> int:
        """Return the id of the file name of a DebugSource; 0 if it is not one."""
        words: Sequence[int] = getattr(self.declared.extended.get(source), "words", ())
        return (*words, *[0] * 5)[4]

    def _place(self, file: str, line: int) -> SourceLine:
        """Return a line; a source that was compiled from text has the shader's name."""
        return SourceLine(
            self.module.name if file in ("", TEXT) else re.sub(r"^\.[/\\]", "", file), line
        )


def _ordered(blocks: Mapping[int, BasicBlock]) -> Iterator[BasicBlock]:
    """Yield blocks so that each construct comes before the block where its paths merge.

    This is a reverse postorder in which the successors that are executed last are visited first. If
    invocations always execute the first block that any of them has reached, they meet again where
    paths merge.
    """
    first = next(iter(blocks))
    seen, done = {first}, []
    stack = [(first, iter(_last_first(blocks[first])))]
    while stack:
        label, rest = stack[-1]
        for target in rest:
            if target in blocks and target not in seen:
                seen.add(target)
                stack.append((target, iter(_last_first(blocks[target]))))
                break
        else:
            done.append(label)
            stack.pop()
    return map(blocks.__getitem__, reversed(done))


def _last_first(block: BasicBlock) -> tuple[int, ...]:
    op, _, _, to, *_ = block.steps[-1]
    targets = {Op.Branch: to, Op.BranchConditional: to[1:3], Op.Switch: to[1:2] + to[3::2]}
    return (block.merge, block.continues, *targets.get(op, ()))


# -- values of types -------------------------------------------------------------------------------


def scalar_of(type_: Type) -> ScalarType | None:
    """Return the type of the numbers of a scalar, vector or matrix; None for other types."""
    while isinstance(type_, ArrayType) and type_.form != "array":
        type_ = type_.element
    return type_ if isinstance(type_, ScalarType) else None


def dtype_in(type_: Type) -> np.dtype[Any] | None:
    """Return the NumPy type of the numbers of a scalar, vector or matrix; None for other types."""
    number = scalar_of(type_)
    return None if number is None else dtype_of(number)


def is_pointer(type_: Type) -> bool:
    """Whether a type is the type of pointers, which have no layout."""
    return isinstance(type_, StructType) and not type_.members


def shape_of(type_: Type) -> tuple[int, ...]:
    """Return the shape of a scalar, vector or matrix."""
    if isinstance(type_, ArrayType):
        return (type_.count or 0, *shape_of(type_.element))
    return ()


def parts_of(type_: Type) -> list[tuple[Type, int]]:
    """Return the types and offsets of an array's elements or of a struct's members."""
    if isinstance(type_, StructType):
        return [(member.type, member.offset) for member in type_.members]
    assert isinstance(type_, ArrayType)
    return [(type_.element, number * type_.stride) for number in range(type_.count or 0)]


def zeros(type_: Type) -> Value:
    """Return the zero, or the null pointer, of a type, for all invocations."""
    number = scalar_of(type_)
    if number is not None:
        return Numbers(np.zeros((1, *shape_of(type_)), dtype_of(number)))
    if is_pointer(type_):
        return Pointer(None, type_, 0)
    return tuple(zeros(part) for part, _ in parts_of(type_))


def composed(type_: Type, parts: Sequence[Value]) -> Value:
    """Return a composite of its parts; the parts of a vector can be scalars and vectors.

    A cooperative matrix is constructed from one scalar.
    """
    if scalar_of(type_) is None:
        return tuple(parts)
    shape = shape_of(type_)

    def joined(*arrays: operations.Array) -> operations.Array:
        count = max(map(len, arrays))
        wide = [np.broadcast_to(each, (count, *each.shape[1:])) for each in arrays]
        wide = [each if each.ndim == len(shape) + 1 else each[:, None] for each in wide]
        return np.broadcast_to(np.concatenate(wide, 1), (count, *shape))

    first, *others = (part for part in parts if isinstance(part, Numbers))
    return first.moved(joined, *others)
