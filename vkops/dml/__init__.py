"""DirectML's words: descriptors, rules and feature levels; no Vulkan is needed here."""

from __future__ import annotations

from vkops.dml.element_wise_identity import ElementWiseIdentityOperatorDesc
from vkops.dml.enums import (
    BindingType,
    CreateDeviceFlags,
    DepthSpaceOrder,
    ExecutionFlags,
    Feature,
    FeatureLevel,
    GraphEdgeType,
    GraphNodeType,
    InterpolationMode,
    OperatorType,
    PaddingMode,
    TensorDataType,
    TensorFlags,
    TensorType,
)
from vkops.dml.features import (
    FeatureDataFeatureLevels,
    FeatureDataTensorDataTypeSupport,
    FeatureQueryFeatureLevels,
    FeatureQueryTensorDataTypeSupport,
    check_feature_support,
)
from vkops.dml.graph import Expression, Graph
from vkops.dml.graph_desc import (
    GraphDesc,
    InputGraphEdgeDesc,
    IntermediateGraphEdgeDesc,
    OutputGraphEdgeDesc,
)
from vkops.dml.join import JoinOperatorDesc
from vkops.dml.operator_desc import Field, OperatorDesc
from vkops.dml.scale_bias import ScaleBias
from vkops.dml.slice import SliceOperatorDesc
from vkops.dml.slice1 import Slice1OperatorDesc
from vkops.dml.split import SplitOperatorDesc
from vkops.dml.tensor_desc import BufferTensorDesc

OPERATORS: dict[str, type[OperatorDesc]] = {
    desc.operator: desc
    for desc in (
        SplitOperatorDesc,
        JoinOperatorDesc,
        SliceOperatorDesc,
        Slice1OperatorDesc,
        ElementWiseIdentityOperatorDesc,
    )
}
"""The descriptors of the operators vkops offers, by DirectML's name without its prefix."""

__all__ = [
    "OPERATORS",
    "BindingType",
    "BufferTensorDesc",
    "CreateDeviceFlags",
    "DepthSpaceOrder",
    "ElementWiseIdentityOperatorDesc",
    "ExecutionFlags",
    "Expression",
    "Feature",
    "FeatureDataFeatureLevels",
    "FeatureDataTensorDataTypeSupport",
    "FeatureLevel",
    "FeatureQueryFeatureLevels",
    "FeatureQueryTensorDataTypeSupport",
    "Field",
    "Graph",
    "GraphDesc",
    "GraphEdgeType",
    "GraphNodeType",
    "InputGraphEdgeDesc",
    "IntermediateGraphEdgeDesc",
    "InterpolationMode",
    "JoinOperatorDesc",
    "OperatorDesc",
    "OperatorType",
    "OutputGraphEdgeDesc",
    "PaddingMode",
    "ScaleBias",
    "Slice1OperatorDesc",
    "SliceOperatorDesc",
    "SplitOperatorDesc",
    "TensorDataType",
    "TensorFlags",
    "TensorType",
    "check_feature_support",
]
