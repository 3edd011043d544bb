"""Executors: the memory of a Device, and the running of work on it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import lru_cache
from threading import RLock

from vkops.errors import DeviceError, OutOfDeviceMemoryError
from vkops.extent import Extent, slice_extents
from vkops.gpu import copies
from vkops.gpu.adapters import adapter, forks
from vkops.gpu.kernels import encoding
from vkops.gpu.kernels.choice import STREAM, VECTOR
from vkops.gpu.memory import host_memory
from vkops.gpu.memory.heaps import ALIGNMENT, Allocation, Extents, Heap, Memory, held_bytes, visible
from vkops.gpu.run.encoded_plan import EncodedPlan
from vkops.gpu.run.open_queues import with_reclaim
from vkops.gpu.run.queue import Queue, Used, Work
from vkops.plan.execute import Bytes
from vkops.plan.movements import copy
from vkops.plan.region import CopyPlan, Output
from vkops.plan.rounding import round_up
from vkops.plan.view import View

STAGING_BYTES = 16 << 20
"""Bytes of staging memory, through which the host accesses device memory that it does not see."""

MAX_UNCHECKED_BYTES = 64 << 20
"""Bytes up to which memory is allocated without a check beforehand that it fits."""


class Executor:
    """The memory of one Device. The queue is shared with the other Devices of the adapter.

    ``with executor.exclusive():`` keeps other threads away from the queue and the memory.
    """

    def __init__(self, queue: Queue, *, staged: bool = False) -> None:
        self.queue = queue
        self.info: adapter.DeviceInfo = queue.info
        self.mapped: bool = self.info.unified_memory and not staged
        self.features: frozenset[str] = (
            frozenset() if adapter.has_minimum_limits() else queue.kompute.features
        )
        self.tuning: encoding.Tuning = _tuning(
            self.info.type == "CPU",
            self.info.max_bindings,
            adapter.max_invocations(self.info),
            copies.rule_for(self.info, queue.kompute.images),
        )
        self.memory: Memory = Memory(
            lambda size: queue.new_heap(size, mapped=self.mapped),
            self.info.max_buffer,
            self.available,
            queue.lock,
            self.check,
        )
        self._staging: _Staging | None = None
        self.closed: bool = False
        queue.users[id(self)] = self

    # -- running ----------------------------------------------------------------------------------

    def exclusive(self) -> RLock:
        """Return the lock to hold while memory is used.

        Raises:
            DeviceError: the device is closed, was opened before this process was forked off, or
                is in use by this very thread.
        """
        return self.queue.exclusive(self)

    def check(self) -> None:
        """Raise a DeviceError if the device cannot be used now; see ``exclusive``."""
        self.queue.check(self)

    def wait(self, number: int) -> None:
        """Wait for a submission; other threads can use the device meanwhile."""
        self.queue.prepare(self)
        self.queue.wait(number)

    def settle(self) -> None:
        """Wait for all that was submitted to the adapter."""
        self.queue.prepare(self)
        self.queue.settle()

    def run(self, work: Sequence[Work]) -> None:
        """Run work and wait for it."""
        self.wait(self.queue.submit(self, work))

    # -- memory -----------------------------------------------------------------------------------

    def fits(self, nbytes: int) -> bool:
        """Whether memory that is not in use has room; small sizes count as fitting, unchecked."""
        if nbytes <= MAX_UNCHECKED_BYTES:
            return True
        try:
            with_reclaim(lambda: self._require(nbytes))
        except OutOfDeviceMemoryError:
            return False
        return True

    def _require(self, nbytes: int) -> None:
        self.check()
        with self.queue.lock:
            self.memory.require(nbytes)

    def available(self) -> int:
        """Return the bytes that this process can still get for tensors and buffers.

        Raises:
            DeviceError: VKOPS_MEMORY_LIMIT is not a number of bytes.
        """
        heap = adapter.tensor_heap(self.info.index, host=self.mapped)
        allowed = adapter.memory_limit(heap) - held_bytes((self.info.index, heap.index))
        return min(allowed, self.queue.available(mapped=self.mapped))

    # -- transfers --------------------------------------------------------------------------------

    def write(self, target: Extents, source: Bytes, used: Used) -> None:
        """Copy bytes through staging memory to device memory, that of ``used``."""
        staging = self._reserved_staging()
        with self.exclusive():
            for start, n in _pieces(source.size):
                part = staging.take(n, self.queue)
                visible(part)[...] = source[start : start + n]
                self._copy((part,), slice_extents(target, start, n), [staging], [used], now=True)

    def read(self, source: Extents, used: Used) -> Bytes:
        """Return bytes of device memory, that of ``used``, copied through staging memory."""
        nbytes = sum(extent.nbytes for extent in source)
        found: Bytes = with_reclaim(lambda: host_memory.take(nbytes))
        staging = self._reserved_staging()
        self.wait(used.allocation.written)  # while other threads use the device
        with self.exclusive():
            for start, n in _pieces(nbytes):
                part = staging.take(n, self.queue)
                self._copy(slice_extents(source, start, n), (part,), [used], [staging])
                self.queue.wait(staging.allocation.written)
                found[start : start + n] = visible(part)
        return found

    def copy(
        self, source: Extents, target: Extents, read: Used, written: Used, *, now: bool = False
    ) -> None:
        """Copy bytes from device memory to device memory, from that of ``read`` to ``written``.

        While this thread records a program, the copy becomes a part of it, unless it is ``now``.
        """
        with self.exclusive():
            self._copy(source, target, [read], [written], now=now)

    def _copy(
        self,
        source: Extents,
        target: Extents,
        reads: Sequence[Used],
        writes: Sequence[Used],
        *,
        now: bool = False,
    ) -> None:
        """Copy; a transfer is a plan too."""
        nbytes = sum(extent.nbytes for extent in source)
        read, start = _from_vector(source)
        written, to = _from_vector(target)
        bytes_ = View.packed((nbytes,))
        plan = movement(self.tuning, 1, bytes_.shift(start), bytes_.shift(to))
        work = plan.bind([read], [written])
        self.queue.enqueue(work, reads, writes, "a transfer", now=now)

    def _reserved_staging(self) -> _Staging:
        """Return staging memory, which is taken when it is first needed."""
        if self._staging is None:
            self._staging = _Staging(with_reclaim(lambda: self.host_heap(STAGING_BYTES)))
        return self._staging

    def host_heap(self, size: int) -> Heap:
        """Take memory that host and device both see."""
        self.check()
        with self.queue.lock:
            return self.queue.new_heap(size, mapped=True)

    # -- life -------------------------------------------------------------------------------------

    def close(self) -> None:
        """Release everything; memory that arrays still view is freed with them."""
        if forks.state.forked or self.memory.closed:
            return
        # The device may be lost already, or be found to be lost here.
        with self.queue.lock if self.closed else self.exclusive():
            if not self.closed:
                with suppress(DeviceError):
                    self.queue.settle()
            self.closed = True
            self._staging = None
            self.memory.close()


class _Staging:
    """Memory that the host sees, parts of which are used one after the other."""

    def __init__(self, heap: Heap) -> None:
        self._heap = heap
        self._next = 0
        self.allocation: Allocation = Allocation(self)
        self.allocation.used = self.allocation.written = 0

    def take(self, nbytes: int, queue: Queue) -> Extent:
        """Return a part that no submission uses any more."""
        if self._next + nbytes > STAGING_BYTES:
            queue.wait(self.allocation.used)
            self._next = 0
        part = self._heap.whole.part(self._next, nbytes)
        self._next = round_up(self._next + nbytes, ALIGNMENT)
        return part


@lru_cache
def _tuning(
    is_cpu: bool, max_bindings: int, max_invocations: int, rule: copies.CopyRule
) -> encoding.Tuning:
    """Return the same object for devices of one kind: programs are encoded once for all of them."""
    # Besides its sources, a kernel has the table, and its target twice.
    sources = STREAM.sources if max_bindings >= STREAM.sources + 3 else 1
    return replace(
        encoding.CPU if is_cpu else encoding.GPU,
        sources=sources,
        invocations=max_invocations,
        copies=rule,
    )


def _from_vector(extents: Extents) -> tuple[Extents, int]:
    """Extend the first extent to the start of its first vector; also return the bytes added.

    Kernels count from whole vectors, transfers can begin at any byte.
    """
    first, *others = extents
    start = first.start % VECTOR
    return (first.part(-start, first.nbytes + start), *others), start


@lru_cache(maxsize=256)
def movement(tuning: encoding.Tuning, itemsize: int, source: View, target: View) -> EncodedPlan:
    """Return the plan that copies a view of one buffer to a view of another, of the same sizes."""
    output = Output(target.extent * itemsize, (copy(source, target),))
    return EncodedPlan(CopyPlan(itemsize, (source.extent * itemsize,), (output,)), tuning)


def _pieces(nbytes: int) -> Iterator[tuple[int, int]]:
    """The (start, length) of pieces that fit in staging memory.

    Bytes after the last whole vector are a piece of their own: the others get the widest kernel.
    """
    body = nbytes // VECTOR * VECTOR
    for start in range(0, body, STAGING_BYTES):
        yield start, min(STAGING_BYTES, body - start)
    if body < nbytes:
        yield body, nbytes - body
