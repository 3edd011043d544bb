"""The operators of DirectML that vkops offers, one module for each, or for two alike."""

from vkops.dml.operators.depth_to_space import (
    DepthToSpace1OperatorDesc as DepthToSpace1OperatorDesc,
)
from vkops.dml.operators.depth_to_space import (
    DepthToSpaceOperatorDesc as DepthToSpaceOperatorDesc,
)
from vkops.dml.operators.diagonal_matrix import (
    DiagonalMatrixOperatorDesc as DiagonalMatrixOperatorDesc,
)
from vkops.dml.operators.diagonal_matrix1 import (
    DiagonalMatrix1OperatorDesc as DiagonalMatrix1OperatorDesc,
)
from vkops.dml.operators.element_wise_identity import (
    ElementWiseIdentityOperatorDesc as ElementWiseIdentityOperatorDesc,
)
from vkops.dml.operators.fill_value_constant import (
    FillValueConstantOperatorDesc as FillValueConstantOperatorDesc,
)
from vkops.dml.operators.fill_value_sequence import (
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
from vkops.dml.operators.resample import ResampleOperatorDesc as ResampleOperatorDesc
from vkops.dml.operators.resample1 import Resample1OperatorDesc as Resample1OperatorDesc
from vkops.dml.operators.resample2 import Resample2OperatorDesc as Resample2OperatorDesc
from vkops.dml.operators.resample3 import Resample3OperatorDesc as Resample3OperatorDesc
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
from vkops.dml.operators.slice_grad import SliceGradOperatorDesc as SliceGradOperatorDesc
from vkops.dml.operators.space_to_depth import (
    SpaceToDepth1OperatorDesc as SpaceToDepth1OperatorDesc,
)
from vkops.dml.operators.space_to_depth import (
    SpaceToDepthOperatorDesc as SpaceToDepthOperatorDesc,
)
from vkops.dml.operators.split import SplitOperatorDesc as SplitOperatorDesc
from vkops.dml.operators.tile import TileOperatorDesc as TileOperatorDesc
from vkops.dml.operators.unfold import UnfoldOperatorDesc as UnfoldOperatorDesc
from vkops.dml.operators.upsample_2d import Upsample2dOperatorDesc as Upsample2dOperatorDesc
