"""The data that an explanation of a model consists of."""

from __future__ import annotations

from dataclasses import dataclass

from vkops.plan.region import CopyPlan, Region
from vkops.plan.view import Ints


@dataclass(frozen=True)
class Tensor:
    """A tensor: ``strides`` count elements; ``itemsize`` and ``nbytes`` are in bytes."""

    name: str
    type: str
    sizes: Ints
    strides: Ints
    itemsize: int
    nbytes: int
    note: str = ""


@dataclass(frozen=True)
class Dispatches:
    """How one kind of driver executes a plan.

    ``kernels`` has one for each dispatch, and ``workgroups`` is the number of all workgroups.
    ``copies`` has the commands of Vulkan's own copies, each with its number of regions.
    """

    driver: str
    kernels: tuple[str, ...]
    workgroups: int
    copies: tuple[tuple[str, int], ...] = ()


@dataclass(frozen=True)
class Movement:
    """A plan that copies between tensors in one submission.

    ``plan`` is coalesced, and its elements are those of the tensors. ``moved_size`` is the size in
    bytes of the wider elements that the device copies.
    """

    plan: CopyPlan
    moved_size: int
    inputs: tuple[Tensor, ...]
    outputs: tuple[Tensor, ...]
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
class Node:
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
    tensors: tuple[Tensor, ...]
    nodes: tuple[Node, ...] = ()
    movements: tuple[Movement, ...] = ()
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
