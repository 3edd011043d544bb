"""Arrays of a shape and a NumPy dtype in device memory, and the plans that create and copy them."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from itertools import zip_longest
from math import prod
from operator import attrgetter
from sys import getrefcount
from typing import TYPE_CHECKING, Any, Literal, TypeVar, overload
from weakref import ref

import numpy as np
import numpy.typing as npt

from vkops.arguments.values import ArgumentName, boolean, refuse
from vkops.errors import BindingError, DeviceError, OutOfDeviceMemoryError
from vkops.extent import Extent
from vkops.gpu.kernels.choice import MAX_DIMS
from vkops.gpu.memory.pinned import access
from vkops.gpu.memory.pools import Allocation
from vkops.gpu.run import open_device
from vkops.gpu.run.asynchronous import ended
from vkops.gpu.run.buffer import Buffer, HostBuffer, MemoryView, read_into
from vkops.gpu.run.event import Event
from vkops.gpu.run.handles import TensorHandles
from vkops.gpu.run.program import BoundProgram, Program, TensorMemory
from vkops.gpu.run.streaming import Progress
from vkops.gpu.run.vulkan_device import VulkanDevice
from vkops.plan.execute import packed_bytes
from vkops.plan.view import Ints, View
from vkops.runtime.device import OperatorDevice
from vkops.tensors.array_plan import ArrayPlan, gathering, packing
from vkops.tensors.exchange import as_array
from vkops.tensors.shape_arguments import packed

if TYPE_CHECKING:
    from typing_extensions import Self

A = TypeVar("A", bound="DeviceArray")

_ALONE = 4
"""The number of references to a buffer in ``_snapshot`` if nothing else refers to it.

They are those of the tensor, of the view, of the variable and of the argument of ``getrefcount``.
Under a debugger there are more; ``numpy()`` then copies.
"""

_ALLOCATION_ALONE = 2
"""The same number for the buffer's allocation: those of the buffer and of the argument.

