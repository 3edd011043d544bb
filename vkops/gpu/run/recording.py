"""Recordings: work that is collected once, and submitted as a whole again and again."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from functools import partial
from weakref import ref

from vkops.arguments.values import ArgumentName, integer
from vkops.errors import DeviceError, InvalidDescError, show
from vkops.gpu.adapters.kompute import Native
from vkops.gpu.run.open_device import OpenDevice
from vkops.gpu.run.vulkan_device import NOT_RECORDING, RecordedSteps, RecordingThread
from vkops.notebook import repr_html


class _Exit:
    """A descriptor for ``__exit__`` that returns a new callable for each ``with`` statement.

    The statement reads ``__exit__`` before it calls ``__enter__``, where the recording begins, and
    alone holds the callable: when it lets go of it, the recording ends. See ``RecordingThread``.
    """

    def __init__(self, end: Callable[..., None]) -> None:
        self._end = end

    def __get__(self, program: RecordedProgram | None, owner: object = None) -> Callable[..., None]:
        if program is None:
            return self._end
        end = partial(self._end, program)
        program._thread.end = ref(end)
        return end


class RecordedProgram:
    """Functions, operators, graphs and shaders that run as one submission; see ``Device.record``.

    It keeps all tensors and buffers alive that it uses, including those that were made while it was
    recorded. To run it on other inputs, write to their tensors.

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

    def __init__(self, device: OpenDevice) -> None:
        self._device = device
        self._thread = RecordingThread()  # a reference to each thread's ``with`` statement
        self._end = NOT_RECORDING  # the reference of the thread that records
        self._kept_end: object = None  # without a ``with`` statement, as in an ExitStack
        self.recorded: RecordedSteps = RecordedSteps()
        self._commands: Native = None
        self._closed = False
        self._has_failed = False

    # -- recording --------------------------------------------------------------------------------

    def __enter__(self) -> RecordedProgram:
        self._device.make_ready()
        vulkan = self._device.vulkan
        if vulkan.recording is not None:
            raise DeviceError(f"record: {vulkan.info.label} is recording already")
        with vulkan.lock:
            if self._commands is not None or self._closed:
                raise DeviceError("record: the program was recorded already, make another one")
            if self._end() is not None:
                raise DeviceError("record: another thread is recording the program")
            kept_end = self.__exit__ if self._thread.end() is None else None
            self._end = self._thread.end
            self.recorded = RecordedSteps()  # new: an interrupted block may have left steps
        vulkan.thread.end = self._end
        self._kept_end = kept_end
        return self

    def _end_block(self, kind: object = None, *_: object) -> None:
        self._kept_end = None
        vulkan = self._device.vulkan
        with vulkan.lock:
            self._has_failed = kind is not None
            if self._has_failed or self._closed:
                self._drop()
                return
            make, operations = vulkan.module.Commands, self.recorded.operations
            self._commands = vulkan.call(make, vulkan.native, operations)

    __exit__: _Exit = _Exit(_end_block)
    _repr_html_ = repr_html

    # -- running ----------------------------------------------------------------------------------

    @property
    def steps(self) -> tuple[str, ...]:
        """The names of the functions, operators and shaders that were recorded, in order."""
        return tuple(self.recorded.names)

    def run(self, times: int = 1) -> None:
        """Submit all of it, without waiting for it.

        Args:
            times: how often.

        Raises:
            DeviceError: it is closed or not yet recorded, the device is closed, or it was lost.
            InvalidDescError: ``times`` is not an integer from 0 (REC-01).
        """
        count = integer(times, ArgumentName("", "times", "REC-01"))
        if count < 0:
            raise InvalidDescError("", "times", f"got {show(count)}, must be 0 or more", "REC-01")
        recorded, commands = self.recorded, self._commands
        if commands is None:  # last: another thread may close the program meanwhile
            state = "not recorded yet"
            if self._has_failed:
                state = "not recorded: an error ended its block"
            raise DeviceError(f"run: the recorded program is {'closed' if self._closed else state}")
        vulkan = self._device.vulkan
        for _ in range(count):
            self._device.make_ready()
            if vulkan.recording is not None:
                raise DeviceError("run: a recorded program cannot be part of another one")
            memory = recorded.used, recorded.written
            # Command buffers that were recorded once have no timestamps, and run no observers.
            if vulkan.native.measures or vulkan.observers:
                vulkan.submit(recorded.operations, *memory, "a recording")
            else:
                vulkan.start(vulkan.native.submit, commands, *memory, "a recording")

    def close(self) -> None:
        """Release what it keeps; it cannot run any more."""
        self._closed = True
        self._drop()

    def _drop(self) -> None:
        self._commands = None
        self.recorded = RecordedSteps(names=self.recorded.names)

    def __repr__(self) -> str:
        names = self.recorded.names
        counts = Counter(names).items()
        parts = [name if count == 1 else f"{count} times {name}" for name, count in counts]
        text = f": {', '.join(parts)}" if parts else ""
        plural = "" if len(names) == 1 else "s"
        return f"<vkops.RecordedProgram of {len(names)} step{plural}{text}>"
