"""SPIR-V modules as words: their instructions, and the ids that these declare.

Terms and numbers are those of the SPIR-V specification.
"""

from __future__ import annotations

import struct
from array import array
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import NamedTuple

from vkops.errors import ShaderCompileError, printable
from vkops.shaders.grammar import INSTRUCTIONS, ONLY_IDS, OPCODES, WITH_RESULT, id_places

HEADER_WORDS = 5

DAMAGED = (LookupError, ValueError, TypeError, OverflowError, RecursionError, struct.error)
"""The Python errors that reading a damaged module may raise; spirv-val rejects such modules."""

_MAGIC = array("I", [0x07230203]).tobytes()


class _Opcodes:
    """Opcodes by name, such as ``Op.TypeVoid``; those of types, atomic and subgroup operations."""

    def __init__(self) -> None:
        vars(self).update(OPCODES)
        self.ATOMICS = frozenset(n for n, name in INSTRUCTIONS.items() if "OpAtomic" in name)
        self.SUBGROUP = frozenset(n for n, name in INSTRUCTIONS.items() if "NonUniform" in name)
        types = {n for n, name in INSTRUCTIONS.items() if name.startswith("OpType")}
        self.TYPES = frozenset(types - {OPCODES["TypeForwardPointer"]})

    def __getattr__(self, name: str) -> int:
        raise AttributeError(f"SPIR-V has no instruction Op{name}")


Op: _Opcodes = _Opcodes()


class Decoration:
    """Decorations."""

    SPEC_ID, BUFFER_BLOCK, ROW_MAJOR, ARRAY_STRIDE, MATRIX_STRIDE, BUILTIN = 1, 3, 4, 6, 7, 11
    BLOCK, RESTRICT, NON_WRITABLE, BINDING, DESCRIPTOR_SET, OFFSET = 2, 19, 24, 33, 34, 35
    NON_UNIFORM, RESTRICT_POINTER = 5300, 5355


class Storage:
    """Storage classes."""

    UNIFORM_CONSTANT, UNIFORM, WORKGROUP, PUSH_CONSTANT, IMAGE, STORAGE_BUFFER = 0, 2, 4, 9, 11, 12
    PHYSICAL = 5349


DEBUG_INFO = ("NonSemantic.Shader.DebugInfo.100", "OpenCL.DebugInfo.100")
"""Sets of extended instructions that describe the source."""

_DEBUG_SOURCE, _DEBUG_SOURCE_CONTINUED = 35, 102
_CAPABILITY = array("I", [2 << 16 | Op.Capability])
"""The first word of OpCapability."""

_OF_MEMBERS = (Op.MemberName, Op.MemberDecorate, Op.GroupMemberDecorate)

GL_COMPUTE = 5

_LONG = 64

HLSL = 5
"""The number of a source language."""

_MAX_LANGUAGE = SLANG = 6
"""The last source language that SPIRV-Tools of 2022 know; it replaces later ones."""

_GLSLANG = (8, 13)
"""The generators that contain glslang: its own, and that of shaderc."""

_NARROW = range(4433, 4451)
"""Capabilities, among them those for numbers of 8 and 16 bits in memory."""

_OPERATION = 3
"""The operand of subgroup operations that is the GroupOperation, if it is a number."""


class Instruction(NamedTuple):
    """An instruction; ``words`` are its operands, including its result and the result's type."""

    op: int
    words: tuple[int, ...]

    @property
    def ids(self) -> tuple[int, ...]:
        """The operands that are ids."""
        if self.op in ONLY_IDS:
            return self.words
        return tuple(self.words[place] for place in id_places(self.op, self.words))


def is_spirv(data: bytes) -> bool:
    """Whether ``data`` starts as a SPIR-V module and consists of whole words."""
    return len(data) >= 4 * HEADER_WORDS and len(data) % 4 == 0 and data.startswith(_MAGIC)


def positions(words: Sequence[int]) -> Iterator[tuple[int, int, int]]:
    """Yield position, opcode and length of each instruction; ShaderCompileError if one is wrong."""
    at = HEADER_WORDS
    while at < len(words):
        count, op = divmod(words[at], 1 << 16)
        if not 0 < count <= len(words) - at:
            raise ShaderCompileError(f"damaged SPIR-V: word {at} is not an instruction")
        yield at, op, count
        at += count


def string(words: Sequence[int]) -> str:
    """Decode the literal string at the start of some operands."""
    data = b"".join(word.to_bytes(4, "little") for word in words)
    return data.partition(b"\0")[0].decode(errors="replace")


