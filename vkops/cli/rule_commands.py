"""``vkops rule``."""

from __future__ import annotations

from collections.abc import Iterator

import click

from vkops.cli import options
from vkops.errors import show


@click.command()
@click.argument("id", required=False)
@options.flag("--markdown", help="Print all rules as docs/rules.md has them.")
def rule(id: str | None, markdown: bool) -> None:
    """Print a rule and its source.

    ID is a rule, such as SPLIT-05; without it, all rules are printed.
    """
    from vkops.rules import GROUPS, RULES

    if markdown:
        click.echo("\n".join(markdown_lines()))
        return
    if id is not None and id.upper() not in RULES:
        groups = ", ".join(GROUPS)
        raise click.BadParameter(f"there is no rule {show(id)}; the groups are {groups}")
    for found in RULES.values() if id is None else [RULES[id.upper()]]:
        click.echo(f"{found.id}: {found.text}\n    Source: {found.source}")


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
