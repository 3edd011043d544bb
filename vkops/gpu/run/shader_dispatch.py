"""Dispatches of users' shaders, and copies of views that they cannot be bound to."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

from vkops.errors import DeviceError
from vkops.extent import Extent
from vkops.gpu.run.buffer import Buffer, HostBuffer
from vkops.gpu.run.executor import Executor, movement
from vkops.gpu.run.queue import Queue, Work
from vkops.plan.view import View

Part = Extent | bytes
"""The memory of a binding: bytes of a heap, or bytes that the dispatch only reads."""

Groups = tuple[int, int, int] | Extent
"""Numbers of workgroups, or the memory that holds three of 32 bits."""


class ShaderDispatch:
    """A dispatch of a pipeline; ``parts`` are in the order of its bindings.

    ``uniform`` says which of them are uniform blocks.
    """

    def __init__(
        self,
        pipeline: Any,
        parts: Sequence[Part],
        uniform: Sequence[bool],
        groups: Groups,
        push_constants: bytes = b"",
    ) -> None:
        self._pipeline = pipeline
        self._parts = parts
        self._uniform = uniform
        self._groups = groups
        self._push_constants = push_constants
        self._operation: Any = None

    def operation(self, queue: Queue) -> Any:
        """Return the operation of the native module."""
        if self._operation is None:
            native = _exact if queue.validated else _native
            parts = [*map(native, self._parts, self._uniform)]
            groups: Any = self._groups
            if isinstance(groups, Extent):
                groups = _aliased(groups)[:2]
            make = queue.native.OpDispatch
            self._operation = make(self._pipeline, parts, groups, self._push_constants)
        return self._operation


def _native(part: Part, uniform: bool) -> Any:
    """The memory of a binding for the native module."""
    if isinstance(part, bytes):
        return part
    return _aliased(part) if uniform else (part.resource.tensor, part.start, part.nbytes)


def _exact(part: Part, uniform: bool) -> Any:
    """The memory of a binding as a buffer of its own: the layer looks for accesses beyond it."""
    if isinstance(part, bytes):
        return part
    heap, start, nbytes = part
    buffer = heap.kompute.buffer(heap.tensor, start, nbytes)
    return _native(part, uniform) if buffer is None else (buffer, 0, nbytes)


def _aliased(part: Extent) -> tuple[Any, int, int]:
    """Memory for uniform blocks and indirect dispatches, for which Kompute's buffers are not."""
    if part.resource.buffer is None:
        raise DeviceError("the driver binds this memory to storage blocks only")
    return part.resource.buffer, part.start, part.nbytes


class HostCopy:
    """A copy on the device of bytes of a host buffer, which a shader is bound to instead.

    Attributes:
        buffer: the memory of the copy.
        extent: the bytes of it to bind.
        written: whether the shader writes it.
    """

    def __init__(self, executor: Executor, host: HostBuffer, start: int, nbytes: int) -> None:
        self._host = host
        self._start = start
        self._nbytes = nbytes
        self.written: bool = False
        executor.queue.refuse_recording("host memory cannot be bound to a shader")
        self.buffer: Buffer = Buffer(executor, nbytes)
        self.extent: Extent = self.buffer.extents[0].part(0, nbytes)

    def send(self) -> None:
        """Copy the bytes to the device."""
        self.buffer.write(self._host.peek(self._start, self._nbytes))

    def fetch(self) -> None:
        """Copy them back, if the shader writes them, when they are complete."""
        if self.written:
            self._host.write(self.buffer.peek(0, self._nbytes), self._start)


class PackedCopy:
    """A packed copy of a view of a buffer's elements, which a shader is bound to instead.

    Attributes:
        buffer: the memory of the copy.
        extent: the bytes of it to bind.
        before: what makes the copy.
        after: what copies it back.
    """

    def __init__(self, executor: Executor, source: Buffer, view: View, itemsize: int) -> None:
        nbytes = prod(view.sizes) * itemsize
        self.buffer: Buffer = Buffer(executor, nbytes)
        self.extent: Extent = self.buffer.extents[0].part(0, nbytes)
        packed = View.packed(view.sizes)
        there = movement(executor.tuning, itemsize, view, packed)
        back = movement(executor.tuning, itemsize, packed, view)
        self.before: Sequence[Work] = there.bind([source.extents], [self.buffer.extents])
        self.after: Sequence[Work] = back.bind([self.buffer.extents], [source.extents])
