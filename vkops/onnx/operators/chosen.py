"""Tensors made by choosing indices along each axis."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from vkops.onnx.node import MAX_PIECES, Call
from vkops.onnx.trace import Tensor
from vkops.plan.movements import Run, choose
from vkops.plan.view import View


def chosen(call: Call, name: str, data: Tensor, axes: Sequence[Sequence[Run]]) -> Tensor:
    """The tensor whose every axis is made of runs of the same axis of ``data``."""
    count = prod(map(len, axes))
    if count > MAX_PIECES:
        call.refuse(name, f"moves {count} pieces, must be {MAX_PIECES} at most")
    shape = tuple(sum(run.size for run in runs) for runs in axes)
    return call.trace.make(data.dtype, shape, choose(data.read, View.packed(shape), axes))
