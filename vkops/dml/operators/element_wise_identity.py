"""ELEMENT_WISE_IDENTITY: a copy, from one layout to another."""

from __future__ import annotations

from collections.abc import Sequence

from vkops.dml import fields
from vkops.dml.fields import ScaleBias
from vkops.dml.operator_bases import UnaryOperatorDesc
from vkops.dml.operator_desc import Size
from vkops.plan import Read, Region, View


@fields.descriptor
class ElementWiseIdentityOperatorDesc(UnaryOperatorDesc):
    """Copies a tensor; with other strides this transposes, broadcasts or changes the layout.

    Attributes:
        input_tensor: the tensor to copy; a stride of 0 repeats elements.
        output_tensor: the result, of the same sizes.
        scale_bias: must be None: vkops only moves data (IDENT-02).

    >>> from vkops.dml import BufferTensorDesc, TensorDataType
    >>> rows = BufferTensorDesc(TensorDataType.INT32, [2, 3])
    >>> columns = BufferTensorDesc(TensorDataType.INT32, [2, 3], strides=[1, 2])
    >>> ElementWiseIdentityOperatorDesc(rows, columns).validate()
    """

    same_data_type = same_dimension_count = "IDENT-01"
    supports_in_place = True  # IDENT-04

    scale_bias: ScaleBias | None = fields.attribute(fields.SCALE_BIAS, "IDENT-02", default=None)

    def _infer(self) -> Sequence[Sequence[Size]]:
        if self.scale_bias is not None:
            message = "must be None: DirectML multiplies and adds, but vkops only moves data"
            self._refuse("scale_bias", message, "IDENT-02")
        return [self._sizes_of_input("IDENT-01")]

    def _copies(self, source: Read, target: View) -> list[Region]:
        return [Region(target, source)]
