"""``vkops rule``."""

from __future__ import annotations

from collections.abc import Iterator

import click

from vkops.cli import options
from vkops.errors import show


@click.command()
@click.argument("id", required=False)
@options.flag("--markdown", help="Print all rules as Markdown.")
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
    lines = [line for group in GROUPS.values() for line in group.lines]
    for ids, entry in lines if id is None else [(id.upper(), RULES[id.upper()])]:
        click.echo(f"{ids}: {entry.text}\n    Source: {entry.source}")


def markdown_lines() -> Iterator[str]:
    """Yield the rules as lists of Markdown, which the documentation has."""
    from vkops.rules import GROUPS

    ours = "choice of vkops"
    for name, group in GROUPS.items():
        all_ours = {rule.source for _, rule in group.lines} == {ours}
        about = [group.about] * bool(group.about) + ["A choice of vkops."] * all_ours
        yield from ("", f"## {name}: {group.title}" if group.title != name else f"## {name}", "")
        if about:
            yield from (" ".join(about), "")
        for ids, rule in group.lines:
            mark = " \\*" if rule.source == ours and not all_ours else ""
            yield f"- {ids}{mark}: {rule.text}" if rule.enforced else f"- {ids} †"
