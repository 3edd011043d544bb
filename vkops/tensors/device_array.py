"""Elements of a shape and a NumPy dtype in memory, and the plans that make and copy them."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from itertools import zip_longest
from math import prod
from operator import attrgetter, is_not
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import numpy.typing as npt

from vkops.arguments.values import refuse
from vkops.errors import DeviceError
from vkops.extent import Extent
from vkops.gpu.run import executor
from vkops.gpu.run.buffer import Buffer, HostBuffer
from vkops.gpu.run.program import Bound, Memory, Program
from vkops.gpu.run.streaming import Progress
from vkops.plan.view import Ints, View
from vkops.runtime.device import OperatorDevice
from vkops.tensors.array_plan import ArrayPlan, packing
from vkops.tensors.exchange import as_array
from vkops.tensors.shape_arguments import packed

if TYPE_CHECKING:
    from typing_extensions import Self

A = TypeVar("A", bound="DeviceArray")


class DeviceArray:
    """The memory of a ``Tensor``: what the modules need that its methods call."""

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

    device: OperatorDevice
    shape: Ints
    dtype: np.dtype[Any]
    size: int
    nbytes: int
    _buffer: Buffer | HostBuffer | None
    # Of a view: the tensor that owns the memory, and the view of it. One attribute, so that other
    # threads never see half of a change.
    _lazy: tuple[Self, View] | None
    _read_only: bool

    def __init__(
        self,
        device: OperatorDevice,
        shape: Ints,
        dtype: np.dtype[Any],
        *,
        on_host: bool | None = False,
    ) -> None:
        """Allocate memory: of the host if ``on_host``, or if that is None and it does not fit."""
        self._describe(device, shape, dtype)
        if self._size:
            if on_host is None:
                on_host = not device.executor.fits(self._nbytes)
            size = -(-self._nbytes // 4) * 4  # see ``words``
            self._buffer = HostBuffer(size) if on_host else Buffer(device.executor, size)

    def _describe(self, device: OperatorDevice, shape: Ints, dtype: np.dtype[Any]) -> None:
        self._device = device
        self._shape = shape
        self._dtype = dtype
        self._size = prod(shape)
        self._nbytes = self._size * dtype.itemsize
        self._buffer = self._lazy = None
        self._read_only = False

    @classmethod
    def from_array(
        cls, device: OperatorDevice, array: Any, *, on_host: bool | None = False
    ) -> Self:
        """Copy an array, or anything that NumPy makes one of, to the device."""
        source = as_array(array)
        return cls.from_arrays(device, [source], source.shape, on_host=on_host)

    @classmethod
    def from_arrays(
        cls,
        device: OperatorDevice,
        arrays: Sequence[npt.NDArray[Any]],
        shape: Ints,
        *,
        on_host: bool | None = False,
    ) -> Self:
        """Copy arrays of one dtype to the device, one after the other, as a tensor of a shape."""
        tensor = cls(device, shape, arrays[0].dtype, on_host=on_host)
        if tensor._buffer is not None:
            tensor._buffer.fill_with(arrays)
        return tensor

    @classmethod
    def over(
        cls,
        device: OperatorDevice,
        buffer: Buffer | HostBuffer | None,
        shape: Ints,
        dtype: np.dtype[Any],
    ) -> Self:
        """Make a tensor of a buffer that holds its elements."""
        tensor = cls.__new__(cls)
        tensor._describe(device, shape, dtype)
        tensor._buffer = buffer
        return tensor

    def _over(self, base: Self, view: View, *, read_only: bool = False) -> Self:
        """A view of a tensor's memory; without elements it needs none."""
        made = type(self).__new__(type(self))
        made._describe(self.device, view.sizes, self.dtype)
        made._read_only = self._read_only or read_only
        if made.size:
            made._lazy = base, view
        return made

    @classmethod
    def make(
        cls,
        plan: ArrayPlan,
        device: OperatorDevice,
        inputs: Sequence[DeviceArray | npt.NDArray[Any]],
        dtypes: Sequence[np.dtype[Any]],
        progress: Progress = None,
        targets: Sequence[Self | None] = (),
    ) -> list[Self]:
        """Run a plan; make a tensor for each result, or write to the tensor in ``targets``.

        Inputs are packed: of a view, a packed copy is read. Data that does not fit on the device is
        streamed, if all inputs are on the host.
        """
        made = list(zip_longest(plan.shapes, dtypes, targets))
        return run_program(cls, plan.program, plan.nbytes, device, inputs, made, progress)

    def _run(self, plan: ArrayPlan, inputs: Sequence[Any], dtype: np.dtype[Any]) -> Self:
        return self.make(plan, self.device, inputs, [dtype])[0]

    def _write_plan(self, plan: ArrayPlan, inputs: Sequence[Any]) -> None:
        self.make(plan, self.device, inputs, [self.dtype], targets=[self])

    # -- memory ------------------------------------------------------------------------------------

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

    def pack(self) -> Self:
        """Copy a view's elements to memory of its own, with one dispatch, and return the tensor."""
        self.placed()
        if self._lazy is not None:
            buffer = self.copy()._buffer
            with self.device.executor.exclusive():
                if self._lazy is not None:  # else another thread was faster
                    self._buffer = buffer
                    self._lazy = None
                    self._read_only = False
        return self

    def placed(self) -> tuple[Self, View]:
        """The tensor that owns the memory, and the view of it that holds the elements.

        Raises:
            DeviceError: one of the two was released.
        """
        lazy = self._lazy
        base, view = (self, packed(self.shape)) if lazy is None else lazy
        if base._buffer is None and base.size:
            raise DeviceError(f"the tensor {self.shape} {self.dtype} was released")
        return base, view

    def copy(self) -> Self:
        """The elements in memory of their own, packed."""
        base, view = self.placed()
        plan = packing[view, self.dtype.itemsize]
        return self.make(plan, self.device, [base], [self.dtype])[0]

    def release(self) -> None:
        """Give the memory back now; this tensor and its views cannot be used any more.

        A view gives up its share: the memory goes with the tensor that it is a view of. Memory
        that arrays still view, or that is bound to an operator, goes with these.
        """
        self._lazy = self._buffer = None

    def numpy(self) -> npt.NDArray[Any]:
        """The elements as a read-only array: a view where the host sees device memory."""
        base, view = self.placed()
        buffer = base._buffer
        if not self.size:
            return np.empty(self.shape, self.dtype)
        if buffer is None:  # released meanwhile
            raise DeviceError(f"the tensor {self.shape} {self.dtype} was released")
        if view.is_contiguous:
            start = view.offset * self.dtype.itemsize
            return buffer.array(start, self.nbytes).view(self.dtype).reshape(self.shape)
        if host_view(buffer) is None:
            return self.copy().numpy()
        return strided(buffer.array(0, base.nbytes), self.dtype, view)


