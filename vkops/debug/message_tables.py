"""Tables of the validation layer's messages."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from rich.console import RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from vkops import console
from vkops.errors import printable
from vkops.gpu.adapters.layer_messages import Message


def printed(messages: Sequence[Message]) -> Table:
    """Make a table of the texts that shaders print, without columns that would be empty."""
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
    """Describe messages, once if they differ only in handles and invocations."""
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
