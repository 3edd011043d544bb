"""Modules as text for people: descriptions, instructions with source lines, and differences."""

from __future__ import annotations

import difflib
import hashlib
import re
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from vkops.errors import ShaderCompileError, printable, show
from vkops.shaders import sources, tools
from vkops.shaders.diagnostics import numbered_lines
from vkops.shaders.layout import Scalar, leaves
from vkops.shaders.module import Block, Module

_STRING = r'"(?:[^"\\]|\\.)*"'  # it can contain line breaks
_LINE = re.compile(rf'(?:[^"\n]|{_STRING})+', re.DOTALL)
_TOKEN = re.compile(rf"{_STRING}|\S+", re.DOTALL)
_NUMBER = re.compile(r"%\d+\b")
_SHOWN_NUMBERS = 64
_DEBUG = ("OpSource", "OpString", "OpName", "OpMemberName", "OpLine", "OpNoLine", "OpModule")


def listing(spirv: bytes, *, read_files: bool = False) -> str:
    """Return a module as text, with each source line above its instructions.

    Source lines are shown if the module has debug information, which contains the text of the first
    source file. Other files that it names are read only with ``read_files``: use that for the
    user's own shaders. Control characters are escaped.

    Raises:
        ShaderCompileError: it is damaged, or spirv-dis is missing.
    """
    return "\n".join(map(printable, _with_source(tools.disassemble(spirv), read_files)))


def _with_source(text: str, read_files: bool) -> Iterator[str]:
    strings: dict[str, str] = {}
    numbers: dict[str, str] = {}
    files: dict[str, str] = {}  # of strings, and of DebugSource
    lines: dict[tuple[str, int], str] = {}
    known = set()
    before = None
    for result, op, operands, instruction in _instructions(text):
        name, rest = op, operands
        if op == "OpExtInst":  # of NonSemantic.Shader.DebugInfo.100, or another set
            name, rest = operands[2], operands[3:]
        if name == "OpString":
            strings[result] = files[result] = _unquoted(rest[0])
        elif name == "OpConstant":
            numbers[result] = rest[1]
        elif name == "DebugSource":
            files[result] = strings.get(rest[0], "")
        source = {"OpSource": rest[2:], "DebugSource": rest}.get(name, ())
        if len(source) == 2:  # with the source text
            file = strings.get(source[0], "")
            whole = strings.get(source[1]) or _unquoted(source[1])
            embedded = "\n".join(sources.embedded_lines(whole))
            lines |= numbered_lines(embedded.encode(), file)
            known.add(file)
        if name in ("OpLine", "DebugLine"):
            number = numbers.get(rest[1], rest[1])
            file, line = files.get(rest[0], ""), int(number) if number.isdecimal() else 0
            if (file, line) != before:
                if read_files and (file, line) not in lines and file not in known:
                    known.add(file)
                    with suppress(ShaderCompileError):
                        lines |= numbered_lines(sources.read(Path(file)), file)
                code = lines.get((file, line), "").expandtabs()
                yield from ("", f"; {file}:{line}: {code}".rstrip())
            before = file, line
        elif name != "OpNoLine":
            yield instruction


def difference(before: bytes, after: bytes, labels: tuple[str, str]) -> list[str]:
    """Return the difference of two modules as a unified diff, empty if they are the same.

    Numbered ids are named by their definitions, so that an added id does not rename others. Debug
    information is left out.

    Raises:
        ShaderCompileError: one is damaged, or spirv-dis is missing.
    """
    one, other = (list(_renamed(tools.disassemble(spirv))) for spirv in (before, after))
    return [printable(line) for line in difflib.unified_diff(one, other, *labels, lineterm="")]


def _renamed(text: str) -> Iterator[str]:
    """Rename numbered ids to the name and a hash of the instruction that defines them."""
    names: dict[str, str] = {}
    seen: Counter[str] = Counter()

    def named(match: re.Match[str]) -> str:
        return names.get(match[0], "%later")

    instructions = [i for i in _instructions(text) if not i.op.startswith(_DEBUG)]
    for result, op, rest, _ in instructions:
        if _NUMBER.fullmatch(result):
            definition = _NUMBER.sub(named, " ".join([op, *rest]))
            digest = hashlib.sha256(definition.encode()).hexdigest()[:4]
            name = f"%{op.removeprefix('Op')}_{digest}"
            seen[name] += 1
            names[result] = name if seen[name] == 1 else f"{name}_{seen[name]}"
    for instruction in instructions:
        yield _NUMBER.sub(named, instruction.text)


# -- the output of spirv-dis -----------------------------------------------------------------------


class _Instruction(NamedTuple):
    """An instruction; ``result`` is an id, or ``""`` if it has none."""

    result: str
    op: str
    operands: tuple[str, ...]
    text: str


def _instructions(text: str) -> list[_Instruction]:
    """Parse the output of spirv-dis; ShaderCompileError if there is something else in it."""
    instructions = []
    for line in _LINE.findall(text):
        words = _TOKEN.findall(line)
        result = words[0] if words[1:2] == ["="] else ""
        op, *operands = (words[2:] if result else words) or [""]
        if not op.startswith("Op"):
            raise ShaderCompileError(f"spirv-dis printed {show(line)}, which is not an instruction")
        instructions.append(_Instruction(result, op, tuple(operands), line))
    return instructions


def _unquoted(literal: str) -> str:
    return re.sub(r"\\(.)", r"\1", literal[1:-1], flags=re.DOTALL)


# -- descriptions ----------------------------------------------------------------------------------


def describe(module: Module) -> tuple[tuple[str, str], ...]:
    """Return headings and texts: the bindings, and the resources that it uses."""
    x, y, z = module.local_size
    sections = [
        ("Workgroup", f"{x} x {y} x {z} invocations"),
        ("Blocks", "; ".join(map(block_text, module.blocks)) or "none"),
    ]
    if module.push is not None:
        listed = [f"{s.type} {s.name}" for s in islice(leaves(module.push), _SHOWN_NUMBERS)]
        more = ["..."] if module.push.numbers > _SHOWN_NUMBERS else []
        numbers = ", ".join(listed + more)
        sections.append(("Push constants", f"{numbers} ({module.push_nbytes} bytes)"))
    if module.specialization_constants:
        texts = map(_constant_text, module.specialization_constants)
        sections.append(("Specialization constants", ", ".join(texts)))
    if module.shared_nbytes:
        sections.append(("Shared memory", f"{module.shared_nbytes:,} bytes"))
    size = f"{len(module.spirv):,} bytes"
    code = f"{module.instructions:,} instructions, {module.loops} loops, {size}"
    sections += [("Code", code), ("Capabilities", ", ".join(module.capabilities))]
    if module.needs:
        sections.append(("Features", ", ".join(module.needs)))
    if module.entry_points != ("main",):
        sections.insert(0, ("Entry points", ", ".join(module.entry_points)))
    return tuple(sections)


def block_text(block: Block) -> str:
    """Describe a block.

    >>> block_text(Block("Source", "", "storage", 0, 1, True, 0, 4, None))
    '1 Source (storage, read only)'
    """
    access = ", read only" if block.readonly and block.kind.startswith("storage") else ""
    names = " ".join(filter(None, (block.number, block.name, block.instance)))
    image = f" {block.image}" if block.image else ""
    return f"{names} ({block.kind}{image}{access})"


def _constant_text(constant: Scalar) -> str:
    value = constant.default if constant.type.nbytes == 8 else f"{constant.default:.9g}"
    value = value if constant.type.kind == "float" else int(constant.default)
    return f"{constant.type} {constant.name or constant.location} = {value}"
