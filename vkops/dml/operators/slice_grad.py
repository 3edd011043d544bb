"""SLICE_GRAD: the gradient of SLICE1, which puts elements back into a window."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from vkops.dml import fields
from vkops.dml.enums import FeatureLevel
from vkops.dml.operator_desc import Size
from vkops.dml.tensor_desc import BufferTensorDesc
from vkops.dml.windows import WindowOperatorDesc
from vkops.plan import Fill, Read, Region
from vkops.plan.movements import write_window


@dataclass(frozen=True)
class SliceGradOperatorDesc(WindowOperatorDesc):
    """Puts elements where SLICE1 with the same window would take them from, and 0 elsewhere.

    Source: DML_SLICE_GRAD_OPERATOR_DESC.

    Attributes:
        input_gradient_tensor: the elements; of the sizes of SLICE1's output.
        output_gradient_tensor: what to make; of the sizes of SLICE1's input.
        input_window_offsets: first element of the window of the output, per dimension.
        input_window_sizes: extent of the window, per dimension.
        input_window_strides: signed distance between elements in the window, per dimension, not 0.

    Raises:
        InvalidDescTypeError: a field is of the wrong kind; ``validate`` checks the values.

    >>> from vkops.dml import BufferTensorDesc, TensorDataType
    >>> two, five = (BufferTensorDesc(TensorDataType.UINT8, [n]) for n in (2, 5))
    >>> SliceGradOperatorDesc(two, five, [1], [4], [3]).validate()
    """

    operator = "SLICE_GRAD"
    same_data_type = "SGRAD-02"
    same_dimension_count = "SGRAD-02"

    input_gradient_tensor: BufferTensorDesc = field(metadata=fields.tensor("input"))
    output_gradient_tensor: BufferTensorDesc = field(metadata=fields.tensor("output"))
    input_window_offsets: Sequence[int] = field(
        metadata=fields.per_dimension("uint_array", "SGRAD-01")
    )
    input_window_sizes: Sequence[int] = field(
        metadata=fields.per_dimension("uint_array", "SGRAD-01")
    )
    input_window_strides: Sequence[int] = field(
        metadata=fields.per_dimension("int_array", "SGRAD-03")
    )

    def _infer(self, level: FeatureLevel) -> Sequence[Sequence[Size]]:
        self._check_lengths("SGRAD-02")
        rules = "SGRAD-01", "SGRAD-03", "SGRAD-01"
        self._check_windows("output_gradient_tensor", "input_gradient_tensor", *rules)
        return [self._sizes_of("output_gradient_tensor", "SGRAD-01")]

    def _regions(self) -> Sequence[Iterable[Region]]:
        source = Read(0, self.input_gradient_tensor.view)
        target = self.output_gradient_tensor
        zero = Fill(bytes(target.data_type.element_size))
        return [write_window(source, target.view, *self._window, zero)]
