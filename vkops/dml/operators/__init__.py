"""The operators of DirectML that vkops offers, one module for each, or for several alike.

The module of an operator is imported when the operator is used.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from vkops.dml.levels import SUPPORT
from vkops.errors import import_late

if TYPE_CHECKING:
    from vkops.dml.operator_desc import OperatorDesc
    from vkops.dml.operators.depth_and_space import (
        DepthToSpace1OperatorDesc as DepthToSpace1OperatorDesc,
    )
    from vkops.dml.operators.depth_and_space import (
        DepthToSpaceOperatorDesc as DepthToSpaceOperatorDesc,
    )
    from vkops.dml.operators.depth_and_space import (
        SpaceToDepth1OperatorDesc as SpaceToDepth1OperatorDesc,
    )
    from vkops.dml.operators.depth_and_space import (
        SpaceToDepthOperatorDesc as SpaceToDepthOperatorDesc,
    )
    from vkops.dml.operators.diagonal_matrix import (
        DiagonalMatrix1OperatorDesc as DiagonalMatrix1OperatorDesc,
    )
    from vkops.dml.operators.diagonal_matrix import (
        DiagonalMatrixOperatorDesc as DiagonalMatrixOperatorDesc,
    )
    from vkops.dml.operators.element_wise_identity import (
        ElementWiseIdentityOperatorDesc as ElementWiseIdentityOperatorDesc,
    )
    from vkops.dml.operators.fill_value import (
        FillValueConstantOperatorDesc as FillValueConstantOperatorDesc,
    )
    from vkops.dml.operators.fill_value import (
        FillValueSequenceOperatorDesc as FillValueSequenceOperatorDesc,
    )
    from vkops.dml.operators.gather import GatherOperatorDesc as GatherOperatorDesc
    from vkops.dml.operators.gather_elements import (
        GatherElementsOperatorDesc as GatherElementsOperatorDesc,
    )
    from vkops.dml.operators.gather_nd import (
        GatherNd1OperatorDesc as GatherNd1OperatorDesc,
    )
    from vkops.dml.operators.gather_nd import (
        GatherNdOperatorDesc as GatherNdOperatorDesc,
    )
    from vkops.dml.operators.join import JoinOperatorDesc as JoinOperatorDesc
    from vkops.dml.operators.one_hot import (
        OneHotOperatorDesc as OneHotOperatorDesc,
    )
    from vkops.dml.operators.padding import Padding1OperatorDesc as Padding1OperatorDesc
    from vkops.dml.operators.padding import PaddingOperatorDesc as PaddingOperatorDesc
    from vkops.dml.operators.resample import Resample1OperatorDesc as Resample1OperatorDesc
    from vkops.dml.operators.resample import Resample2OperatorDesc as Resample2OperatorDesc
    from vkops.dml.operators.resample import Resample3OperatorDesc as Resample3OperatorDesc
    from vkops.dml.operators.resample import ResampleOperatorDesc as ResampleOperatorDesc
    from vkops.dml.operators.resample import Upsample2dOperatorDesc as Upsample2dOperatorDesc
    from vkops.dml.operators.reverse_subsequences import (
        ReverseSubsequencesOperatorDesc as ReverseSubsequencesOperatorDesc,
    )
    from vkops.dml.operators.scatter import (
        ScatterOperatorDesc as ScatterOperatorDesc,
    )
    from vkops.dml.operators.scatter_nd import (
        ScatterNdOperatorDesc as ScatterNdOperatorDesc,
    )
    from vkops.dml.operators.slice import SliceOperatorDesc as SliceOperatorDesc
    from vkops.dml.operators.slice1 import Slice1OperatorDesc as Slice1OperatorDesc
    from vkops.dml.operators.slice1 import SliceGradOperatorDesc as SliceGradOperatorDesc
    from vkops.dml.operators.split import SplitOperatorDesc as SplitOperatorDesc
    from vkops.dml.operators.tile import TileOperatorDesc as TileOperatorDesc
    from vkops.dml.operators.unfold import UnfoldOperatorDesc as UnfoldOperatorDesc

_MODULES = {
    "DEPTH_TO_SPACE": "depth_and_space",
    "DEPTH_TO_SPACE1": "depth_and_space",
    "DIAGONAL_MATRIX1": "diagonal_matrix",
    "FILL_VALUE_CONSTANT": "fill_value",
    "FILL_VALUE_SEQUENCE": "fill_value",
    "GATHER_ND1": "gather_nd",
    "PADDING1": "padding",
    "RESAMPLE1": "resample",
    "RESAMPLE2": "resample",
    "RESAMPLE3": "resample",
    "SLICE_GRAD": "slice1",
    "SPACE_TO_DEPTH": "depth_and_space",
    "SPACE_TO_DEPTH1": "depth_and_space",
    "UPSAMPLE_2D": "resample",
}
"""The modules of operators that are not named like them."""


class _Operators(Mapping[str, "type[OperatorDesc]"]):
    def __getitem__(self, name: str) -> type[OperatorDesc]:
        if name not in SUPPORT:
            raise KeyError(name)
        module = import_late(f"{__name__}.{_MODULES.get(name, name.lower())}")
        found: type[OperatorDesc] = getattr(module, _class_name(name))
        return found

    def __iter__(self) -> Iterator[str]:
        return iter(SUPPORT)

    def __len__(self) -> int:
        return len(SUPPORT)

    def __contains__(self, name: object) -> bool:
        return name in SUPPORT


def _class_name(name: str) -> str:
    """Return the name of the descriptor of an operator.

    >>> _class_name("GATHER_ND1")
    'GatherNd1OperatorDesc'
    """
    return "".join(map(str.capitalize, name.split("_"))) + "OperatorDesc"


OPERATORS: Mapping[str, type[OperatorDesc]] = _Operators()
"""The descriptors of the operators vkops offers, by DirectML's name without its prefix."""

CLASSES = {_class_name(name): name for name in OPERATORS}
"""The names of the descriptors, with those of the operators."""


def __getattr__(name: str) -> type[OperatorDesc]:
    if name in CLASSES:
        # The next access finds the class in this module and does not come here.
        found = globals()[name] = OPERATORS[CLASSES[name]]
        return found
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
