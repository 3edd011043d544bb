"""Modules as text for people: descriptions, instructions with source lines, and differences."""

from __future__ import annotations

import difflib
import hashlib
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from vkops.errors import ShaderCompileError
from vkops.shaders import sources, tools
from vkops.shaders.instructions import Scalar
from vkops.shaders.module import Block, Module

_NUMBER = re.compile(r"%\d+\b")
_DEBUG = ("OpSource", "OpString", "OpName", "OpMemberName", "OpLine", "OpNoLine", "OpModule")


def listing(spirv: bytes, *, read_files: bool = False) -> str:
    """Return a module as text, each source line above the instructions that it became.

    Lines need debug information, which has the text of the first source file. The other files that
    it names are read only with ``read_files``, for a shader of the user's own. Control characters
    are escaped.

    Raises:
        ShaderCompileError: it is damaged, or spirv-dis is missing.
    """
    text = tools.disassemble(spirv, names=True)
    return "\n".join(_escaped(line) for line in _with_source(text, read_files))


def _escaped(text: str) -> str:
    """Escape the control characters in a line, except for a line break at its beginning."""
    start, text = text[: text.startswith("\n")], text[text.startswith("\n") :]
    return start + "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)


def _with_source(text: str, read_files: bool) -> Iterator[str]:
    files: dict[str, str] = {}
    lines: dict[str, Sequence[str]] = {}
    before = None
    for result, op, rest, instruction in tools.instructions(text):
        if op == "OpString":
            files[result] = tools.unquoted(rest[0])
        if op == "OpSource" and len(rest) == 4:  # with the source text
            lines[rest[2]] = _lines(tools.unquoted(rest[3]))
        elif op == "OpLine":
            file, line = rest[:2]
            if (file, line) != before:
                if file not in lines:
                    lines[file] = _read(files[file]) if read_files else ()
                code = lines[file][int(line) - 1] if 0 < int(line) <= len(lines[file]) else ""
                yield f"\n; {files[file]}:{line}: {code.expandtabs().strip()}".rstrip()
            before = file, line
        elif op != "OpNoLine":
            yield instruction


def _lines(text: str) -> list[str]:
    """Return the lines of a source, without those that the compiler put before it."""
    lines = text.splitlines()
    return lines[lines.index("#line 1") + 1 :] if "#line 1" in lines else lines


def _read(name: str) -> Sequence[str]:
    """Return the lines of a file; none if it cannot be read."""
    try:
        return sources.read(Path(name)).decode(errors="replace").splitlines()
    except ShaderCompileError:
        return ()


def difference(before: bytes, after: bytes, labels: tuple[str, str]) -> list[str]:
    """Return the difference of two modules as a unified diff, empty if they are the same.

    Numbered ids are named by their definitions, so that an added id does not rename others. Debug
    information is left out.

    Raises:
        ShaderCompileError: one is damaged, or spirv-dis is missing.
    """
    one, other = (list(_renamed(tools.disassemble(spirv, names=True))) for spirv in (before, after))
    return [_escaped(line) for line in difflib.unified_diff(one, other, *labels, lineterm="")]


def _renamed(text: str) -> Iterator[str]:
    """Rename numbered ids to the name and a hash of the instruction that defines them."""
    names: dict[str, str] = {}
    seen: Counter[str] = Counter()

    def named(match: re.Match[str]) -> str:
        return names.get(match[0], "%later")

    found = [i for i in tools.instructions(text) if not i.op.startswith(_DEBUG)]
    for result, op, rest, _ in found:
        if _NUMBER.fullmatch(result):
            definition = _NUMBER.sub(named, " ".join([op, *rest]))
            digest = hashlib.sha256(definition.encode()).hexdigest()[:4]
            name = f"%{op.removeprefix('Op')}_{digest}"
            seen[name] += 1
            names[result] = name if seen[name] == 1 else f"{name}_{seen[name]}"
    for instruction in found:
        yield _NUMBER.sub(named, instruction.text)


def describe(module: Module) -> tuple[tuple[str, str], ...]:
    """Return headings and texts: the bindings, and the resources that it uses."""
    x, y, z = module.local_size
    found = [
        ("Workgroup", f"{x} x {y} x {z} invocations"),
        ("Blocks", "; ".join(map(block_text, module.blocks)) or "none"),
    ]
    if module.push_constants:
        numbers = ", ".join(f"{s.type} {s.name}" for s in module.push_constants)
        found.append(("Push constants", f"{numbers} ({module.push_nbytes} bytes)"))
    if module.specialization_constants:
        texts = map(_constant_text, module.specialization_constants)
        found.append(("Specialization constants", ", ".join(texts)))
    if module.shared_nbytes:
        found.append(("Shared memory", f"{module.shared_nbytes:,} bytes"))
    size = f"{len(module.spirv):,} bytes"
    code = f"{module.instructions:,} instructions, {module.loops} loops, {size}"
    return (*found, ("Code", code), ("Capabilities", ", ".join(module.capabilities)))


def block_text(block: Block) -> str:
    """Describe a block.

    >>> block_text(Block("Source", "", "storage", 0, 1, True, 0, 4, "%9"))
    '1 Source (storage, read only)'
    """
    access = ", read only" if block.readonly and block.kind == "storage" else ""
    names = " ".join(filter(None, (str(block.binding), block.name, block.instance)))
    return f"{names} ({block.kind}{access})"


def _constant_text(constant: Scalar) -> str:
    return f"{constant.type} {constant.name or constant.location} = {constant.default}"
