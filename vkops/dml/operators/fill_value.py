"""FILL_VALUE_CONSTANT and FILL_VALUE_SEQUENCE: a tensor of one value, or of numbers in steps."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from vkops.dml import fields
from vkops.dml.enums import TensorDataType
from vkops.dml.operator_desc import OperatorDesc, Size
from vkops.dml.tensor_desc import BufferTensorDesc
from vkops.plan import Fill, Region, View
from vkops.plan.movements import copy, fill
from vkops.plan.region import Progression


@fields.descriptor
class FillValueConstantOperatorDesc(OperatorDesc):
    """Writes one value to every element of a tensor; there is no input.

    Attributes:
        output_tensor: the tensor to fill.
        value_data_type: its data type.
        value: the value, which this data type can hold; rounded to the nearest value that a
            floating-point type has.

    >>> from vkops.dml import BufferTensorDesc, TensorDataType
    >>> tensor = BufferTensorDesc(TensorDataType.FLOAT16, [2, 4])
    >>> FillValueConstantOperatorDesc(tensor, TensorDataType.FLOAT16, 0.5).validate()
    """

    same_data_type = same_dimension_count = "FILL-01"

    output_tensor: BufferTensorDesc = fields.tensor("output")
    value_data_type: TensorDataType = fields.enumeration(TensorDataType, "FILL-01")
    value: float = fields.scalar("FILL-02", "value_data_type")

    def _infer(self) -> Sequence[Sequence[Size]]:
        self._element("value", self.value)
        return [self._sizes_of("output_tensor", "FILL-01")]

    def _regions(self) -> Sequence[Sequence[Region]]:
        value = Fill(self._element("value", self.value))
        return [[fill(value, self.output_tensor.view)]]


@fields.descriptor
class FillValueSequenceOperatorDesc(OperatorDesc):
    """Writes ``value_start``, ``value_start + value_delta`` ... to elements in row-major order.

    The numbers are made on the host when the operator is compiled, and stored on the device.

    Attributes:
        output_tensor: the tensor to fill.
        value_data_type: its data type.
        value_start: the first number, which this data type can hold; rounded to the nearest value
            that a floating-point type has.
        value_delta: what each number has more than the one before; of an unsigned type it may be
            negative, as integers wrap.

    >>> from vkops.dml import BufferTensorDesc, TensorDataType
    >>> tensor = BufferTensorDesc(TensorDataType.INT32, [1, 1, 1, 3])
    >>> FillValueSequenceOperatorDesc(tensor, TensorDataType.INT32, 3, 2).validate()
    """

    same_data_type = same_dimension_count = "FILL-01"

    output_tensor: BufferTensorDesc = fields.tensor("output")
    value_data_type: TensorDataType = fields.enumeration(TensorDataType, "FILL-01")
    value_start: float = fields.scalar("FILL-02", "value_data_type")
    value_delta: float = fields.scalar("FILL-02", "value_data_type")

    def _infer(self) -> Sequence[Sequence[Size]]:
        self._element("value_start", self.value_start)
        delta = self.value_delta
        if delta >= 0 or not self.value_data_type.name.startswith("UINT"):
            self._element("value_delta", delta)
        elif delta != int(delta) or -delta > 2 ** (self.value_data_type.size_bits - 1):
            bits = self.value_data_type.size_bits
            message = f"got {delta}, must be an integer from {-(2 ** (bits - 1))} to {2**bits - 1}"
            self._refuse("value_delta", message, "FILL-02")
        return [self._sizes_of("output_tensor", "FILL-01")]

    @property
    def _constants(self) -> tuple[Progression, ...]:
        code, count = self.value_data_type.numpy_code, prod(self.output_tensor.sizes)
        return (Progression(code, self.value_start, self.value_delta, count),)

    def _regions(self) -> Sequence[Sequence[Region]]:
        target = self.output_tensor.view
        return [[copy(View.packed(target.sizes), target)]]
