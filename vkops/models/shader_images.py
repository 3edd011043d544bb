"""Resources that shaders of models use as images and texel buffers, and their samplers."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from math import prod
from typing import Any

import numpy as np

from vkops.dml import TensorDataType
from vkops.models.initial_values import dtype_of
from vkops.models.json_reader import Node, quote
from vkops.models.resources import BindingSource
from vkops.shaders.image_formats import FORMATS, Format, refusal, view_format
from vkops.shaders.module import Block

_DXGI = {"": "UNORM", "_snorm": "SNORM", "ui": "UINT", "i": "SINT", "f": "FLOAT"}

_SAMPLERS = {"filter": ("linear", "nearest"), "address": ("clamp", "repeat", "mirror", "border")}
"""The settings of samplers, each with its values, the default first."""


def _dxgi_name(name: str) -> str:
    """Return DXGI's name of a format, which models have.

    >>> _dxgi_name("rgba8_snorm")
    'R8G8B8A8_SNORM'
    """
    letters, bits, suffix = re.findall(r"(r|rg|rgba)(\d+)(.*)", name)[0]
    return "".join([f"{letter}{bits}" for letter in letters.upper()]) + f"_{_DXGI[suffix]}"


_FORMATS: Mapping[str, Format] = {
    **FORMATS,
    **{
        _dxgi_name(name): each
        for name, each in FORMATS.items()
        if not each.is_packed and not name.endswith("_srgb")
    },
}


def as_texels(node: Node, source: BindingSource, block: Block) -> BindingSource:
    """Return a source with the shape and the type of the texels of a block.

    The shape is the binding's ``shape``, or that of the file of initial values; for a texel buffer,
    it is the number of all elements. The type is the binding's ``format``, or that of the initial
    values.

    Raises:
        ModelError: there is no shape or no type, they do not fit the block, or the resource has
            fewer bytes.
    """
    declared, resource = block.image, source.resource
    if declared is None:
        raise node.error("is a sampler: 'samplers' of the dispatchable chooses it")
    members = node if isinstance(node.value, dict) else None
    format_node, sizes = (members and members.optional(name) for name in ("format", "shape"))
    texel = None
    if format_node and format_node.string().removeprefix("DXGI_FORMAT_") != "UNKNOWN":
        texel = _FORMATS.get(format_node.string().removeprefix("DXGI_FORMAT_"))
        if texel is None:
            raise format_node.wrong("a format of DXGI or GLSL, such as R8G8B8A8_UNORM or rgba8")
        dtype = np.dtype(texel.dtype)
    elif resource.data_type is TensorDataType.UNKNOWN:
        raise node.error(f"needs 'format': {quote(resource.name)} has no data type")
    else:
        dtype = dtype_of(resource.data_type)
    shape = sizes.uints() if sizes else resource.values.shape
    if shape is None and declared.dimension != "Buffer":
        raise node.error(f"needs 'shape', rows first, for {declared}")
    if shape is None:
        count, each = source.nbytes // dtype.itemsize, texel.channels if texel else 1
        shape = (count,) if each == 1 else (count // each, each)
    channels = declared.channels(shape)
    if channels is None or 0 in shape:
        message = f"got the shape {shape}, must be {declared.shapes}"
        raise (sizes or node).error(f"{message} for {declared} [SH-13]")
    fitting = view_format(dtype, channels, None, declared)
    if fitting is None or fitting != (texel or fitting):
        named = texel and format_node and texel._replace(name=format_node.string())
        message = refusal(dtype, channels, named or None, declared)
        raise (format_node or node).error(f"{message} [SH-14]")
    if source.offset % dtype.itemsize or prod(shape) * dtype.itemsize > source.nbytes:
        message = f"got {source.nbytes} bytes from byte {source.offset} on, must be"
        needed = f"{prod(shape) * dtype.itemsize} or more from a multiple of {dtype.itemsize} on"
        raise node.error(f"{message} {needed} for {shape} {dtype} [SH-05]")
    return replace(source, shape=shape, dtype=dtype, count=prod(shape) * dtype.itemsize)


def read_samplers(node: Node | None) -> dict[str, list[dict[str, Any]]]:
    """Read ``samplers``: the arguments of ``Device.sampler``, by the names of blocks.

    The value for an array of samplers is one for all its elements, or a list of them.
    """
    return {
        point: [_read_sampler(each) for each in settings.one_or_more()]
        for point, settings in (node.members() if node else ())
    }


def _read_sampler(settings: Node) -> dict[str, Any]:
    normalized = settings.optional("normalized")
    options: dict[str, Any] = {"normalized": normalized is None or normalized.boolean()}
    for name, allowed in _SAMPLERS.items():
        value = settings.optional(name)
        options[name] = value.choice(*allowed) if value else allowed[0]
    return options
