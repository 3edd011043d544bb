"""How notebooks show objects of vkops: as HTML, whose texts are escaped."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape


def table_html(title: str, heads: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Return a table with a title; notebooks have a style for tables, in dark mode, too."""
    head = "".join(f"<th>{escape(each)}</th>" for each in heads)
    body = "".join(
        "<tr>" + "".join(f"<td>{escape(str(cell))}</td>" for cell in row) + "</tr>" for row in rows
    )
    caption = f"<caption style='text-align:left'>{escape(title)}</caption>"
    return f"<table>{caption}<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
