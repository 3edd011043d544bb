"""SPACE_TO_DEPTH and DEPTH_TO_SPACE: blocks of height and width moved into channels, and back."""

from __future__ import annotations

from collections.abc import Sequence

from vkops.dml import fields
from vkops.dml.enums import DepthSpaceOrder
from vkops.dml.operator_bases import UnaryOperatorDesc
from vkops.dml.operator_desc import Size
from vkops.errors import show
from vkops.plan import Read, Region, View
from vkops.plan.movements import (
    depth_to_space,
    depth_to_space_sizes,
    space_to_depth,
    space_to_depth_sizes,
)

_ORDERS = {DepthSpaceOrder.DEPTH_COLUMN_ROW: "DCR", DepthSpaceOrder.COLUMN_ROW_DEPTH: "CRD"}
"""The orders of the channels, as ``movements.py`` names them."""


@fields.descriptor
class _BlocksDesc(UnaryOperatorDesc):
    """The fields of all four operators.

    Attributes:
        input_tensor: the tensor to rearrange: batch, channels, height and width.
    """

    same_data_type = same_dimension_count = "SD-01"

    block_size: int = fields.attribute(fields.UINT, "SD-02")

    @property
    def _order(self) -> str:
        return _ORDERS[getattr(self, "order", DepthSpaceOrder.DEPTH_COLUMN_ROW)]


@fields.descriptor
class SpaceToDepthOperatorDesc(_BlocksDesc):
    """Moves square blocks of height and width into channels.

    Channel ``(row * block_size + column) * C + c`` of the output holds the elements of the input's
    channel ``c`` (of ``C``) that stand at ``row`` and ``column`` of each block.

    Attributes:
        output_tensor: the result; its sizes are ``N``, ``C * block_size**2``, ``H / block_size``
            and ``W / block_size``, where ``N``, ``C``, ``H`` and ``W`` are those of the input.
        block_size: height and width of a block in elements, at least 1; divides ``H`` and ``W``.

    >>> from vkops.dml import BufferTensorDesc, TensorDataType
    >>> space = BufferTensorDesc(TensorDataType.FLOAT32, [1, 2, 4, 6])
    >>> depth = BufferTensorDesc(TensorDataType.FLOAT32, [1, 8, 2, 3])
    >>> SpaceToDepthOperatorDesc(space, depth, block_size=2).validate()
    """

    def _infer(self) -> Sequence[Sequence[Size]]:
        block = self.block_size
        self._check_positive("block_size", block, "SD-02")
        sizes = self.input_tensor.sizes
        for axis in (2, 3):
            if sizes[axis] % block:
                message = f"got {sizes[axis]}, must be a multiple of block_size = {show(block)}"
                self._refuse(f"input_tensor.sizes[{axis}]", message, "SD-04")
        factors = ("", " * block_size**2", " / block_size", " / block_size")
        return [self._scaled_sizes(space_to_depth_sizes(sizes, block), factors, "SD-04")]

    def _copies(self, source: Read, target: View) -> list[Region]:
        return [space_to_depth(source, target, self.block_size, self._order)]


@fields.descriptor
class SpaceToDepth1OperatorDesc(SpaceToDepthOperatorDesc):
    """Moves blocks into channels as SPACE_TO_DEPTH does, with a choice of the channels' order.

    Attributes:
        order: what the channels of the output are made of. DEPTH_COLUMN_ROW: channel
            ``(row * block_size + column) * C + c``, as in SPACE_TO_DEPTH; COLUMN_ROW_DEPTH: channel
            ``(c * block_size + row) * block_size + column``. ``c`` is a channel of the input,
            which has ``C``, and ``row`` and ``column`` are those of the element in its block.

    >>> from vkops.dml import BufferTensorDesc, DepthSpaceOrder, TensorDataType
    >>> depth = BufferTensorDesc(TensorDataType.FLOAT32, [1, 8, 2, 3])
    >>> space = BufferTensorDesc(TensorDataType.FLOAT32, [1, 2, 4, 6])
    >>> SpaceToDepth1OperatorDesc(
    ...     space, depth, block_size=2, order=DepthSpaceOrder.COLUMN_ROW_DEPTH
    ... ).validate("2_1")
    """

    order: DepthSpaceOrder = fields.enumeration(DepthSpaceOrder, "SD-05")


@fields.descriptor
class DepthToSpaceOperatorDesc(_BlocksDesc):
    """Moves channels into square blocks of height and width: the inverse of SPACE_TO_DEPTH.

    Channel ``(row * block_size + column) * C + c`` of the input holds the elements of the output's
    channel ``c`` (of ``C``) that stand at ``row`` and ``column`` of each block.

    Attributes:
        output_tensor: the result; its sizes are ``N``, ``C / block_size**2``, ``H * block_size``
            and ``W * block_size``, where ``N``, ``C``, ``H`` and ``W`` are those of the input.
        block_size: height and width of a block in elements, at least 1; its square divides ``C``.

    >>> from vkops.dml import BufferTensorDesc, TensorDataType
    >>> depth = BufferTensorDesc(TensorDataType.FLOAT32, [1, 8, 2, 3])
    >>> space = BufferTensorDesc(TensorDataType.FLOAT32, [1, 2, 4, 6])
    >>> DepthToSpaceOperatorDesc(depth, space, block_size=2).validate()
    """

    def _infer(self) -> Sequence[Sequence[Size]]:
        block = self.block_size
        self._check_positive("block_size", block, "SD-02")
        sizes = self.input_tensor.sizes
        if sizes[1] % block**2:
            message = f"got {sizes[1]}, must be a multiple of block_size**2 = {show(block**2)}"
            self._refuse("input_tensor.sizes[1]", message, "SD-03")
        factors = ("", " / block_size**2", " * block_size", " * block_size")
        return [self._scaled_sizes(depth_to_space_sizes(sizes, block), factors, "SD-03")]

    def _copies(self, source: Read, target: View) -> list[Region]:
        return [depth_to_space(source, target, self.block_size, self._order)]


@fields.descriptor
class DepthToSpace1OperatorDesc(DepthToSpaceOperatorDesc):
    """Moves channels into blocks as DEPTH_TO_SPACE does, with a choice of the channels' order.

    Attributes:
        order: what the channels of the input are made of. DEPTH_COLUMN_ROW: channel
            ``(row * block_size + column) * C + c``, as in DEPTH_TO_SPACE; COLUMN_ROW_DEPTH: channel
            ``(c * block_size + row) * block_size + column``. ``c`` is a channel of the output,
            which has ``C``, and ``row`` and ``column`` are those of the element in its block.

    >>> from vkops.dml import BufferTensorDesc, DepthSpaceOrder, TensorDataType
    >>> depth = BufferTensorDesc(TensorDataType.FLOAT32, [1, 8, 2, 3])
    >>> space = BufferTensorDesc(TensorDataType.FLOAT32, [1, 2, 4, 6])
    >>> DepthToSpace1OperatorDesc(
    ...     depth, space, block_size=2, order=DepthSpaceOrder.COLUMN_ROW_DEPTH
    ... ).validate("2_1")
    """

    order: DepthSpaceOrder = fields.enumeration(DepthSpaceOrder, "SD-05")
