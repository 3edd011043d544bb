"""REVERSE_SUBSEQUENCES: the first elements along a dimension in reverse order."""

from __future__ import annotations

from collections.abc import Sequence

from vkops.dml import fields
from vkops.dml.indexed_operators import IndexedOperatorDesc
from vkops.dml.operator_desc import Size
from vkops.dml.tensor_desc import BufferTensorDesc
from vkops.plan import Read, Region
from vkops.plan.indexing import reverse_sequences


@fields.descriptor
class ReverseSubsequencesOperatorDesc(IndexedOperatorDesc):
    """Reverses the order of the first elements along a dimension, and copies the others.

    Attributes:
        input_tensor: what to copy.
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

    input_tensor: BufferTensorDesc = fields.tensor("input")
    sequence_lengths_tensor: BufferTensorDesc = fields.indices()
    output_tensor: BufferTensorDesc = fields.tensor("output")
    axis: int = fields.attribute(fields.UINT, "REV-02")

    def _infer(self) -> Sequence[Sequence[Size]]:
        self._check_axis(self.axis, "REV-02")
        self._check_sizes_except("sequence_lengths_tensor", self.axis, "REV-03", 1)
        return [self._sizes_of_input("REV-01")]

    def _regions(self) -> Sequence[Sequence[Region]]:
        source = Read(0, self.input_tensor.view)
        lengths = self._index_tensor("sequence_lengths_tensor")
        return [[reverse_sequences(source, lengths, self.output_tensor.view, self.axis)]]
