"""The texts that shaders print with debugPrintfEXT, in a program that goes on."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from functools import lru_cache
from pathlib import Path
from tempfile import TemporaryDirectory

from vkops import console
from vkops.errors import DeviceError
from vkops.gpu.adapters import adapter, loader_files
from vkops.gpu.adapters.layer_messages import SETTINGS, Message, parse, refusal, write_settings
from vkops.system.locks import Lock

PRINTF = "VKOPS_PRINTF"
"""With 1 in this environment variable, devices print what shaders print."""


class ShaderOutput:
    """The log of the validation layer, whose new texts are printed after each wait."""

    def __init__(self) -> None:
        self._folder = TemporaryDirectory(prefix="vkops-")
        self._log = Path(self._folder.name) / "messages"
        self._log.touch()
        self._lock = Lock()
        self._shown = 0
        self._settings = write_settings("printf", self._log)

    @contextmanager
    def enabled(self) -> Iterator[None]:
        """Make instances that are created within load the layer, which lets shaders print."""
        layer = nullcontext() if adapter.under_validation() else adapter.validation()
        with loader_files.environment({SETTINGS: str(self._settings)}), layer:
            yield

    def _new(self) -> list[Message]:
        """Return the messages since the last time; an incomplete one is left for the next time."""
        with self._log.open("rb") as file:
            file.seek(self._shown)
            content = file.read()
        whole = content[: content.rfind(b"\n") + 1]
        self._shown += len(whole)
        return list(parse(whole.decode(errors="replace")))

    def check(self) -> None:
        """Check that the layer lets shaders print on a device that was opened now."""
        with self._lock:
            if reason := refusal(self._new()):
                raise DeviceError(f"printf: the validation layer cannot print here: {reason}")

    def show(self) -> None:
        """Print the texts since the last time on standard output."""
        with self._lock:
            messages = self._new()
            for message in messages:
                for line in (message.printed or "").rstrip("\n").splitlines():
                    console.info(line)
            if any(message.tells_of_loss for message in messages):
                console.complain("printf: some texts were lost, let fewer invocations print")


@lru_cache(maxsize=1)
def _of_process(process: int) -> ShaderOutput:
    return ShaderOutput()


def shader_output(printf: bool | None) -> ShaderOutput | None:
    """Return the output of shaders, if it is asked for; by default, the environment asks."""
    is_enabled = os.environ.get(PRINTF) == "1" if printf is None else printf
    return _of_process(os.getpid()) if is_enabled else None
