"""Bindings: the buffers, tensors and parts of them that callers pass to operators and shaders."""

from __future__ import annotations

from operator import index
from typing import Any

from vkops.errors import BindingError, show
from vkops.extent import Extent
from vkops.gpu.run.buffer import Buffer, HostBuffer, Resource
from vkops.gpu.run.elements import Elements
from vkops.gpu.run.open_device import OpenDevice
from vkops.plan.view import View

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


def elements(
    device: OpenDevice, shader: str, path: str, binding: Binding, *, written: bool
) -> Elements:
    """Return the elements that a binding of a shader names, where they are.

    Raises:
        BindingError: it is not a buffer on that adapter (B-02), the offset and the number of bytes
            are not integers from 0 (B-04), a tensor is to be written and is read-only, or a part of
            a view is not contiguous (B-21), it has no elements, or it is a view of host memory that
            is not contiguous (SH-12).
        DeviceError: its device is closed.
    """
    part = binding[1:] if type(binding) is tuple and len(binding) == 3 else None
    tensor = binding if part is None else binding[0]
    if not hasattr(tensor, "placed"):
        buffer, start, nbytes = resolve(device, shader, path, binding, written=False)
        found = Elements(buffer, View((nbytes,), (1,), start), 1, None)
    else:
        base, view = tensor.placed()
        buffer, dtype = base.buffer, tensor.dtype
        if written and tensor.is_read_only:
            raise BindingError(shader, path, "is read-only, must be writable", "B-21")
        # As ``Elements(...)``, without a call of Python.
        found = tuple.__new__(Elements, (buffer, view, dtype.itemsize, dtype))
        is_whole = type(buffer) is Buffer and part is None
        if is_whole and (buffer._device is device or buffer.is_on(device)):
            return found  # the usual case
        if buffer is not None:
            resolve(device, shader, path, buffer, written=False)
        if part is not None and buffer is not None:
            if not view.is_contiguous:
                message = "is a view that is not contiguous, must be: slice the tensor instead"
                raise BindingError(shader, path, message, "B-21")
            _, start, nbytes = resolve(device, shader, path, (buffer, *part), written=False)
            if part[1] is None:
                nbytes = max(0, tensor.nbytes - start)
            if start + nbytes > tensor.nbytes:
                message = f"got offset {start} and {nbytes} bytes, must end at {tensor.nbytes}"
                raise BindingError(shader, path, f"{message} or before", "SH-05")
            start += view.offset * dtype.itemsize
            found = Elements(buffer, View((nbytes,), (1,), start), 1, None)
    if buffer is None or not found.nbytes:
        raise BindingError(shader, path, "has no elements, must have some", "SH-12")
    if type(buffer) is HostBuffer and not found.view.is_contiguous:
        message = "is a view of host memory that is not contiguous, must be"
        raise BindingError(shader, path, message, "SH-12")
    return found


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
