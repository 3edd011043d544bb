"""Operators that move blocks between depth and space: DepthToSpace and SpaceToDepth."""

from __future__ import annotations

from vkops.onnx.node import Call
from vkops.onnx.trace import Tensor

_DEPTH_TO_SPACE = {"DCR": (0, 3, 4, 1, 5, 2), "CRD": (0, 1, 4, 2, 5, 3)}
"""How the axes are permuted after depth is cut, by mode."""

_SPACE_TO_DEPTH = {"DCR": (0, 3, 5, 1, 2, 4), "CRD": (0, 1, 3, 5, 2, 4)}
"""How the axes are permuted after height and width are cut, by mode."""


def depth_to_space(call: Call) -> list[Tensor]:
    """DepthToSpace 1 to 28."""
    data, side, (n, depth, height, width) = _image(call)
    if depth % side**2:
        message = f"has depth {depth}, must be divisible by {side**2} (blocksize {side}, squared)"
        call.refuse("input", message)
    mode = call.choice("mode", *_DEPTH_TO_SPACE)
    inner = depth // side**2
    cut = (side, side, inner) if mode == "DCR" else (inner, side, side)
    blocks = data.reshape((n, *cut, height, width))
    moved = blocks.view(blocks.packed.permute(_DEPTH_TO_SPACE[mode]))
    return [moved.reshape((n, inner, height * side, width * side))]


def space_to_depth(call: Call) -> list[Tensor]:
    """SpaceToDepth 1 to 28."""
    data, side, (n, depth, height, width) = _image(call)
    for what, size in (("height", height), ("width", width)):
        if size % side:
            call.refuse("input", f"has {what} {size}, must be divisible by {side}, the blocksize")
    mode = call.choice("mode", *_SPACE_TO_DEPTH)
    blocks = data.reshape((n, depth, height // side, side, width // side, side))
    moved = blocks.view(blocks.packed.permute(_SPACE_TO_DEPTH[mode]))
    return [moved.reshape((n, depth * side**2, height // side, width // side))]


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
