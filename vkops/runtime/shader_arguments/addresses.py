"""Addresses of tensors, which push constants and members of uniform blocks take."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from vkops.errors import BindingError
from vkops.gpu.run.open_device import OpenDevice
from vkops.runtime.bindings import resolve
from vkops.shaders.shader import Shader


def with_addresses(device: OpenDevice, shader: Shader, path: str, value: Any) -> Any:
    """Return values with the address of each tensor in them, if the shader uses addresses.

    Raises:
        BindingError: a tensor is not on that adapter (B-02), is read-only (B-21), has no elements
            or is not contiguous (SH-12).
        DeviceError: it has no address.
    """
    if not shader.module.uses_addresses:
        return value
    if hasattr(value, "placed"):
        base, _ = value.placed()
        if base.buffer is not None:
            resolve(device, shader.name, path, base.buffer, written=False)
        try:
            return value.device_address
        except BindingError as error:
            raise BindingError(shader.name, path, error.message, error.rule) from None
    if isinstance(value, Mapping):
        return {
            name: with_addresses(device, shader, f"{path}.{name}", each)
            for name, each in value.items()
        }
    if isinstance(value, (list, tuple)):
        return [
            with_addresses(device, shader, f"{path}[{number}]", each)
            for number, each in enumerate(value)
        ]
    return value
