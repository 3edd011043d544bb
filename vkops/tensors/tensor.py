"""Tensors: a shape and a NumPy dtype over device memory."""

from __future__ import annotations

from functools import lru_cache
from math import prod
from operator import attrgetter
from types import TracebackType
from typing import Any

import numpy as np
import numpy.typing as npt

from vkops.device import Device
from vkops.dml.values import Place
from vkops.errors import DeviceError
from vkops.gpu.buffer import Buffer, HostBuffer
from vkops.gpu.memory import Spread
from vkops.plan.execute import packed_bytes
from vkops.plan.view import Ints, View
from vkops.tensors.exchange import Exchange, as_array
from vkops.tensors.operators import NoOperators
from vkops.tensors.views import Views, packed


@lru_cache(maxsize=1)
def default_device() -> Device:
    """The device used for NumPy arrays when none is given: opened once, the best adapter."""
    return Device()


class Tensor(Views, Exchange, NoOperators):
    """An array in device memory, freed with this object.

    Indexing, ``transpose``, ``reshape`` and their like return views: tensors over the same memory,
    which cost nothing. A view always shows what its tensor holds, and ``view[...] = x`` writes to
    that tensor. Functions such as ``join`` read the memory of views directly; an operator that is
    bound to a view reads a packed copy, made at that moment with one dispatch.

    Results that do not fit on the device stay on the host. Operators that compute (``+``, ``==``,
    ``<``, ``in`` ...) raise a TypeError: vkops moves data and does not compute; ``t.numpy()`` does.
    Tensors are hashed by identity. A pickled tensor is restored on the default device.

    >>> import numpy as np
    >>> from vkops import Device
    >>> x = Device().tensor(np.arange(6, dtype=np.int16).reshape(2, 3))
    >>> x.shape, x.dtype, x.nbytes
    ((2, 3), dtype('int16'), 12)
    >>> x[::-1, 1:].T.numpy()
    array([[4, 1],
           [5, 2]], dtype=int16)
    >>> x[:, 1] = [7, 8]
    >>> x.numpy()
    array([[0, 7, 2],
           [3, 8, 5]], dtype=int16)
    >>> with x.copy() as y:  # y's memory is free again after this
    ...     int(y[1, 0])
    3
    """

    __slots__ = (
        "__weakref__",
        "_buffer",
        "_device",
        "_dtype",
        "_lazy",
        "_nbytes",
        "_read_only",
        "_shape",
        "_size",
    )

    device: Device
    shape: Ints
    dtype: np.dtype[Any]
    size: int
    nbytes: int
    _buffer: Buffer | HostBuffer | None
    # Of a view: the tensor whose memory it is over, and where in there its elements are. One
    # attribute, so that other threads never see half of a change.
    _lazy: tuple[Tensor, View] | None
    _read_only: bool

    def __init__(
        self, device: Device, shape: Ints, dtype: np.dtype[Any], *, on_host: bool = False
    ) -> None:
        self._describe(device, shape, dtype)
        size = self.words * 4
        if size:
            self._buffer = HostBuffer(size) if on_host else Buffer(device.executor, size)

    def _describe(self, device: Device, shape: Ints, dtype: np.dtype[Any]) -> None:
        self._device = device
        self._shape = shape
        self._dtype = dtype
        self._size = prod(shape)
        self._nbytes = self._size * dtype.itemsize
        self._buffer = self._lazy = None
        self._read_only = False

    @classmethod
    def from_array(cls, device: Device, array: Any, *, on_host: bool = False) -> Tensor:
        """Copy an array, or anything that NumPy makes one of, to the device."""
        source = as_array(array)
        tensor = cls(device, source.shape, source.dtype, on_host=on_host)
        if tensor._buffer is not None:
            tensor._buffer.fill(source)
        return tensor

    @classmethod
    def over(
        cls, device: Device, buffer: Buffer | HostBuffer | None, shape: Ints, dtype: np.dtype[Any]
    ) -> Tensor:
        """A tensor whose elements are in a buffer already."""
        tensor = cls.__new__(cls)
        tensor._describe(device, shape, dtype)
        tensor._buffer = buffer
        return tensor

    # -- what it is -------------------------------------------------------------------------------

    @property
    def words(self) -> int:
        """Words of 32 bits: whole ones, so that a descriptor of the shape can be bound (T-14)."""
        return -(-self.nbytes // 4)

    @property
    def strides(self) -> Ints:
        """Bytes from one element to the next along each dimension, in the memory of now."""
        lazy = self._lazy
        view = packed(self.shape) if lazy is None else lazy[1]
        return tuple([stride * self.dtype.itemsize for stride in view.strides])

    def __repr__(self) -> str:
        is_released = self._buffer is None and self._lazy is None and self.size
        name = "released vkops.Tensor" if is_released else "vkops.Tensor"
        return f"<{name} {self.shape} {self.dtype} on {self.device.name!r}>"

    # -- memory -----------------------------------------------------------------------------------

    @property
    def buffer(self) -> Buffer | HostBuffer | None:
        """The memory that holds the elements, row by row; None if there are none.

        Of a view that is not the whole of its tensor in the same order, it is a packed copy: each
        access makes a new one, with one dispatch.

        Raises:
            DeviceError: the tensor was released.
            OutOfDeviceMemoryError: there is no memory for the copy.
        """
        if self._buffer is not None:
            return self._buffer
        return self.placed()[0]._buffer if self.owns_buffer else self.copy()._buffer

    @property
    def owns_buffer(self) -> bool:
        """Whether ``buffer`` is the memory of the elements, and not a packed copy of them.

        Raises:
            DeviceError: the tensor was released.
        """
        base, view = self.placed()
        return base is self or (not view.offset and self.size == base.size and view.is_contiguous)

    def pack(self) -> Tensor:
        """Give a view memory of its own, with one dispatch, and return it: it is a view no more."""
        self.placed()
        if self._lazy is not None:
            buffer = self.copy()._buffer
            self.device.executor.exclusive(lambda: self._own(buffer))
        return self

    def _own(self, buffer: Buffer | HostBuffer | None) -> None:
        if self._lazy is not None:  # else another thread was faster
            self._buffer = buffer
            self._lazy = None
            self._read_only = False

    def placed(self) -> tuple[Tensor, View]:
        """The tensor whose memory this one is over, and where the elements are in there.

        Raises:
            DeviceError: one of the two was released.
        """
        lazy = self._lazy
        base, view = (self, packed(self.shape)) if lazy is None else lazy
        if base._buffer is None and base.size:
            raise DeviceError(f"the tensor {self.shape} {self.dtype} was released")
        return base, view

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
        from vkops.tensors.assignment import assign

        assign(self[index], value)

    def fill(self, value: Any) -> None:
        """Write a scalar to all elements; arrays are written by ``tensor[...] = array``.

        Raises:
            InvalidDescError: it is not a scalar, or as for assignment (ARRAY-10).
        """
        from vkops.tensors.assignment import fill

        fill(self, value)

    def copy(self) -> Tensor:
        """The elements in memory of their own, packed."""
        from vkops.tensors.movement import packing

        base, view = self.placed()
        return packing(view, self.dtype.itemsize).run(self.device, [base])[0]

    def to(self, device: Device) -> Tensor:
        """A copy on another device; the tensor itself if it is on that device.

        Raises:
            InvalidDescTypeError: it is not a Device (B-02).
            OutOfDeviceMemoryError: the copy does not fit.

        >>> import vkops
        >>> t = vkops.Device().tensor([1, 2])
        >>> t.to(t.device) is t
        True
        """
        if not isinstance(device, Device):
            raise Place("", "device", "B-02").wrong_kind(device, "a Device")
        return self if device is self.device else Tensor.from_array(device, self.numpy())

    def release(self) -> None:
        """Give the memory back now; this tensor and its views cannot be used any more.

        A view gives up its share: the memory goes with the tensor that it is a view of. Memory
        that arrays still view, or that is bound to an operator, goes with these.
        """
        self._lazy = self._buffer = None

    def __enter__(self) -> Tensor:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.release()

    def numpy(self) -> npt.NDArray[Any]:
        """The elements as a read-only array: a view where the host sees device memory."""
        base, view = self.placed()
        buffer = base._buffer
        if not self.size:
            return np.empty(self.shape, self.dtype)
        if buffer is None:  # released meanwhile
            raise DeviceError(f"the tensor {self.shape} {self.dtype} was released")
        if base is self:
            return buffer.array(0, self.nbytes).view(self.dtype).reshape(self.shape)
        itemsize = self.dtype.itemsize
        start = view.offset * itemsize
        if view.is_contiguous:
            return buffer.array(start, self.nbytes).view(self.dtype).reshape(self.shape)
        if host_view(buffer) is None:
            return self.copy().numpy()
        strides = tuple([stride * itemsize for stride in view.strides])
        memory = buffer.array(0, base.nbytes)
        array: npt.NDArray[Any] = np.ndarray(self.shape, self.dtype, memory, start, strides)
        return array

    def __copy__(self) -> Tensor:
        return self.copy()

    def __deepcopy__(self, memo: Any) -> Tensor:
        return self.copy()

    def __reduce__(self) -> tuple[Any, ...]:
        # As bytes: NumPy's own pickles forget the order of those.
        return _unpickled, (packed_bytes(self.numpy()), self.dtype, self.shape)

    def _over(self, base: Tensor, view: View) -> Tensor:
        """A view of a tensor's memory; without elements it needs none."""
        made = Tensor.__new__(Tensor)
        made._describe(self.device, view.sizes, self.dtype)
        made._read_only = self._read_only
        if made.size:
            made._lazy = base, view
        return made


# Read-only: with another shape or dtype, memory of other tensors would be read and written.
# ``attrgetter`` reads as fast as an attribute.
for _name, _doc in {
    "device": "The device that holds the elements.",
    "shape": "Size of each dimension, in elements, outermost first.",
    "dtype": "NumPy's type of the elements.",
    "size": "Number of elements.",
    "nbytes": "Bytes of the elements.",
}.items():
    setattr(Tensor, _name, property(attrgetter(f"_{_name}"), doc=_doc))


def _unpickled(elements: npt.NDArray[np.uint8], dtype: np.dtype[Any], shape: Ints) -> Tensor:
    return Tensor.from_array(default_device(), elements.view(dtype).reshape(shape))


def host_view(buffer: Buffer | HostBuffer) -> npt.NDArray[np.uint8] | None:
    """The buffer's memory where the host sees it in one piece, to be used by ``exclusive``."""
    if isinstance(buffer, HostBuffer):
        return buffer.bytes
    place = buffer.place
    if isinstance(place, Spread) or place.heap.view is None:
        return None
    return place.heap.view[place.offset : place.offset + place.nbytes]
