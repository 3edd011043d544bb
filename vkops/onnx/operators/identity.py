"""Identity."""

from __future__ import annotations

from vkops.onnx.node import Call
from vkops.onnx.trace import Value


def identity(call: Call) -> list[Value]:
    """Identity 1 to 25, of tensors, sequences and optionals."""
    return [call.optional("input")]
