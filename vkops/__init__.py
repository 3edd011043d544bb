"""DirectML's data-movement operators on any Vulkan device.

Importing vkops loads neither Vulkan nor Kompute; the first use of a device does.
"""

from __future__ import annotations

import importlib
from threading import RLock
from typing import TYPE_CHECKING, Any

from vkops.errors import (
    BindingError,
    DeviceError,
    FeatureLevelError,
    InvalidDescBufferError,
    InvalidDescError,
    InvalidDescIndexError,
    InvalidDescOverflowError,
    InvalidDescTypeError,
    MissingPackageError,
    ModelError,
    OutOfDeviceMemoryError,
    ShaderCompileError,
    VkopsError,
    refuse_reentry,
)

if TYPE_CHECKING:
    from vkops import dml
    from vkops.runtime.device import (
        BoundOperator,
        Buffer,
        CompiledOperator,
        CompiledShader,
        DeviceInfo,
        HostBuffer,
        Operator,
        Pending,
        StreamedOperator,
        devices,
    )
    from vkops.tensors.eager import join, slice, split
    from vkops.tensors.manipulation import (
        array_split,
        broadcast_to,
        concat,
        concatenate,
        expand_dims,
        flip,
        from_dlpack,
        permute_dims,
        squeeze,
        stack,
        unstack,
    )
    from vkops.tensors.matrices import diag, diagonal, eye, tril, triu
    from vkops.tensors.rearrangement import pad, repeat, roll, tile
    from vkops.tensors.selection import put_along_axis, take, take_along_axis
    from vkops.tensors.tensor import Device, Tensor

__version__ = "0.1.0"

# Names that need NumPy or Vulkan, by the module that is imported at their first use.
_LAZY = {
    name: module
    for module, names in {
        "vkops.runtime.device": "BoundOperator Buffer CompiledOperator CompiledShader DeviceInfo "
        "HostBuffer Operator Pending StreamedOperator devices",
        "vkops.tensors.tensor": "Device Tensor",
        "vkops.tensors.eager": "join slice split",
        "vkops.tensors.manipulation": "array_split broadcast_to concat concatenate expand_dims "
        "flip from_dlpack permute_dims squeeze stack unstack",
        "vkops.tensors.matrices": "diag diagonal eye tril triu",
        "vkops.tensors.rearrangement": "pad repeat roll tile",
        "vkops.tensors.selection": "put_along_axis take take_along_axis",
    }.items()
    for name in names.split()
}

_loading = RLock()

__all__ = [
    "BindingError",
    "BoundOperator",
    "Buffer",
    "CompiledOperator",
    "CompiledShader",
    "Device",
    "DeviceError",
    "DeviceInfo",
    "FeatureLevelError",
    "HostBuffer",
    "InvalidDescBufferError",
    "InvalidDescError",
    "InvalidDescIndexError",
    "InvalidDescOverflowError",
    "InvalidDescTypeError",
    "MissingPackageError",
    "ModelError",
    "Operator",
    "OutOfDeviceMemoryError",
    "Pending",
    "ShaderCompileError",
    "StreamedOperator",
    "Tensor",
    "VkopsError",
    "array_split",
    "broadcast_to",
    "concat",
    "concatenate",
    "devices",
    "diag",
    "diagonal",
    "dml",
    "expand_dims",
    "eye",
    "flip",
    "from_dlpack",
    "join",
    "pad",
    "permute_dims",
    "put_along_axis",
    "repeat",
    "roll",
    "slice",
    "split",
    "squeeze",
    "stack",
    "take",
    "take_along_axis",
    "tile",
    "tril",
    "triu",
    "unstack",
]


def __getattr__(name: str) -> Any:
    if name in _LAZY:
        refuse_reentry(_loading, "vkops is being imported")
        with _loading:
            # The next access finds the value in the module and does not come here.
            value = globals()[name] = getattr(importlib.import_module(_LAZY[name]), name)
        return value
    if name in {"dml", "plan", "shaders", "gpu", "dxdispatch", "onnx"}:
        return importlib.import_module(f"vkops.{name}")
    raise AttributeError(f"module 'vkops' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
