"""The line of a program that called vkops."""

from __future__ import annotations

import sys
from types import FrameType


def calling_frame() -> FrameType | None:
    """Return the frame from which this thread entered vkops; None if it is a thread of vkops."""
    frame: FrameType | None = sys._getframe(1)
    inside = "vkops.", "contextlib"  # whose decorators are between functions of vkops
    while frame is not None and frame.f_globals.get("__name__", "").startswith(inside):
        frame = frame.f_back
    is_thread = frame is not None and frame.f_globals.get("__name__") == "threading"
    return None if is_thread else frame
