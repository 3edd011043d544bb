"""Copies of images whose texels have several samples, which Vulkan copies to no buffer: a shader's.

Samples are copied as unsigned integers, so all formats keep their bits.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from math import prod
from typing import Any

from vkops.gpu.adapters.kompute import Native
from vkops.gpu.run.buffer import Buffer
from vkops.plan.rounding import ceil_div
from vkops.plan.view import Ints
from vkops.shaders import load
from vkops.shaders.image_formats import FORMATS
from vkops.shaders.shader import Shader
from vkops.shaders.slot import ImageView

MAX_SAMPLES = 1 << 21
"""Samples that a dispatch copies: a storage buffer may have so many of 16 bytes."""

_FORMATS = {1: "r8ui", 2: "r16ui", 4: "r32ui", 8: "rg32ui", 16: "rgba32ui"}
"""The formats of samples in the shader, by their bytes."""

_TEXT = """#version 450
layout(local_size_x = 64) in;
#ifdef INTO
layout(binding = 0, FORMAT) writeonly uniform IMAGE image;
layout(std430, binding = 1) readonly buffer Texels { uint texels[]; };
#else
layout(binding = 0, FORMAT) readonly uniform IMAGE image;
layout(std430, binding = 1) writeonly buffer Texels { uint texels[]; };
#endif
// The numbers of the first sample and of samples, and the corner and the sizes of the box.
layout(push_constant) uniform Push { uint first, count, x, y, layer, width, height, samples; };
void main()
{
    const uint unit = gl_GlobalInvocationID.x;  // SAMPLES samples in WORDS words
    uint bits = 0u;
    for (uint k = 0u; k < SAMPLES && SAMPLES * unit + k < count; ++k) {
        uint n = first + SAMPLES * unit + k;
        const int number = int(n % samples);
        n /= samples;
        const ivec3 p = ivec3(x + n % width, y + n / width % height, layer + n / width / height);
#ifdef INTO
        uvec4 texel = uvec4(texels[WORDS * unit] >> 32u / SAMPLES * k);
        for (uint w = 1u; w < WORDS; ++w) texel[w] = texels[WORDS * unit + w];
        if (SAMPLES > 1u) texel &= (1u << 32u / SAMPLES) - 1u;
        imageStore(image, p.AT, number, texel);
#else
        const uvec4 texel = imageLoad(image, p.AT, number);
        bits |= texel.x << 32u / SAMPLES * k;
        for (uint w = 1u; w < WORDS; ++w) texels[WORDS * unit + w] = texel[w];
#endif
    }
#ifndef INTO
    if (SAMPLES * unit < count) texels[WORDS * unit] = bits;
#endif
}
"""


@cache
def copying(nbytes: int, *, has_layers: bool, into: bool) -> Shader:
    """Return the shader that copies samples of so many bytes into an image, or out of it."""
    defines: dict[str, str | int] = {
        "IMAGE": f"uimage2DMS{'Array' * has_layers}", "FORMAT": _FORMATS[nbytes],
        "AT": "xyz" if has_layers else "xy", "SAMPLES": f"{max(4 // nbytes, 1)}u",
        "WORDS": f"{ceil_div(nbytes, 4)}u", "INTO" if into else "FROM": 1,
    }  # fmt: skip
    return replace(load(_TEXT, defines=defines, name="copy_samples"), is_builtin=True)


def copies(image: Any, packed: Buffer, corner: Ints, sizes: Ints, *, into: bool) -> list[Native]:
    """Return operations that copy all samples of a box from or to a buffer, from its first byte on.

    ``image`` is an ``ImageMemory``. For observers of dispatches, these are none, as other copies
    of images.
    """
    form, vulkan = image.form, image.device.vulkan
    shader = copying(form.nbytes, has_layers=form.has_layers, into=into)
    settings = shader.spirv, shader.bindings({}), shader.entry_point, shader.push_nbytes
    pipeline = vulkan.shader_pipeline(*settings)
    *layer, y, x, _ = corner
    *_, height, width, samples = sizes
    box = x, y, *(layer or [0]), width, height, samples
    layers = image.grid[0] if form.has_layers else 1
    work = []
    for first, count in _pieces(packed, prod(sizes), form.nbytes):
        units = ceil_div(count * form.nbytes, max(form.nbytes, 4))
        slots = []
        for slot in shader.slots(("image", "Texels")):
            if slot.block.image is not None:
                view_type = slot.block.image.view_type
                assert view_type is not None
                number = FORMATS[_FORMATS[form.nbytes]].vulkan
                view = ImageView(number, view_type, 0, 1, 0, layers, is_stored=True)
                slots.append(slot._replace(view=view))
            else:
                nbytes = units * max(form.nbytes, 4)
                slots.append(slot._replace(start=first * form.nbytes, nbytes=nbytes))
        push, groups = struct.pack("<8I", first, count, *box), ceil_div(units, shader.local_size[0])
        bound = [image, packed], (groups, 1, 1), push, vulkan.validated, shader.name
        work.append(vulkan.module.PreparedCall(pipeline, tuple(slots)).bind(vulkan.native, *bound))
    return work


def _pieces(packed: Buffer, count: int, nbytes: int) -> Iterator[tuple[int, int]]:
    """Yield the first sample of each dispatch and their number; their bytes are in one range."""
    first = 0
    for extent in packed.extents:
        end = min(first + extent.nbytes // nbytes, count)
        for start in range(first, end, MAX_SAMPLES):
            yield start, min(end - start, MAX_SAMPLES)
        first = end
