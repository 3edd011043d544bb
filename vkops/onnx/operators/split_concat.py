"""Operators that split and join tensors, and their sequences."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from vkops.errors import ModelError
from vkops.onnx.element_types import dtype_of
from vkops.onnx.lowering import LoweredSequence, LoweredTensor
from vkops.onnx.onnx_node import Call, OnnxNode
from vkops.plan import movements
from vkops.plan.rounding import ceil_div
from vkops.plan.size_limits import MAX_DIMENSIONS, MAX_PIECES
from vkops.plan.view import Ints, View


def split(call: Call) -> list[LoweredTensor]:
    """Lower Split."""
    data = call.tensor("input")
    axis = call.axis("axis", data.rank)
    sizes = _part_sizes(call, data.shape[axis])
    count = call.output_count
    call.require(len(sizes) == count, "outputs", count, f"{len(sizes)}, one for each part")
    return _parts(call, data, axis, sizes)


def split_stub(node: OnnxNode) -> Ints | None:
    """The shape of an input that can be split as the attributes of a node say."""
    axis, lengths = node.attributes.get("axis", 0), node.attributes.get("split")
    rank = axis + 1 if axis >= 0 else -axis
    whole = len(node.outputs) if lengths is None else max(0, sum(lengths))
    return (whole,) * rank if rank <= MAX_DIMENSIONS else None


def _part_sizes(call: Call, whole: int) -> Ints:
    """Return the sizes from an input or attribute, or those of parts as equal as possible."""
    sizes, count = call.ints("split", max_size=MAX_PIECES), call.attribute("num_outputs")
    if call.version >= 18 and (sizes is None) == (count is None):
        both = "both are given" if count is not None else "neither is given"
        call.refuse("'split' and 'num_outputs'", f"{both}, must be one of them")
    if sizes is not None:
        return _checked_sizes(call, sizes, whole)
    if count is None:
        count = call.output_count
        if whole % count:
            call.refuse("outputs", f"got {count}, must divide {whole}, or 'split' must be given")
    call.require(count >= 1, "num_outputs", count, "at least 1")
    outputs = call.output_count
    call.require(count == outputs, "num_outputs", count, f"{outputs}, the outputs")
    size = ceil_div(whole, count)
    last = whole - size * (count - 1)
    if last < 0:
        call.refuse(
            "num_outputs",
            f"got {count}: {count - 1} parts of size {size} exceed {whole}, the size of the axis, "
            "so the size of the last one would be negative",
        )
    return (*(size,) * (count - 1), last)


def split_to_sequence(call: Call) -> list[LoweredSequence]:
    """Lower SplitToSequence."""
    data = call.tensor("input")
    axis = call.axis("axis", data.rank)
    whole = data.shape[axis]
    split_sizes = call.array("split")
    if split_sizes is not None and split_sizes.ndim:
        sizes = _checked_sizes(call, call.ints("split", max_size=MAX_PIECES) or (), whole)
    else:
        size = 1 if split_sizes is None else int(split_sizes)
        call.require(size >= 1, "split", size, "at least 1")
        count = ceil_div(whole, size)
        if count > MAX_PIECES:
            call.refuse("split", f"makes {count} parts, must be {MAX_PIECES} at most")
        sizes = tuple(min(size, whole - start) for start in range(0, whole, size))
    parts = _parts(call, data, axis, sizes)
    if split_sizes is None and not call.attribute("keepdims"):
        parts = [part.reshape((*data.shape[:axis], *data.shape[axis + 1 :])) for part in parts]
    return [LoweredSequence(data.dtype, tuple(parts))]


def _checked_sizes(call: Call, sizes: Ints, whole: int) -> Ints:
    call.require_at_least(0, "split", sizes)
    total = sum(sizes)
    call.require(total == whole, "split", f"a sum of {total}", f"{whole}, the size of the axis")
    return sizes


def _parts(call: Call, data: LoweredTensor, axis: int, sizes: Iterable[int]) -> list[LoweredTensor]:
    shapes = [(*data.shape[:axis], size, *data.shape[axis + 1 :]) for size in sizes]
    regions = movements.split(data.read, map(View.packed, shapes), axis)
    return [
        data if shape == data.shape else call.lowering.make(data.dtype, shape, [region])
        for shape, region in zip(shapes, regions, strict=True)
    ]


def concat(call: Call) -> list[LoweredTensor]:
    """Lower Concat. The axis of Concat 1 is 1 if it is left out."""
    tensors = call.tensors("inputs")
    axis = call.axis("axis", tensors[0].rank, default=int(call.version == 1))
    return [joined(call, "inputs", tensors, axis)]


def concat_from_sequence(call: Call) -> list[LoweredTensor]:
    """Lower ConcatFromSequence."""
    tensors = call.tensors("input_sequence")
    if not tensors:
        call.refuse("input_sequence", "is empty, must have at least one tensor")
    stacked = int(bool(call.attribute("new_axis")))
    axis = call.axis("axis", tensors[0].rank + stacked)
    if stacked:
        tensors = [t.reshape((*t.shape[:axis], 1, *t.shape[axis:])) for t in tensors]
    return [joined(call, "input_sequence", tensors, axis)]


def joined(call: Call, name: str, tensors: list[LoweredTensor], axis: int) -> LoweredTensor:
    """Return tensors one after the other along an axis; ``name`` is the argument in errors."""
    first = tensors[0].shape
    for i, tensor in enumerate(tensors):
        rank = len(first)
        call.require(tensor.rank == rank, f"{name}[{i}]", f"rank {tensor.rank}", rank)
        for d, (got, expected) in enumerate(zip(tensor.shape, first, strict=True)):
            if d != axis and got != expected:
                call.refuse(f"{name}[{i}]", f"got {got} for axis {d}, must be {expected}")
    shape = movements.concat_sizes([tensor.shape for tensor in tensors], axis)
    regions = movements.concat([tensor.read for tensor in tensors], View.packed(shape), axis)
    return call.lowering.make(tensors[0].dtype, shape, regions)


def sequence_construct(call: Call) -> list[LoweredSequence]:
    """Lower SequenceConstruct."""
    tensors = call.tensors("inputs")
    return [LoweredSequence(tensors[0].dtype, tuple(tensors))]


def sequence_empty(call: Call) -> list[LoweredSequence]:
    """Lower SequenceEmpty."""
    kind = call.attribute("dtype")
    try:
        dtype = np.dtype(np.float32) if kind is None else dtype_of(kind)
    except ModelError:
        call.refuse("dtype", f"got {kind}, which is not a data type")
    return [LoweredSequence(dtype, ())]


def sequence_insert(call: Call) -> list[LoweredSequence]:
    """Lower SequenceInsert, which adds a tensor at the end if no position is given."""
    tensors, tensor = call.tensors("input_sequence"), call.tensor("tensor")
    last = len(tensors)
    position = call.integer("position", last)
    call.require(-last <= position <= last, "position", position, f"{-last} to {last}")
    tensors.insert(position, tensor)
    return [LoweredSequence(tensor.dtype, tuple(tensors))]


def sequence_erase(call: Call) -> list[LoweredSequence]:
    """Lower SequenceErase, which removes the last tensor if no position is given."""
    tensors = call.tensors("input_sequence")
    erased = tensors.pop(_position(call, tensors, -1))
    return [LoweredSequence(erased.dtype, tuple(tensors))]


def sequence_length(call: Call) -> list[LoweredTensor]:
    """Lower SequenceLength."""
    count = len(call.tensors("input_sequence"))
    return [call.lowering.constant(np.array(count, np.int64))]


def sequence_at(call: Call) -> list[LoweredTensor]:
    """Lower SequenceAt."""
    tensors = call.tensors("input_sequence")
    return [tensors[_position(call, tensors, 0)]]


def _position(call: Call, tensors: list[LoweredTensor], default: int) -> int:
    """Return the index of a tensor of a sequence."""
    position = call.integer("position", default)
    if not tensors:
        call.refuse("position", f"got {position}, but the sequence is empty")
    return call.in_rank("position", position, len(tensors))
