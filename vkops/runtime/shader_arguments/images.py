"""Images, and tensors in the place of images, as arguments of shaders."""

from __future__ import annotations

from typing import Any, NamedTuple, NoReturn

from vkops.errors import BindingError, show
from vkops.gpu.run.image_memory import LINEAR, SAMPLED, STORED, ImageForm, ImageMemory
from vkops.gpu.run.open_device import OpenDevice
from vkops.plan.view import Ints
from vkops.runtime.bindings import Elements, is_memory
from vkops.runtime.image import Image, allocated
from vkops.runtime.image_copies import elements_on_device
from vkops.runtime.sampler import Sampler
from vkops.runtime.shader_argument import Kinds, Resolved, ShaderCopy
from vkops.runtime.shader_arguments.samplers import check_sampler, default_sampler
from vkops.shaders.image_formats import refusal, view_format
from vkops.shaders.shader import Shader
from vkops.shaders.slot import ImageView, Slot

KINDS: Kinds = {
    "storage image": ("storage images",),
    "sampled image": ("textures",),
    "combined image sampler": ("textures", "samplers"),
}


class ImageArgument(NamedTuple):
    """An image, with the sampler that is bound together with it."""

    image: Image
    sampler: Sampler | None

    @property
    def buffer(self) -> ImageMemory:
        """The memory of the image."""
        return self.image.part.memory

    def fill_slot(self, device: OpenDevice, shader: Shader, slot: Slot) -> Slot:
        """Check dimensions and format; return the slot with the view of the image."""
        image, bound, declared = self.image, self.image.part, slot.block.image
        assert declared is not None
        form = bound.memory.form
        several = form.samples > 1
        is_whole = image.dims + image.has_layers + several == len(image.shape) - bool(
            image.channels
        )
        got = image.dims * is_whole, image.has_layers, several
        if got != (declared.dims, declared.has_layers, declared.is_multisampled):
            what = f"an image of {declared.dims} dimensions{' with layers' * declared.has_layers}"
            what += (
                f" {'and' if declared.has_layers else 'with'} samples" * declared.is_multisampled
            )
            _refuse(shader, slot, f"got {image!r}, must be {what} for {declared}", "SH-13")
        layers = (bound.corner[0], bound.sizes[0]) if form.has_layers else (0, 1)
        levels = image.mips if slot.block.kind != "storage image" else 1
        part = bound.level, levels, *layers
        viewed = _viewed(device, shader, slot, self, form, bound.sizes, part)
        return viewed if bound.is_level else viewed.in_copy()

    def copy(self, device: OpenDevice, *, is_written: bool) -> ShaderCopy:
        """Return a copy of a part of an image."""
        source = self.image.part
        part = allocated(device, source.memory.form, source.sizes)
        shader_copy = ShaderCopy(source.memory, part.memory, is_written)
        shader_copy.before, shader_copy.used = source.copied_to(device, part)
        if is_written:
            shader_copy.after, used = part.copied_to(device, source)
            shader_copy.used += used
        return shader_copy

    def overlaps(self, other: Any) -> bool:
        """Whether both are parts of one level that share texels."""
        if self.buffer is not other.buffer:
            return False
        one, two = self.image.part, other.image.part
        pairs = zip(one.corner, one.sizes, two.corner, two.sizes, strict=True)
        return one.level == two.level and all(a < b + n and b < a + m for a, m, b, n in pairs)


class TensorImage(NamedTuple):
    """Elements of a tensor that are copied to a temporary image of some form."""

    elements: Elements
    form: ImageForm
    grid: Ints
    sampler: Sampler | None

    @property
    def buffer(self) -> Any:
        """The memory of the elements."""
        return self.elements.buffer

    def fill_slot(self, device: OpenDevice, shader: Shader, slot: Slot) -> Slot:
        """Check the format; return the slot with the view of an image that it is copied to."""
        part = 0, 1, 0, self.grid[0] if self.form.has_layers else 1
        return _viewed(device, shader, slot, self, self.form, self.grid, part).in_copy()

    def copy(self, device: OpenDevice, *, is_written: bool) -> ShaderCopy:
        """Return a copy as an image."""
        part = allocated(device, self.form, self.grid)
        shader_copy = ShaderCopy(self.buffer, part.memory, is_written)
        shader_copy.before, shader_copy.used = part.copied(device, self.elements, into=True)
        if is_written:
            shader_copy.after, used = part.copied(device, self.elements, into=False)
            shader_copy.used += used
        return shader_copy

    def overlaps(self, other: Any) -> bool:
        """Whether both share bytes."""
        return self.elements.overlaps(other)


