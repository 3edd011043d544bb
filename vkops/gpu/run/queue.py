"""The Vulkan device and queue of an adapter, which all Devices of this process share."""

from __future__ import annotations

import atexit
import os
from collections import deque
from collections.abc import Callable, Hashable
from ctypes import py_object, pythonapi
from threading import RLock
from typing import Protocol
from weakref import WeakValueDictionary, ref

from vkops.errors import DeviceError, is_held, refuse_reentry
from vkops.gpu.adapters import adapter
from vkops.gpu.adapters.kompute import NATIVE, Commands, Kompute, load_kompute, open_kompute
from vkops.gpu.memory.heaps import Heap, Memory, living
from vkops.gpu.run.pending import BackgroundTask
from vkops.gpu.run.pipelines import Pipelines
from vkops.system.processes import after_fork

_Key = tuple[int, str, str | None, str | None]


class Submission:
    """A dispatch that the device executes while the host continues; made by ``Executor.submit``.

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
        self.pipelines: Pipelines | None = None
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
        self._queue.wait_for(self)
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

    def forget(self, heap: Heap) -> None:
        """Drop the pipelines that are bound to a heap, which is being released."""


class Queue:
    """One VkDevice and its queue, as Kompute opens them; made by ``open_queue``.

    Devices of one adapter can bind each other's memory, because it belongs to the same VkDevice.
    Vulkan wants a queue used by one thread at a time: everything happens under ``lock``, which
    ``Executor.exclusive`` and ``Executor.locked`` take.
    """

    def __init__(self, info: adapter.DeviceInfo) -> None:
        self.info: adapter.DeviceInfo = info
        self.lock: RLock = RLock()
        self.submissions: list[Submission] = []  # first: __del__ needs it, whatever fails below
        self.orphans: deque[ref[Heap]] = deque()  # filled as executors go, on any thread
        self._stream: BackgroundTask | None = None
        self._stream_lock = RLock()
        self._users: WeakValueDictionary[int, QueueUser] = WeakValueDictionary()
        extensions = adapter.printf_extensions(info.index)
        load_kompute()
        try:
            self.kompute: Kompute = open_kompute(info.index, extensions)
            name = self.kompute.manager.get_device_properties()["device_name"]
        except RuntimeError as error:
            raise DeviceError(f"Kompute cannot open {info.name!r}: {error}") from error
        if name != info.name:
            raise DeviceError(f"Kompute opened {name!r} where {info.name!r} was asked for")
        process.opened = True

    # -- exclusion --------------------------------------------------------------------------------

    def refuse_reentry(self) -> None:
        """Raise a DeviceError if this thread is in the middle of using the queue."""
        refuse_reentry(self.lock, "the device {!r} is in use", self.info.name)

    def finish_stream(self) -> None:
        """Wait for the stream that runs in a thread; that thread itself does not wait."""
        if self._stream is not None:
            self._stream.finish()

    def stream(
        self, work: Callable[[], None], announce: Callable[[BackgroundTask], None]
    ) -> BackgroundTask:
        """Begin work in a thread when the stream before has ended; all other work waits for it.

        ``announce`` is called with the new stream before another one can begin.
        """
        self.refuse_reentry()
        refuse_reentry(self._stream_lock, "the device {!r} is starting a stream", self.info.name)
        with self._stream_lock:
            self.finish_stream()
            stream = BackgroundTask(work)
            try:
                self._stream = stream
                announce(stream)
                stream.start()
            except BaseException:  # an interrupt, or the system has no more threads
                stream.cancel()
                raise
            return stream

    @property
    def is_held(self) -> bool:
        """Whether this thread is in the middle of using the queue."""
        return is_held(self.lock)

    # -- submissions ------------------------------------------------------------------------------

    def wait_for(self, submission: Submission) -> None:
        """Wait for one submission and release what it keeps alive."""
        if submission in self.submissions:
            self.refuse_reentry()
            with self.lock:
                self.complete(submission)

    def complete(self, submission: Submission) -> None:
        """Wait for one submission, with the lock held."""
        if submission in self.submissions:
            submission.finish()
            self.submissions.remove(submission)

    def settle(self) -> None:
        """Wait for all submissions and forget the heaps of dead devices, with the lock held."""
        while self.submissions:
            self.complete(self.submissions[0])
        while self.orphans:  # one leaves when it is forgotten, for an interrupt can come before
            if heap := self.orphans[0]():
                self.forget(heap)
            self.orphans.popleft()

    def settle_at_exit(self) -> None:
        """Wait for all submissions and streams before Python ends."""
        self.finish_stream()
        with self.lock:
            self.settle()

    def __del__(self) -> None:
        # Python frees the queue and all that refers to it in any order, submissions pending or not.
        if not process.forked:
            for submission in getattr(self, "submissions", ()):  # interrupted as it began
                submission.finish()

    # -- the executors of this queue --------------------------------------------------------------

    def add(self, user: QueueUser) -> None:
        """Tell an executor of all heaps that are given back from now on, and manage its own."""
        self._users[id(user)] = user

    def forget(self, heap: Heap) -> None:
        """Drop what any executor has bound to a heap that is given back, with the lock held."""
        for user in living(self._users):
            user.forget(heap)

    def release_empty_heaps(self) -> None:
        """Give the heaps that nothing uses back to the driver."""
        with self.lock:
            self.settle()
            for user in living(self._users):
                user.memory.release_empty_heaps()


# -- the queues of this process --------------------------------------------------------------------

FORKED = (
    "this process was forked off one that had opened a Vulkan device, and drivers do not survive "
    "that; open devices after forks only, or start processes by spawning"
)


class _Process:
    """The queues of this process, for drivers have threads that forks and Python's end ignore."""

    def __init__(self) -> None:
        self.by_adapter: WeakValueDictionary[_Key, Queue] = WeakValueDictionary()
        self.opened: bool = False  # whether there was ever one
        self.forked: bool = False  # whether the process was forked off one that had opened some

    @property
    def queues(self) -> list[Queue]:
        """The queues that are open."""
        return living(self.by_adapter)

    def release_empty_heaps(self) -> None:
        """Release the driver memory that no device needs at the moment.

        A thread that is in the middle of using one queue leaves the others alone, too: another
        thread could be waiting for the one it holds.
        """
        queues = self.queues
        if not any(queue.is_held for queue in queues):
            for queue in queues:
                queue.release_empty_heaps()

    def after_fork(self) -> None:
        self.forked = self.opened
        for queue in self.queues:
            # Destroying it would wait for threads forever.
            pythonapi.Py_IncRef(py_object(queue.kompute))

    def at_exit(self) -> None:
        if not self.forked:
            for queue in self.queues:
                queue.settle_at_exit()


process: _Process = _Process()
atexit.register(process.at_exit)
after_fork(process.after_fork)

_opening = RLock()


def open_queue(info: adapter.DeviceInfo) -> Queue:
    """Return the queue of an adapter: opened once, and again when nothing refers to it any more.

    Another one is opened if Vulkan's layers, or the choice of native operations, have changed.

    Raises:
        DeviceError: Kompute cannot open the adapter, or this process was forked.
    """
    if process.forked:
        raise DeviceError(FORKED)
    refuse_reentry(_opening, "a device is being opened")
    with _opening:
        chosen = os.environ.get(adapter.LAYERS), os.environ.get(NATIVE)
        key = info.index, info.name, *chosen
        queue = process.by_adapter.get(key)
        if queue is None:
            queue = process.by_adapter[key] = Queue(info)
        return queue
