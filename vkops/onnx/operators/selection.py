"""Operators that choose the indices of an axis to copy, repeat or pad, or diagonals."""

from __future__ import annotations

import builtins
from collections.abc import Sequence
from typing import Any

import numpy as np

from vkops.errors import ModelError
from vkops.onnx.element_types import STRING, dtype_of, type_text
from vkops.onnx.lowering import LoweredTensor
from vkops.onnx.onnx_node import Call, OnnxNode
from vkops.plan import index_runs, movements
from vkops.plan.diagonals import fill_diagonals
from vkops.plan.region import Fill, Read
from vkops.plan.size_limits import MAX_DIMENSIONS, MAX_PIECES
from vkops.plan.view import Ints, View

_TO_THE_END = (2**31 - 1, 2**63 - 1)
"""Ends that Slice 10 recommends where the size is not known; ONNX Runtime takes them backwards."""


def slice(call: Call) -> list[LoweredTensor]:
    """Lower Slice."""
    data = call.tensor("data")
    starts, ends = call.ints("starts") or (), call.ints("ends") or ()
    axes = call.axes("axes", data.rank, range(min(len(starts), data.rank)))
    steps = call.ints("steps")
    if steps is None:
        steps = (1,) * len(starts)
    for name, values in (("starts", starts), ("ends", ends), ("steps", steps)):
        _require_count(call, name, values, len(axes), "as many as axes")
    taken = [range(size) for size in data.shape]
    for i, (axis, start, end, step) in enumerate(zip(axes, starts, ends, steps, strict=True)):
        call.require(step != 0, f"steps[{i}]", 0, "an integer other than 0")
        stop: int | None = end
        if step < 0:
            start = max(start, -data.shape[axis])  # backwards, it cannot start before the first
            stop = None if end in _TO_THE_END else end
        taken[axis] = range(*builtins.slice(start, stop, step).indices(data.shape[axis]))
    view = data.packed.window(
        tuple(indices.start for indices in taken),
        tuple(map(len, taken)),
        tuple(indices.step for indices in taken),
    )
    return [call.lowering.view(data, view)]


def expand(call: Call) -> list[LoweredTensor]:
    """Lower Expand."""
    data = call.tensor("input")
    shape = call.ints("shape") or ()
    for i, size in enumerate(shape):
        call.require(size >= -1, f"shape[{i}]", size, "at least 0, or -1 for the input's")
    shape = tuple(abs(size) for size in shape)  # as in ONNX Runtime, -1 changes nothing, like 1
    rank = max(data.rank, len(shape))
    old, new = ((1,) * (rank - len(sizes)) + tuple(sizes) for sizes in (data.shape, shape))
    if any(a != b and 1 not in (a, b) for a, b in zip(old, new, strict=True)):
        call.refuse("shape", f"got {list(shape)}, which does not broadcast with {data.shape}")
    sizes = tuple(b if a == 1 else a for a, b in zip(old, new, strict=True))
    return [call.lowering.view(data, data.packed.broadcast(sizes))]


def tile(call: Call) -> list[LoweredTensor]:
    """Lower Tile; the first version repeats along one axis."""
    data = call.tensor("input")
    if call.version == 1:
        axis, name = call.axis("axis", data.rank), "tiles"
        times = (*(1,) * axis, call.integer(name), *(1,) * (data.rank - axis - 1))
    else:
        name, times = "repeats", call.ints("repeats") or ()
        _require_count(call, name, times, data.rank, "the rank")
    call.require_at_least(0, name, times)
    shape = movements.tile_sizes(data.shape, times)
    region = movements.tile(data.read, View.packed(shape), times)
    return [call.lowering.make(data.dtype, shape, [region])]


def pad_mode(node: OnnxNode) -> str:
    """Return the mode of a Pad, which its version must have."""
    wrap = ("wrap",) if node.version >= 19 else ()
    return node.choice("mode", "constant", "reflect", "edge", *wrap)


def pad(call: Call) -> list[LoweredTensor]:
    """Lower Pad, in all modes; negative numbers cut off."""
    data = call.tensor("data")
    mode = pad_mode(call.node)
    name = "paddings" if call.version == 1 else "pads"
    pairs = _padding(call, name, data.rank)
    sizes = tuple(n + sum(pair) for n, pair in zip(data.shape, pairs, strict=True))
    for axis, size in enumerate(sizes):
        if size < 0:
            removed = f"remove {-sum(pairs[axis])} from axis {axis}"
            call.refuse(name, f"{removed}, which has size {data.shape[axis]}")
    if mode == "constant":
        return [_framed(call, data, pairs, _padding_value(call, data))]
    if 0 in sizes:
        return [call.lowering.make(data.dtype, sizes, ())]
    kept = data.packed
    for axis, (size, (before, after)) in enumerate(zip(data.shape, pairs, strict=True)):
        first, end = max(0, -before), size - max(0, -after)
        if end <= first:
            call.refuse(name, f"axis {axis} is empty, there is nothing to pad it with ({mode})")
        kept = kept.narrow(axis, first, end - first)
    starts, ends = (tuple(max(0, pair[end]) for pair in pairs) for end in (0, 1))
    count = index_runs.pad_count(kept.sizes, starts, ends, mode)
    if count > MAX_PIECES:
        call.refuse(name, f"moves {count} pieces, must be {MAX_PIECES} at most")
    source = Read(data.number, kept)
    regions = index_runs.pad_with_copies(source, View.packed(sizes), starts, ends, mode)
    return [call.lowering.make(data.dtype, sizes, regions)]


