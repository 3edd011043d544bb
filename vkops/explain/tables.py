"""The texts and tables of an explanation; the terminal and the page show the same ones."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from vkops import console
from vkops.errors import one_line
from vkops.explain.explanation import (
    Dispatches,
    Explanation,
    MovementInfo,
    Section,
    count,
    number_list,
)
from vkops.plan.region import Read
from vkops.plan.view import View

MAX_ROWS = 20
"""Rows of a table that are shown."""


class Rows(NamedTuple):
    """A table: its headings, its first rows, and a text about the rows that are not shown."""

    headings: Sequence[str]
    rows: Sequence[Sequence[str]]
    more: str


def node_rows(section: Section) -> Rows:
    """The nodes of an ONNX model, and how each is executed."""
    rows = [(node.label, "; ".join(node.makes), node.result) for node in section.nodes[:MAX_ROWS]]
    return Rows(("Node", "Makes", "Result"), rows, _more(section.nodes))


def tensor_rows(section: Section) -> Rows:
    """The tensors, with a column for notes if a tensor has one."""
    headings = ["Tensor", "Type", "Sizes", "Strides", "Memory", "Note"]
    rows = [
        [t.name, t.type, number_list(t.sizes), number_list(t.strides), size_text(t.nbytes), t.note]
        for t in section.tensors[:MAX_ROWS]
    ]
    columns = None if any(tensor.note for tensor in section.tensors) else -1
    return Rows(headings[:columns], [row[:columns] for row in rows], _more(section.tensors))


def region_rows(movement: MovementInfo) -> Rows:
    """The places that regions read and write: the first element, and strides in elements."""
    regions = movement.regions
    rows = []
    for i, (output, region) in enumerate(regions[:MAX_ROWS]):
        source, target = region.source, _address_text(movement.outputs[output].name, region.target)
        if isinstance(source, Read):
            origin = _address_text(movement.inputs[source.input].name, source.view)
        else:
            origin = f"constant 0x{source.pattern[::-1].hex()}"
        if indices := region.indices:
            how = "reversed up to" if indices.rule == "reverse" else "moved by"
            moved = f", {how} {_address_text(movement.inputs[indices.input].name, indices.view)}"
            if region.kind == "gather":
                origin += moved
            else:
                target += moved
        rows.append((str(i), " × ".join(map(str, region.sizes)), origin, target))
    return Rows(("Region", "Elements", "From element", "To element"), rows, _more(regions))


def _more(items: Sequence[object]) -> str:
    return f"and {len(items) - MAX_ROWS:,} more" if len(items) > MAX_ROWS else ""


def _address_text(name: str, view: View) -> str:
    return f"{name} at {view.offset}, strides {number_list(view.strides)}"


def size_text(nbytes: int) -> str:
    """Format a number of bytes in the largest unit that fits.

    >>> size_text(1023), size_text(3 << 19), size_text(1 << 30)
    ('1,023 bytes', '1.5 MiB', '1 GiB')
    """
    for shift, unit in ((30, "GiB"), (20, "MiB"), (10, "KiB")):
        if nbytes >= 1 << shift:
            return f"{round(nbytes / (1 << shift), 2):g} {unit}"
    return count(nbytes, "byte")


def dispatch_rows(movement: MovementInfo) -> list[tuple[str, str]]:
    """The kinds of drivers, and the dispatches of a plan on each."""
    return [(each.driver, dispatches_text(each)) for each in movement.dispatches]


def dispatches_text(dispatches: Dispatches) -> str:
    """Describe the dispatches of a plan; empty without any.

    >>> dispatches_text(Dispatches("GPU", ("copy_4", "copy_4"), 3))
    '2 dispatches, copy_4, 3 workgroups'
    """
    kernels = dispatches.kernels
    if not kernels:
        return ""
    names = ", ".join(dict.fromkeys(kernels))
    noun = "dispatch" if len(kernels) == 1 else "dispatches"
    return f"{len(kernels)} {noun}, {names}, {count(dispatches.workgroups, 'workgroup')}"


def movement_text(movement: MovementInfo) -> str:
    """Summarize a plan in a line."""
    size, moved = movement.plan.element_size, movement.moved_size
    widened = f", moved {moved} bytes at a time" if moved != size else ""
    read, written = size_text(movement.plan.bytes_read), size_text(movement.plan.bytes_written)
    return (
        f"{count(len(movement.regions), 'region')}, {read} read, {written} written; "
        f"elements of {count(size, 'byte')}{widened}"
    )


# -- in the terminal -------------------------------------------------------------------------------


def render(
    explanation: Explanation,
    more: Callable[[MovementInfo], Iterable[RenderableType]] = lambda movement: (),
) -> Iterator[RenderableType]:
    """Return everything about a model except the pictures, as texts and tables to print.

    ``more`` returns what is printed after a plan.
    """
    for i, section in enumerate(explanation.sections):
        if i:
            yield Text()
        yield Text.assemble((one_line(section.name), "bold"), f": {section.kind}")
        rules = [("Rules checked", ", ".join(section.rules))] if section.rules else []
        yield _pairs([*section.details, *rules])
        if section.nodes:
            yield from _table(node_rows(section))
        if section.tensors:
            yield from _table(tensor_rows(section))
        for number, movement in enumerate(section.movements, 1):
            title = "Plan" if len(section.movements) == 1 else f"Plan {number}"
            yield Text.assemble((title, "bold"), f": {movement_text(movement)}")
            yield from _table(region_rows(movement))
            yield _pairs(dispatch_rows(movement))
            yield from more(movement)


def _table(rows: Rows) -> Iterator[RenderableType]:
    yield console.table(None, rows.headings, rows.rows)
    if rows.more:
        yield Text(rows.more)


def _pairs(pairs: Iterable[tuple[str, str]]) -> Table:
    grid = Table.grid(padding=(0, 2), pad_edge=False)
    for pair in pairs:
        grid.add_row(*(Text(one_line(text)) for text in pair))
    return grid
