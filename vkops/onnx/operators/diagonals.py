"""Operators on the diagonals of matrices."""

from __future__ import annotations

import numpy as np

from vkops.errors import ModelError
from vkops.onnx.element_types import dtype_of, type_text
from vkops.onnx.lowering import LoweredTensor
from vkops.onnx.onnx_node import Call
from vkops.onnx.operators.selection import zero_of
from vkops.plan.diagonals import fill_diagonals
from vkops.plan.region import Fill
from vkops.plan.view import View


def eye_like(call: Call) -> list[LoweredTensor]:
    """EyeLike 9 and 22."""
    like = call.tensor("input")
    if like.rank != 2:
        call.refuse("input", f"has rank {like.rank}, must be 2")
    dtype, given = like.dtype, call.attribute("dtype")
    if given is not None:
        try:
            dtype = dtype_of(given)
        except ModelError:
            call.refuse("dtype", f"got {given}, which is not a data type")
    allowed = call.node.schema.outputs[0].types
    if type_text(dtype) not in allowed:
        call.refuse("dtype", f"got {type_text(dtype)}, must be {', '.join(sorted(allowed))}")
    k = call.attribute("k")
    zero, one = (Fill(np.array(value).astype(dtype).tobytes()) for value in (0, 1))
    regions = fill_diagonals(zero, View.packed(like.shape), k, k + 1, one)
    return [call.lowering.make(dtype, like.shape, regions)]


def trilu(call: Call) -> list[LoweredTensor]:
    """Trilu 14."""
    data = call.tensor("input")
    if data.rank < 2:
        call.refuse("input", f"has rank {data.rank}, must be at least 2")
    k = call.integer("k") or 0
    first, end = -data.shape[-2], data.shape[-1]  # all diagonals
    # Those to fill with zeros.
    begin, end = (first, max(first, k)) if call.attribute("upper") else (min(k + 1, end), end)
    zero = zero_of(call, data.dtype)
    regions = fill_diagonals(data.read, data.packed, begin, end, zero)
    return [call.lowering.make(data.dtype, data.shape, regions)]
