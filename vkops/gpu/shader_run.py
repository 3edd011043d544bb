"""Runs a shader of the user's own, on buffers of its own: Kompute binds buffers whole."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

from vkops.gpu.executor import Executor

Bytes = npt.NDArray[np.uint8]


class ShaderRun:
    """A shader with its buffers filled, ready to be dispatched again and again.

    ``contents`` are of whole words; ``bindings`` says which of them each binding has. Numbers
    between that are missing get some buffer.

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
        def record() -> None:
            executor.check_room([content.nbytes for content in contents])
            words = [content.view(np.uint32) for content in contents] or [np.zeros(1, np.uint32)]
            self._tensors = [executor.transfer_tensor(data) for data in words]
            numbers = range(max(bindings, default=0) + 1)
            bound = [self._tensors[bindings.get(number, 0)] for number in numbers]
            self._sequence = executor.record_shader(bound, spirv, groups, push_constants)

        self._executor = executor
        executor.exclusive(record)

    def dispatch(self) -> None:
        """Run the shader and wait for it."""
        self._executor.exclusive(lambda: self._sequence.eval())

    def content(self, number: int) -> Bytes:
        """What has become of one of the contents."""
        tensor = self._tensors[number]
        self._executor.exclusive(lambda: self._executor.fetch(tensor))
        content: Bytes = tensor.data().view(np.uint8)
        return content
