"""Device memory: aligned ranges of a few large heaps.

Kernels are bound to heaps, not to tensors, so that a new tensor needs no new pipeline.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple, TypeVar
from weakref import WeakValueDictionary, ref

import numpy as np
import numpy.typing as npt

from vkops.errors import OutOfDeviceMemoryError
from vkops.gpu.adapters.kompute import Kompute
from vkops.gpu.memory import host_memory
from vkops.plan.rounding import round_up

_T = TypeVar("_T")

ALIGNMENT = 256
"""Bytes; a multiple of every element size, and of every driver's storage offset alignment."""

FIRST_HEAP = 16 << 20
HEAP_LIMIT = (1 << 31) - (64 << 10)
"""Bytes. Kompute counts the bytes of a tensor in 32 bits. Below this limit, the numbers of items
and the addresses of all vectors that a tensor reaches fit in 31 bits."""


class FreeList:
    """The free ranges of one heap, in order of offset; neighbours are always joined.

    Each change is a single step, so that an interrupt comes before or after it.
    """

    def __init__(self, size: int) -> None:
        self.size = size
        self._ranges = [(0, size)]

    def take(self, size: int) -> int | None:
        """Take the first range that fits; return its offset, or None if there is none."""
        for i, (offset, available) in enumerate(self._ranges):
            if available > size:
                self._ranges[i] = offset + size, available - size
                return offset
            if available == size:
                del self._ranges[i]
                return offset
        return None

    def give(self, offset: int, size: int) -> None:
        """Give a range back."""
        first = last = bisect_left(self._ranges, (offset,))
        end = offset + size
        if last < len(self._ranges) and self._ranges[last][0] == end:
            end += self._ranges[last][1]
            last += 1
        if first > 0 and sum(self._ranges[first - 1]) == offset:
            first -= 1
            offset = self._ranges[first][0]
        self._ranges[first:last] = [(offset, end - offset)]

    def free_all_but(self, taken: Iterable[tuple[int, int]]) -> None:
        """Free everything but these ranges: (offset, size)."""
        ranges, start = [], 0
        for offset, size in sorted([*taken, (self.size, 0)]):
            if offset > start:
                ranges.append((start, offset - start))
            start = offset + size
        self._ranges = ranges

    @property
    def free(self) -> int:
        """Free bytes in all."""
        return sum(size for _, size in self._ranges)


