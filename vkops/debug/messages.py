"""What the Khronos validation layer says, in the forms of its versions 1.3 and 1.4."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

_HEADER = re.compile(
    r"^.*?Validation (?P<severity>Error|Warning|Performance Warning|Information): "
    r"\[ (?P<id>\S+) \].*?\| MessageID = 0x\w+(?: \| |$)",
    re.MULTILINE,
)
_DISPATCH = re.compile(r"^vkops: dispatch (.*)$", re.MULTILINE)
_OBJECTS = re.compile(r"^\s*Objects: \d.*", re.MULTILINE | re.DOTALL)
_INVOCATION = re.compile(r"Global invocation ID \(x, y, z\) = \((\d+), (\d+), (\d+) ?\)")
_PLACE = re.compile(r"(?:in file (?P<old>\S+) at line (\d+)|(?:generated|occurred) at (\S+):(\d+))")
# 1.3: between the invocation and the place, if it is known; 1.4: a paragraph of its own.
_PRINTED = (
    re.compile(r"DebugPrintf:\n(?P<text>.*?)\nStage = ", re.DOTALL),
    re.compile(
        r"Global invocation ID [^)]*\) = \([^)]*\) (?P<text>.*?)"
        r"(?: Debug shader printf message generated|\s*\Z)",
        re.DOTALL,
    ),
)


class Message(NamedTuple):
    """One message. ``dispatch`` is the dispatchable that ran, ``invocation`` its global id."""

    severity: str
    id: str
    text: str
    dispatch: str
    invocation: tuple[int, int, int] | None
    file: str
    line: int

    @property
    def place(self) -> str:
        """File and line, where they are known."""
        return f"{self.file}:{self.line}" if self.file else ""

    @property
    def printed(self) -> str | None:
        """What a shader printed, if it is that."""
        if self.severity != "Information" or "DEBUG-PRINTF" not in self.id:
            return None
        found = next(filter(None, (form.search(self.text) for form in _PRINTED)), None)
        return found["text"] if found else None


def dispatch_line(name: str) -> str:
    """The line that says of the messages after it which dispatch they are from."""
    return f"vkops: dispatch {' '.join(name.splitlines())}\n"


def parse(log: str) -> Iterator[Message]:
    """Read a log of the layer, with ``dispatch_line``s in it."""
    heads = list(_HEADER.finditer(log))
    marks = list(_DISPATCH.finditer(log))
    for number, head in enumerate(heads):
        end = heads[number + 1].start() if number + 1 < len(heads) else len(log)
        text = _OBJECTS.sub("", _DISPATCH.sub("", log[head.end() : end])).strip()
        dispatch = ""
        for mark in marks:
            if mark.start() < head.start():
                dispatch = mark[1]
        invocation = _INVOCATION.search(text)
        place = _PLACE.search(text)
        file, line = (place[1] or place[3], place[2] or place[4]) if place else ("", "0")
        yield Message(
            head["severity"],
            head["id"],
            text,
            dispatch,
            (int(invocation[1]), int(invocation[2]), int(invocation[3])) if invocation else None,
            file.removeprefix("./"),
            int(line),
        )
