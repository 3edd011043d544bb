"""Copies of what users' shaders cannot be bound to."""

from __future__ import annotations

from collections.abc import Sequence

from vkops.gpu.run.buffer import Buffer, HostBuffer
from vkops.gpu.run.elements import Elements
from vkops.gpu.run.encoded_plan import Work
from vkops.gpu.run.open_device import OpenDevice, movement
from vkops.plan.view import View


class ShaderCopy:
    """A packed copy of elements, which a shader is bound to instead.

    Elements of the host, which are contiguous, are copied by ``send`` and ``fetch``; those of a
    device by ``before`` and ``after``. They are copied back if they are written.

    Attributes:
        source: the memory of the elements.
        buffer: the memory of the copy.
        before: the work that makes the copy.
        after: the work that copies it back.
        is_written: whether the shader writes the elements.
    """

    def __init__(self, device: OpenDevice, elements: Elements, *, is_written: bool) -> None:
        source, view, itemsize, _ = elements
        self.source: Buffer | HostBuffer = source
        self._start = view.offset * itemsize
        self.is_written: bool = is_written
        if isinstance(source, HostBuffer):
            device.vulkan.refuse_recording("host memory cannot be bound to a shader")
        self.buffer: Buffer = Buffer(device, elements.nbytes)
        self.before: Sequence[Work] = ()
        self.after: Sequence[Work] = ()
        if isinstance(source, Buffer):
            packed = View.packed(view.sizes)
            there, here = [source.extents], [self.buffer.extents]
            self.before = movement(device.tuning, itemsize, view, packed).bind(there, here)
            if is_written:
                self.after = movement(device.tuning, itemsize, packed, view).bind(here, there)

    def send(self) -> None:
        """Copy elements of the host to the device."""
        if isinstance(self.source, HostBuffer):
            self.buffer.write(self.source.peek(self._start, self.buffer.nbytes))

    def fetch(self) -> None:
        """Copy elements of the host back, if the shader writes them, when they are complete."""
        if self.is_written and isinstance(self.source, HostBuffer):
            self.source.write(self.buffer.peek(), self._start)
