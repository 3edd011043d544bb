"""``vkops rule``."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated

import typer

from vkops.errors import show


def rule(
    id: Annotated[str | None, typer.Argument(help="Such as SPLIT-05; all, if left out.")] = None,
    markdown: Annotated[
        bool, typer.Option("--markdown", help="Print all rules as docs/rules.md has them.")
    ] = False,
) -> None:
    """Print a rule: what it says, and its source."""
    from vkops.rules import GROUPS, RULES

    if markdown:
        typer.echo("\n".join(markdown_lines()))
        return
    if id is not None and id.upper() not in RULES:
        groups = ", ".join(GROUPS)
        raise typer.BadParameter(f"there is no rule {show(id)}; the groups are {groups}")
    for found in RULES.values() if id is None else [RULES[id.upper()]]:
        typer.echo(f"{found.id}: {found.text}\n    Source: {found.source}")


def markdown_lines() -> Iterator[str]:
    """The lines of the tables in docs/rules.md."""
    from vkops.rules import GROUPS

    for group, (title, about, rules) in GROUPS.items():
        yield from ("", f"## {group}: {title}" if title != group else f"## {group}", "")
        if about:
            yield from (about, "")
        yield from ("| rule | says | source |", "|---|---|---|")
        for found in rules:
            mark = "" if found.enforced else " †"
            yield f"| {found.id}{mark} | {found.text} | {found.source} |"
