"""DirectML's data-movement operators on any Vulkan device.

Importing vkops loads neither Vulkan nor Kompute; the first use of a device does.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from vkops.errors import (
    BindingError,
    DeviceError,
    FeatureLevelError,
    InvalidDescError,
    InvalidDescTypeError,
    ModelError,
    OutOfDeviceMemoryError,
    ShaderCompileError,
    VkopsError,
)

if TYPE_CHECKING:
    from vkops.device import (
        BoundOperator,
        Buffer,
        CompiledOperator,
        Device,
        DeviceInfo,
        HostBuffer,
        Operator,
        StreamedOperator,
        devices,
    )
    from vkops.eager import join, slice, split
    from vkops.tensor import Tensor

__version__ = "0.1.0"

# Names that need NumPy or Vulkan, and the module that brings each.
_LAZY = {
    **dict.fromkeys(
        (
            "BoundOperator",
            "Buffer",
            "CompiledOperator",
            "Device",
            "DeviceInfo",
            "HostBuffer",
            "Operator",
            "StreamedOperator",
            "devices",
        ),
        "vkops.device",
    ),
    "Tensor": "vkops.tensor",
    **dict.fromkeys(("join", "slice", "split"), "vkops.eager"),
}

__all__ = [
    "BindingError",
    "BoundOperator",
    "Buffer",
    "CompiledOperator",
    "Device",
    "DeviceError",
    "DeviceInfo",
    "FeatureLevelError",
    "HostBuffer",
    "InvalidDescError",
    "InvalidDescTypeError",
    "ModelError",
    "Operator",
    "OutOfDeviceMemoryError",
    "ShaderCompileError",
    "StreamedOperator",
    "Tensor",
    "VkopsError",
    "devices",
    "dml",
    "join",
    "slice",
    "split",
]


def __getattr__(name: str) -> Any:
    if name in _LAZY:
        # Kept: the next access finds it without asking here.
        value = globals()[name] = getattr(importlib.import_module(_LAZY[name]), name)
        return value
    if name in {"dml", "plan", "shaders", "gpu", "dxdispatch", "onnx"}:
        return importlib.import_module(f"vkops.{name}")
    raise AttributeError(f"module 'vkops' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
