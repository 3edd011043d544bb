"""PADDING and PADDING1: elements around a tensor, constant or copies of its own."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from vkops.dml import fields
from vkops.dml.enums import FeatureLevel, PaddingMode, TensorDataType
from vkops.dml.operator_bases import UnaryOperatorDesc
from vkops.dml.operator_desc import Size
from vkops.errors import FeatureLevelError
from vkops.plan import Fill, Read, Region, View
from vkops.plan.index_runs import pad_count, pad_with_copies
from vkops.plan.movements import pad
from vkops.plan.size_limits import MAX_PIECES

_MODES = {
    PaddingMode.EDGE: "edge",
    PaddingMode.REFLECTION: "reflect",
    PaddingMode.SYMMETRIC: "symmetric",
    PaddingMode.WRAP: "wrap",
}
"""The modes that copy elements of the input, as index_runs.py names them."""

_INTRODUCED = {
    PaddingMode.SYMMETRIC: FeatureLevel.LEVEL_3_0,
    PaddingMode.WRAP: FeatureLevel.LEVEL_6_4,
}
"""The feature levels of the modes that not every level has (PAD-03)."""


class _Padding(UnaryOperatorDesc):
    """The rules and regions of both operators, which differ in the type of the value.

    Attributes:
        input_tensor: the tensor to pad.
        output_tensor: the result; its sizes are those of the input with the paddings added.
        start_padding: number of elements before those of the input, per dimension.
        end_padding: number of elements after them.
    """

    same_data_type = same_dimension_count = "PAD-01"

    padding_mode: PaddingMode
    padding_value: float
    start_padding: Sequence[int]
    end_padding: Sequence[int]

    def _check_level(self, level: FeatureLevel) -> None:
        introduced = _INTRODUCED.get(self.padding_mode, level)
        if level < introduced:
            message = (
                f"got {self.padding_mode.name}, which is not available at feature level {level}; "
                f"allowed from {introduced}"
            )
            raise FeatureLevelError(self.operator, "padding_mode", message, "PAD-03")

    def _infer(self) -> Sequence[Sequence[Size]]:
        starts, ends = tuple(self.start_padding), tuple(self.end_padding)
        sizes = self.input_tensor.sizes
        if self.padding_mode is PaddingMode.CONSTANT:
            self._element("padding_value", self.padding_value)
        else:
            count = pad_count(sizes, starts, ends, _MODES[self.padding_mode])
            if count > MAX_PIECES:
                message = f"makes {count} regions of copies, must be {MAX_PIECES} at most"
                self._refuse_by_bound("padding_mode", message, "PAD-14")
        origin = "start_padding[{0}] + input_tensor.sizes[{0}] + end_padding[{0}]"
        return [Size.each(map(sum, zip(starts, sizes, ends, strict=True)), origin, "PAD-02")]

    def _copies(self, source: Read, target: View) -> Iterable[Region]:
        starts, ends = tuple(self.start_padding), tuple(self.end_padding)
        if self.padding_mode is PaddingMode.CONSTANT:
            value = Fill(self._element("padding_value", self.padding_value))
            return pad(source, target, starts, ends, [(value, value)] * len(starts))
        return pad_with_copies(source, target, starts, ends, _MODES[self.padding_mode])


@fields.descriptor
class PaddingOperatorDesc(_Padding):
    """Puts a tensor into a larger one, and fills the rest as a mode says.

    Attributes:
        padding_mode: CONSTANT writes ``padding_value``; EDGE repeats the first and the last
            element; REFLECTION and SYMMETRIC go through the input backwards and forwards, without
            or with its ends; WRAP repeats it as a whole.
        padding_value: the value of CONSTANT, of 32 bits; converted where the tensors have another
            data type, as ``TensorDataType.convert`` does. The other modes ignore it.

    >>> from vkops.dml import BufferTensorDesc, PaddingMode, TensorDataType
    >>> source, target = (BufferTensorDesc(TensorDataType.INT32, [2, n]) for n in (3, 6))
    >>> PaddingOperatorDesc(source, target, PaddingMode.EDGE, 0, [0, 1], [0, 2]).validate()
    """

    padding_mode: PaddingMode = fields.enumeration(PaddingMode, "PAD-03")
    padding_value: float = fields.attribute(fields.FLOAT, "PAD-04")
    start_padding: Sequence[int] = fields.attribute(fields.UINTS, "PAD-02")
    end_padding: Sequence[int] = fields.attribute(fields.UINTS, "PAD-02")


@fields.descriptor
class Padding1OperatorDesc(_Padding):
    """Puts a tensor into a larger one, as PADDING does; the value has the tensors' data type.

    Attributes:
        padding_mode: what to fill the rest with; see ``PaddingOperatorDesc``.
        padding_value_data_type: the tensors' data type, in every mode.
        padding_value: the value of CONSTANT, which this data type can hold; rounded to the nearest
            value that a floating-point type has. The other modes ignore it.

    >>> from vkops.dml import BufferTensorDesc, PaddingMode, TensorDataType
    >>> source, target = (BufferTensorDesc(TensorDataType.INT64, [n]) for n in (3, 5))
    >>> frame = Padding1OperatorDesc(
    ...     source, target, PaddingMode.CONSTANT, TensorDataType.INT64, -(2**63), [1], [1]
    ... )
    >>> str(frame.minimum_feature_level())
    '5_0'
    """

    padding_mode: PaddingMode = fields.enumeration(PaddingMode, "PAD-03")
    padding_value_data_type: TensorDataType = fields.enumeration(TensorDataType, "PAD-09")
    padding_value: float = fields.scalar("PAD-04", "padding_value_data_type")
    start_padding: Sequence[int] = fields.attribute(fields.UINTS, "PAD-02")
    end_padding: Sequence[int] = fields.attribute(fields.UINTS, "PAD-02")
