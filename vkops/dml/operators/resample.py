"""RESAMPLE: a tensor scaled along each dimension."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from vkops.dml import fields
from vkops.dml.enums import InterpolationMode
from vkops.dml.resampling import ResamplingDesc
from vkops.dml.tensor_desc import BufferTensorDesc


@dataclass(frozen=True)
class ResampleOperatorDesc(ResamplingDesc):
    """Scales a tensor along each dimension; centres of pixels lie halfway between indices.

    Index ``i`` of the output copies index ``floor((i + 0.5) / scale)`` of the input. Indices beyond
    the ends of the input copy the last element before them.

    Source: DML_RESAMPLE_OPERATOR_DESC.

    Attributes:
        input_tensor: what to resample.
        output_tensor: what to make, of any sizes.
        interpolation_mode: must be NEAREST_NEIGHBOR: vkops moves data, it does not calculate.
        scales: size of the output divided by that of the input, per dimension, above 0.

    Raises:
        InvalidDescTypeError: a field is of the wrong kind; ``validate`` checks the values.

    >>> from vkops.dml import BufferTensorDesc, InterpolationMode, TensorDataType
    >>> source, target = (BufferTensorDesc(TensorDataType.FLOAT32, [n]) for n in (2, 6))
    >>> mode = InterpolationMode.NEAREST_NEIGHBOR
    >>> desc = ResampleOperatorDesc(source, target, mode, scales=[3])
    >>> desc.lower().outputs[0].regions[0].sizes
    (2, 3)
    """

    operator = "RESAMPLE"

    input_tensor: BufferTensorDesc = field(metadata=fields.tensor("input"))
    output_tensor: BufferTensorDesc = field(metadata=fields.tensor("output"))
    interpolation_mode: InterpolationMode = field(
        metadata=fields.enumeration(InterpolationMode, "RES-14")
    )
    scales: Sequence[float] = field(
        metadata=fields.attribute("float_array", "RES-03", "ScaleCount")
    )
