"""GATHER_ELEMENTS: one element for each index."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from vkops.dml import fields
from vkops.dml.enums import FeatureLevel
from vkops.dml.indexed_operators import IndexedOperatorDesc
from vkops.dml.operator_desc import Size
from vkops.dml.tensor_desc import BufferTensorDesc
from vkops.plan import Read, Region
from vkops.plan.indexing import gather_elements


@dataclass(frozen=True)
class GatherElementsOperatorDesc(IndexedOperatorDesc):
    """Takes an element for each index, which replaces the element's own place along a dimension.

    Source: DML_GATHER_ELEMENTS_OPERATOR_DESC.

    Attributes:
        input_tensor: what to take elements of.
        indices_tensor: indices along ``axis``, of type INT32, INT64, UINT32 or UINT64. Negative
            ones count from the end; one that is out of range stands for the nearest that is not.
        output_tensor: has the sizes of the indices.
        axis: a dimension; along all others, the indices have the sizes of the input.

    Raises:
        InvalidDescTypeError: a field is of the wrong kind; ``validate`` checks the values.

    >>> from vkops.dml import BufferTensorDesc, TensorDataType
    >>> table = BufferTensorDesc(TensorDataType.FLOAT32, [3, 3])
    >>> rows = BufferTensorDesc(TensorDataType.INT64, [2, 3])
    >>> taken = BufferTensorDesc(TensorDataType.FLOAT32, [2, 3])
    >>> GatherElementsOperatorDesc(table, rows, taken, 0).validate()
    """

    operator = "GATHER_ELEMENTS"
    same_data_type = same_dimension_count = "GEL-01"

    input_tensor: BufferTensorDesc = field(metadata=fields.tensor("input"))
    indices_tensor: BufferTensorDesc = field(metadata=fields.indices())
    output_tensor: BufferTensorDesc = field(metadata=fields.tensor("output"))
    axis: int = field(metadata=fields.attribute("uint", "GEL-01"))

    def _infer(self, level: FeatureLevel) -> Sequence[Sequence[Size]]:
        self._check_axis(self.axis, "GEL-01")
        self._check_sizes_except("indices_tensor", self.axis, "GEL-02")
        return [self._sizes_of("indices_tensor", "GEL-03")]

    def _regions(self) -> Sequence[Sequence[Region]]:
        source, indices = Read(0, self.input_tensor.view), self._index_tensor("indices_tensor")
        return [[gather_elements(source, indices, self.output_tensor.view, self.axis)]]
