"""Settings and messages of the Khronos validation layer, of its versions 1.3 and 1.4."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from vkops import console
from vkops.errors import DeviceError
from vkops.gpu.adapters.kompute import Native
from vkops.system.threads import new_lock

SETTINGS = "VK_LAYER_SETTINGS_PATH"
"""Environment variable of the layer: the file with its settings."""

_PREFIX = "khronos_validation."
_SEVERITIES = {0x1000: "Error", 0x100: "Warning", 0x10: "Information"}

FOLDER = Path(__file__).with_name("layer_settings")
"""The folder of settings, each in a file."""

_DISABLED = re.compile(  # by version 1.4, and by 1.3
    r"(?:GPU-AV|DebugPrintf) is being disabled\. Details:(.*)"
    r"|Setup Error\. Detail: \((.*?\.) +(?:GPU-Assisted Validation|Debug Printf) disabled\.",
    re.DOTALL,
)

_HEAD = re.compile(
    r"^(?:.*?Validation (?P<severity>Error|Warning|Performance Warning|Information): "
    r"\[ (?P<id>\S+) \].*?\| MessageID = 0x\w+(?: \| |$)"
    r"|vkops: dispatch (?P<dispatch>.*)$)",
    re.MULTILINE,
)
_OBJECTS = re.compile(r"\n\s*Objects: \d+\s*(?:\n\s*\[\d+\] .*)*\s*\Z")
_INVOCATION = re.compile(r"Global invocation ID \(x, y, z\) = \((\d+), (\d+), (\d+) ?\)")
_LOCATION = re.compile(
    r"(?:generated|occurred) (?:in file (.+?) at line (\d+)|at (.+?):(\d+)$)", re.MULTILINE
)
_INDEX = re.compile(r"Instruction Index = (\d+)")
# 1.3: between the invocation and the location, if that is known; 1.4: a paragraph of its own.
_PRINTED = (
    re.compile(r"DebugPrintf:\n(?P<text>.*?)\nStage = ", re.DOTALL),
    re.compile(
        r"Global invocation ID [^)]*\) = \([^)]*\) ?(?P<text>.*?)"
        r"(?: Debug shader printf message generated| Unable to find SPIR-V OpLine |\s*\Z)",
        re.DOTALL,
    ),
)


class Message(NamedTuple):
    """One message. ``dispatch`` is the dispatchable that ran, ``invocation`` its global id.

    ``line`` is ``exact``, or that of a statement shortly after: version 1.3 of the layer finds it
    by the number of the ``instruction`` in its own, instrumented build of the shader.
    """

    severity: str
    id: str
    text: str
    dispatch: str
    invocation: tuple[int, int, int] | None
    file: str
    line: int
    exact: bool
    instruction: int

    @property
    def location(self) -> str:
        """File and line, if they are known."""
        before = "" if self.exact else " or shortly before"
        return f"{self.file}:{self.line}{before}" if self.file else ""

    @property
    def printed(self) -> str | None:
        """The text that a shader printed, None for other messages."""
        if self.severity != "Information" or "DEBUG-PRINTF" not in self.id:
            return None
        match = next(filter(None, (form.search(self.text) for form in _PRINTED)), None)
        return match["text"] if match else None

    @property
    def tells_of_loss(self) -> bool:
        """Whether it says that texts of shaders were lost."""
        return self.printed is None and "Debug Printf message was truncated" in self.text


def write_settings(name: str, log: Path) -> Path:
    """Write the settings of this name into the folder of a log, and return their file."""
    text = (FOLDER / f"{name}.txt").read_text(encoding="utf-8")
    for setting in ("debug_action = VK_DBG_LAYER_ACTION_LOG_MSG", f"log_filename = {log}"):
        text += f"{_PREFIX}{setting}\n"
    path = log.parent / "vk_layer_settings.txt"
    path.write_text(text, encoding="utf-8")
    return path


def settings(name: str) -> dict[str, bool | int | list[str]]:
    """Return the settings of this name, as the native module passes them to the layer."""
    values: dict[str, bool | int | list[str]] = {}
    for line in (FOLDER / f"{name}.txt").read_text(encoding="utf-8").splitlines():
        if line.startswith(_PREFIX):
            key, _, value = line.removeprefix(_PREFIX).partition(" = ")
            is_flag = value in ("true", "false")
            values[key] = (
                value == "true" if is_flag else int(value) if value.isdigit() else value.split(",")
            )
    return values


def received(severity: int, id_: str, text: str) -> Message:
    """Return the message that a layer passes to a program (VK_EXT_debug_utils)."""
    head = _HEAD.match(text)
    body = text if head is None else text[head.end() :]
    return _message(_SEVERITIES[severity], id_, _OBJECTS.sub("", body).strip(), "")


def refusal(messages: Sequence[Message]) -> str:
    """Return the reason why the layer cannot instrument shaders on this driver, or ``""``."""
    matches = (_DISABLED.search(message.text) for message in messages)
    return next((" ".join((match[1] or match[2]).split()) for match in matches if match), "")


def dispatch_line(name: str) -> str:
    """Return the line of the log that names the dispatch of the messages after it."""
    return f"vkops: dispatch {' '.join(name.splitlines())}\n"


def parse(log: str) -> Iterator[Message]:
    """Parse a log of the layer that contains ``dispatch_line``s."""
    heads = list(_HEAD.finditer(log))
    ends = [*(head.start() for head in heads), len(log)][1:]
    dispatch = ""
    for head, end in zip(heads, ends, strict=True):
        if head["dispatch"] is not None:
            dispatch = head["dispatch"]
        else:
            text = _OBJECTS.sub("", log[head.end() : end]).strip()
            yield _message(head["severity"], head["id"], text, dispatch)


def _message(severity: str, id_: str, text: str, dispatch: str) -> Message:
    invocation = _INVOCATION.search(text)
    index = _INDEX.search(text)
    # The last one: the text that a shader prints can look like a location.
    old, old_line, new, new_line = [("", "", "", "0"), *_LOCATION.findall(text)][-1]
    return Message(
        severity,
        id_,
        text,
        dispatch,
        (int(invocation[1]), int(invocation[2]), int(invocation[3])) if invocation else None,
        (old or new).removeprefix("./"),
        int(old_line or new_line),
        not old,
        int(index[1]) if index else 0,
    )


# -- texts that shaders print with debugPrintfEXT --------------------------------------------------

PRINTF = "VKOPS_PRINTF"
"""With 1 in this environment variable, devices print what shaders print."""


def is_wanted(printf: bool | None) -> bool:
    """Whether shaders print; by default, the environment says so."""
    return os.environ.get(PRINTF) == "1" if printf is None else printf


class ShaderOutput:
    """The messages of the validation layer to an instance, which are printed after each wait."""

    def __init__(self, adapter: Native) -> None:
        self._adapter = adapter
        self._lock = new_lock()

    def _new(self) -> list[Message]:
        return [received(*message) for message in self._adapter.take_messages()]

    def check_printing(self) -> None:
        """Check that the layer lets shaders print on a device that was opened now."""
        if reason := refusal(self._new()):
            raise DeviceError(f"printf: the validation layer cannot print here: {reason}")

    def show(self) -> None:
        """Print the texts since the last time on standard output."""
        with self._lock:  # texts of one thread stay together
            messages = self._new()
            for message in messages:
                for line in (message.printed or "").rstrip("\n").splitlines():
                    console.info(line)
            if any(message.tells_of_loss for message in messages):
                console.complain("printf: some texts were lost, let fewer invocations print")
