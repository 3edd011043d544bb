"""SLICE1: a window of a tensor, read forwards or backwards."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from vkops.dml import fields
from vkops.dml.enums import FeatureLevel
from vkops.dml.operator_desc import Size
from vkops.dml.tensor_desc import BufferTensorDesc
from vkops.dml.windows import WindowOperatorDesc
from vkops.plan import Read, Region
from vkops.plan.movements import window


@dataclass(frozen=True)
class Slice1OperatorDesc(WindowOperatorDesc):
    """Copies elements of a window, ``input_window_strides`` apart; negative ones read backwards.

    Source: DML_SLICE1_OPERATOR_DESC.

    A positive stride starts at the window's first element, a negative one at its last. The output
    may be smaller than what the window holds: fewer elements are taken.

    Attributes:
        input_tensor: what to copy from.
        output_tensor: what to make.
        input_window_offsets: first element of the window, per dimension.
        input_window_sizes: extent of the window, per dimension (SLICE counts copied elements).
        input_window_strides: signed distance between copied elements, per dimension, not 0.

    Raises:
        InvalidDescTypeError: a field is of the wrong kind; ``validate`` checks the values.

    >>> from vkops.dml import BufferTensorDesc, TensorDataType
    >>> tensor = BufferTensorDesc(TensorDataType.INT32, [9])
    >>> reverse = Slice1OperatorDesc(tensor, tensor, [0], [9], [-1])
    >>> reverse.lower().outputs[0].regions[0].source
    Read(input=0, view=View(sizes=(9,), strides=(-1,), offset=8))
    """

    operator = "SLICE1"
    same_data_type = "SLICE1-01"
    same_dimension_count = "SLICE1-01"

    input_tensor: BufferTensorDesc = field(metadata=fields.tensor("input"))
    output_tensor: BufferTensorDesc = field(metadata=fields.tensor("output"))
    input_window_offsets: Sequence[int] = field(
        metadata=fields.per_dimension("uint_array", "SLICE1-02")
    )
    input_window_sizes: Sequence[int] = field(
        metadata=fields.per_dimension("uint_array", "SLICE1-02")
    )
    input_window_strides: Sequence[int] = field(
        metadata=fields.per_dimension("int_array", "SLICE1-03")
    )

    def _infer(self, level: FeatureLevel) -> Sequence[Sequence[Size]]:
        self._check_lengths("SLICE1-01")
        rules = "SLICE1-02", "SLICE1-03", "SLICE1-04"
        self._check_windows("input_tensor", "output_tensor", *rules)
        return [self._sizes_of("output_tensor", "SLICE1-04")]

    def _regions(self) -> Sequence[Sequence[Region]]:
        source, target = Read(0, self.input_tensor.view), self.output_tensor.view
        return [[window(source, target, *self._window)]]
