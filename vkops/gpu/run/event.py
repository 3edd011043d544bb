"""Events: points in the work of a device."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

from vkops.gpu.run.asynchronous import ended
from vkops.gpu.run.open_device import OpenDevice


class Event:
    """A point in the work of a device, which calls with ``wait=False`` and ``Device.event`` return.

    It is done when all work that was submitted to the adapter before has ended. An event can be
    awaited.

    >>> import numpy as np, vkops
    >>> device = vkops.Device()
    >>> out = device.pinned(3, "int32")
    >>> event = device.tensor(np.int32([1, 2, 3])).numpy(out=out, wait=False)
    >>> event.wait()
    >>> event.done, out.tolist()
    (True, [1, 2, 3])
    """

    __slots__ = ("_device", "_number")

    def __init__(self, device: OpenDevice, number: int) -> None:
        self._device = device
        self._number = number

    def __repr__(self) -> str:
        return f"<vkops.Event {self._number} of {self._device.info.label}>"

    def wait(self) -> None:
        """Wait until it is done; other threads can use the device meanwhile.

        Raises:
            DeviceError: the device was lost.
        """
        self._device.vulkan.wait(self._number)

    @property
    def done(self) -> bool:
        """Whether it is done; this does not wait.

        Raises:
            DeviceError: the device was lost.
        """
        vulkan = self._device.vulkan
        return vulkan.has_waited(self._number) or vulkan.is_done(self._number)

    async def _ended(self) -> None:
        if not self.done:
            await ended(self._device, self._number)

    def __await__(self) -> Generator[Any, None, None]:
        return self._ended().__await__()
