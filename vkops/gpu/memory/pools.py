"""Device memory: aligned ranges of a few large allocations of the driver.

Kernels are bound to these, not to tensors, so that a new tensor needs no new descriptors.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import deque
from dataclasses import dataclass
from itertools import starmap
from operator import setitem
from threading import RLock
from typing import Any, TypeVar
from weakref import WeakValueDictionary, ref

import numpy as np
import numpy.typing as npt

from vkops.errors import DeviceError, OutOfDeviceMemoryError
from vkops.extent import Extent
from vkops.gpu.adapters import forks

_T = TypeVar("_T")

ALIGNMENT = 256
"""Bytes; a multiple of every element size, and of every driver's storage offset alignment."""

FIRST_NBYTES = 16 << 20
MAX_NBYTES = (1 << 31) - (64 << 10)
"""Bytes. Below this limit, the numbers of items and the addresses of all vectors that a tensor
reaches fit in 31 bits."""

Change = tuple[Any, Any, Any]
"""A container, a key and the value to assign: ``container[key] = value``."""

Extents = tuple[Extent, ...]
"""The memory of a buffer: one extent, or several where no allocation of the driver is as large."""


def assign(*changes: Change) -> None:
    """Make changes by one call of C code: an interrupt comes before all of them or after them."""
    deque(starmap(setitem, changes), 0)


class FreeList:
    """The free ranges of memory, in order of offset; neighbours are always joined.

    With each goes the number of the last submission that uses it. The methods return changes, for
    ``assign``: a range is always either free or in somebody's books.
    """

    def __init__(self, size: int) -> None:
        self.size = size
        self._ranges = [(0, size, 0)]

    def take(self, size: int) -> tuple[int, int, Change] | None:
        """Find the first range that fits; return its offset and number, and how to take it."""
        for i, (offset, available, used) in enumerate(self._ranges):
            if available >= size:
                rest = [(offset + size, available - size, used)] if available > size else []
                return offset, used, (self._ranges, slice(i, i + 1), rest)
        return None

    def give(self, offset: int, size: int, used: int = 0) -> Change:
        """Return how to give a range back."""
        first = last = bisect_left(self._ranges, (offset,))
        end = offset + size
        if last < len(self._ranges) and self._ranges[last][0] == end:
            _, more, other = self._ranges[last]
            end, used = end + more, max(used, other)
            last += 1
        if first > 0 and sum(self._ranges[first - 1][:2]) == offset:
            first -= 1
            offset, _, other = self._ranges[first]
            used = max(used, other)
        return self._ranges, slice(first, last), [(offset, end - offset, used)]

    @property
    def free(self) -> int:
        """Free bytes in all."""
        return sum(size for _, size, _ in self._ranges)

    @property
    def is_empty(self) -> bool:
        """Whether nothing is taken."""
        return self.free == self.size


class DeviceMemory:
    """An allocation of the driver with a buffer over it; ``native`` is that of the native module.

    ``device`` is the VulkanDevice. ``bound`` is all of it, as dispatches are bound to it. ``view``
    are its bytes and ``address`` is that of the first one, if the host sees them; else None and 0.
    ``source`` is the Vulkan heap that it was taken from: (adapter, heap).
    """

    def __init__(self, device: Any, native: Any, nbytes: int, source: tuple[int, int]) -> None:
        self.device: Any = device
        self.native: Any = native
        self.bound: tuple[Any, int, int] = native, 0, nbytes
        self.source = source
        self.view: npt.NDArray[np.uint8] | None = native.array
        # NumPy would import its attribute ctypes here, which fails while Python exits.
        view = self.view
        self.address: int = 0 if view is None else view.__array_interface__["data"][0]
        self.is_coherent: bool = native.coherent
        self.ranges: FreeList = FreeList(nbytes)
        _all[id(self)] = self

    @property
    def whole(self) -> Extent:
        """All bytes."""
        return Extent(self, 0, self.ranges.size)


_all: WeakValueDictionary[int, DeviceMemory] = WeakValueDictionary()


def living(objects: WeakValueDictionary[Any, _T]) -> list[_T]:
    """Return the values that still exist."""
    # One C call copies the references: no other thread or finalizer changes them meanwhile.
    found = (reference() for reference in objects.valuerefs())
    return [value for value in found if value is not None]


def held_bytes(source: tuple[int, int]) -> int:
    """Return the bytes that this process holds from one Vulkan heap: (adapter, heap)."""
    return sum(memory.ranges.size for memory in living(_all) if memory.source == source)


def visible(extent: Extent) -> npt.NDArray[np.uint8]:
    """Return the bytes of an extent that the host sees.

    Call ``invalidate`` after the device has written them, and ``flush`` after the host has.
    """
    memory, start, nbytes = extent
    view: npt.NDArray[np.uint8] = memory.view
    return view[start : start + nbytes]


def invalidate(*extents: Extent) -> None:
    """Make bytes that the device has written visible to the host.

    Raises:
        OutOfDeviceMemoryError: the driver has no memory for that.
    """
    for memory, start, nbytes in extents:
        if not memory.is_coherent:
            memory.device.call(memory.native.invalidate, start, nbytes)


def flush(*extents: Extent) -> None:
    """Make bytes that the host has written visible to the device.

    Raises:
        OutOfDeviceMemoryError: the driver has no memory for that.
    """
    for memory, start, nbytes in extents:
        if not memory.is_coherent:
            memory.device.call(memory.native.flush, start, nbytes)


