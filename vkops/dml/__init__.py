"""DirectML API types: descriptors, enumerations, graphs and feature queries; no Vulkan needed.

The public names are in ``__init__.pyi``.
"""

from __future__ import annotations

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
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
