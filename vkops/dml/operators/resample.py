"""RESAMPLE in its four versions, and UPSAMPLE_2D: tensors scaled by copying nearest elements."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Sequence
from math import frexp, inf, prod

import numpy as np
import numpy.typing as npt

from vkops.dml import fields
from vkops.dml.enums import AxisDirection, InterpolationMode
from vkops.dml.fields import Size2D
from vkops.dml.operator_bases import UnaryOperatorDesc
from vkops.dml.operator_desc import Size
from vkops.errors import show
from vkops.plan import Read, Region, View
from vkops.plan.index_runs import IndexRun, choose
from vkops.plan.movements import tile_sizes
from vkops.plan.resampling import MAX_RESAMPLED_SIZE, repeated_run, resampled_runs
from vkops.plan.size_limits import MAX_PIECES, LimitError
from vkops.plan.view import Ints
from vkops.system.threads import cached_property

_Floats = npt.NDArray[np.float32]

_MIN_SCALE = 2.0**-23


class _NearestNeighborDesc(UnaryOperatorDesc):
    """Base of operators that copy to each element of the output the nearest one of the input.

    Attributes:
        interpolation_mode: must be NEAREST_NEIGHBOR: vkops only moves data.
    """

    interpolation_mode: InterpolationMode

    def _check_interpolation_mode(self, rule: str) -> None:
        mode = self.interpolation_mode
        if mode is not InterpolationMode.NEAREST_NEIGHBOR:
            message = f"got {mode.name}, which DirectML has; must be NEAREST_NEIGHBOR, because "
            message += "vkops only moves data"
            self._refuse("interpolation_mode", message, rule)

    @property
    @abstractmethod
    def _runs(self) -> Sequence[Sequence[IndexRun]]:
        """The indices of the input that the output copies, as runs for each dimension."""

    def _copies(self, source: Read, target: View) -> Iterable[Region]:
        return choose(source, target, self._runs)


class _ResamplingDesc(_NearestNeighborDesc):
    """Base of RESAMPLE, RESAMPLE1, RESAMPLE2 and RESAMPLE3.

    Attributes:
        input_tensor: the tensor to resample.
        output_tensor: the result, of any sizes.
        scales: size of the output divided by that of the input, per dimension, at least 2**-23;
            infinity copies one element.
        input_pixel_offsets: position of a pixel's centre in the input, per dimension; coordinates
            that are not numbers copy the first element.
        output_pixel_offsets: the negative position of a pixel's centre in the output, per
            dimension.
    """

    same_data_type = same_dimension_count = "RES-01"

    # Older versions do not have the fields below with a value here.
    scales: Sequence[float]
    input_pixel_offsets: Sequence[float] | None = None  # 0.5 for each dimension
    output_pixel_offsets: Sequence[float] | None = None  # -0.5 for each dimension
    rounding_direction: AxisDirection | None = None  # to the nearest, halves up

    def _infer(self) -> Sequence[Sequence[Size]]:
        self._check_interpolation_mode("RES-14")
        for i, scale in enumerate(self.scales):
            if not scale >= _MIN_SCALE:  # as NaN is not
                message = f"got {show(scale)}, must be at least 2**-23 = {_MIN_SCALE}"
                self._refuse(f"scales[{i}]", message, "RES-03")
        count = prod(map(len, self._runs))
        if count > MAX_PIECES:
            message = f"makes {count} regions, must be {MAX_PIECES} at most"
            self._refuse_by_bound("output_tensor.sizes", message, "RES-15")
        return [self._sizes_of("output_tensor", "RES-01")]

    @cached_property
    def _runs(self) -> Sequence[Sequence[IndexRun]]:
        rank = self.input_tensor.dimension_count
        runs: list[list[IndexRun]] = []
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
                runs.append(_nearest(*axis, self.rounding_direction))
            except LimitError as error:
                self._refuse_by_bound(f"output_tensor.sizes[{i}]", str(error), "RES-15")
        return runs


@fields.descriptor
class ResampleOperatorDesc(_ResamplingDesc):
    """Scales a tensor along each dimension; centres of pixels lie halfway between indices.

    Index ``i`` of the output copies index ``floor((i + 0.5) / scale)`` of the input. Indices beyond
    the ends of the input copy the last element before them. Coordinates are FLOAT32.

    >>> from vkops.dml import BufferTensorDesc, InterpolationMode, TensorDataType
    >>> source, target = (BufferTensorDesc(TensorDataType.FLOAT32, [n]) for n in (2, 6))
    >>> mode = InterpolationMode.NEAREST_NEIGHBOR
    >>> desc = ResampleOperatorDesc(source, target, mode, scales=[3])
    >>> desc.lower().outputs[0].regions[0].sizes
    (2, 3)
    """

    interpolation_mode: InterpolationMode = fields.enumeration(InterpolationMode, "RES-14")
    scales: Sequence[float] = fields.attribute(fields.FLOATS, "RES-03", "ScaleCount")


@fields.descriptor
class Resample1OperatorDesc(_ResamplingDesc):
    """Scales a tensor along each dimension, with offsets of the pixels' centres.

    Index ``i`` of the output copies the index of the input that is nearest to
    ``(i - output_pixel_offset) / scale - input_pixel_offset``, of two the higher.

    >>> from vkops.dml import BufferTensorDesc, InterpolationMode, TensorDataType
    >>> source, target = (BufferTensorDesc(TensorDataType.FLOAT32, [n]) for n in (2, 6))
    >>> mode = InterpolationMode.NEAREST_NEIGHBOR
    >>> desc = Resample1OperatorDesc(source, target, mode, [3], [0.5], [-0.5])
    >>> desc.lower().outputs[0].regions[0].sizes
    (2, 3)
    """

    interpolation_mode: InterpolationMode = fields.enumeration(InterpolationMode, "RES-14")
    scales: Sequence[float] = fields.attribute(fields.FLOATS, "RES-03")
    input_pixel_offsets: Sequence[float] = fields.attribute(fields.FLOATS, "RES-04")
    output_pixel_offsets: Sequence[float] = fields.attribute(fields.FLOATS, "RES-04")


@fields.descriptor
class Resample2OperatorDesc(_ResamplingDesc):
    """Scales a tensor along each dimension, and rounds coordinates up or down.

    Index ``i`` of the output copies the index of the input that is not below (INCREASING), or not
    above (DECREASING) ``(i - output_pixel_offset) / scale - input_pixel_offset``.

    Attributes:
        rounding_direction: INCREASING copies the next index, DECREASING the one before.

    >>> from vkops.dml import AxisDirection, BufferTensorDesc, InterpolationMode, TensorDataType
    >>> source, target = (BufferTensorDesc(TensorDataType.FLOAT32, [n]) for n in (2, 6))
    >>> mode, down = InterpolationMode.NEAREST_NEIGHBOR, AxisDirection.DECREASING
    >>> desc = Resample2OperatorDesc(source, target, mode, down, [3], [0], [0])
    >>> desc.lower().outputs[0].regions[0].sizes
    (2, 3)
    """

    interpolation_mode: InterpolationMode = fields.enumeration(InterpolationMode, "RES-14")
    rounding_direction: AxisDirection = fields.enumeration(AxisDirection, "RES-06")
    scales: Sequence[float] = fields.attribute(fields.FLOATS, "RES-03")
    input_pixel_offsets: Sequence[float] = fields.attribute(fields.FLOATS, "RES-04")
    output_pixel_offsets: Sequence[float] = fields.attribute(fields.FLOATS, "RES-04")


@fields.descriptor
class Resample3OperatorDesc(Resample2OperatorDesc):
    """Scales a tensor along each dimension, as RESAMPLE2 does.

    Index ``i`` of the output copies the index of the input that is not below (INCREASING), or not
    above (DECREASING) ``(i - output_pixel_offset) / scale - input_pixel_offset``.

    Attributes:
        antialiased: has an effect with LINEAR only.

    >>> from vkops.dml import AxisDirection, BufferTensorDesc, InterpolationMode, TensorDataType
    >>> source, target = (BufferTensorDesc(TensorDataType.FLOAT32, [n]) for n in (2, 6))
    >>> mode, down = InterpolationMode.NEAREST_NEIGHBOR, AxisDirection.DECREASING
    >>> desc = Resample3OperatorDesc(source, target, mode, down, [3], [0], [0], antialiased=False)
    >>> desc.lower().outputs[0].regions[0].sizes
    (2, 3)
    """

    antialiased: bool = fields.attribute(fields.BOOL, "RES-09")


@fields.descriptor
class Upsample2dOperatorDesc(_NearestNeighborDesc):
    """Repeats each element along the last two dimensions, as ``scale_size`` says.

    Attributes:
        input_tensor: what to scale, of 4 or 5 dimensions: batch, channels, (depth,) height, width.
        output_tensor: the result; its height and width are those of the input times
            ``scale_size``.
        scale_size: how often to repeat each element along width and height, at least once.

    >>> from vkops.dml import BufferTensorDesc, InterpolationMode, Size2D, TensorDataType
    >>> source, target = (
    ...     BufferTensorDesc(TensorDataType.FLOAT32, [1, 1, *sizes]) for sizes in ((2, 3), (4, 9))
    ... )
    >>> mode = InterpolationMode.NEAREST_NEIGHBOR
    >>> Upsample2dOperatorDesc(source, target, Size2D(width=3, height=2), mode).validate()
    """

    same_data_type = same_dimension_count = "UPS-01"

    scale_size: Size2D = fields.attribute(fields.SIZE_2D, "UPS-02")
    interpolation_mode: InterpolationMode = fields.enumeration(InterpolationMode, "UPS-04")

    def _infer(self) -> Sequence[Sequence[Size]]:
        self._check_interpolation_mode("UPS-04")
        for name in ("height", "width"):
            self._check_positive(f"scale_size.{name}", getattr(self.scale_size, name), "UPS-02")
        sizes = tile_sizes(self.input_tensor.sizes, self._factors)
        factors = (*("",) * (len(sizes) - 2), " * scale_size.height", " * scale_size.width")
        return [self._scaled_sizes(sizes, factors, "UPS-01")]

    @property
    def _runs(self) -> Sequence[Sequence[IndexRun]]:
        sizes = self.input_tensor.sizes
        return [[repeated_run(*axis)] for axis in zip(sizes, self._factors, strict=True)]

    @property
    def _factors(self) -> Ints:
        """The number of copies of each element along each dimension."""
        ones = (1,) * (self.input_tensor.dimension_count - 2)
        return (*ones, self.scale_size.height, self.scale_size.width)


def _nearest(
    size: int,
    count: int,
    scale: float,
    input_offset: float,
    output_offset: float,
    direction: AxisDirection | None,
) -> list[IndexRun]:
    """Return, for ``count`` indices of the output, the indices of the input that they copy."""
    if scale == 1 and input_offset == -output_offset and (2 * input_offset).is_integer():
        repeated = [IndexRun(size, count - size, size - 1, 0)] if count > size else []
        return [IndexRun(0, min(size, count), 0, 1), *repeated]
    if count > MAX_RESAMPLED_SIZE:
        raise LimitError(f"got {count}, must be {MAX_RESAMPLED_SIZE} at most where it is resampled")
    with np.errstate(all="ignore"):
        chosen = _coordinates(count, scale, input_offset, output_offset, direction)
    # As 64-bit floats, because 32 bits do not hold every size.
    limited = np.fmin(np.fmax(chosen.astype(np.float64), 0), size - 1)  # 0 instead of NaN
    return resampled_runs(limited.astype(np.int64))


def _coordinates(
    count: int,
    scale: float,
    input_offset: float,
    output_offset: float,
    direction: AxisDirection | None,
) -> _Floats:
    """Return the rounded coordinates of ``count`` indices, by the same operations as in DirectML.

    DirectML 1.15.4 computes with FLOAT32, and rounds after each operation. If coordinates are
    rounded up and the reciprocal of the scale is not exact, it moves reciprocal and offset to their
    neighbours, so that a coordinate that should be an integer is not rounded up to the next.
    """
    reciprocal, offset = np.float32(1) / np.float32(scale), np.float32(input_offset)
    x = np.arange(count, dtype=np.float32) - np.float32(output_offset)
    power_of_two = frexp(scale)[0] == 0.5 or scale == inf
    if direction is AxisDirection.INCREASING and not power_of_two:
        reciprocal = np.nextafter(reciprocal, np.float32(-inf))
        offset = np.nextafter(offset, np.float32(inf))
    x = x * reciprocal - offset
    if direction is None:
        x += np.float32(0.5)
    rounded: _Floats = np.ceil(x) if direction is AxisDirection.INCREASING else np.floor(x)
    return rounded
