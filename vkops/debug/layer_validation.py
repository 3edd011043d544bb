"""``vkops debug validate``: run a program under the validation layer; any message is a failure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from vkops.debug import layer
from vkops.gpu.adapters.layer_messages import Message


class Known(NamedTuple):
    """A warning that is no failure: its id, a part of its text, and the reason."""

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
    """Run a program, and those it starts, with all checks of the layer."""
    outcome = layer.run(command, "validate")
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
