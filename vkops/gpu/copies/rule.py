"""The rule by which regions are copied by Vulkan's own copies instead of shaders."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from math import prod

from vkops.errors import DeviceError, show
from vkops.gpu.adapters import adapter
from vkops.gpu.copies.runs import find_runs
from vkops.plan.region import CopyPlan, Region

COPY = "VKOPS_COPY"
"""Environment variable: ``shader`` or ``regions`` instead of the rule, which is ``auto``."""

MAX_COPIES = 1 << 18
"""Regions of a plan that are listed for the driver, with 24 bytes each."""

MAX_VALIDATED_COPIES = 512
"""The same under the validation layer, which compares each region with each other one."""

COMMAND = 64
"""The number of copies that take as long as one more command."""

NEVER = 1 << 62


@dataclass(frozen=True, slots=True)
class CopyRule:
    """The regions that are copied by Vulkan's copies; shaders copy all others.

    Each copy moves a contiguous run of at least ``min_bytes``. ``max_copies`` is the number of
    copies that a plan may have.
    """

    min_bytes: int
    max_copies: int = MAX_COPIES

    def count_copies(self, region: Region, plan: CopyPlan) -> int | None:
        """Return the number of copies of a region; None if shaders should copy it."""
        runs = find_runs(region, plan.element_size)
        if runs is None or runs.width < self.min_bytes:
            return None
        return prod([region.sizes[axis] for axis in runs.axes])


SHADERS = CopyRule(NEVER)
"""Shaders copy everything. On an NVIDIA H200 they move 3.9 TB/s; vkCmdCopyBuffer moves 0.85 TB/s in
one piece, and 0.08 TB/s in pieces of 64 KiB. With Mesa 25.0 and 26.1, two threads of a CPU driver
are 1.2 and 1.5 times as fast as its copies of 16 MiB, and 2 times as fast as those of 4 KiB."""

REGIONS = CopyRule(0)
"""All contiguous runs are copied by Vulkan's copies, whatever it costs."""

MESA_22 = CopyRule(4 << 10)
"""Older CPU drivers: from 4 KiB on, copies on one thread are 1.0 to 1.6 times as fast as shaders on
two threads."""

MAX_THREADS = 3
"""Threads up to which this holds. A copy takes one thread and shaders take all."""


def rule_for(info: adapter.DeviceInfo, *, validated: bool = False) -> CopyRule:
    """Return the rule for an adapter."""
    setting = os.environ.get(COPY) or "auto"
    if setting not in ("auto", "shader", "regions"):
        raise DeviceError(f"{COPY}: got {show(setting)}, must be auto, shader or regions")
    rule = SHADERS
    if setting == "regions":
        rule = REGIONS
    elif setting == "auto" and info.type == "CPU" and not adapter.prefers_int64(info):
        rule = MESA_22 if adapter.threads() <= MAX_THREADS else SHADERS
    return replace(rule, max_copies=MAX_VALIDATED_COPIES if validated else MAX_COPIES)
