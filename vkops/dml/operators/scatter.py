"""SCATTER, SCATTER_ND and ONE_HOT: values that overwrite a tensor at the places of indices."""

from __future__ import annotations

from collections.abc import Sequence

from vkops.dml import fields
from vkops.dml.operator_bases import IndexedOperatorDesc
from vkops.dml.operator_desc import Size
from vkops.dml.tensor_desc import BufferTensorDesc
from vkops.plan import Read, Region, View
from vkops.plan.indexing import one_hot, scatter_elements, scatter_nd
from vkops.plan.movements import copy


@fields.descriptor
class ScatterOperatorDesc(IndexedOperatorDesc):
    """Copies a tensor, and replaces an element for each index by an update.

    The index says where along a dimension the update goes. Where several updates are for one
    element, any of them can remain.

    Attributes:
        input_tensor: the tensor to copy.
        indices_tensor: indices along ``axis``, of type INT32, INT64, UINT32 or UINT64. Negative
            ones count from the end; an update whose index is out of range is left out.
        updates_tensor: the new elements, one for each index.
        output_tensor: has the input's sizes.
        axis: a dimension, along which there are no more indices than the input has elements; along
            all others, the indices have the sizes of the input.

    >>> from vkops.dml import BufferTensorDesc, TensorDataType
    >>> table = BufferTensorDesc(TensorDataType.FLOAT32, [3, 3])
    >>> rows = BufferTensorDesc(TensorDataType.INT64, [2, 3])
    >>> updates = BufferTensorDesc(TensorDataType.FLOAT32, [2, 3])
    >>> ScatterOperatorDesc(table, rows, updates, table, 0).validate()
    """

    same_data_type = same_dimension_count = "SCAT-02"

    input_tensor: BufferTensorDesc = fields.tensor("input")
    indices_tensor: BufferTensorDesc = fields.indices()
    updates_tensor: BufferTensorDesc = fields.tensor("input")
    output_tensor: BufferTensorDesc = fields.tensor("output")
    axis: int = fields.attribute(fields.UINT, "SCAT-03")

    def _infer(self) -> Sequence[Sequence[Size]]:
        self._check_sizes_except("indices_tensor", self.axis, "SCAT-03")
        sizes, available = self._sizes_of("indices_tensor", "SCAT-03"), self.input_tensor.sizes
        got, origin, rule = sizes[self.axis]
        if got > available[self.axis]:
            maximum = f"input_tensor.sizes[{self.axis}] = {available[self.axis]}"
            self._refuse(origin, f"got {got}, must be at most {maximum}", rule)
        self._check_sizes("updates_tensor", self.updates_tensor, sizes)
        return [self._sizes_of_input("SCAT-02")]

    def _regions(self) -> Sequence[Sequence[Region]]:
        target, indices = self.output_tensor.view, self._index_tensor("indices_tensor")
        written = scatter_elements(Read(2, self.updates_tensor.view), indices, target, self.axis)
        return [[copy(self.input_tensor.view, target), written]]


@fields.descriptor
class ScatterNdOperatorDesc(IndexedOperatorDesc):
    """Copies a tensor, and replaces a slice for each tuple of indices by an update.

    Where several updates are for one element, any of them can remain.

    Attributes:
        input_tensor: the tensor to copy.
        indices_tensor: indices of type INT32, INT64, UINT32 or UINT64; its last dimension holds
            tuples for the first dimensions of the input. Negative indices count from the end; an
            update with an index that is out of range is left out. No stride may be 0, unless the
            size is 1.
        updates_tensor: the dimensions of the indices without the last, and then those of the input
            that no tuple indexes; those before them have size 1. Indices and updates may have other
            ranks than the input.
        output_tensor: has the input's sizes.
        input_dimension_count: dimensions of the input that count, the last ones; those before them
            have size 1.
        indices_dimension_count: dimensions of the indices that count, in the same way.

    >>> from vkops.dml import BufferTensorDesc, TensorDataType
    >>> table = BufferTensorDesc(TensorDataType.FLOAT32, [5, 6, 7])
    >>> pairs = BufferTensorDesc(TensorDataType.INT64, [1, 9, 2])
    >>> rows = BufferTensorDesc(TensorDataType.FLOAT32, [1, 9, 7])
    >>> ScatterNdOperatorDesc(table, pairs, rows, table, 3, 2).validate()
    """

    same_data_type = same_dimension_count = "SCAT-02"

    input_tensor: BufferTensorDesc = fields.tensor("input")
    indices_tensor: BufferTensorDesc = fields.indices(any_rank=True)
    updates_tensor: BufferTensorDesc = fields.tensor("input", any_rank=True)
    output_tensor: BufferTensorDesc = fields.tensor("output")
    input_dimension_count: int = fields.attribute(fields.UINT, "SCAT-06")
    indices_dimension_count: int = fields.attribute(fields.UINT, "SCAT-06")

    def _infer(self) -> Sequence[Sequence[Size]]:
        indices = self.indices_tensor
        for i, stride in enumerate(indices.effective_strides):
            if stride == 0 and indices.sizes[i] > 1:
                self._refuse(f"indices_tensor.strides[{i}]", "got 0, must not be 0", "SCAT-06")
        sizes = self._sizes_of_slices(0, "SCAT-06", "SCAT-06", "SCAT-06")
        updates = self._with_rank(sizes, "updates_tensor", "SCAT-06")
        self._check_sizes("updates_tensor", self.updates_tensor, updates)
        return [self._sizes_of_input("SCAT-02")]

    def _regions(self) -> Sequence[Sequence[Region]]:
        whole = self.output_tensor.view
        target = whole.with_rank(self.input_dimension_count)
        indices = self._index_tensor("indices_tensor", self.indices_dimension_count)
        *places, count = indices.view.sizes
        rank = len(places) + len(target.sizes) - count
        updates = Read(2, self.updates_tensor.view.with_rank(rank))
        return [[copy(self.input_tensor.view, whole), scatter_nd(updates, indices, target)]]


@fields.descriptor
class OneHotOperatorDesc(IndexedOperatorDesc):
    """Writes one value at the places along a dimension that indices select, another elsewhere.

    Attributes:
        indices_tensor: indices along ``axis``, of type INT32, INT64, UINT32 or UINT64. Negative
            ones count from the end; one that is out of range selects no place.
        values_tensor: the value of all other places, and after it, along the last dimension whose
            size is not 1, the value of those that are selected. It may have another rank than the
            others.
        output_tensor: has the sizes of the indices, but any size along ``axis``.
        axis: a dimension, along which the indices have size 1.

    >>> from vkops.dml import BufferTensorDesc, TensorDataType
    >>> digits = BufferTensorDesc(TensorDataType.UINT32, [6, 1])
    >>> off_and_on = BufferTensorDesc(TensorDataType.FLOAT32, [1, 2])
    >>> rows = BufferTensorDesc(TensorDataType.FLOAT32, [6, 10])
    >>> OneHotOperatorDesc(digits, off_and_on, rows, 1).validate()
    """

    same_data_type = same_dimension_count = "HOT-01"
    addresses_memory = False

    indices_tensor: BufferTensorDesc = fields.indices()
    values_tensor: BufferTensorDesc = fields.tensor("input", any_rank=True)
    output_tensor: BufferTensorDesc = fields.tensor("output")
    axis: int = fields.attribute(fields.UINT, "HOT-02")

    def _infer(self) -> Sequence[Sequence[Size]]:
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
