"""Forks: drivers have threads that a forked process lacks."""

from __future__ import annotations

from vkops.errors import DeviceError


class _State:
    """Whether a device was opened, and whether this process was forked off after that."""

    opened = False
    forked = False


state: _State = _State()


def check() -> None:
    """Raise a DeviceError if this process was forked off one that had opened a device."""
    if state.forked:
        raise DeviceError(
            "this process was forked off one that had opened a Vulkan device, and drivers do not "
            "survive that; open devices after forks only, or start processes by spawning"
        )
