"""Device memory: a few large heaps, cut into aligned ranges.

A kernel is bound to heaps, not to tensors, so that a new tensor needs no new pipeline.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from threading import RLock
from typing import Any, NamedTuple
from weakref import WeakSet, ref

import numpy as np
import numpy.typing as npt

from vkops.errors import OutOfDeviceMemoryError

ALIGNMENT = 256
"""Bytes; a multiple of every element size, and of every driver's storage offset alignment."""

FIRST_HEAP = 16 << 20
HEAP_LIMIT = (1 << 31) - (64 << 10)
"""Bytes. Kompute counts a tensor's bytes in 32 bits; below this, item numbers fit in 31, and so
does the address of any vector that a tensor has bytes in."""


class FreeList:
    """The free ranges of one heap, in order of offset; neighbours are always joined."""

    def __init__(self, size: int) -> None:
        self.size = size
        self._offsets = [0]
        self._sizes = [size]

    def take(self, size: int) -> int | None:
        """Offset of the first range that fits, or None."""
        for i, available in enumerate(self._sizes):
            if available >= size:
                offset = self._offsets[i]
                if available == size:
                    del self._offsets[i], self._sizes[i]
                else:
                    self._offsets[i] += size
                    self._sizes[i] -= size
                return offset
        return None

    def give(self, offset: int, size: int) -> None:
        """Return a range."""
        i = bisect_left(self._offsets, offset)
        if i < len(self._offsets) and self._offsets[i] == offset + size:
            size += self._sizes[i]
            del self._offsets[i], self._sizes[i]
        if i > 0 and self._offsets[i - 1] + self._sizes[i - 1] == offset:
            self._sizes[i - 1] += size
        else:
            self._offsets.insert(i, offset)
            self._sizes.insert(i, size)

    @property
    def free(self) -> int:
        """Free bytes in all."""
        return sum(self._sizes)


