"""Device memory: aligned ranges of a few large allocations of the driver.

Kernels are bound to the allocations, not to tensors: a new tensor needs no new descriptors.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from operator import attrgetter
from threading import RLock
from typing import Any, Protocol, TypeVar
from weakref import WeakValueDictionary

import numpy as np
import numpy.typing as npt

from vkops.errors import DeviceError, OutOfDeviceMemoryError
from vkops.extent import Extent
from vkops.gpu.adapters import forks
from vkops.gpu.adapters.adapter import DeviceInfo
from vkops.gpu.adapters.kompute import Native

_T = TypeVar("_T")

ALIGNMENT = 256
"""Bytes; a multiple of every element size, and of every driver's storage offset alignment."""

FIRST_NBYTES = 16 << 20
MAX_NBYTES = (1 << 31) - (64 << 10)
"""Bytes. Below this limit, the numbers of items and the addresses of all vectors that a tensor
reaches fit in 31 bits."""

Extents = tuple[Extent, ...]
"""The memory of a buffer: one extent, or several if it is larger than one allocation can be."""


class Allocation(Protocol):
    """Memory of one owner, an object of the native module; freeing it frees its ranges.

    ``used`` and ``written`` are the numbers of the last submissions that use and write it. Freed
    memory can be used again at once: the device executes submissions in order, so later ones do not
    disturb those that still use it.
    """

    used: int
    written: int
    extents: Extents


