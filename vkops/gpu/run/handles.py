"""Vulkan's handles, for other libraries that use the same device and memory."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple


class TensorHandles(NamedTuple):
    """The bytes of a tensor in a buffer of Vulkan; see ``Tensor.handles``."""

    buffer: int
    """VkBuffer."""
    offset: int
    """The first byte."""
    size: int
    """The number of bytes."""


class DeviceHandles:
    """The handles of a device as integers; see ``Device.handles``.

    Attributes:
        instance: VkInstance.
        physical_device: VkPhysicalDevice.
        device: VkDevice.
        queue: VkQueue, to which all devices of the adapter submit.
        queue_family: the number of its family.
    """

    def __init__(self, vulkan: Any) -> None:
        self._vulkan = vulkan
        self.instance: int
        self.physical_device: int
        self.device: int
        self.queue: int
        self.queue_family: int
        (
            self.instance, self.physical_device, self.device, self.queue, self.queue_family
        ) = vulkan.native.handles  # fmt: skip

    def __repr__(self) -> str:
        return f"<vkops.DeviceHandles of {self._vulkan.info.label}>"

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Keep the queue for this thread in a ``with`` block: it may submit to it there.

        Work that vkops has not submitted yet is submitted first. Other threads that submit work to
        vkops wait for the end of the block, without holding Python's lock; in the block, this
        thread cannot submit work to vkops.

        Raises:
            DeviceError: this thread has the queue already, or the device was lost.
        """
        self._vulkan.call(self._vulkan.native.lend)
        try:
            yield
        finally:
            self._vulkan.native.take_back()
