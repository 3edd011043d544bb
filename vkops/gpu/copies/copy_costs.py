"""The costs of Vulkan's copies on a device, and the choice between them and shaders."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from math import inf, prod
from typing import NamedTuple

from vkops.errors import DeviceError, show
from vkops.gpu.adapters.kompute import ImageLimits
from vkops.gpu.copies.rectangles import Rectangles, rectangles
from vkops.gpu.copies.runs import find_runs
from vkops.gpu.kernels.choice import VECTOR
from vkops.plan.algebra import optimize
from vkops.plan.region import CopyPlan, Region

COPY = "VKOPS_COPY"
"""Environment variable: ``shader`` or ``regions`` instead of the faster of the two, ``auto``."""

MAX_REGIONS = 1 << 18
"""Regions of a plan that are listed for the driver, with 24 bytes each."""

MAX_VALIDATED_REGIONS = 512
"""The same under the validation layer, which compares each region with each other one."""

FAR = 3
"""The factor by which rows take longer if the rows beside them are copied at another time."""

FAR_APART = 192
"""Bytes between rows of the input from which a processor no longer fetches several at a time."""

MIN_MEASURED_BYTES = 1 << 20
"""Bytes of a plan's outputs from which it is worthwhile to measure the costs of copies for it."""

MIN_MEASURED_RUN = 1 << 10
"""Bytes of the runs that such a plan has: for shorter ones, a GPU's shaders are faster anyway."""


@dataclass(frozen=True, slots=True)
class CopyCosts:
    """The nanoseconds that copies take on a device.

    ``shader``, ``unaligned`` and ``copy`` are those per byte that a shader moves in vectors,
    otherwise, or that a copy moves. Shaders take ``scattered`` times as long for what is not in
    vectors if an output has several regions, or if rows of the input are far apart. ``region`` is
    what each region of a copy costs besides, ``record`` each region of a plan that a shader copies,
    ``command`` a copy beside the dispatch of a shader, ``row`` each row of a rectangle, and
    ``image`` an image for rectangles. ``max_regions`` is the number of regions allowed, and
    ``images`` the limits of linear images, if the device has them.
    """

    shader: float
    unaligned: float
    copy: float
    region: float
    command: float
    scattered: float = 1
    record: float = 0
    row: float = 0
    image: float = inf
    max_regions: int = MAX_REGIONS
    images: ImageLimits | None = None

    def can_save(self, nbytes: int) -> bool:
        """Whether anything could be gained by copying so many bytes."""
        slowest = max(self.shader, self.unaligned * self.scattered)
        return (slowest - self.copy) * nbytes > self.region - self.record

    def __str__(self) -> str:
        others = f"{self.unaligned:.3g} if not aligned to {VECTOR} bytes"
        if self.scattered != 1:
            others += f", {self.unaligned * self.scattered:.3g} if scattered, too"
        return (
            f"{self.shader:.3g} ns per byte for shaders ({others}); for copies {self.copy:.3g} ns "
            f"per byte, {self.region:,.0f} ns per region and {self.command:,.0f} ns per command"
        )

    def by_shader(self, region: Region, plan: CopyPlan, target: int) -> float:
        """Return the time that a shader takes for an output's region."""
        size = plan.element_size
        nbytes = size * prod(region.sizes)
        if size == VECTOR:
            return self.record + self.shader * nbytes
        *outer, _ = region.source_view.strides
        apart = (abs(outer[-1]) - region.sizes[-1]) * size if outer else 0
        scattered = len(plan.outputs[target].regions) > 1 or apart >= FAR_APART
        unaligned = self.unaligned * (self.scattered if scattered else 1)
        return self.record + unaligned * nbytes

    def estimate(self, region: Region, plan: CopyPlan, target: int) -> Estimate | None:
        """Return the fastest copies of an output's region; None if it does not consist of runs."""
        size = plan.element_size
        runs = find_runs(region, size)
        if runs is None:
            return None
        count = prod([region.sizes[axis] for axis in runs.axes])
        moved = self.copy * runs.width * count
        by_runs = Estimate(moved + self.region * count, count)
        if not region.inputs or self.images is None or self.region * count < self.image:
            return by_runs
        nbytes = plan.inputs[region.inputs[0]], plan.outputs[target].nbytes
        boxes = rectangles(region, size, nbytes, self.images)
        grid = boxes and boxes.grid
        if not boxes or not grid:
            return by_runs
        copies = boxes.count(grid)
        time = moved * (1 if grid.rows == 1 else FAR) + self.row * count + self.region * copies
        by_images = Estimate(time + self.image, copies, boxes)
        return min(by_runs, by_images, key=lambda way: way.time)

    def choose(self, plan: CopyPlan) -> tuple[Chosen, float]:
        """Choose the regions that shaders would copy more slowly.

        Returns:
            The copies of each of them, and the time that they save together. None are chosen if
            they have more copies than are allowed.
        """
        chosen: Chosen = {}
        count, saved = 0, 0.0
        for target, region in plan.regions:
            found = self.estimate(region, plan, target)
            if found is None:
                continue
            gain = self.by_shader(region, plan, target) - found.time
            if gain > 0:
                chosen[id(region)] = found
                count, saved = count + found.copies, saved + gain
        return (chosen, saved) if count <= self.max_regions else ({}, 0.0)


