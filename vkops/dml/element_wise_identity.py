"""ELEMENT_WISE_IDENTITY: a copy, from one layout to another."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from vkops.dml import rules
from vkops.dml.operator_desc import Field, OperatorDesc
from vkops.dml.scale_bias import ScaleBias
from vkops.dml.tensor_desc import BufferTensorDesc
from vkops.plan import Region
from vkops.plan.movements import copy


@dataclass(frozen=True)
class ElementWiseIdentityOperatorDesc(OperatorDesc):
    """Copies a tensor; with other strides this transposes, broadcasts or changes the layout.

    Source: DML_ELEMENT_WISE_IDENTITY_OPERATOR_DESC.

    Attributes:
        input_tensor: what to copy; a stride of 0 repeats elements.
        output_tensor: what to make, of the same sizes.
        scale_bias: must be None: vkops moves data, it does not calculate (IDENT-02).

    Raises:
        InvalidDescTypeError: a field is of the wrong kind; ``validate`` checks the values.

    >>> from vkops.dml import BufferTensorDesc, TensorDataType
    >>> rows = BufferTensorDesc(TensorDataType.INT32, [2, 3])
    >>> columns = BufferTensorDesc(TensorDataType.INT32, [2, 3], strides=[1, 2])
    >>> ElementWiseIdentityOperatorDesc(rows, columns).validate()
    """

    operator = "ELEMENT_WISE_IDENTITY"
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("input_tensor", "InputTensor", "tensor", "input", "T-18"),
        Field("output_tensor", "OutputTensor", "tensor", "output", "T-18"),
        Field("scale_bias", "ScaleBias", "scale_bias", "attribute", "IDENT-02", optional=True),
    )
    supports_in_place = True  # IDENT-04

    input_tensor: BufferTensorDesc
    output_tensor: BufferTensorDesc
    scale_bias: ScaleBias | None = None

    def _check(self) -> None:
        (source,) = self.inputs
        rules.same_data_type(self._refuse, "IDENT-01", source, self.outputs)
        rules.same_dimension_count(self._refuse, "IDENT-01", source, self.outputs)
        rules.same_sizes(self._refuse, "IDENT-01", source, self.outputs)
        if self.scale_bias is not None:
            message = "not available, must be None: vkops moves data, it does not calculate"
            self._refuse("scale_bias", message, "IDENT-02")

    def _regions(self) -> list[list[Region]]:
        return [[copy(self.input_tensor.view, self.output_tensor.view)]]