def resolved(device: OpenDevice, shader: Shader, slot: Slot, value: Any) -> Resolved:
    """Return an image, or elements that become one; a texture can be (image, sampler)."""
    sampler = None
    if type(value) is tuple and len(value) == 2 and slot.block.kind == "combined image sampler":
        value, sampler = value[0], check_sampler(device, shader, slot, value[1])
    if isinstance(value, Image):
        if value.device is not device:
            value.device.check_usable()
            if value.device.vulkan is not device.vulkan:
                message = f"is {value!r}, must be on {device.info.label}"
                _refuse(shader, slot, message, "B-02")
        argument = tuple.__new__(ImageArgument, (value, sampler))
        return argument, value.part.memory, (value.kind, sampler)
    if not is_memory(value) or not hasattr(value, "placed"):
        message = f"got {show(value)}, must be an image, a tensor or an array"
        _refuse(shader, slot, message, "SH-13")
    elements = elements_on_device(device, shader.name, slot.point, value, written=slot.is_written)
    declared = slot.block.image
    assert declared is not None
    shape = tuple(value.shape)
    channels = declared.channels(shape)
    if channels is None:
        message = f"got the shape {shape}, must have {declared.shapes} for {declared}"
        _refuse(shader, slot, message, "SH-13")
    assert elements.dtype is not None
    samples = shape[declared.rank - 1] if declared.is_multisampled else 1
    form = ImageForm(elements.dtype, declared.dims, declared.has_layers, channels, None, samples)
    image = TensorImage(elements, form, shape[: form.rank], sampler)
    return image, elements.buffer, (elements[1:], shape, elements.buffer.layout, sampler)


def _viewed(
    device: OpenDevice,
    shader: Shader,
    slot: Slot,
    argument: ImageArgument | TensorImage,
    form: ImageForm,
    sizes: Ints,
    part: tuple[int, int, int, int],
) -> Slot:
    """Check a cube (SH-13); choose the format of a view (SH-14), and its sampler (SH-15).

    ``part`` is (first level, number of levels, first layer, number of layers).
    """
    block, sampler = slot.block, argument.sampler
    declared = block.image
    assert declared is not None
    if declared.dimension == "Cube":
        layers, height, width = sizes
        if height != width or layers % 6 or (layers > 6 and not declared.is_arrayed):
            got = argument.image if isinstance(argument, ImageArgument) else form
            message = f"got {got!r}, must be square with 6 layers for {declared}"
            _refuse(shader, slot, message, "SH-13")
    is_stored = block.kind == "storage image"
    texels = form.dtype, form.channels, form.format
    format_ = view_format(*texels, declared)
    if format_ is None:
        _refuse(shader, slot, refusal(*texels, declared), "SH-14")
    features, _ = device.vulkan.native.format_features(format_.vulkan)
    if not features & (STORED if is_stored else SAMPLED):
        kind = "a storage image" if is_stored else "a texture"
        message = f"{device.info.label} has no {format_.name} in {kind}"
        _refuse(shader, slot, message, "SH-14")
    native = None
    if block.kind == "combined image sampler":
        sampler = sampler or default_sampler(device, is_linear=bool(features & LINEAR))
        if sampler.filter == "linear" and not features & LINEAR:
            message = f"got a linear sampler: {device.info.label} filters no {format_.name}"
            _refuse(shader, slot, f"{message}; device.sampler(filter='nearest')", "SH-15")
        native = sampler.native
    assert declared.view_type is not None
    view = ImageView(format_.vulkan, declared.view_type, *part, is_stored)
    return slot._replace(view=view, sampler=native)


def _refuse(shader: Shader, slot: Slot, message: str, rule: str) -> NoReturn:
    raise BindingError(shader.name, slot.point, message, rule)
