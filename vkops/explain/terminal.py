"""An explanation in the terminal."""

from __future__ import annotations

from collections.abc import Iterator

from rich.table import Table
from rich.text import Text

from vkops.errors import one_line
from vkops.explain.facts import Explanation, Section, movement_text, run_text
from vkops.explain.rows import Rows, node_rows, region_rows, tensor_rows


def tell(explanation: Explanation) -> Iterator[Table]:
    """Everything about a model but the pictures, to be printed one below the other."""
    for i, section in enumerate(explanation.sections):
        if i:
            yield _line(Text())
        yield from _section(section)


def _section(section: Section) -> Iterator[Table]:
    yield _line(Text.assemble((one_line(section.name), "bold"), f": {section.kind}"))
    yield _pairs(*section.facts)
    if section.nodes:
        yield from _table(node_rows(section))
    if section.tensors:
        yield from _table(tensor_rows(section))
    for i, movement in enumerate(section.movements):
        title = "Plan" if len(section.movements) == 1 else f"Plan {i + 1}"
        yield _line(Text.assemble((title, "bold"), f": {movement_text(movement)}"))
        yield from _table(region_rows(movement))
        yield _pairs(*((run.driver, run_text(run)) for run in movement.runs))


def _table(rows: Rows) -> Iterator[Table]:
    table = Table()
    for heading in rows.headings:
        table.add_column(heading, overflow="fold")
    for row in rows.rows:
        table.add_row(*(Text(one_line(text)) for text in row))
    yield table
    if rows.rest:
        yield _line(Text(rows.rest))


def _line(text: Text) -> Table:
    grid = Table.grid()
    grid.add_row(text)
    return grid


def _pairs(*pairs: tuple[str, str]) -> Table:
    grid = Table.grid(padding=(0, 2), pad_edge=False)
    for heading, text in pairs:
        grid.add_row(Text(one_line(heading)), Text(one_line(text)))
    return grid
