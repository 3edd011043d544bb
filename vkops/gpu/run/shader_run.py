"""Runs of the users' own shaders on buffers of their own: Kompute binds whole buffers only."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from vkops.errors import OutOfDeviceMemoryError
from vkops.gpu.adapters import adapter
from vkops.gpu.kernels.encoding import Words
from vkops.gpu.memory import host_memory
from vkops.gpu.run.executor import Executor
from vkops.plan.execute import Bytes


class ShaderRun:
    """A shader with its buffers filled, ready to be dispatched again and again.

    The sizes of ``contents`` are multiples of 4 bytes; ``bindings`` maps the number of a binding to
    the content that it has. Numbers in between that the shader does not use get any buffer.

    Raises:
        OutOfDeviceMemoryError: a buffer does not fit; nothing was made.
    """

    def __init__(
        self,
        executor: Executor,
        spirv: bytes,
        contents: Sequence[Bytes],
        bindings: Mapping[int, int],
        groups: tuple[int, int, int],
        push_constants: bytes,
    ) -> None:
        self._executor = executor
        self._kompute = kompute = executor.queue.kompute
        with executor.exclusive():
            check_room(executor, [content.nbytes for content in contents])
            words = [content.view(np.uint32) for content in contents] or [np.zeros(1, np.uint32)]
            self._tensors = [transfer_tensor(executor, data) for data in words]
            # A tensor that was in this command twice would be written by two copies at once.
            kompute.run(kompute.kp.OpTensorSyncDevice(self._tensors))
            numbers = range(max(bindings, default=0) + 1)
            bound = [self._tensors[bindings.get(number, 0)] for number in numbers]
            none, push = np.zeros(0, np.uint32), np.frombuffer(push_constants, np.uint32)
            algorithm = kompute.manager.algorithm(bound, spirv, list(groups), none, push)
            self._operation = kompute.kp.OpAlgoDispatch(algorithm)

    def dispatch(self) -> None:
        """Run the shader and wait for it."""
        with self._executor.exclusive():
            self._executor.queue.execute([self])  # type: ignore[list-item]

    def operation(self, native: Any) -> Any:
        """Return Kompute's operation."""
        return self._operation

    def content(self, number: int) -> Bytes:
        """Return one of the contents as it is now."""
        tensor = self._tensors[number]
        fetch = self._kompute.kp.OpTensorSyncLocal([tensor])
        with self._executor.exclusive():
            self._kompute.run(fetch)
        content: Bytes = tensor.data().view(np.uint8)
        return content


def transfer_tensor(executor: Executor, data: Words) -> Any:
    """Make a Kompute tensor that Kompute's own copies accept."""
    kompute = executor.queue.kompute
    kinds = kompute.kp.TensorTypes
    return kompute.manager.tensor_t(data, kinds.host if executor.mapped else kinds.device)


def check_room(executor: Executor, sizes: Sequence[int]) -> None:
    """Check that tensors of these sizes fit.

    Raises:
        OutOfDeviceMemoryError: they do not.
    """
    info, largest = executor.info, max(sizes, default=0)
    if largest > info.max_buffer:
        message = f"a buffer of {largest} bytes: must be {info.max_buffer} at most on this device"
        raise OutOfDeviceMemoryError(message)
    # Host and device have a copy each, unless they share memory; one Vulkan heap may have both.
    sides = {True, executor.mapped}
    heaps = {adapter.tensor_heap(info.index, host=mapped).index for mapped in sides}
    for mapped in sides:
        executor.queue.require(sum(sizes) * (len(sides) if len(heaps) == 1 else 1), mapped=mapped)
    host_memory.require(len(sides) * sum(sizes))
