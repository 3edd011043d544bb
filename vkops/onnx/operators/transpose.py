"""Transpose."""

from __future__ import annotations

from vkops.onnx.node import Call
from vkops.onnx.trace import Tensor


def transpose(call: Call) -> list[Tensor]:
    """Transpose 1 to 25."""
    data = call.tensor("data")
    perm = call.axes("perm", data.rank, lowest=0)
    if perm is None:
        perm = tuple(reversed(range(data.rank)))
    if len(perm) != data.rank:
        call.refuse("perm", f"got {len(perm)} axes, must be {data.rank}, the rank")
    return [data.view(data.packed.permute(perm))]
