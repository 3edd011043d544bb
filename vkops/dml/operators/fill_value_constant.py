"""FILL_VALUE_CONSTANT: one value everywhere in a tensor."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from vkops.dml import fields
from vkops.dml.enums import FeatureLevel, TensorDataType
from vkops.dml.operator_desc import OperatorDesc, Size
from vkops.dml.tensor_desc import BufferTensorDesc
from vkops.plan import Fill, Region
from vkops.plan.movements import fill


@dataclass(frozen=True)
class FillValueConstantOperatorDesc(OperatorDesc):
    """Writes one value to every element of a tensor; there is no input.

    Source: DML_FILL_VALUE_CONSTANT_OPERATOR_DESC.

    Attributes:
        output_tensor: the tensor to fill.
        value_data_type: its data type.
        value: the value, which this data type can hold; rounded to the nearest value that a
            floating-point type has.

    Raises:
        InvalidDescTypeError: a field is of the wrong kind; ``validate`` checks the values.

    >>> from vkops.dml import BufferTensorDesc, TensorDataType
    >>> tensor = BufferTensorDesc(TensorDataType.FLOAT16, [2, 4])
    >>> FillValueConstantOperatorDesc(tensor, TensorDataType.FLOAT16, 0.5).validate()
    """

    operator = "FILL_VALUE_CONSTANT"
    same_data_type = "FILL-01"
    same_dimension_count = "FILL-01"

    output_tensor: BufferTensorDesc = field(metadata=fields.tensor("output"))
    value_data_type: TensorDataType = field(metadata=fields.enumeration(TensorDataType, "FILL-01"))
    value: float = field(metadata=fields.scalar("FILL-02", "value_data_type"))

    def _infer(self, level: FeatureLevel) -> Sequence[Sequence[Size]]:
        self._element("value", self.value)
        return [self._sizes_of("output_tensor", "FILL-01")]

    def _regions(self) -> Sequence[Sequence[Region]]:
        value = Fill(self._element("value", self.value))
        return [[fill(value, self.output_tensor.view)]]
