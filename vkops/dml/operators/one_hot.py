"""ONE_HOT: one of two values, where an index is and where it is not."""

from __future__ import annotations

from collections.abc import Sequence

from vkops.dml import fields
from vkops.dml.indexed_operators import IndexedOperatorDesc
from vkops.dml.operator_desc import Size
from vkops.dml.tensor_desc import BufferTensorDesc
from vkops.plan import Read, Region, View
from vkops.plan.indexing import one_hot


@fields.descriptor
class OneHotOperatorDesc(IndexedOperatorDesc):
    """Writes one value at the places along a dimension that indices select, another elsewhere.

    Attributes:
        indices_tensor: indices along ``axis``, of type INT32, INT64, UINT32 or UINT64. Negative
            ones count from the end; one that is out of range selects no place.
        values_tensor: the value of all other places, and after it, along the last dimension whose
            size is not 1, the value of those that are selected.
        output_tensor: has the sizes of the indices, but any size along ``axis``.
        axis: a dimension, along which the indices have size 1.

    >>> from vkops.dml import BufferTensorDesc, TensorDataType
    >>> digits = BufferTensorDesc(TensorDataType.UINT32, [6, 1])
    >>> off_and_on = BufferTensorDesc(TensorDataType.FLOAT32, [1, 2])
    >>> rows = BufferTensorDesc(TensorDataType.FLOAT32, [6, 10])
    >>> OneHotOperatorDesc(digits, off_and_on, rows, 1).validate()
    """

    same_data_type = same_dimension_count = "HOT-01"

    indices_tensor: BufferTensorDesc = fields.indices()
    values_tensor: BufferTensorDesc = fields.tensor("input")
    output_tensor: BufferTensorDesc = fields.tensor("output")
    axis: int = fields.attribute(fields.UINT, "HOT-02")

    def _infer(self) -> Sequence[Sequence[Size]]:
        self._check_axis(self.axis, "HOT-02")
        self._check_sizes_except("indices_tensor", self.axis, "HOT-03", 1)
        if max(self.values_tensor.sizes) == 1:
            message = f"got {list(self.values_tensor.sizes)}, must have 2 elements or more"
            self._refuse("values_tensor.sizes", message, "HOT-04")
        sizes, axis = self._sizes_of_input("HOT-03"), self.axis
        sizes[axis] = sizes[axis]._replace(value=self.output_tensor.sizes[axis])
        return [sizes]

    def _regions(self) -> Sequence[Sequence[Region]]:
        values, target = self.values_tensor, self.output_tensor.view
        last = max(d for d, size in enumerate(values.sizes) if size > 1)
        off, on = (Read(1, View((), (), at)) for at in (0, values.effective_strides[last]))
        return [one_hot(off, on, self._index_tensor("indices_tensor"), target, self.axis)]
