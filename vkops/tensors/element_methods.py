"""The methods of ``Tensor`` that select, read and write elements."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from vkops.arguments.values import ArgumentName, boolean, integer, refuse
from vkops.errors import InvalidDescError, InvalidDescTypeError, show
from vkops.gpu.memory.pinned import access
from vkops.gpu.run.buffer import Buffer
from vkops.gpu.run.event import Event
from vkops.plan.view import Ints, View
from vkops.tensors import elements
from vkops.tensors import shape_arguments as shapes
from vkops.tensors.array_plan import put_indices
from vkops.tensors.device_array import DeviceArray, check_device
from vkops.tensors.exchange import numpy_refusals
from vkops.tensors.view_methods import ViewMethods

if TYPE_CHECKING:
    from typing_extensions import Self


class ElementMethods(ViewMethods):
    """Indexing and assignment of a ``Tensor``."""

    __slots__ = ()

    def __getitem__(self, index: Any) -> Self:
        """A view by integers, slices, ``...`` and ``None``; a copy where an array is among them.

        Arrays of integers (arrays, lists and tensors) select indices of an axis; several are
        broadcast together and select elements. Arrays of Booleans select where they are true; for
        one in a tensor, the call waits until their number is known, and cannot be recorded. The
        shape of the result is as in NumPy. Integers and indices in arrays and lists are checked.
        Indices in a tensor are of int32, int64, uint32 or uint64, and are not read back: those that
        are out of range are clamped.

        Raises:
            InvalidDescIndexError: an index that is not in a tensor is out of range, or an index is
                of another kind (ARRAY-09).
            InvalidDescError: a tensor of another adapter (B-02).
            OutOfDeviceMemoryError: no memory for the copy, or more indices than a buffer can hold.

        >>> import vkops
        >>> x = vkops.Device().tensor([[1, 2], [3, 4], [5, 6]])
        >>> x[1:, 0].numpy().tolist()
        [3, 5]
        >>> x[[2, 0, 2], ::-1].numpy().tolist()
        [[6, 5], [2, 1], [6, 5]]
        >>> x[[True, False, True], -1].numpy().tolist()
        [2, 6]
        """
        selected = elements.select(self, index)
        if isinstance(selected, View):
            return self._over(self.placed()[0], selected)
        return elements.gather(self, selected)

    def item(self, *index: Any) -> Any:
        """The only element, or the one at an index, as an object of Python.

        The index is one number per dimension, or one number that counts the elements row by row.

        Raises:
            InvalidDescError: there are several elements, or none (ARRAY-07).
            InvalidDescIndexError: as for ``self[index]`` (ARRAY-09).

        >>> import vkops
        >>> x = vkops.Device().tensor([[1, 2], [3, 4]])
        >>> x.item(1, 0), x.item(-1), x[0, 0].item()
        (3, 4, 1)
        """
        if len(index) == 1 and not isinstance(index[0], tuple):
            argument = integer(index[0], ArgumentName("ITEM", "index", "ARRAY-09"))
            if not -self.size <= argument < self.size:
                message = f"got {show(argument)}, must be {-self.size} to {self.size - 1}"
                shapes.refuse_index(elements.INDEX, message)
            index = tuple(map(int, np.unravel_index(argument % self.size, self.shape)))
        chosen = self[index[0] if len(index) == 1 else index] if index else self
        if chosen.size != 1:
            message = f"has {chosen.size} elements, must have 1"
            raise InvalidDescError("ITEM", "tensor", message, "ARRAY-07")
        return chosen.numpy().item()

    def __iter__(self) -> Iterator[Self]:
        """Views at each index of the first dimension."""
        if not self.shape:
            raise InvalidDescTypeError("", "iter", "the tensor has no dimensions", "ARRAY-01")
        return (self[index] for index in range(self.shape[0]))

    def __setitem__(self, index: Any, value: Any) -> None:
        """Write to the elements that ``self[index]`` is a view or a copy of, as NumPy does.

        The value is an array, a tensor, a scalar or a nested list. It is broadcast to the shape of
        ``self[index]``, and converted to the dtype: arrays and tensors by any cast
        (``casting="unsafe"``), Python's numbers only where they fit. A value that shares memory
        with this tensor is read before anything is written. If an error is raised, nothing was
        written.

        Where arrays of indices select an element several times, any of its values remains. Integers
        and indices in arrays and lists are checked; indices in a tensor that are out of range are
        skipped. A scalar is written where a tensor of Booleans of this shape is true without a
        wait.

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
        if elements.has_masked_writes(self, index) and np.ndim(value) == 0:
            elements.write_where(self, index, self._assigned("ASSIGNMENT", (), value))
            return
        selected = elements.select(self, index)
        if isinstance(selected, View):
            target = self._over(self.placed()[0], selected)
            elements.write(target, target._assigned("ASSIGNMENT", target.shape, value))
            return
        source = self._assigned("ASSIGNMENT", selected.shape, value)
        elements.write_indexed(self, source, put_indices, selected, selected.shape)

    def set(self, value: Any, *, wait: bool = True) -> Event:
        """Write to all elements, as ``tensor[...] = value`` does.

        Args:
            value: an array, a tensor, a scalar or a nested list, as for assignment.
            wait: with False, return before the device has read a pinned array (``Device.pinned``)
                of this shape and dtype, which belongs to the device until the event is done. All
                other values have been read when this returns.

        Returns:
            an ``Event``, which is done when the value can be changed.

        Raises:
            InvalidDescError: as for assignment, or ``wait`` is not True or False (ARRAY-10).
            OutOfDeviceMemoryError: no memory to send the value.

        >>> import vkops
        >>> device = vkops.Device()
        >>> x, numbers = device.empty(2, "int32"), device.pinned(2, "int32")
        >>> numbers[:] = 4, 5
        >>> event = x.set(numbers, wait=False)
        >>> x.tolist(), event.done
        ([4, 5], True)
        """
        waits = boolean(wait, ArgumentName("SET", "wait", "ARRAY-10"))
        source = self._assigned("SET", self.shape, value)
        if waits:
            elements.write(self, source)
        return Event(self.device, 0 if waits else elements.begin_to_write(self, source))

    def fill(self, value: Any) -> None:
        """Write a scalar to all elements; arrays are written by ``tensor[...] = array``.

        Raises:
            InvalidDescError: it is not a scalar, or as for assignment (ARRAY-10).
        """
        self._check_writable("FILL")
        if isinstance(value, (np.ndarray, DeviceArray)) and value.shape:
            message = f"has shape {value.shape}, must be a scalar"
            message += "; assign arrays with t[...] = array"
            refuse("FILL", "value", message, "ARRAY-10")
        if isinstance(value, DeviceArray):
            check_device("FILL", "value", value, self.device)
            value = value.numpy()
        scalar = np.empty((), self.dtype)
        with numpy_refusals("FILL"):
            scalar.fill(value)
        elements.write(self, scalar)

    def _check_writable(self, name: str) -> None:
        """Raise an error for a read-only view (ARRAY-10)."""
        if self._read_only:
            refuse(name, "tensor", "is read-only: broadcast_to repeats its elements", "ARRAY-10")

    def _assigned(self, name: str, shape: Ints, value: Any) -> DeviceArray | npt.NDArray[Any]:
        """Return a value with the dtype of this tensor, to be written to elements of this shape."""
        self._check_writable(name)
        if isinstance(value, DeviceArray):
            check_device(name, "value", value, self.device)
        is_array = isinstance(value, (np.ndarray, DeviceArray))
        if is_array:  # checked before the elements are converted
            shapes.check_broadcast(name, value.shape, shape)
            if 0 in shape:  # NumPy checks the cast of dtypes, but converts no element
                value = np.empty(0, value.dtype)
        source = self._converted(name, value)
        if not is_array:
            shapes.check_broadcast(name, source.shape, shape, may_drop=False)
        return source

    def _converted(self, name: str, value: Any) -> DeviceArray | npt.NDArray[Any]:
        """Return a value as NumPy converts it to this dtype, or a tensor that has the dtype."""
        if isinstance(value, DeviceArray):
            base, _ = value.placed()
            if value.dtype == self.dtype and isinstance(base._buffer, Buffer):
                return value
            value = value.numpy()
        with numpy_refusals(name):
            if isinstance(value, np.generic):  # NumPy casts its scalars by other rules than arrays
                scalar = np.empty((), self.dtype)
                scalar[...] = value
                return scalar
            if isinstance(value, np.ndarray):
                access(value)
            return np.asarray(value, self.dtype)
