"""``vkops rule``."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import click

from vkops.cli import options
from vkops.errors import show

if TYPE_CHECKING:
    from vkops.rules import Rule


@click.command()
@click.argument("id", required=False)
@options.flag("--markdown", help="Print all rules as Markdown.")
def rule(id: str | None, markdown: bool) -> None:
    """Print a rule, its source, and whether DirectML does the same.

    ID is a rule, such as SPLIT-05; without it, all rules are printed.
    """
    from vkops.rules import GROUPS, RULES, STATUSES

    if markdown:
        click.echo("\n".join(markdown_lines()))
        return
    if id is not None and id.upper() not in RULES:
        groups = ", ".join(GROUPS)
        raise click.BadParameter(f"there is no rule {show(id)}; the groups are {groups}")
    lines = [line for group in GROUPS.values() for line in group.lines]
    for rules in lines if id is None else [[RULES[id.upper()]]]:
        click.echo(f"{_identifiers(rules)}: {rules[0].text}\n    Source: {rules[0].source}")
        for status, (_, meaning) in STATUSES.items():
            some = [rule for rule in rules if rule.status == status]
            if some:
                only = f" ({_identifiers(some)})" if len(some) < len(rules) else ""
                click.echo(f"    Status: {meaning}{only}")


def _identifiers(rules: Sequence[Rule]) -> str:
    return ", ".join(rule.id for rule in rules)


def markdown_lines() -> Iterator[str]:
    """Yield the rules as lists of Markdown, which the documentation has."""
    from vkops.rules import GROUPS, STATUSES

    for name, group in GROUPS.items():
        all_ours = {rule.status for rule in group.rules} == {"choice"}
        about = [group.about] * bool(group.about) + ["A choice of vkops."] * all_ours
        yield from ("", f"## {name}: {group.title}" if group.title != name else f"## {name}", "")
        if about:
            yield from (" ".join(about), "")
        for rules in group.lines:
            marks = ["" if all_ours else STATUSES[rule.status][0] for rule in rules]
            ids = ", ".join(f"{r.id} {mark}".strip() for r, mark in zip(rules, marks, strict=True))
            yield f"- {ids}: {rules[0].text}" if rules[0].enforced else f"- {ids} †"
