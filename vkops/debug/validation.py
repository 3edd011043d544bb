"""``vkops debug validate``: the validation layer must have nothing to say of a program."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from vkops.debug import layer
from vkops.debug.known import KNOWN, Known
from vkops.debug.messages import Message


@dataclass(frozen=True)
class Verdict:
    """How a program ended, and what the layer said of it."""

    returncode: int
    unexpected: tuple[Message, ...]
    known: Counter[Known]


def validate(command: Sequence[str]) -> Verdict:
    """Run a program, and those it starts, with all that the layer can check.

    Raises:
        DeviceError: as ``layer.run``.
    """
    outcome = layer.run(command, "validate")
    unexpected: list[Message] = []
    known: Counter[Known] = Counter()
    for message in outcome.messages:
        if message.severity == "Information":
            continue
        found = next((entry for entry in KNOWN if entry.covers(message)), None)
        if found is None:
            unexpected.append(message)
        else:
            known[found] += 1
    return Verdict(outcome.returncode, tuple(unexpected), known)
