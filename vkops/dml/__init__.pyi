# The public names and the modules they are from: type checkers read this file, and so does
# __init__.py, which imports each name at its first use.

from vkops.dml.enums import (
    AxisDirection as AxisDirection,
    DepthSpaceOrder as DepthSpaceOrder,
    ExecutionFlags as ExecutionFlags,
    FeatureLevel as FeatureLevel,
    InterpolationMode as InterpolationMode,
    PaddingMode as PaddingMode,
    TensorDataType as TensorDataType,
    TensorFlags as TensorFlags,
)
from vkops.dml.expressions import (
    depth_to_space as depth_to_space,
    diagonal_matrix as diagonal_matrix,
    fill_value_constant as fill_value_constant,
    fill_value_sequence as fill_value_sequence,
    gather as gather,
    gather_elements as gather_elements,
    gather_nd as gather_nd,
    identity as identity,
    join as join,
    one_hot as one_hot,
    padding as padding,
    padding1 as padding1,
    resample as resample,
    reverse_subsequences as reverse_subsequences,
    scatter_elements as scatter_elements,
    scatter_nd as scatter_nd,
    slice as slice,
    slice_grad as slice_grad,
    space_to_depth as space_to_depth,
    split as split,
    tile as tile,
    unfold as unfold,
    upsample_2d as upsample_2d,
)
from vkops.dml.feature_queries import (
    FeatureDataFeatureLevels as FeatureDataFeatureLevels,
    FeatureDataTensorDataTypeSupport as FeatureDataTensorDataTypeSupport,
    FeatureQueryFeatureLevels as FeatureQueryFeatureLevels,
    FeatureQueryTensorDataTypeSupport as FeatureQueryTensorDataTypeSupport,
    check_feature_support as check_feature_support,
)
from vkops.dml.fields import Field as Field, ScaleBias as ScaleBias, Size2D as Size2D
from vkops.dml.graph_builder import (
    Expression as Expression,
    Graph as Graph,
    input_tensor as input_tensor,
    reinterpret as reinterpret,
)
from vkops.dml.graph_desc import (
    GraphDesc as GraphDesc,
    InputGraphEdgeDesc as InputGraphEdgeDesc,
    IntermediateGraphEdgeDesc as IntermediateGraphEdgeDesc,
    OutputGraphEdgeDesc as OutputGraphEdgeDesc,
)
from vkops.dml.operator_desc import OperatorDesc as OperatorDesc
from vkops.dml.operators import OPERATORS as OPERATORS
from vkops.dml.operators.depth_and_space import (
    DepthToSpace1OperatorDesc as DepthToSpace1OperatorDesc,
    DepthToSpaceOperatorDesc as DepthToSpaceOperatorDesc,
    SpaceToDepth1OperatorDesc as SpaceToDepth1OperatorDesc,
    SpaceToDepthOperatorDesc as SpaceToDepthOperatorDesc,
)
from vkops.dml.operators.element_wise_identity import (
    ElementWiseIdentityOperatorDesc as ElementWiseIdentityOperatorDesc,
)
from vkops.dml.operators.fill_value import (
    DiagonalMatrix1OperatorDesc as DiagonalMatrix1OperatorDesc,
    DiagonalMatrixOperatorDesc as DiagonalMatrixOperatorDesc,
    FillValueConstantOperatorDesc as FillValueConstantOperatorDesc,
    FillValueSequenceOperatorDesc as FillValueSequenceOperatorDesc,
)
from vkops.dml.operators.gather import (
    GatherElementsOperatorDesc as GatherElementsOperatorDesc,
    GatherNd1OperatorDesc as GatherNd1OperatorDesc,
    GatherNdOperatorDesc as GatherNdOperatorDesc,
    GatherOperatorDesc as GatherOperatorDesc,
    ReverseSubsequencesOperatorDesc as ReverseSubsequencesOperatorDesc,
)
from vkops.dml.operators.padding import (
    Padding1OperatorDesc as Padding1OperatorDesc,
    PaddingOperatorDesc as PaddingOperatorDesc,
)
from vkops.dml.operators.resample import (
    Resample1OperatorDesc as Resample1OperatorDesc,
    Resample2OperatorDesc as Resample2OperatorDesc,
    Resample3OperatorDesc as Resample3OperatorDesc,
    ResampleOperatorDesc as ResampleOperatorDesc,
    Upsample2dOperatorDesc as Upsample2dOperatorDesc,
)
from vkops.dml.operators.scatter import (
    OneHotOperatorDesc as OneHotOperatorDesc,
    ScatterNdOperatorDesc as ScatterNdOperatorDesc,
    ScatterOperatorDesc as ScatterOperatorDesc,
)
from vkops.dml.operators.slice import (
    Slice1OperatorDesc as Slice1OperatorDesc,
    SliceGradOperatorDesc as SliceGradOperatorDesc,
    SliceOperatorDesc as SliceOperatorDesc,
)
from vkops.dml.operators.split_and_join import (
    JoinOperatorDesc as JoinOperatorDesc,
    SplitOperatorDesc as SplitOperatorDesc,
)
from vkops.dml.operators.tile import TileOperatorDesc as TileOperatorDesc
from vkops.dml.operators.unfold import UnfoldOperatorDesc as UnfoldOperatorDesc
from vkops.dml.tensor_desc import BufferTensorDesc as BufferTensorDesc, TensorPolicy as TensorPolicy
