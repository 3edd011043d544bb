"""TILE: a tensor repeated along each axis."""

from __future__ import annotations

from collections.abc import Sequence

from vkops.dml import fields
from vkops.dml.operator_desc import OperatorDesc, Size
from vkops.dml.tensor_desc import BufferTensorDesc
from vkops.plan import Read, Region
from vkops.plan.movements import tile, tile_sizes


@fields.descriptor
class TileOperatorDesc(OperatorDesc):
    """Repeats a tensor along each dimension, as a whole.

    Attributes:
        input_tensor: what to repeat.
        output_tensor: what to make; its sizes are those of the input times ``repeats``.
        repeats: how often to repeat the tensor, per dimension, at least 1.

    >>> from vkops.dml import BufferTensorDesc, TensorDataType
    >>> source, target = (BufferTensorDesc(TensorDataType.INT32, [2, n]) for n in (3, 9))
    >>> TileOperatorDesc(source, target, repeats=[1, 3]).validate()
    """

    same_data_type = same_dimension_count = "TILE-01"

    input_tensor: BufferTensorDesc = fields.tensor("input")
    output_tensor: BufferTensorDesc = fields.tensor("output")
    repeats: Sequence[int] = fields.attribute(fields.UINTS, "TILE-02", count="RepeatsCount")

    def _infer(self) -> Sequence[Sequence[Size]]:
        self._check_lengths("TILE-01")
        for i, count in enumerate(self.repeats):
            self._check_positive(f"repeats[{i}]", count, "TILE-02")
        sizes = tile_sizes(self.input_tensor.sizes, tuple(self.repeats))
        return [Size.each(sizes, "input_tensor.sizes[{0}] * repeats[{0}]", "TILE-03")]

    def _regions(self) -> Sequence[Sequence[Region]]:
        source, target = Read(0, self.input_tensor.view), self.output_tensor.view
        return [[tile(source, target, tuple(self.repeats))]]
