"""Ranks and data types that operators take at each feature level, read from levels.json."""

from __future__ import annotations

import json
from collections import ChainMap
from collections.abc import Mapping
from importlib.resources import files
from typing import Any, NamedTuple

from vkops.dml.enums import FeatureLevel, TensorDataType


class TensorSupport(NamedTuple):
    """Ranks (both bounds inclusive) and data types that a tensor of an operator may have."""

    min_dimension_count: int
    max_dimension_count: int
    data_types: frozenset[TensorDataType]

    def takes_rank(self, rank: int) -> bool:
        """Return whether the tensor may have this many dimensions."""
        return self.min_dimension_count <= rank <= self.max_dimension_count

    @property
    def ranks(self) -> str:
        """The ranks in words."""
        low, high = self.min_dimension_count, self.max_dimension_count
        return f"{low}" if low == high else f"{low} to {high}"

    @property
    def types(self) -> str:
        """The data types in words."""
        return "one of " + ", ".join(data_type.name for data_type in sorted(self.data_types))


class Support:
    """Ranks and data types an operator takes at each level from the one that introduced it.

    ``entries`` are those of levels.json: each changes what the ones before it say.
    """

    def __init__(self, entries: Mapping[str, Mapping[str, Any]]) -> None:
        changes = sorted(
            ((FeatureLevel.of(level), entry) for level, entry in entries.items()),
            key=lambda change: change[0],
        )
        self.introduced: FeatureLevel = changes[0][0]
        self._entries = {
            level: [entry for first, entry in changes if first <= level]
            for level in FeatureLevel
            if level >= self.introduced
        }
        self._known: dict[tuple[FeatureLevel, str], TensorSupport] = {}

    def __contains__(self, level: FeatureLevel) -> bool:
        return level in self._entries

    def at(self, level: FeatureLevel, tensor: str) -> TensorSupport:
        """The support of a tensor, named as DirectML names its field, at a level."""
        known = self._known.get((level, tensor))
        if known is None:
            entries = self._entries[level]
            own = [entry.get("tensors", {}).get(tensor, {}) for entry in entries]
            merged: dict[str, Any] = dict(ChainMap(*reversed([*entries, *own])))
            low, high = merged["ranks"]
            known = TensorSupport(low, high, data_types(merged["types"]))
            self._known[level, tensor] = known
        return known

    def from_level(self, level: FeatureLevel, tensor: str) -> dict[FeatureLevel, TensorSupport]:
        """The support of a tensor at a level and at each level above."""
        return {other: self.at(other, tensor) for other in self._entries if other >= level}


def data_types(text: str) -> frozenset[TensorDataType]:
    """Parse data types, given by name or by their number of bits.

    >>> sorted(data_types("64 INT8")) == sorted(data_types("INT8 FLOAT64 INT64 UINT64"))
    True
    """
    words = set(text.split())
    return frozenset(t for t in TensorDataType if {t.name, str(t.size_bits)} & words)


_DATA: Mapping[str, Any] = json.loads(files(__package__).joinpath("levels.json").read_text("utf-8"))

INTRODUCED: Mapping[TensorDataType, FeatureLevel] = {
    data_type: FeatureLevel.of(level)
    for level, text in _DATA["data_types"].items()
    for data_type in data_types(text)
}
"""The level at which each data type came into DirectML."""

SUPPORT: Mapping[str, Support] = {
    name: Support(entries) for name, entries in _DATA["operators"].items()
}
"""The support of each operator, by DirectML's name."""

ALTERNATIVE_SUPPORT: Mapping[str, Support] = {
    name: Support(_DATA["operators"][name] | entries)
    for name, entries in _DATA["alternatives"].items()
}
"""The same by sources that disagree with the operator's own page (JOIN-09)."""
