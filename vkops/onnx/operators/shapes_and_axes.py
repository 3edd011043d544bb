"""Operators that give a tensor another shape, or permute its axes."""

from __future__ import annotations

from math import prod

import numpy as np

from vkops.onnx.lowering import LoweredTensor, LoweredValue
from vkops.onnx.onnx_node import Call, OnnxNode
from vkops.plan import movements
from vkops.plan.view import Ints, View

DEPTH_ORDERS = ("DCR", "CRD")
"""Values of ``mode`` in DepthToSpace and SpaceToDepth, the default first."""


def dropout(call: Call) -> list[LoweredTensor]:
    """Lower Dropout, which drops nothing outside of training."""
    data = call.tensor("data")
    reason = ": vkops does not train"
    if call.version < 7:
        call.require(call.attribute("is_test") == 1, "is_test", 0, f"1{reason}")
    trains = call.boolean("training_mode", default=False)
    call.require(not trains, "training_mode", trains, f"False{reason}")
    kept = np.ones(1, data.dtype if call.version < 10 else bool)
    return [data, call.lowering.full(kept, data.shape)][: call.output_count]


def identity(call: Call) -> list[LoweredValue]:
    """Lower Identity, of tensors, sequences and optionals."""
    return [call.optional("input")]


def reshape(call: Call) -> list[LoweredTensor]:
    """Lower Reshape."""
    data = call.tensor("data")
    shape = call.ints("shape")
    if shape is None:
        call.refuse("shape", "is missing")
    keeps_zeros = bool(call.attribute("allowzero"))
    sizes = list(shape)
    call.require_at_least(-1, "shape", shape)
    for i, size in enumerate(shape):
        if size == 0 and not keeps_zeros:
            if i >= data.rank:
                call.refuse(f"shape[{i}]", f"got 0, but the input has rank {data.rank}")
            sizes[i] = data.shape[i]
    if shape.count(-1) > 1:
        call.refuse("shape", f"got {list(shape)}, must have one -1 at most")
    if -1 in shape:
        if keeps_zeros and 0 in shape:
            call.refuse("shape", f"got {list(shape)}, must not have both -1 and 0 (allowzero)")
        known = prod(size for size in sizes if size != -1)
        if known == 0 or data.size % known:
            message = f"got {list(shape)}, which leaves no size for -1 of {data.size} elements"
            call.refuse("shape", message)
        sizes[shape.index(-1)] = data.size // known
    count, allowed = prod(sizes), f"{data.size} ({data.shape})"
    call.require(count == data.size, "shape", f"{list(shape)}, {count} elements", allowed)
    return [data.reshape(tuple(sizes))]


def flatten(call: Call) -> list[LoweredTensor]:
    """Lower Flatten."""
    data = call.tensor("input")
    number = call.integer("axis")
    allowed = f"{-data.rank} to {data.rank}"
    call.require(-data.rank <= number <= data.rank, "axis", number, allowed)
    axis = number if number >= 0 else number + data.rank
    return [data.reshape((prod(data.shape[:axis]), prod(data.shape[axis:])))]


def squeeze(call: Call) -> list[LoweredTensor]:
    """Lower Squeeze."""
    data = call.tensor("data")
    axes = call.axes("axes", data.rank)
    if not axes:  # left out or, as in ONNX Runtime, an empty list
        axes = tuple(axis for axis, size in enumerate(data.shape) if size == 1)
    for axis in axes:
        if data.shape[axis] != 1:
            call.refuse("axes", f"axis {axis} has size {data.shape[axis]}, must be 1")
    return [data.reshape(tuple(n for axis, n in enumerate(data.shape) if axis not in axes))]


def unsqueeze(call: Call) -> list[LoweredTensor]:
    """Lower Unsqueeze."""
    data = call.tensor("data")
    new_axes = call.ints("axes", scalar=True)
    if new_axes is None:
        call.refuse("axes", "is missing")
    axes = call.axes("axes", data.rank + len(new_axes))
    sizes = iter(data.shape)
    rank = data.rank + len(axes)
    return [data.reshape(tuple(1 if axis in axes else next(sizes) for axis in range(rank)))]


def transpose(call: Call) -> list[LoweredTensor]:
    """Lower Transpose."""
    data = call.tensor("data")
    rank = data.rank
    perm = call.axes("perm", rank, reversed(range(rank)), lowest=0)
    call.require(len(perm) == rank, "perm", f"{len(perm)} axes", f"{rank}, the rank")
    return [call.lowering.view(data, data.packed.permute(perm))]


def depth_to_space(call: Call) -> list[LoweredTensor]:
    """Lower DepthToSpace."""
    data, side = _image(call)
    depth, block = data.shape[1], side**2
    allowed = f"divisible by {block} (blocksize {side}, squared)"
    call.require(depth % block == 0, "input", f"depth {depth}", allowed)
    order = call.node.choice("mode", *DEPTH_ORDERS)
    shape = movements.depth_to_space_sizes(data.shape, side)
    region = movements.depth_to_space(data.read, View.packed(shape), side, order)
    return [call.lowering.make(data.dtype, shape, [region])]


def space_to_depth(call: Call) -> list[LoweredTensor]:
    """Lower SpaceToDepth."""
    data, side = _image(call)
    for what, size in zip(("height", "width"), data.shape[2:], strict=True):
        allowed = f"divisible by {side}, the blocksize"
        call.require(size % side == 0, "input", f"{what} {size}", allowed)
    order = call.node.choice("mode", *DEPTH_ORDERS)
    shape = movements.space_to_depth_sizes(data.shape, side)
    region = movements.space_to_depth(data.read, View.packed(shape), side, order)
    return [call.lowering.make(data.dtype, shape, [region])]


def image_stub(node: OnnxNode) -> Ints:
    """The shape of an image whose depth and sides are divided into blocks."""
    side = max(1, node.attributes["blocksize"])
    return (1, side * side, side, side)


def _image(call: Call) -> tuple[LoweredTensor, int]:
    """Return the input, which has four dimensions, and the side of a block."""
    data = call.tensor("input")
    call.require(data.rank == 4, "input", f"rank {data.rank}", "4 (N, C, H, W)")
    side = call.integer("blocksize")
    call.require(side >= 1, "blocksize", side, "at least 1")
    return data, side
