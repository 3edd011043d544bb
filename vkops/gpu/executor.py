"""Runs region tables: one dispatch per pair of heaps, one evaluation each."""

from __future__ import annotations

import gc
from collections import OrderedDict
from collections.abc import Callable, Hashable, Sequence
from dataclasses import replace
from typing import Any, TypeVar
from weakref import ref

import numpy as np
import numpy.typing as npt

from vkops import shaders
from vkops.errors import DeviceError, OutOfDeviceMemoryError
from vkops.gpu import adapter, host_memory, table
from vkops.gpu.dispatch import Dispatch, Program, Programs, prepare
from vkops.gpu.kernels import STREAM
from vkops.gpu.layout import TABLE_BYTES
from vkops.gpu.memory import Heap, Memory, Range, held_bytes
from vkops.gpu.pending import InThread, Slot, Submission
from vkops.gpu.process import FORKED, process
from vkops.gpu.queue import Queue
from vkops.plan.region import CopyPlan

MAX_KERNELS = 64
"""Recorded sequences kept. Each holds a pipeline, and old lavapipes leak some of each one made."""

MAX_SUBMISSIONS = 2
"""Dispatches that the device may work on while the host goes on."""

GROUPS_X = 32768

STAGING_BYTES = 16 << 20

T = TypeVar("T")

_Key = tuple[str, tuple[Heap, ...], Heap, int]
"""Kernel, sources, target, workgroups."""


