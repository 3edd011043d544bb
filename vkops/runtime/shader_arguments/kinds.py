"""The kinds of arguments of shaders, by the kinds of blocks."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from vkops.runtime import elements
from vkops.runtime.shader_argument import Resolved
from vkops.runtime.shader_arguments import images, samplers, texels, uniform_values

RESOLVERS: Mapping[str, Callable[..., Resolved]] = {
    "storage": elements.resolved,
    "uniform": uniform_values.resolved,
    "storage image": images.resolved,
    "sampled image": images.resolved,
    "combined image sampler": images.resolved,
    "sampler": samplers.resolved,
    "storage texel buffer": texels.resolved,
    "uniform texel buffer": texels.resolved,
}
"""The functions that make an argument for each kind of block.

They take the device, the shader, the slot, and the value that the call has for it."""
