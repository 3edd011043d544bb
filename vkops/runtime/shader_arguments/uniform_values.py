"""Values of uniform blocks, which a dispatch holds itself, and addresses among values."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from vkops.errors import BindingError
from vkops.gpu.run.open_device import OpenDevice
from vkops.runtime.bindings import check_size, extent_of, is_memory
from vkops.runtime.shader_argument import Kinds, Resolved
from vkops.runtime.shader_arguments import buffers
from vkops.shaders.shader import Shader
from vkops.shaders.slot import Slot

KINDS: Kinds = {"uniform": ("uniform blocks",)}


class UniformValues(bytes):
    """The packed contents of a uniform block."""

    def fill_slot(self, device: OpenDevice, shader: Shader, slot: Slot) -> Slot:
        """Check the size; the dispatch holds the bytes itself."""
        check_size(device, shader, slot, len(self))
        shader.check_bytes(slot.point, slot.block, 0, len(self), len(self))
        return slot


def resolved(device: OpenDevice, shader: Shader, slot: Slot, value: Any) -> Resolved:
    """Return values as bytes, or the elements that are bound to the block."""
    if is_memory(value):
        return buffers.resolved(device, shader, slot, value)
    value = with_addresses(device, shader, slot.point, value)
    values = UniformValues(shader.pack_uniform(slot.block, value))
    return values, values, len(values)


def with_addresses(device: OpenDevice, shader: Shader, path: str, value: Any) -> Any:
    """Return values with tensors replaced by their addresses, if the shader uses addresses."""
    if not shader.uses_addresses:
        return value
    if hasattr(value, "placed"):
        base, _ = value.placed()
        if base.buffer is not None:
            extent_of(device, shader.name, path, base.buffer, written=False)
        try:
            return value.device_address
        except BindingError as error:
            raise BindingError(shader.name, path, error.message, error.rule) from None
    if isinstance(value, Mapping):
        return {
            name: with_addresses(device, shader, f"{path}.{name}", each)
            for name, each in value.items()
        }
    if isinstance(value, (list, tuple)):
        return [
            with_addresses(device, shader, f"{path}[{number}]", each)
            for number, each in enumerate(value)
        ]
    return value
