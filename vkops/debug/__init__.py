"""Tools to find errors: captures, validation, output and traces of shaders, bug reports.

``check`` runs a shader without a device, and finds its faults; ``checking`` does so for each
dispatch of a program.
"""

from vkops.debug.dispatch_checks import CheckError, Checks, checking
from vkops.debug.sarif import write_sarif
from vkops.debug.shader_check import Report, check
from vkops.interpreter.findings import Finding

__all__ = ["CheckError", "Checks", "Finding", "Report", "check", "checking", "write_sarif"]
