"""Arrays in the place of images, textures, samplers and texel buffers, for the interpreter."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from vkops.errors import BindingError, show
from vkops.interpreter.images import Image, SamplerVariable, Sampling
from vkops.interpreter.memory import Memory
from vkops.interpreter.shadow import Shadow
from vkops.shaders.image_formats import FORMATS, Format, view_format
from vkops.shaders.module import Block
from vkops.shaders.shader import Shader

_RGB = 3


class Resource:
    """An argument that is checked; ``memory`` makes what a run of the interpreter is bound to."""

    def __init__(self, shader: Shader, point: str, block: Block, value: Any) -> None:
        self._block = block
        sampler, pair = None, type(value) is tuple and len(value) == 2
        if block.kind == "sampler":
            sampler = value
        elif pair and block.kind == "combined image sampler":
            value, sampler = value
        kinds = {each.image.kind for each in shader.blocks if each.image}
        kinds = {block.image.kind} if block.image else kinds
        self._sampler = Sampling("linear" if kinds <= {"float"} else "nearest")
        if isinstance(sampler, Mapping) and sampler.keys() <= {*Sampling._fields}:
            self._sampler = Sampling(**sampler)
        elif sampler is not None:
            named: Any = (getattr(sampler, name, None) for name in Sampling._fields)
            self._sampler = Sampling(*named)
        if None in self._sampler:
            message = f"got {show(sampler)}, must be a sampler, or a dictionary of its attributes"
            raise BindingError(shader.name, point, message, "SH-13")
        self._levels: list[Any] = []
        self._format: Format = FORMATS["r32f"]
        self._shape: tuple[int, ...] = ()
        if block.image is not None:
            self._set_levels(shader, point, value)

    def _set_levels(self, shader: Shader, point: str, value: Any) -> None:
        declared, fixed = self._block.image, None
        assert declared is not None
        if hasattr(value, "mips"):  # an image of a device
            fixed = FORMATS.get(value.format)
            value = [value.mip(number).numpy() for number in range(value.mips)]
        arrays = [*map(np.asarray, value if isinstance(value, list) else [value])]
        first, self._shape = arrays[0], arrays[0].shape
        if declared.dimension == "Buffer":
            by_shape = first.shape[-1] if first.ndim > 1 and first.shape[-1] in (2, 4) else 1
            channels = declared.format.channels if declared.format else by_shape
            fits = first.dtype.kind in "iuf" and first.size % channels == 0
            arrays = [each.reshape(-1, channels) for each in arrays] if fits else arrays
        else:
            rank = declared.dims + declared.has_layers
            channels = first.shape[rank] if first.ndim == rank + 1 else 1
            fits = first.ndim in (rank, rank + 1) and channels in (1, 2, 3, 4) and first.size > 0
            arrays = [each.reshape(*each.shape[:rank], -1) for each in arrays] if fits else arrays
            if channels == _RGB:
                arrays = [np.pad(each, ((0, 0),) * rank + ((0, 1),)) for each in arrays]
                channels = 4
        if not fits:
            message = f"got {show(value)}, must be an array of texels for {declared}"
            raise BindingError(shader.name, point, message, "SH-13")
        format_ = view_format(first.dtype, channels, fixed, declared)
        if format_ is None:
            message = f"got {first.dtype} and {channels} channels, must be what {declared} has"
            raise BindingError(shader.name, point, message, "SH-14")
        self._format = format_
        dtype = np.dtype(format_.dtype)
        self._levels = [np.ascontiguousarray(each).view(dtype) for each in arrays]
        self._dtype = first.dtype

    def memory(self) -> Memory:
        """Return texels or a sampler."""
        declared = self._block.image
        if declared is None:
            return SamplerVariable(self._sampler)
        image = Image(declared, self._format, self._levels, self._sampler)
        if not self._block.readonly:
            image.shadow = Shadow(image.units)
        return image

    def result(self, memory: Any) -> Any:
        """Return the array with what is stored in an image."""
        array = memory.results()[0].view(self._dtype)
        count = int(np.prod(self._shape)) // int(np.prod(array.shape[:-1]))
        return array[..., :count].reshape(self._shape)
