"""DirectML API types: descriptors, enumerations, graphs and feature queries; no Vulkan needed."""

from __future__ import annotations

from vkops.dml import operators
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
from vkops.dml.features import (
    FeatureDataFeatureLevels,
    FeatureDataTensorDataTypeSupport,
    FeatureQueryFeatureLevels,
    FeatureQueryTensorDataTypeSupport,
    check_feature_support,
)
from vkops.dml.fields import Field
from vkops.dml.graph_builder import Expression, Graph
from vkops.dml.graph_desc import (
    GraphDesc,
    InputGraphEdgeDesc,
    IntermediateGraphEdgeDesc,
    OutputGraphEdgeDesc,
)
from vkops.dml.operator_desc import OperatorDesc
from vkops.dml.operators import *  # noqa: F403
from vkops.dml.structs import ScaleBias, Size2D
from vkops.dml.tensor_desc import BufferTensorDesc

OPERATORS: dict[str, type[OperatorDesc]] = {
    desc.operator: desc
    for desc in vars(operators).values()
    if isinstance(desc, type) and issubclass(desc, OperatorDesc)
}
"""The descriptors of the operators vkops offers, by DirectML's name without its prefix."""

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
    "check_feature_support",
]

__all__ += [desc.__name__ for desc in OPERATORS.values()]
