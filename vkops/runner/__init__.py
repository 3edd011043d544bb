"""Run models and shaders on a device, as the command line does.

``run`` runs a prepared DxDispatch model, with ``RunOptions``. ``model_files`` and ``shader_files``
run or check files; a wrong model, file or option raises a ModelError before anything has run.
"""

from vkops.runner.dispatch_timing import RunOptions
from vkops.runner.model_execution import run

__all__ = ["RunOptions", "run"]