def corrected(spirv: bytes) -> bytes:
    """Return a module without three faults of compilers.

    - Older SPIRV-Tools reject languages in OpSource that they do not know, such as Slang. Drivers
      ignore the number, so it is replaced.
    - glslang translates HLSL's WavePrefixSum and WavePrefixProduct to inclusive scans. In HLSL,
      they exclude an invocation's own value, so they become exclusive scans.
    - glslang converts numbers of 8 and 16 bits that it loads to the type that they have already,
      which is not valid. The conversion becomes a copy.

    Bytes that are not a module are returned unchanged.
    """
    words = array("I", spirv if len(spirv) % 4 == 0 else b"")
    is_inclusive = is_narrow = False
    types: dict[int, int] = {}
    try:
        for at, op, count in positions(words):
            if op == Op.Source and count > 1:
                is_inclusive = words[at + 1] == HLSL and words[2] >> 16 in _GLSLANG
                words[at + 1] = min(words[at + 1], _MAX_LANGUAGE)
            elif op == Op.Capability:
                is_narrow |= words[at + 1] in _NARROW
            elif op == Op.TypeVoid and not (is_inclusive or is_narrow):
                break  # OpSource comes before types, and nothing else needs to be corrected
            elif (
                op in (Op.FConvert, Op.SConvert, Op.UConvert)
                and types.get(words[at + 3]) == words[at + 1]
            ):
                words[at] = count << 16 | Op.CopyObject
            elif op == Op.Load:
                types[words[at + 2]] = words[at + 1]
            elif is_inclusive and op in Op.SUBGROUP and count > _OPERATION + 1:
                operands = words[at + 1 : at + count]
                if _OPERATION not in id_places(op, operands) and operands[_OPERATION] == 1:
                    words[at + 1 + _OPERATION] = 2  # from InclusiveScan to ExclusiveScan
    except ShaderCompileError:
        return spirv  # damaged: the error of spirv-val says more about it
    return words.tobytes() or spirv


@dataclass
class Declarations:
    """The ids of a module, with names and decorations; a member's key is (id, number).

    Groups of decorations are expanded, and each literal of OpSwitch is one number.
    """

    version: tuple[int, int]
    language: int = 0
    capabilities: list[int] = field(default_factory=list)
    entries: list[Instruction] = field(default_factory=list)
    modes: list[Instruction] = field(default_factory=list)
    names: dict[tuple[int, ...], str] = field(default_factory=dict)
    decorations: dict[tuple[int, ...], dict[int, tuple[int, ...]]] = field(default_factory=dict)
    defined: dict[int, Instruction] = field(default_factory=dict)
    """Types, constants and variables outside of functions."""
    functions: dict[int, list[Instruction]] = field(default_factory=dict)
    strings: dict[int, str] = field(default_factory=dict)
    """Texts, and the names of sets of extended instructions."""
    sources: dict[int, str] = field(default_factory=dict)
    """Texts of source files, by the ids of their names."""
    extended: dict[int, Instruction] = field(default_factory=dict)
    """Extended instructions outside of functions: debug information."""
    lines: dict[int, tuple[int, int]] = field(default_factory=dict)
    """The file's name, as an id, and the line of each function before which there is an OpLine."""

    def decorated(self, *target: int) -> dict[int, tuple[int, ...]]:
        """Return the decorations of an id or a member, with their operands."""
        return self.decorations.get(target, {})

    def has(self, variable: int, decoration: int) -> bool:
        """Whether a variable, or each member of the struct that it points to, has a decoration."""
        type_ = self.defined[self.defined[variable].words[0]].words[2]
        while (known := self.defined.get(type_)) and known.op in (
            Op.TypeArray,
            Op.TypeRuntimeArray,
        ):
            type_ = known.words[1]
        members = [member for target, member in self.decorations.items() if target[:-1] == (type_,)]
        of_members = bool(members) and all(decoration in member for member in members)
        return of_members or decoration in self.decorated(variable)

    def place(self, variable: int) -> tuple[int, int]:
        """Return the descriptor set and the binding of a variable; -1 if it has no binding."""
        decorations = self.decorated(variable)
        (binding,) = decorations.get(Decoration.BINDING, (-1,))
        return decorations.get(Decoration.DESCRIPTOR_SET, (0,))[0], binding

    def variables(self) -> Iterator[tuple[int, int, int]]:
        """Yield the id, the storage class and the type of each variable outside of functions."""
        for id_, (op, words) in self.defined.items():
            if op == Op.Variable:
                yield id_, words[2], self.defined[words[0]].words[2]

    def shared_memory(self, variable: int, type_: int) -> int:
        """Return a number for the memory of a shared variable of some type.

        It is the variable's own id, but 0 for all blocks, because these share their memory.
        """
        return 0 if Decoration.BLOCK in self.decorated(type_) else variable

    def used(self, function: int) -> set[int]:
        """Return the ids that occur in a function and in those that it calls."""
        ids: set[int] = set()
        called = [function]
        for each in called:  # the list grows
            for instruction in self.functions[each]:
                ids.update(instruction.ids)
                if instruction.op == Op.FunctionCall and instruction.words[2] not in called:
                    called.append(instruction.words[2])
        return ids


