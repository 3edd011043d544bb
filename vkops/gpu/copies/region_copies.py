"""Vulkan's copies, by regions and by images, of what is contiguous, and its filling of memory."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from math import gcd
from typing import Any

import numpy as np
import numpy.typing as npt

from vkops.gpu.copies.copy_costs import Chosen
from vkops.gpu.copies.rectangles import MAX_ROWS, Grid, Rectangles, divide, in_order
from vkops.gpu.copies.runs import Numbers, filled_word, find_runs, run_starts
from vkops.gpu.memory.heaps import Allocation, Heap, ImportedHeap
from vkops.plan.region import CopyPlan, Fill, Region

Rows = npt.NDArray[np.uint64]
"""Regions: the source offset, the target offset and the number of bytes of each. Rectangles: see
``rectangles.divide``."""

_Pair = tuple[int, int]
"""The numbers of an input and an output."""


@dataclass(slots=True, eq=False)
class RegionCopy:
    """Regions of one heap that are copied to another one."""

    source: Heap
    target: Heap
    regions: Rows

    def operation(self, native: Any) -> Any:
        """Return Kompute's operation."""
        return native.OpCopyRegions(self.source.buffer, self.target.buffer, self.regions)


@dataclass(slots=True, eq=False)
class ImageCopy:
    """Rectangles that are copied between an image over one heap's memory and another heap."""

    image: Any
    buffer: Heap
    over_target: bool
    rectangles: Rows

    def operation(self, native: Any) -> Any:
        """Return Kompute's operation."""
        return native.OpCopyRectangles(
            self.image, self.buffer.buffer, self.over_target, self.rectangles
        )


@dataclass(slots=True, eq=False)
class Filling:
    """Regions of a heap that are filled with a word: rows of 0, offset and bytes."""

    target: Heap
    word: int
    regions: Rows

    def operation(self, native: Any) -> Any:
        """Return Kompute's operation."""
        return native.OpFillRegions(self.target.buffer, self.word, self.regions)


Copy = RegionCopy | ImageCopy | Filling


class EncodedCopies:
    """A plan of which all regions were chosen to be copied, to be bound again and again."""

    def __init__(self, plan: CopyPlan, chosen: Chosen) -> None:
        self._plan = plan
        self._boxes: list[tuple[_Pair, Region, Rectangles]] = []
        self._single: list[tuple[_Pair, Region]] = []
        self._fills: list[tuple[int, int, Numbers]] = []
        for target, region in plan.regions:
            if isinstance(region.source, Fill):
                word = filled_word(region.source)
                assert word is not None
                self._fills.append((word, target, run_rows(region, plan.element_size)))
                continue
            pair = region.source.input, target
            boxes = chosen[id(region)].rectangles
            if boxes is None:
                self._single.append((pair, region))
            else:
                self._boxes.append((pair, region, boxes))
        self._encoded: dict[bool, tuple[list[_Image], _Runs]] = {}

    @property
    def can_import(self) -> bool:
        """Whether the inputs can be imported arrays, over which no image can be laid."""
        return all(boxes.target is not None for _, _, boxes in self._boxes)

    def can_bind(self, inputs: Sequence[Any], outputs: Sequence[Any]) -> bool:
        """Whether regions can be copied between these allocations.

        They cannot if a tensor is in several heaps, or read and written, or if no buffer for copies
        can have its memory.
        """
        heaps = {allocation.heap for allocation in (*inputs, *outputs)}
        if None in heaps or any(heap.buffer is None for heap in heaps):
            return False
        written = {(range_.heap, range_.offset) for range_ in outputs}
        return not any((range_.heap, range_.offset) in written for range_ in inputs)

    def bind(
        self, inputs: Sequence[Allocation], outputs: Sequence[Allocation]
    ) -> list[Copy] | None:
        """Return the copies between these allocations, or None if they are not possible.

        They are not if ``can_bind`` says so, or if no image can have the memory of a tensor. With
        imported arrays, regions are copied then.
        """
        if not self.can_bind(inputs, outputs):
            return None
        imported = any(isinstance(allocation.heap, ImportedHeap) for allocation in inputs)
        encoded = self._encoded.get(imported)
        if encoded is None:
            encoded = self._encoded[imported] = self._encode(over_targets=imported)
        images, runs = encoded
        copies: list[Copy] = []
        for image in images:
            own = image.bind(inputs, outputs)
            if own is None and not imported:
                return None
            if own is None:  # shaders cannot read imported arrays
                copies, runs = [], self._all_runs()
                break
            copies += own
        return [*self._bind_fills(outputs), *copies, *runs.bind(inputs, outputs)]

    def _bind_fills(self, outputs: Sequence[Any]) -> list[Copy]:
        """Return the copies of constants; each of them is one of a word to one heap."""
        groups: dict[tuple[int, Heap], list[Numbers]] = {}
        for word, target, rows in self._fills:
            moved = np.add(rows, [0, outputs[target].offset, 0])
            groups.setdefault((word, outputs[target].heap), []).append(moved)
        return [
            Filling(heap, word, np.concatenate(parts).view(np.uint64))
            for (word, heap), parts in groups.items()
        ]

    def _encode(self, *, over_targets: bool) -> tuple[list[_Image], _Runs]:
        """Lay images over tensors: over outputs only, or over those that need fewer copies."""
        size = self._plan.element_size
        runs = [(pair, run_rows(region, size)) for pair, region in self._single]
        groups: dict[tuple[Grid, int], list[tuple[int, int, Numbers]]] = {}
        for (source, target), _, boxes in self._boxes:
            grid = boxes.target if over_targets else boxes.grid
            assert grid is not None
            under, buffer = (target, source) if grid.over_target else (source, target)
            copies, rest = divide(boxes, grid)
            runs.append(((source, target), rest))
            groups.setdefault((grid, under), []).append((boxes.unit, buffer, copies))
        images = [
            image
            for (grid, under), parts in groups.items()
            for image in _images(grid, under, parts)
        ]
        return images, _Runs(runs)

    def _all_runs(self) -> _Runs:
        regions = [*self._single, *((pair, region) for pair, region, _ in self._boxes)]
        return _Runs((pair, run_rows(region, self._plan.element_size)) for pair, region in regions)


