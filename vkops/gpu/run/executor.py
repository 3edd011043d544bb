"""Executors allocate the memory of a Device and run its dispatches."""

from __future__ import annotations

import gc
from collections.abc import Callable, Hashable, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any, TypeVar
from weakref import ref

import numpy.typing as npt

from vkops.errors import DeviceError, OutOfDeviceMemoryError
from vkops.gpu.adapters import adapter
from vkops.gpu.adapters.kompute import Commands
from vkops.gpu.copies import calibration
from vkops.gpu.copies.copy_costs import UNMEASURED, CopyCosts, has_long_runs
from vkops.gpu.kernels import encoding
from vkops.gpu.kernels.choice import STREAM
from vkops.gpu.kernels.layout import TABLE_BYTES
from vkops.gpu.memory import host_memory
from vkops.gpu.memory.heaps import Heap, ImportedHeap, Memory, Range, held_bytes
from vkops.gpu.run.dispatch import Dispatch, PreparedPlan, Work, prepare
from vkops.gpu.run.pipelines import Pipelines
from vkops.gpu.run.queue import FORKED, Queue, Submission, process
from vkops.plan.region import CopyPlan

MAX_PIPELINES = 64
"""Pipelines kept for dispatches that are waited for. Old versions of lavapipe leak some memory with
each that is made."""

MAX_STARTED_PIPELINES = 16
"""Pipelines kept for each submission that can be pending."""

MAX_TOGETHER = 8
"""Dispatches that one submission may have, each with pipelines and a region table of its own."""

MIN_IMPORTED_BYTES = 32 << 10
"""Bytes of the smallest arrays that are imported: smaller ones are copied faster."""

MAX_SUBMISSIONS = 2
"""Submissions that the device may execute while the host continues."""

STAGING_BYTES = 16 << 20
"""Bytes of staging memory, through which the host accesses device memory that it does not see."""

T = TypeVar("T")


