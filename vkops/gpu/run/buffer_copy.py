"""Vulkan's copy of a whole buffer, for comparison in the benchmark."""

from __future__ import annotations

import numpy as np

from vkops.errors import OutOfDeviceMemoryError
from vkops.gpu.copies import RegionCopy
from vkops.gpu.run.buffer import Buffer
from vkops.gpu.run.executor import Executor


class BufferCopy:
    """Two buffers of ``nbytes`` and the copy from one to the other by vkCmdCopyBuffer.

    Raises:
        OutOfDeviceMemoryError: a buffer would be larger than the device's largest.
    """

    def __init__(self, executor: Executor, nbytes: int) -> None:
        if nbytes > executor.memory.max_range:
            raise OutOfDeviceMemoryError(
                f"a buffer of {nbytes} bytes: the device's largest buffer is "
                f"{executor.memory.max_range} bytes"
            )
        self._executor = executor
        self._buffers = [Buffer(executor, nbytes) for _ in range(2)]
        source, target = (buffer.extents[0] for buffer in self._buffers)
        regions = np.array([[source.start, target.start, nbytes]], np.uint64)
        self._copy = RegionCopy(source.resource, target.resource, regions)

    def run(self) -> None:
        """Copy once and wait."""
        executor = self._executor
        executor.wait(executor.queue.submit(executor, [self._copy], self._buffers, self._buffers))
