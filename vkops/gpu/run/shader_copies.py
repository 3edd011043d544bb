"""Copies of what users' shaders cannot be bound to."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from vkops.extent import Extent
from vkops.gpu.run.buffer import Buffer, HostBuffer
from vkops.gpu.run.encoded_plan import Work
from vkops.gpu.run.open_device import OpenDevice, movement
from vkops.plan.view import View


class HostCopy:
    """A copy on the device of bytes of a host buffer, which a shader is bound to instead.

    Attributes:
        buffer: the memory of the copy.
        extent: the bytes of it to bind.
        written: whether the shader writes it.
    """

    def __init__(self, device: OpenDevice, host: HostBuffer, start: int, nbytes: int) -> None:
        self._host = host
        self._start = start
        self._nbytes = nbytes
        self.written: bool = False
        device.vulkan.refuse_recording("host memory cannot be bound to a shader")
        self.buffer: Buffer = Buffer(device, nbytes)
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

    def __init__(self, device: OpenDevice, source: Buffer, view: View, itemsize: int) -> None:
        nbytes = prod(view.sizes) * itemsize
        self.buffer: Buffer = Buffer(device, nbytes)
        self.extent: Extent = self.buffer.extents[0].part(0, nbytes)
        packed = View.packed(view.sizes)
        there = movement(device.tuning, itemsize, view, packed)
        back = movement(device.tuning, itemsize, packed, view)
        self.before: Sequence[Work] = there.bind([source.extents], [self.buffer.extents])
        self.after: Sequence[Work] = back.bind([self.buffer.extents], [source.extents])
