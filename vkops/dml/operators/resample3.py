"""RESAMPLE3: RESAMPLE2 with a field for antialiasing."""

from __future__ import annotations

from dataclasses import dataclass, field

from vkops.dml import fields
from vkops.dml.operators.resample2 import Resample2OperatorDesc


@dataclass(frozen=True)
class Resample3OperatorDesc(Resample2OperatorDesc):
    """Scales a tensor along each dimension, as RESAMPLE2 does.

    Index ``i`` of the output copies the index of the input that is not below (INCREASING), or not
    above (DECREASING) ``(i - output_pixel_offset) / scale - input_pixel_offset``.

    Source: DML_RESAMPLE3_OPERATOR_DESC.

    Attributes:
        input_tensor: what to resample.
        output_tensor: what to make, of any sizes.
        interpolation_mode: must be NEAREST_NEIGHBOR: vkops moves data, it does not calculate.
        rounding_direction: INCREASING copies the next index, DECREASING the one before.
        scales: size of the output divided by that of the input, per dimension, above 0.
        input_pixel_offsets: position of a pixel's centre in the input, per dimension.
        output_pixel_offsets: the negative position of a pixel's centre in the output, per
            dimension.
        antialiased: has an effect with LINEAR only.

    Raises:
        InvalidDescTypeError: a field is of the wrong kind; ``validate`` checks the values.

    >>> from vkops.dml import AxisDirection, BufferTensorDesc, InterpolationMode, TensorDataType
    >>> source, target = (BufferTensorDesc(TensorDataType.FLOAT32, [n]) for n in (2, 6))
    >>> mode, down = InterpolationMode.NEAREST_NEIGHBOR, AxisDirection.DECREASING
    >>> desc = Resample3OperatorDesc(source, target, mode, down, [3], [0], [0], antialiased=False)
    >>> desc.lower().outputs[0].regions[0].sizes
    (2, 3)
    """

    operator = "RESAMPLE3"

    antialiased: bool = field(metadata=fields.attribute("bool", "RES-09"))
