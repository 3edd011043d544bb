"""Images of Vulkan in memory of a device."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from copy import copy
from math import prod
from typing import Any, NamedTuple

import numpy as np

from vkops.errors import DeviceError, OutOfDeviceMemoryError
from vkops.extent import slice_extents
from vkops.gpu.adapters.kompute import Native, native_error
from vkops.gpu.memory.pools import ALIGNMENT, Allocation, Extents
from vkops.gpu.run.buffer import Buffer
from vkops.gpu.run.open_device import OpenDevice
from vkops.plan.view import Ints
from vkops.shaders.image_formats import Format, formats_of

SAMPLED, STORED, LINEAR = 1 << 0, 1 << 1, 1 << 12
"""Bits of VkFormatFeatureFlags for images, and those of texel buffers."""

SAMPLED_TEXELS, STORED_TEXELS = 1 << 3, 1 << 4


class ImageForm(NamedTuple):
    """All that images of a kind have in common.

    ``channels`` are the elements of a texel, 1, 2 or 4. ``format`` is None if each declaration of a
    shader chooses one of the formats with such texels.
    """

    dtype: np.dtype[Any]
    dims: int
    has_layers: bool
    channels: int
    format: Format | None

    @property
    def nbytes(self) -> int:
        """The bytes of a texel."""
        return self.channels * self.dtype.itemsize

    @property
    def rank(self) -> int:
        """The number of axes without the channels."""
        return self.dims + self.has_layers

    def native(self, device: OpenDevice, levels: int, layers: int) -> Ints | None:
        """Return the form of the native module; None if the device has no format for it."""
        formats = [self.format] if self.format else formats_of(self.dtype, self.channels)
        features = [device.vulkan.native.format_features(each.vulkan)[0] for each in formats]
        allowed = 0
        for each in features:
            allowed |= each
        if not allowed & (SAMPLED | STORED):
            return None
        first = next(each for each, flags in zip(formats, features, strict=True) if flags)
        return (
            first.vulkan, self.dims, levels, layers, bool(allowed & SAMPLED), bool(allowed & STORED)
        )  # fmt: skip


class ImageMemory:
    """An image in memory of a device: zeros at first, freed with this object.

    Attributes:
        device: the device that it was made on.
        native: the image of the native module.
        form: the kind of its texels.
        grid: the sizes of its first level: layers, depth, height, width, as far as it has them.
        allocation: its memory.
    """

    def __init__(
        self, device: OpenDevice, form: ImageForm, native_form: Ints, grid: Ints, levels: int = 1
    ) -> None:
        self.device: OpenDevice = device
        self.form: ImageForm = form
        self.grid: Ints = grid
        vulkan, pool = device.vulkan, device.image_pool
        self._module: Native = vulkan.module
        device.prepare()
        sizes = (*reversed(grid[form.has_layers :]), 1, 1)[:3]
        make = vulkan.module.Image
        self.native: Native = _called(device, make, vulkan.native, native_form, sizes)
        size, alignment = self.native.needs
        nbytes = size + max(0, alignment - ALIGNMENT)
        if nbytes > pool.max_range:
            message = f"an image of {size} bytes: the device allocates {pool.max_range} at most"
            raise OutOfDeviceMemoryError(message)
        self._buffer = Buffer(device, nbytes, pool)
        memory, start, _ = self._buffer.extents[0]
        _called(device, self.native.bind, memory.native, -(-start // alignment) * alignment)
        self.allocation: Allocation = self._buffer.allocation
        zeros = [vulkan.module.OpZeroImage(self.native)]
        vulkan.submit(zeros, (), [self.allocation], "image", now=True)

    def viewed(self, form: ImageForm) -> ImageMemory:
        """Return the same memory with texels of another form, of as many bytes."""
        image = copy(self)
        image.form = form
        return image

    def sizes(self, level: int) -> Ints:
        """The sizes of a level."""
        layers = self.form.has_layers
        return (*self.grid[:layers], *[max(1, n >> level) for n in self.grid[layers:]])

    def copies(
        self, extents: Extents, first: int, level: int, corner: Ints, sizes: Ints, *, into: bool
    ) -> list[Native]:
        """Return operations that copy a box of a level from or to packed texels of a buffer.

        ``first`` is the first byte of the texels in its extents; the copy goes ``into`` the image
        or out of it.
        """
        texel, done = self.form.nbytes, 0
        work: list[Native] = []
        for memory, offset, nbytes in slice_extents(extents, first, prod(sizes) * texel):
            rows = []
            at = done
            done += nbytes // texel
            for place, part in _boxes(sizes, at, done):
                where = [a + b for a, b in zip(corner, place, strict=True)]
                rows.append([offset, level, *self._row(where, part)])
                offset += prod(part) * texel
            table = np.array(rows, np.uint64)
            work.append(self._module.OpCopyImage(self.native, memory.native, into, table, not work))
        return work

    def _row(self, corner: Sequence[int], sizes: Ints) -> list[int]:
        """First layer, layers, x, y, z, width, height and depth of a box."""
        layers = self.form.has_layers
        first, count = (corner[0], sizes[0]) if layers else (0, 1)
        place = [*reversed(corner[layers:]), 0, 0][:3]
        return [first, count, *place, *[*reversed(sizes[layers:]), 1, 1][:3]]


def _boxes(sizes: Ints, start: int, end: int) -> Iterator[tuple[Ints, Ints]]:
    """Yield boxes, as corners and sizes, whose elements are those of a packed array in order.

    >>> list(_boxes((3, 4), 3, 12))
    [((0, 3), (1, 1)), ((1, 0), (2, 4))]
    """
    inner = prod(sizes[1:])
    while start < end:
        row, rest = divmod(start, inner)
        rows = 0 if rest else (end - start) // inner
        if rows:
            yield (row, *[0] * (len(sizes) - 1)), (rows, *sizes[1:])
            start += rows * inner
            continue
        until = min(end - row * inner, inner)
        for corner, part in _boxes(sizes[1:], rest, until):
            yield (row, *corner), (1, *part)
        start = row * inner + until


def _called(device: OpenDevice, function: Callable[..., Any], *arguments: Any) -> Any:
    """Call a function of the native module that makes an image."""
    try:
        return function(*arguments)
    except native_error() as error:
        if isinstance(error, device.vulkan.module.OutOfMemoryError):
            raise OutOfDeviceMemoryError(f"an image: the driver has no memory ({error})") from error
        raise DeviceError(f"{device.info.label} makes no such image: {error}") from error
