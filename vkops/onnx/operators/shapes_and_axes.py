"""Operators that give a tensor another shape, or permute its axes."""

from __future__ import annotations

from math import prod

from vkops.onnx.lowering import LoweredTensor, LoweredValue
from vkops.onnx.onnx_node import Call
from vkops.plan import movements
from vkops.plan.view import View

DEPTH_ORDERS = ("DCR", "CRD")
"""Values of ``mode`` in DepthToSpace and SpaceToDepth, the default first."""


def identity(call: Call) -> list[LoweredValue]:
    """Identity 1 to 25, of tensors, sequences and optionals."""
    return [call.optional("input")]


def reshape(call: Call) -> list[LoweredTensor]:
    """Reshape 1 to 25."""
    data = call.tensor("data")
    given = call.ints("shape")
    if given is None:
        call.refuse("shape", "is missing")
    keeps_zeros = bool(call.attribute("allowzero"))
    sizes = list(given)
    for i, size in enumerate(given):
        if size < -1:
            call.refuse(f"shape[{i}]", f"got {size}, must be at least -1")
        if size == 0 and not keeps_zeros:
            if i >= data.rank:
                call.refuse(f"shape[{i}]", f"got 0, but the input has rank {data.rank}")
            sizes[i] = data.shape[i]
    if given.count(-1) > 1:
        call.refuse("shape", f"got {list(given)}, must have one -1 at most")
    if -1 in given:
        if keeps_zeros and 0 in given:
            call.refuse("shape", f"got {list(given)}, must not have both -1 and 0 (allowzero)")
        known = prod(size for size in sizes if size != -1)
        if known == 0 or data.size % known:
            message = f"got {list(given)}, which leaves no size for -1 of {data.size} elements"
            call.refuse("shape", message)
        sizes[given.index(-1)] = data.size // known
    if prod(sizes) != data.size:
        message = f"got {list(given)}, {prod(sizes)} elements, must be {data.size} ({data.shape})"
        call.refuse("shape", message)
    return [data.reshape(tuple(sizes))]


def flatten(call: Call) -> list[LoweredTensor]:
    """Flatten 1 to 25."""
    data = call.tensor("input")
    lowest = 0 if call.version < 11 else -data.rank
    given = call.integer("axis")
    assert given is not None
    if not lowest <= given <= data.rank:
        call.refuse("axis", f"got {given}, must be {lowest} to {data.rank}")
    axis = given if given >= 0 else given + data.rank
    return [data.reshape((prod(data.shape[:axis]), prod(data.shape[axis:])))]


def squeeze(call: Call) -> list[LoweredTensor]:
    """Squeeze 1 to 25."""
    data = call.tensor("data")
    axes = call.axes("axes", data.rank)
    if not axes:  # also where an empty list is given, as ONNX Runtime has it
        axes = tuple(axis for axis, size in enumerate(data.shape) if size == 1)
    for axis in axes:
        if data.shape[axis] != 1:
            call.refuse("axes", f"axis {axis} has size {data.shape[axis]}, must be 1")
    return [data.reshape(tuple(n for axis, n in enumerate(data.shape) if axis not in axes))]


def unsqueeze(call: Call) -> list[LoweredTensor]:
    """Unsqueeze 1 to 25."""
    data = call.tensor("data")
    given = call.ints("axes")
    axes = call.axes("axes", data.rank + len(given or ()))
    if axes is None:
        call.refuse("axes", "is missing")
    sizes = iter(data.shape)
    rank = data.rank + len(axes)
    return [data.reshape(tuple(1 if axis in axes else next(sizes) for axis in range(rank)))]


def transpose(call: Call) -> list[LoweredTensor]:
    """Transpose 1 to 25."""
    data = call.tensor("data")
    perm = call.axes("perm", data.rank, lowest=0)
    if perm is None:
        perm = tuple(reversed(range(data.rank)))
    if len(perm) != data.rank:
        call.refuse("perm", f"got {len(perm)} axes, must be {data.rank}, the rank")
    return [call.lowering.view(data, data.packed.permute(perm))]


def depth_to_space(call: Call) -> list[LoweredTensor]:
    """DepthToSpace 1 to 28."""
    data, side, sizes = _image(call)
    depth = sizes[1]
    if depth % side**2:
        message = f"has depth {depth}, must be divisible by {side**2} (blocksize {side}, squared)"
        call.refuse("input", message)
    order = call.node.choice("mode", *DEPTH_ORDERS)
    shape = movements.depth_to_space_sizes(sizes, side)
    region = movements.depth_to_space(data.read, View.packed(shape), side, order)
    return [call.lowering.make(data.dtype, shape, [region])]


def space_to_depth(call: Call) -> list[LoweredTensor]:
    """SpaceToDepth 1 to 28."""
    data, side, sizes = _image(call)
    for what, size in zip(("height", "width"), sizes[2:], strict=True):
        if size % side:
            call.refuse("input", f"has {what} {size}, must be divisible by {side}, the blocksize")
    order = call.node.choice("mode", *DEPTH_ORDERS)
    shape = movements.space_to_depth_sizes(sizes, side)
    region = movements.space_to_depth(data.read, View.packed(shape), side, order)
    return [call.lowering.make(data.dtype, shape, [region])]


def _image(call: Call) -> tuple[LoweredTensor, int, tuple[int, ...]]:
    """Return the input, the side of a block, and the four sizes of the input."""
    data = call.tensor("input")
    if data.rank != 4:
        call.refuse("input", f"has rank {data.rank}, must be 4 (N, C, H, W)")
    side = call.integer("blocksize")
    assert side is not None
    if side < 1:
        call.refuse("blocksize", f"got {side}, must be at least 1")
    return data, side, data.shape