class MemoryDevice(Protocol):
    """The part of ``VulkanDevice`` that memory needs: the module of that class imports this one."""

    info: DeviceInfo
    lock: RLock
    module: Native

    def check_usable(self) -> None:
        """Check that this thread can use the device now."""

    def call(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """Call a function of the native module, whose errors become those of vkops."""

    def available(self, use: str) -> int:
        """Return the bytes that this process can still get for a use."""
        ...

    def new_memory(self, nbytes: int, use: str, *, is_shared: bool = False) -> DeviceMemory:
        """Take memory from the driver."""
        ...


class DeviceMemory:
    """An allocation with a buffer over it; ``native`` is its native object.

    ``view`` has the bytes and ``address`` is that of the first one if the host sees them; else they
    are None and 0. ``source`` is the Vulkan heap that it was taken from: (adapter, heap). Other
    processes can get it from this one if it ``is_shared``. If it ``is_imported``, it is memory of
    the host. If it ``is_storage_only``, its buffer cannot be a uniform, texel or indirect buffer:
    shaders get copies for these uses.
    """

    is_storage_only: bool = False

    def __init__(
        self,
        device: MemoryDevice,
        native: Native,
        nbytes: int,
        source: tuple[int, int],
        *,
        is_shared: bool = False,
    ) -> None:
        self.device: MemoryDevice = device
        self.native: Native = native
        self.source = source
        self.is_shared: bool = is_shared
        self.view: npt.NDArray[np.uint8] | None = native.array
        # Not by ``view.ctypes``: it imports a module, which fails while Python exits.
        view = self.view
        self.address: int = 0 if view is None else view.__array_interface__["data"][0]
        self.is_coherent: bool = native.coherent
        self.is_imported: bool = native.is_imported
        self.ranges: Native = device.module.FreeList(nbytes)
        _all[id(self)] = self

    @property
    def whole(self) -> Extent:
        """All bytes."""
        return Extent(self, 0, self.ranges.size)


_all: WeakValueDictionary[int, DeviceMemory] = WeakValueDictionary()
_is_empty = attrgetter("ranges.is_empty")


def living(objects: WeakValueDictionary[Any, _T]) -> list[_T]:
    """Return the values that still exist."""
    # One C call copies the references: no other thread or finalizer changes them meanwhile.
    referents = (reference() for reference in objects.valuerefs())
    return [value for value in referents if value is not None]


def held_bytes(source: tuple[int, int], *, imported: bool = True) -> int:
    """Return the bytes that this process holds from one Vulkan heap: (adapter, heap).

    Memory that was ``imported`` is counted, or only memory of the driver.
    """
    held = [memory for memory in living(_all) if memory.source == source]
    return sum(memory.ranges.size for memory in held if imported or not memory.is_imported)


def visible(extent: Extent) -> npt.NDArray[np.uint8]:
    """Return the bytes of an extent, which the host must see.

    Call ``invalidate`` after the device has written them, and ``flush`` after the host has.
    """
    memory, start, nbytes = extent
    view: npt.NDArray[np.uint8] = memory.view
    return view[start : start + nbytes]


def _synchronize(name: str, *extents: Extent) -> None:
    """Call ``flush`` or ``invalidate`` for extents in memory that is not coherent."""
    for memory, start, nbytes in extents:
        if not memory.is_coherent:
            memory.device.call(getattr(memory.native, name), start, nbytes)


invalidate: Callable[..., None] = partial(_synchronize, "invalidate")
"""Make bytes that the device has written visible to the host."""

flush: Callable[..., None] = partial(_synchronize, "flush")
"""Make bytes that the host has written visible to the device."""


@dataclass(frozen=True, slots=True)
class MemoryReport:
    """Bytes held from the driver, bytes in use by tensors and buffers, and number of heaps."""

    reserved: int
    used: int
    heaps: int


class Pool:
    """Allocates ranges of memory for one use; it grows under the lock of a VulkanDevice.

    ``max_range`` are the bytes of the largest range; larger sizes are several ranges.
    """

    def __init__(self, device: MemoryDevice, use: str, max_range: int = 0) -> None:
        self._device = device
        self._use = use
        self._lock: RLock = device.lock
        most = max_range or min(device.info.max_buffer, MAX_NBYTES)
        self.max_range: int = most // ALIGNMENT * ALIGNMENT
        self.closed: bool = False
        self.heaps: list[DeviceMemory] = []
        self._allocate: Callable[..., Allocation | int] = partial(
            device.module.allocate, partial(tuple.__new__, Extent)
        )

    def check_usable(self) -> None:
        """Check that the device can be used, and this pool is open."""
        self._device.check_usable()
        self._check_open()

    def _check_open(self) -> None:
        if self.closed:
            raise DeviceError(f"the device {self._device.info.label} is closed")

    def available(self) -> int:
        """Return the bytes that the device can still give to this process."""
        return self._device.available(self._use)

    def allocate(self, nbytes: int) -> Allocation:
        """Reserve memory until the result is freed; the smallest piece for 0 bytes."""
        # Allocations are frequent: call ``check_usable`` only if it is going to raise an error.
        # This thread owns the lock if a signal handler or a finalizer interrupted its use of the
        # device.
        if self.closed or forks.state.forked or self._lock._is_owned():  # type: ignore[attr-defined]
            self.check_usable()
        size = -(-nbytes // ALIGNMENT) * ALIGNMENT or ALIGNMENT
        if size <= self.max_range:
            result = self._allocate(self.heaps, size, size)
            if not isinstance(result, int):
                return result
        with self._lock:
            if size > self.max_range:
                self._room(size)
            return self._grow_and_allocate(size)  # a loop here could keep the lock (test_locks.py)

    def _grow_and_allocate(self, size: int) -> Allocation:
        while isinstance(result := self._allocate(self.heaps, size, self.max_range), int):
            self._check_open()  # another thread may have closed it
            self._grow(result)
        return result

    def require(self, nbytes: int) -> None:
        """Raise an OutOfDeviceMemoryError if new heaps could not hold so many bytes."""
        self.check_usable()
        with self._lock:
            empty = self._empty()
            if nbytes > max(empty, self.available() + empty):
                raise self._refusal(nbytes)

    def _room(self, size: int) -> int:
        """Check that new heaps can hold so many bytes; return the bytes available for them."""
        if self.available() < size <= self.available() + self._empty():
            self.release_empty_heaps()
        available = self.available()
        if size > available:
            raise self._refusal(size)
        return available

    def _refusal(self, size: int) -> OutOfDeviceMemoryError:
        return OutOfDeviceMemoryError(
            f"a buffer of {size} bytes: the device has {max(self.available() + self._empty(), 0)} "
            f"bytes available ({self.reserved} reserved by this device object)"
        )

    def _grow(self, size: int) -> None:
        available = self._room(size)
        # Doubling keeps heaps, and with them pipelines, few.
        nbytes = max(FIRST_NBYTES, self.reserved, size)
        nbytes = min(nbytes, self.max_range, available // ALIGNMENT * ALIGNMENT)
        minimum = min(nbytes, max(FIRST_NBYTES, size))
        while True:
            try:
                self.heaps.append(self._device.new_memory(nbytes, self._use))
                return
            except OutOfDeviceMemoryError:
                if nbytes == minimum:
                    raise
            nbytes = max(minimum, nbytes // 2 // ALIGNMENT * ALIGNMENT)

    @property
    def reserved(self) -> int:
        """Bytes held from the driver."""
        return sum(heap.ranges.size for heap in self.heaps)

    def _empty(self) -> int:
        return sum(heap.ranges.size for heap in filter(_is_empty, self.heaps))

    def release_empty_heaps(self) -> None:
        """Give the heaps that nothing uses back to the driver."""
        # Other threads allocate without a lock: ranges that are closed give none of them any more.
        self.heaps[:] = [heap for heap in self.heaps if not heap.ranges.close_if_empty()]

    def report(self) -> MemoryReport:
        """Return the bytes that are held and used now."""
        reserved = self.reserved
        free = sum(heap.ranges.free for heap in self.heaps)
        return MemoryReport(reserved, reserved - free, len(self.heaps))

    def close(self) -> None:
        """Release all memory; heaps with ranges in use exist until these are freed."""
        self.closed = True
        self.heaps.clear()


class SeparatePool(Pool):
    """A pool that takes memory from the driver for each owner alone, and frees it with the owner.

    With ``is_shared``, other processes can see the memory.
    """

    def __init__(self, device: Any, use: str, *, is_shared: bool = False) -> None:
        super().__init__(device, use, device.info.limits.max_allocation)
        self._is_shared = is_shared
        self._memory: WeakValueDictionary[int, DeviceMemory] = WeakValueDictionary()

    def allocate(self, nbytes: int) -> Allocation:
        """Allocate memory; it is freed with the result."""
        self.check_usable()
        size = -(-nbytes // ALIGNMENT) * ALIGNMENT or ALIGNMENT
        if size > self.max_range:
            message = f"{nbytes} bytes in one piece: the device allocates {self.max_range} at most"
            raise OutOfDeviceMemoryError(message)
        with self._lock:
            self._room(size)
            memory = self._device.new_memory(size, self._use, is_shared=self._is_shared)
            return self.own(memory)

    def own(self, memory: DeviceMemory) -> Allocation:
        """Return an allocation of all of some memory, and count the memory as the pool's."""
        self._memory[id(memory)] = memory
        allocation: Any = self._allocate([memory], memory.ranges.size, memory.ranges.size)
        return allocation  # type: ignore[no-any-return]

    @property
    def reserved(self) -> int:
        """Bytes held from the driver."""
        return self.report().reserved

    def report(self) -> MemoryReport:
        """Return the bytes that are held now, all of which are used."""
        sizes = [memory.ranges.size for memory in living(self._memory)]
        return MemoryReport(sum(sizes), sum(sizes), len(sizes))
