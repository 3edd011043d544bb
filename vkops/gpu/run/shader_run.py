"""Runs of the users' own shaders on buffers of their own: Kompute binds whole buffers only."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from vkops.gpu.adapters.kompute import Commands
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
        def record() -> None:
            executor.check_room([content.nbytes for content in contents])
            words = [content.view(np.uint32) for content in contents] or [np.zeros(1, np.uint32)]
            self._tensors = [executor.transfer_tensor(data) for data in words]
            # A tensor that was in this command twice would be written by two copies at once.
            self._kompute.run(kp.OpTensorSyncDevice(self._tensors))
            numbers = range(max(bindings, default=0) + 1)
            bound = [self._tensors[bindings.get(number, 0)] for number in numbers]
            none, push = np.zeros(0, np.uint32), np.frombuffer(push_constants, np.uint32)
            algorithm = self._kompute.manager.algorithm(bound, spirv, list(groups), none, push)
            self._operation = kp.OpAlgoDispatch(algorithm)

        self._commands: Commands | None = None
        self._executor = executor
        self._kompute = executor.queue.kompute
        kp = self._kompute.kp
        executor.exclusive(record)

    def dispatch(self) -> None:
        """Run the shader and wait for it."""
        self._executor.exclusive(self._run)

    def _run(self) -> None:
        if self._commands is None:
            commands = self._kompute.commands()
            commands.record([self._operation], self._executor.measures)
            self._commands = commands
        self._commands.run()
        self._executor.keep_time(self._commands.nanoseconds)

    def content(self, number: int) -> Bytes:
        """Return one of the contents as it is now."""
        tensor = self._tensors[number]
        fetch = self._kompute.kp.OpTensorSyncLocal([tensor])
        self._executor.exclusive(lambda: self._kompute.run(fetch))
        content: Bytes = tensor.data().view(np.uint8)
        return content
