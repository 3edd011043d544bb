"""RESAMPLE1: RESAMPLE with offsets of the pixels' centres."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from vkops.dml import fields
from vkops.dml.enums import InterpolationMode
from vkops.dml.resampling import ResamplingDesc
from vkops.dml.tensor_desc import BufferTensorDesc


@dataclass(frozen=True)
class Resample1OperatorDesc(ResamplingDesc):
    """Scales a tensor along each dimension, with offsets of the pixels' centres.

    Index ``i`` of the output copies the index of the input that is nearest to
    ``(i - output_pixel_offset) / scale - input_pixel_offset``, of two the higher.

    Source: DML_RESAMPLE1_OPERATOR_DESC.

    Attributes:
        input_tensor: what to resample.
        output_tensor: what to make, of any sizes.
        interpolation_mode: must be NEAREST_NEIGHBOR: vkops moves data, it does not calculate.
        scales: size of the output divided by that of the input, per dimension, above 0.
        input_pixel_offsets: position of a pixel's centre in the input, per dimension.
        output_pixel_offsets: the negative position of a pixel's centre in the output, per
            dimension.

    Raises:
        InvalidDescTypeError: a field is of the wrong kind; ``validate`` checks the values.

    >>> from vkops.dml import BufferTensorDesc, InterpolationMode, TensorDataType
    >>> source, target = (BufferTensorDesc(TensorDataType.FLOAT32, [n]) for n in (2, 6))
    >>> mode = InterpolationMode.NEAREST_NEIGHBOR
    >>> desc = Resample1OperatorDesc(source, target, mode, [3], [0.5], [-0.5])
    >>> desc.lower().outputs[0].regions[0].sizes
    (2, 3)
    """

    operator = "RESAMPLE1"

    input_tensor: BufferTensorDesc = field(metadata=fields.tensor("input"))
    output_tensor: BufferTensorDesc = field(metadata=fields.tensor("output"))
    interpolation_mode: InterpolationMode = field(
        metadata=fields.enumeration(InterpolationMode, "RES-14")
    )
    scales: Sequence[float] = field(metadata=fields.per_dimension("float_array", "RES-03"))
    input_pixel_offsets: Sequence[float] = field(
        metadata=fields.per_dimension("float_array", "RES-04")
    )
    output_pixel_offsets: Sequence[float] = field(
        metadata=fields.per_dimension("float_array", "RES-04")
    )
