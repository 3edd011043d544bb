"""``vkops debug printf``: collects the texts that shaders print with debugPrintfEXT."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from vkops.debug import layer
from vkops.errors import DeviceError
from vkops.gpu.adapters.layer_messages import Message
from vkops.gpu.copies.rule import COPY
from vkops.interpreter.printing import CONVERSION
from vkops.shaders.compiler import TEXT
from vkops.shaders.sources import MAX_SOURCE_BYTES
from vkops.system.files import read_regular

KERNEL_DEFINES = "VKOPS_KERNEL_DEFINES"


@dataclass(frozen=True)
class Printed:
    """The exit status of a program, the texts of its shaders, and whether some were lost."""

    returncode: int
    messages: tuple[Message, ...]
    lost: bool


def printf(command: Sequence[str], *, kernels: bool = False, source: str = "") -> Printed:
    """Run a program, and collect the texts that its shaders print.

    With ``kernels``, the kernels of vkops also print. ``source`` is the shader to run, if any.
    """
    variables = {KERNEL_DEFINES: "DEBUG_PRINTF", COPY: "shader"} if kernels else {}
    outcome = layer.run(command, "printf", variables)
    if outcome.refusal:
        raise DeviceError(
            f"the validation layer cannot look into this driver's shaders: {outcome.refusal}"
        )
    printed = [message for message in outcome.messages if message.printed is not None]
    # Other messages of the layer are for `validate`.
    lost = any(message.tells_of_loss for message in outcome.messages)
    return Printed(outcome.returncode, tuple(_with_lines(printed, source)), lost)


# -- lines -----------------------------------------------------------------------------------------

# Comments and macros come first, because a call in them does not print.
_CALL = re.compile(
    r"//[^\n]*|/\*.*?\*/|^[ \t]*#(?:[^\n]*\\\r?\n)*[^\n]*"
    r'|\bdebugPrintfEXT\s*\(\s*"(?P<format>(?:[^"\\]|\\.)*)"',
    re.DOTALL | re.MULTILINE,
)
_NUMBER = r" *[-+.\w]+"
_ESCAPES = {"n": "\n", "t": "\t"}


class _Call(NamedTuple):
    """A call of debugPrintfEXT, and a pattern of the texts that it can print."""

    file: str
    line: int
    form: re.Pattern[str]


def _with_lines(messages: Sequence[Message], source: str) -> Iterator[Message]:
    """Replace inexact lines, and lines of texts without a file, by the lines of the calls.

    The layer may name a statement shortly after the call, which can be in another file. A call is
    identified by the text that it prints. Calls with the same text are identified by the order of
    their instructions, if none is in a macro.
    """
    # A call is identified by its instruction and the location that the layer names.
    keys = [(m.instruction, m.file, m.line) for m in messages]
    pairs = list(zip(keys, messages, strict=True))
    inexact = {key: (m.printed or "").strip() for key, m in pairs if not m.exact or m.file == TEXT}
    files = dict.fromkeys(filter(None, [*(file for _, file, _ in inexact), source]))
    calls = [call for file in files for call in _calls(file)] if inexact else []
    alike: dict[tuple[_Call, ...], list[tuple[int, str, int]]] = {}
    for key, text in inexact.items():
        alike.setdefault(tuple(c for c in calls if c.form.fullmatch(text)), []).append(key)
    call_of: dict[tuple[int, str, int], _Call] = {}
    for candidates, keys in alike.items():
        if len(candidates) == len(keys):
            call_of.update(zip(sorted(keys), candidates, strict=True))
    for key, message in pairs:
        call = call_of.get(key)
        yield message._replace(file=call.file, line=call.line, exact=True) if call else message


def _calls(file: str) -> Iterator[_Call]:
    """Find the calls of debugPrintfEXT in a file, if it can be read.

    A ``#line`` in a shader can name anything, so only regular files of limited size are read.
    """
    try:
        text = read_regular(file, MAX_SOURCE_BYTES).decode(errors="replace")
    except (OSError, ValueError):
        return
    for match in _CALL.finditer(text):
        if match["format"] is not None:
            yield _Call(file, text.count("\n", 0, match.start()) + 1, _form(match["format"]))


def _form(format: str) -> re.Pattern[str]:
    """Return a pattern of the texts that a call with this format can print."""
    plain = re.sub(r"\\(.)", lambda m: _ESCAPES.get(m[1], m[1]), format, flags=re.DOTALL).strip()
    form, end = "", 0
    for match in re.finditer(rf"%%|{CONVERSION.pattern}", plain):
        count = int((match["vector"] or "v1")[1])
        number = "%" if match[0] == "%%" else ",".join([_NUMBER] * count)
        number = ".*" if match["letter"] == "s" else number
        form += re.escape(plain[end : match.start()]) + number
        end = match.end()
    return re.compile(form + re.escape(plain[end:]))
