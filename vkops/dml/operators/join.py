"""JOIN: tensors put together along an axis."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from vkops.dml import fields
from vkops.dml.enums import FeatureLevel
from vkops.dml.operator_desc import OperatorDesc, Size
from vkops.dml.tensor_desc import BufferTensorDesc
from vkops.plan import Read, Region
from vkops.plan.movements import concat, concat_sizes


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
    same_data_type = "JOIN-03"
    same_dimension_count = "JOIN-04"

    input_tensors: Sequence[BufferTensorDesc] = field(
        metadata=fields.tensors("input", "JOIN-01", "InputCount")
    )
    output_tensor: BufferTensorDesc = field(metadata=fields.tensor("output"))
    axis: int = field(metadata=fields.attribute("uint", "JOIN-02"))

    def _infer(self, level: FeatureLevel) -> Sequence[Sequence[Size]]:
        self._check_axis(self.axis, "JOIN-02")
        whole = self._sizes_of_input("JOIN-05")
        for path, tensor in self.inputs[1:]:
            for i, (got, wanted) in enumerate(zip(tensor.sizes, whole, strict=True)):
                if i != self.axis and got != wanted.value:
                    message = f"got {got}, must equal {wanted.origin} = {wanted.value}"
                    self._refuse(f"{path}.sizes[{i}]", message, wanted.rule)
        total = concat_sizes([tensor.sizes for tensor in self.input_tensors], self.axis)[self.axis]
        origin = f"the sum of input_tensors' sizes[{self.axis}]"
        whole[self.axis] = Size(total, origin, "JOIN-06")
        return [whole]

    def _regions(self) -> Sequence[Sequence[Region]]:
        sources = [Read(i, tensor.view) for i, tensor in enumerate(self.input_tensors)]
        return [concat(sources, self.output_tensor.view, self.axis)]
