"""The kinds of arguments of shaders: a module for each, and tables of all of them here.

In each module, ``KINDS`` has the kinds of blocks that take its arguments, each with the names of
the limits that a block counts towards in ``runtime/shader_checks.py``. ``resolved`` returns an
argument for the device, the shader, the slot, and the value of the call.
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