def declared_capabilities(spirv: bytes) -> list[int]:
    """Return the capabilities at the beginning of a module; the rest of it may be damaged."""
    words, at = array("I", spirv), HEADER_WORDS
    while words[at : at + 1] == _CAPABILITY and at + 1 < len(words):
        at += 2
    return words[HEADER_WORDS + 1 : at : 2].tolist()


@lru_cache(maxsize=4)
def declarations(spirv: bytes) -> Declarations:
    """Read the declarations of a module; callers share the result, and must not change it.

    Raises:
        ShaderCompileError: it is damaged.
        LookupError: as well.
    """
    words = array("I", spirv)
    if words[4] or words[1] & 0xFF0000FF:  # the schema, and reserved bytes of the version
        raise ShaderCompileError("damaged SPIR-V: the header is wrong")
    module = Declarations((words[1] >> 16 & 0xFF, words[1] >> 8 & 0xFF))
    body: list[Instruction] | None = None
    types: dict[int, int] = {}  # of values
    texts: dict[int, str] = {}  # of strings, with line breaks
    file = 0  # whose source text may be continued
    line: tuple[int, int] | None = None  # of the last OpLine outside of functions
    members: Counter[int] = Counter()  # the names of each structure's
    for at, op, count in positions(words):
        operands = tuple(words[at + 1 : at + count])
        if op in WITH_RESULT:
            types[operands[1]] = operands[0]
        elif op == Op.Switch and module.defined[types[operands[0]]].words[1] == _LONG:
            cases = zip(operands[2::3], operands[3::3], operands[4::3], strict=True)
            whole = (each for low, high, label in cases for each in (low | high << 32, label))
            operands = (*operands[:2], *whole)
        instruction = Instruction(op, operands)
        width = 2 if op in _OF_MEMBERS else 1
        if op == Op.Function:
            body = module.functions[operands[1]] = []
            if line is not None:
                module.lines[operands[1]] = line
        if body is not None:
            body.append(instruction)
            if op == Op.FunctionEnd:  # OpLine and the like may follow that belong to no function
                body = line = None
        elif op == Op.Line:
            line = operands[0], operands[1]
        elif op == Op.Source:
            module.language = operands[0]
            if count > 4:
                file, module.sources[operands[2]] = operands[2], string(operands[3:])
        elif op == Op.SourceContinued:
            module.sources[file] = module.sources.get(file, "") + string(operands)
        elif op in (Op.String, Op.ExtInstImport):
            texts[operands[0]] = string(operands[1:])
            module.strings[operands[0]] = printable(texts[operands[0]])
        elif op == Op.ExtInst:
            module.extended[operands[1]] = instruction
            _, _, set_, number, *others = operands
            if texts.get(set_) in DEBUG_INFO and number == _DEBUG_SOURCE and others[1:]:
                file, module.sources[others[0]] = others[0], texts.get(others[1], "")
            elif texts.get(set_) in DEBUG_INFO and number == _DEBUG_SOURCE_CONTINUED:
                module.sources[file] = module.sources.get(file, "") + texts.get(others[0], "")
        elif op == Op.Capability:
            module.capabilities.append(operands[0])
        elif op == Op.EntryPoint:
            module.entries.append(instruction)
        elif op in (Op.ExecutionMode, Op.ExecutionModeId):
            module.modes.append(instruction)
        elif op in (Op.Name, Op.MemberName):
            named = operands[:width]
            if op == Op.MemberName:
                members[named[0]] += 1
                if named in module.names:  # Slang gives all members of some structures the number 0
                    named = named[0], members[named[0]] - 1
            module.names[named] = printable(string(operands[width:]))
        elif op in (Op.Decorate, Op.MemberDecorate):
            target = module.decorations.setdefault(operands[:width], {})
            target[operands[width]] = operands[width + 1 :]
        elif op in (Op.GroupDecorate, Op.GroupMemberDecorate):
            for first in range(1, len(operands), width):
                target = module.decorations.setdefault(operands[first : first + width], {})
                target.update(module.decorated(operands[0]))
        elif op in Op.TYPES:
            module.defined[operands[0]] = instruction
        elif Op.ConstantTrue <= op <= Op.SpecConstantOp or op in (Op.Variable, Op.Undef):
            module.defined[operands[1]] = instruction
    return module
