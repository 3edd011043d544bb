"""Elements of buffers and tensors, as arguments of shaders."""

from __future__ import annotations

from typing import Any

from vkops.gpu.run.open_device import OpenDevice
from vkops.runtime.bindings import elements
from vkops.runtime.shader_argument import Kinds, Resolved
from vkops.shaders.shader import Shader
from vkops.shaders.slot import Slot

KINDS: Kinds = {"storage": ("storage blocks",)}


def resolved(device: OpenDevice, shader: Shader, slot: Slot, value: Any) -> Resolved:
    """Return the elements that a value of a call names; see ``elements``."""
    argument = elements(device, shader.name, slot.point, value, written=slot.is_written)
    return argument, argument.buffer, (argument[1:], argument.buffer.layout)
