"""The kinds of arguments of shaders: one module for each, of which this package makes tables.

``KINDS`` are the kinds of blocks that take the arguments of a module, each with the names of what
it counts towards in ``runtime/shader_checks.py``. ``resolved`` makes the argument: it takes the
device, the shader, the slot, and the value that the call has for it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from pkgutil import iter_modules

from vkops.runtime.shader_argument import Resolved

_MODULES = [import_module(f"{__name__}.{each.name}") for each in iter_modules(__path__)]

RESOLVERS: Mapping[str, Callable[..., Resolved]] = {
    kind: module.resolved for module in _MODULES for kind in module.KINDS
}
"""The function that makes an argument for each kind of block."""

COUNTED: Mapping[str, Sequence[str]] = {
    kind: names for module in _MODULES for kind, names in module.KINDS.items()
}
"""The limits towards which each kind of block counts."""
