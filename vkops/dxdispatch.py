"""DxDispatch's JSON format: ``load_model`` reads a model, ``prepare`` checks it.

Whatever is wrong with a model raises a ModelError that names the file and the place in it.
``vkops.runner`` runs a prepared model on a device.
"""

from vkops.models.model import Model, Prepared
from vkops.models.model_reader import load_model, prepare

__all__ = ["Model", "Prepared", "load_model", "prepare"]
