"""Samplers as arguments of shaders."""

from __future__ import annotations

from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

from vkops.errors import BindingError, show
from vkops.gpu.run.open_device import OpenDevice
from vkops.runtime.sampler import Sampler
from vkops.runtime.shader_argument import Kinds, Resolved
from vkops.shaders.shader import Shader
from vkops.shaders.slot import Slot

KINDS: Kinds = {"sampler": ("samplers",)}

_defaults: WeakKeyDictionary[Any, dict[str, Sampler]] = WeakKeyDictionary()


class SamplerArgument(NamedTuple):
    """A sampler that is bound alone."""

    sampler: Sampler

    def fill_slot(self, device: OpenDevice, shader: Shader, slot: Slot) -> Slot:
        """Return the slot with the sampler, which the dispatch holds itself."""
        return slot


def default_sampler(device: OpenDevice, *, is_linear: bool) -> Sampler:
    """Return the sampler for textures to which a call gives no sampler."""
    samplers, name = _defaults.setdefault(device.vulkan, {}), "linear" if is_linear else "nearest"
    return samplers.get(name) or samplers.setdefault(name, Sampler(device, name))


def check_sampler(device: OpenDevice, shader: Shader, slot: Slot, value: Any) -> Sampler:
    """Return a sampler of the adapter (SH-13)."""
    if not isinstance(value, Sampler) or not value.is_on(device):
        message = f"got {show(value)}, must be a sampler of this device: device.sampler() makes one"
        raise BindingError(shader.name, slot.point, message, "SH-13")
    return value


def resolved(device: OpenDevice, shader: Shader, slot: Slot, value: Any) -> Resolved:
    """Return a sampler; None stands for the default."""
    if value is None:
        kinds = {block.image.kind for block in shader.blocks if block.image}
        sampler = default_sampler(device, is_linear=kinds <= {"float"})
    else:
        sampler = check_sampler(device, shader, slot, value)
    return SamplerArgument(sampler), sampler.native, sampler
