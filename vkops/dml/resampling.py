"""Bases of the operators that resample: UPSAMPLE_2D, and RESAMPLE in its versions."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from math import isfinite, prod
from typing import Any

import numpy as np
import numpy.typing as npt

from vkops.dml.enums import AxisDirection, FeatureLevel, InterpolationMode
from vkops.dml.operator_desc import OperatorDesc, Size
from vkops.dml.tensor_desc import BufferTensorDesc
from vkops.errors import show
from vkops.plan import Read, Region
from vkops.plan.movements import Run, choose
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

    same_data_type = "RES-01"
    same_dimension_count = "RES-01"

    # Older versions do not have the fields below with a value here.
    scales: Sequence[float]
    input_pixel_offsets: Sequence[float] | None = None  # 0.5 for each dimension
    output_pixel_offsets: Sequence[float] | None = None  # -0.5 for each dimension
    rounding_direction: AxisDirection | None = None  # to the nearest, halves up

    def _infer(self, level: FeatureLevel) -> Sequence[Sequence[Size]]:
        self._check_interpolation_mode("RES-14")
        self._check_lengths("RES-01")
        for field in self.FIELDS:
            if field.kind == "float_array":
                for i, value in enumerate(getattr(self, field.name)):
                    if not isfinite(value):
                        message = f"got {show(value)}, must be finite"
                        self._refuse(f"{field.name}[{i}]", message, field.rule)
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
