"""Work that goes on while the host does something else."""

from __future__ import annotations

from _thread import start_new_thread
from collections import OrderedDict
from collections.abc import Callable, Hashable
from threading import Lock, get_ident
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

import numpy as np

from vkops.gpu.dispatch import Dispatch
from vkops.gpu.layout import TABLE_BYTES
from vkops.gpu.memory import Heap

if TYPE_CHECKING:
    from vkops.gpu.executor import Executor
    from vkops.gpu.queue import Queue

MAX_ALGORITHMS = 16
"""Pipelines that a slot keeps: one for each kernel, pair of heaps and number of workgroups."""


@runtime_checkable
class Pending(Protocol):
    """What ``dispatch(..., wait=False)`` gives."""

    def wait(self) -> None:
        """Wait until the results are complete; again, it returns at once.

        Raises:
            VkopsError: what went wrong.
        """


class Submission:
    """A dispatch that the device executes while the host goes on; made by ``Executor.submit``.

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
        self.slot: Slot | None = None
        self.sequence: Any = None
        self.error: Exception | None = None

    def conflicts_with(self, other: Submission) -> bool:
        """Whether one of the two writes a resource that the other one uses."""
        mine, others = self.writes, other.writes
        return bool(mine & other.reads or mine & others or self.reads & others)

    def wait(self) -> None:
        """Wait until the results are complete; again, it returns at once.

        Raises:
            DeviceError: the device is closed, or was lost.
        """
        self._queue.wait_for(self)
        if self.error is not None:
            raise self.error

    def finish(self) -> None:
        """Wait for the device; called by the queue, once."""
        try:
            if self.sequence is not None:
                await_sequence(self.sequence)
        except Exception as error:  # Kompute raises what Vulkan says
            self.error = error
        self.sequence = self._keep = None


def await_sequence(sequence: Any) -> None:
    """Wait for a sequence, if it was started."""
    if sequence.is_running():
        sequence.eval_await()


class Slot:
    """A region table for one submission, and the pipelines that read it."""

    def __init__(self, executor: Executor) -> None:
        self._executor = executor
        self.table: Heap = executor.host_heap(TABLE_BYTES)
        self._algorithms: OrderedDict[Any, Any] = OrderedDict()

    def start(self, sequence: Any, dispatch: Dispatch) -> None:
        """Begin to run a dispatch with a new sequence."""
        assert self.table.view is not None
        self.table.view.view(np.uint32)[: dispatch.words.size] = dispatch.words
        key = (dispatch.kernel.name, dispatch.sources, dispatch.target, dispatch.groups)
        algorithm = self._algorithms.get(key)
        if algorithm is None:
            while len(self._algorithms) >= MAX_ALGORITHMS:
                self._algorithms.popitem(last=False)[1].destroy()
            algorithm = self._algorithms[key] = self._executor.algorithm(dispatch, self.table)
        self._algorithms.move_to_end(key)
        self._executor.start(sequence, algorithm)

    def forget(self, heap: Heap) -> None:
        """Drop what is bound to a heap that goes."""
        for key in [key for key in self._algorithms if heap in (*key[1], key[2])]:
            self._algorithms.pop(key).destroy()

    def close(self) -> None:
        """Give everything back."""
        while self._algorithms:
            self._algorithms.popitem()[1].destroy()


class InThread:
    """Work in a thread of its own: what is streamed keeps the host busy, too.

    Python's Event and Thread are made of locks that an interrupt (KeyboardInterrupt) can leave
    held for ever. This is made of one lock, held until the work has ended.
    """

    def __init__(self, work: Callable[[], None]) -> None:
        self._work = work
        self._error: BaseException | None = None
        self._thread: int | None = None
        self._running = Lock()
        self._running.acquire()

    def start(self) -> None:
        """Begin."""
        start_new_thread(self._run, ())

    def _run(self) -> None:
        try:
            self._thread = get_ident()
            self._work()
        except BaseException as error:
            self._error = error
        finally:
            del self._work  # it keeps what it streams
            self._thread = None  # a later thread can have the same number
            self._running.release()

    def finish(self) -> None:
        """Wait until it has ended, with an error or without; the work itself does not wait."""
        if get_ident() != self._thread:
            with self._running:
                pass

    def wait(self) -> None:
        """Wait until the results are complete; again, it returns at once.

        Raises:
            VkopsError: what went wrong.
        """
        self.finish()
        if self._error is not None:
            raise self._error
