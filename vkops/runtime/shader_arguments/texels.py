"""Tensors as texel buffers: elements that shaders see in a format."""

from __future__ import annotations

from typing import Any, NamedTuple

from vkops.errors import BindingError
from vkops.gpu.run.image_memory import SAMPLED_TEXELS, STORED_TEXELS
from vkops.gpu.run.open_device import OpenDevice
from vkops.gpu.run.shader_dispatch import Place
from vkops.runtime.elements import Elements, elements
from vkops.runtime.shader_argument import Resolved
from vkops.runtime.shader_copies import ShaderCopy
from vkops.shaders.image_formats import view_format
from vkops.shaders.shader import Shader, Slot


class Texels(NamedTuple):
    """Elements of a tensor, ``channels`` for each texel."""

    elements: Elements
    channels: int | None

    @property
    def buffer(self) -> Any:
        """The memory of the elements."""
        return self.elements.buffer

    def place(self, device: OpenDevice, shader: Shader, slot: Slot) -> tuple[Place, bool]:
        """Choose the format (SH-14), and check the size (SH-05, SH-12)."""
        point, block, is_written = slot
        own, declared, limits = self.elements, block.image, device.info.limits
        assert declared is not None
        format_ = None
        if own.dtype is not None and self.channels is not None:
            format_ = view_format(own.dtype, self.channels, None, declared)
        is_stored = block.kind == "storage texel buffer"
        usage = STORED_TEXELS if is_stored else SAMPLED_TEXELS
        message, rule = "", "SH-14"
        if format_ is None:
            given = own.dtype or "bytes"
            message = f"got {given}, must be a tensor of the numbers that {declared} has"
        elif not device.vulkan.native.format_features(format_.vulkan)[1] & usage:
            message = f"{device.info.label} has no {format_.name} in a {block.kind}"
        elif own.nbytes % format_.nbytes:
            message = f"got {own.nbytes} bytes, must be a multiple of {format_.nbytes}"
            rule = "SH-05"
        elif own.nbytes // format_.nbytes > limits.max_texel_buffer_elements:
            message = (
                f"got {own.nbytes // format_.nbytes} texels, must be "
                f"{limits.max_texel_buffer_elements} at most on this device"
            )
            rule = "SH-12"
        if message or format_ is None:
            raise BindingError(shader.name, point, message, rule)
        place = own.view.offset * own.itemsize, own.nbytes, is_written, format_.vulkan
        return place, own.is_one_run(limits.min_texel_buffer_offset_alignment)

    def copy(self, device: OpenDevice, *, is_written: bool) -> ShaderCopy:
        """Return a packed copy, which a dispatch is bound to instead."""
        return self.elements.copy(device, is_written=is_written)

    def overlaps(self, other: Any) -> bool:
        """Whether both share bytes."""
        return self.elements.overlaps(other)


def resolved(device: OpenDevice, shader: Shader, slot: Slot, value: Any) -> Resolved:
    """Return the elements that a value of a call names, as texels."""
    own = elements(device, shader.name, slot.point, value, written=slot.is_written)
    declared = slot.block.image
    assert declared is not None
    return Texels(own, declared.channels(own.view.sizes)), own.buffer, (own[1:], own.buffer.layout)
