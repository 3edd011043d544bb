"""The Vulkan device and queue of an adapter, which all Devices of this process share."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable
from functools import lru_cache
from threading import RLock
from typing import TYPE_CHECKING, Any
from weakref import WeakValueDictionary, ref

from vkops.errors import DeviceError, is_held, refuse_reentry
from vkops.gpu import adapter
from vkops.gpu.memory import Heap
from vkops.gpu.pending import InThread, Submission
from vkops.gpu.process import FORKED, process

if TYPE_CHECKING:
    from vkops.gpu.executor import Executor

_Key = tuple[int, str, str | None]


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
        self._stream: InThread | None = None
        self._stream_lock = RLock()
        self._executors: WeakValueDictionary[int, Executor] = WeakValueDictionary()
        self.kp: Any = load_kompute()
        try:
            self.manager: Any = self.kp.Manager(
                info.index, [], adapter.printf_extensions(info.index)
            )
            name = self.manager.get_device_properties()["device_name"]
        except RuntimeError as error:
            raise DeviceError(f"Kompute cannot open {info.name!r}: {error}") from error
        if name != info.name:
            raise DeviceError(f"Kompute opened {name!r} where {info.name!r} was asked for")
        process.add(self)

    # -- exclusion --------------------------------------------------------------------------------

    def refuse_reentry(self) -> None:
        """Raise a DeviceError where this thread is in the middle of using the queue."""
        refuse_reentry(self.lock, "the device {!r} is in use", self.info.name)

    def finish_stream(self) -> None:
        """Wait for the work that runs in a thread; that thread itself does not wait."""
        if self._stream is not None:
            self._stream.finish()

    def stream(self, work: Callable[[], None], announce: Callable[[InThread], None]) -> InThread:
        """Begin work in a thread when the work before has ended; all others wait for it.

        ``announce`` is called with it before another stream can begin.
        """
        self.refuse_reentry()
        refuse_reentry(self._stream_lock, "the device {!r} is starting a stream", self.info.name)
        with self._stream_lock:
            self.finish_stream()
            stream = InThread(work)
            stream.start()
            self._stream = stream
            announce(stream)
            return stream

    @property
    def is_held(self) -> bool:
        """Whether this thread is in the middle of using the queue."""
        return is_held(self.lock)

    # -- submissions ------------------------------------------------------------------------------

    def wait_for(self, submission: Submission) -> None:
        """Wait for one submission, and release what it kept."""
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
        while self.orphans:
            if heap := self.orphans.popleft()():
                self.forget(heap)

    def settle_at_exit(self) -> None:
        """Wait for all that is going on before Python ends."""
        self.finish_stream()
        with self.lock:
            self.settle()

    def __del__(self) -> None:
        # Python collects the queue with all that refers to it, in any order, at work or not.
        if not process.forked:
            for submission in getattr(self, "submissions", ()):  # interrupted as it began
                submission.finish()

    # -- the executors of this queue --------------------------------------------------------------

    def add(self, executor: Executor) -> None:
        """Let an executor know of heaps that are given back, and give back its own."""
        self._executors[id(executor)] = executor

    def _living(self) -> list[Executor]:
        found = (reference() for reference in self._executors.valuerefs())
        return [executor for executor in found if executor is not None]

    def forget(self, heap: Heap) -> None:
        """Drop what any executor has bound to a heap that is given back, with the lock held."""
        for executor in self._living():
            executor.forget(heap)

    def release_empty_heaps(self) -> None:
        """Give the heaps that hold nothing back to the driver."""
        with self.lock:
            self.settle()
            for executor in self._living():
                executor.memory.release_empty_heaps()


_queues: WeakValueDictionary[_Key, Queue] = WeakValueDictionary()
_opening = RLock()


def open_queue(info: adapter.DeviceInfo) -> Queue:
    """The queue of an adapter: opened once, and again when nothing refers to it any more.

    Another one is opened where Vulkan's layers have changed since.

    Raises:
        DeviceError: Kompute cannot open the adapter, or this process was forked.
    """
    if process.forked:
        raise DeviceError(FORKED)
    refuse_reentry(_opening, "a device is being opened")
    with _opening:
        key = info.index, info.name, os.environ.get(adapter.LAYERS)
        queue = _queues.get(key)
        if queue is None:
            queue = _queues[key] = Queue(info)
        return queue


@lru_cache(maxsize=1)
def load_kompute() -> Any:
    """Kompute's Python package.

    Raises:
        DeviceError: it cannot be imported; the message says what it needs.
    """
    try:
        import kp
    except ImportError as error:
        raise DeviceError(
            f"Kompute (the kp package) cannot be loaded: {error}. scripts/setup builds its wheel; "
            "at run time it needs libvulkan.so.1 and libfmt (Debian and Ubuntu: libvulkan1, "
            "libfmt9 or libfmt10)"
        ) from error
    return kp
