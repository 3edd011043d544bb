"""SLICE: every n-th element of a part of a tensor."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from vkops.dml import rules
from vkops.dml.operator_desc import Field, OperatorDesc
from vkops.dml.tensor_desc import BufferTensorDesc
from vkops.errors import show
from vkops.plan import Region
from vkops.plan.movements import window
from vkops.plan.region import Read


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
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("input_tensor", "InputTensor", "tensor", "input", "T-18"),
        Field("output_tensor", "OutputTensor", "tensor", "output", "T-18"),
        Field("offsets", "Offsets", "uint_array", "attribute", "SLICE-05", count="DimensionCount"),
        Field("sizes", "Sizes", "uint_array", "attribute", "SLICE-03", count="DimensionCount"),
        Field("strides", "Strides", "uint_array", "attribute", "SLICE-04", count="DimensionCount"),
    )

    input_tensor: BufferTensorDesc
    output_tensor: BufferTensorDesc
    offsets: Sequence[int]
    sizes: Sequence[int]
    strides: Sequence[int]

    def _check(self) -> None:
        (source,) = self.inputs
        rules.same_data_type(self._refuse, "SLICE-02", source, self.outputs)
        rules.same_dimension_count(self._refuse, "SLICE-01", source, self.outputs)
        rules.one_entry_per_dimension(
            self._refuse,
            "SLICE-01",
            source,
            offsets=self.offsets,
            sizes=self.sizes,
            strides=self.strides,
        )
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
                self._refuse(
                    f"sizes[{i}]",
                    f"got {show(size)}, must equal output_tensor.sizes[{i}] = {expected}",
                    "SLICE-03",
                )
            if stride < 1:
                self._refuse(f"strides[{i}]", f"got {show(stride)}, must be 1 or more", "SLICE-04")
            last = offset + (size - 1) * stride
            if last >= available:
                self._refuse(
                    f"offsets[{i}]",
                    f"the last element copied is {show(last)} (offset + (size - 1) * stride), "
                    f"must be below input_tensor.sizes[{i}] = {available}",
                    "SLICE-05",
                )

    def _regions(self) -> list[list[Region]]:
        source, target = Read(0, self.input_tensor.view), self.output_tensor.view
        return [[window(source, target, tuple(self.offsets), tuple(self.strides))]]
