"""The host's memory: CPU drivers make their devices' of it, and everyone their staging memory."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import numpy.typing as npt
import psutil

from vkops.errors import OutOfDeviceMemoryError

SPARE = 64 << 20
"""Bytes that the driver is left for its threads, and for the code that it compiles."""

_TAKEN_AT_ONCE = 1 << 30
_LEAST_PAGE = 4096

_GROUPS = Path("/sys/fs/cgroup")
_OWN_GROUPS = Path("/proc/self/cgroup")


def left() -> int:
    """Bytes that this process can still get of the host, and of its control groups, but SPARE."""
    memory = psutil.virtual_memory()
    return int(min([memory.available, *_left_in_groups(memory.total)])) - SPARE


def require(nbytes: int) -> None:
    """Make sure that the process may have so much more, for drivers crash where it may not.

    Raises:
        OutOfDeviceMemoryError: its limits (``ulimit -v``, say) do not allow it.
    """
    try:
        np.empty(nbytes + SPARE, np.uint8)  # address space only, given back at once
    except MemoryError as error:
        raise OutOfDeviceMemoryError(f"{nbytes} bytes: the host has no memory left") from error


def take(nbytes: int) -> npt.NDArray[np.uint8]:
    """Memory of the host, of undefined content, that is there from the start.

    An operating system promises more memory than it has, and ends processes that use it: so each
    page is written to now, as long as there is memory left.

    Raises:
        OutOfDeviceMemoryError: the host has less left.
    """
    _check(nbytes, nbytes)
    require(nbytes)
    memory = np.empty(nbytes, np.uint8)
    for start in range(0, nbytes, _TAKEN_AT_ONCE):
        piece = memory[start : start + _TAKEN_AT_ONCE]
        _check(piece.size, nbytes)  # other processes take some meanwhile
        piece[::_LEAST_PAGE] = 0
    return memory


def _check(more: int, nbytes: int) -> None:
    if more > left():
        raise OutOfDeviceMemoryError(
            f"{nbytes} bytes: neither the device nor the host has so much memory left"
        )


def _left_in_groups(total: int) -> Iterator[int]:
    """What each control group above this process leaves it; of versions 1 and 2."""
    for limit, usage, statistics, cache in _group_files():
        try:
            most = int(limit.read_text())
            if most >= total:  # none: and the statistics take milliseconds
                continue
            reclaimable = dict(line.split() for line in statistics.read_text().splitlines())[cache]
            yield most - int(usage.read_text()) + int(reclaimable)
        except (OSError, ValueError, KeyError):  # there is none, or no limit: "max"
            continue


def _group_files() -> Iterator[tuple[Path, Path, Path, str]]:
    """For each group the files of its limit and usage, its statistics, and what to look up there.

    In a container the root is the group's own, whatever its path is called.
    """
    try:
        lines = _OWN_GROUPS.read_text().splitlines()
    except OSError:
        return
    for line in lines:
        number, controllers, path = line.split(":", 2)
        if number == "0":
            root, limit, usage, cache = _GROUPS, "memory.max", "memory.current", "inactive_file"
        elif controllers == "memory":
            root, cache = _GROUPS / "memory", "total_inactive_file"
            limit, usage = "memory.limit_in_bytes", "memory.usage_in_bytes"
        else:
            continue
        group = root / path.lstrip("/")
        for folder in (root, *(g for g in (group, *group.parents) if root in g.parents)):
            yield folder / limit, folder / usage, folder / "memory.stat", cache
