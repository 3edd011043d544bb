"""The rules that vkops checks, and those of DirectML that need no check, as data.

Errors name the rule that was broken by its identifier.

>>> print(RULES["SPLIT-06"].text)
Along the axis, the outputs' sizes add up to the input's.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files
from typing import Any, NamedTuple


@dataclass(frozen=True)
class Rule:
    """A rule.

    Attributes:
        id: identifier, such as ``"SPLIT-06"``.
        text: what it says.
        source: where DirectML says so, or that it is a choice of vkops.
        enforced: whether an error can name it; else it is a permission, a definition, or follows
            from other rules. The rules of a group that no error names have one text.
        operators: the only operators that the rule is for, separated by spaces; empty if it is for
            all that share the group.
    """

    id: str
    text: str
    source: str
    enforced: bool = True
    operators: str = ""


class Group(NamedTuple):
    """Rules of one subject, whose identifiers begin with the same word."""

    title: str
    about: str
    rules: tuple[Rule, ...]

    @property
    def lines(self) -> list[tuple[str, Rule]]:
        """The rules with their identifiers; those that no error names share a line, the last."""
        lines = [(rule.id, rule) for rule in self.rules if rule.enforced]
        others = [rule for rule in self.rules if not rule.enforced]
        if others:
            lines.append((", ".join(rule.id for rule in others), others[0]))
        return lines


def _group(entry: Mapping[str, Any]) -> Group:
    rules = [Rule(id, **rule) for id, rule in entry["rules"].items()]
    unchecked = dict(entry.get("unchecked", {"ids": ""}))
    others = [Rule(id, **unchecked, enforced=False) for id in unchecked.pop("ids").split()]
    rules = sorted((*rules, *others), key=lambda rule: rule.id)
    return Group(entry["title"], entry.get("about", ""), tuple(rules))


_DATA = json.loads(files(__package__).joinpath("rules.json").read_text("utf-8"))

GROUPS: Mapping[str, Group] = {name: _group(entry) for name, entry in _DATA.items()}
"""All groups by the word that identifiers begin with, such as ``"SPLIT"``."""

RULES: Mapping[str, Rule] = {rule.id: rule for group in GROUPS.values() for rule in group.rules}
"""All rules by identifier."""
