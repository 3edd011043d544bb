"""Concat and ConcatFromSequence."""

from __future__ import annotations

from vkops.onnx.node import Call
from vkops.onnx.trace import Tensor
from vkops.plan import movements
from vkops.plan.view import View

_DEFAULT_AXIS = {1: 1}
"""Concat 1 has one; later versions require the attribute."""


def concat(call: Call) -> list[Tensor]:
    """Concat 1, 4, 11 and 13."""
    tensors = call.tensors("inputs")
    axis = call.axis("axis", tensors[0].rank, default=_DEFAULT_AXIS.get(call.version, 0))
    return [_joined(call, "inputs", tensors, axis)]


def concat_from_sequence(call: Call) -> list[Tensor]:
    """ConcatFromSequence 11."""
    tensors = call.tensors("input_sequence")
    if not tensors:
        call.refuse("input_sequence", "is empty, must have at least one tensor")
    stacked = int(bool(call.attribute("new_axis")))
    axis = call.axis("axis", tensors[0].rank + stacked)
    if stacked:
        tensors = [t.reshape((*t.shape[:axis], 1, *t.shape[axis:])) for t in tensors]
    return [_joined(call, "input_sequence", tensors, axis)]


def _joined(call: Call, name: str, tensors: list[Tensor], axis: int) -> Tensor:
    first = tensors[0].shape
    for i, tensor in enumerate(tensors):
        if len(tensor.shape) != len(first):
            call.refuse(f"{name}[{i}]", f"has rank {tensor.rank}, must be {len(first)}")
        for d, (got, wanted) in enumerate(zip(tensor.shape, first, strict=True)):
            if d != axis and got != wanted:
                call.refuse(f"{name}[{i}]", f"has {got} for axis {d}, must be {wanted}")
    shape = movements.concat_sizes([tensor.shape for tensor in tensors], axis)
    regions = movements.concat([tensor.read for tensor in tensors], View.packed(shape), axis)
    return call.trace.make(tensors[0].dtype, shape, regions)
