"""RESAMPLE in its four versions: a tensor scaled along each dimension."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from math import isfinite, prod
from typing import Any

import numpy as np
import numpy.typing as npt

from vkops.dml import fields
from vkops.dml.enums import AxisDirection, FeatureLevel, InterpolationMode
from vkops.dml.operator_desc import OperatorDesc, Size
from vkops.dml.tensor_desc import BufferTensorDesc
from vkops.errors import show
from vkops.plan import Read, Region
from vkops.plan.index_runs import Run, choose
from vkops.plan.resampling import MAX_RESAMPLED_SIZE, resampled_runs
from vkops.plan.size_limits import MAX_PIECES, LimitError

Floats = npt.NDArray[np.float32]


class NearestNeighborDesc(OperatorDesc):
    """Base of operators that copy to each element of the output the nearest one of the input."""

    input_tensor: BufferTensorDesc
    output_tensor: BufferTensorDesc
    interpolation_mode: InterpolationMode

    def _check_interpolation_mode(self, rule: str) -> None:
        mode = self.interpolation_mode
        if mode is not InterpolationMode.NEAREST_NEIGHBOR:
            message = (
                f"got {mode.name}, which calculates: vkops moves data; must be NEAREST_NEIGHBOR"
            )
            self._refuse("interpolation_mode", message, rule)

    @property
    @abstractmethod
    def _runs(self) -> Sequence[Sequence[Run]]:
        """The indices of the input that each dimension of the output copies."""

    def _regions(self) -> Sequence[Sequence[Region]]:
        source, target = Read(0, self.input_tensor.view), self.output_tensor.view
        return [[*choose(source, target, self._runs)]]


class ResamplingDesc(NearestNeighborDesc):
    """Base of RESAMPLE, RESAMPLE1, RESAMPLE2 and RESAMPLE3."""

    same_data_type = same_dimension_count = "RES-01"

    # Older versions do not have the fields below with a value here.
    scales: Sequence[float]
    input_pixel_offsets: Sequence[float] | None = None  # 0.5 for each dimension
    output_pixel_offsets: Sequence[float] | None = None  # -0.5 for each dimension
    rounding_direction: AxisDirection | None = None  # to the nearest, halves up

    def _infer(self, level: FeatureLevel) -> Sequence[Sequence[Size]]:
        self._check_interpolation_mode("RES-14")
        self._check_lengths("RES-01")
        for declared in self.FIELDS:
            if declared.kind == "float_array":
                for i, value in enumerate(getattr(self, declared.name)):
                    if not isfinite(value):
                        message = f"got {show(value)}, must be finite"
                        self._refuse(f"{declared.name}[{i}]", message, declared.rule)
        for i, scale in enumerate(self.scales):
            if scale <= 0:
                self._refuse(f"scales[{i}]", f"got {show(scale)}, must be above 0", "RES-03")
        count = prod(map(len, self._runs))
        if count > MAX_PIECES:
            message = f"makes {count} regions, must be {MAX_PIECES} at most"
            self._refuse("output_tensor.sizes", message, "RES-15")
        return [self._sizes_of("output_tensor", "RES-01")]

    @cached_property
    def _runs(self) -> Sequence[Sequence[Run]]:
        rank = self.input_tensor.dimension_count
        runs: list[list[Run]] = []
        axes = zip(
            self.input_tensor.sizes,
            self.output_tensor.sizes,
            self.scales,
            self.input_pixel_offsets or (0.5,) * rank,
            self.output_pixel_offsets or (-0.5,) * rank,
            strict=True,
        )
        for i, axis in enumerate(axes):
            try:
                runs.append(_nearest(*axis, _ROUND[self.rounding_direction]))
            except LimitError as error:
                self._refuse(f"output_tensor.sizes[{i}]", str(error), "RES-15")
        return runs


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


_ROUND: Mapping[AxisDirection | None, Callable[[Floats], Floats]] = {
    None: lambda x: np.floor(x + np.float32(0.5)),
    AxisDirection.INCREASING: np.ceil,
    AxisDirection.DECREASING: np.floor,
}


def _nearest(
    size: int,
    count: int,
    scale: float,
    input_offset: float,
    output_offset: float,
    rounded: Callable[[Floats], Floats],
) -> list[Run]:
    """The indices of an axis of ``size`` elements that ``count`` indices of the output copy."""
    if scale == 1 and input_offset == -output_offset:
        repeated = [Run(size, count - size, size - 1, 0)] if count > size else []
        return [Run(0, min(size, count), 0, 1), *repeated]
    if count > MAX_RESAMPLED_SIZE:
        raise LimitError(f"got {count}, must be {MAX_RESAMPLED_SIZE} at most where it is resampled")
    indices: npt.NDArray[Any] = np.arange(count, dtype=np.float32)
    with np.errstate(over="ignore"):
        x = (indices - np.float32(output_offset)) / np.float32(scale) - np.float32(input_offset)
    # As 64-bit floats, because 32 bits do not hold every size.
    clamped = np.clip(rounded(x).astype(np.float64), 0, size - 1)
    return resampled_runs(clamped.astype(np.int64))