Work that can run again refers to the allocation, and not to the buffer.
"""

_HAS_GIL: bool = getattr(sys, "_is_gil_enabled", lambda: True)()
"""Whether one thread of Python runs at a time, which then sees all that others have done."""

_NOTHING = np.frombuffer(b"", np.uint8)
"""The memory of arrays without elements."""


def _read_only(name: str, doc: str) -> Any:
    """Return a property that cannot be set, as another shape or dtype would read memory of others.

    ``attrgetter`` reads as fast as an attribute.
    """
    return property(attrgetter(name), doc=doc)


class DeviceArray:
    """The memory of a ``Tensor``, with the operations that modules below ``Tensor`` use."""

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

    device: OperatorDevice = _read_only("_device", "The device that holds the elements.")
    shape: Ints = _read_only("_shape", "Size of each dimension, in elements, outermost first.")
    dtype: np.dtype[Any] = _read_only("_dtype", "NumPy's type of the elements.")
    size: int = _read_only("_size", "Number of elements.")
    nbytes: int = _read_only("_nbytes", "Bytes of the elements.")
    is_read_only: bool = _read_only(
        "_read_only", "Whether elements cannot be assigned to; see ``flags``."
    )
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
        """Allocate memory: on the host if ``on_host``, or if it is None and the device is full."""
        self._describe(device, shape, dtype)
        if self._size:
            if on_host is None:
                on_host = not device.fits(self._nbytes)
            size = -(-self._nbytes // 4) * 4  # see ``words``
            try:
                self._buffer = HostBuffer(size) if on_host else Buffer(device, size)
            except OutOfDeviceMemoryError as error:
                message = f"a tensor of shape {shape} and dtype {dtype}: {error}"
                raise OutOfDeviceMemoryError(message) from error

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
        """Copy an array, or anything that NumPy converts to one, to the device."""
        source = as_array(array)
        tensor = cls(device, source.shape, source.dtype, on_host=on_host)
        if tensor._buffer is not None:
            tensor._buffer.fill_with([source])
        return tensor

    @classmethod
    def over(
        cls,
        device: OperatorDevice,
        buffer: Buffer | HostBuffer | None,
        shape: Ints,
        dtype: np.dtype[Any],
    ) -> Self:
        """Return a tensor over a buffer that holds its elements."""
        tensor = cls.__new__(cls)
        tensor._describe(device, shape, dtype)
        tensor._buffer = buffer
        return tensor

    def _over(self, base: Self, view: View, *, read_only: bool = False) -> Self:
        """Return a view of a tensor's memory; a view without elements refers to none."""
        result = self.over(self.device, None, view.sizes, self.dtype)
        result._read_only = self._read_only or read_only
        if result.size:
            result._lazy = base, view
        return result

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
        """Run a plan; return a new tensor for each result, or write to the tensor in ``targets``.

        Inputs are packed: of a view that is not, a packed copy is read. Data that does not fit on
        the device is streamed, if all inputs are on the host.
        """
        outputs = list(zip_longest(plan.shapes, dtypes, targets))
        return run_program(cls, plan.program, plan.nbytes, device, inputs, outputs, progress)

    def _run(self, plan: ArrayPlan, inputs: Sequence[Any], dtype: np.dtype[Any]) -> Self:
        return self.make(plan, self.device, inputs, [dtype])[0]

    def _write_plan(self, plan: ArrayPlan, inputs: Sequence[Any]) -> None:
        self.make(plan, self.device, inputs, [self.dtype], targets=[self])

    # -- memory ------------------------------------------------------------------------------------

    @property
    def buffer(self) -> Buffer | HostBuffer | None:
        """The memory that holds the elements, row by row; None if there are none.

        A view that is not the whole of its tensor, in the same order, returns a packed copy: each
        access copies again, with one dispatch. Arrays that ``numpy`` returned do not change when
        this memory is written; while something refers to it, ``numpy`` returns copies.

        Raises:
            DeviceError: the tensor was released.
            OutOfDeviceMemoryError: there is no memory for the copy.
        """
        buffer = self._buffer
        if buffer is not None:
            return self._unshown() if self._is_shown(buffer) else buffer
        if not self.owns_buffer:
            return self.copy()._buffer
        base, _ = self.placed()
        return None if base is self else base.buffer

    def _is_shown(self, buffer: Buffer | HostBuffer) -> bool:
        """Whether arrays show the memory, to which the caller already refers; see ``_snapshot``.

        Without a global lock, another processor may not see the caller's reference yet when this
        one reads ``shown``; under the lock, this is wholly before ``_snapshot`` or after it.
        """
        if _HAS_GIL:
            return buffer.shown() is not None
        with self.device.vulkan.lock:
            return buffer.shown() is not None

    def _unshown(self) -> Buffer | HostBuffer | None:
        """Return the memory of the elements; if arrays show it, move the elements first."""
        while (buffer := self._buffer) is not None:
            with self.device.vulkan.lock:  # ``_snapshot`` holds this lock
                shown = buffer.shown()  # keeps the view alive until the elements are moved
            if shown is None:
                break
            moved = buffer.clone(0, buffer.nbytes)
            with self.device.vulkan.lock:
                if self._buffer is buffer:  # otherwise another thread has moved them
                    self._buffer = moved
        return buffer

    @property
    def handles(self) -> TensorHandles:
        """Where the elements are: a buffer of Vulkan, the first byte and the number of bytes.

        From now on the memory does not move, until the tensor is freed or released. All that was
        submitted to write it is in order with what is submitted to ``device.handles.queue``
        afterwards.

        Raises:
            DeviceError: the elements are not on the device in one piece, or it is closed or lost.
            BindingError: it has no elements or is not contiguous (SH-12).

        >>> import vkops
        >>> x = vkops.zeros((4, 8), "int16")
        >>> x[2:].handles.offset - x.handles.offset, x[2:].handles.size
        (32, 32)
        """
        self.device.check_usable()
        base, view = self.placed()
        if not self.size or not view.is_contiguous:
            what = "is a view that is not contiguous" if self.size else "has no elements"
            raise BindingError("", "handles", f"{what}, must have one place", "SH-12")
        buffer = base.buffer
        if not isinstance(buffer, Buffer) or len(buffer.extents) > 1:
            raise DeviceError(
                "the tensor has no handles: its memory is not one buffer of the device"
            )
        buffer.is_addressed = True  # it stays where it is
        memory, start, _ = buffer.extents[0]
        first = start + view.offset * self.dtype.itemsize
        return TensorHandles(memory.native.handle, first, self.nbytes)

    @property
    def device_address(self) -> int:
        """The address of the first element, for shaders with buffer references.

        From now on the memory does not move, until the tensor is freed or released. Each shader
        that uses addresses is taken to read and write all tensors that have given one out.

        Raises:
            DeviceError: the device has no addresses, or the elements are not on it in one piece.
            BindingError: it has no elements or is not contiguous (SH-12), or is read-only (B-21).
        """
        base, view = self.placed()
        if self.is_read_only:
            raise BindingError("", "device_address", "is read-only, must be writable", "B-21")
        if not self.size or not view.is_contiguous:
            what = "is a view that is not contiguous" if self.size else "has no elements"
            raise BindingError("", "device_address", f"{what}, must have one address", "SH-12")
        buffer = base.buffer
        if not isinstance(buffer, Buffer):
            raise DeviceError("the tensor has no address: it is in memory of the host")
        return buffer.device_address() + view.offset * self.dtype.itemsize

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
            self.device.make_ready()
            with self.device.vulkan.lock:
                if self._lazy is not None:  # otherwise another thread has copied them
                    self._buffer = buffer
                    self._lazy = None
                    self._read_only = False
        return self

    def placed(self) -> tuple[Self, View]:
        """Return the tensor that owns the memory, and the view of it; DeviceError if released."""
        lazy = self._lazy
        base, view = (self, packed(self.shape)) if lazy is None else lazy
        if base._buffer is None and base.size:
            raise DeviceError(f"the tensor {self.shape} {self.dtype} was released")
        return base, view

    def copy(self) -> Self:
        """The elements in memory of their own, packed."""
        base, view = self.placed()
        itemsize = self.dtype.itemsize
        if len(view.sizes) > MAX_DIMS and (gathered := gathering(view, itemsize)):
            plan, places = gathered
            return self._run(plan, [base, places], self.dtype)
        return self._run(packing[view, itemsize], [base], self.dtype)

    def _with_few_parts(self) -> Self:
        """Return the tensor, or a copy if a plan that reads its view would have too many parts."""
        _, view = self.placed()
        many = len(view.sizes) > MAX_DIMS and gathering(view, self.dtype.itemsize)
        return self.copy() if many else self

    def release(self) -> None:
        """Give the memory back now; this tensor and its views cannot be used any more.

        A view gives up its share: the memory goes with the tensor that it is a view of. Memory
        that arrays still view, or that is bound to an operator, goes with these.
        """
        self._lazy = self._buffer = None

    @overload
    def numpy(
        self, *, out: npt.NDArray[Any] | None = None, wait: Literal[True] = True
    ) -> npt.NDArray[Any]: ...

    @overload
    def numpy(self, *, out: npt.NDArray[Any], wait: bool) -> Event | npt.NDArray[Any]: ...

    def numpy(
        self, *, out: npt.NDArray[Any] | None = None, wait: bool = True
    ) -> Event | npt.NDArray[Any]:
        """The elements at this moment as a read-only array, which never changes.

        It shows the tensor's own memory where the host sees that, and nothing else refers to it, as
        bound operators do; else it is a copy.

        Args:
            out: an array of this shape and dtype, to which the elements are copied instead. If it
                is pinned (``Device.pinned``) and contiguous, the device writes them there.
            wait: with False, return an ``Event`` at once if the device writes to a pinned array.
                The array belongs to the device until the event is done. To any other array, the
                elements are copied before this returns.

        Raises:
            InvalidDescError: ``out`` is no array that can be written to, or has another shape or
                dtype, or is missing without ``wait`` (ARRAY-20).
            DeviceError: the tensor was released, or the device is closed or lost.
            OutOfDeviceMemoryError: the host has no memory for a copy.

        >>> import numpy as np, vkops
        >>> vkops.arange(3).numpy(out=np.zeros(3, int)).tolist()
        [0, 1, 2]
        """
        if out is None and wait is True:
            return self._elements()[0]
        waits, array = (
            boolean(wait, ArgumentName("NUMPY", "wait", "ARRAY-20")),
            self._checked_out(out),
        )
        event = Event(self.device, self._copy_to(array, wait=waits))
        return array if waits else event

    def get(
        self, *, out: npt.NDArray[Any] | None = None, blocking: bool = True
    ) -> Event | npt.NDArray[Any]:
        """``numpy(out=out, wait=blocking)``, by the name that it has in CuPy.

        Without ``blocking`` there must be an ``out``.

        >>> import vkops
        >>> vkops.arange(3).get().tolist()
        [0, 1, 2]
        """
        return self.numpy(out=out, wait=blocking)  # type: ignore[arg-type]

    def _checked_out(self, out: Any) -> npt.NDArray[Any]:
        """Return ``out`` if the elements can be copied to it, or raise an error (ARRAY-20)."""
        kind = f"an array of {self.shape} {self.dtype} that can be written to"
        if not isinstance(out, np.ndarray):
            raise ArgumentName("NUMPY", "out", "ARRAY-20").wrong_kind(out, kind)
        if (out.shape, out.dtype) != (self.shape, self.dtype) or not out.flags.writeable:
            what = "" if out.flags.writeable else " that is read-only"
            refuse("NUMPY", "out", f"got {out.shape} {out.dtype}{what}, must be {kind}", "ARRAY-20")
        return out

    def _copy_to(self, out: npt.NDArray[Any], *, wait: bool) -> int:
        """Copy the elements; return the submission that copies, or 0 if it has ended."""
        base, view = self.placed()
        access(out, written=True)
        buffer = base._buffer
        if not self.size or not isinstance(buffer, Buffer) or not out.flags.c_contiguous:
            np.copyto(out, self._elements()[0])
            return 0
        if not view.is_contiguous:
            return self.copy()._copy_to(out, wait=wait)
        start = view.offset * self.dtype.itemsize
        return read_into(buffer, start, packed_bytes(out), wait=wait)

    async def numpy_async(self) -> npt.NDArray[Any]:
        """The same as ``numpy`` at this moment, while the event loop goes on as the device works.

        What is submitted after the call, by other tasks too, does not change the result. To cancel
        it ends the wait; the work goes on.

        Raises:
            DeviceError: as ``numpy``; or the device is closed or lost meanwhile.
            OutOfDeviceMemoryError: the host has no memory for a copy.

        >>> import asyncio, vkops
        >>> asyncio.run(vkops.asarray([1, 2, 3]).numpy_async()).tolist()
        [1, 2, 3]
        """
        device = self.device
        await ended(device, 0)  # waits for streams
        base, view = self.placed()
        if not isinstance(base._buffer, Buffer):  # the host has the elements
            return self.numpy()
        written, shown = base._buffer.allocation.written, base._snapshot()
        if shown is not None:
            await ended(device, written)
            shown.owner.finish_writes()
            return strided(np.asarray(shown), self.dtype, view)
        if not view.is_contiguous:
            return await self.copy().numpy_async()
        start = view.offset * self.dtype.itemsize
        cloned = base._buffer.clone(start, self.nbytes, device.vulkan.readback[False])
        await ended(device, cloned.allocation.written)
        return cloned.peek().view(self.dtype).reshape(self.shape)

    def mapped(self) -> npt.NDArray[Any]:
        """Return a read-only array over the memory itself, which shows later writes, too.

        Raises:
            DeviceError: the host does not see the memory.
        """
        base, view = self.placed()
        buffer = base.buffer
        memory = _NOTHING if not self.size or buffer is None else buffer.mapped()
        return strided(memory, self.dtype, view)

    def _elements(self) -> tuple[npt.NDArray[Any], bool]:
        """Return the array that ``numpy`` returns, and whether it is a copy."""
        base, view = self.placed()
        shown = base._snapshot()
        if shown is not None:
            shown.owner.finish_writes()
            return strided(np.asarray(shown), self.dtype, view), False
        if not self.size:
            return strided(_NOTHING, self.dtype, view), False
        buffer = base._buffer
        if buffer is None:  # another thread has released it
            raise DeviceError(f"the tensor {self.shape} {self.dtype} was released")
        if not view.is_contiguous:
            return self.copy().numpy(), True
        start = view.offset * self.dtype.itemsize
        return buffer.array(start, self.nbytes).view(self.dtype).reshape(self.shape), True

    def _snapshot(self) -> MemoryView | None:
        """Return a view of the memory, which nothing writes after ``finish_writes``; None to copy.

        As long as the view exists, the tensor moves its elements to other memory before they are
        written (``buffer``). Nothing else may write the memory or keep its address. So there is a
        view only if nothing else refers to the memory: no bound operator, no recorded program and
        no call of another thread. These refer to the memory first, and then test whether it is
        shown. This method shows it first, and then counts the references. So at least one of the
        two sides sees the other.
        """
        with self.device.vulkan.lock:
            buffer = self._buffer
            if buffer is None or (type(buffer) is Buffer and buffer.is_addressed):
                return None
            before = buffer.shown
            view = before() or buffer.memory_view(0, buffer.nbytes)
            if view is None:
                return None
            buffer.shown = ref(view)
            if getrefcount(self._buffer) > _ALONE or (
                type(buffer) is Buffer and getrefcount(buffer.allocation) > _ALLOCATION_ALONE
            ):
                buffer.shown = before
                return None
        return view


