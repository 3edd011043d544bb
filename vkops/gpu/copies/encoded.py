"""Plans that Vulkan's copies and fills execute: encoded once; each binding only adds addresses."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from vkops.extent import Extent
from vkops.gpu.adapters.kompute import Native
from vkops.gpu.copies.rule import COMMAND, CopyRule
from vkops.gpu.copies.runs import Int64Array, filled_word, run_rows
from vkops.gpu.memory.pools import DeviceMemory, MemoryDevice
from vkops.plan.region import CopyPlan, Fill, Region

Rows = npt.NDArray[np.uint64]


@dataclass(slots=True, eq=False)
class Copy:
    """Regions that Vulkan copies or fills by one command.

    ``make`` is the name of the native function that makes the operation. It takes ``arguments`` and
    ``regions``, which is an array with a row of numbers for each region. ``ordered`` says whether
    the operation must see what earlier operations wrote.
    """

    command: str
    make: str
    arguments: tuple[Any, ...]
    regions: Rows
    ordered: bool = True

    def operation(self, device: MemoryDevice) -> Native:
        """Return the operation of the native module."""
        return getattr(device.module, self.make)(*self.arguments, self.regions, self.ordered)


def copy_regions(
    source: DeviceMemory, target: DeviceMemory, regions: Rows, *, ordered: bool = True
) -> Copy:
    """Copy regions of memory: rows of source offset, target offset, bytes."""
    return Copy(
        "vkCmdCopyBuffer", "OpCopyRegions", (source.native, target.native), regions, ordered
    )


_T = TypeVar("_T")


def choose(plan: CopyPlan, rule: CopyRule) -> tuple[EncodedCopies | None, CopyPlan | None]:
    """Divide an optimized plan into copies and a plan for shaders; None if one of them is empty.

    Both are bound to all inputs and outputs of the plan. The copies must run first: regions that
    scatter are left to shaders, and must run after all others.
    """
    nbytes = sum([output.nbytes for output in plan.outputs])
    if nbytes < rule.min_bytes:
        return None, plan
    size, chosen, count = plan.element_size, [], 0
    rest: list[list[Region]] = [[] for _ in plan.outputs]
    for target, region in plan.regions:
        copies = rule.count_copies(region, plan)
        if copies is None:
            rest[target].append(region)
        else:
            chosen.append((target, region))
            count += copies
    moved = size * sum(prod(region.sizes) for _, region in chosen)
    is_all = not any(rest)
    if not chosen or count > rule.max_copies or not (is_all or moved >= COMMAND * rule.min_bytes):
        return None, plan
    encoded = EncodedCopies(size, chosen)
    if is_all:
        return encoded, None
    parts = zip(plan.outputs, rest, strict=True)
    outputs = tuple(replace(output, regions=tuple(regions)) for output, regions in parts)
    return encoded, replace(plan, outputs=outputs)


class EncodedCopies:
    """Regions encoded as copies, which can be bound to memory many times."""

    def __init__(self, size: int, regions: Sequence[tuple[int, Region]]) -> None:
        """Encode regions of elements of ``size`` bytes, each with the number of its output."""
        self._words: dict[int, int] = {}
        tables = [run_rows(region, size) for _, region in regions]
        counts = [*map(len, tables)]
        self._rows: Int64Array = np.concatenate(tables)
        self._sources: Int64Array = np.repeat([self._source(each) for _, each in regions], counts)
        self._targets: Int64Array = np.repeat([target for target, _ in regions], counts)

    def _source(self, region: Region) -> int:
        """Return the number of a region's input, or that of the word that fills it."""
        if not isinstance(region.source, Fill):
            return region.source.input
        word = filled_word(region.source)
        assert word is not None
        return self._words.setdefault(word, -1 - len(self._words))

    def runs(self, module: Native) -> Native:
        """Return native runs, which number inputs and outputs as region tables do.

        None if some regions are fills.
        """
        if self._words:
            return None
        places = np.arange(len(self._rows)) * 3
        bases = np.concatenate([-2 - self._sources, self._targets])
        return module.Runs(self._rows, np.concatenate([places, places + 1]), bases, 1)

    def bind(self, inputs: Sequence[Extent], outputs: Sequence[Extent]) -> list[Copy] | None:
        """Return the copies between these allocations, or None if Vulkan cannot copy here.

        It cannot if a tensor is both read and written. Shaders must then execute the whole plan.
        """
        places = {extent[:2] for extent in outputs}
        if any(extent[:2] in places for extent in inputs):
            return None
        copies: list[Copy] = []
        words = [*self._words][::-1]  # numbered -1, -2 and so on
        rows = self._rows.copy()
        rows[:, 0] += np.array([*_offsets(inputs), *(0 for _ in words)], np.int64)[self._sources]
        rows[:, 1] += _offsets(outputs)[self._targets]
        sources: list[DeviceMemory | int] = [*(extent.resource for extent in inputs), *words]
        for target, written in _groups([extent.resource for extent in outputs], self._targets):
            for source, read in _groups(sources, self._sources[written] % len(sources)):
                regions = rows[written][read].view(np.uint64)
                if isinstance(source, int):
                    arguments = target.native, source
                    copies.append(Copy("vkCmdFillBuffer", "OpFillRegions", arguments, regions))
                else:
                    copies.append(copy_regions(source, target, regions))
        return copies


def _offsets(bound: Sequence[Extent]) -> Int64Array:
    return np.array([extent.start for extent in bound], np.int64)


def _groups(values: Sequence[_T], numbers: Int64Array) -> Iterator[tuple[_T, Any]]:
    """Yield each value that ``numbers`` selects, and the places in ``numbers`` that select it."""
    first = {value: place for place, value in reversed([*enumerate(values)])}
    if len(first) == 1:
        yield values[0], slice(None)
        return
    places = np.array([first[value] for value in values], np.int64)[numbers]
    # NumPy 2.4's unique aborts the process if the interpreter exits meanwhile.
    for place in np.flatnonzero(np.bincount(places)).tolist():
        yield values[place], np.flatnonzero(places == place)
