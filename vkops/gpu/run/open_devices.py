"""The Vulkan devices of this process: one for each adapter that is open."""

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
from vkops.gpu.memory.pools import living
from vkops.gpu.run.vulkan_device import VulkanDevice
from vkops.system.processes import after_fork

T = TypeVar("T")

EXIT_SECONDS = 10.0
"""How long the end of Python waits for work that still runs."""


class _Process:
    """The devices of this process; forks and Python's end ignore the threads of their drivers."""

    def __init__(self) -> None:
        self.opened: WeakValueDictionary[int, VulkanDevice] = WeakValueDictionary()

    @property
    def devices(self) -> list[VulkanDevice]:
        """The devices that are open."""
        return living(self.opened)

    def release_empty_heaps(self) -> None:
        """Release the driver memory that no device needs at the moment.

        A thread that is in the middle of using one device leaves the others alone, too: another
        thread could be waiting for the one it holds.
        """
        devices = self.devices
        if not any(is_held(device.lock) for device in devices):
            for device in devices:
                device.release_empty_heaps()

    def after_fork(self) -> None:
        state.forked = state.opened
        for device in self.devices:
            # Destroying it would wait for threads forever.
            pythonapi.Py_IncRef(py_object(device.native))

    def at_exit(self) -> None:
        for device in self.devices:
            with suppress(DeviceError):  # it is lost
                if not (state.forked or device.finish_within(EXIT_SECONDS)):
                    names = ", ".join(device.pending_names) or "work"
                    logging.getLogger("vkops").warning(
                        f"Python exits while {device.info.label} still runs {names}: not waited for"
                    )


process: _Process = _Process()
atexit.register(process.at_exit)
after_fork(process.after_fork)

_opening = RLock()


def open_vulkan_device(info: adapter.DeviceInfo) -> VulkanDevice:
    """Return the device of an adapter: opened once, and again when nothing refers to it any more.

    Another one is opened if it is lost, or if Vulkan's layers or VKOPS_LIMITS have changed.

    Raises:
        DeviceError: the driver cannot open the adapter, or this process was forked.
    """
    check()
    refuse_reentry(_opening, "a device is being opened")
    with _opening:
        key = info, os.environ.get(adapter.LAYERS)
        for device in process.devices:
            if device.key == key and not device.lost:
                return device
        device = VulkanDevice(info, key)
        process.opened[id(device)] = device
        return device


def with_reclaim(allocate: Callable[[], T]) -> T:
    """Allocate; if memory is short, free garbage and empty heaps, and try once more.

    Call it with no lock held: finalizers run, and all devices are locked in turn.
    """
    with suppress(OutOfDeviceMemoryError):
        return allocate()
    gc.collect()
    process.release_empty_heaps()
    return allocate()
