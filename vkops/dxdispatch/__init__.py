"""DxDispatch's JSON format: ``load_model`` reads a model, ``prepare`` checks it.

Whatever is wrong with a model raises a ModelError that names the file and the place in it.

``run`` and ``RunOptions``, which run a prepared model on a device, are those of ``vkops.runner``.
"""

from typing import Any

from vkops.dxdispatch.json_model import Model
from vkops.dxdispatch.model_checks import Prepared, prepare
from vkops.dxdispatch.model_reader import load_model

__all__ = ["Model", "Prepared", "load_model", "prepare"]


def __getattr__(name: str) -> Any:
    if name in ("RunOptions", "run"):
        import importlib

        return getattr(importlib.import_module("vkops.runner"), name)
    raise AttributeError(f"module 'vkops.dxdispatch' has no attribute {name!r}")
