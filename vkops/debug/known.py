"""Messages of the validation layer that are known, each with the reason why it does not count."""

from __future__ import annotations

from typing import NamedTuple

from vkops.debug.messages import Message


class Known(NamedTuple):
    """A warning by its id and a part of its text."""

    id: str
    part: str
    reason: str

    def covers(self, message: Message) -> bool:
        """Whether it is that message."""
        this = message.severity, message.id
        return this == ("Warning", self.id) and self.part in message.text


KNOWN = (
    Known(
        "VALIDATION-SETTINGS",
        "Both GPU Assisted Validation and Normal Core Check Validation are enabled",
        "both are asked for",
    ),
    Known(
        "WARNING-GPU-Assisted-Validation",
        "vkCreateDevice(): Internal Warning: Forcing ",
        "the layer's own instrumentation needs the feature",
    ),
    Known(
        "WARNING-GPU-Assisted-Validation",
        "vkCreateDevice(): Internal Warning: Adding a ",
        "the layer's own instrumentation needs the extension's features",
    ),
    Known(
        "WARNING-GPU-Assisted-Validation",
        "vkCreateDevice(): Internal Warning: Ray Query validation option was enabled, but the "
        "rayQuery feature was not supported",
        "there are no ray queries to check",
    ),
)
