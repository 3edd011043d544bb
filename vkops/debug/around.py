"""What dispatches are run within, when one of the ``debug`` commands has started this process."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path

from vkops.debug.capture import AroundDispatch, capturing
from vkops.debug.layer import LOG
from vkops.debug.messages import dispatch_line

CAPTURE = "VKOPS_CAPTURE"


@contextmanager
def from_environment() -> Iterator[AroundDispatch]:
    """Capture what runs within, or mark it in the layer's log, as the environment says."""
    if path := os.environ.get(CAPTURE):
        with capturing(Path(path)) as around:
            yield around
    elif path := os.environ.get(LOG):
        log = path

        @contextmanager
        def marked(name: str) -> Iterator[None]:
            with open(log, "a", encoding="utf-8", errors="backslashreplace") as stream:
                stream.write(dispatch_line(name))
            yield

        yield marked
    else:
        yield lambda name: nullcontext()
