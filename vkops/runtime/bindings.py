"""Bindings: the buffers, tensors and parts of them that callers pass to operators and shaders."""

from __future__ import annotations

from operator import index
from typing import Any

from vkops.errors import BindingError, show
from vkops.extent import Extent
from vkops.gpu.run.buffer import Buffer, Resource
from vkops.gpu.run.open_device import OpenDevice

Binding = Any
"""None, a Buffer, a Tensor, or (buffer or tensor, byte offset, bytes)."""


def resolve(
    device: OpenDevice, operator: str, path: str, binding: Binding, *, written: bool
) -> Extent:
    """Return the bytes of a buffer that a binding names.

    Raises:
        BindingError: it is not a buffer on that adapter (B-02), the offset and the number of bytes
            are not integers from 0 (B-04), or it is to be written and is a view (B-21).
        DeviceError: its device is closed.
    """
    target, offset, nbytes = binding, 0, None
    if isinstance(binding, tuple) and len(binding) == 3:
        target, offset, nbytes = binding
    buffer = target
    if type(target) is not Buffer:
        if written and not getattr(target, "owns_buffer", True):
            message = "got a view of a tensor, whose packed copy would be written: must be a tensor"
            raise BindingError(operator, path, f"{message} with memory of its own", "B-21")
        buffer = getattr(target, "buffer", target)
        if not isinstance(buffer, Resource):
            message = f"got {show(binding)}, must be a buffer or tensor, or (buffer, offset, bytes)"
            raise BindingError(operator, path, message, "B-02")
    if not buffer.is_on(device):
        message = f"is {buffer!r}, must be on {device.info.label}; tensor.to(device) copies it"
        raise BindingError(operator, path, message, "B-02")
    if buffer is binding:
        return Extent(buffer, 0, buffer.nbytes)
    start = _count(offset)
    count = None if nbytes is None else _count(nbytes)
    if start is None or (count is None and nbytes is not None):
        message = f"got offset {show(offset)} and {show(nbytes)} bytes, must be integers from 0"
        raise BindingError(operator, path, message, "B-04")
    return Extent(buffer, start, max(0, buffer.nbytes - start) if count is None else count)


def _count(value: Any) -> int | None:
    """A non-negative integer below 2**63 as int; None for any other value."""
    try:
        number = index(value)
    except TypeError:
        return None
    return None if isinstance(value, bool) or number >> 63 else number


def are_integers(value: Any) -> bool:
    """Whether a value is an int, or a tuple of these: the same each time that it is equal."""
    return type(value) is int or (type(value) is tuple and {*map(type, value)} == {int})


def is_memory(binding: Any) -> bool:
    """Whether a binding is memory of a device, or a part of it."""
    target = binding[0] if isinstance(binding, tuple) and len(binding) == 3 else binding
    return hasattr(target, "placed") or isinstance(target, Resource)
