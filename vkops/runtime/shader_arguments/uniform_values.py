"""Values of uniform blocks, which are small data of a dispatch."""

from __future__ import annotations

from typing import Any

from vkops.gpu.run.open_device import OpenDevice
from vkops.gpu.run.shader_dispatch import Place
from vkops.runtime import elements
from vkops.runtime.bindings import is_memory
from vkops.runtime.shader_argument import Resolved
from vkops.runtime.shader_arguments.addresses import with_addresses
from vkops.shaders.shader import Shader, Slot


class UniformValues(bytes):
    """The packed contents of a uniform block."""

    def place(self, device: OpenDevice, shader: Shader, slot: Slot) -> tuple[Place, bool]:
        """Check the size; a dispatch has the bytes itself."""
        elements.check_size(device, shader, slot, len(self))
        shader.check_bytes(slot.point, slot.block, 0, len(self), len(self))
        return None, True


def resolved(device: OpenDevice, shader: Shader, slot: Slot, value: Any) -> Resolved:
    """Return values as bytes, or the elements that are bound to the block."""
    if is_memory(value):
        return elements.resolved(device, shader, slot, value)
    value = with_addresses(device, shader, slot.point, value)
    own = UniformValues(shader.pack_uniform(slot.block, value))
    return own, own, len(own)
