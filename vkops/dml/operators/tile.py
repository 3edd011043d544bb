"""TILE: a tensor repeated along each axis."""

from __future__ import annotations

from collections.abc import Sequence

from vkops.dml import fields
from vkops.dml.operator_bases import UnaryOperatorDesc
from vkops.dml.operator_desc import Size
from vkops.plan import Read, Region, View
from vkops.plan.movements import tile, tile_sizes


@fields.descriptor
class TileOperatorDesc(UnaryOperatorDesc):
    """Repeats a tensor along each dimension, as a whole.

    Attributes:
        input_tensor: the tensor to repeat.
        output_tensor: the result; its sizes are those of the input times ``repeats``.
        repeats: how often to repeat the tensor, per dimension, at least 1.

    >>> from vkops.dml import BufferTensorDesc, TensorDataType
    >>> source, target = (BufferTensorDesc(TensorDataType.INT32, [2, n]) for n in (3, 9))
    >>> TileOperatorDesc(source, target, repeats=[1, 3]).validate()
    """

    same_data_type = same_dimension_count = "TILE-01"

    repeats: Sequence[int] = fields.attribute(fields.UINTS, "TILE-02", count="RepeatsCount")

    def _infer(self) -> Sequence[Sequence[Size]]:
        for i, count in enumerate(self.repeats):
            self._check_positive(f"repeats[{i}]", count, "TILE-02")
        sizes = tile_sizes(self.input_tensor.sizes, tuple(self.repeats))
        return [Size.each(sizes, "input_tensor.sizes[{0}] * repeats[{0}]", "TILE-03")]

    def _copies(self, source: Read, target: View) -> list[Region]:
        return [tile(source, target, tuple(self.repeats))]
