"""GATHER_ND and GATHER_ND1: slices of a tensor, chosen by tuples of indices."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from vkops.dml import fields
from vkops.dml.enums import FeatureLevel
from vkops.dml.indexed_operators import IndexedOperatorDesc
from vkops.dml.operator_desc import Size
from vkops.dml.tensor_desc import BufferTensorDesc
from vkops.plan import Read, Region
from vkops.plan.indexing import gather_nd


@dataclass(frozen=True)
class GatherNdOperatorDesc(IndexedOperatorDesc):
    """Takes slices of a tensor, at tuples of indices that are read when the operator runs.

    Source: DML_GATHER_ND_OPERATOR_DESC.

    Attributes:
        input_tensor: what to take slices of.
        indices_tensor: indices of type INT32, INT64, UINT32 or UINT64; its last dimension holds
            tuples for the first dimensions of the input. Negative indices count from the end; one
            that is out of range stands for the nearest that is not.
        output_tensor: the dimensions of the indices without the last, and then those of the input
            that no tuple indexes.
        input_dimension_count: dimensions of the input that count, the last ones; those before them
            have size 1.
        indices_dimension_count: dimensions of the indices that count, in the same way.

    Raises:
        InvalidDescTypeError: a field is of the wrong kind; ``validate`` checks the values.

    >>> from vkops.dml import BufferTensorDesc, TensorDataType
    >>> table = BufferTensorDesc(TensorDataType.FLOAT32, [5, 6, 7])
    >>> pairs = BufferTensorDesc(TensorDataType.INT64, [1, 9, 2])
    >>> rows = BufferTensorDesc(TensorDataType.FLOAT32, [1, 9, 7])
    >>> GatherNdOperatorDesc(table, pairs, rows, 3, 2).validate()
    """

    operator = "GATHER_ND"
    same_data_type = same_dimension_count = "GND-01"

    input_tensor: BufferTensorDesc = field(metadata=fields.tensor("input"))
    indices_tensor: BufferTensorDesc = field(metadata=fields.indices())
    output_tensor: BufferTensorDesc = field(metadata=fields.tensor("output"))
    input_dimension_count: int = field(metadata=fields.attribute("uint", "GND-02"))
    indices_dimension_count: int = field(metadata=fields.attribute("uint", "GND-02"))

    def _infer(self, level: FeatureLevel) -> Sequence[Sequence[Size]]:
        sizes = self._sizes_of_slices(self._batch, "GND-02", "GND-08", "GND-03", "GND-04")
        indices = self._sizes_of("indices_tensor", "GND-05")[-self.indices_dimension_count :]
        data = self._sizes_of("input_tensor", "GND-05")[-self.input_dimension_count :]
        for got, wanted in zip(indices[: self._batch], data, strict=False):
            if got.value != wanted.value:
                message = f"got {got.value}, must equal {wanted.origin} = {wanted.value}"
                self._refuse(got.origin, message, "GND-05")
        return [sizes]

    def _regions(self) -> Sequence[Sequence[Region]]:
        source = self.input_tensor.view.with_rank(self.input_dimension_count)
        indices = self._index_tensor("indices_tensor", self.indices_dimension_count)
        *places, count = indices.view.sizes
        rank = len(places) + len(source.sizes) - self._batch - count
        target = self.output_tensor.view.with_rank(rank)
        return [[gather_nd(Read(0, source), indices, target, self._batch)]]

    @property
    def _batch(self) -> int:
        return 0


@dataclass(frozen=True)
class GatherNd1OperatorDesc(GatherNdOperatorDesc):
    """GATHER_ND with batches, each of which has indices of its own.

    Source: DML_GATHER_ND1_OPERATOR_DESC.

    Attributes:
        input_tensor: what to take slices of.
        indices_tensor: indices as of GATHER_ND, for the dimensions of the input after the batches.
        output_tensor: the dimensions of the indices without the last, and then those of the input
            that neither batches nor tuples index.
        input_dimension_count: dimensions of the input that count, the last ones; those before them
            have size 1.
        indices_dimension_count: dimensions of the indices that count, in the same way.
        batch_dimension_count: dimensions of batches, the first of those that count; their sizes in
            the input and in the indices are equal.

    Raises:
        InvalidDescTypeError: a field is of the wrong kind; ``validate`` checks the values.

    >>> from vkops.dml import BufferTensorDesc, TensorDataType
    >>> table = BufferTensorDesc(TensorDataType.FLOAT32, [5, 6, 7])
    >>> picks = BufferTensorDesc(TensorDataType.INT64, [5, 9, 1])
    >>> rows = BufferTensorDesc(TensorDataType.FLOAT32, [5, 9, 7])
    >>> GatherNd1OperatorDesc(table, picks, rows, 3, 3, 1).validate()
    """

    operator = "GATHER_ND1"

    batch_dimension_count: int = field(metadata=fields.attribute("uint", "GND-02"))

    @property
    def _batch(self) -> int:
        return self.batch_dimension_count
