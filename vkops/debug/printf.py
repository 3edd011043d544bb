"""``vkops debug printf``: what shaders print with debugPrintfEXT, by invocation."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from vkops.debug import layer
from vkops.debug.messages import Message

KERNEL_DEFINES = "VKOPS_KERNEL_DEFINES"


@dataclass(frozen=True)
class Printed:
    """How a program ended, what its shaders printed, and what the layer said of that."""

    returncode: int
    messages: tuple[Message, ...]
    troubles: tuple[Message, ...]


_CALL = re.compile(r'debugPrintfEXT\s*\(\s*"((?:[^"\\\\]|\\\\.)*)"')
_CONVERSION = re.compile(r"%[-+ #0-9.]*(?:v[234])?(?:[ul]*[diouxXfeEaAgGl])")


def printf(command: Sequence[str], *, kernels: bool = False) -> Printed:
    """Run a program, and collect what its shaders print; with ``kernels``, vkops' own do, too.

    Raises:
        DeviceError: as ``layer.run``.
    """
    variables = {KERNEL_DEFINES: "DEBUG_PRINTF"} if kernels else {}
    outcome = layer.run(command, "printf", variables)
    printed = tuple(_placed(m) for m in outcome.messages if m.printed is not None)
    # Of all else only this layer's own loss counts: other faults are for `validate`.
    troubles = tuple(m for m in outcome.messages if "truncated" in m.text)
    return Printed(outcome.returncode, printed, troubles)


def _placed(message: Message) -> Message:
    """The message with the line of its call: version 1.3 of the layer names the next statement."""
    try:
        lines = Path(message.file).read_text(errors="replace").splitlines()[: message.line]
    except OSError:
        return message
    text = (message.printed or "").strip()
    for number in range(len(lines), 0, -1):
        for call in _CALL.finditer(lines[number - 1]):
            literals = map(re.escape, _CONVERSION.split(call[1].replace("\\n", "").strip()))
            if re.fullmatch(".*?".join(literals), text, re.DOTALL):
                return message._replace(line=number)
    return message
