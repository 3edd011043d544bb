"""DirectML's data-movement operators on any Vulkan device.

Importing vkops loads neither Vulkan nor Kompute; the first use of a device does. The public names
are in ``__init__.pyi``.
"""

from __future__ import annotations

import os
import sys
from typing import Any

from vkops import errors
from vkops.late_names import modules_of
from vkops.system.threads import new_lock

__version__ = "0.1.0"
__array_api_version__ = "2024.12"

_MODULES = modules_of(__file__)
"""The module of each public name, which is imported at the name's first use."""

_loading = new_lock()

# Errors can be named while another name is being loaded.
globals().update(
    {name: getattr(errors, name) for name in _MODULES if _MODULES[name] == "vkops.errors"}
)

# Of vkops' packages, "*" imports the one whose names are part of the interface of devices.
__all__ = sorted(name for name in _MODULES if _MODULES[name] != "vkops" or name == "dml")


def __getattr__(name: str) -> Any:
    module = _MODULES.get(name)
    if module is None:
        message = f"module 'vkops' has no attribute {name!r}"
        late = errors.import_late
        # NumPy and others look for many names with underscores, for which nothing is imported; and
        # Python looks for a module here before it imports it.
        if name[:1] != "_" and not late("importlib.util").find_spec(f"{__name__}.{name}"):
            hint = late("vkops.arguments.other_names").hint(name, of_module=True)
            if not hint and name in late("numpy").__all__:
                computing = late("vkops.arguments.refused_operators").computing_function(name)
                hint = f": use {computing or f'numpy.{name} on tensor.numpy()'}"
            message += hint
        raise AttributeError(message, name=name, obj=sys.modules[__name__])
    if module == "vkops":
        return errors.import_late(f"vkops.{name}")
    errors.refuse_reentry(_loading, "vkops is being imported")
    with _loading:
        # The next access finds the value in the module and does not come here.
        value = globals()[name] = getattr(errors.import_late(module), name)
    return value


def __dir__() -> list[str]:
    return sorted({*__all__, "__array_api_version__", "__version__", "__doc__"})


if os.environ.get("VKOPS_CHECK") or os.environ.get("VKOPS_COVERAGE"):
    errors.import_late("vkops.debug.dispatch_checks").check_all()
