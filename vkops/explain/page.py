"""An explanation as a page: one file, without anything from elsewhere."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape
from importlib.resources import files
from pathlib import Path

from vkops.errors import ModelError
from vkops.explain.facts import Explanation, Movement, Section, count, movement_text, run_text
from vkops.explain.pictures import COLOURED, Budget, hue, picture, short
from vkops.explain.rows import Rows, node_rows, region_rows, tensor_rows
from vkops.runner.output_files import write_output

MOST_SECTIONS = 40
"""Dispatchables that a page tells of."""

MOST_PARTS = 100
"""Parts of a fact."""

MOST_PIECES = 6000
"""Cells and rectangles of a page."""


def write_page(explanation: Explanation, path: Path) -> None:
    """Write a page of HTML, whole or not at all.

    Raises:
        ModelError: the file cannot be written.
    """
    try:
        write_output(path, [page(explanation).encode("utf-8", "backslashreplace")])
    except OSError as error:
        raise ModelError(f"{path}: cannot be written: {error.strerror or error}") from error


def page(explanation: Explanation) -> str:
    """The page as text."""
    return "\n".join(_page(explanation))


def _page(explanation: Explanation) -> Iterator[str]:
    name = short(Path(explanation.file).name)
    yield '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">'
    yield '<meta name="viewport" content="width=device-width, initial-scale=1">'
    yield '<meta name="color-scheme" content="light dark">'
    yield f"<title>{name} – vkops explain</title>"
    yield f"<style>\n{_asset('page.css')}</style>\n</head>\n<body>\n<main>"
    yield f"<h1>{name}</h1>"
    budget = Budget(MOST_PIECES)
    for section in explanation.sections[:MOST_SECTIONS]:
        yield from _section(section, budget)
    more = len(explanation.sections) - MOST_SECTIONS
    if more > 0:
        yield f"<p>And {count(more, 'more dispatchable')}.</p>"
    yield f"</main>\n<script>\n{_asset('page.js')}</script>\n</body>\n</html>\n"


def _asset(name: str) -> str:
    return files(__package__).joinpath(name).read_text("utf-8")


def _section(section: Section, budget: Budget) -> Iterator[str]:
    yield f"<article>\n<h2>{short(section.name)} <small>{escape(section.kind)}</small></h2>"
    for i, movement in enumerate(section.movements):
        title = "Plan" if len(section.movements) == 1 else f"Plan {i + 1}"
        yield f"<h3>{title}</h3>\n<p>{escape(movement_text(movement))}.</p>"
        yield from picture(movement, budget)
        yield from _table(region_rows(movement), _chips(movement))
        yield from _pairs([(run.driver, run_text(run)) for run in movement.runs])
    if section.tensors:
        yield "<h3>Tensors</h3>"
        yield from _table(tensor_rows(section))
    if section.nodes:
        yield "<h3>Nodes</h3>"
        yield from _table(node_rows(section))
    yield "<h3>Details</h3>"
    yield from _pairs(section.facts)
    yield "</article>"


def _chips(movement: Movement) -> list[str]:
    """The colour of each region, as the attribute of what shows it."""
    regions = len(movement.regions)
    if regions == 1:
        return ['class="chip all"']
    own = [f'class="chip" style="--h:{hue(i, regions)}"' for i in range(min(regions, COLOURED))]
    return own + ['class="chip rest"'] * (regions - COLOURED)


def _table(rows: Rows, chips: Sequence[str] = ()) -> Iterator[str]:
    yield '<div class="wide" tabindex="0"><table><thead><tr>'
    yield "".join(f'<th scope="col">{heading}</th>' for heading in rows.headings)
    yield "</tr></thead><tbody>"
    for i, row in enumerate(rows.rows):
        chip = f"<i {chips[i]}></i>" if chips else ""
        first, *rest = map(short, row)
        cells = "".join(f"<td>{text}</td>" for text in rest)
        yield f'<tr><th scope="row">{chip}{first}</th>{cells}</tr>'
    yield "</tbody></table></div>"
    if rows.rest:
        yield f'<p class="more">{rows.rest}</p>'


def _pairs(pairs: Sequence[tuple[str, str]]) -> Iterator[str]:
    yield "<dl>"
    for heading, text in pairs:
        *first, last = text.split(", ")[:MOST_PARTS]
        parts = " ".join(
            f"<span>{short(part)}</span>" for part in [*(f"{p}," for p in first), last]
        )
        yield f"<div><dt>{short(heading)}</dt><dd>{parts}</dd></div>"
    yield "</dl>"
