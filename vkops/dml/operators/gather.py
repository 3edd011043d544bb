"""GATHER: elements of one dimension, chosen by indices."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from vkops.dml import fields
from vkops.dml.enums import FeatureLevel
from vkops.dml.indexed_operators import IndexedOperatorDesc
from vkops.dml.operator_desc import Size
from vkops.dml.tensor_desc import BufferTensorDesc
from vkops.plan import Read, Region
from vkops.plan.indexing import gather


@dataclass(frozen=True)
class GatherOperatorDesc(IndexedOperatorDesc):
    """Takes elements along a dimension, at indices that are read when the operator runs.

    Source: DML_GATHER_OPERATOR_DESC.

    Attributes:
        input_tensor: what to take elements of.
        indices_tensor: indices along ``axis``, of type INT32, INT64, UINT32 or UINT64. Negative
            ones count from the end; one that is out of range stands for the nearest that is not.
        output_tensor: the dimensions of the input with the last ``index_dimensions`` ones of the
            indices in the place of ``axis``; all tensors have one rank, and their first sizes may
            be 1 to reach it.
        axis: a dimension of the input.
        index_dimensions: dimensions of the indices that count; those before them have size 1.

    Raises:
        InvalidDescTypeError: a field is of the wrong kind; ``validate`` checks the values.

    >>> from vkops.dml import BufferTensorDesc, TensorDataType
    >>> table = BufferTensorDesc(TensorDataType.FLOAT32, [9, 4])
    >>> rows = BufferTensorDesc(TensorDataType.INT64, [1, 3])
    >>> taken = BufferTensorDesc(TensorDataType.FLOAT32, [3, 4])
    >>> GatherOperatorDesc(table, rows, taken, 0, 1).validate()
    """

    operator = "GATHER"
    same_data_type = same_dimension_count = "GATH-01"

    input_tensor: BufferTensorDesc = field(metadata=fields.tensor("input"))
    indices_tensor: BufferTensorDesc = field(metadata=fields.indices())
    output_tensor: BufferTensorDesc = field(metadata=fields.tensor("output"))
    axis: int = field(metadata=fields.attribute("uint", "GATH-02"))
    index_dimensions: int = field(metadata=fields.attribute("uint", "GATH-03"))

    def _infer(self, level: FeatureLevel) -> Sequence[Sequence[Size]]:
        self._check_axis(self.axis, "GATH-02")
        rule = "GATH-03"
        indices = self._counted_sizes("index_dimensions", "indices_tensor", rule, rule, minimum=0)
        own, axis = self._sizes_of_input("GATH-04"), self.axis
        return [self._with_rank([*own[:axis], *indices, *own[axis + 1 :]], "GATH-04")]

    def _regions(self) -> Sequence[Sequence[Region]]:
        indices = self._index_tensor("indices_tensor", self.index_dimensions)
        source = Read(0, self.input_tensor.view)
        rank = self.input_tensor.dimension_count - 1 + self.index_dimensions
        return [[gather(source, indices, self.output_tensor.view.with_rank(rank), self.axis)]]
