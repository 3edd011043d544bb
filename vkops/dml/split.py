"""SPLIT: one tensor cut along an axis."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from vkops.dml import rules
from vkops.dml.operator_desc import Field, OperatorDesc
from vkops.dml.tensor_desc import BufferTensorDesc
from vkops.plan import Region
from vkops.plan.movements import split
from vkops.plan.region import Read


@dataclass(frozen=True)
class SplitOperatorDesc(OperatorDesc):
    """Cuts a tensor along an axis; output k begins where output k - 1 ends.

    Source: DML_SPLIT_OPERATOR_DESC.

    Attributes:
        input_tensor: what to cut.
        output_tensors: the pieces, which have the input's sizes except along the axis.
        axis: dimension to cut, 0 being the outermost; the outputs' sizes there add up.

    Raises:
        InvalidDescTypeError: a field is of the wrong kind; ``validate`` checks the values.

    >>> from vkops.dml import BufferTensorDesc, TensorDataType
    >>> whole, left, right = (
    ...     BufferTensorDesc(TensorDataType.INT32, [2, n]) for n in (5, 2, 3)
    ... )
    >>> SplitOperatorDesc(whole, [left, right], axis=1).validate("5_0")
    """

    operator = "SPLIT"
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("input_tensor", "InputTensor", "tensor", "input", "T-18"),
        Field(
            "output_tensors",
            "OutputTensors",
            "tensor_array",
            "output",
            "SPLIT-01",
            count="OutputCount",
        ),
        Field("axis", "Axis", "uint", "attribute", "SPLIT-02"),
    )

    input_tensor: BufferTensorDesc
    output_tensors: Sequence[BufferTensorDesc]
    axis: int

    def _check(self) -> None:
        (whole,), pieces, axis = self.inputs, self.outputs, self.axis
        rules.same_data_type(self._refuse, "SPLIT-03", whole, pieces)
        rules.same_dimension_count(self._refuse, "SPLIT-04", whole, pieces)
        rules.axis_in_range(self._refuse, "SPLIT-02", axis, whole)
        rules.same_sizes(self._refuse, "SPLIT-05", whole, pieces, except_axis=axis)
        total = sum(tensor.sizes[axis] for tensor in self.output_tensors)
        expected = self.input_tensor.sizes[axis]
        if total != expected:
            message = (
                f"got sizes[{axis}] that add up to {total}, "
                f"must add up to input_tensor.sizes[{axis}] = {expected}"
            )
            self._refuse("output_tensors", message, "SPLIT-06")

    def _regions(self) -> list[list[Region]]:
        targets = [tensor.view for tensor in self.output_tensors]
        return [[r] for r in split(Read(0, self.input_tensor.view), targets, self.axis)]
