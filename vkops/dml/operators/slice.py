"""SLICE: every n-th element of a part of a tensor."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from vkops.dml import fields
from vkops.dml.enums import FeatureLevel
from vkops.dml.operator_desc import OperatorDesc, Size
from vkops.dml.tensor_desc import BufferTensorDesc
from vkops.errors import show
from vkops.plan import Read, Region
from vkops.plan.movements import window


@dataclass(frozen=True)
class SliceOperatorDesc(OperatorDesc):
    """Copies ``sizes`` elements, from ``offsets`` on, ``strides`` apart.

    Source: DML_SLICE_OPERATOR_DESC.

    Attributes:
        input_tensor: what to copy from.
        output_tensor: what to make, of ``sizes``.
        offsets: first element to copy, per dimension.
        sizes: number of elements copied, per dimension (SLICE1 counts the window instead).
        strides: distance between copied elements, per dimension, at least 1; in elements of the
            tensor's dimension, not of memory.

    Raises:
        InvalidDescTypeError: a field is of the wrong kind; ``validate`` checks the values.

    >>> from vkops.dml import BufferTensorDesc, TensorDataType
    >>> source, target = (BufferTensorDesc(TensorDataType.INT32, [n]) for n in (9, 3))
    >>> SliceOperatorDesc(source, target, offsets=[1], sizes=[3], strides=[3]).validate()
    """

    operator = "SLICE"
    same_data_type = "SLICE-02"
    same_dimension_count = "SLICE-01"

    input_tensor: BufferTensorDesc = field(metadata=fields.tensor("input"))
    output_tensor: BufferTensorDesc = field(metadata=fields.tensor("output"))
    offsets: Sequence[int] = field(metadata=fields.per_dimension("uint_array", "SLICE-05"))
    sizes: Sequence[int] = field(metadata=fields.per_dimension("uint_array", "SLICE-03"))
    strides: Sequence[int] = field(metadata=fields.per_dimension("uint_array", "SLICE-04"))

    def _infer(self, level: FeatureLevel) -> Sequence[Sequence[Size]]:
        self._check_lengths("SLICE-01")
        dimensions = zip(
            self.offsets,
            self.sizes,
            self.strides,
            self.input_tensor.sizes,
            self.output_tensor.sizes,
            strict=True,
        )
        for i, (offset, size, stride, available, expected) in enumerate(dimensions):
            if size != expected:
                message = f"got {show(size)}, must equal output_tensor.sizes[{i}] = {expected}"
                self._refuse(f"sizes[{i}]", message, "SLICE-03")
            self._check_positive(f"strides[{i}]", stride, "SLICE-04")
            last = offset + (size - 1) * stride
            if last >= available:
                message = (
                    f"the last element copied is {show(last)} (offset + (size - 1) * stride), "
                    f"must be below input_tensor.sizes[{i}] = {available}"
                )
                self._refuse(f"offsets[{i}]", message, "SLICE-05")
        return [Size.each(self.sizes, "sizes[{0}]", "SLICE-03")]

    def _regions(self) -> Sequence[Sequence[Region]]:
        source, target = Read(0, self.input_tensor.view), self.output_tensor.view
        return [[window(source, target, tuple(self.offsets), tuple(self.strides))]]
