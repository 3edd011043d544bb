"""The data that an explanation of a model consists of."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

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
class Run:
    """The dispatches of a plan on one kind of driver: a kernel for each, and all workgroups."""

    driver: str
    kernels: tuple[str, ...]
    workgroups: int


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
    runs: tuple[Run, ...]

    @property
    def regions(self) -> list[tuple[int, Region]]:
        """All regions, each with the number of the output it writes to."""
        return [
            (i, region) for i, output in enumerate(self.plan.outputs) for region in output.regions
        ]

    @property
    def bytes_written(self) -> int:
        """Number of bytes that the regions write."""
        return self.plan.element_size * sum(prod(region.sizes) for _, region in self.regions)

    @property
    def bytes_read(self) -> int:
        """Number of bytes that the regions read; bytes that a region repeats count once."""
        return self.plan.element_size * sum(
            prod(n for n, stride in zip(region.sizes, source.strides, strict=True) if stride)
            for _, region in self.regions
            if region.input is not None and (source := region.source_view)
        )


@dataclass(frozen=True)
class Node:
    """A node of an ONNX model: its label in errors, its outputs, and how it is executed."""

    label: str
    makes: tuple[str, ...]
    result: str


@dataclass(frozen=True)
class Section:
    """A dispatchable or an ONNX model; ``details`` are pairs of a heading and a text."""

    name: str
    kind: str
    details: tuple[tuple[str, str], ...]
    tensors: tuple[Tensor, ...]
    nodes: tuple[Node, ...] = ()
    movements: tuple[Movement, ...] = ()


@dataclass(frozen=True)
class Explanation:
    """A model file and its sections; ``refusal`` says why the model cannot run as requested."""

    file: str
    sections: tuple[Section, ...]
    refusal: str = ""
