"""Graphs: tensors made from each other, fused so that nothing lies between ends and beginnings."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from math import prod

from vkops.plan.algebra import merge_regions, narrow
from vkops.plan.compose import Written
from vkops.plan.region import CopyPlan, Output, Read, Region

MOST_REGIONS = 1024
"""Regions that looking through a tensor may add: about what they cost is a submission."""

REGION = 32
"""Elements that can be written and read again at the cost of a region."""

Regions = tuple[Region, ...]


@dataclass(frozen=True, slots=True)
class Step:
    """A plan whose inputs and outputs are tensors, by number."""

    plan: CopyPlan
    reads: tuple[int, ...]
    makes: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Stage:
    """Tensors to make at once, from leaves and what earlier stages made.

    ``made`` holds the regions of each, by its number; they read tensors by number.
    """

    made: Mapping[int, Regions]


class Graph:
    """Tensors by number; each is a leaf, or made by regions that read tensors before it.

    Regions count elements of ``element_size`` bytes; tensors that are made from each other have
    elements of one size. With ``gaps``, what nothing writes may be read, and is not written then.
    """

    def __init__(self, *, gaps: bool = False) -> None:
        self._gaps = gaps
        self._tensors: list[Regions | None] = []
        self._sizes: list[tuple[int, int]] = []  # bytes of each, and of its elements

    def leaf(self, nbytes: int, element_size: int) -> int:
        """A tensor that is there from the start."""
        return self._add(None, nbytes, element_size)

    def make(self, regions: Iterable[Region], nbytes: int, element_size: int) -> int:
        """A tensor that these regions write; ``Read.input`` is the number of another."""
        return self._add(tuple(regions), nbytes, element_size)

    def _add(self, regions: Regions | None, nbytes: int, element_size: int) -> int:
        self._tensors.append(regions)
        self._sizes.append((nbytes, element_size))
        return len(self._tensors) - 1

    def nbytes(self, tensor: int) -> int:
        """Size of a tensor in bytes."""
        return self._sizes[tensor][0]

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

    def lower(self, wanted: Sequence[int]) -> list[Step]:
        """The stages of ``fuse`` as plans, of elements as small as the smallest that each moves.

        Tensors of no bytes take no part.
        """
        return [self._step(stage) for stage in self.fuse(wanted)]

    def _step(self, stage: Stage) -> Step:
        makes = tuple(number for number in stage.made if self.nbytes(number))
        size = min((self._sizes[number][1] for number in makes), default=1)
        reads: dict[int, int] = {}
        outputs = []
        for number in makes:
            nbytes, own_size = self._sizes[number]
            regions = [_renumbered(region, reads) for region in stage.made[number]]
            outputs.append(Output(nbytes, narrow(regions, own_size, size)))
        inputs = tuple(map(self.nbytes, reads))
        return Step(CopyPlan(size, inputs, tuple(outputs)), tuple(reads), makes)

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
            through = written[read.input] = Written(fused[read.input], gaps=self._gaps)
        return through.read_by(region)


def _read(regions: Iterable[Region]) -> set[int]:
    """The tensors that regions read."""
    return {region.source.input for region in regions if isinstance(region.source, Read)}


def _renumbered(region: Region, numbers: dict[int, int]) -> Region:
    """A region that reads by place, in the order in which tensors come up."""
    read = region.source
    if not isinstance(read, Read):
        return region
    number = numbers.setdefault(read.input, len(numbers))
    return replace(region, source=replace(read, input=number))


def _stage(regions: Regions, stages: Mapping[int, int]) -> int:
    """The first stage in which all that regions read is there."""
    return max((stages[number] + 1 for number in _read(regions) if number in stages), default=0)


def _cost(regions: Regions) -> int:
    """What it costs to make a tensor from these regions and read it, counted in regions."""
    return len(regions) + sum(prod(region.sizes) for region in regions) // REGION
