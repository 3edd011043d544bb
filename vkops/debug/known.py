"""Messages of the validation layer that are known, each with the reason why it does not count."""

from __future__ import annotations

from typing import NamedTuple

from vkops.debug.messages import Message


class Known(NamedTuple):
    """A message by its id and a part of its text."""

    id: str
    part: str
    reason: str

    def covers(self, message: Message) -> bool:
        """Whether it is that message."""
        return message.id == self.id and self.part in message.text


KNOWN = (
    Known(
        "VALIDATION-SETTINGS",
        "Both GPU Assisted Validation and Normal Core Check Validation are enabled",
        "both are asked for",
    ),
    *(
        Known(
            "WARNING-GPU-Assisted-Validation",
            f"vkCreateDevice(): Internal Warning: {what}",
            "the layer's own instrumentation needs the feature",
        )
        for what in ("Forcing ", "Adding a ")
    ),
)
