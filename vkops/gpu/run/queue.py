"""The Vulkan device and queue of an adapter, which all Devices of this process share.

Work is submitted in order, and nobody waits for it but the host where it looks at memory: each
buffer has the numbers of the last submissions that use it and that write it.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from functools import lru_cache, partial
from threading import RLock, local
from time import monotonic, sleep
from typing import Any, NoReturn, Protocol
from weakref import WeakSet, WeakValueDictionary, ref

from vkops.errors import DeviceError, OutOfDeviceMemoryError, refuse_reentry
from vkops.gpu.adapters import adapter, forks
from vkops.gpu.adapters.kompute import NATIVE_ERRORS, Kompute
from vkops.gpu.kernels.choice import Kernel
from vkops.gpu.memory import host_memory
from vkops.gpu.memory.heaps import FIRST_HEAP, Allocation, Heap, Memory, held_bytes, living
from vkops.gpu.run.pending import BackgroundTask
from vkops.shaders import for_records, spirv

MAX_SUBMISSIONS = 64
"""Submissions that the device can have at a time: the next one waits for the first of them."""

MAX_SHADERS = 64
"""Pipelines of users' shaders that are kept: Mesa 22.3's CPU driver leaks memory with each."""

MAX_KEPT_COMMANDS = 256
"""Commands of repeated work that are kept: drivers limit how many pieces of memory there are."""

THREAD_BYTES = 72 << 20
"""Bytes of address space that a thread of a CPU driver takes: its stack, and a heap of glibc."""

SYNC = "VKOPS_SYNC"
"""With 1 in this environment variable, each submission is waited for at once, for debugging."""


class Work(Protocol):
    """A dispatch or a copy, which a device executes."""

    def operation(self, queue: Any) -> Any:
        """Return the operation of the native module."""


class Used(Protocol):
    """An object that has memory."""

    allocation: Allocation


class Recording(Protocol):
    """A program that is being recorded."""

    def add(
        self, operations: Sequence[Any], reads: Sequence[Used], writes: Sequence[Used], name: str
    ) -> None:
        """Add what would be submitted."""


NO_BLOCK: ref[partial[None]] = ref(partial(print))
"""A reference to nothing."""


class _Thread(local):
    """The state of a queue that each thread has for itself.

    ``block`` refers to the end of the ``with`` block in which the thread records, a call with the
    program as its argument. Only the ``with`` statement holds that call: without the statement,
    nothing is recorded, however it ended.
    """

    block = NO_BLOCK


class QueueUser(Protocol):
    """The members of executors that their queue uses."""

    memory: Memory
    closed: bool


class Queue:
    """One VkDevice and its queue; made by ``open_queue``, which finds it again by ``key``.

    Devices of one adapter can bind each other's memory, because it belongs to the same VkDevice.
    Vulkan wants a queue used by one thread at a time: work is submitted under ``lock``. Threads
    that wait do not hold it. Submissions are numbered from 1; the number 0 stands for none.
    ``validated`` says whether the device was opened under the validation layer, ``measures``
    whether the device measures what is submitted.
    """

    def __init__(self, info: adapter.DeviceInfo, key: object) -> None:
        self.info: adapter.DeviceInfo = info
        self.key: object = key
        self.lock: RLock = RLock()
        self.streams: list[BackgroundTask] = []
        self.users: WeakValueDictionary[int, QueueUser] = WeakValueDictionary()
        self.lost: str = ""  # if the device is lost, what happened
        found = adapter.native_adapters()[info.index]
        self.validated: bool = adapter.under_validation()
        if info.type == "CPU":
            threads = 2 * adapter.threads() + 2
            reason = (
                f"opening {info.label} needs that much address space for its {threads} threads, "
                "and limits of this process (ulimit -v) leave less; LP_NUM_THREADS=1 needs less"
            )
            host_memory.require(2 * FIRST_HEAP + threads * THREAD_BYTES, reason)
        self.kompute: Kompute = Kompute(found, robust=not self.validated)
        self.native: Any = self.kompute.native
        self.wide: bool = "shaderInt64" in self.kompute.features and adapter.prefers_int64(info)
        self._pipelines: dict[tuple[str, bool], Any] = {}
        self.shader_pipeline: Callable[..., Any] = lru_cache(MAX_SHADERS)(self.kompute.pipeline)
        self._names: deque[tuple[int, str]] = deque(maxlen=MAX_SUBMISSIONS)
        self._waited = 0  # the last submission that was waited for
        self.thread: _Thread = _Thread()
        self.measures: bool = False
        self._kept: WeakSet[Any] = WeakSet()
        self._waits = os.environ.get(SYNC) == "1"
        forks.state.opened = True
        self._submissions: Any = self.kompute.queue(MAX_SUBMISSIONS)

    def check(self, user: QueueUser | None = None) -> None:
        """Check that this thread can use the queue now.

        Raises:
            DeviceError: the user is closed, the device is lost or was opened before this process
                was forked off, or it is in use by this very thread.
        """
        forks.check()
        refuse_reentry(self.lock, "the device {} is in use", self.info.label)
        if user is not None and user.closed:
            raise DeviceError(self.lost or f"the device {self.info.label} is closed")

    def exclusive(self, user: QueueUser) -> RLock:
        """Return the lock to hold while memory is used; streams have ended.

        Raises:
            DeviceError: as ``check``.
        """
        self.prepare(user)
        return self.lock

    def prepare(self, user: QueueUser) -> None:
        """Check that this thread can use the queue, and wait for streams.

        Raises:
            DeviceError: as ``check``.
        """
        if user.closed or forks.state.forked or self.lock._is_owned():  # type: ignore[attr-defined]
            self.check(user)
        if self.streams:
            self.finish_streams()

    # -- memory -----------------------------------------------------------------------------------

    def new_heap(self, size: int, *, mapped: bool) -> Heap:
        """Take memory from the driver after a check that it is available.

        Raises:
            OutOfDeviceMemoryError: it is not.
        """
        self.require(size, mapped=mapped)
        number = adapter.tensor_heap(self.info.index, host=mapped).index
        return Heap(self.kompute, size, (self.info.index, number), mapped=mapped)

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
        self.settle()
        with self.lock:
            for user in living(self.users):
                user.memory.release_empty_heaps()

    # -- running ----------------------------------------------------------------------------------

    def pipeline(self, kernel: Kernel, *, aligned: bool) -> Any:
        """Return the pipeline of a kernel, made when it is first used."""
        found = self._pipelines.get((kernel.name, aligned))
        if found is None:
            name = kernel.wide if kernel.wide and self.wide else kernel.name
            bindings = [(number, False) for number in range(kernel.bindings)]
            found = self.kompute.pipeline(for_records(spirv(name), aligned=aligned), [bindings])
            self._pipelines[kernel.name, aligned] = found
        return found

    def submit(
        self,
        user: QueueUser,
        work: Sequence[Work],
        reads: Sequence[Used] = (),
        writes: Sequence[Used] = (),
        name: str = "",
    ) -> int:
        """Begin to run work in order, after all that was submitted before; return its number.

        While this thread records a program, the work becomes a part of it; the number is 0.

        ``reads`` and ``writes`` are the memory that it uses, ``name`` says in errors what it is.

        Raises:
            DeviceError: as ``check``, or the device is lost.
            OutOfDeviceMemoryError: the driver has no memory for the commands.
        """
        with self.exclusive(user):
            return self.enqueue(work, reads, writes, name)

    def enqueue(
        self,
        work: Sequence[Work],
        reads: Sequence[Used] = (),
        writes: Sequence[Used] = (),
        name: str = "",
        *,
        now: bool = False,
    ) -> int:
        """Do what ``submit`` does, with the lock held; ``now`` also while this thread records."""
        if not work:
            return 0
        operations = [each.operation(self) for each in work]
        recording = self.recording
        if recording is not None and not now:
            recording.add(operations, reads, writes, name)
            return 0
        return self.start(operations, reads, writes, name)

    def kept_commands(self, work: Sequence[Work]) -> Any:
        """Return commands for work, with the lock held; None for no work, or if many are kept."""
        if not work or len(self._kept) >= MAX_KEPT_COMMANDS:
            return None
        commands = self.commands([each.operation(self) for each in work])
        self._kept.add(commands)
        return commands

    def commands(self, operations: Sequence[Any]) -> Any:
        """Return commands that can be submitted again and again, with the lock held."""
        try:
            self._submissions.submit([self.native.OpPrepare(operations)])
            return self.native.Commands(self.kompute.device, operations)
        except NATIVE_ERRORS as error:
            self._refuse(error)

    def start(
        self,
        work: Any,
        reads: Iterable[Used],
        writes: Iterable[Used],
        name: str,
        *,
        again: bool = False,
    ) -> int:
        """Begin to run operations, or recorded commands ``again``, with the lock held."""
        submissions = self._submissions
        submit = submissions.submit_again if again else submissions.submit
        # Before it is submitted: after an interrupt in between, the memory counts as used.
        number: int = submissions.submitted + 1
        for used in reads:
            used.allocation.used = number
        for used in writes:
            allocation = used.allocation
            allocation.used = allocation.written = number
        try:
            submit(work)
        except NATIVE_ERRORS as error:
            self._refuse(error)
        self._names.append((number, name))
        if self._waits:
            self.wait(number)
        return number

    @property
    def recording(self) -> Recording | None:
        """The program that this thread records."""
        block = self.thread.block()
        return None if block is None else block.args[0]

    def refuse_recording(self, what: str) -> None:
        """Refuse what cannot be a part of a program, if this thread is recording one.

        Raises:
            DeviceError: it is.
        """
        if self.recording is not None:
            raise DeviceError(f"record: {what}")

    def wait(self, number: int) -> None:
        """Wait for a submission and all before it; other threads can submit work meanwhile.

        Raises:
            DeviceError: the device was lost.
        """
        if number <= self._waited:
            return
        # After an interrupt before a submission, memory may have a number that is not yet given.
        number = min(number, self._submissions.submitted)
        try:
            self._submissions.wait(number)
        except NATIVE_ERRORS as error:
            self._refuse(error)
        self._waited = max(self._waited, number)

    def is_done(self, number: int) -> bool:
        """Whether a submission has ended."""
        try:
            done: int = self._submissions.completed
        except NATIVE_ERRORS as error:
            self._refuse(error)
        submitted: int = self._submissions.submitted  # less than the number if that failed
        return min(number, submitted) <= done

    def _refuse(self, error: Exception) -> NoReturn:
        """Raise the error of the driver; the names are those of what it may have been doing."""
        if isinstance(error, MemoryError):
            message = f"the driver has no memory for commands ({error})"
            raise OutOfDeviceMemoryError(message) from error
        if not self.lost:
            names = ", ".join(self.pending_names)
            doing = f" while it ran {names}" if names else ""
            self.lost = f"{self.info.label} failed{doing}: {error}; it must be opened again"
        for user in living(self.users):
            user.closed = True
        raise DeviceError(self.lost) from error

    @property
    def pending_names(self) -> list[str]:
        """The names of work that was submitted and not waited for."""
        pending = [name for number, name in list(self._names) if number > self._waited]
        return list(dict.fromkeys(filter(None, pending)))

    def settle(self) -> None:
        """Wait for all submissions."""
        self.wait(self._submissions.submitted)

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
        self.settle()

    def finish_within(self, seconds: float) -> bool:
        """Wait for everything, for so many seconds or until an interrupt; return whether it ended.

        If not, the work is left to the driver, and the device is never destroyed.
        """
        last, streams, until = self._submissions.submitted, [*self.streams], monotonic() + seconds
        with suppress(KeyboardInterrupt):
            while monotonic() < until:
                if self.is_done(last) and not any(stream.is_running for stream in streams):
                    return True
                sleep(0.001)
        self._submissions.patience = 0
        return False

    # -- timestamps -------------------------------------------------------------------------------

    def measure(self, on: bool) -> None:
        """Have the device measure from now on; see ``take_time``."""
        self.take_time()
        with self.lock:
            self._submissions.timed = self.measures = on

    def take_time(self) -> float | None:
        """Return the milliseconds of all submissions since the last call, if they were measured."""
        try:
            with self.lock:
                found: float | None = self._submissions.take_nanoseconds()
        except NATIVE_ERRORS as error:
            self._refuse(error)
        return found / 1e6 if found else None


class RepeatedWork:
    """Work that is submitted once or many times; the second submission keeps the commands.

    ``reads`` and ``writes`` are the memory that it uses, ``name`` says in errors what it is.
    """

    __slots__ = ("_commands", "_is_second", "_memory_and_name", "_queue", "_user", "_work")

    def __init__(
        self,
        queue: Queue,
        user: QueueUser,
        work: Sequence[Work],
        reads: Sequence[Used],
        writes: Sequence[Used],
        name: str,
    ) -> None:
        self._queue = queue
        self._user = user
        self._work = work
        self._memory_and_name = reads, writes, name
        self._is_second = False
        self._commands: Any = None

    def submit(self) -> int:
        """Begin to run the work; see ``Queue.submit``."""
        queue = self._queue
        with queue.exclusive(self._user):
            # Kept commands are neither measured nor a part of programs.
            if self._is_second and queue.recording is None and not queue.measures:
                self._commands = self._commands or queue.kept_commands(self._work)
                if self._commands is not None:
                    return queue.start(self._commands, *self._memory_and_name, again=True)
            self._is_second = True
            return queue.enqueue(self._work, *self._memory_and_name)
