"""An explanation as an HTML page: one file that loads nothing else."""

from __future__ import annotations

import re
from importlib.resources import files
from pathlib import Path

import jinja2
import markupsafe

from vkops.errors import ModelError
from vkops.explain import figures, tables
from vkops.explain.explanation import Explanation, MovementInfo
from vkops.rules import RULES
from vkops.system.output_files import write_output

MAX_SECTIONS = 40
"""Dispatchables that a page shows."""

MAX_ITEMS = 100
"""Items of a list in the details of a section that are shown."""

MAX_REGIONS = 2000
"""Regions of a page that are drawn."""

MAX_NAME = 80
"""Characters of a name or of another text that are shown."""


def part(name: str) -> str:
    """Return the text of a file in this folder."""
    return files(__package__).joinpath(name).read_text("utf-8")


PAGE_CSS, FIGURE_CSS = part("page.css"), part("figure.css")
"""The style of the page, which defines the colours, and that of figures."""

FIGURE_SCRIPT = part("addresses.js") + part("page.js")
"""The script of figures."""

FRAME_SCRIPT = part("frame.js")
"""The script that fits a figure into a notebook."""


def write_page(explanation: Explanation, path: Path) -> None:
    """Write a page of HTML, whole or not at all; ModelError if it cannot be written."""
    write_text(page(explanation), path)


def write_text(text: str, path: Path) -> None:
    """Write the text of a page, as ``write_page`` does."""
    try:
        write_output(path, [text.encode("utf-8", "backslashreplace")])
    except OSError as error:
        raise ModelError(f"{path}: cannot be written: {error.strerror or error}") from error


def page(explanation: Explanation) -> str:
    """Return the page as text."""
    rules = dict.fromkeys(id for s in explanation.sections[:MAX_SECTIONS] for id in s.rules)
    return template("page.html").render(
        name=Path(explanation.file).name,
        explanation=explanation,
        css=PAGE_CSS + FIGURE_CSS,
        script=FIGURE_SCRIPT,
        budget=iter(range(MAX_REGIONS)),
        rules=[RULES[id] for id in rules],
        MAX_ITEMS=MAX_ITEMS,
        MAX_SECTIONS=MAX_SECTIONS,
    )


def figure(movement: MovementInfo) -> str:
    """Return the figure of a plan as HTML, for a page that has its style and its script."""
    described = figures.figure(movement, iter(range(MAX_REGIONS)))
    return str(template("figure.html").module.figure(described, movement))  # type: ignore[attr-defined]


def template(name: str) -> jinja2.Template:
    """Return a template in this folder, with filters for texts."""
    environment = jinja2.Environment(
        autoescape=True, undefined=jinja2.StrictUndefined, loader=jinja2.FunctionLoader(part)
    )
    environment.filters["short"] = lambda text: (
        text if len(text) <= MAX_NAME else text[: MAX_NAME - 1] + "…"
    )
    environment.filters["code"] = _code
    environment.globals |= {"figures": figures, "tables": tables}
    return environment.get_template(name)


def _code(text: str) -> markupsafe.Markup:
    """Set what stands between backticks as code."""
    return markupsafe.Markup(re.sub("`(.*?)`", r"<code>\1</code>", str(markupsafe.escape(text))))
