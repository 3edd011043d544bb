"""Graphs of tensors made from each other, fused so that few or no intermediates are stored."""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from math import prod

from vkops.plan.algebra import merge_regions, narrow
from vkops.plan.compose import Writers
from vkops.plan.region import CopyPlan, Output, Progression, Region
from vkops.plan.size_limits import MAX_GRAPH_REGIONS, Budget, BudgetError, LimitError

MAX_REGIONS = 4096
"""A fused tensor may have this many regions: as many as the table of a dispatch holds."""

SUBMISSION_COST = 256
"""Cost of a submission, in regions, the unit of all costs here."""

ELEMENTS_PER_COST = 32
"""Elements that can be written, and read again, at the cost of a region."""

RECOMPUTE_LIMIT = 32
"""A tensor is stored if composing its readers costs more than this many times storing it."""

STEPS_PER_COST = 16
"""The number of steps of a composition that cost as much as one region."""

MAX_STEPS = 1 << 19
"""Steps that the compositions of any graph may take."""

STEPS_PER_REGION = 16
"""Steps that a graph may take beyond those, for each of its tensors and regions."""

Regions = tuple[Region, ...]


@dataclass(frozen=True, slots=True)
class Step:
    """A plan, and the numbers of the tensors that are its inputs and outputs."""

    plan: CopyPlan
    reads: tuple[int, ...]
    makes: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Pipeline:
    """Steps to run in order, and the numbers of the tensors that are its inputs and outputs.

    ``constants`` holds, by number, the content of tensors that is stored with the pipeline.
    """

    steps: tuple[Step, ...]
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    constants: Mapping[int, Progression] = field(default_factory=dict)

    @classmethod
    def of(cls, plan: CopyPlan) -> Pipeline:
        """A pipeline of one plan."""
        inputs = tuple(range(len(plan.inputs)))
        constants = dict(enumerate(plan.constants, len(inputs)))
        if constants:  # steps read them like other tensors
            sizes = (constant.nbytes for constant in plan.constants)
            plan = replace(plan, inputs=(*plan.inputs, *sizes), constants=())
        read = (*inputs, *constants)
        outputs = tuple(range(len(read), len(read) + len(plan.outputs)))
        return cls((Step(plan, read, outputs),), inputs, outputs, constants)

    @property
    def plan(self) -> CopyPlan:
        """The last plan, which makes the outputs; nearly always the only one."""
        return self.steps[-1].plan

    @property
    def intermediates(self) -> dict[int, int]:
        """The intermediate tensors, and the size of each in bytes."""
        return {
            number: output.nbytes
            for step in self.steps
            for number, output in zip(step.makes, step.plan.outputs, strict=True)
            if number not in self.outputs
        }


