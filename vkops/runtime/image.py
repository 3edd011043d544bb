"""Images: arrays that shaders read and write as images, and sample as textures."""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from operator import index
from typing import Any, NoReturn, TypeVar

import numpy as np
import numpy.typing as npt

from vkops.arguments.values import ArgumentName, boolean, integer, integers, refuse
from vkops.errors import CONVERSION_ERRORS, InvalidDescError, from_builtin, show
from vkops.gpu.run import image_samples
from vkops.gpu.run.event import Event
from vkops.gpu.run.image_memory import ImageForm, ImageMemory
from vkops.gpu.run.open_device import OpenDevice
from vkops.notebook import repr_html
from vkops.plan.view import Ints
from vkops.runtime.image_copies import ImagePart, elements_on_device
from vkops.runtime.image_mips import generate
from vkops.shaders.image_formats import FORMATS, SAMPLES, formats_of

T = TypeVar("T")

MAX_CHANNELS = 4


class Image:
    """An image on a device, made by ``Device.image``, or a part of one; zeros at first.

    Indices choose rectangles and layers: they are integers, and slices without a step. A part of an
    image shares the memory of the image.

    Attributes:
        device: the device that it is on.
        dtype: the data type of its elements.
        dims: its dimensions, 1 to 3, without layers and channels.
        channels: the length of its last axis, the channels; None if it has no such axis.
        format: the name of its format; None if each shader chooses one.
        mips: the number of its levels.
        samples: the number of samples of a texel; several are the axis behind the width.
        part: the texels that it has in memory.
        kind: everything but the memory that a prepared call of a shader depends on.

    >>> import numpy as np
    >>> import vkops
    >>> device = vkops.Device()
    >>> image = device.image(np.arange(12, dtype=np.float32).reshape(3, 4))
    >>> image[1:, :2] = 7
    >>> image.numpy()
    array([[ 0.,  1.,  2.,  3.],
           [ 7.,  7.,  6.,  7.],
           [ 7.,  7., 10., 11.]], dtype=float32)
    """

    __array_priority__ = 100
    _repr_html_ = repr_html

    def __init__(
        self,
        device: OpenDevice,
        part: ImagePart,
        channels: int | None,
        dropped: frozenset[int] = frozenset(),
        mips: int = 1,
    ) -> None:
        form = part.memory.form
        self.device: OpenDevice = device
        self.dtype: np.dtype[Any] = form.dtype
        self.dims: int = form.dims
        self.channels: int | None = channels
        self.format: str | None = form.format and form.format.name
        self.part: ImagePart = part
        self.mips: int = mips
        self.samples: int = form.samples
        self._dropped = dropped
        self.kind: tuple[Any, ...] = (form, part.memory.grid, part[1:], dropped, mips)

    def __repr__(self) -> str:
        shape = " x ".join(map(str, self.shape))
        return f"<vkops.Image of {shape} {self.format or self.dtype} on {self.device.info.label}>"

    @property
    def shape(self) -> Ints:
        """Its sizes, as NumPy has them: layers, depth, height, width and channels."""
        sizes = enumerate(self.part.sizes)
        grid = [size for axis, size in sizes if axis not in self._dropped]
        return (*grid, *([self.channels] if self.channels else []))

    @property
    def ndim(self) -> int:
        """The number of its axes."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """The number of its elements."""
        return prod(self.shape)

    @property
    def nbytes(self) -> int:
        """The bytes of its elements."""
        return self.size * self.dtype.itemsize

    @property
    def has_layers(self) -> bool:
        """Whether its first axis is that of layers."""
        return self.part.memory.form.has_layers and 0 not in self._dropped

    # -- elements ---------------------------------------------------------------------------------

    def tensor(self) -> Any:
        """Copy it to a tensor of the same shape, on the device.

        Raises:
            OutOfDeviceMemoryError: the device has no room for it.
            DeviceError: the device is closed.
        """
        tensor = self.device.empty(self.shape, self.dtype)
        elements: Any = elements_on_device(self.device, "", "image", tensor, written=True)
        work, used = self.part.copied(self.device, elements, into=False)
        memory = [self.part.memory.allocation], [elements.buffer.allocation, *used]
        self.device.submit(work, *memory, "image.tensor")
        return tensor

    def numpy(self, *, out: npt.NDArray[Any] | None = None, wait: bool = True) -> Any:
        """Copy it to an array of NumPy, after all work that writes it has ended.

        Arguments, errors and results are those of ``Tensor.numpy``.
        """
        return self.tensor().numpy(out=out, wait=wait)

    def set(self, value: Any, *, wait: bool = True) -> Event:
        """Write to all texels, as ``image[...] = value`` does.

        Arguments and results are those of ``Tensor.set``.

        Raises:
            InvalidDescError: as for assignment (IMG-06), or ``wait`` is not True or False.
            OutOfDeviceMemoryError: no memory to send the value.
        """
        event = Event(self.device, 0)
        array = self._converted(value, self.shape)
        if isinstance(array, np.ndarray):
            array, event = self.device.tensor(array, wait=False)
        self._write(self, array)
        if boolean(wait, ArgumentName("", "wait", "IMG-06")):
            event.wait()
        return event

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> npt.NDArray[Any]:
        if copy is False:
            raise ValueError("an image cannot be an array of NumPy without a copy")
        return np.asarray(self.numpy(), dtype)

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, key: Any) -> Image:
        corner, sizes = [*self.part.corner], [*self.part.sizes]
        dropped = {*self._dropped}
        axes = [axis for axis in range(len(sizes) - (self.samples > 1)) if axis not in dropped]
        for axis, each in zip(axes, self._keys(key, len(axes)), strict=False):
            if isinstance(each, slice):
                start, stop, step = each.indices(sizes[axis])
                if step != 1 or stop <= start:
                    self._refuse_index(key)
            else:
                start = each + sizes[axis] * (each < 0)
                stop = start + 1
                dropped.add(axis)
                if not 0 <= start < sizes[axis]:
                    raise IndexError(f"index {each} is outside of axis {axis} of {self!r}")
            corner[axis], sizes[axis] = corner[axis] + start, stop - start
        part = ImagePart(self.part.memory, self.part.level, tuple(corner), tuple(sizes))
        mips = self.mips if part.is_level else 1
        return Image(self.device, part, self.channels, frozenset(dropped), mips)

    def __setitem__(self, key: Any, value: Any) -> None:
        target = self[key]
        value = self._converted(value, target.shape)
        if isinstance(value, np.ndarray):
            value = self.device.tensor(value)
        self._write(target, value)

    def _converted(self, value: Any, shape: Ints) -> Any:
        """Convert a value to this dtype: a tensor, or a contiguous array of a shape (IMG-06)."""
        if isinstance(value, Image):
            value = value.tensor()
        if hasattr(value, "placed"):
            return value
        try:
            is_typed = hasattr(value, "dtype")  # not numbers of Python
            numbers = np.asarray(value, None if is_typed else self.dtype)
            kind = numbers.astype(self.dtype, casting="same_kind", copy=False)
            return np.ascontiguousarray(np.broadcast_to(kind, shape))
        except CONVERSION_ERRORS as error:
            message = f"got {show(value)}, must be an array of {shape} {self.dtype}: {error}"
            raise InvalidDescError("", "image", message, "IMG-06") from None

    def _write(self, target: Image, value: Any) -> None:
        """Write a tensor to a part of this image."""
        device, shape = target.device, target.shape
        if value.shape != shape or value.dtype != self.dtype:
            message = f"got {value.shape} {value.dtype}, must be {shape} {self.dtype}"
            raise InvalidDescError("", "image", message, "IMG-06")
        elements: Any = elements_on_device(device, "", "image", value, written=False)
        work, used = target.part.copied(device, elements, into=True)
        written = [target.part.memory.allocation, *used]
        device.submit(work, [elements.buffer.allocation], written, "image[...]")

    def _keys(self, key: Any, count: int) -> list[Any]:
        """The index of each axis but samples and channels, as integers and slices."""
        keys = list(key) if isinstance(key, tuple) else [key]
        everything = slice(None)
        at = next((n for n, each in enumerate(keys) if each is Ellipsis), None)
        if at is not None:
            keys[at : at + 1] = [everything] * (self.ndim + 1 - len(keys))
        if len(keys) > self.ndim or any(each != everything for each in keys[count:]):
            self._refuse_index(key)
        try:
            return [each if isinstance(each, slice) else index(each) for each in keys[:count]]
        except TypeError:
            self._refuse_index(key)

    def _refuse_index(self, key: Any) -> NoReturn:
        axes = self.part.sizes[: -1 if self.samples > 1 else None]
        message = (
            f"got index {show(key)}, must be integers, and slices that have elements and no step, "
            f"of the axes {axes} without samples and channels; image.tensor() takes all indices"
        )
        raise InvalidDescError("", "image", message, "IMG-05")

    def viewed(self, form: ImageForm) -> Image:
        """Return the same texels of one level as an image of a form with as many bytes."""
        part = self.part._replace(memory=self.part.memory.viewed(form))
        return Image(self.device, part, self.channels, self._dropped)

    # -- levels -----------------------------------------------------------------------------------

    def mip(self, level: int) -> Image:
        """Return a level: an image of half the size for each level, from this one, which is 0.

        Raises:
            InvalidDescError: there is no such level, or this is a part of an image (IMG-05).
        """
        number = integer(level, ArgumentName("", "level", "IMG-05"))
        if not 0 <= number < self.mips:
            message = f"got {number}, must be from 0 and less than {self.mips}"
            raise InvalidDescError("", "level", message, "IMG-05")
        whole, layers = self.part, self.part.memory.form.space.start
        at = whole.level + number
        sizes = (*whole.sizes[:layers], *whole.memory.sizes(at)[layers:])
        part = ImagePart(whole.memory, at, whole.corner, sizes)
        return Image(self.device, part, self.channels, self._dropped, self.mips - number)

    def generate_mips(self) -> Image:
        """Compute all levels but the first one, each from the one before it; return this image.

        A texel is the mean of the texels under it: two in each dimension, and in those of an odd
        size three, whose outer ones have the weights of the parts that are under it. It is
        computed with float32, in the same order on every device, and integers are rounded to the
        nearest. Numbers of an sRGB format are taken as they are stored.

        Raises:
            InvalidDescError: the texels are packed, or have integers of 64 bits (IMG-03).
        """
        form = self.part.memory.form
        if self.dtype.itemsize > 4 or (form.format and form.format.is_packed):
            message = f"got {self.format or self.dtype}, of which no means are computed"
            refuse("", "format", message, "IMG-03")
        for number in range(1, self.mips):
            generate(self.mip(number - 1), self.mip(number))
        return self


def _converted(field: str, convert: Callable[..., T], *arguments: Any) -> T:
    """Return the result of a function of NumPy, whose errors become those of vkops (IMG-01)."""
    try:
        return convert(*arguments)
    except CONVERSION_ERRORS as error:
        raise from_builtin(error, "", field, "IMG-01", "NumPy says: ") from error


def create(
    device: OpenDevice,
    array: Any,
    dtype: Any,
    dims: Any,
    layers: Any,
    channels: Any,
    format_name: Any,
    mips: Any,
    samples: Any = False,
) -> Image:
    """Make an image; see ``Device.image``."""
    rank = integer(dims, ArgumentName("", "dims", "IMG-01"))
    has_layers = boolean(layers, ArgumentName("", "layers", "IMG-01"))
    if not 1 <= rank <= 3 or (has_layers and rank == 3):
        refuse("", "dims", f"got {rank}, must be 1 to 3, and 1 or 2 with layers", "IMG-01")
    has_samples = boolean(samples, ArgumentName("", "samples", "IMG-01"))
    if has_samples and rank != 2:
        refuse("", "dims", f"got {rank}, must be 2 with samples", "IMG-01")
    fixed = None
    if format_name is not None:
        fixed = FORMATS.get(format_name) if isinstance(format_name, str) else None
        if fixed is None:
            refuse("", "format", f"got {show(format_name)}, must be a format of GLSL", "IMG-03")
    shape, values, kind = _shape(array), None, dtype
    if shape is not None and dtype is None:
        kind = fixed.dtype if fixed else np.float32
    if kind is not None:
        kind = _converted("dtype", np.dtype, kind)
    if shape is None:
        values = array if hasattr(array, "placed") else _converted("array", np.asarray, array, kind)
        shape, kind = tuple(values.shape), np.dtype(values.dtype)
    axes = rank, has_layers, has_samples
    form, shown = _form(kind, shape, axes, channels=channels, fixed=fixed)
    grid = shape[: form.rank]
    levels = integer(mips, ArgumentName("", "mips", "IMG-04"))
    image = Image(device, allocated(device, form, grid, levels), shown, mips=levels)
    if values is not None:
        image[...] = values.reshape(image.shape) if values.size == image.size else values
    return image


def _shape(value: Any) -> Ints | None:
    """Return a value as sizes; None if it is an array."""
    argument, integral = ArgumentName("", "shape", "IMG-01"), (int, np.integer)
    if isinstance(value, integral):
        return (integer(value, argument),)
    is_shape = isinstance(value, (tuple, list)) and all(isinstance(n, integral) for n in value)
    return integers(value, argument) if is_shape else None


def _form(
    dtype: np.dtype[Any], shape: Ints, axes: tuple[int, bool, bool], *, channels: Any, fixed: Any
) -> tuple[ImageForm, int | None]:
    """Return the form of an image, and the number of channels that users see.

    ``axes`` are its dimensions, and whether it has axes of layers and of samples.
    """
    (dims, has_layers, has_samples), rank = axes, sum(axes)
    if not rank <= len(shape) <= rank + 1 or 0 in shape or min(shape, default=0) < 0:
        message = f"got {shape}, must be {rank} sizes from 1, and one of channels or none"
        refuse("", "shape", message, "IMG-01")
    count = shape[rank] if len(shape) > rank else None
    samples = shape[rank - 1] if has_samples else 1
    if has_samples and samples not in SAMPLES:
        message = f"got {shape}, of which {samples} are samples, must be 2, 4, 8, 16, 32 or 64"
        refuse("", "shape", message, "IMG-01")
    if channels is not None:
        number = integer(channels, ArgumentName("", "channels", "IMG-02"))
        if count is not None and number != count:
            refuse("", "channels", f"got {number}, must be {count}, the last size", "IMG-02")
        count = number
    elif count is None and fixed and fixed.channels > 1:
        count = fixed.channels
    if not 1 <= (count or 1) <= MAX_CHANNELS:
        refuse("", "channels", f"got {count}, must be 1 to {MAX_CHANNELS}", "IMG-02")
    stored = {None: 1, 3: 4}.get(count, count or 1)
    fitting = formats_of(dtype, stored)
    if not fitting or (fixed and fixed not in fitting):
        what = "a format has: integers of 8 to 32 bits, float16 or float32; astype() converts it"
        if fixed:
            what = f"{fixed.name} has: {np.dtype(fixed.dtype)} and {fixed.channels}"
        message = f"got {dtype} and {stored} channels, must be what {what}"
        refuse("", "dtype", message, "IMG-03")
    return ImageForm(dtype, dims, has_layers, stored, fixed, samples), count


def _check_samples(device: OpenDevice, form: ImageForm, counts: int) -> None:
    """Refuse images with several samples that the device lacks (IMG-03, IMG-04)."""
    shader = image_samples.copying(form.nbytes, has_layers=form.has_layers, into=True)
    missing = [name for name in shader.needs if name not in device.features]
    if missing:
        message = f"needs {', '.join(missing)}, which {device.info.label} does not have"
        refuse("", "samples", message, "IMG-03")
    if not counts & form.samples:
        known = " or ".join(str(each) for each in SAMPLES if counts & each) or "none"
        message = f"got {form.samples} samples, must be {known} on {device.info.label}"
        refuse("", "samples", message, "IMG-04")


def allocated(device: OpenDevice, form: ImageForm, grid: Ints, levels: int = 1) -> ImagePart:
    """Make an image, after a check that the device supports it (IMG-03, IMG-04)."""
    layers = grid[0] if form.has_layers else 1
    native = form.native(device, levels, layers)
    limits = None if native is None else device.vulkan.native.image_limits(native)
    if native is None or limits is None:
        message = f"{device.info.label} has no such images of {form.dims} dimensions"
        name = form.format.name if form.format else f"{form.channels} times {form.dtype}"
        refuse("", "format", f"got {name}: {message}", "IMG-03")
    sides, most_levels, most_layers, most_bytes, sample_counts = limits
    sizes = grid[form.space]
    if form.samples > 1:
        _check_samples(device, form, sample_counts)
        most_levels = 1
    bounds = [*zip(sizes, reversed(sides[: form.dims]), strict=True), (layers, most_layers)]
    for size, most in bounds:
        if size > most:
            message = f"got {grid}, must be {most} at most where it is {size} on this device"
            refuse("", "shape", message, "IMG-04")
    most_levels = min(most_levels, max(sizes).bit_length())
    if not 1 <= levels <= most_levels:
        refuse("", "mips", f"got {levels}, must be 1 to {most_levels}", "IMG-04")
    if prod(grid) * form.nbytes > most_bytes:
        message = f"got {prod(grid) * form.nbytes} bytes, must be {most_bytes} at most"
        refuse("", "shape", f"{message} on this device", "IMG-04")
    memory = ImageMemory(device, form, native, grid, levels)
    return ImagePart(memory, 0, (0,) * form.rank, grid)
