"""DxDispatch models: read, checked and run, with DxDispatch's words on the way out.

``load_model`` reads, ``prepare`` checks at a feature level, ``run`` runs on a device.
"""

from vkops.dxdispatch.checks import Prepared, prepare
from vkops.dxdispatch.executor import run
from vkops.dxdispatch.model import Model
from vkops.dxdispatch.parse import load_model
from vkops.dxdispatch.timing import RunOptions

__all__ = ["Model", "Prepared", "RunOptions", "load_model", "prepare", "run"]
