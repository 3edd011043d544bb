"""Tools to find errors: captures, validation, output and traces of shaders, bug reports.

``check`` runs a shader without a device, and finds its faults.
"""

from vkops.debug.interpreter.findings import Finding
from vkops.debug.shader_check import Report, check

__all__ = ["Finding", "Report", "check"]
