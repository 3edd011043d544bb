"""Tensors as texel buffers, whose elements shaders read and write in a format."""

from __future__ import annotations

from typing import Any

from vkops.errors import BindingError
from vkops.gpu.run.image_memory import SAMPLED_TEXELS, STORED_TEXELS
from vkops.gpu.run.open_device import OpenDevice
from vkops.runtime.bindings import Elements, elements
from vkops.runtime.shader_argument import Kinds, Resolved
from vkops.shaders.image_formats import refusal, view_format
from vkops.shaders.shader import Shader
from vkops.shaders.slot import Slot

KINDS: Kinds = {"storage texel buffer": ("storage images",), "uniform texel buffer": ("textures",)}


class Texels(Elements):
    """Elements of a tensor as texels; the last axis may hold the channels of each texel."""

    __slots__ = ()

    def fill_slot(self, device: OpenDevice, shader: Shader, slot: Slot) -> Slot:
        """Choose the format (SH-14), and check the size (SH-05, SH-12)."""
        block = slot.block
        declared, limits, nbytes = block.image, device.info.limits, self.nbytes
        assert declared is not None
        format_, channels = None, declared.channels(self.view.sizes)
        if self.dtype is not None and channels is not None:
            format_ = view_format(self.dtype, channels, None, declared)
        usage = STORED_TEXELS if block.kind == "storage texel buffer" else SAMPLED_TEXELS
        message, rule = "", "SH-14"
        if format_ is None:
            message = f"got bytes, must be a tensor of {declared.elements} for {declared}"
            if self.dtype is not None:
                message = refusal(self.dtype, channels or 1, None, declared)
        elif not device.vulkan.native.format_features(format_.vulkan)[1] & usage:
            message = f"{device.info.label} has no {format_.name} in a {block.kind}"
        elif nbytes % format_.nbytes:
            message = f"got {nbytes} bytes, must be a multiple of {format_.nbytes}"
            rule = "SH-05"
        elif (count := nbytes // format_.nbytes) > limits.max_texel_buffer_elements:
            most = limits.max_texel_buffer_elements
            message = f"got {count} texels, must be {most} at most on this device"
            rule = "SH-12"
        if message or format_ is None:
            raise BindingError(shader.name, slot.point, message, rule)
        start = self.view.offset * self.itemsize
        bound = slot._replace(start=start, nbytes=nbytes, format=format_.vulkan)
        fits = self.is_one_run(limits.min_texel_buffer_offset_alignment)
        return bound if fits else bound.in_copy()


def resolved(device: OpenDevice, shader: Shader, slot: Slot, value: Any) -> Resolved:
    """Return the elements that a value of a call names, as texels."""
    texels = Texels(*elements(device, shader.name, slot.point, value, written=slot.is_written))
    return texels, texels.buffer, (texels[1:], texels.buffer.layout)
