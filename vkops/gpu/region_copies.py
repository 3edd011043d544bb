"""Copies with regions (vkCmdCopyBuffer) of what is contiguous in both tensors."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from math import inf, prod
from typing import Any

import numpy as np
import numpy.typing as npt

from vkops.errors import DeviceError, show
from vkops.gpu.memory import Allocation, Heap
from vkops.plan.region import CopyPlan, Read, Region

COPY = "VKOPS_COPY"
"""Environment variable: ``shader`` or ``regions`` instead of the faster of the two, ``auto``."""

MAX_REGIONS = 1 << 18
"""Regions of a plan that are listed for the driver, with 24 bytes each."""

MAX_VALIDATED_REGIONS = 512
"""The same under the validation layer, which compares each region with each other one."""

MIN_SAVED_NS = 20e3
"""The time that dividing a plan into regions and shaders must save: that of a submission."""

Rows = npt.NDArray[np.uint64]
"""Regions: the source offset, the target offset and the number of bytes of each."""

_Numbers = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class CopyCosts:
    """How many nanoseconds copies take on a device.

    ``shader`` and ``copy`` are those per byte that a shader or a copy with regions moves,
    ``region`` is what each region costs besides, and ``most`` is the number of regions allowed.
    """

    shader: float
    copy: float
    region: float
    most: int = MAX_REGIONS

    def can_save(self, nbytes: int) -> bool:
        """Whether anything could be gained by copying so many bytes."""
        return (self.shader - self.copy) * nbytes > self.region

    def choose(self, plan: CopyPlan) -> tuple[set[int], float]:
        """Choose the regions that shaders would copy more slowly.

        Returns:
            The ``id`` of each of them, and the time that they save together. None are chosen if
            they have more runs than are allowed.
        """
        chosen, count, saved = set(), 0, 0.0
        for region in (region for output in plan.outputs for region in output.regions):
            own = runs(region)
            nbytes = prod(region.sizes) * plan.element_size
            gain = (self.shader - self.copy) * nbytes - self.region * own
            if own and gain > 0:
                chosen.add(id(region))
                count, saved = count + own, saved + gain
        return (chosen, saved) if count <= self.most else (set(), 0.0)


ALWAYS_REGIONS = CopyCosts(shader=inf, copy=0, region=0)
"""Costs by which all contiguous runs are copied with regions."""


def on_cpu(threads: int) -> CopyCosts:
    """The costs of Mesa's lavapipe, whose shaders use all threads and whose copies use one.

    Measured with Mesa 22.3 and 25.0 on two cores: a shader moves 1.4 to 2.3 bytes per nanosecond
    and thread, a copy 14 in all, and a region costs 350 nanoseconds. So two threads copy runs from
    2.4 kB by regions, four threads runs from 9.4 kB, and seven threads none.
    """
    return CopyCosts(shader=1 / (2.3 * threads), copy=1 / 14, region=350)


def chosen_costs(costs: CopyCosts | None, *, validated: bool) -> CopyCosts | None:
    """Apply VKOPS_COPY to the costs of a device that can copy regions.

    Raises:
        DeviceError: the variable has another value than the three that are allowed.
    """
    wanted = os.environ.get(COPY) or "auto"
    if wanted not in ("auto", "shader", "regions"):
        raise DeviceError(f"{COPY}: got {show(wanted)}, must be auto, shader or regions")
    most = MAX_VALIDATED_REGIONS if validated else MAX_REGIONS
    if wanted == "regions":
        return replace(ALWAYS_REGIONS, most=most)
    if wanted == "shader" or costs is None:
        return None
    return replace(costs, most=most)


def runs(region: Region) -> int:
    """The number of contiguous runs of bytes that a region copies; 0 if it does not copy such."""
    target, source = region.target, region.source_view
    if not isinstance(region.source, Read) or not target.strides[-1] == source.strides[-1] == 1:
        return 0
    return prod(region.sizes[:-1])


@dataclass(slots=True, eq=False)
class RegionCopy:
    """Regions of one heap that are copied to another one."""

    source: Heap
    target: Heap
    regions: Rows


class EncodedCopies:
    """A plan of which all regions are contiguous runs, to be bound again and again."""

    def __init__(self, plan: CopyPlan) -> None:
        size = plan.element_size
        found = [
            (number, region.input, _rows(region, size))
            for number, output in enumerate(plan.outputs)
            for region in output.regions
        ]
        self._rows: _Numbers = np.concatenate([rows for _, _, rows in found])
        counts = [len(rows) for _, _, rows in found]
        self._outputs: _Numbers = np.repeat([number for number, _, _ in found], counts)
        self._inputs: _Numbers = np.repeat([number for _, number, _ in found], counts)

    def bind(self, inputs: Sequence[Allocation], outputs: Sequence[Allocation]) -> list[RegionCopy]:
        """Return the copies between these allocations; each is in one heap."""
        return list(self._copies(inputs, outputs))

    def _copies(self, inputs: Sequence[Any], outputs: Sequence[Any]) -> Iterator[RegionCopy]:
        rows = self._rows.copy()
        for column, numbers, bound in ((0, self._inputs, inputs), (1, self._outputs, outputs)):
            rows[:, column] += np.array([range_.offset for range_ in bound], np.int64)[numbers]
        heaps = dict.fromkeys(range_.heap for range_ in [*inputs, *outputs])
        if len(heaps) == 1:
            (heap,) = heaps
            yield RegionCopy(heap, heap, rows.view(np.uint64))
            return
        number = {heap: at for at, heap in enumerate(heaps)}
        sources, targets = (
            np.array([number[range_.heap] for range_ in bound])[numbers]
            for bound, numbers in ((inputs, self._inputs), (outputs, self._outputs))
        )
        found = list(heaps)
        pairs = sources * len(found) + targets
        for pair in np.unique(pairs).tolist():
            source, target = divmod(pair, len(found))
            regions = rows[pairs == pair].view(np.uint64)
            yield RegionCopy(found[source], found[target], regions)


def can_bind(inputs: Sequence[Allocation], outputs: Sequence[Allocation]) -> bool:
    """Whether regions can be copied: not if a tensor is in several heaps, or read and written."""
    both: list[Any] = [*inputs, *outputs]
    if any(allocation.heap is None for allocation in both):
        return False
    places = {(range_.heap, range_.offset) for range_ in both[len(inputs) :]}
    return not any((range_.heap, range_.offset) in places for range_ in both[: len(inputs)])


def _rows(region: Region, size: int) -> _Numbers:
    """The rows of a region: byte offsets in the input and the output, and bytes."""
    source, target = region.source_view, region.target
    starts = [np.array([source.offset]), np.array([target.offset])]
    *outer, run = region.sizes
    for axis, count in enumerate(outer):
        steps = np.arange(count)
        starts = [
            (start[:, None] + steps * view.strides[axis]).ravel()
            for start, view in zip(starts, (source, target), strict=True)
        ]
    return np.stack([*starts, np.full(starts[0].size, run)], 1) * size