def center_crop_pad(call: Call) -> list[LoweredTensor]:
    """Lower CenterCropPad; if the difference is odd, the end gets or loses one element more."""
    data = call.tensor("input_data")
    axes = call.axes("axes", data.rank, range(data.rank))
    sizes = call.ints("shape") or ()
    _require_count(call, "shape", sizes, len(axes), "as many as axes")
    call.require_at_least(0, "shape", sizes)
    pairs = [(0, 0)] * data.rank
    for axis, size in zip(axes, sizes, strict=True):
        more = size - data.shape[axis]
        half = abs(more) // 2
        before = half if more > 0 else -half
        pairs[axis] = before, more - before
    return [_framed(call, data, pairs, zero_of(call, data.dtype))]


def _framed(
    call: Call, data: LoweredTensor, pairs: Sequence[tuple[int, int]], value: Read
) -> LoweredTensor:
    """Return a tensor with copies of an element around it; negative numbers cut elements off."""
    sizes = tuple(n + sum(pair) for n, pair in zip(data.shape, pairs, strict=True))
    starts, ends = (tuple(pair[side] for pair in pairs) for side in (0, 1))
    values = [(value, value)] * data.rank
    regions = movements.pad(data.read, View.packed(sizes), starts, ends, values)
    return call.lowering.make(data.dtype, sizes, regions)


def _padding(call: Call, name: str, rank: int) -> list[tuple[int, int]]:
    """Return the number of elements to add to each axis, before and after."""
    counts = call.ints(name, max_size=2 * MAX_DIMENSIONS) or ()
    axes = call.axes("axes", rank, range(rank))
    _require_count(call, name, counts, 2 * len(axes), "two for each axis")
    pairs = [(0, 0)] * rank
    for axis, before, after in zip(axes, counts, counts[len(axes) :], strict=False):
        pairs[axis] = before, after
    return pairs


def _padding_value(call: Call, data: LoweredTensor) -> Read:
    """Return the element to pad with: the attribute, the input, or the type's zero."""
    attribute = call.attribute("value")
    if attribute is not None:
        return call.lowering.constant(np.array(attribute).astype(data.dtype)).read
    value = call.optional("constant_value")
    if isinstance(value, LoweredTensor):
        call.require_single("constant_value", value)
        return value.read
    return zero_of(call, data.dtype)


def zero_of(call: Call, dtype: np.dtype[Any]) -> Read:
    """Return an element of a type: 0 or the empty string."""
    zero = np.array("", STRING) if dtype == STRING else np.zeros((), dtype)
    return call.lowering.constant(zero).read


def _require_count(call: Call, name: str, values: Ints, count: int, reason: str) -> None:
    call.require(len(values) == count, name, f"{len(values)} values", f"{count}, {reason}")


# -- diagonals of matrices -------------------------------------------------------------------------


def eye_like(call: Call) -> list[LoweredTensor]:
    """Lower EyeLike."""
    like = call.tensor("input")
    call.require(like.rank == 2, "input", f"rank {like.rank}", 2)
    dtype, elem_type = like.dtype, call.attribute("dtype")
    if elem_type is not None:
        try:
            dtype = dtype_of(elem_type)
        except ModelError:
            call.refuse("dtype", f"got {elem_type}, which is not a data type")
    allowed = call.node.schema.outputs[0].types
    text = type_text(dtype)
    call.require(text in allowed, "dtype", text, ", ".join(sorted(allowed)))
    k = call.attribute("k")
    zero, one = (Fill(np.array(value).astype(dtype).tobytes()) for value in (0, 1))
    regions = fill_diagonals(zero, View.packed(like.shape), k, k + 1, one)
    return [call.lowering.make(dtype, like.shape, regions)]


def trilu(call: Call) -> list[LoweredTensor]:
    """Lower Trilu."""
    data = call.tensor("input")
    call.require(data.rank >= 2, "input", f"rank {data.rank}", "at least 2")
    k = call.integer("k")
    first, end = -data.shape[-2], data.shape[-1]  # all diagonals
    # Those to fill with zeros.
    begin, end = (first, max(first, k)) if call.attribute("upper") else (min(k + 1, end), end)
    regions = fill_diagonals(data.read, data.packed, begin, end, zero_of(call, data.dtype))
    return [call.lowering.make(data.dtype, data.shape, regions)]
