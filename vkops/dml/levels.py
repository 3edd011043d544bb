"""Ranks and data types that operators take at each feature level, read from levels.json."""

from __future__ import annotations

import json
from collections import ChainMap
from collections.abc import Callable, Mapping
from functools import cache
from importlib.resources import files
from typing import Any, NamedTuple

from vkops.arguments.values import ArgumentName, array
from vkops.dml.enums import FeatureLevel, TensorDataType
from vkops.dml.tensor_desc import BufferTensorDesc, dimensions
from vkops.errors import FeatureLevelError, InvalidDescError


class TensorSupport(NamedTuple):
    """Ranks and data types that a tensor of an operator may have."""

    ranks: range
    data_types: frozenset[TensorDataType]


class Support:
    """Ranks and data types an operator takes at each level from the one that introduced it.

    ``entries`` are those of levels.json: each contains only the changes from the level before.
    """

    def __init__(self, entries: Mapping[str, Mapping[str, Any]]) -> None:
        self._changes = sorted((FeatureLevel.of(level), entry) for level, entry in entries.items())
        self.introduced: FeatureLevel = self._changes[0][0]
        self.at: Callable[[FeatureLevel, str], TensorSupport] = cache(self._at)

    def __contains__(self, level: FeatureLevel) -> bool:
        return level >= self.introduced

    def _at(self, level: FeatureLevel, tensor: str) -> TensorSupport:
        """Return the support at a level for a tensor, which is named as in DirectML."""
        entries = [entry for first, entry in self._changes if first <= level]
        of_tensor = [entry.get("tensors", {}).get(tensor, {}) for entry in entries]
        merged: Mapping[str, Any] = ChainMap(*reversed([*entries, *of_tensor]))
        low, high = merged["ranks"]
        return TensorSupport(range(low, high + 1), data_types(merged["types"]))

    def check(
        self, level: FeatureLevel, name: str, operator: str, path: str, tensor: BufferTensorDesc
    ) -> None:
        """Check that a level supports a tensor, which is named as in DirectML.

        Raises:
            FeatureLevelError: only at a higher level (DEV-13).
            InvalidDescError: at no level (DEV-13).
        """
        allowed = self.at(level, name)
        rank, data_type = len(tensor.sizes), tensor.data_type
        is_rank_allowed = rank in allowed.ranks
        if is_rank_allowed and data_type in allowed.data_types:
            return
        if is_rank_allowed:
            field, got = "data_type", data_type.name
            limit = "one of " + ", ".join(each.name for each in sorted(allowed.data_types))
        else:
            field, got = "sizes", dimensions(rank)
            low, high = allowed.ranks[0], allowed.ranks[-1]
            limit = f"{low}" if low == high else f"{low} to {high}"
        message = f"got {got}, must be {limit} at feature level {level}"
        for other in FeatureLevel:
            if other <= level:
                continue
            row = self.at(other, name)
            if data_type in row.data_types if is_rank_allowed else rank in row.ranks:
                message += f"; allowed from {other}"
                raise FeatureLevelError(operator, f"{path}.{field}", message, "DEV-13")
        message += "; no level allows it"
        raise InvalidDescError(operator, f"{path}.{field}", message, "DEV-13")


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
"""The support of operators by sources that contradict the operator's own page (JOIN-09)."""


def class_name(operator: str) -> str:
    """Return the name of the descriptor of an operator."""
    return "".join(map(str.capitalize, operator.split("_"))) + "OperatorDesc"


OPERATOR_OF: Mapping[str, str] = {class_name(name): name for name in SUPPORT}
"""DirectML's names of the operators, by those of their descriptors."""


def support_of(operator: str, alternatives: object) -> Support:
    """Return an operator's support; ``alternatives`` names operators that use alternative rows."""
    if (type(alternatives) is not tuple or alternatives) and operator in alternative_operators(
        alternatives, operator
    ):
        return ALTERNATIVE_SUPPORT[operator]
    return SUPPORT[operator]


def alternative_operators(value: object, operator: str = "") -> tuple[str, ...]:
    """Return the operators whose alternative rows are to apply (JOIN-09)."""
    argument = ArgumentName(operator, "alternative_levels", "JOIN-09")
    return array(value, argument, _alternative, "operator names")


def _alternative(value: object, argument: ArgumentName) -> str:
    if isinstance(value, str) and value in ALTERNATIVE_SUPPORT:
        return value
    raise argument.wrong_kind(value, "one of " + ", ".join(map(repr, ALTERNATIVE_SUPPORT)))
