"""UPSAMPLE_2D: each element repeated along height and width."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from vkops.dml import fields
from vkops.dml.enums import FeatureLevel, InterpolationMode
from vkops.dml.operator_desc import Size
from vkops.dml.operators.resample import NearestNeighborDesc
from vkops.dml.structs import Size2D
from vkops.dml.tensor_desc import BufferTensorDesc
from vkops.plan.index_runs import Run
from vkops.plan.movements import tile_sizes
from vkops.plan.resampling import repeated_run
from vkops.plan.view import Ints


@dataclass(frozen=True)
class Upsample2dOperatorDesc(NearestNeighborDesc):
    """Repeats each element along the last two dimensions, as ``scale_size`` says.

    Source: DML_UPSAMPLE_2D_OPERATOR_DESC.

    Attributes:
        input_tensor: what to scale, of 4 or 5 dimensions: batch, channels, (depth,) height, width.
        output_tensor: what to make; its height and width are those of the input times
            ``scale_size``.
        scale_size: how often to repeat each element along width and height, at least once.
        interpolation_mode: must be NEAREST_NEIGHBOR: vkops moves data, it does not calculate.

    Raises:
        InvalidDescTypeError: a field is of the wrong kind; ``validate`` checks the values.

    >>> from vkops.dml import BufferTensorDesc, InterpolationMode, Size2D, TensorDataType
    >>> source, target = (
    ...     BufferTensorDesc(TensorDataType.FLOAT32, [1, 1, *sizes]) for sizes in ((2, 3), (4, 9))
    ... )
    >>> mode = InterpolationMode.NEAREST_NEIGHBOR
    >>> Upsample2dOperatorDesc(source, target, Size2D(width=3, height=2), mode).validate()
    """

    operator = "UPSAMPLE_2D"
    same_data_type = same_dimension_count = "UPS-01"

    input_tensor: BufferTensorDesc = field(metadata=fields.tensor("input"))
    output_tensor: BufferTensorDesc = field(metadata=fields.tensor("output"))
    scale_size: Size2D = field(metadata=fields.attribute("size_2d", "UPS-02"))
    interpolation_mode: InterpolationMode = field(
        metadata=fields.enumeration(InterpolationMode, "UPS-04")
    )

    def _infer(self, level: FeatureLevel) -> Sequence[Sequence[Size]]:
        self._check_interpolation_mode("UPS-04")
        for name in ("height", "width"):
            self._check_positive(f"scale_size.{name}", getattr(self.scale_size, name), "UPS-02")
        sizes = tile_sizes(self.input_tensor.sizes, self._factors)
        factors = (*("",) * (len(sizes) - 2), " * scale_size.height", " * scale_size.width")
        return [self._scaled_sizes(sizes, factors, "UPS-01")]

    @property
    def _runs(self) -> Sequence[Sequence[Run]]:
        sizes = self.input_tensor.sizes
        return [[repeated_run(*axis)] for axis in zip(sizes, self._factors, strict=True)]

    @property
    def _factors(self) -> Ints:
        """How often to repeat each element along each dimension."""
        ones = (1,) * (self.input_tensor.dimension_count - 2)
        return (*ones, self.scale_size.height, self.scale_size.width)
