"""DirectML API types: descriptors, enumerations, graphs and feature queries; no Vulkan needed.

The public names are in ``__init__.pyi``.
"""

from __future__ import annotations

import sys
from typing import Any

from vkops.errors import import_late
from vkops.late_names import modules_of

_MODULES = modules_of(__file__)

__all__ = sorted(_MODULES)


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        # The next access finds the value in this module and does not come here.
        value = globals()[name] = getattr(import_late(_MODULES[name]), name)
        return value
    message = f"module {__name__!r} has no attribute {name!r}"
    # Python looks for a module here before it imports it.
    if name[:1] != "_" and not import_late("importlib.util").find_spec(f"{__name__}.{name}"):
        message += import_late("vkops.dml.spellings").hint(name)
    raise AttributeError(message, name=name, obj=sys.modules[__name__])


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
