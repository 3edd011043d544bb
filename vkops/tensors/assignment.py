"""Assignment to tensors, with the conversions and the broadcasting of NumPy."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from math import prod
from typing import Any, Union

import numpy as np
import numpy.typing as npt

from vkops.errors import OutOfDeviceMemoryError, VkopsError, invalid_desc_error
from vkops.gpu.buffer import Buffer, HostBuffer
from vkops.plan.execute import packed_bytes
from vkops.plan.view import Ints, View
from vkops.tensors.arguments import refuse
from vkops.tensors.movement import assignment, check_device
from vkops.tensors.tensor import Tensor, host_view

Value = Union[Tensor, "npt.NDArray[Any]"]
"""A value of the target's dtype."""


def assign(target: Tensor, value: Any) -> None:
    """Write a value to all elements of a tensor; see ``Tensor.__setitem__``."""
    _check_writable("SETITEM", target)
    if isinstance(value, Tensor):
        check_device("SETITEM", "value", value, target.device)
    is_array = isinstance(value, (np.ndarray, Tensor))
    if is_array:  # before its elements are converted
        _check_broadcast(value.shape, target.shape)
        if not target.size:  # NumPy asks whether it could be cast, and casts no element
            value = np.empty(0, value.dtype)
    source = _converted(target, value)
    if not is_array:
        _check_broadcast(source.shape, target.shape, may_drop=False)
    _write(target, source)


def fill(target: Tensor, value: Any) -> None:
    """Write a scalar to all elements of a tensor; see ``Tensor.fill``."""
    _check_writable("FILL", target)
    target.placed()
    if isinstance(value, (np.ndarray, Tensor)) and value.shape:
        message = f"has shape {value.shape}, must be a scalar; assign arrays with t[...] = array"
        refuse("FILL", "value", message, "ARRAY-10")
    if isinstance(value, Tensor):
        check_device("FILL", "value", value, target.device)
        value = value.numpy()
    scalar = np.empty((), target.dtype)
    with _refusals("FILL"):
        scalar.fill(value)
    _write(target, scalar)


# -- checks ----------------------------------------------------------------------------------------


def _check_writable(name: str, target: Tensor) -> None:
    if target._read_only:
        message = "is read-only: broadcast_to repeats its elements"
        refuse(name, "tensor", message, "ARRAY-10")


def _converted(target: Tensor, value: Any) -> Value:
    """A value with the target's dtype, as NumPy converts it; a tensor where the device reads it."""
    dtype = target.dtype
    if isinstance(value, Tensor):
        base, _ = value.placed()
        target_base, _ = target.placed()
        in_sight = target_base.buffer is None or host_view(target_base.buffer) is not None
        if value.dtype == dtype and isinstance(base.buffer, Buffer) and not in_sight:
            return value
        value = value.numpy()
    with _refusals("SETITEM"):
        if isinstance(value, np.generic):  # assigned as a scalar, which arrays are cast unlike
            scalar = np.empty((), dtype)
            scalar[...] = value
            return scalar
        return np.asarray(value, dtype)


@contextmanager
def _refusals(name: str) -> Iterator[None]:
    """Raise the errors of NumPy's conversions as those of vkops."""
    try:
        yield
    except MemoryError as error:
        raise OutOfDeviceMemoryError(f"{name} value: the host has no memory left") from error
    except VkopsError:  # a list holds a tensor that was released
        raise
    except Exception as error:
        reason = " ".join(str(error).split())
        kind = invalid_desc_error(error)
        raise kind(name, "value", f"NumPy says: {reason}", "ARRAY-10") from error


def _check_broadcast(shape: Ints, wanted: Ints, *, may_drop: bool = True) -> None:
    """Refuse what NumPy does not broadcast; it drops leading dimensions of size 1 of arrays."""
    extra = max(0, len(shape) - len(wanted))
    fits = (may_drop or not extra) and prod(shape[:extra]) == 1
    pairs = zip(reversed(shape[extra:]), reversed(wanted), strict=False)
    if not (fits and all(n in (1, size) for n, size in pairs)):
        message = f"has shape {shape}, which cannot be broadcast to {wanted}"
        refuse("SETITEM", "value", message, "ARRAY-10")


# -- writing ---------------------------------------------------------------------------------------


def _write(target: Tensor, source: Value) -> None:
    """Write where the memory is: by the host if it sees it, else by the device."""
    base, view = target.placed()
    buffer = base.buffer
    if not target.size or buffer is None:
        return
    itemsize = target.dtype.itemsize
    memory = host_view(buffer)
    if memory is not None:
        if isinstance(buffer, HostBuffer):
            buffer.settle()
        strides = tuple([stride * itemsize for stride in view.strides])
        seen: npt.NDArray[Any] = np.ndarray(
            target.shape, target.dtype, memory, view.offset * itemsize, strides
        )
        target.device.executor.exclusive(lambda: np.copyto(seen, np.asarray(source)))
        return
    if not isinstance(source, Tensor):
        if view.is_contiguous and source.shape == target.shape:
            buffer.write(packed_bytes(source), view.offset * itemsize)
            return
        source = Tensor.from_array(target.device, source)
    elif source.placed()[0].buffer is buffer:
        source = source.copy()
    origin, read = source.placed()
    extra = max(0, source.ndim - target.ndim)
    read = View(read.sizes[extra:], read.strides[extra:], read.offset).broadcast(target.shape)
    movement = assignment(read, view, base.nbytes, itemsize)
    movement.make(target.device, [origin], [target.dtype], targets=[base])
