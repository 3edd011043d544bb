"""Tools to find errors: captures, validation, output and traces of shaders, bug reports.

``check`` runs a shader without a device, and finds its faults.
"""

from vkops.debug.shader_check import Report, check
from vkops.interpreter.findings import Finding

__all__ = ["Finding", "Report", "check"]
