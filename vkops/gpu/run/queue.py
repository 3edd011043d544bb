"""The Vulkan device and queue of an adapter, which all Devices of this process share.

A slot is a region table with the commands that read it; a submission uses one for each dispatch.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Hashable, Sequence
from threading import RLock
from typing import Any, Protocol
from weakref import WeakValueDictionary

import numpy as np
import numpy.typing as npt

from vkops.errors import DeviceError, OutOfDeviceMemoryError, refuse_reentry
from vkops.gpu.adapters import adapter, forks
from vkops.gpu.adapters.kompute import Commands, Kompute
from vkops.gpu.kernels.layout import TABLE_BYTES
from vkops.gpu.memory import host_memory
from vkops.gpu.memory.heaps import Heap, Memory, held_bytes, living
from vkops.gpu.run.encoded_plan import Dispatch, Work
from vkops.gpu.run.pending import BackgroundTask
from vkops.shaders import spirv

MAX_TOGETHER = 8
"""Dispatches that one submission may have, each with a slot of its own."""

MAX_SUBMISSIONS = 2
"""Submissions that the device may execute while the host continues."""


MAX_GROUPS_X = 32768

MAX_PIPELINES = 64
"""Pipelines that the first slot keeps, which runs most dispatches. Old versions of lavapipe leak
some memory with each that is made."""

MAX_FURTHER_PIPELINES = 16
"""Pipelines that each further slot keeps."""

_NO_WORDS = np.zeros(0, np.uint32)

_Key = tuple[str, tuple[int, ...], int, int]
"""Kernel, numbers of the sources and of the target, workgroups."""


def group_count(dispatch: Dispatch) -> tuple[int, int, int]:
    """Return a dispatch's workgroups in each dimension."""
    return min(dispatch.groups, MAX_GROUPS_X), max(1, dispatch.groups // MAX_GROUPS_X), 1


def make_algorithm(manager: Any, dispatch: Dispatch, table: Heap, spirv: bytes) -> Any:
    """Return Kompute's algorithm (a pipeline) for a dispatch that reads a region table."""
    first, *others = dispatch.sources
    others += [first] * (dispatch.kernel.sources - len(dispatch.sources))
    # Some kernels have the target twice, as vectors and as words; others ignore the fourth.
    targets = [dispatch.target] * (1 if dispatch.kernel.indexed else 2)
    heaps = (table, first, *targets, *others)
    tensors = [heap.tensor for heap in heaps]
    return manager.algorithm(tensors, spirv, list(group_count(dispatch)), _NO_WORDS, _NO_WORDS)


class Slot:
    """A region table and up to ``limit`` pipelines that read it, the least recently used first.

    One submission uses it at a time; ``commands`` and ``operation`` are valid until the next call.
    Called with the queue's lock held.
    """

    def __init__(
        self, kompute: Kompute, table: Heap, limit: int, *, wide: bool, timed: bool
    ) -> None:
        """Make no pipelines yet; those of ``wide`` kernels move integers of 64 bits.

        ``timed`` has the device measure each submission.
        """
        assert table.view is not None
        self._kompute = kompute
        self._table = table
        self._words: npt.NDArray[np.uint32] = table.view.view(np.uint32)
        self._limit = limit
        self._wide = wide
        self._timed = timed
        self._loaded: Dispatch | None = None
        self._recorded: OrderedDict[_Key, tuple[Any, Commands]] = OrderedDict()
        self.commands: Commands = kompute.commands()

    def __len__(self) -> int:
        return len(self._recorded)

    def has_pipeline(self, dispatch: Dispatch) -> bool:
        """Whether a dispatch needs no new pipeline."""
        return dispatch.key in self._recorded

    def recorded(self, dispatch: Dispatch) -> Commands:
        """Return the commands of one dispatch."""
        return self._load(dispatch)[1]

    def operation(self, dispatch: Dispatch) -> Any:
        """Return Kompute's operation of a dispatch."""
        return self._kompute.kp.OpAlgoDispatch(self._load(dispatch)[0])

    def _load(self, dispatch: Dispatch) -> tuple[Any, Commands]:
        """Write the dispatch to the region table; return its algorithm, and commands of that."""
        if self._loaded is not dispatch:
            self._words[: dispatch.words.size] = dispatch.words
            self._loaded = dispatch
        key = dispatch.key
        found = self._recorded.get(key)
        if found is None:
            while len(self._recorded) >= self._limit:
                self._drop(next(iter(self._recorded)))
            found = self._recorded[key] = self._record(dispatch)
        else:
            self._recorded.move_to_end(key)
        return found

    def _record(self, dispatch: Dispatch) -> tuple[Any, Commands]:
        kompute, kernel = self._kompute, dispatch.kernel
        code = spirv(kernel.wide if kernel.wide and self._wide else kernel.name)
        algorithm = make_algorithm(kompute.manager, dispatch, self._table, code)
        commands = kompute.commands()
        commands.record([kompute.kp.OpAlgoDispatch(algorithm)], self._timed)
        return algorithm, commands

    def _drop(self, key: _Key) -> None:
        algorithm, commands = self._recorded.pop(key)
        commands.clear()
        algorithm.destroy()

    def forget(self, heaps: set[int]) -> None:
        """Drop the pipelines that are bound to heaps with these numbers."""
        for key in [key for key in self._recorded if not heaps.isdisjoint((*key[1], key[2]))]:
            self._drop(key)

    def clear(self) -> None:
        """Drop everything."""
        self._loaded = None
        for key in list(self._recorded):
            self._drop(key)


# -- submissions ---------------------------------------------------------------------------------


class Submission:
    """Work that the device executes while the host continues; made by ``Queue.start``.

    ``keep`` must not be freed meanwhile; ``reads`` and ``writes`` are the resources it uses.
    """

    def __init__(
        self,
        queue: Queue,
        keep: object,
        reads: frozenset[Hashable],
        writes: frozenset[Hashable],
    ) -> None:
        self._queue = queue
        self._keep = keep
        self.reads = reads
        self.writes = writes
        self.slots: Sequence[Slot] = ()
        self.commands: Commands | None = None
        self.error: Exception | None = None

    def conflicts_with(self, other: Submission) -> bool:
        """Whether one of the two writes a resource that the other one uses."""
        mine, others = self.writes, other.writes
        return bool(mine & other.reads or mine & others or self.reads & others)

    def wait(self) -> None:
        """Wait until the results are complete; a second call returns at once.

        Raises:
            DeviceError: the device is closed.
            RuntimeError: it was lost, as far as Kompute reports that.
        """
        if self in self._queue.submissions:
            self._queue.check()
            with self._queue.lock:
                self._queue.complete(self)
        if self.error is not None:
            raise self.error

    def finish(self) -> None:
        """Wait for the device; called by the queue, once."""
        try:
            if self.commands is not None:
                self.commands.wait()
        except Exception as error:  # Kompute raises what Vulkan reports
            self.error = error
        self.commands = self._keep = None


class QueueUser(Protocol):
    """The members of executors that their queue uses."""

    memory: Memory
    closed: bool


class Queue:
    """One VkDevice and its queue, as Kompute opens them; made by ``open_queue``.

    Devices of one adapter can bind each other's memory, because it belongs to the same VkDevice.
    Vulkan wants a queue used by one thread at a time: everything happens under ``lock``.
    """

    def __init__(self, info: adapter.DeviceInfo) -> None:
        self.info: adapter.DeviceInfo = info
        self.lock: RLock = RLock()
        self.submissions: list[Submission] = []  # first: __del__ needs it, whatever fails below
        self.streams: list[BackgroundTask] = []
        self.users: WeakValueDictionary[int, QueueUser] = WeakValueDictionary()
        self._gone: deque[int] = deque()  # numbers of heaps that were freed, on any thread
        self.slots: list[Slot] = []
        self._timed = False
        self._nanoseconds: float | None = 0.0
        self.kompute: Kompute = Kompute(adapter.native_adapters()[info.index])
        self.wide: bool = self.kompute.has_int64 and adapter.prefers_int64(info)
        forks.state.opened = True

    def check(self, user: QueueUser | None = None) -> None:
        """Check that this thread can use the queue now.

        Raises:
            DeviceError: the user is closed, the device was opened before this process was forked
                off, or it is in use by this very thread.
        """
        forks.check()
        refuse_reentry(self.lock, "the device {!r} is in use", self.info.name)
        if user is not None and user.closed:
            raise DeviceError(f"the device {self.info.name!r} is closed")

    def exclusive(self, user: QueueUser) -> RLock:
        """Return the lock to hold while memory is used; all that is pending has ended.

        Raises:
            DeviceError: as ``check``.
        """
        if user.closed or forks.state.forked or self.lock._is_owned():  # type: ignore[attr-defined]
            self.check(user)
        if self.streams or self.submissions:
            self.finish()
        return self.lock

    # -- memory -----------------------------------------------------------------------------------

    def new_heap(self, size: int, *, mapped: bool) -> Heap:
        """Take memory from the driver after a check that it is available.

        Raises:
            OutOfDeviceMemoryError: it is not.
        """
        self.forget_heaps()
        self.require(size, mapped=mapped)
        number = adapter.tensor_heap(self.info.index, host=mapped).index
        return Heap(self.kompute, size, (self.info.index, number), self._gone, mapped=mapped)

    def require(self, nbytes: int, *, mapped: bool) -> None:
        """Check that the driver has so many bytes.

        Raises:
            OutOfDeviceMemoryError: it has not.
        """
        available = self.available(mapped=mapped)
        if nbytes > available:
            message = f"{nbytes} bytes: the device has {max(available, 0)} bytes available"
            raise OutOfDeviceMemoryError(message)

    def available(self, *, mapped: bool) -> int:
        """Return the bytes that this process can still get from the driver."""
        heap = adapter.tensor_heap(self.info.index, host=mapped)
        held = held_bytes((self.info.index, heap.index))
        available = adapter.available_memory(self.info.index, heap, held)
        return min(available, host_memory.available()) if self.info.type == "CPU" else available

    def release_empty_heaps(self) -> None:
        """Give the heaps that nothing uses back to the driver."""
        with self.lock:
            self.settle()
            for user in living(self.users):
                user.memory.release_empty_heaps()
            self.forget_heaps()

    def forget_heaps(self) -> None:
        """Drop what is bound to heaps that were freed, with the lock held."""
        if self._gone:
            gone = {self._gone.popleft() for _ in range(len(self._gone))}
            for slot in self.slots:
                slot.forget(gone)

    # -- running ----------------------------------------------------------------------------------

    def run(self, user: QueueUser, work: Sequence[Work]) -> None:
        """Run work in order and wait until its results are visible.

        Raises:
            DeviceError: as ``check``.
        """
        with self.exclusive(user):
            if self.submissions:  # of another thread, since ``exclusive`` was called
                self.settle()
            if len(work) == 1 and type(work[0]) is Dispatch and self.slots and not self._gone:
                commands = self.slots[0].recorded(work[0])  # the usual case
                commands.run()
                if self._timed:
                    self._add_time(commands.nanoseconds)
            else:
                self.execute(work)

    def execute(self, work: Sequence[Work]) -> None:
        """Run work in order and wait for it, with the lock held, while nothing else is pending."""
        while work:
            commands, slots, count = self._record(work)
            commands.run()
            self._add_time(commands.nanoseconds)
            slots[0].commands.clear()  # copies refer to memory that may be released
            work = work[count:]

    def start(self, submission: Submission, work: Sequence[Work]) -> None:
        """Begin to run work, with the lock held; MAX_SUBMISSIONS can be pending at a time.

        A submission that conflicts with a pending one waits for it. Of work that needs several
        submissions, only the last one is not waited for.
        """
        if any(map(submission.conflicts_with, self.submissions)):
            self.settle()
        while len(self.submissions) >= MAX_SUBMISSIONS:
            self.complete(self.submissions[0])
        self._add_time(None)  # it is not known when it ends
        submission.commands, submission.slots, count = self._record(work)
        while count < len(work):
            self.settle()
            submission.commands.run()
            work = work[count:]
            submission.commands, submission.slots, count = self._record(work)
        self.submissions.append(submission)
        submission.commands.start()

    def _record(self, work: Sequence[Work]) -> tuple[Commands, Sequence[Slot], int]:
        """Return commands for the first parts of work, each of which may depend on those before it.

        Also return the slots that must not be used before the commands are done, and the number of
        the parts. They are fewer than MAX_TOGETHER if there is no memory for more slots.
        """
        self.forget_heaps()
        work = work[:MAX_TOGETHER]
        slots = self._free_slots(max(1, len([each for each in work if type(each) is Dispatch])))
        if isinstance(work[0], Dispatch) and (len(work) == 1 or len(slots) == 1):
            return slots[0].recorded(work[0]), slots, 1
        free = list(slots)
        operations: list[Any] = []
        for each in work:
            if not isinstance(each, Dispatch):
                operations.append(each.operation(self.kompute.native))
                continue
            if not free:
                break
            slot = next((slot for slot in free if slot.has_pipeline(each)), free[-1])
            free.remove(slot)
            operations.append(slot.operation(each))
        commands = slots[0].commands
        commands.record(operations, self._timed)
        return commands, slots, len(operations)

    def _free_slots(self, count: int) -> Sequence[Slot]:
        """Slots that no submission uses: so many, or as many as there is memory for.

        Raises:
            OutOfDeviceMemoryError: there is no memory for a single one.
        """
        used = {slot for submission in self.submissions for slot in submission.slots}
        free = [slot for slot in self.slots if slot not in used]
        while len(free) < count:
            try:
                table = self.new_heap(TABLE_BYTES, mapped=True)
            except OutOfDeviceMemoryError:
                if not free:
                    raise
                break
            limit = MAX_FURTHER_PIPELINES if self.slots else MAX_PIPELINES
            slot = Slot(self.kompute, table, limit, wide=self.wide, timed=self._timed)
            self.slots.append(slot)
            free.append(self.slots[-1])
        return free[:count]

    def take_slot(self) -> None:
        """Take memory for a slot, without which nothing can run, unless there is one."""
        with self.lock:
            self._free_slots(1)

    def drop_slots(self) -> None:
        """Drop all slots, which nothing uses, and what is recorded with them."""
        for slot in self.slots:
            slot.clear()
        self.slots.clear()

    def complete(self, submission: Submission) -> None:
        """Wait for one submission, with the lock held."""
        if submission in self.submissions:
            submission.finish()
            self.submissions.remove(submission)
            submission.slots[0].commands.clear()

    def settle(self) -> None:
        """Wait for all submissions, with the lock held."""
        while self.submissions:
            self.complete(self.submissions[0])

    def finish_streams(self) -> None:
        """Wait for streams that run in threads; the thread of one does not wait for itself."""
        for stream in list(self.streams):
            if stream.is_current:
                return  # the others began after it
            stream.finish()
            if stream in self.streams:
                self.streams.remove(stream)

    def finish(self) -> None:
        """Wait for everything."""
        self.finish_streams()
        with self.lock:
            self.settle()

    def __del__(self) -> None:
        # Python frees the queue and all that refers to it in any order, submissions pending or not.
        if not forks.state.forked:
            for submission in self.submissions:
                submission.finish()

    # -- timestamps -------------------------------------------------------------------------------

    def measure(self, on: bool) -> None:
        """Have the device measure from now on; see ``take_time``."""
        with self.lock:
            self.settle()
            self._timed = on
            self._nanoseconds = 0.0
            self.drop_slots()

    def _add_time(self, nanoseconds: float | None) -> None:
        """Add the time of a submission; None if the device did not measure it."""
        known = self._nanoseconds
        self._nanoseconds = None if known is None or nanoseconds is None else known + nanoseconds

    def take_time(self) -> float | None:
        """Return the milliseconds of all submissions since the last call, if all were measured."""
        found, self._nanoseconds = self._nanoseconds, 0.0
        return found / 1e6 if found else None
