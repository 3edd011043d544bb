"""Buffers: memory that the host fills and reads, and that operators are bound to."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Hashable, Sequence
from operator import index
from typing import Any
from weakref import ref

import numpy as np
import numpy.typing as npt

from vkops.errors import CONVERSION_ERRORS, BindingError, DeviceError, OutOfDeviceMemoryError, show
from vkops.extent import slice_extents
from vkops.gpu.memory import host_memory
from vkops.gpu.memory.pinned import access
from vkops.gpu.memory.pools import Allocation, Extents, Pool, flush, invalidate, visible
from vkops.gpu.run import streaming
from vkops.gpu.run.open_device import MAX_UNCHECKED_BYTES, OpenDevice, with_reclaim
from vkops.gpu.run.pending import BackgroundTask
from vkops.plan.execute import Bytes, join_bytes, packed_bytes

MAX_PACKED_BYTES = 16 << 20
"""Bytes of arrays that are packed on the host and then copied to the device as one."""

_NOTHING = np.empty(0, np.uint8)


class BindableMemory(ABC):
    """Bytes that operators can be bound to.

    ``layout`` has everything but the address that a prepared call of a shader depends on.

    ``shown`` refers to a view of the bytes that arrays from ``numpy()`` share. These must not
    change: while the view exists, a tensor moves to other memory before it is written
    (``DeviceArray``).
    """

    __slots__ = ("__weakref__", "nbytes", "shown")

    layout: Hashable
    nbytes: int
    shown: ref[MemoryView]

    @property
    def is_coherent(self) -> bool:
        """Whether the host always sees what a device writes, if it sees the memory at all."""
        return True

    def write(self, data: Any, offset: int = 0) -> None:
        """Copy bytes from an object with the buffer protocol to byte ``offset``.

        While this thread records a program, the bytes become constants of it, and each run copies
        them.

        Raises:
            BindingError: they do not fit (B-04).
            DeviceError: the device is closed.
        """
        try:
            view = memoryview(data)
            if "O" in view.format:
                raise TypeError("it holds Python objects")
            source = np.frombuffer(view, np.uint8) if view.nbytes else _NOTHING
        except CONVERSION_ERRORS as error:
            message = f"got {type(data).__name__}, must be contiguous bytes: {error}"
            raise BindingError("", "data", message, "B-04") from None
        access(source)
        offset, _ = self._span(offset, source.size)
        if source.size:
            self._store(offset, source)

    def fill(self, array: npt.NDArray[Any]) -> None:
        """Copy an array's elements, row by row, to the start.

        Raises:
            BindingError: they do not fit, or it is not an array of NumPy's without Python objects
                (B-04).
        """
        if not isinstance(array, np.ndarray) or array.dtype.hasobject:
            message = f"got {show(array)}, must be an array that holds no Python objects"
            raise BindingError("", "array", message, "B-04")
        self._span(0, array.nbytes)
        access(array)
        if array.nbytes:
            self._store(0, packed_bytes(array))

    def fill_with(self, arrays: Sequence[npt.NDArray[Any]]) -> None:
        """Copy the elements of arrays, one array after the other, to the start; they fit.

        The arrays have one data type, and are not views of this memory.
        """
        nbytes = sum([array.nbytes for array in arrays])
        if len(arrays) > 1 and nbytes <= MAX_PACKED_BYTES:
            packed = np.empty(nbytes, np.uint8)
            join_bytes(arrays, packed)
            arrays = [packed]
        start = 0
        for array in arrays:
            if array.nbytes:
                self._store(start, packed_bytes(array))
                start += array.nbytes

    def read(self, offset: int = 0, nbytes: int | None = None) -> bytes:
        """Copy ``nbytes`` bytes (default: all the rest) from byte ``offset``.

        Raises:
            BindingError: the buffer ends before (B-04).
        """
        return self.peek(offset, nbytes).tobytes()

    def array(self, offset: int = 0, nbytes: int | None = None) -> Bytes:
        """Copy bytes, as ``read`` does, to a read-only array.

        Raises:
            BindingError: the buffer ends before (B-04).
            OutOfDeviceMemoryError: the host has no memory for them.
        """
        content = self.peek(offset, nbytes)
        if content.base is None:  # a copy
            return content
        copied = np.empty_like(content)
        if content.size > MAX_UNCHECKED_BYTES:
            copied = with_reclaim(lambda: host_memory.take(content.size))
        copied[...] = content
        copied.flags.writeable = False
        return copied

    def mapped(self, offset: int = 0, nbytes: int | None = None) -> Bytes:
        """Return the memory itself as read-only bytes; later writes can be seen in them.

        Raises:
            BindingError: the buffer ends before (B-04).
            DeviceError: the host does not see the memory, or does not see later writes.
        """
        content = self.peek(offset, nbytes)
        if content.size and (content.base is None or not self.is_coherent):
            raise DeviceError(f"{self!r} is not mapped: the host sees only copies of it")
        return content

    def peek(self, offset: int = 0, nbytes: int | None = None) -> Bytes:
        """Return read-only bytes: those of ``mapped`` if the host sees the memory, else a copy."""
        span = self._span(offset, nbytes)
        self.finish_writes()
        return np.asarray(self.memory_view(*span))

    @abstractmethod
    def finish_writes(self) -> None:
        """Wait for all work that writes the memory."""

    @abstractmethod
    def memory_view(self, offset: int, nbytes: int) -> MemoryView | None:
        """Return a view of bytes of the memory; None if the host does not see them."""

    def _span(self, offset: Any, nbytes: Any) -> tuple[int, int]:
        """Check offset and number of bytes, and return them as integers; None is all the rest."""
        try:
            first = index(offset)
            count = self.nbytes - first if nbytes is None else index(nbytes)
            inside = first >= 0 and count >= 0 and first + count <= self.nbytes
        except TypeError:
            inside = False
        if not inside:
            message = (
                f"got offset {show(offset)} and {show(nbytes)} bytes, must be integers from 0 "
                f"and end at {self.nbytes} or before"
            )
            raise BindingError("", "buffer", message, "B-04")
        return first, count

    @abstractmethod
    def _store(self, offset: int, source: Bytes) -> None:
        """Copy bytes to byte ``offset``; they fit."""

    @abstractmethod
    def is_on(self, device: OpenDevice) -> bool:
        """Whether operators of that device can be bound to it."""

    @abstractmethod
    def clone(self, start: int, nbytes: int) -> BindableMemory:
        """Return a copy of ``nbytes`` bytes from byte ``start``, a multiple of 16.

        The copy is made now, even while this thread records a program.
        """


class Buffer(BindableMemory):
    """Device memory, allocated by ``Device.buffer`` and freed with this object.

    ``extents`` are its ranges of memory, one after the other; nearly always there is one. A
    ``constant`` is written once, when it is made, even while this thread records a program. If it
    ``is_addressed``, shaders have its address or other processes see it, so that its tensor cannot
    move to other memory.
    """

    __slots__ = ("_constant", "_device", "allocation", "extents", "is_addressed", "layout")

    def __init__(
        self,
        device: OpenDevice,
        nbytes: int,
        pool: Pool | None = None,
        *,
        constant: bool = False,
        allocation: Allocation | None = None,
    ) -> None:
        pool = pool or device.pool
        self._device = device
        self._constant = constant
        self.is_addressed: bool = False
        self.nbytes = nbytes
        self.shown: ref[MemoryView] = _NO_VIEW
        try:
            if allocation is None:
                allocation = pool.allocate(nbytes)
        except OutOfDeviceMemoryError:
            pass
        # Not inside of ``except``: there, the error's traceback would keep memory alive that the
        # second attempt could use.
        if allocation is None:
            allocation = with_reclaim(lambda: pool.allocate(nbytes))
        self.allocation: Allocation = allocation
        self.extents: Extents = allocation.extents
        if allocation.extents[0].resource.is_shared:
            self._be_shared()
        several = len(allocation.extents) > 1
        self.layout: Hashable = tuple(n for _, _, n in allocation.extents) if several else nbytes

    def _be_shared(self) -> None:
        """Zero memory that other processes may see: it may have held data of this process."""
        self.is_addressed = True
        ((memory, _, nbytes),) = self.extents
        zeros = self._device.vulkan.module.OpFillRegions(memory.native, 0, [[0, 0, nbytes]], True)
        self._device.submit([zeros], (), [self.allocation], "zeros", now=True)

    def __repr__(self) -> str:
        return f"<vkops.Buffer of {self.nbytes} bytes on {self._device.info.label}>"

    @property
    def is_coherent(self) -> bool:
        """Whether the host always sees what the device writes, if it sees the memory at all."""
        return all(extent.resource.is_coherent for extent in self.extents)

    @property
    def visible(self) -> Bytes | None:
        """The bytes, if they are one range that the host sees; else None.

        Call ``settle`` before using them, and ``flush`` after changing them. It is None while this
        thread records a program: writes are then recorded, and must not happen at once.
        """
        is_free = self._constant or self._device.vulkan.recording is None
        return visible(self.extents[0]) if is_free and _are_visible(self.extents) else None

    def device_address(self) -> int:
        """Return the address of the first byte for shaders, which may use it from now on.

        Raises:
            DeviceError: the device has no addresses, or these bytes are in several allocations.
        """
        memory, start, _ = self.extents[0]
        has_addresses = "bufferDeviceAddress" in self._device.features
        if not has_addresses or len(self.extents) > 1 or memory.is_storage_only:
            raise DeviceError(f"{self!r} has no address: the device lacks bufferDeviceAddress, it "
                              "is larger than an allocation, or is Kompute's")  # fmt: skip
        self.is_addressed = True
        self._device.vulkan.addressed[id(self)] = self
        return memory.native.device_address + start  # type: ignore[no-any-return]

    def flush(self) -> None:
        """Make what the host has written visible to the device."""
        flush(*self.extents)

    @property
    def is_ready(self) -> bool:
        """Whether all submissions that write the memory have ended."""
        self._device.check_usable()
        return self._device.vulkan.is_done(self.allocation.written)

    def settle(self) -> None:
        """Wait for all submissions that use the memory: the host may then read and write it."""
        self._device.wait(self.allocation.used)
        invalidate(*self.extents)

    def is_on(self, device: OpenDevice) -> bool:
        """Whether that device is on the same adapter."""
        home = self._device
        if home.pool.closed or home.vulkan.lost:
            home.check_usable()
        return home.vulkan is device.vulkan

    def clone(self, start: int, nbytes: int, pool: Pool | None = None) -> Buffer:
        """Return a copy in memory of the device, or of another pool."""
        cloned = Buffer(self._device, nbytes, pool)
        source = slice_extents(self.extents, start, nbytes)
        work = streaming.regions(self._device, source, slice_extents(cloned.extents, 0, nbytes))
        memory = [self.allocation], [cloned.allocation]
        self._device.submit(work, *memory, "a transfer", now=True)
        return cloned

    def peek(self, offset: int = 0, nbytes: int | None = None) -> Bytes:
        """Return read-only bytes; see ``BindableMemory``."""
        offset, nbytes = self._span(offset, nbytes)
        view = self.memory_view(offset, nbytes)
        if view is not None:
            self.finish_writes()
            return np.asarray(view)
        _prepare_to_read(self._device)
        source = slice_extents(self.extents, offset, nbytes)
        result = streaming.read(self._device, source, self.allocation)
        result.flags.writeable = False
        return result

    def finish_writes(self) -> None:
        """Wait for all submissions that write the memory."""
        device = self._device
        _prepare_to_read(device)
        device.wait(self.allocation.written)
        invalidate(*self.extents)

    def memory_view(self, offset: int, nbytes: int) -> MemoryView | None:
        """Return a view of bytes of the memory; None if they are not one range."""
        source = slice_extents(self.extents, offset, nbytes)
        if not _are_visible(source):
            return None
        ((memory, start, _),) = source
        return MemoryView(self, memory.address + start, nbytes)

    def fill_with(self, arrays: Sequence[npt.NDArray[Any]]) -> None:
        """Copy the elements of arrays; see ``BindableMemory``."""
        target = self.visible
        if target is None:
            super().fill_with(arrays)
            return
        nbytes = sum([array.nbytes for array in arrays])
        self.settle()
        join_bytes(arrays, target[:nbytes])
        self.flush()

    def _store(self, offset: int, source: Bytes) -> None:
        target = slice_extents(self.extents, offset, source.size)
        if not self._constant and self._device.vulkan.recording is not None:
            staging = Buffer(self._device, source.size, constant=True)
            staging._store(0, source)
            constant = slice_extents(staging.extents, 0, source.size)
            work = streaming.regions(self._device, constant, target)
            self._device.submit(work, [staging.allocation], [self.allocation], "a transfer")
        elif _are_visible(target):
            self.settle()
            visible(target[0])[...] = source
            flush(*target)
        else:
            streaming.write(self._device, target, source, self.allocation)


class HostBuffer(BindableMemory):
    """Host memory, for more bytes than the device can hold; allocated by ``Device.host_buffer``.

    Operators that are bound to it stream it through the device.
    """

    __slots__ = ("bytes", "layout", "pending")

    def __init__(self, nbytes: int) -> None:
        self.nbytes = nbytes
        self.layout: Hashable = HostBuffer, nbytes
        self.shown: ref[MemoryView] = _NO_VIEW
        self.pending: BackgroundTask | None = None  # the stream that reads or writes it
        self.bytes: Bytes = with_reclaim(lambda: host_memory.take(nbytes))

    def __repr__(self) -> str:
        return f"<vkops.HostBuffer of {self.nbytes} bytes>"

    def is_on(self, device: OpenDevice) -> bool:
        """True: every device can use it."""
        return True

    def clone(self, start: int, nbytes: int) -> HostBuffer:
        """Return a copy on the host."""
        cloned = HostBuffer(nbytes)
        cloned.bytes[...] = self.peek(start, nbytes)
        return cloned

    def settle(self) -> None:
        """Wait for the stream that reads or writes it; its own ``wait`` raises its errors."""
        if self.pending is not None:
            self.pending.finish()

    @property
    def visible(self) -> Bytes:
        """The bytes."""
        return self.bytes

    def flush(self) -> None:
        """Do nothing: devices have no copies of host memory."""

    def _store(self, offset: int, source: Bytes) -> None:
        self.settle()
        self.bytes[offset : offset + source.size] = source

    finish_writes = settle

    def memory_view(self, offset: int, nbytes: int) -> MemoryView:
        """Return a view of bytes of the memory."""
        return MemoryView(self, self.bytes.__array_interface__["data"][0] + offset, nbytes)


def send(buffer: Buffer, offset: int, source: Bytes) -> int | None:
    """Begin to copy bytes of a pinned array to byte ``offset``; return the submission's number.

    Return None if the array is not pinned, or this thread records a program.
    """
    device = buffer._device
    if device.vulkan.recording is not None:
        return None
    target = slice_extents(buffer.extents, offset, source.size)
    return streaming.send(device, target, source, buffer.allocation)


def read_into(buffer: Buffer, offset: int, target: Bytes, *, wait: bool) -> int:
    """Copy the bytes from byte ``offset`` on to an array; return 0.

    Without ``wait``, return the number of the submission if the device itself writes to the array.
    """
    device, source = buffer._device, slice_extents(buffer.extents, offset, target.size)
    _prepare_to_read(device)
    if not wait and (number := streaming.fetch(device, source, target, buffer.allocation)):
        return number
    if _are_visible(source):
        buffer.finish_writes()
        target[...] = visible(source[0])
    else:
        streaming.read_into(device, source, target, buffer.allocation)
    return 0


def _prepare_to_read(device: OpenDevice) -> None:
    """Check that the device can be used, and that this thread records no program."""
    device.vulkan.refuse_recording("elements cannot be read, because nothing runs yet")
    device.make_ready()


def _are_visible(extents: Extents) -> bool:
    """Whether extents are one range of memory that the host sees."""
    return len(extents) == 1 and extents[0].resource.view is not None


class MemoryView:
    """Bytes of a buffer for NumPy's array interface; an array of them keeps the buffer alive.

    The address may be one that CUDA has for them, which nothing reads on the host.
    """

    __slots__ = ("__array_interface__", "__weakref__", "owner")

    def __init__(
        self, owner: BindableMemory, address: int, nbytes: int, *, is_read_only: bool = True
    ) -> None:
        self.owner: BindableMemory = owner
        self.__array_interface__: dict[str, Any] = {
            "data": (address, is_read_only),
            "shape": (nbytes,),
            "typestr": "|u1",
            "version": 3,
        }


_NO_VIEW: ref[MemoryView] = ref(MemoryView(HostBuffer.__new__(HostBuffer), 0, 0))
"""A reference to a view that was freed."""
