"""Copies between images and the elements of tensors."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any, NamedTuple

from vkops.errors import BindingError
from vkops.gpu.adapters.kompute import Native
from vkops.gpu.memory.pools import Allocation
from vkops.gpu.run.buffer import Buffer
from vkops.gpu.run.image_memory import ImageMemory
from vkops.gpu.run.open_device import OpenDevice, movement
from vkops.plan.rounding import round_up
from vkops.plan.view import Ints, View
from vkops.runtime.bindings import Elements, elements

_ONES = {"f2": 0x3C003C00, "f4": 0x3F800000, "i1": 0x7F7F7F7F, "i2": 0x7FFF7FFF, "i4": 0x7FFFFFFF}
"""Words of a fourth channel that is opaque: 1, or the largest integer."""

Operations = tuple[list[Native], list[Allocation]]
"""Operations, and the memory of the intermediate buffers that they write."""


class ImagePart(NamedTuple):
    """A box of one level of an image, without the channels: its corner and its sizes."""

    memory: ImageMemory
    level: int
    corner: Ints
    sizes: Ints

    @property
    def is_level(self) -> bool:
        """Whether it is a whole level, of all layers or some."""
        space = self.memory.form.space
        return self.sizes[space] == self.memory.sizes(self.level)[space]

    def copied(self, device: OpenDevice, tensor_elements: Elements, *, into: bool) -> Operations:
        """Return operations that copy elements into the part, or the part to elements.

        The elements of each texel follow one another. If texels have three, the fourth channel on
        the device is made opaque.
        """
        buffer: Any
        view: Any
        buffer, view, itemsize, _ = tensor_elements
        form = self.memory.form
        place = self[1:]
        count, start = prod(view.sizes) // prod(self.sizes), view.offset * itemsize
        is_packed = view.is_contiguous and start % form.nbytes == 0 and count == form.channels
        if is_packed and form.samples == 1:
            return self.memory.copies(buffer, start, *place, into=into), []
        packed = self._packed(device)
        there, here = [buffer.extents], [packed.extents]
        texels = View.packed((*self.sizes, form.channels)).narrow(len(self.sizes), 0, count)
        view = view.reshape(texels.sizes)  # with more axes of size 1
        copy = self.memory.copies(packed, 0, *place, into=into)
        if into:
            fill = [] if count == form.channels else _opaque(device, packed, form.dtype.str[1:])
            plan = movement(device.tuning, itemsize, view, texels)
            work = [*fill, *plan.operations(device.vulkan, there, here), *copy]
        else:
            plan = movement(device.tuning, itemsize, texels, view)
            work = [*copy, *plan.operations(device.vulkan, here, there)]
        return work, [packed.allocation]

    def _packed(self, device: OpenDevice) -> Buffer:
        """Return memory for its texels, in whole words."""
        return Buffer(device, round_up(prod(self.sizes) * self.memory.form.nbytes, 4))

    def copied_to(self, device: OpenDevice, other: ImagePart) -> Operations:
        """Return operations that copy its texels to a part of an image with the same sizes."""
        packed = self._packed(device)
        work = []
        for part, into in ((self, False), (other, True)):
            work += part.memory.copies(packed, 0, *part[1:], into=into)
        return work, [packed.allocation]


def elements_on_device(
    device: OpenDevice, shader: str, path: str, binding: Any, *, written: bool
) -> Elements:
    """Return elements that can be copied to an image; host memory is an error (SH-12)."""
    argument = elements(device, shader, path, binding, written=written)
    if not isinstance(argument.buffer, Buffer):
        message = "is in memory of the host, must be on the device to be copied to an image"
        raise BindingError(shader, path, message, "SH-12")
    return argument


def _opaque(device: OpenDevice, buffer: Buffer, dtype: str) -> Sequence[Native]:
    """Return operations that fill a buffer with the value of an opaque fourth channel."""
    fill = device.vulkan.module.OpFillRegions
    return [
        fill(extent.resource.native, _ONES.get(dtype, 0xFFFFFFFF), [[0, *extent[1:]]], True)
        for extent in buffer.extents
    ]
