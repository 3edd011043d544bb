"""GATHER in its versions, and REVERSE_SUBSEQUENCES: copies whose sources other tensors choose."""

from __future__ import annotations

from collections.abc import Sequence

from vkops.dml import fields
from vkops.dml.operator_bases import IndexedOperatorDesc
from vkops.dml.operator_desc import Size
from vkops.dml.tensor_desc import BufferTensorDesc
from vkops.plan import Read, Region
from vkops.plan.indexing import gather, gather_elements, gather_nd, reverse_sequences


@fields.descriptor
class GatherOperatorDesc(IndexedOperatorDesc):
    """Takes elements along a dimension, at indices that are read when the operator runs.

    If the output would have more dimensions than the input, the first ones are left out, and the
    output has the elements at index 0 along them.

    Attributes:
        input_tensor: the tensor to take elements of.
        indices_tensor: indices along ``axis``, of type INT32, INT64, UINT32 or UINT64. Negative
            ones count from the end; one that is out of range stands for the nearest that is not.
        output_tensor: the dimensions of the input with the last ``index_dimensions`` ones of the
            indices in the place of ``axis``; all tensors have one rank, and their first sizes may
            be 1 to reach it.
        axis: a dimension of the input.
        index_dimensions: dimensions of the indices that count; those before them have size 1.

    >>> from vkops.dml import BufferTensorDesc, TensorDataType
    >>> table = BufferTensorDesc(TensorDataType.FLOAT32, [9, 4])
    >>> rows = BufferTensorDesc(TensorDataType.INT64, [1, 3])
    >>> taken = BufferTensorDesc(TensorDataType.FLOAT32, [3, 4])
    >>> GatherOperatorDesc(table, rows, taken, 0, 1).validate()
    """

    same_data_type = same_dimension_count = "GATH-01"

    input_tensor: BufferTensorDesc = fields.tensor("input")
    indices_tensor: BufferTensorDesc = fields.indices()
    output_tensor: BufferTensorDesc = fields.tensor("output")
    axis: int = fields.attribute(fields.UINT, "GATH-02")
    index_dimensions: int = fields.attribute(fields.UINT, "GATH-03")

    def _infer(self) -> Sequence[Sequence[Size]]:
        rule = "GATH-03"
        indices = self._counted_sizes("index_dimensions", "indices_tensor", rule, rule, minimum=0)
        sizes, axis = self._sizes_of_input("GATH-04"), self.axis
        whole = [*sizes[:axis], *indices, *sizes[axis + 1 :]]
        return [self._with_rank(whole[-len(sizes) :], "input_tensor", "GATH-04")]

    def _regions(self) -> Sequence[Sequence[Region]]:
        indices = self._index_tensor("indices_tensor", self.index_dimensions)
        source, index_view, axis = self.input_tensor.view, indices.view, self.axis
        for left_out in range(self.index_dimensions - 1):
            if left_out < axis:
                source = source.narrow(left_out, 0, 1)
            else:
                index_view = index_view.narrow(left_out - axis, 0, 1)
        rank = len(source.sizes) - 1 + self.index_dimensions
        target = self.output_tensor.view.with_rank(rank)
        return [[gather(Read(0, source), indices._replace(view=index_view), target, axis)]]


@fields.descriptor
class GatherElementsOperatorDesc(IndexedOperatorDesc):
    """Takes an element for each index, which says its place along a dimension.

    Attributes:
        input_tensor: the tensor to take elements of.
        indices_tensor: indices along ``axis``, of type INT32, INT64, UINT32 or UINT64. Negative
            ones count from the end; one that is out of range stands for the nearest that is not.
        output_tensor: has the sizes of the indices.
        axis: a dimension; along all others, the indices have the sizes of the input.

    >>> from vkops.dml import BufferTensorDesc, TensorDataType
    >>> table = BufferTensorDesc(TensorDataType.FLOAT32, [3, 3])
    >>> rows = BufferTensorDesc(TensorDataType.INT64, [2, 3])
    >>> taken = BufferTensorDesc(TensorDataType.FLOAT32, [2, 3])
    >>> GatherElementsOperatorDesc(table, rows, taken, 0).validate()
    """

    same_data_type = same_dimension_count = "GEL-01"

    input_tensor: BufferTensorDesc = fields.tensor("input")
    indices_tensor: BufferTensorDesc = fields.indices()
    output_tensor: BufferTensorDesc = fields.tensor("output")
    axis: int = fields.attribute(fields.UINT, "GEL-01")

    def _infer(self) -> Sequence[Sequence[Size]]:
        self._check_sizes_except("indices_tensor", self.axis, "GEL-02")
        return [self._sizes_of("indices_tensor", "GEL-03")]

    def _regions(self) -> Sequence[Sequence[Region]]:
        source, indices = Read(0, self.input_tensor.view), self._index_tensor("indices_tensor")
        return [[gather_elements(source, indices, self.output_tensor.view, self.axis)]]