def run_program(
    kind: type[A],
    program: Program,
    nbytes: int,
    device: OperatorDevice,
    inputs: Sequence[DeviceArray | npt.NDArray[Any]],
    outputs: Sequence[tuple[Ints, np.dtype[Any], A | None]],
    progress: Progress = None,
) -> list[A]:
    """Run a program that uses ``nbytes`` bytes, as ``make`` runs a plan.

    ``outputs`` has the shape and the data type of each result, and the tensor to write to.

    There are two ways to run a program. ``_run_steps`` is the faster one. It can only run small
    programs on tensors in device memory. A ``BoundProgram`` runs all others.
    """
    # If much memory is needed, results are on the host when neither they nor an input fit.
    read = None if nbytes <= open_device.MAX_UNCHECKED_BYTES else _memory_read(device, inputs)
    on_host = read is not None and not (
        any(type(memory) is Extent and type(memory.resource) is Buffer for memory in read)
        or device.fits(nbytes)
    )
    results = [
        kind(device, shape, dtype, on_host=on_host) if target is None else target
        for shape, dtype, target in outputs
    ]
    if read is None:
        if _run_steps(program, device, inputs, results):
            return results
        read = _memory_read(device, inputs)
    written: list[Any] = [result for each in results if (result := _memory(each)) is not None]
    if written:
        BoundProgram(program, device, read, written).run(progress)
    return results


