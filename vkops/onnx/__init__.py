"""Run ONNX models of operators that only move data, on any Vulkan device.

A model passes through these modules: ``model_file`` reads it, ``onnx_model`` checks it,
``static_checks`` finds faults that do not depend on inputs, ``lowering`` and ``operators`` write
its outputs as regions of its inputs, ``specialization`` makes plans of them, and ``onnx_session``
runs these. ``backend`` is the same behind ONNX's own interface.

Needs the ``onnx`` package: ``pip install 'vkops[onnx]'``.
"""

from vkops.errors import MissingPackageError

try:
    import onnx  # noqa: F401
except ImportError as _error:
    raise MissingPackageError(
        f"ONNX models need the package {_error.name or 'onnx'}: pip install 'vkops[onnx]'",
        name=_error.name,
    ) from _error

from vkops.onnx.onnx_model import Model
from vkops.onnx.onnx_session import Session
from vkops.onnx.providers import get_available_providers
from vkops.onnx.session_options import SessionOptions
from vkops.onnx.value_info import ModelMetadata, NodeArg, ValueInfo

__all__ = [
    "Model",
    "ModelMetadata",
    "NodeArg",
    "Session",
    "SessionOptions",
    "ValueInfo",
    "get_available_providers",
]
