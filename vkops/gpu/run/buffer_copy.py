"""Kompute's own copy of a whole buffer, for comparison in the benchmark.

Kompute follows vkCmdCopyBuffer with a copy on the host; only its storage tensors are spared that,
and those lack the usage flags for a copy.
"""

from __future__ import annotations

import numpy as np

from vkops.errors import OutOfDeviceMemoryError
from vkops.gpu.run.executor import Executor
from vkops.gpu.run.shader_run import transfer_tensor


class BufferCopy:
    """Two buffers of ``nbytes`` and the recorded copy from one to the other.

    Raises:
        OutOfDeviceMemoryError: a buffer would be larger than the device's largest.
    """

    def __init__(self, executor: Executor, nbytes: int) -> None:
        if nbytes > executor.memory.max_range:
            raise OutOfDeviceMemoryError(
                f"a buffer of {nbytes} bytes: the device's largest buffer is "
                f"{executor.memory.max_range} bytes"
            )
        self._tensors = [transfer_tensor(executor, np.zeros(nbytes // 4, np.uint32)) for _ in "ab"]
        kompute = executor.queue.kompute
        self._commands = kompute.commands()
        self._commands.record([kompute.kp.OpTensorCopy(self._tensors)])

    def run(self) -> None:
        """Copy once and wait."""
        self._commands.run()