# Read-only: with another shape or dtype, memory of other tensors would be read and written.
# ``attrgetter`` reads as fast as an attribute.
for _name, _doc in {
    "device": "The device that holds the elements.",
    "shape": "Size of each dimension, in elements, outermost first.",
    "dtype": "NumPy's type of the elements.",
    "size": "Number of elements.",
    "nbytes": "Bytes of the elements.",
}.items():
    setattr(DeviceArray, _name, property(attrgetter(f"_{_name}"), doc=_doc))


def run_program(
    kind: type[A],
    program: Program,
    nbytes: int,
    device: OperatorDevice,
    inputs: Sequence[DeviceArray | npt.NDArray[Any]],
    made: Sequence[tuple[Ints, np.dtype[Any], A | None]],
    progress: Progress = None,
) -> list[A]:
    """Run a program that uses ``nbytes`` bytes, as ``make`` runs a plan.

    ``made`` has the shape and the data type of each result, and the tensor to write to.
    """
    read = [*filter(_is_some, map(_memory, inputs))]
    on_host = nbytes > executor.MAX_UNCHECKED_BYTES and not (
        any(type(memory) is Extent and type(memory.resource) is Buffer for memory in read)
        or device.executor.fits(nbytes)
    )
    results = [
        kind(device, shape, dtype, on_host=on_host) if target is None else target
        for shape, dtype, target in made
    ]
    written: list[Any] = [*filter(_is_some, map(_memory, results))]
    if written:
        Bound(program, device.executor, read, written).run(progress)
    return results


_is_some = partial(is_not, None)


def _memory(source: DeviceArray | npt.NDArray[Any]) -> Memory | None:
    """The memory of a source's elements; None if it has none."""
    if not isinstance(source, DeviceArray):
        return source if source.size else None
    buffer = source._buffer if source._buffer is not None else source.buffer
    return None if buffer is None else Extent(buffer, 0, buffer.nbytes)


def check_device(name: str, field: str, array: DeviceArray, home: OperatorDevice) -> None:
    """Refuse a tensor whose memory a device cannot use: that of another adapter (B-02)."""
    if array.device is not home and not array.device.shares_memory_with(home):
        message = f"is on {array.device!r}, must be on {home!r}; tensor.to(device) copies it"
        refuse(name, field, message, "B-02")


def host_view(buffer: Buffer | HostBuffer) -> npt.NDArray[np.uint8] | None:
    """The buffer's memory if it is one piece visible to the host; to be used by ``exclusive``."""
    return buffer.bytes if isinstance(buffer, HostBuffer) else buffer.visible


def strided(memory: npt.NDArray[np.uint8], dtype: np.dtype[Any], view: View) -> npt.NDArray[Any]:
    """The elements of a view, in memory that the host sees, as an array."""
    strides = tuple([stride * dtype.itemsize for stride in view.strides])
    start = view.offset * dtype.itemsize
    array: npt.NDArray[Any] = np.ndarray(view.sizes, dtype, memory, start, strides)
    return array
