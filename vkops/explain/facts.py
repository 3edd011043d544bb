"""What there is to tell about a model, as plain data."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from vkops.plan.region import CopyPlan, Read, Region
from vkops.plan.view import Ints, View


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
    """What a kind of driver runs for a movement: the kernel of each dispatch, all workgroups."""

    driver: str
    kernels: tuple[str, ...]
    workgroups: int


@dataclass(frozen=True)
class Movement:
    """A plan between tensors: one submission for each.

    ``plan`` is coalesced, of elements as the tensors have them; ``moved_size`` is what they become
    when the plan is widened, in bytes.
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
        """Bytes that the regions cover."""
        return self.plan.element_size * sum(prod(region.sizes) for _, region in self.regions)

    @property
    def bytes_read(self) -> int:
        """Bytes that the regions read; what one of them repeats counts once."""
        return self.plan.element_size * sum(
            prod(n for n, stride in zip(region.sizes, source.strides, strict=True) if stride)
            for _, region in self.regions
            if region.input is not None and (source := region.source_view)
        )


@dataclass(frozen=True)
class Node:
    """A node of an ONNX model: what errors call it, what it makes, and what becomes of that."""

    label: str
    makes: tuple[str, ...]
    fate: str


@dataclass(frozen=True)
class Section:
    """A dispatchable, or an ONNX model: ``facts`` are pairs of a heading and a text."""

    name: str
    kind: str
    facts: tuple[tuple[str, str], ...]
    tensors: tuple[Tensor, ...]
    nodes: tuple[Node, ...] = ()
    movements: tuple[Movement, ...] = ()


@dataclass(frozen=True)
class Explanation:
    """A model file, and what is in it; ``refusal`` says why it does not run as it is asked to."""

    file: str
    sections: tuple[Section, ...]
    refusal: str = ""


# -- words -----------------------------------------------------------------------------------------


def source_text(region: Region, inputs: tuple[Tensor, ...]) -> str:
    """Where a region reads.

    >>> from vkops.plan import Fill, View
    >>> source_text(Region(View((4,), (1,)), Fill(bytes([1, 2]))), ())
    'constant 0x0201'
    """
    source = region.source
    if isinstance(source, Read):
        return place_text(inputs[source.input].name, source.view)
    return f"constant 0x{source.pattern[::-1].hex()}"


def place_text(name: str, view: View) -> str:
    """Where a view of a tensor lies.

    >>> place_text("InputTensor", View((2, 2), (6, 1), 2))
    'InputTensor at 2, strides 6, 1'
    """
    return f"{name} at {view.offset}, strides {numbers(view.strides)}"


def numbers(values: Ints) -> str:
    """Sizes or strides in words."""
    return ", ".join(map(str, values))


def count(number: int, noun: str) -> str:
    """A number of things.

    >>> count(1, "region"), count(2_000, "region")
    ('1 region', '2,000 regions')
    """
    return f"{number:,} {noun}{'s' * (number != 1)}"


def size_text(nbytes: int) -> str:
    """Bytes, in a unit that keeps the number short.

    >>> size_text(1023), size_text(3 << 19), size_text(1 << 30)
    ('1,023 bytes', '1.5 MiB', '1 GiB')
    """
    for shift, unit in ((30, "GiB"), (20, "MiB"), (10, "KiB")):
        if nbytes >= 1 << shift:
            return f"{round(nbytes / (1 << shift), 2):g} {unit}"
    return count(nbytes, "byte")


def run_text(run: Run) -> str:
    """What runs, in a line.

    >>> run_text(Run("GPU", ("copy_4", "copy_4"), 3))
    '2 dispatches, copy_4, 3 workgroups'
    """
    names = ", ".join(dict.fromkeys(run.kernels))
    dispatches = "dispatch" if len(run.kernels) == 1 else "dispatches"
    return f"{len(run.kernels)} {dispatches}, {names}, {count(run.workgroups, 'workgroup')}"


def movement_text(movement: Movement) -> str:
    """A movement in a line."""
    size, moved = movement.plan.element_size, movement.moved_size
    widened = f", moved {moved} at once" if moved != size else ""
    return (
        f"{count(len(movement.regions), 'region')}, {size_text(movement.bytes_read)} read, "
        f"{size_text(movement.bytes_written)} written; elements of {count(size, 'byte')}{widened}"
    )
