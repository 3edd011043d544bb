"""Contexts in which dispatches run, chosen by variables that ``vkops debug`` sets."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from vkops.debug.capture import DispatchHook

CAPTURE = "VKOPS_CAPTURE"
"""The variable that names the file of a RenderDoc capture."""

LOG = "VKOPS_MESSAGE_LOG"
"""The variable that names the layer's log; names of dispatches are also written to it."""


@contextmanager
def from_environment() -> Iterator[DispatchHook]:
    """Capture the dispatches in this block, or write their names to the validation layer's log."""
    if path := os.environ.get(CAPTURE):
        from vkops.debug.capture import capturing

        with capturing(Path(path)) as hook:
            yield hook
        return
    log = os.environ.get(LOG)

    def write_name(name: str) -> nullcontext[None]:
        if log:
            from vkops.gpu.adapters.layer_messages import dispatch_line

            with open(log, "a", encoding="utf-8", errors="backslashreplace") as stream:
                stream.write(dispatch_line(name))
        return nullcontext()

    yield write_name