class Heap:
    """One Kompute tensor. ``view`` is its memory where the host sees it, else None.

    ``source`` is the Vulkan heap it was taken from: (adapter, heap). It keeps the Kompute manager
    alive: a tensor must not outlive it.
    """

    def __init__(
        self, manager: Any, kp: Any, size: int, source: tuple[int, int], *, mapped: bool
    ) -> None:
        kind = kp.TensorTypes.host if mapped else kp.TensorTypes.storage
        self.manager = manager
        try:
            content = np.zeros(size // 4, np.uint32)
        except MemoryError as error:
            raise OutOfDeviceMemoryError(f"{size} bytes: the host has no memory left") from error
        self.tensor: Any = manager.tensor_t(content, kind)
        self.source = source
        self.view: npt.NDArray[np.uint8] | None = (
            self.tensor.data().view(np.uint8) if mapped else None
        )
        self.ranges: FreeList = FreeList(size)
        with _living_lock:
            _living.add(self)


_living: WeakSet[Heap] = WeakSet()
_living_lock = RLock()


def held_bytes(source: tuple[int, int]) -> int:
    """Bytes that all devices of this process hold from one Vulkan heap: (adapter, heap)."""
    with _living_lock:
        return sum(heap.ranges.size for heap in _living if heap.source == source)


class Range(NamedTuple):
    """Bytes of a heap."""

    heap: Heap
    offset: int
    nbytes: int

    @property
    def ranges(self) -> tuple[Range, ...]:
        """It is one piece."""
        return (self,)

    def part(self, start: int, nbytes: int) -> Range:
        """A range of the range."""
        return Range(self.heap, self.offset + start, nbytes)


class Spread(NamedTuple):
    """More bytes than one heap can hold: ranges of several, one after the other."""

    ranges: tuple[Range, ...]
    nbytes: int

    @property
    def heap(self) -> None:
        """Not one."""

    def part(self, start: int, nbytes: int) -> Place:
        """What lies in those bytes of it."""
        parts = []
        end = start + nbytes
        for range_ in self.ranges:
            if start < range_.nbytes and end > 0:
                first = max(0, start)
                parts.append(range_.part(first, min(end, range_.nbytes) - first))
            start, end = start - range_.nbytes, end - range_.nbytes
        return parts[0] if len(parts) == 1 else Spread(tuple(parts), nbytes)


Place = Range | Spread
"""Where a buffer is."""


class _Claim(ref[object]):
    """A weak reference to what owns a place."""

    __slots__ = ("place",)
    place: Place


@dataclass(frozen=True, slots=True)
class MemoryReport:
    """Bytes held from the driver, bytes in use by tensors and buffers, and number of heaps."""

    reserved: int
    used: int
    heaps: int


class Memory:
    """Allocates ranges for one device. Not locked: the device's lock covers it.

    ``left`` tells how many bytes the device can still give to this process, ``release`` is told
    of every heap that is given back.
    """

    def __init__(
        self,
        create_heap: Callable[[int], Heap],
        max_buffer: int,
        left: Callable[[], int],
        release: Callable[[Heap], None],
    ) -> None:
        self._create_heap = create_heap
        self.max_range: int = min(max_buffer, HEAP_LIMIT) // ALIGNMENT * ALIGNMENT
        self._left = left
        self._release = release
        self._heaps: list[Heap] = []
        self._claims: dict[int, _Claim] = {}
        self._dead: deque[Place] = deque()  # filled as owners go, on any thread at any time

    def allocate(self, nbytes: int, owner: object) -> Place:
        """Reserve a place that lives as long as ``owner``.

        Raises:
            OutOfDeviceMemoryError: more than the device can hold; nothing was taken.
        """
        size = -(-nbytes // ALIGNMENT) * ALIGNMENT
        self._collect()
        place = self._spread(size) if size > self.max_range else self._take(size)
        if place is None:
            place = self._grow(size)
        claim = _Claim(owner, self._retire)
        claim.place = place
        self._claims[id(claim)] = claim
        return place

    def fits(self, nbytes: int) -> bool:
        """Whether new heaps could hold so much."""
        self._collect()
        return nbytes <= self._left() + self._empty()

    def _spread(self, size: int) -> Spread:
        self._require(size)
        sizes = [self.max_range] * (size // self.max_range)
        rest = size % self.max_range
        ranges: list[Range] = []
        try:
            for n in [*sizes, rest] if rest else sizes:
                ranges.append(self._take(n) or self._grow(n))
        except BaseException:  # such as: somebody else was faster
            for range_ in ranges:
                _give(range_)
            raise
        return Spread(tuple(ranges), size)

    def _take(self, size: int) -> Range | None:
        for heap in self._heaps:
            offset = heap.ranges.take(size)
            if offset is not None:
                return Range(heap, offset, size)
        return None

    def _require(self, size: int) -> int:
        """Make sure that new heaps can hold so much; returns what is left for them."""
        if self._left() < size <= self._left() + self._empty():
            self._release_empty_heaps()
        left = self._left()
        if size > left:
            raise OutOfDeviceMemoryError(
                f"a buffer of {size} bytes: the device has {max(left + self._empty(), 0)} bytes "
                f"left ({self._reserved()} reserved by this device object)"
            )
        return left

    def _grow(self, size: int) -> Range:
        left = self._require(size)
        # Doubling keeps heaps, and with them pipelines, few.
        wanted = max(FIRST_HEAP, self._reserved(), size)
        wanted = min(wanted, self.max_range, left // ALIGNMENT * ALIGNMENT)
        heap = self._create_heap(wanted)
        self._heaps.append(heap)
        offset = heap.ranges.take(size)
        assert offset is not None
        return Range(heap, offset, size)

    def _reserved(self) -> int:
        return sum(heap.ranges.size for heap in self._heaps)

    def _empty(self) -> int:
        return sum(heap.ranges.size for heap in self._heaps if _is_empty(heap))

    def _release_empty_heaps(self) -> None:
        for heap in [h for h in self._heaps if _is_empty(h)]:
            self._heaps.remove(heap)
            self._release(heap)

    def _retire(self, claim: _Claim) -> None:
        del self._claims[id(claim)]
        if self._heaps:  # else closed: to hold the range would hold its heap
            self._dead.append(claim.place)

    def _collect(self) -> None:
        while self._dead:
            for range_ in self._dead.popleft().ranges:
                _give(range_)

    def report(self) -> MemoryReport:
        """What is held and used now."""
        self._collect()
        reserved = self._reserved()
        free = sum(heap.ranges.free for heap in self._heaps)
        return MemoryReport(reserved, reserved - free, len(self._heaps))

    def close(self) -> None:
        """Let go of all heaps; those with living ranges stay until these go."""
        self._heaps.clear()
        self._dead.clear()


def _is_empty(heap: Heap) -> bool:
    return heap.ranges.free == heap.ranges.size


def _give(place: Range) -> None:
    place.heap.ranges.give(place.offset, place.nbytes)
