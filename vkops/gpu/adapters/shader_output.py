"""The texts that shaders print with debugPrintfEXT, in a program that goes on."""

from __future__ import annotations

import os

from vkops import console
from vkops.errors import DeviceError
from vkops.gpu.adapters.kompute import Native
from vkops.gpu.adapters.layer_messages import Message, received, refusal
from vkops.system.threads import new_lock

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

    def check(self) -> None:
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
