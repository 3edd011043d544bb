"""DxDispatch's JSON format: ``load_model`` reads a model, ``prepare`` checks it.

Whatever is wrong with a model raises a ModelError that names the file and the place in it.
``vkops.runner.model_execution`` runs a prepared model on a device.
"""

from vkops.dxdispatch.json_model import Model
from vkops.dxdispatch.model_checks import Prepared, prepare
from vkops.dxdispatch.model_reader import load_model

__all__ = ["Model", "Prepared", "load_model", "prepare"]
