"""SCATTER: a copy in which one element for each index is replaced."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from vkops.dml import fields
from vkops.dml.enums import FeatureLevel
from vkops.dml.indexed_operators import IndexedOperatorDesc
from vkops.dml.operator_desc import Size
from vkops.dml.tensor_desc import BufferTensorDesc
from vkops.plan import Read, Region
from vkops.plan.indexing import scatter_elements
from vkops.plan.movements import copy


@dataclass(frozen=True)
class ScatterOperatorDesc(IndexedOperatorDesc):
    """Copies a tensor, and replaces an element for each index by an update.

    The index replaces the update's own place along a dimension. Where several updates are for one
    element, any of them can remain.

    Source: DML_SCATTER_OPERATOR_DESC.

    Attributes:
        input_tensor: what to copy.
        indices_tensor: indices along ``axis``, of type INT32, INT64, UINT32 or UINT64. Negative
            ones count from the end; an update whose index is out of range is left out.
        updates_tensor: the new elements, one for each index.
        output_tensor: has the input's sizes.
        axis: a dimension; along all others, the indices have the sizes of the input.

    Raises:
        InvalidDescTypeError: a field is of the wrong kind; ``validate`` checks the values.

    >>> from vkops.dml import BufferTensorDesc, TensorDataType
    >>> table = BufferTensorDesc(TensorDataType.FLOAT32, [3, 3])
    >>> rows = BufferTensorDesc(TensorDataType.INT64, [2, 3])
    >>> updates = BufferTensorDesc(TensorDataType.FLOAT32, [2, 3])
    >>> ScatterOperatorDesc(table, rows, updates, table, 0).validate()
    """

    operator = "SCATTER"
    same_data_type = same_dimension_count = "SCAT-02"

    input_tensor: BufferTensorDesc = field(metadata=fields.tensor("input"))
    indices_tensor: BufferTensorDesc = field(metadata=fields.indices())
    updates_tensor: BufferTensorDesc = field(metadata=fields.tensor("input"))
    output_tensor: BufferTensorDesc = field(metadata=fields.tensor("output"))
    axis: int = field(metadata=fields.attribute("uint", "SCAT-03"))

    def _infer(self, level: FeatureLevel) -> Sequence[Sequence[Size]]:
        self._check_axis(self.axis, "SCAT-03")
        self._check_sizes_except("indices_tensor", self.axis, "SCAT-03")
        sizes = self._sizes_of("indices_tensor", "SCAT-03")
        self._check_sizes("updates_tensor", self.updates_tensor, sizes)
        return [self._sizes_of_input("SCAT-02")]

    def _regions(self) -> Sequence[Sequence[Region]]:
        target, indices = self.output_tensor.view, self._index_tensor("indices_tensor")
        updates = Read(2, self.updates_tensor.view)
        written = scatter_elements(updates, indices, target, self.axis)
        return [[copy(self.input_tensor.view, target), written]]
