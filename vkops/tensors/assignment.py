"""Assignment to tensors, with the conversions and the broadcasting of NumPy."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt

from vkops.errors import OutOfDeviceMemoryError, VkopsError, from_builtin
from vkops.gpu.buffer import Buffer, HostBuffer
from vkops.gpu.memory import Spread
from vkops.plan.execute import packed_bytes
from vkops.plan.view import Ints, View
from vkops.tensors.array_plan import ArrayPlan, assignment
from vkops.tensors.shape_arguments import refuse
from vkops.tensors.views import Views, packed


class Assignment(Views):
    """Methods of tensors that write to their elements."""

    __slots__ = ()

    device: Any
    nbytes: int
    _read_only: bool

    @property
    @abstractmethod
    def buffer(self) -> Buffer | HostBuffer | None:
        """The memory that holds the elements, row by row; None if there are none."""

    @abstractmethod
    def numpy(self) -> npt.NDArray[Any]:
        """The elements as an array."""

    @abstractmethod
    def _check_device(self, name: str, value: Any) -> None:
        """Refuse a tensor of another adapter (B-02)."""

    @abstractmethod
    def _write_plan(self, plan: ArrayPlan, source: Any) -> None:
        """Run a plan that reads a tensor, or an array to send, and writes to this tensor."""

    def __setitem__(self, index: Any, value: Any) -> None:
        """Write to the elements that ``self[index]`` is a view of, as NumPy does.

        The value is an array, a tensor, a scalar or a nested list. It is broadcast to the shape of
        the view, and converted to the dtype: arrays and tensors by any cast (``casting="unsafe"``),
        Python's numbers only where they fit. A value that shares memory with this tensor is read
        before anything is written. If an error is raised, nothing was written.

        Raises:
            InvalidDescIndexError: the index is not one of basic indexing (ARRAY-09).
            InvalidDescError: the value cannot be broadcast or converted, or this is a view made by
                ``broadcast_to``, which is read-only as in NumPy (ARRAY-10), or it is a tensor of
                another adapter (B-02).
            OutOfDeviceMemoryError: no memory to send the value.

        >>> import vkops
        >>> x = vkops.tile(0, (2, 3))
        >>> x[1] = [4, 5, 6]
        >>> x[:, :2] = x[:, 1:]
        >>> x.numpy().tolist()
        [[0, 0, 0], [5, 6, 6]]
        """
        _assign(self[index], value)

    def fill(self, value: Any) -> None:
        """Write a scalar to all elements; arrays are written by ``tensor[...] = array``.

        Raises:
            InvalidDescError: it is not a scalar, or as for assignment (ARRAY-10).
        """
        _check_writable("FILL", self)
        self.placed()
        if isinstance(value, (np.ndarray, Assignment)) and value.shape:
            message = (
                f"has shape {value.shape}, must be a scalar; assign arrays with t[...] = array"
            )
            refuse("FILL", "value", message, "ARRAY-10")
        if isinstance(value, Assignment):
            self._check_device("FILL", value)
            value = value.numpy()
        scalar = np.empty((), self.dtype)
        with numpy_refusals("FILL"):
            scalar.fill(value)
        _write(self, scalar)


def _assign(target: Assignment, value: Any) -> None:
    _check_writable("SETITEM", target)
    if isinstance(value, Assignment):
        target._check_device("SETITEM", value)
    is_array = isinstance(value, (np.ndarray, Assignment))
    if is_array:  # before its elements are converted
        _check_broadcast(value.shape, target.shape)
        if not target.size:  # NumPy checks the cast of dtypes, but converts no element
            value = np.empty(0, value.dtype)
    source = _converted(target, value)
    if not is_array:
        _check_broadcast(source.shape, target.shape, may_drop=False)
    _write(target, source)


# -- checks ----------------------------------------------------------------------------------------


def _check_writable(name: str, target: Assignment) -> None:
    if target._read_only:
        message = "is read-only: broadcast_to repeats its elements"
        refuse(name, "tensor", message, "ARRAY-10")


def _converted(target: Assignment, value: Any) -> Assignment | npt.NDArray[Any]:
    """A value with the target's dtype, as NumPy converts it; a tensor where the device reads it."""
    dtype = target.dtype
    if isinstance(value, Assignment):
        base, _ = value.placed()
        target_base, _ = target.placed()
        is_visible = target_base.buffer is None or host_view(target_base.buffer) is not None
        if value.dtype == dtype and isinstance(base.buffer, Buffer) and not is_visible:
            return value
        value = value.numpy()
    with numpy_refusals("SETITEM"):
        if isinstance(value, np.generic):  # NumPy casts scalars by other rules than arrays
            scalar = np.empty((), dtype)
            scalar[...] = value
            return scalar
        return np.asarray(value, dtype)


@contextmanager
def numpy_refusals(name: str, field: str = "value", rule: str = "ARRAY-10") -> Iterator[None]:
    """Raise the errors of NumPy's conversions as those of vkops."""
    try:
        yield
    except MemoryError as error:
        raise OutOfDeviceMemoryError(f"{name} {field}: the host has no memory left") from error
    except VkopsError:  # a list holds a tensor that was released
        raise
    except Exception as error:
        raise from_builtin(error, name, field, rule, "NumPy says: ") from error


def _check_broadcast(shape: Ints, wanted: Ints, *, may_drop: bool = True) -> None:
    """Refuse shapes that NumPy cannot broadcast; with ``may_drop``, leading sizes of 1 may go."""
    extra = max(0, len(shape) - len(wanted))
    fits = (may_drop or not extra) and prod(shape[:extra]) == 1
    pairs = zip(reversed(shape[extra:]), reversed(wanted), strict=False)
    if not (fits and all(n in (1, size) for n, size in pairs)):
        message = f"has shape {shape}, which cannot be broadcast to {wanted}"
        refuse("SETITEM", "value", message, "ARRAY-10")


# -- writing ---------------------------------------------------------------------------------------


def _write(target: Assignment, source: Assignment | npt.NDArray[Any]) -> None:
    """Write by the host if the memory is visible to it, else by the device."""
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
        visible: npt.NDArray[Any] = np.ndarray(
            target.shape, target.dtype, memory, view.offset * itemsize, strides
        )
        target.device.executor.exclusive(lambda: np.copyto(visible, np.asarray(source)))
        return
    if not isinstance(source, Assignment):
        if view.is_contiguous and source.shape == target.shape:
            buffer.write(packed_bytes(source), view.offset * itemsize)
            return
        origin: Any = source
        read = packed(source.shape)
    else:
        if source.placed()[0].buffer is buffer:
            source = source.copy()
        origin, read = source.placed()
    extra = max(0, len(read.sizes) - target.ndim)
    read = View(read.sizes[extra:], read.strides[extra:], read.offset).broadcast(target.shape)
    base._write_plan(assignment(read, view, base.nbytes, itemsize), origin)


def host_view(buffer: Buffer | HostBuffer) -> npt.NDArray[np.uint8] | None:
    """The buffer's memory if it is one piece visible to the host; to be used by ``exclusive``."""
    if isinstance(buffer, HostBuffer):
        return buffer.bytes
    allocation = buffer.allocation
    if isinstance(allocation, Spread) or allocation.heap.view is None:
        return None
    return allocation.heap.view[allocation.offset : allocation.offset + allocation.nbytes]
