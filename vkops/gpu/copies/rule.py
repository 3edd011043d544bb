"""The rule by which regions are copied by Vulkan's own copies instead of shaders."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from math import prod
from typing import NamedTuple

from vkops.errors import DeviceError, show
from vkops.gpu.adapters import adapter
from vkops.gpu.copies.rectangles import MAX_ROWS, ImageLimits, Rectangles, find_runs, rectangles
from vkops.gpu.kernels.choice import VECTOR
from vkops.plan.region import CopyPlan, Region

COPY = "VKOPS_COPY"
"""Environment variable: ``shader`` or ``regions`` instead of the rule, which is ``auto``."""

MAX_COPIES = 1 << 18
"""Regions of a plan that are listed for the driver, with 24 bytes each."""

MAX_VALIDATED_COPIES = 512
"""The same under the validation layer, which compares each region with each other one."""

COMMAND = 64
"""The number of copies that take as long as one more command or image."""

LONG_ROW = 2 << 10
"""The length in bytes from which it is faster to copy each row than several as one image row."""

FAR_APART = 192
"""The distance in bytes of rows from which a processor no longer prefetches several of them."""

NEVER = 1 << 62


class Shortest(NamedTuple):
    """The lengths in bytes from which images copy rows faster than shaders do.

    ``vectors`` is for rows that shaders move in vectors of 16 bytes. ``scattered`` is for other
    rows if the output has several regions or the rows are FAR_APART in the input: shaders then take
    twice as long. ``others`` is for all other rows.
    """

    vectors: int
    scattered: int
    others: int


_ALWAYS = Shortest(0, 0, 0)
_NEVER = Shortest(NEVER, NEVER, NEVER)


@dataclass(frozen=True, slots=True)
class CopyRule:
    """The regions that are copied by Vulkan's copies; shaders copy all others.

    Each copy, whether of a contiguous run or of a rectangle of an image, moves at least
    ``min_bytes``. ``single`` applies to images whose rows hold one row of the tensor each, and
    ``several`` to those whose rows hold several. ``images`` has the limits of linear images, or
    None if they are not used, and ``max_copies`` is the number of copies that a plan may have.
    """

    min_bytes: int
    single: Shortest = _NEVER
    several: Shortest = _NEVER
    images: ImageLimits | None = None
    max_copies: int = MAX_COPIES

    def find_copies(self, region: Region, plan: CopyPlan, target: int) -> RegionCopies | None:
        """Return how to copy an output's region; None if shaders should copy it."""
        runs = find_runs(region, plan.element_size)
        if runs is None:
            return None
        count = prod([region.sizes[axis] for axis in runs.axes])
        if self.images is not None and region.input is not None and count > COMMAND:
            nbytes = plan.inputs[region.input], plan.outputs[target].nbytes
            boxes = rectangles(region, plan.element_size, nbytes, self.images)
            if boxes is not None:
                number = len(boxes.copies) + len(boxes.runs)
                if (
                    number + COMMAND <= count
                    and runs.width * count >= self.min_bytes * number
                    and runs.width >= self._shortest(boxes, region, plan, target)
                ):
                    return RegionCopies(number, boxes)
        return RegionCopies(count) if runs.width >= self.min_bytes else None

    def _shortest(self, boxes: Rectangles, region: Region, plan: CopyPlan, target: int) -> int:
        single = boxes.image.rows == 1
        if not single and boxes.width >= LONG_ROW:
            return NEVER
        shortest, size = self.single if single else self.several, plan.element_size
        if size == VECTOR:
            return shortest.vectors
        *outer, _ = region.source_view.strides
        apart = (abs(outer[-1]) - region.sizes[-1]) * size
        scattered = len(plan.outputs[target].regions) > 1 or apart >= FAR_APART
        return shortest.scattered if scattered else shortest.others


class RegionCopies(NamedTuple):
    """How to copy a region: the number of copies, and its rectangles if an image is used."""

    number: int
    rectangles: Rectangles | None = None


SHADERS = CopyRule(min_bytes=NEVER)
"""Shaders copy everything, as on GPUs. On an NVIDIA H200 they move 3.9 TB/s; vkCmdCopyBuffer moves
0.85 TB/s in one piece, and 0.08 TB/s in pieces of 64 KiB."""

REGIONS = CopyRule(0, _ALWAYS, _ALWAYS)
"""All contiguous runs are copied by Vulkan's copies, whatever it costs."""

MESA_22 = CopyRule(1 << 10, Shortest(16, 8, 16), Shortest(32, 16, 40))
MESA_25 = CopyRule(4 << 10, Shortest(72, 10, 25), Shortest(NEVER, 17, NEVER))
"""CPU drivers on two cores, from 336 splits and joins of rows. In nanoseconds, shaders take 0.6 per
byte and thread with Mesa 22.3; with Mesa 25.0, 0.24 for vectors and 0.42 otherwise. Copies take
0.07 per byte (0.21 where rows of an image hold several), 3.5 per row, and 350 per copy."""

MAX_THREADS = {MESA_22: 4, MESA_25: 3}
"""Threads up to which this holds. A copy takes one thread and shaders take all: they are faster
with more."""


def rule_for(
    info: adapter.DeviceInfo, images: ImageLimits | None, *, validated: bool = False
) -> CopyRule:
    """Return the rule for an adapter; ``images`` are its limits of linear images, if it has any.

    Images that can have fewer than MAX_ROWS rows are not used.
    """
    setting = os.environ.get(COPY) or "auto"
    if setting not in ("auto", "shader", "regions"):
        raise DeviceError(f"{COPY}: got {show(setting)}, must be auto, shader or regions")
    mesa = MESA_25 if adapter.prefers_int64(info) else MESA_22
    if setting == "regions":
        rule = REGIONS
    elif setting == "auto" and info.type == "CPU" and adapter.threads() <= MAX_THREADS[mesa]:
        rule = mesa
    else:
        rule = SHADERS
    limit = MAX_VALIDATED_COPIES if validated else MAX_COPIES
    if images and images.side < MAX_ROWS:
        images = None
    return replace(rule, images=images, max_copies=limit)