class Executor:
    """The memory, the region tables and the pipelines of one Device.

    The queue is shared with the other Devices of the adapter. ``run`` and ``submit`` may be called
    from many threads. Methods whose docstrings say so are called by ``exclusive``, which waits for
    all submissions, or by ``locked``, which does not.

    An interrupt (KeyboardInterrupt) can come between any two steps. So whatever the device works
    on is recorded here before it begins, and what is about to change counts as unknown.
    """

    def __init__(self, queue: Queue, *, staged: bool = False) -> None:
        self.queue = queue
        self.info: adapter.DeviceInfo = queue.info
        self.mapped: bool = self.info.unified_memory and not staged
        # Besides its sources, a kernel has the table, and its target twice.
        sources = STREAM.sources if self.info.max_bindings >= STREAM.sources + 3 else 1
        self._kompute = queue.kompute
        self.tuning: encoding.Tuning = replace(
            encoding.CPU if self.info.type == "CPU" else encoding.GPU,
            sources=sources,
            copies=calibration.initial_costs(self.info, self._kompute),
        )
        self.memory: Memory = Memory(
            lambda size: self._new_heap(size, mapped=self.mapped),
            self.info.max_buffer,
            self.available,
            self.queue.forget,
        )
        self.wide: bool = self._kompute.has_int64 and adapter.prefers_int64(self.info)
        self.pipelines: Pipelines = with_reclaim(lambda: self.new_pipelines(MAX_PIPELINES))
        self._started: list[Pipelines] = []
        # Each dispatch of a submission has a region table of its own.
        self._tables: list[Pipelines] = [self.pipelines]
        self._max_dispatches = MAX_TOGETHER if self._kompute.native else 1
        self._joint_commands: Commands | None = None
        self._staging: Heap | None = None
        self.measures: bool = False
        self._nanoseconds: float | None = 0.0
        self._closed = False
        self.queue.add(self)

    # -- running ----------------------------------------------------------------------------------

    def copy_by_shaders(self) -> None:
        """Prepare all plans from now on for shaders, so that each store can be traced."""
        self.tuning = replace(self.tuning, copies=None)

    def prepare(self, plan: CopyPlan) -> PreparedPlan:
        """Pack a plan's regions for this device, and learn the costs of copies if they may matter.

        A stream does not learn them: it holds the queue while it prepares its chunks.
        """
        if self.tuning.copies is UNMEASURED and not self.queue.is_held and has_long_runs(plan):
            self._learn_costs()
        return prepare(plan, self.tuning)

    def _learn_costs(self) -> None:
        """Measure what copies cost, unless the cache has it; if memory is short, do that later."""
        info = replace(self.info, unified_memory=self.mapped)
        with suppress(OutOfDeviceMemoryError):
            costs = calibration.costs_of(info, lambda: self.exclusive(self._measure_costs))
            copies = calibration.limited(costs, self._kompute)
            self.tuning = replace(self.tuning, copies=copies)

    def _measure_costs(self) -> CopyCosts:
        heap = self._new_heap(calibration.HEAP_BYTES, mapped=self.mapped)
        pipelines = self.new_pipelines(MAX_STARTED_PIPELINES)
        pipelines.measure(True)
        try:
            return calibration.measure(pipelines.run, heap, self.tuning)
        finally:
            pipelines.close()

    def run(self, dispatches: Sequence[Work]) -> None:
        """Execute bound dispatches and wait until their results are visible."""
        self.exclusive(lambda: self.evaluate(dispatches))

    def measure(self, on: bool) -> None:
        """Have the device measure from now on; see ``take_time``."""
        self.measures = on
        self._nanoseconds = 0.0
        self.pipelines.measure(on)

    def keep_time(self, *nanoseconds: float | None) -> None:
        """Add the times of submissions; None is that of one that the device did not measure."""
        for time in nanoseconds if self.measures else ():
            known = self._nanoseconds
            self._nanoseconds = None if known is None or time is None else known + time

    def take_time(self) -> float | None:
        """Return the milliseconds of all submissions since the last call, if all were measured."""
        found, self._nanoseconds = self._nanoseconds, 0.0
        return found / 1e6 if found else None

    def evaluate(self, dispatches: Sequence[Work]) -> None:
        """Execute bound dispatches and wait for them; called by ``exclusive``."""
        size = self._max_dispatches
        parts = [dispatches[start : start + size] for start in range(0, len(dispatches), size)]
        self.keep_time(*[self._submit(part) for part in parts])

    def _submit(self, dispatches: Sequence[Work]) -> float | None:
        """Execute dispatches, each of which may depend on those before it, as one submission.

        Returns:
            The nanoseconds that the device measured, if it did.
        """
        if len(dispatches) == 1:
            return self.pipelines.run(dispatches[0])
        if self._joint_commands is None:
            self._joint_commands = self._kompute.commands()
        operations: list[Any] = []
        used = 0  # copies with regions need no table
        for dispatch in dispatches:
            if used == len(self._tables):
                self._tables.append(self.new_pipelines(MAX_STARTED_PIPELINES))
            operations.append(self._tables[used].operation(dispatch))
            used += isinstance(dispatch, Dispatch)
        self._joint_commands.record(operations, self.measures)
        self._joint_commands.run()
        self._joint_commands.clear()
        return self._joint_commands.nanoseconds

    def submit(
        self,
        dispatches: Sequence[Work],
        keep: object,
        reads: frozenset[Hashable],
        writes: frozenset[Hashable],
    ) -> Submission:
        """Begin to execute bound dispatches; MAX_SUBMISSIONS can be pending at a time.

        A submission that conflicts with a pending one waits for it. Its ``wait`` raises the
        device's errors.
        """
        submission = Submission(self.queue, keep, reads, writes)
        self._check_usable()
        self.queue.finish_stream()
        try:
            with_reclaim(lambda: self.locked(lambda: self._start(submission, dispatches)))
        except Exception as error:
            submission.error = error
        return submission

    def _start(self, submission: Submission, dispatches: Sequence[Work]) -> None:
        queue = self.queue
        conflicts = any(map(submission.conflicts_with, queue.submissions))
        *first, last = dispatches
        if conflicts or first:
            queue.settle()
            self.evaluate(first)
        while len(queue.submissions) >= MAX_SUBMISSIONS:
            queue.complete(queue.submissions[0])
        submission.pipelines = self._free_pipelines()
        self.keep_time(None)  # it is not known when it ends
        submission.commands = submission.pipelines.commands(last)
        queue.submissions.append(submission)
        submission.commands.start()

    def _free_pipelines(self) -> Pipelines:
        """Pipelines whose region table no submission uses."""
        used = {submission.pipelines for submission in self.queue.submissions}
        for pipelines in self._started:
            if pipelines not in used:
                return pipelines
        self._started.append(self.new_pipelines(MAX_STARTED_PIPELINES))
        return self._started[-1]

    def new_pipelines(self, limit: int) -> Pipelines:
        """Make a region table, and room for pipelines that read it."""
        return Pipelines(self._kompute, self.host_heap(TABLE_BYTES), limit, wide=self.wide)

    # -- memory and Kompute's objects -------------------------------------------------------------

    def host_heap(self, size: int) -> Heap:
        """Take memory that host and device both see."""
        return self._new_heap(size, mapped=True)

    def import_array(self, array: npt.NDArray[Any]) -> Range | None:
        """Return the memory of an array for copies with regions, if it is worthwhile.

        The caller keeps the array as it is until these copies have ended.
        """
        if self.info.type != "CPU":  # no GPU has shown what reading the host's memory costs
            return None
        if array.nbytes < MIN_IMPORTED_BYTES or not array.flags.c_contiguous:
            return None
        imported: Any = self._kompute.import_array(array)
        heap: Any = ImportedHeap(imported)
        return None if imported is None else Range(heap, 0, array.nbytes)

    def reserve_staging(self) -> None:
        """Take staging memory, if the host does not see device memory and none is there yet."""
        if not self.mapped:
            with_reclaim(lambda: self.locked(self._take_staging))

    def _take_staging(self) -> None:
        if self._staging is None:
            self._staging = self._new_heap(STAGING_BYTES, mapped=True)

    def staging(self) -> Range:
        """Return staging memory, which the host sees; called by ``exclusive``."""
        assert self._staging is not None
        return Range(self._staging, 0, STAGING_BYTES)

    def transfer_tensor(self, data: encoding.Words) -> Any:
        """Make a Kompute tensor that Kompute's own copies accept."""
        kinds = self._kompute.kp.TensorTypes
        return self._kompute.manager.tensor_t(data, kinds.host if self.mapped else kinds.device)

    def check_room(self, sizes: Sequence[int]) -> None:
        """Check that ``transfer_tensor``s of these sizes fit.

        Raises:
            OutOfDeviceMemoryError: they do not.
        """
        largest = max(sizes, default=0)
        if largest > self.info.max_buffer:
            limit = self.info.max_buffer
            message = f"a buffer of {largest} bytes: must be {limit} at most on this device"
            raise OutOfDeviceMemoryError(message)
        # Host and device have a copy each, unless they share memory; one Vulkan heap may have both.
        sides = {True, self.mapped}
        heaps = [adapter.tensor_heap(self.info.index, host=mapped).index for mapped in sides]
        needed = sum(sizes) * (len(heaps) if len(set(heaps)) == 1 else 1)
        _require(needed, min(self._available(mapped=mapped) for mapped in sides))
        host_memory.require(len(sides) * sum(sizes))

    def fits(self, nbytes: int) -> bool:
        """Whether ``nbytes`` bytes more fit in device memory that is not in use."""
        try:
            with_reclaim(lambda: self.locked(lambda: self.memory.require(nbytes)))
        except OutOfDeviceMemoryError:
            return False
        return True

    # -- life -------------------------------------------------------------------------------------

    # The next two methods call the work, because a context manager written in Python can be
    # interrupted between taking the lock and entering the block. The lock would then be held as
    # long as the traceback exists.

    def locked(self, work: Callable[[], T]) -> T:
        """Call ``work`` while no other thread uses the queue; its submissions go on.

        Raises:
            DeviceError: as ``exclusive``.
        """
        self._check_usable()
        with self.queue.lock:
            self.check_open()
            return work()

    def exclusive(self, work: Callable[[], T]) -> T:
        """Call ``work`` while neither another thread nor the device uses the queue or its memory.

        Raises:
            DeviceError: the device is closed, was opened before this process was forked off, or
                is in use by this very thread.
        """
        self._check_usable()
        queue = self.queue
        queue.finish_stream()
        with queue.lock:
            self.check_open()
            queue.settle()
            return work()

    def _check_usable(self) -> None:
        if process.forked:
            raise DeviceError(FORKED)
        self.queue.refuse_reentry()

    def check_open(self) -> None:
        """Raise a DeviceError if the Device was closed."""
        if self._closed:
            raise DeviceError(f"the device {self.info.name!r} is closed")

    def _new_heap(self, size: int, *, mapped: bool) -> Heap:
        """Take memory from the driver after a check that it is available."""
        _require(size, self._available(mapped=mapped))
        number = adapter.tensor_heap(self.info.index, host=mapped).index
        return Heap(self._kompute, size, (self.info.index, number), mapped=mapped)

    def available(self) -> int:
        """Return the bytes that this process can still get for tensors and buffers.

        Raises:
            DeviceError: VKOPS_MEMORY_LIMIT is not a number of bytes.
        """
        heap = adapter.tensor_heap(self.info.index, host=self.mapped)
        allowed = adapter.memory_limit(heap) - held_bytes((self.info.index, heap.index))
        return min(allowed, self._available(mapped=self.mapped))

    def _available(self, *, mapped: bool) -> int:
        """Return the bytes that this process can still get from the driver."""
        heap = adapter.tensor_heap(self.info.index, host=mapped)
        held = held_bytes((self.info.index, heap.index))
        available = adapter.available_memory(self.info.index, heap, held)
        return min(available, host_memory.available()) if self.info.type == "CPU" else available

    def forget(self, heap: Heap) -> None:
        """Drop the pipelines that are bound to a heap, which is being released."""
        if (
            self._joint_commands is not None
        ):  # an interrupt may have left the operations of the last run
            self._joint_commands.clear()
        for pipelines in (*self._tables, *self._started):
            pipelines.forget(heap)

    def close(self) -> None:
        """Release everything; memory that arrays still view is freed with them."""
        if process.forked:
            return
        self.queue.refuse_reentry()
        self.queue.finish_stream()
        with self.queue.lock:
            self.queue.settle()
            self._closed = True
            for pipelines in (*self._tables, *self._started):
                pipelines.close()
            self._started.clear()
            self._joint_commands = self._staging = None
            self.memory.close()

    def __del__(self) -> None:
        if not process.forked and hasattr(self, "memory"):  # else it was interrupted as it began
            self.queue.orphans.extend(map(ref, self.memory.heaps))


def _require(nbytes: int, available: int) -> None:
    if nbytes > available:
        message = f"{nbytes} bytes: the device has {max(available, 0)} bytes available"
        raise OutOfDeviceMemoryError(message)


def with_reclaim(allocate: Callable[[], T]) -> T:
    """Allocate; if memory is short, free garbage and empty heaps, and try once more.

    Call it with no lock held: finalizers run, and the queues of all devices are locked in turn.
    """
    try:
        return allocate()
    except OutOfDeviceMemoryError:
        gc.collect()
        process.release_empty_heaps()
    return allocate()
