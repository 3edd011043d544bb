"""Measurement of the time that a device takes to execute work."""

from __future__ import annotations

from threading import RLock
from weakref import WeakKeyDictionary, WeakSet

from vkops.gpu.run.vulkan_device import SubmissionObserver, VulkanDevice
from vkops.system.threads import new_lock

NOTHING, TOTAL, EACH_OPERATION = range(3)
"""The kinds of measurements of a device of the native module."""


class Timestamps(SubmissionObserver):
    """The measurements and profiles of a device, several of which may be open at the same time.

    Attributes:
        measurements: weak references to those that have not ended; whoever began one holds it.
        is_profiled: whether a profile needs the time of each operation.
        total: the nanoseconds that the device has taken while it measured.
    """

    def __init__(self) -> None:
        self.lock: RLock = new_lock()
        self.measurements: WeakSet[Measurement] = WeakSet()
        self.is_profiled: bool = False
        self.total: float = 0.0

    def update(self, device: VulkanDevice) -> None:
        """Have the device measure as much as open profiles and measurements need, from now on."""
        with self.lock:
            wanted = EACH_OPERATION if self.is_profiled else TOTAL if self.measurements else NOTHING
            if wanted != device.native.measures:
                device.call(setattr, device.native, "measures", wanted)
            observers = device.submission_observers
            if (self in observers) != (wanted != NOTHING):
                (observers.append if wanted else observers.remove)(self)

    def waited(self, device: VulkanDevice, began: int) -> None:
        """Stop measuring if all measurements were freed without being ended."""
        self.update(device)


_timestamps: WeakKeyDictionary[VulkanDevice, Timestamps] = WeakKeyDictionary()


def timestamps_of(device: VulkanDevice) -> Timestamps:
    """Return the ``Timestamps`` of a device; there is one for each device."""
    return _timestamps.setdefault(device, Timestamps())


def profile_operations(device: VulkanDevice, *, wanted: bool) -> None:
    """Have a device begin or stop to measure each operation for a profile."""
    timestamps = timestamps_of(device)
    timestamps.is_profiled = wanted
    timestamps.update(device)


class Measurement:
    """A measurement of all work that a device executes, until it is ended or freed.

    Nothing is measured on a device without timestamps.
    """

    def __init__(self, device: VulkanDevice) -> None:
        self._device = device
        self._timestamps = timestamps = timestamps_of(device)
        self._taken = 0.0  # of the device's total
        self.take()
        if device.info.limits.timestamp_valid_bits:
            timestamps.measurements.add(self)
            timestamps.update(device)

    def take(self, *, stop: bool = False) -> float | None:
        """Wait for the device; return the milliseconds that it took since the last call.

        It is None if the device executed nothing, or the measurement has ended. With ``stop``, it
        ends now.
        """
        device, timestamps = self._device, self._timestamps
        device.settle()
        with timestamps.lock:
            timestamps.total += device.call(device.native.take_nanoseconds) or 0.0
            nanoseconds = timestamps.total - self._taken
            self._taken = timestamps.total
            is_over = self not in timestamps.measurements
        if stop:
            timestamps.measurements.discard(self)
            timestamps.update(device)
        return None if is_over else nanoseconds / 1e6 or None
