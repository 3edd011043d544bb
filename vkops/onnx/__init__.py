"""ONNX models of operators that only move data, on any Vulkan device.

``Model`` reads and checks, ``Session`` runs it on a device; ``backend`` is the same with ONNX's own
interface. Needs the ``onnx`` package: ``pip install vkops[onnx]``.
"""

from vkops.errors import MissingPackageError

try:
    import onnx  # noqa: F401
except ImportError as _error:
    raise MissingPackageError(
        f"ONNX models need the package {_error.name or 'onnx'}: pip install 'vkops[onnx]'",
        name=_error.name,
    ) from _error

from vkops.onnx.model import Model
from vkops.onnx.session import Session

__all__ = ["Model", "Session"]
