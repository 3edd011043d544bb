"""Run a program under the Khronos validation layer, and collect the layer's messages.

``validate`` is for ``vkops debug validate``: any message counts as a failure.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

from rich.console import RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from vkops import console
from vkops.debug.dispatch_hooks import LOG
from vkops.errors import DeviceError, printable
from vkops.gpu.adapters import adapter
from vkops.gpu.adapters.layer_messages import SETTINGS, Message, parse, refusal, write_settings
from vkops.gpu.run.vulkan_device import SYNC
from vkops.system.processes import named_pipe

_NOISE = "Validation Layer Info - Logging validation error to "


@dataclass(frozen=True)
class Outcome:
    """The exit status of a program, as in ``subprocess``, and the layer's messages in order.

    There are no messages if the program failed before it created a Vulkan instance.
    """

    returncode: int
    messages: tuple[Message, ...]

    @property
    def refusal(self) -> str:
        """The reason why the layer cannot instrument shaders on this driver, or ``""``."""
        return refusal(self.messages)


def run(command: Sequence[str], settings: str, variables: Mapping[str, str] = {}) -> Outcome:
    """Run a program, and the programs that it starts, with the layer's settings in a named file."""
    with ExitStack() as stack:
        adapter.validation_version()
        folder = Path(stack.enter_context(TemporaryDirectory(prefix="vkops-")))
        path = folder / "messages"  # each Vulkan instance truncates its log: a pipe keeps all
        try:
            received = stack.enter_context(named_pipe(path))
        except OSError as error:
            raise DeviceError(f"no messages of the validation layer: {error}") from error
        settings_path = write_settings(settings, path)
        # The first layer is the nearest to the program; it checks values that the others report.
        layers = filter(None, [adapter.VALIDATION_LAYER, os.environ.get(adapter.LAYERS)])
        layer_variables = {
            adapter.LAYERS: os.pathsep.join(layers),
            SETTINGS: str(settings_path),
            LOG: str(path),
            SYNC: "1",
            **variables,
        }
        try:
            process = subprocess.Popen(
                command, env={**os.environ, **layer_variables}, stdout=subprocess.PIPE, text=True
            )
        except OSError as error:
            raise DeviceError(f"{command[0]}: cannot be started: {error.strerror}") from error
        with process:
            assert process.stdout is not None
            try:
                for line in process.stdout:
                    if not line.startswith(_NOISE):  # version 1.4 prints the name of its log
                        sys.stdout.write(line)
                        sys.stdout.flush()
            except SystemExit:  # the terminal interrupts all processes
                process.terminate()
                raise
    messages = tuple(parse(b"".join(received).decode(errors="replace")))
    # The first message of the layer lists what is enabled.
    if not messages and not process.returncode:
        raise DeviceError("the validation layer was not loaded: the program does not use Vulkan")
    return Outcome(process.returncode, messages)


class Known(NamedTuple):
    """A warning that does not count as a failure: its id, a part of its text, and the reason."""

    id: str
    part: str
    reason: str


_GPU = "WARNING-GPU-Assisted-Validation"
_DEVICE = "vkCreateDevice(): Internal Warning: "

KNOWN = (
    Known(
        "VALIDATION-SETTINGS",
        "Both GPU Assisted Validation and Normal Core Check Validation are enabled",
        "both are enabled on purpose",
    ),
    Known(_GPU, f"{_DEVICE}Forcing ", "the layer's own instrumentation needs the feature"),
    Known(
        _GPU,
        f"{_DEVICE}Adding a ",
        "the layer's own instrumentation needs the extension's features",
    ),
    Known(
        _GPU,
        f"{_DEVICE}Ray Query validation option was enabled, but the rayQuery feature was not "
        "supported",
        "there are no ray queries to check",
    ),
    Known(
        "WARNING-Setting-Limit-Adjusted",
        "vkCreateDevice(): Warning that validation is adjusting settings:",
        "newer layers say so of all that they need and of all that the device lacks",
    ),
)


@dataclass(frozen=True)
class Verdict:
    """The exit status of a program, and the messages of the layer."""

    returncode: int
    unexpected: tuple[Message, ...]
    known: Counter[Known]


def validate(command: Sequence[str]) -> Verdict:
    """Run a program, and the programs that it starts, with all checks of the layer."""
    outcome = run(command, "validate")
    unexpected: list[Message] = []
    known: Counter[Known] = Counter()
    for message in outcome.messages:
        covering = (
            entry
            for entry in KNOWN
            if message.severity == "Warning"
            and message.id == entry.id
            and entry.part in message.text
        )
        if entry := next(covering, None):
            known[entry] += 1
        elif message.severity != "Information":
            unexpected.append(message)
    return Verdict(outcome.returncode, tuple(unexpected), known)


# -- tables of messages ----------------------------------------------------------------------------


def printed(messages: Sequence[Message]) -> Table:
    """Return a table of the texts that shaders print, without empty columns."""
    columns = {
        "Dispatch": [message.dispatch for message in messages],
        "Invocation": [_invocation(message) for message in messages],
        "Line": [m._replace(file=Path(m.file).name).location for m in messages],
        "Printed": [message.printed or "" for message in messages],
    }
    if len(set(columns["Dispatch"])) == 1:
        del columns["Dispatch"]
    filled = {heading: cells for heading, cells in columns.items() if any(cells)}
    rows = zip(*filled.values(), strict=True)
    return console.table(None, filled, [[Text(_visible(cell)) for cell in row] for row in rows])


def faults(messages: Sequence[Message]) -> Iterator[RenderableType]:
    """Describe messages; those that differ only in handles and invocations are described once."""
    alike: dict[tuple[str, ...], list[Message]] = {}
    for message in messages:
        key = (message.severity, message.id, message.dispatch, message.location)
        alike.setdefault(key, []).append(message)
    for (severity, id_, dispatch, location), group in alike.items():
        first = group[0]
        where = [
            f"in {dispatch}" if dispatch else "",
            f"at {location}" if location else "",
            f"by invocation {_invocation(first)}" if first.invocation else "",
        ]
        times = "" if len(group) == 1 else f" ({len(group)} times)"
        yield Text(_visible(" ".join(filter(None, [f"{severity} {id_}", *where])) + times), "bold")
        yield Padding(Text(_visible(first.text)), (0, 0, 1, 2))


def _invocation(message: Message) -> str:
    return ", ".join(map(str, message.invocation)) if message.invocation else ""


def _visible(text: str) -> str:
    return "\n".join(map(printable, text.split("\n")))
