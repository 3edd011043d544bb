"""Feature queries and their answers. Source: IDMLDevice::CheckFeatureSupport."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import overload

from vkops.arguments.values import ArgumentName, array, member
from vkops.dml.enums import FeatureLevel, TensorDataType
from vkops.dml.levels import INTRODUCED, SUPPORT
from vkops.errors import FeatureLevelError, InvalidDescError, InvalidDescTypeError, show


@dataclass(frozen=True)
class FeatureQueryTensorDataTypeSupport:
    """Asks whether a data type is supported.

    Source: DML_FEATURE_QUERY_TENSOR_DATA_TYPE_SUPPORT.

    Raises:
        InvalidDescTypeError: data_type is not a TensorDataType.
    """

    data_type: TensorDataType

    def __post_init__(self) -> None:
        argument = ArgumentName("", "data_type", "DEV-05")
        vars(self)["data_type"] = member(TensorDataType, self.data_type, argument)


@dataclass(frozen=True)
class FeatureDataTensorDataTypeSupport:
    """Whether the data type is supported. Source: DML_FEATURE_DATA_TENSOR_DATA_TYPE_SUPPORT."""

    is_supported: bool


@dataclass(frozen=True)
class FeatureQueryFeatureLevels:
    """Asks for the highest supported level of some, each in any form FeatureLevel takes.

    Source: DML_FEATURE_QUERY_FEATURE_LEVELS.

    Raises:
        InvalidDescError: there is none in the list (DEV-07), or one does not exist (DEV-04).
    """

    requested_feature_levels: Sequence[FeatureLevel | int | str]

    def __post_init__(self) -> None:
        field = "requested_feature_levels"
        levels = array(
            self.requested_feature_levels,
            ArgumentName("", field, "DEV-06"),
            lambda value, argument: FeatureLevel.of(value, field=argument.field),
            "feature levels",
        )
        if not levels:
            raise InvalidDescError("", field, "got no levels, must be at least 1", "DEV-07")
        vars(self)[field] = levels


@dataclass(frozen=True)
class FeatureDataFeatureLevels:
    """The highest of the requested levels that is supported.

    Source: DML_FEATURE_DATA_FEATURE_LEVELS.
    """

    max_supported_feature_level: FeatureLevel


FeatureQuery = FeatureQueryTensorDataTypeSupport | FeatureQueryFeatureLevels
FeatureData = FeatureDataTensorDataTypeSupport | FeatureDataFeatureLevels


@overload
def check_feature_support(
    query: FeatureQueryTensorDataTypeSupport, feature_level: FeatureLevel | int | str = ...
) -> FeatureDataTensorDataTypeSupport: ...


@overload
def check_feature_support(
    query: FeatureQueryFeatureLevels, feature_level: FeatureLevel | int | str = ...
) -> FeatureDataFeatureLevels: ...


def check_feature_support(
    query: FeatureQuery, feature_level: FeatureLevel | int | str = FeatureLevel.LATEST
) -> FeatureData:
    """Answer a query for a device of some feature level.

    A data type is supported from the level that introduced it, if any operator of vkops takes it:
    4-bit types never are. 64-bit types need no feature of the GPU, because they are moved as words.

    Raises:
        InvalidDescTypeError: the query is of no known kind (DEV-07).
        FeatureLevelError: none of the requested levels is supported (DEV-06).

    >>> check_feature_support(FeatureQueryFeatureLevels(["2_0", "5_0"]), "4_1")
    FeatureDataFeatureLevels(max_supported_feature_level=<FeatureLevel.LEVEL_2_0: 8192>)
    """
    level = FeatureLevel.of(feature_level)
    if isinstance(query, FeatureQueryTensorDataTypeSupport):
        return FeatureDataTensorDataTypeSupport(
            query.data_type in _MOVED and INTRODUCED[query.data_type] <= level
        )
    if isinstance(query, FeatureQueryFeatureLevels):
        levels = [FeatureLevel.of(asked) for asked in query.requested_feature_levels]
        supported = [asked for asked in levels if asked <= level]
        if not supported:
            asked = ", ".join(str(asked) for asked in levels)
            message = f"got {asked}, must name one that is supported at feature level {level}"
            raise FeatureLevelError("", "requested_feature_levels", message, "DEV-06")
        return FeatureDataFeatureLevels(max(supported))
    message = (
        f"got {show(query)}, must be a FeatureQueryTensorDataTypeSupport "
        "or a FeatureQueryFeatureLevels"
    )
    raise InvalidDescTypeError("", "query", message, "DEV-07")


# Data types that some operator of vkops takes at some level.
_MOVED = frozenset().union(
    *(support.at(FeatureLevel.LATEST, "").data_types for support in SUPPORT.values())
)
