"""Graphs: tensors made from each other, fused so that nothing lies between ends and beginnings."""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from math import prod

from vkops.plan.algebra import merge_regions, narrow
from vkops.plan.compose import Written
from vkops.plan.region import CopyPlan, Output, Region
from vkops.plan.size_limits import MAX_GRAPH_REGIONS, Budget, BudgetError, LimitError

MAX_REGIONS = 4096
"""Regions of a tensor from which it is not looked through: what a dispatch's table holds."""

SUBMISSION = 256
"""Regions that cost as much as a submission."""

REGION = 32
"""Elements that are written, and read again, at the cost of a region."""

PATIENCE = 32
"""How often looking through a tensor may cost what making it would."""

STEPS = 16
"""Steps of looking through tensors that cost as much as a region."""

MAX_STEPS = 1 << 19
"""Steps of looking through tensors that any graph may take."""

STEPS_PER_REGION = 16
"""Steps that a graph may take beyond those, for each of its tensors and regions."""

Regions = tuple[Region, ...]


@dataclass(frozen=True, slots=True)
class Step:
    """A plan whose inputs and outputs are tensors, by number."""

    plan: CopyPlan
    reads: tuple[int, ...]
    makes: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Pipeline:
    """Steps to run in order, and the tensors that come from outside and go there, by number."""

    steps: tuple[Step, ...]
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]

    @classmethod
    def of(cls, plan: CopyPlan) -> Pipeline:
        """A plan by itself."""
        inputs = tuple(range(len(plan.inputs)))
        outputs = tuple(range(len(inputs), len(inputs) + len(plan.outputs)))
        return cls((Step(plan, inputs, outputs),), inputs, outputs)

    @property
    def plan(self) -> CopyPlan:
        """The plan that makes the outputs: the only one, unless too many regions cut it."""
        return self.steps[-1].plan

    @property
    def between(self) -> dict[int, int]:
        """Bytes of each tensor that is neither an input nor an output."""
        return {
            number: output.nbytes
            for step in self.steps
            for number, output in zip(step.makes, step.plan.outputs, strict=True)
            if number not in self.outputs
        }


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
    A graph of more than ``MAX_GRAPH_REGIONS`` tensors and regions is refused with a LimitError.

    >>> from vkops.plan import View
    >>> from vkops.plan.graph import Graph
    >>> from vkops.plan.movements import copy
    >>> graph = Graph()
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
        """A tensor that is there from the start."""
        return self._add(None, nbytes, element_size)

    def make(self, regions: Iterable[Region], nbytes: int, element_size: int) -> int:
        """A tensor that these regions write; ``Read.input`` is the number of another."""
        available = max(0, MAX_GRAPH_REGIONS - self._count)
        return self._add(tuple(islice(regions, available + 1)), nbytes, element_size)

    def _add(self, regions: Regions | None, nbytes: int, element_size: int) -> int:
        self._count += 1 + len(regions or ())
        if self._count > MAX_GRAPH_REGIONS:
            raise LimitError(
                f"there are more than {MAX_GRAPH_REGIONS} tensors and regions in the graph"
            )
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
        """Whether it is there from the start."""
        return self._tensors[tensor] is None

    def reachable(self, wanted: Iterable[int], known: Container[int] = ()) -> list[int]:
        """The tensors that these are made of, themselves among them, in order.

        Those that are ``known``, and what only they are made of, are left out.
        """
        found: set[int] = set()
        todo = list(wanted)
        while todo:
            tensor = todo.pop()
            if tensor not in found and tensor not in known:
                found.add(tensor)
                todo += _read(self._tensors[tensor] or ())
        return sorted(found)

    def step(self, tensor: int) -> Step:
        """What makes a tensor of those that it reads."""
        return self._step(Stage({tensor: merge_regions(self._tensors[tensor] or ())}))

    def lower(self, wanted: Sequence[int]) -> list[Step]:
        """The stages of ``fuse`` as plans, of elements as small as the smallest that each moves.

        Tensors of no bytes take no part.
        """
        return [self._step(stage) for stage in self.fuse(wanted)]

    def _step(self, stage: Stage) -> Step:
        makes = tuple(number for number in stage.made if self.nbytes(number))
        size = min((self._sizes[number][1] for number in makes), default=1)
        reads = sorted(set().union(*(_read(stage.made[number]) for number in makes)))
        places = {number: place for place, number in enumerate(reads)}
        outputs = []
        for number in makes:
            nbytes, own_size = self._sizes[number]
            regions = [
                region if region.input is None else region.reading(places[region.input])
                for region in stage.made[number]
            ]
            outputs.append(Output(nbytes, narrow(regions, own_size, size)))
        inputs = tuple(map(self.nbytes, reads))
        return Step(CopyPlan(size, inputs, tuple(outputs)), tuple(reads), makes)

    def fuse(self, wanted: Sequence[int]) -> list[Stage]:
        """What to run, in order, for these tensors to be there: nearly always one stage.

        Where looking through tensors would cost more than making them, a stage before does.
        """
        fusion = _Fusion(self._tensors, self.reachable(wanted), wanted, gaps=self._gaps)
        fused, stages = fusion.fused, fusion.stages
        results = [number for number in dict.fromkeys(wanted) if number in fused]
        for number in results:
            stages.setdefault(number, fusion.stage(number))
        # Nothing reads what is made last: it can as well be made together.
        last = max((stages[number] for number in results), default=-1)
        read = {number for tensor in stages for number in _read(fused[tensor])}
        stages.update((number, last) for number in results if number not in read)
        return [
            Stage({number: fused[number] for number in sorted(stages) if stages[number] == stage})
            for stage in range(last + 1)
        ]


