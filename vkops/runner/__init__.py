"""Run models and shaders on a device, as the command line does.

``run`` runs a prepared DxDispatch model, with ``RunOptions``. ``model_files``, ``onnx_files`` and
``shader_files`` run or check files; a wrong model, file or option raises a ModelError before
anything has run.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from vkops.runner.dispatch_timing import RunOptions
    from vkops.runner.model_execution import run

__all__ = ["RunOptions", "run"]

_MODULES = {"RunOptions": "dispatch_timing", "run": "model_execution"}


def __getattr__(name: str) -> Any:
    """Import what the package offers at its first use: most commands need little of it."""
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
