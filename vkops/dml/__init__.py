"""DirectML API types: descriptors, enumerations, graphs and feature queries; no Vulkan needed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from vkops.dml.enums import (
    AxisDirection,
    DepthSpaceOrder,
    ExecutionFlags,
    FeatureLevel,
    InterpolationMode,
    PaddingMode,
    TensorDataType,
    TensorFlags,
)
from vkops.dml.fields import Field
from vkops.dml.function_table import FUNCTIONS
from vkops.dml.operator_desc import OperatorDesc
from vkops.dml.operators import CLASSES, OPERATORS
from vkops.dml.structs import ScaleBias, Size2D
from vkops.dml.tensor_desc import BufferTensorDesc
from vkops.errors import import_late

if TYPE_CHECKING:
    from vkops.dml.expressions import *  # noqa: F403
    from vkops.dml.features import (
        FeatureDataFeatureLevels,
        FeatureDataTensorDataTypeSupport,
        FeatureQueryFeatureLevels,
        FeatureQueryTensorDataTypeSupport,
        check_feature_support,
    )
    from vkops.dml.graph_builder import Expression, Graph, input_tensor, reinterpret
    from vkops.dml.graph_desc import (
        GraphDesc,
        InputGraphEdgeDesc,
        IntermediateGraphEdgeDesc,
        OutputGraphEdgeDesc,
    )
    from vkops.dml.operators import *  # noqa: F403
    from vkops.dml.tensor_policy import TensorPolicy

# Names that few programs need, by the module that is imported at their first use.
_LAZY = {
    **dict.fromkeys(CLASSES, "vkops.dml.operators"),
    **dict.fromkeys(FUNCTIONS, "vkops.dml.expressions"),
    **{
        name: module
        for module, names in {
            "vkops.dml.features": "FeatureDataFeatureLevels FeatureDataTensorDataTypeSupport "
            "FeatureQueryFeatureLevels FeatureQueryTensorDataTypeSupport check_feature_support",
            "vkops.dml.graph_builder": "Expression Graph input_tensor reinterpret",
            "vkops.dml.graph_desc": "GraphDesc InputGraphEdgeDesc IntermediateGraphEdgeDesc "
            "OutputGraphEdgeDesc",
            "vkops.dml.tensor_policy": "TensorPolicy",
        }.items()
        for name in names.split()
    },
}

__all__ = [
    "OPERATORS",
    "AxisDirection",
    "BufferTensorDesc",
    "DepthSpaceOrder",
    "ExecutionFlags",
    "Expression",
    "FeatureDataFeatureLevels",
    "FeatureDataTensorDataTypeSupport",
    "FeatureLevel",
    "FeatureQueryFeatureLevels",
    "FeatureQueryTensorDataTypeSupport",
    "Field",
    "Graph",
    "GraphDesc",
    "InputGraphEdgeDesc",
    "IntermediateGraphEdgeDesc",
    "InterpolationMode",
    "OperatorDesc",
    "OutputGraphEdgeDesc",
    "PaddingMode",
    "ScaleBias",
    "Size2D",
    "TensorDataType",
    "TensorFlags",
    "TensorPolicy",
    "check_feature_support",
    "input_tensor",
    "reinterpret",
]

__all__ += [*CLASSES, *FUNCTIONS]


def __getattr__(name: str) -> Any:
    if name in _LAZY:
        # The next access finds the value in this module and does not come here.
        value = globals()[name] = getattr(import_late(_LAZY[name]), name)
        return value
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
