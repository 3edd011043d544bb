"""Memory limits of Linux's control groups."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

_GROUPS = Path("/sys/fs/cgroup")
_OWN_GROUPS = Path("/proc/self/cgroup")


def available_in_groups(total: int) -> Iterator[int]:
    """Yield the bytes that are available in each control group of this process (versions 1 and 2).

    On systems without control groups, yield nothing.
    """
    for limit, usage, statistics, cache in _group_files():
        try:
            allowed = int(limit.read_text(encoding="utf-8"))
            if allowed >= total:  # no limit: do not read the statistics, which takes milliseconds
                continue
            lines = statistics.read_text(encoding="utf-8").splitlines()
            reclaimable = dict(line.split() for line in lines)[cache]
            yield allowed - int(usage.read_text(encoding="utf-8")) + int(reclaimable)
        except (OSError, ValueError, KeyError):  # no such group, or no limit ("max")
            continue


def _group_files() -> Iterator[tuple[Path, Path, Path, str]]:
    """Yield for each group the files of its limit, usage and statistics, and the latter's entry.

    In a container, the root of the file system of groups is the process's own group, although its
    path may be different.
    """
    try:
        # A group's name can have any bytes but those of line breaks.
        lines = _OWN_GROUPS.read_text(encoding="utf-8", errors="surrogateescape").split("\n")
    except OSError:
        return
    for line in lines:
        number, controllers, path = (*line.split(":", 2), "", "")[:3]
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
