"""Graphs: tensors made from each other, fused so that nothing lies between ends and beginnings."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from math import prod

from vkops.plan.algebra import merge_regions
from vkops.plan.compose import Written
from vkops.plan.region import Read, Region

MOST_REGIONS = 1024
"""Regions that looking through a tensor may add: about what they cost is a submission."""

REGION = 32
"""Elements that can be written and read again at the cost of a region."""

Regions = tuple[Region, ...]


@dataclass(frozen=True, slots=True)
class Stage:
    """Tensors to make at once, from leaves and what earlier stages made.

    ``made`` holds the regions of each, by its number; they read tensors by number.
    """

    made: Mapping[int, Regions]


class Graph:
    """Tensors by number; each is a leaf, or made by regions that read tensors before it.

    Regions count elements; tensors that are made from each other have elements of one size.
    """

    def __init__(self) -> None:
        self._tensors: list[Regions | None] = []

    def leaf(self) -> int:
        """A tensor that is there from the start."""
        self._tensors.append(None)
        return len(self._tensors) - 1

    def make(self, regions: Iterable[Region]) -> int:
        """A tensor that these regions write; ``Read.input`` is the number of another."""
        self._tensors.append(tuple(regions))
        return len(self._tensors) - 1

    def is_leaf(self, tensor: int) -> bool:
        """Whether it is there from the start."""
        return self._tensors[tensor] is None

    def reachable(self, wanted: Iterable[int]) -> list[int]:
        """The tensors that these are made of, themselves among them, in order."""
        found: set[int] = set()
        todo = list(wanted)
        while todo:
            tensor = todo.pop()
            if tensor not in found:
                found.add(tensor)
                todo += _read(self._tensors[tensor] or ())
        return sorted(found)

    def fuse(self, wanted: Sequence[int]) -> list[Stage]:
        """What to run, in order, for these tensors to be there: nearly always one stage.

        Where looking through tensors would cost more than making them, a stage before does.
        """
        fused: dict[int, Regions] = {}
        written: dict[int, Written] = {}
        stages: dict[int, int] = {}  # of the tensors that are made, not looked through

        def look_through(tensor: int, most: int) -> Regions | None:
            """The regions of a tensor from what is there; None if they are too many."""
            own = self._tensors[tensor]
            assert own is not None
            parts = (part for region in own for part in self._parts(region, fused, stages, written))
            found = tuple(islice(parts, most + 1))
            return merge_regions(found) if len(found) <= most else None

        for tensor in self.reachable(wanted):
            own = self._tensors[tensor]
            if own is None:
                continue
            between = [number for number in _read(own) if number in fused and number not in stages]
            apart = len(own) + sum(_cost(fused[number]) for number in between)
            regions = look_through(tensor, MOST_REGIONS + apart)
            if regions is None:
                for number in between:
                    stages[number] = _stage(fused[number], stages)
                regions = merge_regions(own)
            fused[tensor] = regions
        results = [number for number in dict.fromkeys(wanted) if number in fused]
        for number in results:
            stages.setdefault(number, _stage(fused[number], stages))
        # Nothing reads what is made last: it can as well be made together.
        last = max((stages[number] for number in results), default=-1)
        read = {number for tensor in stages for number in _read(fused[tensor])}
        stages.update((number, last) for number in results if number not in read)
        return [
            Stage({number: fused[number] for number in sorted(stages) if stages[number] == stage})
            for stage in range(last + 1)
        ]

    def _parts(
        self,
        region: Region,
        fused: Mapping[int, Regions],
        stages: Mapping[int, int],
        written: dict[int, Written],
    ) -> Iterable[Region]:
        read = region.source
        if not isinstance(read, Read) or read.input not in fused or read.input in stages:
            return (region,)
        through = written.get(read.input)
        if through is None:
            through = written[read.input] = Written(fused[read.input])
        return through.read_by(region)


def _read(regions: Iterable[Region]) -> set[int]:
    """The tensors that regions read."""
    return {region.source.input for region in regions if isinstance(region.source, Read)}


def _stage(regions: Regions, stages: Mapping[int, int]) -> int:
    """The first stage in which all that regions read is there."""
    return max((stages[number] + 1 for number in _read(regions) if number in stages), default=0)


def _cost(regions: Regions) -> int:
    """What it costs to make a tensor from these regions and read it, counted in regions."""
    return len(regions) + sum(prod(region.sizes) for region in regions) // REGION
