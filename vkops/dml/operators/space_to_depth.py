"""SPACE_TO_DEPTH and SPACE_TO_DEPTH1: blocks of height and width moved into the channels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from vkops.dml import fields
from vkops.dml.enums import DepthSpaceOrder, FeatureLevel
from vkops.dml.operator_desc import OperatorDesc, Size
from vkops.dml.tensor_desc import BufferTensorDesc
from vkops.errors import show
from vkops.plan import Read, Region
from vkops.plan.movements import space_to_depth, space_to_depth_sizes


@dataclass(frozen=True)
class SpaceToDepthOperatorDesc(OperatorDesc):
    """Moves square blocks of height and width into channels.

    Channel ``(row * block_size + column) * C + c`` of the output holds the elements of the input's
    channel ``c`` (of ``C``) that stand at ``row`` and ``column`` of each block.

    Source: DML_SPACE_TO_DEPTH_OPERATOR_DESC.

    Attributes:
        input_tensor: the tensor to rearrange: batch, channels, height and width.
        output_tensor: the result; its sizes are ``N``, ``C * block_size**2``, ``H / block_size``
            and ``W / block_size``, where ``N``, ``C``, ``H`` and ``W`` are those of the input.
        block_size: height and width of a block in elements, at least 1; divides ``H`` and ``W``.

    Raises:
        InvalidDescTypeError: a field is of the wrong kind; ``validate`` checks the values.

    >>> from vkops.dml import BufferTensorDesc, TensorDataType
    >>> space = BufferTensorDesc(TensorDataType.FLOAT32, [1, 2, 4, 6])
    >>> depth = BufferTensorDesc(TensorDataType.FLOAT32, [1, 8, 2, 3])
    >>> SpaceToDepthOperatorDesc(space, depth, block_size=2).validate()
    """

    operator = "SPACE_TO_DEPTH"
    same_data_type = "SD-01"
    same_dimension_count = "SD-01"

    input_tensor: BufferTensorDesc = field(metadata=fields.tensor("input"))
    output_tensor: BufferTensorDesc = field(metadata=fields.tensor("output"))
    block_size: int = field(metadata=fields.attribute("uint", "SD-02"))

    @property
    def _order(self) -> str:
        """The order of the channels, as movements.py names it."""
        return "DCR"

    def _infer(self, level: FeatureLevel) -> Sequence[Sequence[Size]]:
        block = self.block_size
        self._check_positive("block_size", block, "SD-02")
        sizes = self.input_tensor.sizes
        for axis in (2, 3):
            if sizes[axis] % block:
                message = f"got {sizes[axis]}, must be a multiple of block_size = {show(block)}"
                self._refuse(f"input_tensor.sizes[{axis}]", message, "SD-04")
        factors = ("", " * block_size**2", " / block_size", " / block_size")
        return [self._scaled_sizes(space_to_depth_sizes(sizes, block), factors, "SD-04")]

    def _regions(self) -> Sequence[Sequence[Region]]:
        source, target = Read(0, self.input_tensor.view), self.output_tensor.view
        return [[space_to_depth(source, target, self.block_size, self._order)]]


@dataclass(frozen=True)
class SpaceToDepth1OperatorDesc(SpaceToDepthOperatorDesc):
    """Moves blocks into channels as SPACE_TO_DEPTH does, with a choice of the channels' order.

    Source: DML_SPACE_TO_DEPTH1_OPERATOR_DESC.

    Attributes:
        input_tensor: the tensor to rearrange: batch, channels, height and width.
        output_tensor: the result, of the sizes that SPACE_TO_DEPTH has.
        block_size: height and width of a block in elements, at least 1.
        order: what the channels of the output are made of. DEPTH_COLUMN_ROW: channel
            ``(row * block_size + column) * C + c``, as in SPACE_TO_DEPTH; COLUMN_ROW_DEPTH: channel
            ``(c * block_size + row) * block_size + column``. ``c`` is a channel of the input,
            which has ``C``, and ``row`` and ``column`` are those of the element in its block.

    Raises:
        InvalidDescTypeError: a field is of the wrong kind; ``validate`` checks the values.

    >>> from vkops.dml import BufferTensorDesc, DepthSpaceOrder, TensorDataType
    >>> depth = BufferTensorDesc(TensorDataType.FLOAT32, [1, 8, 2, 3])
    >>> space = BufferTensorDesc(TensorDataType.FLOAT32, [1, 2, 4, 6])
    >>> SpaceToDepth1OperatorDesc(
    ...     space, depth, block_size=2, order=DepthSpaceOrder.COLUMN_ROW_DEPTH
    ... ).validate("2_1")
    """

    operator = "SPACE_TO_DEPTH1"

    order: DepthSpaceOrder = field(metadata=fields.enumeration(DepthSpaceOrder, "SD-05"))

    @property
    def _order(self) -> str:
        return "CRD" if self.order is DepthSpaceOrder.COLUMN_ROW_DEPTH else "DCR"
