"""Forks: drivers have threads that a forked process lacks."""

from __future__ import annotations

import os

from vkops.errors import DeviceError


class _State:
    """Whether a device was opened, and whether this process was forked off after that.

    ``listed_by`` is the number of the process that listed adapters first.
    """

    opened = False
    forked = False
    listed_by = 0


state: _State = _State()


def check_not_forked() -> None:
    """Raise a DeviceError if this process was forked off one that had opened a device."""
    if state.forked:
        raise DeviceError(
            "this process was forked off one that had opened a Vulkan device, and drivers do not "
            "survive that; open devices after forks only, or start processes by spawning"
        )


def hint() -> str:
    """Return why a device may not open in a process that was forked off one with adapters."""
    if state.listed_by in (0, os.getpid()):
        return ""
    return (
        "; this process was forked off one that had listed the adapters, which some drivers do not "
        "survive: list them after forks only, or start processes by spawning"
    )
