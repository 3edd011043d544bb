"""SPIR-V as people read it: below its source lines, and next to another build."""

from __future__ import annotations

import difflib
import hashlib
import os
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from vkops.shaders import tools

_NUMBER = re.compile(r"%\d+\b")
_DEBUG = ("OpSource", "OpString", "OpName", "OpMemberName", "OpLine", "OpNoLine", "OpModule")


def listing(spirv: bytes, files: Mapping[str, Sequence[str]] = {}) -> str:
    """The module as text; each source line stands above what was made of it.

    Lines are known where the shader was compiled with debug information, which holds the text of
    its first file; ``files`` are the lines of others by their real paths, as ``sources.lines``
    gives them. Nothing else that the module names is opened. Control characters are escaped.

    Raises:
        ShaderCompileError: it is damaged, or spirv-dis is missing.
    """
    text = tools.disassemble(spirv, names=True)
    return "\n".join(_escaped(line) for line in _with_source(text, files))


def _escaped(text: str) -> str:
    """One line of text, or one after an empty line, without what would control a terminal."""
    start, text = text[: text.startswith("\n")], text[text.startswith("\n") :]
    return start + "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)


def _with_source(text: str, included: Mapping[str, Sequence[str]]) -> Iterator[str]:
    files: dict[str, str] = {}
    sources: dict[str, Sequence[str]] = {}
    before = None
    for instruction in tools.INSTRUCTION.findall(text):
        result, op, *rest = tools.words(instruction)
        if op == "OpString":
            files[result] = tools.unquoted(rest[0])
        if op == "OpSource" and len(rest) == 4:  # it comes line by line
            sources[rest[2]] = _lines(tools.unquoted(rest[3]))
        elif op == "OpLine":
            file, line = rest[:2]
            if (file, line) != before:
                source = sources.setdefault(file, _of(included, files[file]))
                code = source[int(line) - 1] if 0 < int(line) <= len(source) else ""
                yield f"\n; {files[file]}:{line}: {code.expandtabs().strip()}".rstrip()
            before = file, line
        elif op != "OpNoLine":
            yield instruction


def _lines(text: str) -> list[str]:
    """A source's own lines, without those in which the compiler says how it was called."""
    lines = text.splitlines()
    return lines[lines.index("#line 1") + 1 :] if "#line 1" in lines else lines


def _of(files: Mapping[str, Sequence[str]], name: str) -> Sequence[str]:
    """The lines of the file of that name, if it is among them."""
    return () if "\0" in name else files.get(os.path.realpath(name), ())


def difference(before: bytes, after: bytes, labels: tuple[str, str]) -> list[str]:
    """How two modules differ, as a unified diff; nothing if they are the same.

    Numbered ids are called by what they stand for, so that one more or less renames no other;
    debug information is left out.

    Raises:
        ShaderCompileError: one is damaged, or spirv-dis is missing.
    """
    one, other = (list(_renamed(tools.disassemble(spirv, names=True))) for spirv in (before, after))
    return [_escaped(line) for line in difflib.unified_diff(one, other, *labels, lineterm="")]


def _renamed(text: str) -> Iterator[str]:
    """Instructions whose numbered ids are called by a word and a hash of what defines them."""
    names: dict[str, str] = {}
    seen: Counter[str] = Counter()

    def named(match: re.Match[str]) -> str:
        return names.get(match[0], "%later")

    instructions = [
        instruction
        for instruction in tools.INSTRUCTION.findall(text)
        if not tools.words(instruction)[1].startswith(_DEBUG)
    ]
    for instruction in instructions:
        result, op, *rest = tools.words(instruction)
        if _NUMBER.fullmatch(result):
            definition = _NUMBER.sub(named, " ".join([op, *rest]))
            digest = hashlib.sha256(definition.encode()).hexdigest()[:4]
            name = f"%{op.removeprefix('Op')}_{digest}"
            seen[name] += 1
            names[result] = name if seen[name] == 1 else f"{name}_{seen[name]}"
    for instruction in instructions:
        yield _NUMBER.sub(named, instruction)
