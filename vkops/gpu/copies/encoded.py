"""Plans that Vulkan's copies and fills execute: encoded once; each binding only adds addresses."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from math import gcd, prod
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from vkops.extent import Extent
from vkops.gpu.adapters.kompute import Native
from vkops.gpu.copies.rectangles import (
    MAX_ROWS,
    Int64Array,
    LinearImage,
    Rectangles,
    filled_word,
    in_order,
    run_rows,
)
from vkops.gpu.copies.rule import COMMAND, CopyRule
from vkops.gpu.memory.pools import DeviceMemory, ImportedMemory, MemoryDevice
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
        copies = rule.find_copies(region, plan, target)
        if copies is None:
            rest[target].append(region)
        else:
            chosen.append((target, region, copies.rectangles))
            count += copies.number
    moved = size * sum(prod(region.sizes) for _, region, _ in chosen)
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
    """Regions encoded as copies, which can be bound to memory many times.

    ``can_import`` says whether the inputs may be imported arrays.
    """

    def __init__(self, size: int, regions: Sequence[tuple[int, Region, Rectangles | None]]) -> None:
        """Encode regions of elements of ``size`` bytes, each with the number of its output."""
        self._words: dict[int, int] = {}
        runs: list[tuple[int, int, Int64Array]] = []
        groups: dict[tuple[LinearImage, int], list[tuple[int, int, Int64Array]]] = {}
        for target, region, boxes in regions:
            if isinstance(region.source, Fill):
                word = filled_word(region.source)
                assert word is not None
                number = self._words.setdefault(word, -1 - len(self._words))
                runs.append((number, target, run_rows(region, size)))
            elif boxes is None:
                runs.append((region.source.input, target, run_rows(region, size)))
            else:
                source, image = region.source.input, boxes.image
                runs.append((source, target, boxes.runs))
                under, buffer = (target, source) if image.over_target else (source, target)
                groups.setdefault((image, under), []).append((boxes.unit, buffer, boxes.copies))
        sources, targets, tables = zip(*runs, strict=True)
        self._rows: Int64Array = np.concatenate(tables)
        self._sources: Int64Array = np.repeat(sources, [*map(len, tables)])
        self._targets: Int64Array = np.repeat(targets, [*map(len, tables)])
        self._images: list[_ImageCopies] = [
            each
            for (image, under), parts in groups.items()
            for each in _image_copies(image, under, parts)
        ]
        # Images are laid over memory of the device only: an imported array must be the buffer.
        self.can_import: bool = all(image.over_target for image, _ in groups)

    def runs(self, module: Native) -> Native:
        """Return native runs, which number inputs and outputs as region tables do.

        None if some regions are fills or use images.
        """
        if self._words or self._images:
            return None
        places = np.arange(len(self._rows)) * 3
        bases = np.concatenate([-2 - self._sources, self._targets])
        return module.Runs(self._rows, np.concatenate([places, places + 1]), bases, 1)

    def bind(self, inputs: Sequence[Extent], outputs: Sequence[Extent]) -> list[Copy] | None:
        """Return the copies between these allocations, or None if Vulkan cannot copy here.

        It cannot if a tensor is both read and written, or if the driver refuses an image over its
        memory. Shaders must then execute the whole plan, and imported arrays must be uploaded.
        """
        places = {extent[:2] for extent in outputs}
        if any(extent[:2] in places for extent in inputs):
            return None
        copies = list(self._bind_runs(inputs, outputs))
        for image in self._images:
            by_image = image.bind(inputs, outputs)
            if by_image is None:
                return None
            copies += by_image
        return copies

    def _bind_runs(self, inputs: Sequence[Extent], outputs: Sequence[Extent]) -> Iterator[Copy]:
        """Yield the copies and fills of runs; fill words are numbered -1, -2 and so on."""
        if not len(self._rows):
            return
        words = [*self._words][::-1]
        rows = self._rows.copy()
        rows[:, 0] += np.array([*_offsets(inputs), *(0 for _ in words)], np.int64)[self._sources]
        rows[:, 1] += _offsets(outputs)[self._targets]
        sources: list[DeviceMemory | int] = [*(extent.resource for extent in inputs), *words]
        for target, written in _groups([extent.resource for extent in outputs], self._targets):
            for source, read in _groups(sources, self._sources[written] % len(sources)):
                regions = rows[written][read].view(np.uint64)
                if isinstance(source, int):
                    yield Copy("vkCmdFillBuffer", "OpFillRegions", (target.native, source), regions)
                else:
                    yield copy_regions(source, target, regions)


@dataclass(slots=True)
class _ImageCopies:
    """Rectangles that are copied through one image over a tensor, before memory is bound.

    ``under`` is the number of the tensor under the image; ``buffers`` has the number of the other
    tensor of each copy.
    """

    image: LinearImage
    under: int
    unit: int
    copies: Int64Array
    buffers: Int64Array

    def bind(self, inputs: Sequence[Extent], outputs: Sequence[Extent]) -> list[Copy] | None:
        """Return the copies, or None if the image cannot be bound to the tensor's memory."""
        over_target, base, pitch, _ = self.image
        over, others = (outputs, inputs) if over_target else (inputs, outputs)
        memory, start, _ = over[self.under]
        height = int(np.max(self.copies[:, 1] + self.copies[:, 3]))
        command = "vkCmdCopyBufferToImage" if over_target else "vkCmdCopyImageToBuffer"
        copies: list[Copy] = []
        for buffer, chosen in _groups([extent.resource for extent in others], self.buffers):
            offsets = _offsets(others)[self.buffers[chosen]]
            imported = buffer.native.offset if isinstance(buffer, ImportedMemory) else 0
            unit = gcd(self.unit, imported, *set(offsets.tolist()))
            image = memory.device.image(memory, start + base, pitch, height, unit)
            if image is None:
                return None
            rows = self.copies[chosen].copy()
            rows[:, 4] += offsets
            regions = rows.view(np.uint64)
            arguments = image, buffer.native, over_target
            copies.append(Copy(command, "OpCopyRectangles", arguments, regions))
        return copies


def _image_copies(
    image: LinearImage, under: int, parts: Iterable[tuple[int, int, Int64Array]]
) -> Iterator[_ImageCopies]:
    """Yield the copies of an image, divided into images of at most MAX_ROWS rows."""
    units, numbers, tables = zip(*parts, strict=True)
    copies = np.concatenate(tables)
    buffers = np.repeat(numbers, [*map(len, tables)])
    order = in_order(copies, image)
    copies, buffers = copies[order], buffers[order]
    places = copies[:, 1] // MAX_ROWS
    for place, chosen in _groups(range(int(places.max()) + 1), places):
        moved = copies[chosen] - [0, place * MAX_ROWS, 0, 0, 0, 0]
        base = image.base + place * MAX_ROWS * image.pitch
        yield _ImageCopies(image._replace(base=base), under, gcd(*units), moved, buffers[chosen])


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
