"""The data that an explanation of a model consists of, with the dispatches of its plans."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from math import prod
from typing import Any

from vkops.extent import Extent
from vkops.gpu.kernels.choice import VECTOR
from vkops.gpu.kernels.encoding import CPU, GPU
from vkops.gpu.run.encoded_plan import Dispatch, EncodedPlan
from vkops.plan.algebra import coalesce, optimize
from vkops.plan.graph import Step
from vkops.plan.region import CopyPlan, Region
from vkops.plan.view import Ints

TUNINGS = {"CPU driver": CPU, "GPU": GPU}
"""The kinds of drivers. The CPU driver is lavapipe of Mesa 25."""


@dataclass(frozen=True)
class TensorInfo:
    """A tensor: ``strides`` count elements; ``itemsize`` and ``nbytes`` are in bytes."""

    name: str
    type: str
    sizes: Ints
    strides: Ints
    itemsize: int
    nbytes: int
    note: str = ""

    @classmethod
    def flat(cls, name: str, nbytes: int, size: int, note: str = "") -> TensorInfo:
        """Return one of ``nbytes`` bytes without a shape, in elements of ``size`` bytes."""
        return cls(name, "", (nbytes // size,), (1,), size, nbytes, note)


@dataclass(frozen=True)
class Dispatches:
    """How one kind of driver executes a plan.

    ``kernels`` has one for each dispatch, and ``workgroups`` is the number of all workgroups.
    """

    driver: str
    kernels: tuple[str, ...]
    workgroups: int


@dataclass(frozen=True)
class MovementInfo:
    """A plan that copies between tensors in one submission.

    ``plan`` is coalesced, and its elements are those of the tensors. ``moved_size`` is the size in
    bytes of the wider elements that the device copies.
    """

    plan: CopyPlan
    moved_size: int
    inputs: tuple[TensorInfo, ...]
    outputs: tuple[TensorInfo, ...]
    dispatches: tuple[Dispatches, ...]

    @property
    def regions(self) -> list[tuple[int, Region]]:
        """All regions, each with the number of the output it writes to."""
        return self.plan.regions

    def element_size(self, role: str, number: int) -> int:
        """Bytes of the elements in which regions count a tensor: an ``"input"`` or an ``"output"``.

        They are the plan's, but for inputs that hold nothing but indices.
        """
        indices = [r.indices for _, r in self.regions if r.indices and r.indices.input == number]
        is_data = any(region.input == number for _, region in self.regions)
        if role == "input" and indices and not is_data:
            return 4 * indices[0].words
        return self.plan.element_size


@dataclass(frozen=True)
class NodeInfo:
    """A node of an ONNX model: its label in errors, its outputs, and how it is executed."""

    label: str
    makes: tuple[str, ...]
    result: str


@dataclass(frozen=True)
class Section:
    """A dispatchable or an ONNX model; ``details`` are pairs of a heading and a text.

    ``rules`` are the identifiers of those that it was checked against.
    """

    name: str
    kind: str
    details: tuple[tuple[str, str], ...]
    tensors: tuple[TensorInfo, ...]
    nodes: tuple[NodeInfo, ...] = ()
    movements: tuple[MovementInfo, ...] = ()
    rules: tuple[str, ...] = ()


@dataclass(frozen=True)
class Explanation:
    """A model file and its sections; ``refusal`` says why the model cannot run as requested."""

    file: str
    sections: tuple[Section, ...]
    refusal: str = ""


def number_list(values: Ints) -> str:
    """Format sizes or strides."""
    return ", ".join(map(str, values))


def count(number: int, noun: str) -> str:
    """Format a number with its noun.

    >>> count(1, "region"), count(2_000, "region")
    ('1 region', '2,000 regions')
    """
    return f"{number:,} {noun}{'s' * (number != 1)}"


def movements(steps: Iterable[Step], tensors: Mapping[int, TensorInfo]) -> Iterator[MovementInfo]:
    """Describe the plan of each step; ``tensors`` are those that have a name, by number."""
    intermediate: dict[int, TensorInfo] = {}
    for step in steps:
        plan = step.plan
        for number, output in zip(step.makes, plan.outputs, strict=True):
            name, note = f"intermediate {number}", "from one step to the next"
            intermediate[number] = TensorInfo.flat(name, output.nbytes, plan.element_size, note)
        named = {**intermediate, **tensors}
        if plan.outputs:
            yield MovementInfo(
                plan=coalesce(plan),
                moved_size=optimize(plan).element_size,
                inputs=tuple(named[number] for number in step.reads),
                outputs=tuple(named[number] for number in step.makes),
                dispatches=tuple(_dispatches(plan, driver) for driver in TUNINGS),
            )


def _dispatches(plan: CopyPlan, driver: str) -> Dispatches:
    """Prepare the dispatches for tensors that all lie in one heap."""
    heap: Any = object()  # nothing is read or written
    sizes = [*plan.inputs, *(output.nbytes for output in plan.outputs)]
    places = [(Extent(heap, VECTOR * i, n),) for i, n in enumerate(sizes)]
    inputs, outputs = places[: len(plan.inputs)], places[len(plan.inputs) :]
    work = EncodedPlan(plan, TUNINGS[driver]).bind(inputs, outputs)
    tables = [each.table for each in work if isinstance(each, Dispatch)]
    kernels = tuple([table.kernel.name for table in tables])
    return Dispatches(driver, kernels, sum([prod(table.groups) for table in tables]))
