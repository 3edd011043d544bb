"""Device memory: a few large heaps, cut into aligned ranges.

A kernel is bound to heaps, not to tensors, so that a new tensor needs no new pipeline.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from threading import RLock
from typing import Any
from weakref import WeakSet, finalize

import numpy as np
import numpy.typing as npt

from vkops.errors import OutOfDeviceMemoryError

ALIGNMENT = 256
"""Bytes; a multiple of every element size, and of every driver's storage offset alignment."""

FIRST_HEAP = 16 << 20
HEAP_LIMIT = 1 << 31
"""Bytes. Kompute counts a tensor's bytes in 32 bits; below this, item numbers fit in 31."""


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
        self.tensor = manager.tensor_t(content, kind)
        self.source = source
        self.view: npt.NDArray[np.uint8] | None = (
            self.tensor.data().view(np.uint8) if mapped else None
        )
        self.ranges = FreeList(size)
        with _living_lock:
            _living.add(self)


_living: WeakSet[Heap] = WeakSet()
_living_lock = RLock()


def held_bytes(source: tuple[int, int]) -> int:
    """Bytes that all devices of this process hold from one Vulkan heap: (adapter, heap)."""
    with _living_lock:
        return sum(heap.ranges.size for heap in _living if heap.source == source)


@dataclass(frozen=True, slots=True)
class Range:
    """Bytes of a heap."""

    heap: Heap
    offset: int
    nbytes: int


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
        self.max_range = min(max_buffer, HEAP_LIMIT) // ALIGNMENT * ALIGNMENT
        self._left = left
        self._release = release
        self._heaps: list[Heap] = []
        self._dead: deque[Range] = deque()  # filled by finalizers, on any thread at any time

    def allocate(self, nbytes: int, owner: object) -> Range:
        """Reserve a range that lives as long as ``owner``.

        Raises:
            OutOfDeviceMemoryError: more than one buffer, or the device, can hold.
        """
        size = -(-nbytes // ALIGNMENT) * ALIGNMENT
        if size > self.max_range:
            raise OutOfDeviceMemoryError(
                f"a buffer of {nbytes} bytes: the device's largest buffer is {self.max_range} bytes"
            )
        self._collect()
        result = self._take(size) or self._grow(size)
        finalize(owner, self._retire, result).atexit = False
        return result

    def _take(self, size: int) -> Range | None:
        for heap in self._heaps:
            offset = heap.ranges.take(size)
            if offset is not None:
                return Range(heap, offset, size)
        return None

    def _grow(self, size: int) -> Range:
        reserved = sum(heap.ranges.size for heap in self._heaps)
        left = self._left()
        if size > left:
            self._release_empty_heaps()
            left = self._left()
        if size > left:
            raise OutOfDeviceMemoryError(
                f"a buffer of {size} bytes: the device has {max(left, 0)} bytes left "
                f"({reserved} reserved by this device object)"
            )
        # Doubling keeps heaps, and with them pipelines, few.
        wanted = max(FIRST_HEAP, reserved, size)
        wanted = min(wanted, self.max_range, left // ALIGNMENT * ALIGNMENT)
        heap = self._create_heap(wanted)
        self._heaps.append(heap)
        offset = heap.ranges.take(size)
        assert offset is not None
        return Range(heap, offset, size)

    def _release_empty_heaps(self) -> None:
        for heap in [h for h in self._heaps if h.ranges.free == h.ranges.size]:
            self._heaps.remove(heap)
            self._release(heap)

    def _retire(self, dead: Range) -> None:
        if self._heaps:  # else closed: to hold the range would hold its heap
            self._dead.append(dead)

    def _collect(self) -> None:
        while self._dead:
            dead = self._dead.popleft()
            dead.heap.ranges.give(dead.offset, dead.nbytes)

    def report(self) -> MemoryReport:
        """What is held and used now."""
        self._collect()
        reserved = sum(heap.ranges.size for heap in self._heaps)
        free = sum(heap.ranges.free for heap in self._heaps)
        return MemoryReport(reserved, reserved - free, len(self._heaps))

    def close(self) -> None:
        """Let go of all heaps; those with living ranges stay until these go."""
        self._heaps.clear()
        self._dead.clear()
