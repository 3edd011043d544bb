"""Images of Vulkan in memory of a device."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import copy
from math import prod
from typing import Any, NamedTuple

import numpy as np

from vkops.errors import DeviceError, OutOfDeviceMemoryError
from vkops.extent import slice_extents
from vkops.gpu.adapters.kompute import Native, native_error
from vkops.gpu.memory.pools import ALIGNMENT, Allocation
from vkops.gpu.run import image_samples
from vkops.gpu.run.buffer import Buffer
from vkops.gpu.run.open_device import OpenDevice
from vkops.plan.view import Ints, View
from vkops.shaders.image_formats import Format, formats_of

SAMPLED, STORED, LINEAR = 1 << 0, 1 << 1, 1 << 12
"""Bits of VkFormatFeatureFlags for images, and those of texel buffers."""

SAMPLED_TEXELS, STORED_TEXELS = 1 << 3, 1 << 4


class ImageForm(NamedTuple):
    """All that images of a kind have in common.

    ``channels`` are the elements of a texel, 1, 2 or 4. ``format`` is None if each declaration of a
    shader chooses one of the formats with such texels. ``samples`` are those of a texel; if they
    are several, the last axis is theirs.
    """

    dtype: np.dtype[Any]
    dims: int
    has_layers: bool
    channels: int
    format: Format | None
    samples: int = 1

    @property
    def nbytes(self) -> int:
        """The bytes of a texel, or of a sample."""
        return self.channels * self.dtype.itemsize

    @property
    def rank(self) -> int:
        """The number of axes without the channels."""
        return self.dims + self.has_layers + (self.samples > 1)

    @property
    def space(self) -> slice:
        """The axes of depth, height and width."""
        return slice(self.has_layers, self.has_layers + self.dims)

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
        # Samples are copied by a shader that stores them, whatever the format of the image is.
        is_stored = bool(allowed & STORED) or self.samples > 1
        is_sampled = bool(allowed & SAMPLED)
        return first.vulkan, self.dims, levels, layers, self.samples, is_sampled, is_stored


class ImageMemory:
    """An image in memory of a device: zeros at first, freed with this object.

    Attributes:
        device: the device that it was made on.
        native: the image of the native module.
        form: the kind of its texels.
        grid: the sizes of its first level: layers, depth, height, width and samples, as far as it
            has them.
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
        device.make_ready()
        sizes = (*reversed(grid[form.space]), 1, 1)[:3]
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
        grid, space = self.grid, self.form.space
        halved = [max(1, n >> level) for n in grid[space]]
        return (*grid[: space.start], *halved, *grid[space.stop :])

    def copies(
        self, buffer: Buffer, first: int, level: int, corner: Ints, sizes: Ints, *, into: bool
    ) -> list[Native]:
        """Return operations that copy a box of a level from or to packed texels of a buffer.

        ``first`` is the first byte of the texels, 0 if these have several samples; the copy goes
        ``into`` the image or out of it.
        """
        if self.form.samples > 1:
            return image_samples.copies(self, buffer, corner, sizes, into=into)
        texel, done = self.form.nbytes, 0
        work: list[Native] = []
        for memory, offset, nbytes in slice_extents(buffer.extents, first, prod(sizes) * texel):
            rows = []
            at = done
            done += nbytes // texel
            for box in View.packed(sizes).boxes(at, done):
                place = map(int, np.unravel_index(box.offset, sizes))
                part = (*[1] * (len(sizes) - len(box.sizes)), *box.sizes)
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


def _called(device: OpenDevice, function: Callable[..., Any], *arguments: Any) -> Any:
    """Call a function of the native module that makes an image."""
    try:
        return function(*arguments)
    except native_error() as error:
        if isinstance(error, device.vulkan.module.OutOfMemoryError):
            raise OutOfDeviceMemoryError(f"an image: the driver has no memory ({error})") from error
        raise DeviceError(f"{device.info.label} makes no such image: {error}") from error