class Heap:
    """One Kompute tensor. ``view`` is its memory if the host sees it, else None.

    ``address`` is that of the memory in the host's address space; 0 if the host does not see it.
    ``source`` is the Vulkan heap that it was taken from: (adapter, heap). The object keeps
    Kompute's manager alive, which a tensor must not outlive.
    """

    def __init__(
        self, kompute: Kompute, size: int, source: tuple[int, int], *, mapped: bool
    ) -> None:
        kinds = kompute.kp.TensorTypes
        self.kompute = kompute
        host_memory.require(2 * size)  # Kompute fills the tensor from an array
        self.tensor: Any = kompute.manager.tensor_t(
            np.zeros(size // 4, np.uint32), kinds.host if mapped else kinds.storage
        )
        self.source = source
        self.view: npt.NDArray[np.uint8] | None = (
            self.tensor.data().view(np.uint8) if mapped else None
        )
        self.address: int = 0 if self.view is None else self.view.ctypes.data
        self.ranges: FreeList = FreeList(size)
        _heaps[id(self)] = self

    @cached_property
    def buffer(self) -> Any:
        """A buffer for copies, over this memory; None if the driver refuses."""
        return self.kompute.buffer(self.tensor)

    def image(self, offset: int, pitch: int, height: int, unit: int) -> Any:
        """Lay a linear image over a part of the memory; None if the driver refuses.

        It has rows of ``pitch`` bytes, and texels of ``unit`` bytes.
        """
        return self.kompute.image(self.tensor, offset, pitch, height, unit)


_heaps: WeakValueDictionary[int, Heap] = WeakValueDictionary()


def living(objects: WeakValueDictionary[Any, _T]) -> list[_T]:
    """Return the values that still exist."""
    # One C call copies the references: no other thread or finalizer changes them meanwhile.
    found = (reference() for reference in objects.valuerefs())
    return [value for value in found if value is not None]


def held_bytes(source: tuple[int, int]) -> int:
    """Return the bytes that this process holds from one Vulkan heap: (adapter, heap)."""
    return sum(heap.ranges.size for heap in living(_heaps) if heap.source == source)


@dataclass(frozen=True, slots=True, eq=False)
class ImportedHeap:
    """An array of the host, which copies with regions read in its place through ``buffer``."""

    buffer: Any


class Range(NamedTuple):
    """Bytes of a heap."""

    heap: Heap
    offset: int
    nbytes: int

    @property
    def ranges(self) -> tuple[Range, ...]:
        """The one range that it is."""
        return (self,)

    @property
    def bytes(self) -> npt.NDArray[np.uint8]:
        """The bytes themselves, if the host sees them."""
        assert self.heap.view is not None
        return self.heap.view[self.offset : self.offset + self.nbytes]

    @property
    def address(self) -> int:
        """The address of the bytes in the host's memory, if the host sees them."""
        return self.heap.address + self.offset

    def part(self, start: int, nbytes: int) -> Range:
        """Return a part of the range."""
        return Range(self.heap, self.offset + start, nbytes)


class Spread(NamedTuple):
    """More bytes than one heap can hold: ranges of several heaps, one after the other."""

    ranges: tuple[Range, ...]
    nbytes: int

    @property
    def heap(self) -> None:
        """None: there are several."""

    def part(self, start: int, nbytes: int) -> Allocation:
        """Return some of its bytes."""
        parts = []
        end = start + nbytes
        for range_ in self.ranges:
            if start < range_.nbytes and end > 0:
                first = max(0, start)
                parts.append(range_.part(first, min(end, range_.nbytes) - first))
            start, end = start - range_.nbytes, end - range_.nbytes
        return parts[0] if len(parts) == 1 else Spread(tuple(parts), nbytes)


Allocation = Range | Spread
"""The device memory of a buffer: one range of a heap, or several."""


class _Claim(ref[object]):
    """A weak reference to the owner of an allocation."""

    __slots__ = ("allocation",)
    allocation: Allocation


@dataclass(frozen=True, slots=True)
class MemoryReport:
    """Bytes held from the driver, bytes in use by tensors and buffers, and number of heaps."""

    reserved: int
    used: int
    heaps: int


class Memory:
    """Allocates ranges for one device. Not locked: the device's lock covers it.

    ``available`` returns the bytes that the device can still give to this process; ``release`` is
    called with every heap that is given back.
    """

    def __init__(
        self,
        create_heap: Callable[[int], Heap],
        max_buffer: int,
        available: Callable[[], int],
        release: Callable[[Heap], None],
    ) -> None:
        self._create_heap = create_heap
        self.max_range: int = min(max_buffer, HEAP_LIMIT) // ALIGNMENT * ALIGNMENT
        self._available = available
        self._release = release
        self.heaps: list[Heap] = []
        self._claims: dict[int, _Claim] = {}
        self._dead: deque[ref[object]] = deque()  # filled when owners are freed, on any thread
        self._is_known = True  # False while free ranges change, and after an interrupt there

    def allocate(self, nbytes: int, owner: object) -> Allocation:
        """Reserve memory for as long as ``owner`` exists.

        Raises:
            OutOfDeviceMemoryError: the device has too little memory; nothing was taken.
        """
        size = round_up(nbytes, ALIGNMENT)
        self._collect()
        self._is_known = False
        allocation = self._spread(size) if size > self.max_range else self._take(size)
        if allocation is None:
            allocation = self._grow(size)
        claim = _Claim(owner, self._dead.append)
        claim.allocation = allocation
        self._claims[id(claim)] = claim
        self._is_known = True
        return allocation

    def require(self, nbytes: int) -> None:
        """Check that new heaps could hold so many bytes.

        Raises:
            OutOfDeviceMemoryError: they could not.
        """
        self._collect()
        empty = self._empty()
        if nbytes > max(empty, self._available() + empty):
            raise self._refusal(nbytes)

    def _spread(self, size: int) -> Spread:
        self._room(size)
        sizes = [self.max_range] * (size // self.max_range)
        rest = size % self.max_range
        ranges = [self._take(n) or self._grow(n) for n in ([*sizes, rest] if rest else sizes)]
        return Spread(tuple(ranges), size)

    def _take(self, size: int) -> Range | None:
        for heap in self.heaps:
            offset = heap.ranges.take(size)
            if offset is not None:
                return Range(heap, offset, size)
        return None

    def _room(self, size: int) -> int:
        """Check that new heaps can hold so many bytes; return the bytes available for them."""
        if self._available() < size <= self._available() + self._empty():
            self._release_empty_heaps()
        available = self._available()
        if size > available:
            raise self._refusal(size)
        return available

    def _refusal(self, size: int) -> OutOfDeviceMemoryError:
        return OutOfDeviceMemoryError(
            f"a buffer of {size} bytes: the device has {max(self._available() + self._empty(), 0)} "
            f"bytes available ({self.reserved} reserved by this device object)"
        )

    def _grow(self, size: int) -> Range:
        available = self._room(size)
        # Doubling keeps heaps, and with them pipelines, few.
        wanted = max(FIRST_HEAP, self.reserved, size)
        wanted = min(wanted, self.max_range, available // ALIGNMENT * ALIGNMENT)
        heap = self._create(wanted, min(wanted, max(FIRST_HEAP, size)))
        self.heaps.append(heap)
        offset = heap.ranges.take(size)
        assert offset is not None
        return Range(heap, offset, size)

    def _create(self, wanted: int, minimum: int) -> Heap:
        """Create a heap of as many bytes as are wanted, or of fewer, but not below ``minimum``."""
        try:
            return self._create_heap(wanted)
        except OutOfDeviceMemoryError:
            if wanted == minimum:
                raise
        return self._create(max(minimum, wanted // 2 // ALIGNMENT * ALIGNMENT), minimum)

    @property
    def reserved(self) -> int:
        """Bytes held from the driver."""
        return sum(heap.ranges.size for heap in self.heaps)

    def _empty(self) -> int:
        return sum(heap.ranges.size for heap in self.heaps if _is_empty(heap))

    def release_empty_heaps(self) -> None:
        """Give back the heaps that nothing uses."""
        self._collect()
        self._release_empty_heaps()

    def _release_empty_heaps(self) -> None:
        for heap in [h for h in self.heaps if _is_empty(h)]:
            self._release(heap)
            self.heaps.remove(heap)

    def _collect(self) -> None:
        """Free the memory of dead owners, and what an error or an interrupt has left taken."""
        if not self._is_known:
            self._free_unclaimed()
        self._is_known = False
        while self._dead:
            claim = self._claims.pop(id(self._dead.popleft()), None)
            for range_ in claim.allocation.ranges if claim else ():
                range_.heap.ranges.give(range_.offset, range_.nbytes)
        self._is_known = True

    def _free_unclaimed(self) -> None:
        """Free everything but the memory of living owners."""
        taken: dict[FreeList, list[tuple[int, int]]] = {heap.ranges: [] for heap in self.heaps}
        for key, claim in list(self._claims.items()):
            if claim() is None:
                self._claims.pop(key, None)
                continue
            for range_ in claim.allocation.ranges:
                taken[range_.heap.ranges].append((range_.offset, range_.nbytes))
        for free, ranges in taken.items():
            free.free_all_but(ranges)

    def report(self) -> MemoryReport:
        """Return what is held and used now."""
        self._collect()
        reserved = self.reserved
        free = sum(heap.ranges.free for heap in self.heaps)
        return MemoryReport(reserved, reserved - free, len(self.heaps))

    def close(self) -> None:
        """Give up all heaps; those whose ranges are in use exist until these are freed."""
        for heap in self.heaps:
            self._release(heap)
        self.heaps.clear()
        self._claims.clear()  # they hold heaps
        self._dead.clear()


def _is_empty(heap: Heap) -> bool:
    return heap.ranges.free == heap.ranges.size