def _run_steps(
    program: Program,
    device: OperatorDevice,
    inputs: Sequence[DeviceArray | npt.NDArray[Any]],
    results: Sequence[DeviceArray],
) -> bool:
    """Run the prepared steps of a program and return True; or do nothing and return False.

    That is not possible while this thread records, or if the program has no prepared steps, or if
    the memory of a tensor is on the host, is in several pieces, or must move before it is used.
    """
    vulkan = device.vulkan
    reads, writes = _allocations(inputs), _allocations(results, written=True)
    if reads is None or writes is None or vulkan.recording is not None:
        return False
    steps = program.native_steps(device)
    if writes and steps:
        device.make_ready()
        return vulkan.start(vulkan.native.run, steps, reads, writes, program.name) > 0
    return not writes


def _memory_read(
    device: OperatorDevice, inputs: Sequence[DeviceArray | npt.NDArray[Any]]
) -> list[TensorMemory]:
    """Return the memory of the inputs that have elements, for a program that reads it."""
    vulkan = device.vulkan
    return [memory for each in inputs if (memory := _memory(each, vulkan)) is not None]


def _allocations(
    arrays: Sequence[DeviceArray | npt.NDArray[Any]], *, written: bool = False
) -> list[Allocation] | None:
    """Return the allocations of tensors with elements; None if not all can be used as they are.

    They cannot if the elements are on the host, or must move before they are written.
    """
    allocations = []
    for each in arrays:
        if not isinstance(each, DeviceArray):
            return None
        buffer = each._buffer
        if type(buffer) is Buffer:
            allocation = buffer.allocation  # before ``shown`` is read, which counts references
            if not (written and each._is_shown(buffer)):
                allocations.append(allocation)
                continue
        if each._size:
            return None
    return allocations


