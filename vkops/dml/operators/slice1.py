"""SLICE1: a window of a tensor, read forwards or backwards."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from vkops.dml import fields
from vkops.dml.enums import FeatureLevel
from vkops.dml.operator_desc import OperatorDesc, Size
from vkops.dml.tensor_desc import BufferTensorDesc
from vkops.errors import show
from vkops.plan import Read, Region
from vkops.plan.movements import window


@dataclass(frozen=True)
class Slice1OperatorDesc(OperatorDesc):
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
        dimensions = zip(
            self.input_window_offsets,
            self.input_window_sizes,
            self.input_window_strides,
            self.input_tensor.sizes,
            self.output_tensor.sizes,
            strict=True,
        )
        for i, (offset, length, stride, available, size) in enumerate(dimensions):
            field = f"input_window_sizes[{i}]"
            self._check_positive(field, length, "SLICE1-02")
            if offset + length > available:
                message = (
                    f"the window ends at {show(offset + length)} (offset + size), "
                    f"must be at most input_tensor.sizes[{i}] = {available}"
                )
                self._refuse(field, message, "SLICE1-02")
            if stride == 0:
                self._refuse(f"input_window_strides[{i}]", "got 0, must not be 0", "SLICE1-03")
            most = elements_in_window(length, stride)
            if size > most:
                message = (
                    f"got {size}, must be at most {most} "
                    "(1 + (window size - 1) div the stride's magnitude)"
                )
                self._refuse(f"output_tensor.sizes[{i}]", message, "SLICE1-04")
        sizes = self.output_tensor.sizes
        return [[Size(n, f"output_tensor.sizes[{i}]", "SLICE1-04") for i, n in enumerate(sizes)]]

    def _regions(self) -> Sequence[Sequence[Region]]:
        windows = zip(
            self.input_window_offsets,
            self.input_window_sizes,
            self.input_window_strides,
            strict=True,
        )
        starts = tuple(
            offset if stride > 0 else offset + size - 1 for offset, size, stride in windows
        )
        source, target = Read(0, self.input_tensor.view), self.output_tensor.view
        return [[window(source, target, starts, tuple(self.input_window_strides))]]


def elements_in_window(length: int, stride: int) -> int:
    """How many elements of a window of some length are ``stride`` apart.

    >>> elements_in_window(9, -2)
    5
    """
    return 1 + (length - 1) // abs(stride)
