"""SequenceAt."""

from __future__ import annotations

from vkops.onnx.node import Call
from vkops.onnx.trace import Tensor


def sequence_at(call: Call) -> list[Tensor]:
    """SequenceAt 11."""
    tensors = call.tensors("input_sequence")
    position = call.integer("position")
    assert position is not None
    if not tensors:
        call.refuse("position", f"got {position}, but the sequence is empty")
    return [tensors[call.in_rank("position", position, len(tensors))]]