def run_rows(region: Region, size: int) -> Numbers:
    """The runs of a region: byte offsets in the input and the output, and bytes."""
    runs = find_runs(region, size)
    assert runs is not None
    starts = run_starts(region, size, runs.axes)
    return np.column_stack([starts, np.full(len(starts), runs.width)])


class _Runs:
    """Runs of several pairs of tensors, without addresses."""

    def __init__(self, parts: Iterable[tuple[_Pair, Numbers]]) -> None:
        found = list(parts)
        counts = [len(rows) for _, rows in found]
        self._rows: Numbers = np.concatenate([np.zeros((0, 3), np.int64), *(r for _, r in found)])
        self._inputs: Numbers = np.repeat([source for (source, _), _ in found], counts)
        self._outputs: Numbers = np.repeat([target for (_, target), _ in found], counts)

    def bind(self, inputs: Sequence[Any], outputs: Sequence[Any]) -> Iterator[Copy]:
        if not len(self._rows):
            return
        rows = self._rows.copy()
        rows[:, 0] += _offsets(inputs)[self._inputs]
        rows[:, 1] += _offsets(outputs)[self._outputs]
        for target, written in _by_heap(outputs, self._outputs):
            for source, read in _by_heap(inputs, self._inputs[written]):
                yield RegionCopy(source, target, rows[written][read].view(np.uint64))


class _Image:
    """Rectangles that are copied by one image over a tensor, without addresses."""

    def __init__(
        self, grid: Grid, under: int, unit: int, row: int, copies: Numbers, buffers: Numbers
    ) -> None:
        self._grid = grid
        self._under = under
        self._unit = unit
        self._base = grid.base + row * grid.pitch
        self._height = int(np.max(copies[:, 1] + copies[:, 3]))
        self._copies = copies
        self._buffers = buffers

    def bind(self, inputs: Sequence[Any], outputs: Sequence[Any]) -> list[Copy] | None:
        """Return the copies, or None if the image cannot have the tensor's memory."""
        grid = self._grid
        over, others = (outputs, inputs) if grid.over_target else (inputs, outputs)
        under = over[self._under]
        copies: list[Copy] = []
        for buffer, own in _by_heap(others, self._buffers):
            offsets = _offsets(others)[self._buffers[own]]
            imported = buffer.buffer.offset if isinstance(buffer, ImportedHeap) else 0
            unit = gcd(self._unit, imported, *set(offsets.tolist()))
            offset = under.offset + self._base
            image = under.heap.image(offset, grid.pitch, self._height, unit)
            if image is None:
                return None
            rows = self._copies[own].copy()
            rows[:, 4] += offsets
            copies.append(ImageCopy(image, buffer, grid.over_target, rows.view(np.uint64)))
        return copies


def _images(grid: Grid, under: int, parts: Sequence[tuple[int, int, Numbers]]) -> Iterator[_Image]:
    """Make the images of a grid: each has at most MAX_ROWS rows."""
    unit = gcd(*(unit for unit, _, _ in parts))
    copies = np.concatenate([copies for _, _, copies in parts])
    buffers = np.repeat([buffer for _, buffer, _ in parts], [len(own) for _, _, own in parts])
    order = in_order(copies, grid)
    copies, buffers = copies[order], buffers[order]
    numbers = copies[:, 1] // MAX_ROWS
    for number in _distinct(numbers):
        own = numbers == number
        rows = copies[own]
        rows[:, 1] -= number * MAX_ROWS
        yield _Image(grid, under, unit, number * MAX_ROWS, rows, buffers[own])


def _offsets(bound: Sequence[Any]) -> Numbers:
    return np.array([range_.offset for range_ in bound], np.int64)


def _by_heap(bound: Sequence[Any], numbers: Numbers) -> Iterator[tuple[Heap, Any]]:
    """Yield each heap of some ranges, and which of the numbers of these ranges are in it."""
    heaps = list(dict.fromkeys(range_.heap for range_ in bound))
    if len(heaps) == 1:
        yield heaps[0], slice(None)
        return
    places = np.array([heaps.index(range_.heap) for range_ in bound])[numbers]
    for place in _distinct(places):
        yield heaps[place], np.flatnonzero(places == place)


def _distinct(numbers: Numbers) -> list[int]:
    """The numbers that occur, in order, without numpy.unique.

    NumPy 2.4's aborts the process if the interpreter exits meanwhile.
    """
    found: list[int] = np.flatnonzero(np.bincount(numbers)).tolist()
    return found