class _Fusion:
    """Tensors of a graph as regions that read leaves, and tensors that have to be made before.

    ``stages`` holds the latter, and in which stage each is made.
    """

    def __init__(
        self,
        tensors: Sequence[Regions | None],
        order: Sequence[int],
        wanted: Iterable[int],
        *,
        gaps: bool,
    ) -> None:
        self.fused: dict[int, Regions] = {}
        self.stages: dict[int, int] = {}
        self._gaps = gaps
        self._written: dict[int, Written] = {}
        self._price: dict[int, int] = {}  # what it costs to make a tensor, counted in regions
        self._paid: dict[int, int] = {}  # and what looking through it has cost
        made = {number: own for number in order if (own := tensors[number]) is not None}
        size = sum(1 + len(own) for own in made.values())
        self._steps = MAX_STEPS + STEPS_PER_REGION * size
        waiting = Counter(number for own in made.values() for number in _read(own))
        waiting.update(wanted)
        for tensor, own in made.items():
            self._add(tensor, own)
            for number in _read(own):
                waiting[number] -= 1
                if not waiting[number]:
                    self._forget(number)

    def _forget(self, tensor: int) -> None:
        """Drop what is known of a tensor that nothing reads any more."""
        self._written.pop(tensor, None)
        if tensor not in self.stages:
            self.fused.pop(tensor, None)

    def _add(self, tensor: int, own: Regions) -> None:
        """Work out a tensor, all that it reads being there."""
        between = [n for n in _read(own) if n in self.fused and n not in self.stages]
        price = self._price[tensor] = SUBMISSION + _elements(own) // REGION
        most = max(2 * len(own), min(MAX_REGIONS, price))
        steps = STEPS * (most + sum(len(self.fused[n]) for n in between))
        regions = self._looked_through(own, most, steps)
        if regions is None:
            for number in between:
                self._make(number)
            regions = merge_regions(own)
        else:
            for number in between:
                self._pay(number, len(regions))
        self.fused[tensor] = regions

    def stage(self, tensor: int) -> int:
        """The first stage in which all that a tensor reads is there."""
        read = _read(self.fused[tensor])
        return max((self.stages[n] + 1 for n in read if n in self.stages), default=0)

    def _make(self, tensor: int) -> None:
        self.stages[tensor] = self.stage(tensor)

    def _pay(self, tensor: int, regions: int) -> None:
        """Count what looking through a tensor costs; it is made when that has been too much."""
        made = self.fused[tensor]
        if len(made) == 1:
            return  # what reads it would have as many regions
        paid = self._paid[tensor] = self._paid.get(tensor, 0) + regions
        if paid > PATIENCE * (self._price[tensor] + len(made)):
            self._make(tensor)

    def _looked_through(self, own: Regions, most: int, steps: int) -> Regions | None:
        """Regions from what is there; None if they are too many, or take too many steps."""
        steps = min(self._steps, steps)
        budget = Budget(steps)
        try:
            found = tuple(islice((p for r in own for p in self._parts(r, budget)), most + 1))
        except BudgetError:
            return None
        finally:
            self._steps -= int(steps - max(0, budget.available))
        return merge_regions(found) if len(found) <= most else None

    def _parts(self, region: Region, budget: Budget) -> Iterable[Region]:
        number = region.input
        if number is None or number not in self.fused or number in self.stages:
            return (region,)
        through = self._written.get(number)
        if through is None:
            through = Written(self.fused[number], gaps=self._gaps, budget=budget)
            self._written[number] = through
        return through.read_by(region, budget)


def _read(regions: Iterable[Region]) -> set[int]:
    """The tensors that regions read."""
    return {region.input for region in regions if region.input is not None}


def _elements(regions: Iterable[Region]) -> int:
    return sum(prod(region.sizes) for region in regions)
