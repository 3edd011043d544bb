"""What a process has opened: drivers have threads, which forks and Python's end know nothing of."""

from __future__ import annotations

import atexit
import os
from ctypes import py_object, pythonapi
from typing import Any
from weakref import WeakValueDictionary

FORKED = (
    "this process was forked off one that had opened a Vulkan device, and drivers do not survive "
    "that; open devices after forks only, or start processes by spawning"
)


class _Process:
    """What this process has opened, and whether it was forked off one that had."""

    def __init__(self) -> None:
        self._queues: WeakValueDictionary[int, Any] = WeakValueDictionary()
        self.opened: bool = False
        self.forked: bool = False

    @property
    def queues(self) -> list[Any]:
        """The queues that are open."""
        # One C call copies the references: no other thread or finalizer changes them meanwhile.
        found = (reference() for reference in self._queues.valuerefs())
        return [queue for queue in found if queue is not None]

    def add(self, queue: Any) -> None:
        self._queues[id(queue)] = queue
        self.opened = True

    def release_empty_heaps(self) -> None:
        """Give back to the drivers what no device needs at the moment.

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
            # To destroy it would wait for threads for ever.
            pythonapi.Py_IncRef(py_object(queue.manager))

    def at_exit(self) -> None:
        if not self.forked:
            for queue in self.queues:
                queue.settle_at_exit()


process: _Process = _Process()
atexit.register(process.at_exit)
os.register_at_fork(after_in_child=process.after_fork)