class RegionGraph:
    """Tensors by number; each is a leaf, or made by regions that read tensors before it.

    Regions count elements of ``element_size`` bytes; tensors whose elements have one size are
    fused. With ``gaps``, elements that nothing writes may be read; the elements that would be
    copies of them are not written either.
    A graph of more than ``MAX_GRAPH_REGIONS`` tensors and regions is refused with a LimitError.

    >>> from vkops.plan import View
    >>> from vkops.plan.graph import RegionGraph
    >>> from vkops.plan.movements import copy
    >>> graph = RegionGraph()
    >>> view = View.packed((3,))
    >>> x = graph.leaf(12, 4)
    >>> y = graph.make([copy(view.flip((0,)), view, x)], 12, 4)
    >>> z = graph.make([copy(view.flip((0,)), view, y)], 12, 4)
    >>> (step,) = graph.lower([z])
    >>> step.reads, step.plan.outputs[0].regions[0].source
    ((0,), Read(input=0, view=View(sizes=(3,), strides=(1,), offset=0)))
    """

    def __init__(self, *, gaps: bool = False) -> None:
        self._gaps = gaps
        self._tensors: list[Regions | None] = []
        self._sizes: list[tuple[int, int]] = []  # bytes of each, and of its elements
        self._count = 0  # tensors and regions

    def leaf(self, nbytes: int, element_size: int) -> int:
        """Add an input of the graph; return its number."""
        return self._add(None, nbytes, element_size)

    def make(self, regions: Iterable[Region], nbytes: int, element_size: int) -> int:
        """Add a tensor that regions write; return its number. ``Read.input`` numbers a tensor."""
        available = max(0, MAX_GRAPH_REGIONS - self._count)
        return self._add(tuple(islice(regions, available + 1)), nbytes, element_size)

    def _add(self, regions: Regions | None, nbytes: int, element_size: int) -> int:
        self._count += 1 + len(regions or ())
        if self._count > MAX_GRAPH_REGIONS:
            limit = f"{MAX_GRAPH_REGIONS} tensors and regions"
            raise LimitError(f"there are more than {limit} in the graph")
        self._tensors.append(regions)
        self._sizes.append((nbytes, element_size))
        return len(self._tensors) - 1

    def __len__(self) -> int:
        """Number of tensors and regions."""
        return self._count

    def nbytes(self, tensor: int) -> int:
        """Size of a tensor in bytes."""
        return self._sizes[tensor][0]

    def is_leaf(self, tensor: int) -> bool:
        """Whether a tensor is an input of the graph."""
        return self._tensors[tensor] is None

    def reads(self, tensor: int) -> set[int]:
        """The tensors that the regions of a tensor read."""
        return _read(self._tensors[tensor] or ())

    def reachable(self, requested: Iterable[int], known: Container[int] = ()) -> list[int]:
        """Return the requested tensors and all tensors that they depend on, in order.

        Tensors that are ``known`` are left out, as are those that only known tensors depend on.
        """
        needed: set[int] = set()
        todo = list(requested)
        while todo:
            tensor = todo.pop()
            if tensor not in needed and tensor not in known:
                needed.add(tensor)
                todo += self.reads(tensor)
        return sorted(needed)

    def step(self, tensor: int) -> Step:
        """The step that makes a tensor from the tensors that its regions read."""
        return self._step({tensor: merge_regions(self._tensors[tensor] or ())})

    def lower(self, requested: Sequence[int]) -> list[Step]:
        """Return the stages of ``fuse`` as steps, each in units of its smallest element size.

        Empty tensors are left out.
        """
        return [self._step(stage) for stage in self.fuse(requested)]

    def _step(self, stage: Mapping[int, Regions]) -> Step:
        makes = tuple(number for number in stage if self.nbytes(number))
        size = min((self._sizes[number][1] for number in makes), default=1)
        reads = sorted(set().union(*(_read(stage[number]) for number in makes)))
        places = {number: place for place, number in enumerate(reads)}
        outputs = []
        for number in makes:
            nbytes, own_size = self._sizes[number]
            regions = [region.renumber(places) for region in stage[number]]
            outputs.append(Output(nbytes, narrow(regions, own_size, size)))
        inputs = tuple(map(self.nbytes, reads))
        return Step(CopyPlan(size, inputs, tuple(outputs)), tuple(reads), makes)

    def fuse(self, requested: Sequence[int]) -> list[dict[int, Regions]]:
        """Return the stages that make the requested tensors, in order; nearly always one.

        A stage becomes one plan. It maps the number of each tensor that the plan writes to its
        regions, which read leaves and the tensors of earlier stages.

        An intermediate is stored, in a stage of its own, if composing its readers would cost more.
        It must be stored if it is scattered to, holds indices, or is gathered from.
        """
        fused = _Fusion(self, requested).fused
        results = {number for number in requested if number in fused}
        # Leave out stored tensors that no result needs after all.
        read: set[int] = set()
        needed = []
        for number in sorted(fused, reverse=True):
            if number in read or number in results:
                needed.append(number)
                read |= _read(fused[number])
        stages: dict[int, int] = {}
        for number in reversed(needed):
            before = (stages[n] + 1 for n in _read(fused[number]) if n in stages)
            stages[number] = max(before, default=0)
        # Move results that nothing reads to the last stage: fewer plans, each with more outputs.
        last = max((stages[number] for number in results), default=-1)
        stages.update((number, last) for number in results if number not in read)
        together: list[list[int]] = [[] for _ in range(last + 1)]
        alone: list[list[int]] = [[] for _ in range(last + 1)]
        for number in sorted(stages):
            (alone if keeps_size(fused[number]) else together)[stages[number]].append(number)
        return [
            {number: fused[number] for number in group}
            for stage in range(last + 1)
            for group in (together[stage], *zip(alone[stage]))
            if group
        ]