class Executor:
    """What one Device runs with: memory, a region table and recorded kernels of its own.

    The queue is shared with the other Devices of the adapter. ``run``, ``submit`` and ``stream``
    may be called from many threads. Methods that say so are for work that is done by
    ``exclusive``, which waits for all submissions, or by ``locked``, which does not.

    An interrupt (KeyboardInterrupt) can come between any two steps. So what the device works on is
    known here before it begins, and what is about to change is not taken for what it was.
    """

    def __init__(self, queue: Queue, *, staged: bool = False) -> None:
        self.queue = queue
        self.info: adapter.DeviceInfo = queue.info
        self.mapped: bool = self.info.unified_memory and not staged
        # Beside its sources, a kernel sees the table, and its target twice.
        sources = STREAM.sources if self.info.max_bindings >= STREAM.sources + 3 else 1
        self.tuning: table.Tuning = replace(
            table.CPU if self.info.type == "CPU" else table.GPU, sources=sources
        )
        self._manager = self.queue.manager
        self._kp = self.queue.kp
        self.memory: Memory = Memory(
            lambda size: self._new_heap(size, mapped=self.mapped),
            self.info.max_buffer,
            lambda: self._left(mapped=self.mapped),
            self.queue.forget,
        )
        self._table = with_reclaim(lambda: self._new_heap(TABLE_BYTES, mapped=True))
        assert self._table.view is not None
        self._words = self._table.view.view(np.uint32)
        self._staging: Heap | None = None
        self._loaded: Dispatch | None = None
        self._kernels: OrderedDict[_Key, tuple[Any, Any]] = OrderedDict()
        self._slots: list[Slot] = []
        self._closed = False
        self.queue.add(self)

    # -- running ----------------------------------------------------------------------------------

    def prepare(self, plan: CopyPlan) -> Program | Programs:
        """Pack a plan's regions for this device."""
        return prepare(plan, self.tuning)

    def run(self, dispatches: Sequence[Dispatch]) -> None:
        """Execute bound dispatches and wait until their results are visible."""
        self.exclusive(lambda: self.evaluate(dispatches))

    def evaluate(self, dispatches: Sequence[Dispatch]) -> None:
        """Execute bound dispatches and wait for them; called by ``exclusive``."""
        for dispatch in dispatches:
            if self._loaded is not dispatch:
                self._loaded = None
                self._words[: dispatch.words.size] = dispatch.words
                self._loaded = dispatch
            self._sequence(dispatch).eval()

    def submit(
        self,
        dispatches: Sequence[Dispatch],
        keep: object,
        reads: frozenset[Hashable],
        writes: frozenset[Hashable],
    ) -> Submission:
        """Begin to execute bound dispatches; MAX_SUBMISSIONS can be pending at a time.

        A submission that conflicts with a pending one waits for it. Errors of the device are
        raised when the submission is waited for.
        """
        submission = Submission(self.queue, keep, reads, writes)
        self._check_usable()
        self.queue.finish_stream()
        try:
            with_reclaim(lambda: self.locked(lambda: self._start(submission, dispatches)))
        except Exception as error:
            submission.error = error
        return submission

    def _start(self, submission: Submission, dispatches: Sequence[Dispatch]) -> None:
        queue = self.queue
        conflicts = any(map(submission.conflicts_with, queue.submissions))
        *first, last = dispatches
        if conflicts or first:
            queue.settle()
            self.evaluate(first)
        while len(queue.submissions) >= MAX_SUBMISSIONS:
            queue.complete(queue.submissions[0])
        submission.slot = self._free_slot()
        submission.sequence = self.sequence()
        queue.submissions.append(submission)
        submission.slot.start(submission.sequence, last)

    def stream(self, work: Callable[[], None], announce: Callable[[InThread], None]) -> InThread:
        """Begin work in a thread; see ``Queue.stream``."""
        return self.queue.stream(work, announce)

    def _free_slot(self) -> Slot:
        taken = {submission.slot for submission in self.queue.submissions}
        for slot in self._slots:
            if slot not in taken:
                return slot
        self._slots.append(Slot(self))
        return self._slots[-1]

    def _sequence(self, dispatch: Dispatch) -> Any:
        """The recorded sequence for a dispatch's kernel, heaps and number of workgroups."""
        key = (dispatch.kernel.name, dispatch.sources, dispatch.target, dispatch.groups)
        if key in self._kernels:
            self._kernels.move_to_end(key)
            return self._kernels[key][1]
        while len(self._kernels) >= MAX_KERNELS:
            _destroy(self._kernels.popitem(last=False)[1])
        algorithm = self.algorithm(dispatch, self._table)
        sequence = self._manager.sequence()
        sequence.record(self._kp.OpAlgoDispatch(algorithm))
        self._kernels[key] = (algorithm, sequence)
        return sequence

    def run_traced(self, dispatch: Dispatch, spirv: bytes, beyond: table.Words) -> table.Words:
        """Run a dispatch with another build of its kernel; returns the words after its table."""
        return self.exclusive(lambda: self._run_traced(dispatch, spirv, beyond))

    def _run_traced(self, dispatch: Dispatch, spirv: bytes, beyond: table.Words) -> table.Words:
        heap = self._new_heap(TABLE_BYTES + beyond.nbytes, mapped=True)
        assert heap.view is not None
        words = heap.view.view(np.uint32)
        words[: dispatch.words.size] = dispatch.words
        words[TABLE_BYTES // 4 :] = beyond
        algorithm = self.algorithm(dispatch, heap, spirv)
        self._manager.sequence().eval(self._kp.OpAlgoDispatch(algorithm))
        algorithm.destroy()
        return np.array(words[TABLE_BYTES // 4 :])

    def group_count(self, dispatch: Dispatch) -> list[int]:
        """A dispatch's workgroups in each dimension."""
        return [min(dispatch.groups, GROUPS_X), max(1, dispatch.groups // GROUPS_X), 1]

    def algorithm(self, dispatch: Dispatch, region_table: Heap, spirv: bytes | None = None) -> Any:
        """A pipeline for a dispatch's kernel, heaps and number of workgroups."""
        first, *others = dispatch.sources
        others += [first] * (dispatch.kernel.sources - len(dispatch.sources))
        # Some kernels see the target twice, as vectors and as words; the others ignore the fourth.
        heaps = (region_table, first, dispatch.target, dispatch.target, *others)
        none = np.zeros(0, np.uint32)
        return self._manager.algorithm(
            [heap.tensor for heap in heaps],
            shaders.spirv(dispatch.kernel.name) if spirv is None else spirv,
            self.group_count(dispatch),
            none,
            none,
        )

    def host_heap(self, size: int) -> Heap:
        """Memory that host and device both see."""
        return self._new_heap(size, mapped=True)

    def sequence(self) -> Any:
        """What ``start`` takes: kept by the caller, for to drop it at work would crash."""
        return self._manager.sequence()

    def start(self, sequence: Any, algorithm: Any) -> None:
        """Begin to run an algorithm with a new sequence, to be ended by ``await_sequence``."""
        # A recorded sequence cannot be started without waiting: Kompute does both.
        sequence.eval_async(self._kp.OpAlgoDispatch(algorithm))

    def reserve_staging(self) -> None:
        """Make sure that there is staging memory, where the host does not see device memory."""
        if not self.mapped:
            with_reclaim(lambda: self.locked(self._take_staging))

    def _take_staging(self) -> None:
        if self._staging is None:
            self._staging = self._new_heap(STAGING_BYTES, mapped=True)

    def staging(self) -> tuple[Range, npt.NDArray[np.uint8]]:
        """Host-visible memory for transfers, and the host's view of it; called by ``exclusive``."""
        assert self._staging is not None
        assert self._staging.view is not None
        return Range(self._staging, 0, STAGING_BYTES), self._staging.view

    def transfer_tensor(self, data: table.Words) -> Any:
        """A Kompute tensor that Kompute's own copies accept."""
        kind = self._kp.TensorTypes.host if self.mapped else self._kp.TensorTypes.device
        return self._manager.tensor_t(data, kind)

    def check_room(self, sizes: Sequence[int]) -> None:
        """Make sure that so many ``transfer_tensor``s fit.

        Raises:
            OutOfDeviceMemoryError: they do not.
        """
        largest = max(sizes, default=0)
        if largest > self.info.max_buffer:
            message = f"{largest} bytes: a buffer has {self.info.max_buffer} at most"
            raise OutOfDeviceMemoryError(message)
        # They are on both sides, unless the host sees memory; both can be in one Vulkan heap.
        sides = {True, self.mapped}
        heaps = [adapter.tensor_heap(self.info.index, host=mapped).index for mapped in sides]
        needed = sum(sizes) * (len(heaps) if len(set(heaps)) == 1 else 1)
        left = min(self._left(mapped=mapped) for mapped in sides)
        if needed > left:
            message = f"{needed} bytes: the device has {max(left, 0)} bytes available"
            raise OutOfDeviceMemoryError(message)
        host_memory.require(len(sides) * sum(sizes))

    def record_shader(
        self,
        tensors: list[Any],
        spirv: bytes,
        groups: tuple[int, int, int],
        push_constants: bytes,
    ) -> Any:
        """A sequence that runs a shader on ``transfer_tensor``s, which are filled by then.

        One can be bound more than once.
        """
        # Twice in one copy command, it would be written by both at once.
        each = list({id(tensor): tensor for tensor in tensors}.values())
        self._manager.sequence().eval(self._kp.OpTensorSyncDevice(each))
        none, push = np.zeros(0, np.uint32), np.frombuffer(push_constants, np.uint32)
        algorithm = self._manager.algorithm(tensors, spirv, list(groups), none, push)
        sequence = self._manager.sequence()
        sequence.record(self._kp.OpAlgoDispatch(algorithm))
        return sequence

    def fetch(self, tensor: Any) -> None:
        """Bring what is in a ``transfer_tensor`` to where the host sees it."""
        self._manager.sequence().eval(self._kp.OpTensorSyncLocal([tensor]))

    def record_copy(self, tensors: list[Any]) -> Any:
        """A sequence that copies the first tensor to the others."""
        sequence = self._manager.sequence()
        sequence.record(self._kp.OpTensorCopy(tensors))
        return sequence

    def fits(self, nbytes: int) -> bool:
        """Whether the device can hold so much more, in memory that is not in use."""
        try:
            with_reclaim(lambda: self.locked(lambda: self.memory.require(nbytes)))
        except OutOfDeviceMemoryError:
            return False
        return True

    # -- life -------------------------------------------------------------------------------------

    # These call the work, for a context manager written in Python can be interrupted between
    # taking the lock and entering the block: the lock would be held as long as the traceback is.

    def locked(self, work: Callable[[], T]) -> T:
        """Do work with other threads kept away from the queue, while its submissions go on.

        Raises:
            DeviceError: as ``exclusive``.
        """
        self._check_usable()
        with self.queue.lock:
            self.check_open()
            return work()

    def exclusive(self, work: Callable[[], T]) -> T:
        """Do work with other threads kept away from the queue and its memory, nothing submitted.

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
        """Take memory from the driver, having made sure that it is there."""
        left = self._left(mapped=mapped)
        if size > left:
            raise OutOfDeviceMemoryError(
                f"{size} bytes: the device has {max(left, 0)} bytes available"
            )
        number = adapter.tensor_heap(self.info.index, host=mapped).index
        return Heap(self._manager, self._kp, size, (self.info.index, number), mapped=mapped)

    def _left(self, *, mapped: bool) -> int:
        """Bytes that this process can still get from the driver."""
        heap = adapter.tensor_heap(self.info.index, host=mapped)
        held = held_bytes((self.info.index, heap.index))
        left = adapter.memory_left(self.info.index, heap, held)
        return min(left, host_memory.left()) if self.info.type == "CPU" else left

    def forget(self, heap: Heap) -> None:
        """Drop what is bound to a heap that is given back."""
        self._loaded = None
        for slot in self._slots:
            slot.forget(heap)
        for key in [key for key in self._kernels if heap in (*key[1], key[2])]:
            _destroy(self._kernels.pop(key))

    def close(self) -> None:
        """Give everything back; memory that arrays still view stays until they go."""
        if process.forked:
            return
        self.queue.refuse_reentry()
        self.queue.finish_stream()
        with self.queue.lock:
            self.queue.settle()
            self._closed = True
            while self._slots:
                self._slots.pop().close()
            self._loaded = self._staging = None
            while self._kernels:
                _destroy(self._kernels.popitem()[1])
            self.memory.close()

    def __del__(self) -> None:
        if not process.forked and hasattr(self, "memory"):  # else it was interrupted as it began
            self.queue.orphans.extend(map(ref, self.memory.heaps))


def with_reclaim(allocate: Callable[[], T]) -> T:
    """Allocate; where memory is short, free what is garbage or empty and try once more.

    Call it with no lock held: finalizers run, and the queues of all devices are locked in turn.
    """
    try:
        return allocate()
    except OutOfDeviceMemoryError:
        gc.collect()
        process.release_empty_heaps()
    return allocate()


def _destroy(kernel: tuple[Any, Any]) -> None:
    algorithm, sequence = kernel
    sequence.destroy()
    algorithm.destroy()
