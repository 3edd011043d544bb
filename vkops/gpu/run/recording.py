"""Recordings: work that is collected once, and submitted as a whole again and again."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any
from weakref import ref

from vkops.arguments.values import Place, integer
from vkops.errors import DeviceError, InvalidDescError, show
from vkops.gpu.run.executor import Executor
from vkops.gpu.run.queue import NO_BLOCK, Used

if TYPE_CHECKING:
    from typing_extensions import Self


class _End:
    """The attribute ``__exit__``: a call that ends the block, and that a ``with`` statement holds.

    The recording ends when that call is freed, so an interrupt in the place of the call ends it.
    """

    def __init__(self, end: Callable[..., None]) -> None:
        self._end = end

    def __get__(self, program: RecordedProgram | None, owner: object = None) -> Callable[..., None]:
        if program is None:
            return self._end
        call = partial(self._end, program)
        program._block = ref(call)
        return call


class RecordedProgram:
    """Functions, operators, graphs and shaders that run as one submission; see ``Device.record``.

    It keeps all tensors and buffers alive that it uses, those that were made while it was recorded
    included. Inputs are changed by writing to their tensors.

    >>> import numpy as np
    >>> import vkops
    >>> device = vkops.Device()
    >>> x = device.tensor(np.arange(4))
    >>> with device.record() as program:
    ...     y = vkops.roll(vkops.flip(x), 1)
    ...     left, right = vkops.split(y, 2)
    >>> program.run()
    >>> y.numpy()
    array([0, 3, 2, 1])
    >>> x[0] = 7
    >>> program.run()
    >>> y.numpy()
    array([7, 3, 2, 1])
    >>> program
    <vkops.RecordedProgram of 2 steps: roll, split>
    """

    def __init__(self, executor: Executor) -> None:
        self._executor = executor
        self._block = NO_BLOCK
        self._own_block: object = None  # without a ``with`` statement, as in an ExitStack
        self._operations: list[Any] = []
        self._names: list[str] = []
        self._buffers: dict[int, Used] = {}
        self._written: dict[int, Used] = {}
        self._commands: Any = None
        self._closed = False

    # -- recording --------------------------------------------------------------------------------

    def __enter__(self) -> Self:
        queue = self._executor.queue
        with self._executor.exclusive():
            if self._commands is not None or self._closed:
                raise DeviceError("record: the program was recorded already, make another one")
            if queue.recording is not None:
                raise DeviceError(f"record: {queue.info.label} is recording already")
        self._drop()  # what an interrupted block has left
        self._names = []
        if self._block() is None:
            self._own_block = self.__exit__
        queue.thread.block = self._block
        return self

    def _end_block(self, kind: object = None, *_: object) -> None:
        self._own_block = None
        queue = self._executor.queue
        with queue.lock:
            if kind is not None or self._closed:
                self._drop()
                return
            self._commands = queue.commands(self._operations)

    __exit__: _End = _End(_end_block)

    def add(
        self, operations: Sequence[Any], reads: Sequence[Used], writes: Sequence[Used], name: str
    ) -> None:
        """Add what would be submitted; called by the queue."""
        self._operations += operations
        self._names.append(name)
        self._buffers.update((id(used), used) for used in (*reads, *writes))
        self._written.update((id(used), used) for used in writes)

    # -- running ----------------------------------------------------------------------------------

    @property
    def steps(self) -> tuple[str, ...]:
        """The names of the functions, operators and shaders that were recorded, in order."""
        return tuple(self._names)

    def run(self, times: int = 1) -> None:
        """Submit all of it, without waiting for it.

        Args:
            times: how often.

        Raises:
            DeviceError: it is closed or not yet recorded, the device is closed, or it was lost.
            InvalidDescError: ``times`` is not an integer from 0 (REC-01).
        """
        count = integer(times, Place("", "times", "REC-01"))
        if count < 0:
            raise InvalidDescError("", "times", f"got {show(count)}, must be 0 or more", "REC-01")
        used, written = self._buffers.values(), self._written.values()
        operations, commands = self._operations, self._commands
        if commands is None:  # last: another thread may close the program meanwhile
            state = "closed" if self._closed else "not recorded yet"
            raise DeviceError(f"run: the recorded program is {state}")
        queue = self._executor.queue
        for _ in range(count):
            with self._executor.exclusive():
                if queue.recording is not None:
                    raise DeviceError("run: a recorded program cannot be part of another one")
                again = not queue.measures  # which kept commands are not
                work = commands if again else operations
                queue.start(work, used, written, "a recording", again=again)

    def close(self) -> None:
        """Release what it keeps; it cannot run any more."""
        self._closed = True
        self._drop()

    def _drop(self) -> None:
        self._commands = None
        self._operations = []
        self._buffers, self._written = {}, {}

    def __repr__(self) -> str:
        parts: list[str] = []
        for name in dict.fromkeys(self._names):
            count = self._names.count(name)
            parts.append(name if count == 1 else f"{count} times {name}")
        text = f": {', '.join(parts)}" if parts else ""
        plural = "" if len(self._names) == 1 else "s"
        return f"<vkops.RecordedProgram of {len(self._names)} step{plural}{text}>"
