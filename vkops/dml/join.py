"""JOIN: tensors put together along an axis."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from vkops.dml import rules
from vkops.dml.operator_desc import Field, OperatorDesc
from vkops.dml.tensor_desc import BufferTensorDesc
from vkops.plan import Region
from vkops.plan.movements import concat
from vkops.plan.region import Read


@dataclass(frozen=True)
class JoinOperatorDesc(OperatorDesc):
    """Puts tensors together along an axis, in order: the inverse of SPLIT.

    Source: DML_JOIN_OPERATOR_DESC.

    Attributes:
        input_tensors: the pieces, which have equal sizes except along the axis.
        output_tensor: the whole.
        axis: dimension to join, 0 being the outermost; the inputs' sizes there add up.

    Raises:
        InvalidDescTypeError: a field is of the wrong kind; ``validate`` checks the values.

    >>> from vkops.dml import BufferTensorDesc, TensorDataType
    >>> left, right, whole = (
    ...     BufferTensorDesc(TensorDataType.INT32, [2, n]) for n in (2, 3, 5)
    ... )
    >>> JoinOperatorDesc([left, right], whole, axis=1).validate("5_0")
    """

    operator = "JOIN"
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field(
            "input_tensors", "InputTensors", "tensor_array", "input", "JOIN-01", count="InputCount"
        ),
        Field("output_tensor", "OutputTensor", "tensor", "output", "T-18"),
        Field("axis", "Axis", "uint", "attribute", "JOIN-02"),
    )

    input_tensors: Sequence[BufferTensorDesc]
    output_tensor: BufferTensorDesc
    axis: int

    def _check(self) -> None:
        first, *others = *self.inputs, *self.outputs
        axis = self.axis
        rules.same_data_type(self._refuse, "JOIN-03", first, others)
        rules.same_dimension_count(self._refuse, "JOIN-04", first, others)
        rules.axis_in_range(self._refuse, "JOIN-02", axis, first)
        rules.same_sizes(self._refuse, "JOIN-05", first, others, except_axis=axis)
        total = sum(tensor.sizes[axis] for tensor in self.input_tensors)
        got = self.output_tensor.sizes[axis]
        if got != total:
            message = f"got {got}, must equal the sum of input_tensors' sizes[{axis}] = {total}"
            field = f"output_tensor.sizes[{axis}]"
            self._refuse(field, message, "JOIN-06")

    def _regions(self) -> list[list[Region]]:
        sources = [Read(i, tensor.view) for i, tensor in enumerate(self.input_tensors)]
        return [concat(sources, self.output_tensor.view, self.axis)]
