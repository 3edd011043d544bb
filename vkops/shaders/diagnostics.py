"""Errors of the compiler, with the line of the source and a hint for the most usual mistakes."""

from __future__ import annotations

import os
import re
from collections.abc import Callable

from vkops.errors import ShaderCompileError, printable, show
from vkops.system import processes

LOCATED = re.compile(
    r"^ERROR: (?P<file>.+?):(?P<line>\d+): (?P<text>.*(?:\nGL_.*)*)$", re.MULTILINE
)
_STATED = re.compile(r"^(?:ERROR|.*: Error): (?P<text>.*)$", re.MULTILINE)

_MAX_QUOTED = 500
"""Characters of the compiler's message that an error's message quotes; its log has all."""

_NUMBERED = re.compile(r'\s*#\s*line\s+(\d+)(?:\s+"?([^"]+)"?)?')
_END_OF_LINE = re.compile(r"\r\n|\n|\r")

_FLOAT_ONLY = "a?(?:sin|cos|tan)h?|pow|exp2?|log2?|radians|degrees"
_SIZED = "u?int(?:8|16|64)_t|float16_t|(?:[iu](?:8|16|64)|f16)vec[234]"
_SCALAR = r"\b(bool|u?int(?:\d+_t)?|float(?:\d+_t)?|double)"
_AFTER = "IDENTIFIER|RIGHT_BRACE|FOR|WHILE|IF|RETURN|CONST|BOOL|INT|UINT|FLOAT|DOUBLE"

# Patterns of the compiler's message, which is followed by the line of the source.
_HINTS = (
    ("#version: compute shaders require", "the first line must be '#version 450'"),
    (rf"'({_FLOAT_ONLY})' : no matching", "{0} takes no double: write {0}(float(x))"),
    (rf"cannot convert from '(?!.* array )[^']*?{_SCALAR}' to '[^']*?{_SCALAR}'",
     "there is no implicit conversion of {0} to {1}: write {1}(x)"),
    (rf"(?:undeclared|syntax error|no matching|wrong operand)(?:.|\n)*?\b({_SIZED})\b",
     "{0} needs '#extension GL_EXT_shader_explicit_arithmetic_types : require'"),
    (rf"unexpected (?:{_AFTER}), expecting COMMA or SEMICOLON",
     "is a semicolon missing, here or in the line before?"),
    ("non-opaque uniforms outside a block", "use 'layout(push_constant) uniform Push {{ ... }};'"),
)  # fmt: skip


def error(
    compiler: str, name: str, returncode: int, log: str, crash: str, code: Callable[[str, int], str]
) -> ShaderCompileError:
    """Return the error for a failed compilation, from the compiler's first message with a line.

    If no message has a line, the first one is taken. ``#line`` in the shader changes the file and
    line that the compiler names. ``crash`` is added to the message if the compiler crashed or was
    killed, and ``code`` returns a line of a file.
    """
    file, line = name, None
    if (located := LOCATED.search(log)) is None:
        stated = _STATED.search(log)
        text = f"{compiler} failed without a diagnostic ({processes.describe(returncode)})"
        text += crash if returncode < 0 or processes.crash(returncode) else ""
        text = f": {_quoted(stated['text']) if stated else text}"
    elif located["file"] == "-1":  # where glslang keeps the -D macros
        text = f": in the defines: {_quoted(located['text'])}"
    else:
        file, line = located["file"], int(located["line"])
        file = file if file == name else os.path.normpath(file)
        text = f":{line}: {_quoted(located['text'], code(located['file'], line))}"
    return ShaderCompileError(printable(f"{file}{text}"), file=file, line=line, log=log)


def numbered_lines(text: bytes, name: str) -> dict[tuple[str, int], str]:
    """Return the lines of a source that is called ``name``, by file and number.

    ``#line`` in the source changes both. If several lines get the same number, the first is taken.
    """
    known: dict[tuple[str, int], str] = {}
    file, number = "", 1
    for line in _END_OF_LINE.split(text.decode(errors="replace")):
        if changed := _NUMBERED.match(line):
            file, number = changed[2] or file, int(changed[1])
        else:
            known.setdefault((file, number), line.strip())
            number += 1
    return {(name, number): line for (file, number), line in known.items() if not file} | known


def _quoted(message: str, code: str = "") -> str:
    """A message of the compiler with the line of the source and a hint."""
    text = " ".join(message.split())
    text = text if len(text) <= _MAX_QUOTED else f"{text[:_MAX_QUOTED]}…"
    quoted = f"{text}, in {show(code)}" if code else text
    for pattern, hint in _HINTS:
        if match := re.search(pattern, f"{text}\n{code}"):
            return f"{quoted}; {hint.format(*match.groups())}"
    return quoted