class Estimate(NamedTuple):
    """The time of the copies of a region in nanoseconds, their number, and by which rectangles."""

    time: float
    copies: int
    rectangles: Rectangles | None = None


Chosen = dict[int, Estimate]
"""The copies of the regions that are not left to shaders, by their ``id``."""


def on_cpu(threads: int, *, int64: bool = False) -> CopyCosts:
    """The costs of CPU drivers, such as Mesa's lavapipe: shaders use all threads, copies use one.

    ``int64`` says whether shaders move vectors as integers of 64 bits, as with Mesa 25. Measured
    with 336 splits and joins of rows on two cores: a shader takes 0.6 to 0.66 nanoseconds per byte
    and thread with Mesa 22.3, and with 25.0 0.24 for vectors and 0.42 otherwise; a copy takes 1/14
    in all. A region costs a copy 350 nanoseconds and a shader 300, a row of a rectangle costs 3.5.
    """
    shader, unaligned = (0.24, 0.42) if int64 else (0.66, 0.6)
    return CopyCosts(
        shader=shader / threads,
        unaligned=unaligned / threads,
        copy=1 / 14,
        region=350,
        command=20e3,
        scattered=2,
        record=300,
        row=3.5,
        image=20e3,
    )


ALWAYS_REGIONS = replace(on_cpu(1), shader=inf, unaligned=inf)
"""Costs by which all contiguous runs are copied with regions."""

UNMEASURED = CopyCosts(shader=0, unaligned=0, copy=0, region=0, command=0)
"""Costs by which shaders copy everything, until those of the device are measured."""


def wanted_copies() -> str:
    """Return the value of VKOPS_COPY.

    Raises:
        DeviceError: the variable has another value than the three that are allowed.
    """
    wanted = os.environ.get(COPY) or "auto"
    if wanted not in ("auto", "shader", "regions"):
        raise DeviceError(f"{COPY}: got {show(wanted)}, must be auto, shader or regions")
    return wanted


def has_long_runs(plan: CopyPlan) -> bool:
    """Whether a plan is one for which it is worthwhile to measure the costs of copies."""
    if sum(output.nbytes for output in plan.outputs) < MIN_MEASURED_BYTES:
        return False
    plan = optimize(plan)
    copied = (region for _, region in plan.regions if region.kind == "copy")
    runs = (find_runs(region, plan.element_size) for region in copied)
    return any(found is not None and found.width >= MIN_MEASURED_RUN for found in runs)
