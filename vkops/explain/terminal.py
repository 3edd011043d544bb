"""An explanation in the terminal."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from vkops.errors import one_line
from vkops.explain.explanation import Explanation
from vkops.explain.tables import (
    Rows,
    dispatch_rows,
    movement_text,
    node_rows,
    region_rows,
    section_rows,
    tensor_rows,
)
from vkops.runner import console


def render(explanation: Explanation) -> Iterator[RenderableType]:
    """Return everything about a model except the pictures, as texts and tables to print."""
    for i, section in enumerate(explanation.sections):
        if i:
            yield Text()
        yield Text.assemble((one_line(section.name), "bold"), f": {section.kind}")
        yield _pairs(section_rows(section))
        if section.nodes:
            yield from _table(node_rows(section))
        if section.tensors:
            yield from _table(tensor_rows(section))
        for number, movement in enumerate(section.movements, 1):
            title = "Plan" if len(section.movements) == 1 else f"Plan {number}"
            yield Text.assemble((title, "bold"), f": {movement_text(movement)}")
            yield from _table(region_rows(movement))
            yield _pairs(dispatch_rows(movement))


def _table(rows: Rows) -> Iterator[RenderableType]:
    table = console.table(None, *rows.headings)
    for row in rows.rows:
        table.add_row(*(Text(one_line(text)) for text in row))
    yield table
    if rows.more:
        yield Text(rows.more)


def _pairs(pairs: Iterable[tuple[str, str]]) -> Table:
    grid = Table.grid(padding=(0, 2), pad_edge=False)
    for pair in pairs:
        grid.add_row(*(Text(one_line(text)) for text in pair))
    return grid
