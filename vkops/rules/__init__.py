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
        status: whether the real DirectML.dll does the same, one of ``STATUSES``.
        enforced: whether an error can name it; else it is a permission, a definition, or follows
            from other rules. The rules of a group that no error names have one text.
        operators: the only operators that the rule is for, separated by spaces; empty if it is for
            all that share the group.
    """

    id: str
    text: str
    source: str
    status: str
    enforced: bool = True
    operators: str = ""


STATUSES: Mapping[str, tuple[str, str]] = {
    "confirmed": ("✓", "confirmed by DirectML 1.15.4"),
    "documented": ("", "documented; DirectML was not asked"),
    "choice": ("\\*", "a choice of vkops"),
    "bound": ("<", "a bound of vkops; DirectML 1.15.4 accepts more"),
    "fault": ("≠", "a fault of DirectML 1.15.4 in some cases, which vkops does not have"),
}
"""The kinds of rules, each with its mark in the documentation and with what it means.

DirectML was asked about the creation of operators, and about their results.
"""


class Group(NamedTuple):
    """Rules of one subject, whose identifiers begin with the same word."""

    title: str
    about: str
    rules: tuple[Rule, ...]

    @property
    def lines(self) -> list[list[Rule]]:
        """The rules; those that no error names have one text, and share the last line."""
        others = [rule for rule in self.rules if not rule.enforced]
        return [*([rule] for rule in self.rules if rule.enforced), *([others] if others else [])]


def _group(entry: Mapping[str, Any]) -> Group:
    unchecked = dict(entry.get("unchecked", {"ids": ""}))
    others = {id: unchecked | {"enforced": False} for id in unchecked.pop("ids").split()}
    statuses = {id: status for status, ids in entry.get("status", {}).items() for id in ids.split()}
    rules = []
    for id, rule in sorted((entry["rules"] | others).items()):
        default = "choice" if rule["source"] == "choice of vkops" else "documented"
        rules.append(Rule(id, status=statuses.pop(id, default), **rule))
    assert not statuses, f"{statuses} have no rules"
    return Group(entry["title"], entry.get("about", ""), tuple(rules))


_DATA = json.loads(files(__package__).joinpath("rules.json").read_text("utf-8"))

GROUPS: Mapping[str, Group] = {name: _group(entry) for name, entry in _DATA.items()}
"""All groups by the word that identifiers begin with, such as ``"SPLIT"``."""

RULES: Mapping[str, Rule] = {rule.id: rule for group in GROUPS.values() for rule in group.rules}
"""All rules by identifier."""