def _memory(
    source: DeviceArray | npt.NDArray[Any], reader: VulkanDevice | None = None
) -> TensorMemory | None:
    """Return the memory of a source's elements for one read or for writes; None without elements.

    ``reader`` is the queue that reads it. If the queue is recording a program, the program keeps
    the address, so memory that arrays show is moved first, as for writes.
    """
    if not isinstance(source, DeviceArray):
        return source if source.size else None
    buffer = source._buffer
    if buffer is None or (
        (reader is None or reader.recording is not None) and source._is_shown(buffer)
    ):
        buffer = source.buffer
    return None if buffer is None else Extent(buffer, 0, buffer.nbytes)


def check_device(name: str, field: str, array: DeviceArray, home: OperatorDevice) -> None:
    """Raise an error for a tensor of another adapter, whose memory a device cannot use (B-02)."""
    if array.device is not home and not array.device.shares_memory_with(home):
        message = f"is on {array.device!r}, must be on {home!r}; tensor.to(device) copies it"
        refuse(name, field, message, "B-02")


def strided(memory: npt.NDArray[np.uint8], dtype: np.dtype[Any], view: View) -> npt.NDArray[Any]:
    """Return the elements of a view as an array; ``memory`` is memory that the host sees."""
    strides = tuple([stride * dtype.itemsize for stride in view.strides])
    start = view.offset * dtype.itemsize
    array: npt.NDArray[Any] = np.ndarray(view.sizes, dtype, memory, start, strides)
    return array