class _Fusion:
    """The tensors of a graph, each composed into regions that read leaves or stored tensors.

    ``fused`` holds the regions of each tensor, ``stored`` the tensors that the others read.
    """

    def __init__(self, graph: RegionGraph, requested: Sequence[int]) -> None:
        self.fused: dict[int, Regions] = {}
        self.stored: set[int] = set()
        self._sizes = graph._sizes
        self._gaps = graph._gaps
        self._writers: dict[int, Writers] = {}
        self._store_cost: dict[int, int] = {}  # the cost of storing each tensor
        self._recompute_cost: dict[int, int] = {}  # and of composing its readers so far
        order = [(number, graph._tensors[number]) for number in graph.reachable(requested)]
        regions = {number: group for number, group in order if group is not None}
        size = sum(1 + len(group) for group in regions.values())
        self._steps = MAX_STEPS + STEPS_PER_REGION * size
        waiting = Counter(number for group in regions.values() for number in _read(group))
        waiting.update(requested)
        for tensor, group in regions.items():
            self._add(tensor, group)
            for number in _read(group):
                waiting[number] -= 1
                if not waiting[number]:  # nothing reads it any more
                    self._writers.pop(number, None)
                    if number not in self.stored:
                        self.fused.pop(number, None)

    def _add(self, tensor: int, own_regions: Regions) -> None:
        """Compose a tensor; all tensors that it reads have been added before."""
        intermediates = [n for n in _read(own_regions) if n in self.fused and n not in self.stored]
        scatters = _scatters(own_regions)
        # The tensors that hold indices, and those that are gathered from.
        by_indices = {
            number
            for region in own_regions
            if region.indices is not None
            for number in (region.inputs if region.kind == "gather" else (region.indices.input,))
        }
        for number in intermediates:
            if (
                self._sizes[number][1] != self._sizes[tensor][1]
                or number in by_indices
                # The composed region would need two index tensors, and has one.
                or (scatters and any(region.kind == "gather" for region in self.fused[number]))
            ):
                self.stored.add(number)
        intermediates = [number for number in intermediates if number not in self.stored]
        elements = sum(prod(region.sizes) for region in own_regions)
        cost = self._store_cost[tensor] = SUBMISSION_COST + elements // ELEMENTS_PER_COST
        max_regions = max(2 * len(own_regions), min(MAX_REGIONS, cost))
        steps = STEPS_PER_COST * (max_regions + sum(len(self.fused[n]) for n in intermediates))
        regions = self._composed(own_regions, max_regions, steps)
        if regions is None:
            self.stored.update(intermediates)
            regions = merge_regions(own_regions)
        else:
            for number in intermediates:
                self._add_cost(number, len(regions))
        self.fused[tensor] = regions
        if _scatters(regions):
            self.stored.add(tensor)

    def _add_cost(self, tensor: int, regions: int) -> None:
        """Add a reader's regions to a tensor's recompute cost; store it if that is too high."""
        fused = self.fused[tensor]
        if len(fused) == 1:
            return  # the reader would have as many regions if the tensor were stored
        cost = self._recompute_cost[tensor] = self._recompute_cost.get(tensor, 0) + regions
        if cost > RECOMPUTE_LIMIT * (self._store_cost[tensor] + len(fused)):
            self.stored.add(tensor)

    def _composed(self, group: Regions, max_regions: int, steps: int) -> Regions | None:
        """Compose regions until they read leaves or stored tensors; None if a limit is exceeded."""
        steps = min(self._steps, steps)
        budget = Budget(steps)
        try:
            every = (part for region in group for part in self._parts(region, budget))
            parts = tuple(islice(every, max_regions + 1))
        except BudgetError:
            return None
        finally:
            self._steps -= int(steps - max(0, budget.available))
        return merge_regions(parts) if len(parts) <= max_regions else None

    def _parts(self, region: Region, budget: Budget) -> Iterable[Region]:
        number = region.input
        if number is None or number not in self.fused or number in self.stored:
            return (region,)
        writers = self._writers.get(number)
        if writers is None:
            writers = Writers(self.fused[number], gaps=self._gaps, budget=budget)
            self._writers[number] = writers
        return writers.compose(region, budget)


def _read(regions: Iterable[Region]) -> set[int]:
    return {number for region in regions for number in region.inputs}


def _scatters(regions: Iterable[Region]) -> bool:
    return any(region.kind == "scatter" for region in regions)


def keeps_size(regions: Iterable[Region]) -> bool:
    """Whether the elements that regions write must not be split into smaller ones.

    Elements that are scattered are whole (see gpu/run/encoded_plan.py), and indices with limits
    count the elements of the tensor.
    """
    return any(region.kind == "scatter" or region.has_limits for region in regions)
