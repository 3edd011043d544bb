"""RESAMPLE2: RESAMPLE1 with a direction of rounding."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from vkops.dml import fields
from vkops.dml.enums import AxisDirection, InterpolationMode
from vkops.dml.resampling import ResamplingDesc
from vkops.dml.tensor_desc import BufferTensorDesc


@dataclass(frozen=True)
class Resample2OperatorDesc(ResamplingDesc):
    """Scales a tensor along each dimension, and rounds coordinates up or down.

    Index ``i`` of the output copies the index of the input that is not below (INCREASING), or not
    above (DECREASING) ``(i - output_pixel_offset) / scale - input_pixel_offset``.

    Source: DML_RESAMPLE2_OPERATOR_DESC.

    Attributes:
        input_tensor: what to resample.
        output_tensor: what to make, of any sizes.
        interpolation_mode: must be NEAREST_NEIGHBOR: vkops moves data, it does not calculate.
        rounding_direction: INCREASING copies the next index, DECREASING the one before.
        scales: size of the output divided by that of the input, per dimension, above 0.
        input_pixel_offsets: position of a pixel's centre in the input, per dimension.
        output_pixel_offsets: the negative position of a pixel's centre in the output, per
            dimension.

    Raises:
        InvalidDescTypeError: a field is of the wrong kind; ``validate`` checks the values.

    >>> from vkops.dml import AxisDirection, BufferTensorDesc, InterpolationMode, TensorDataType
    >>> source, target = (BufferTensorDesc(TensorDataType.FLOAT32, [n]) for n in (2, 6))
    >>> mode, down = InterpolationMode.NEAREST_NEIGHBOR, AxisDirection.DECREASING
    >>> desc = Resample2OperatorDesc(source, target, mode, down, [3], [0], [0])
    >>> desc.lower().outputs[0].regions[0].sizes
    (2, 3)
    """

    operator = "RESAMPLE2"

    input_tensor: BufferTensorDesc = field(metadata=fields.tensor("input"))
    output_tensor: BufferTensorDesc = field(metadata=fields.tensor("output"))
    interpolation_mode: InterpolationMode = field(
        metadata=fields.enumeration(InterpolationMode, "RES-14")
    )
    rounding_direction: AxisDirection = field(metadata=fields.enumeration(AxisDirection, "RES-06"))
    scales: Sequence[float] = field(metadata=fields.per_dimension("float_array", "RES-03"))
    input_pixel_offsets: Sequence[float] = field(
        metadata=fields.per_dimension("float_array", "RES-04")
    )
    output_pixel_offsets: Sequence[float] = field(
        metadata=fields.per_dimension("float_array", "RES-04")
    )
