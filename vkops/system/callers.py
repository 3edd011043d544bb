"""The line of a program that called vkops."""

from __future__ import annotations

import sys
from types import FrameType


def calling_frame() -> FrameType | None:
    """Return the frame that called vkops in this thread; None in a thread that vkops started."""
    frame: FrameType | None = sys._getframe(1)
    inside = "vkops.", "contextlib"  # decorators of contextlib add frames between those of vkops
    while frame is not None and frame.f_globals.get("__name__", "").startswith(inside):
        frame = frame.f_back
    is_thread = frame is not None and frame.f_globals.get("__name__") == "threading"
    return None if is_thread else frame
