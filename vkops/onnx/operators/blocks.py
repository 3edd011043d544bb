"""Operators that move blocks between depth and space: DepthToSpace and SpaceToDepth."""

from __future__ import annotations

from vkops.onnx.node import Call
from vkops.onnx.trace import Tensor
from vkops.plan import movements
from vkops.plan.view import View

ORDERS = ("DCR", "CRD")
"""What the attribute ``mode`` can be, the default first."""


def depth_to_space(call: Call) -> list[Tensor]:
    """DepthToSpace 1 to 28."""
    data, side, (n, depth, height, width) = _image(call)
    if depth % side**2:
        message = f"has depth {depth}, must be divisible by {side**2} (blocksize {side}, squared)"
        call.refuse("input", message)
    order = call.choice("mode", *ORDERS)
    shape = (n, depth // side**2, height * side, width * side)
    region = movements.depth_to_space(data.read, View.packed(shape), side, order)
    return [call.trace.make(data.dtype, shape, [region])]


def space_to_depth(call: Call) -> list[Tensor]:
    """SpaceToDepth 1 to 28."""
    data, side, (n, depth, height, width) = _image(call)
    for what, size in (("height", height), ("width", width)):
        if size % side:
            call.refuse("input", f"has {what} {size}, must be divisible by {side}, the blocksize")
    order = call.choice("mode", *ORDERS)
    shape = (n, depth * side**2, height // side, width // side)
    region = movements.space_to_depth(data.read, View.packed(shape), side, order)
    return [call.trace.make(data.dtype, shape, [region])]


def _image(call: Call) -> tuple[Tensor, int, tuple[int, ...]]:
    """The input, the side of a block, and the input's four sizes."""
    data = call.tensor("input")
    if data.rank != 4:
        call.refuse("input", f"has rank {data.rank}, must be 4 (N, C, H, W)")
    side = call.integer("blocksize")
    assert side is not None
    if side < 1:
        call.refuse("blocksize", f"got {side}, must be at least 1")
    return data, side, data.shape