class Allocation(ref[Any]):
    """Stands for memory of an object: the numbers of the last submissions that use and write it.

    It refers to its owner weakly. When the owner is freed, on any thread, C code appends it to
    ``Pool.freed``: a finalizer in Python would lose an interrupt that comes while it runs.
    """

    __slots__ = ("used", "written")
    __eq__: Any = object.__eq__
    __hash__: Any = object.__hash__  # that of a reference needs its owner

    used: int
    written: int


@dataclass(frozen=True, slots=True)
class MemoryReport:
    """Bytes held from the driver, bytes in use by tensors and buffers, and number of heaps."""

    reserved: int
    used: int
    heaps: int


class Pool:
    """Allocates ranges of memory for one use, under the lock of a VulkanDevice.

    ``freed`` are the allocations whose owners do not exist any more: later submissions may use
    their memory at once, because the device executes them in order.
    """

    def __init__(self, device: Any, use: str) -> None:
        self._device = device
        self._use = use
        self._lock: RLock = device.lock
        self.max_range: int = min(device.info.max_buffer, MAX_NBYTES) // ALIGNMENT * ALIGNMENT
        self.closed: bool = False
        self.heaps: list[DeviceMemory] = []
        self.freed: deque[Allocation] = deque()
        self._extents: dict[Allocation, Extents] = {}

    def check(self) -> None:
        """Check that memory can be used now.

        Raises:
            DeviceError: the pool is closed, or the device cannot be used.
        """
        self._device.check()
        if self.closed:
            raise DeviceError(f"the device {self._device.info.label} is closed")

    def available(self) -> int:
        """Return the bytes that the device can still give to this process."""
        found: int = self._device.available(self._use)
        return found

    def allocate(self, owner: object, nbytes: int) -> tuple[Extents, Allocation]:
        """Reserve memory until its owner is freed.

        Raises:
            OutOfDeviceMemoryError: the device has too little memory; nothing was taken.
            DeviceError: the device cannot be used.
        """
        if self.closed or forks.state.forked or self._lock._is_owned():  # type: ignore[attr-defined]
            self.check()
        size = -(-nbytes // ALIGNMENT) * ALIGNMENT
        allocation = Allocation(owner, self.freed.append)
        allocation.used = allocation.written = 0
        with self._lock:
            if self.freed:
                self.collect()
            if size > self.max_range:
                self._take_several(allocation, size)
            else:
                self._take(allocation, size)
            return self._extents[allocation], allocation

    def require(self, nbytes: int) -> None:
        """Check that new heaps could hold so many bytes.

        Raises:
            OutOfDeviceMemoryError: they could not.
        """
        self.collect()
        empty = self._empty()
        if nbytes > max(empty, self.available() + empty):
            raise self._refusal(nbytes)

    def _take_several(self, allocation: Allocation, size: int) -> None:
        self._room(size)
        sizes = [self.max_range] * (size // self.max_range)
        try:
            for n in filter(None, [*sizes, size % self.max_range]):
                self._take(allocation, n)
        except OutOfDeviceMemoryError:
            self._give(allocation)
            raise

    def _take(self, allocation: Allocation, size: int) -> None:
        """Add a range to those of an allocation, of a new heap if no other has room."""
        for heap in self.heaps:
            found = heap.ranges.take(size)
            if found is not None:
                offset, used, change = found
                allocation.used = allocation.written = max(used, allocation.used)
                extents = *self._extents.get(allocation, ()), Extent(heap, offset, size)
                assign(change, (self._extents, allocation, extents))
                return
        self._grow(size)
        self._take(allocation, size)

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
        wanted = max(FIRST_NBYTES, self.reserved, size)
        wanted = min(wanted, self.max_range, available // ALIGNMENT * ALIGNMENT)
        self.heaps.append(self._create(wanted, min(wanted, max(FIRST_NBYTES, size))))

    def _new_memory(self, nbytes: int) -> DeviceMemory:
        made: DeviceMemory = self._device.new_memory(nbytes, self._use)
        return made

    def _create(self, wanted: int, minimum: int) -> DeviceMemory:
        """Create a heap of as many bytes as are wanted, or of fewer, but not below ``minimum``."""
        try:
            return self._new_memory(wanted)
        except OutOfDeviceMemoryError:
            if wanted == minimum:
                raise
        return self._create(max(minimum, wanted // 2 // ALIGNMENT * ALIGNMENT), minimum)

    @property
    def reserved(self) -> int:
        """Bytes held from the driver."""
        return sum(heap.ranges.size for heap in self.heaps)

    def _empty(self) -> int:
        return sum(heap.ranges.size for heap in self.heaps if heap.ranges.is_empty)

    def release_empty_heaps(self) -> None:
        """Give back the heaps that nothing uses."""
        self.collect()
        self.heaps[:] = [heap for heap in self.heaps if not heap.ranges.is_empty]

    def collect(self) -> None:
        """Take back the memory of owners that were freed."""
        while self.freed:
            self._give(self.freed[0])
            self.freed.popleft()

    def _give(self, allocation: Allocation) -> None:
        """Take back the memory of an allocation; it has none if this was interrupted before."""
        extents = self._extents.get(allocation, ())  # none after ``close``
        for number, (heap, start, nbytes) in enumerate(extents, 1):
            change = heap.ranges.give(start, nbytes, allocation.used)
            assign(change, (self._extents, allocation, extents[number:]))
        self._extents.pop(allocation, None)

    def report(self) -> MemoryReport:
        """Return what is held and used now."""
        self.collect()
        reserved = self.reserved
        free = sum(heap.ranges.free for heap in self.heaps)
        return MemoryReport(reserved, reserved - free, len(self.heaps))

    def close(self) -> None:
        """Give up all memory; that whose ranges are in use exists until these are freed."""
        self.closed = True
        self.heaps.clear()
        self._extents.clear()
        self.freed.clear()
