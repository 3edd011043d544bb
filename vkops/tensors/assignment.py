"""Assignment to tensors, with the conversions and the broadcasting of NumPy."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt

from vkops.gpu.memory.heaps import Spread
from vkops.gpu.run.buffer import Buffer, HostBuffer
from vkops.plan.execute import packed_bytes
from vkops.plan.view import Ints, View
from vkops.tensors.array_plan import ArrayPlan, assignment
from vkops.tensors.exchange import numpy_refusals
from vkops.tensors.index_arrays import Numbers
from vkops.tensors.index_plans import scattering
from vkops.tensors.indexing import Indexing
from vkops.tensors.shape_arguments import refuse
from vkops.tensors.views import packed


class Assignment(Indexing):
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
    def _write_plan(self, plan: ArrayPlan, inputs: Sequence[Any]) -> None:
        """Run a plan that reads tensors, or arrays to send, and writes to this tensor."""

    def __setitem__(self, index: Any, value: Any) -> None:
        """Write to the elements that ``self[index]`` is a view or a copy of, as NumPy does.

        The value is an array, a tensor, a scalar or a nested list. It is broadcast to the shape of
        ``self[index]``, and converted to the dtype: arrays and tensors by any cast
        (``casting="unsafe"``), Python's numbers only where they fit. A value that shares memory
        with this tensor is read before anything is written. If an error is raised, nothing was
        written.

        Where arrays of indices select an element several times, any of its values remains. Integers
        and indices in arrays and lists are checked; indices in a tensor that are out of range are
        skipped.

        Raises:
            InvalidDescIndexError: as for ``self[index]`` (ARRAY-09).
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
        >>> x[[1, 0], [0, 2]] = 7, 8
        >>> x.numpy().tolist()
        [[0, 0, 8], [7, 6, 6]]
        """
        found = self._select(index)
        if isinstance(found, View):
            target = self._over(self.placed()[0], found)
            _write(target, assigned("SETITEM", target, target.shape, value))
            return
        view, numbers, place = found
        source = assigned("SETITEM", self, found.shape, value)

        def plan(read: View, nbytes: int) -> ArrayPlan:
            return scattering(read, view, numbers.tensor, place, nbytes, self.dtype.itemsize)

        write_indexed(self, source, numbers, found.shape, plan)

    def fill(self, value: Any) -> None:
        """Write a scalar to all elements; arrays are written by ``tensor[...] = array``.

        Raises:
            InvalidDescError: it is not a scalar, or as for assignment (ARRAY-10).
        """
        check_writable("FILL", self)
        self.placed()
        if isinstance(value, (np.ndarray, Assignment)) and value.shape:
            message = (
                f"has shape {value.shape}, must be a scalar; assign arrays with t[...] = array"
            )
            refuse("FILL", "value", message, "ARRAY-10")
        if isinstance(value, Assignment):
            self._check_device("FILL", "value", value)
            value = value.numpy()
        scalar = np.empty((), self.dtype)
        with numpy_refusals("FILL"):
            scalar.fill(value)
        _write(self, scalar)


def assigned(
    name: str, target: Assignment, shape: Ints, value: Any
) -> Assignment | npt.NDArray[Any]:
    """A value with the dtype of the tensor, to be written to elements of this shape."""
    check_writable(name, target)
    if isinstance(value, Assignment):
        target._check_device(name, "value", value)
    is_array = isinstance(value, (np.ndarray, Assignment))
    if is_array:  # before its elements are converted
        _check_broadcast(name, value.shape, shape)
        if 0 in shape:  # NumPy checks the cast of dtypes, but converts no element
            value = np.empty(0, value.dtype)
    source = _converted(target, value, name)
    if not is_array:
        _check_broadcast(name, source.shape, shape, may_drop=False)
    return source


# -- checks ----------------------------------------------------------------------------------------


def check_writable(name: str, target: Assignment) -> None:
    """Refuse a read-only view (ARRAY-10)."""
    if target._read_only:
        message = "is read-only: broadcast_to repeats its elements"
        refuse(name, "tensor", message, "ARRAY-10")


def _converted(target: Assignment, value: Any, name: str) -> Assignment | npt.NDArray[Any]:
    """A value with the target's dtype, as NumPy converts it; a tensor that has it, as it is."""
    dtype = target.dtype
    if isinstance(value, Assignment):
        base, _ = value.placed()
        if value.dtype == dtype and isinstance(base.buffer, Buffer):
            return value
        value = value.numpy()
    with numpy_refusals(name):
        if isinstance(value, np.generic):  # NumPy casts scalars by other rules than arrays
            scalar = np.empty((), dtype)
            scalar[...] = value
            return scalar
        return np.asarray(value, dtype)


def _check_broadcast(name: str, shape: Ints, wanted: Ints, *, may_drop: bool = True) -> None:
    """Refuse shapes that NumPy cannot broadcast; with ``may_drop``, leading sizes of 1 may go."""
    extra = max(0, len(shape) - len(wanted))
    fits = (may_drop or not extra) and prod(shape[:extra]) == 1
    pairs = zip(reversed(shape[extra:]), reversed(wanted), strict=False)
    if not (fits and all(n in (1, size) for n, size in pairs)):
        message = f"has shape {shape}, which cannot be broadcast to {wanted}"
        refuse(name, "value", message, "ARRAY-10")


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
        array = np.asarray(source)
        if np.may_share_memory(visible, array):  # NumPy copies some overlapping views wrongly
            array = array.copy()
        target.device.executor.exclusive(lambda: np.copyto(visible, array))
        return
    if not isinstance(source, Assignment) and view.is_contiguous and source.shape == target.shape:
        buffer.write(packed_bytes(source), view.offset * itemsize)
        return
    origin, read = _readable(source, target.shape, buffer)
    base._write_plan(assignment(read, view, base.nbytes, itemsize), [origin])


def write_indexed(
    target: Assignment,
    source: Assignment | npt.NDArray[Any],
    numbers: Numbers,
    shape: Ints,
    plan: Callable[[View, int], ArrayPlan],
) -> None:
    """Write to the elements, of this shape, that indices select.

    ``plan`` makes the plan from a view of the source and the bytes of the memory that is written.
    """
    base, _ = target.placed()
    if 0 in shape:
        return
    origin, read = _readable(source, shape, base.buffer)
    memory = numbers.memory
    if isinstance(memory, Assignment) and memory.buffer is base.buffer:
        memory = memory.copy()
    base._write_plan(plan(read, base.nbytes), [origin, memory])


def _readable(
    source: Assignment | npt.NDArray[Any], shape: Ints, target: Buffer | HostBuffer | None
) -> tuple[Any, View]:
    """The memory of a source, which is not the target's, and its view broadcast to a shape."""
    origin: Any = source
    read = packed(source.shape)
    if isinstance(source, Assignment):
        is_target = source.placed()[0].buffer is target
        origin, read = (source.copy() if is_target else source).placed()
    extra = max(0, len(read.sizes) - len(shape))
    return origin, View(read.sizes[extra:], read.strides[extra:], read.offset).broadcast(shape)


def host_view(buffer: Buffer | HostBuffer) -> npt.NDArray[np.uint8] | None:
    """The buffer's memory if it is one piece visible to the host; to be used by ``exclusive``."""
    if isinstance(buffer, HostBuffer):
        return buffer.bytes
    allocation = buffer.allocation
    if isinstance(allocation, Spread) or allocation.heap.view is None:
        return None
    return allocation.heap.view[allocation.offset : allocation.offset + allocation.nbytes]
