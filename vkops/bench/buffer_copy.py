"""Vulkan's copy of a whole buffer, for comparison in the benchmark."""

from __future__ import annotations

from vkops.errors import OutOfDeviceMemoryError
from vkops.gpu.run import streaming
from vkops.gpu.run.buffer import Buffer
from vkops.gpu.run.open_device import OpenDevice


class BufferCopy:
    """Two buffers of ``nbytes`` and the copy from one to the other by vkCmdCopyBuffer.

    Raises:
        OutOfDeviceMemoryError: a buffer would be larger than the device's largest.
    """

    def __init__(self, device: OpenDevice, nbytes: int) -> None:
        if nbytes > device.pool.max_range:
            raise OutOfDeviceMemoryError(
                f"a buffer of {nbytes} bytes: the device's largest buffer is "
                f"{device.pool.max_range} bytes"
            )
        self._device = device
        self._buffers = [Buffer(device, nbytes) for _ in range(2)]
        source, target = (buffer.extents[0].part(0, nbytes) for buffer in self._buffers)
        self._copy = streaming.regions(device, (source,), (target,))

    def run(self) -> None:
        """Copy once and wait."""
        memory = [buffer.allocation for buffer in self._buffers]
        self._device.wait(self._device.submit(self._copy, memory, memory))