@fields.descriptor
class GatherNdOperatorDesc(IndexedOperatorDesc):
    """Takes slices of a tensor, at tuples of indices that are read when the operator runs.

    Attributes:
        input_tensor: the tensor to take slices of.
        indices_tensor: indices of type INT32, INT64, UINT32 or UINT64; its last dimension holds
            tuples for the first dimensions of the input. Negative indices count from the end; one
            that is out of range stands for the nearest that is not.
        output_tensor: the dimensions of the indices without the last, and then those of the input
            that no tuple indexes.
        input_dimension_count: dimensions of the input that count, the last ones; those before them
            have size 1.
        indices_dimension_count: dimensions of the indices that count, in the same way.

    >>> from vkops.dml import BufferTensorDesc, TensorDataType
    >>> table = BufferTensorDesc(TensorDataType.FLOAT32, [5, 6, 7])
    >>> pairs = BufferTensorDesc(TensorDataType.INT64, [1, 9, 2])
    >>> rows = BufferTensorDesc(TensorDataType.FLOAT32, [1, 9, 7])
    >>> GatherNdOperatorDesc(table, pairs, rows, 3, 2).validate()
    """

    same_data_type = same_dimension_count = "GND-01"

    input_tensor: BufferTensorDesc = fields.tensor("input")
    indices_tensor: BufferTensorDesc = fields.indices()
    output_tensor: BufferTensorDesc = fields.tensor("output")
    input_dimension_count: int = fields.attribute(fields.UINT, "GND-02")
    indices_dimension_count: int = fields.attribute(fields.UINT, "GND-02")

    def _infer(self) -> Sequence[Sequence[Size]]:
        sizes = self._sizes_of_slices(self._batch, "GND-02", "GND-08", "GND-03")
        indices = self._sizes_of("indices_tensor", "GND-05")[-self.indices_dimension_count :]
        data = self._sizes_of("input_tensor", "GND-05")[-self.input_dimension_count :]
        for got, available in zip(indices[: self._batch], data, strict=False):
            if got.value > available.value:
                message = f"got {got.value}, must be at most {available.origin} = {available.value}"
                self._refuse_by_bound(got.origin, message, "GND-05")
        return [self._with_rank(sizes, "input_tensor", "GND-04")]

    def _regions(self) -> Sequence[Sequence[Region]]:
        source = self.input_tensor.view.with_rank(self.input_dimension_count)
        indices = self._index_tensor("indices_tensor", self.indices_dimension_count)
        *places, count = indices.view.sizes
        for axis, batches in enumerate(places[: self._batch]):
            source = source.narrow(axis, 0, batches)
        rank = len(places) + len(source.sizes) - self._batch - count
        target = self.output_tensor.view.with_rank(rank)
        return [[gather_nd(Read(0, source), indices, target, self._batch)]]

    @property
    def _batch(self) -> int:
        return 0


@fields.descriptor
class GatherNd1OperatorDesc(GatherNdOperatorDesc):
    """GATHER_ND with batches, each of which has indices of its own.

    Attributes:
        indices_tensor: indices as of GATHER_ND, for the dimensions of the input after the batches.
        output_tensor: the dimensions of the indices without the last, and then those of the input
            that neither batches nor tuples index.
        batch_dimension_count: dimensions of batches, the first of those that count. The indices may
            have fewer batches than the input, and are for the first ones.

    >>> from vkops.dml import BufferTensorDesc, TensorDataType
    >>> table = BufferTensorDesc(TensorDataType.FLOAT32, [5, 6, 7])
    >>> picks = BufferTensorDesc(TensorDataType.INT64, [5, 9, 1])
    >>> rows = BufferTensorDesc(TensorDataType.FLOAT32, [5, 9, 7])
    >>> GatherNd1OperatorDesc(table, picks, rows, 3, 3, 1).validate()
    """

    batch_dimension_count: int = fields.attribute(fields.UINT, "GND-02")

    @property
    def _batch(self) -> int:
        return self.batch_dimension_count


@fields.descriptor
class ReverseSubsequencesOperatorDesc(IndexedOperatorDesc):
    """Reverses the order of the first elements along a dimension, and copies the others.

    Attributes:
        input_tensor: the tensor to copy.
        sequence_lengths_tensor: how many elements to reverse, of type UINT32 or UINT64; its sizes
            are the input's, but 1 along ``axis``. A greater length counts as the input's size.
        output_tensor: has the input's sizes.
        axis: the dimension along which elements are reversed.

    >>> from vkops.dml import BufferTensorDesc, TensorDataType
    >>> words = BufferTensorDesc(TensorDataType.FLOAT32, [3, 9])
    >>> lengths = BufferTensorDesc(TensorDataType.UINT32, [3, 1])
    >>> ReverseSubsequencesOperatorDesc(words, lengths, words, 1).validate()
    """

    same_data_type = same_dimension_count = "REV-01"
    addresses_memory = False

    input_tensor: BufferTensorDesc = fields.tensor("input")
    sequence_lengths_tensor: BufferTensorDesc = fields.indices()
    output_tensor: BufferTensorDesc = fields.tensor("output")
    axis: int = fields.attribute(fields.UINT, "REV-02")

    def _infer(self) -> Sequence[Sequence[Size]]:
        self._check_sizes_except("sequence_lengths_tensor", self.axis, "REV-03", 1)
        return [self._sizes_of_input("REV-01")]

    def _regions(self) -> Sequence[Sequence[Region]]:
        source = Read(0, self.input_tensor.view)
        lengths = self._index_tensor("sequence_lengths_tensor")
        return [[reverse_sequences(source, lengths, self.output_tensor.view, self.axis)]]
