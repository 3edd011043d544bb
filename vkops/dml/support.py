"""Which ranks and data types an operator takes at a feature level; the rows are in support.json."""

from __future__ import annotations

import json
from collections.abc import Mapping
from importlib.resources import files
from typing import Any, NamedTuple

from vkops.dml.enums import FeatureLevel, TensorDataType


class TensorSupport(NamedTuple):
    """What one tensor of an operator may be (both bounds are inclusive)."""

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


# One row: support by DirectML's field name ("OutputTensors").
Row = Mapping[str, TensorSupport]

_DATA: dict[str, Any] = json.loads(files(__package__).joinpath("support.json").read_text("utf-8"))

# Level at which each data type came into DirectML.
INTRODUCED: Mapping[TensorDataType, FeatureLevel] = {
    TensorDataType[entry["name"]]: FeatureLevel(entry["introduced"])
    for entry in _DATA["data_types"]
    if "introduced" in entry
}


def _row(entry: dict[str, Any]) -> Row:
    return {
        name: TensorSupport(
            tensor["dims"]["min"],
            tensor["dims"]["max"],
            frozenset(TensorDataType[data_type] for data_type in tensor["data_types"]),
        )
        for name, tensor in entry["tensors"].items()
    }


def _rows_by_level(entries: list[dict[str, Any]]) -> dict[FeatureLevel, Row]:
    """Return the row in force at every level: the newest whose own level is not above it."""
    rows = {FeatureLevel(entry["feature_level"]): _row(entry) for entry in entries}
    return {
        level: rows[max(introduced for introduced in rows if introduced <= level)]
        for level in FeatureLevel
        if level >= min(rows)
    }


# The row in force, by operator and level; an operator not introduced yet has none.
ROWS: Mapping[str, Mapping[FeatureLevel, Row]] = {
    name: _rows_by_level(entry["levels"]) for name, entry in _DATA["operators"].items()
}

# The same with the rows of sources that disagree with the operator's own page (JOIN-09).
ALTERNATIVE_ROWS: Mapping[str, Mapping[FeatureLevel, Row]] = {
    name: _rows_by_level([*entry["levels"], *entry["alternative_levels"]])
    for name, entry in _DATA["operators"].items()
    if "alternative_levels" in entry
}
