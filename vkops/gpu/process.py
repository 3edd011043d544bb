"""What a process has opened: drivers have threads, which forks and Python's end know nothing of."""

from __future__ import annotations

import atexit
import os
from ctypes import py_object, pythonapi
from typing import Any
from weakref import WeakSet

FORKED = (
    "this process was forked off one that had opened a Vulkan device, and drivers do not survive "
    "that; open devices after forks only, or start processes by spawning"
)


class _Process:
    """What this process has opened, and whether it was forked off one that had."""

    def __init__(self) -> None:
        self.executors: WeakSet[Any] = WeakSet()
        self.opened: bool = False
        self.forked: bool = False

    def add(self, executor: Any) -> None:
        self.executors.add(executor)
        self.opened = True

    def after_fork(self) -> None:
        self.forked = self.opened
        for executor in self.executors:
            # To destroy it would wait for threads for ever.
            pythonapi.Py_IncRef(py_object(executor._manager))

    def at_exit(self) -> None:
        if not self.forked:
            for executor in list(self.executors):
                executor.settle()


process: _Process = _Process()
atexit.register(process.at_exit)
os.register_at_fork(after_in_child=process.after_fork)
