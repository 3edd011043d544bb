"""The arguments of shaders, one module for each kind.

Each has a class with the methods of ``Argument``, and a function ``resolved`` that makes it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from vkops.runtime.shader_arguments import elements, uniform_values
from vkops.runtime.shader_arguments.argument import Argument, Resolved

__all__ = ["RESOLVERS", "Argument", "Resolved"]

RESOLVERS: Mapping[str, Callable[..., Resolved]] = {
    "storage": elements.resolved,
    "uniform": uniform_values.resolved,
}
"""The functions that make an argument for each kind of block.

They take the device, the shader, the slot, and the value that the call has for it."""
