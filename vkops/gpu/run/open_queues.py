"""The queues of this process: one for each adapter that is open."""

from __future__ import annotations

import atexit
import gc
import logging
import os
from collections.abc import Callable
from contextlib import suppress
from ctypes import py_object, pythonapi
from threading import RLock
from typing import TypeVar
from weakref import WeakValueDictionary

from vkops.errors import DeviceError, OutOfDeviceMemoryError, is_held, refuse_reentry
from vkops.gpu.adapters import adapter
from vkops.gpu.adapters.forks import check, state
from vkops.gpu.memory.heaps import living
from vkops.gpu.run.queue import Queue
from vkops.system.processes import after_fork

T = TypeVar("T")

EXIT_SECONDS = 10.0
"""How long the end of Python waits for work that still runs."""


class _Process:
    """The queues of this process; forks and Python's end ignore the threads of their drivers."""

    def __init__(self) -> None:
        self.opened: WeakValueDictionary[int, Queue] = WeakValueDictionary()

    @property
    def queues(self) -> list[Queue]:
        """The queues that are open."""
        return living(self.opened)

    def release_empty_heaps(self) -> None:
        """Release the driver memory that no device needs at the moment.

        A thread that is in the middle of using one queue leaves the others alone, too: another
        thread could be waiting for the one it holds.
        """
        queues = self.queues
        if not any(is_held(queue.lock) for queue in queues):
            for queue in queues:
                queue.release_empty_heaps()

    def after_fork(self) -> None:
        state.forked = state.opened
        for queue in self.queues:
            # Destroying it would wait for threads forever.
            pythonapi.Py_IncRef(py_object(queue.kompute))

    def at_exit(self) -> None:
        for queue in self.queues:
            with suppress(DeviceError):  # it is lost
                if not (state.forked or queue.finish_within(EXIT_SECONDS)):
                    names = ", ".join(queue.pending_names) or "work"
                    logging.getLogger("vkops").warning(
                        f"Python exits while {queue.info.label} still runs {names}: not waited for"
                    )


process: _Process = _Process()
atexit.register(process.at_exit)
after_fork(process.after_fork)

_opening = RLock()


def open_queue(info: adapter.DeviceInfo) -> Queue:
    """Return the queue of an adapter: opened once, and again when nothing refers to it any more.

    Another one is opened if it is lost, or if Vulkan's layers have changed.

    Raises:
        DeviceError: Kompute cannot open the adapter, or this process was forked.
    """
    check()
    refuse_reentry(_opening, "a device is being opened")
    with _opening:
        key = info.index, info.name, os.environ.get(adapter.LAYERS)
        for queue in process.queues:
            if queue.key == key and not queue.lost:
                return queue
        queue = Queue(info, key)
        process.opened[id(queue)] = queue
        return queue


def with_reclaim(allocate: Callable[[], T]) -> T:
    """Allocate; if memory is short, free garbage and empty heaps, and try once more.

    Call it with no lock held: finalizers run, and the queues of all devices are locked in turn.
    """
    with suppress(OutOfDeviceMemoryError):
        return allocate()
    gc.collect()
    process.release_empty_heaps()
    return allocate()
