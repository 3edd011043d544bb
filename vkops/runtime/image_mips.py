"""The shader that computes a level of an image from the one before it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from vkops.shaders import load
from vkops.shaders.image_formats import HALF_MAGNITUDE

_COORDINATES = {(1, False): "p.x", (1, True): "p.xz", (2, False): "p.xy", (2, True): "p",
                (3, False): "p"}  # fmt: skip

_TEXT = """#version 450
#extension GL_EXT_samplerless_texture_functions : require
HALF_MAGNITUDE
layout(local_size_x = 8, local_size_y = 8) in;
layout(binding = 0) uniform TEXTURE source;
layout(binding = 1, FORMAT) uniform writeonly IMAGE target;
// Sizes of the source and of the target, and 1 divided by those of the source, by the host.
layout(push_constant) uniform Push { ivec3 n, m; vec3 one_nth; };

// As the host's, but for the sign of NaN: packHalf2x16 may round otherwise.
uint half_of(float value)
{
    uint bits = floatBitsToUint(value), magnitude = bits & 0x7fffffffu;
    return half_magnitude(magnitude) | (magnitude > 0x7f800000u ? 0u : bits >> 16 & 0x8000u);
}
vec4 number(uvec4 t)
{
#ifdef HALF
    return vec4(unpackHalf2x16(t.x | t.y << 16), unpackHalf2x16(t.z | t.w << 16));
#else
    return vec4(t >> 16) * 65536.0 + vec4(t & 0xffffu);  // SwiftShader rounds vec4(t) twice
#endif
}
vec4 number(ivec4 t) { return vec4(t); }
vec4 number(vec4 t) { return t; }
void store(ivec3 p, vec4 value)
{
#if defined(HALF)
    const uvec2 first = uvec2(half_of(value.x), half_of(value.y));
    imageStore(target, AT, uvec4(first, half_of(value.z), half_of(value.w)));
#elif defined(FLOAT)
    imageStore(target, AT, value);
#else
    imageStore(target, AT, TEXEL(clamp(floor(value + 0.5), LEAST, MOST)));
#endif
}
// The weight of texel 2 * i + k of n under texel i of m.
float weight(int n, int m, int i, int k, float one_nth)
{
    if (n == 1) return 1.0;
    if (n % 2 == 0) return 0.5;
    return float(k == 0 ? m - i : k == 1 ? m : i + 1) * one_nth;
}
int count(int n) { return n == 1 ? 1 : 2 + n % 2; }
void main()
{
    const ivec3 i = ivec3(gl_GlobalInvocationID);
    if (any(greaterThanEqual(i.xy, m.xy))) return;
    const ivec3 first = 2 * i;
    precise vec4 sum = vec4(0);
    for (int z = 0; z < (LAYERS ? 1 : count(n.z)); ++z)
        for (int y = 0; y < count(n.y); ++y)
            for (int x = 0; x < count(n.x); ++x) {
                precise float w = LAYERS ? 1.0 : weight(n.z, m.z, i.z, z, one_nth.z);
                w *= weight(n.y, m.y, i.y, y, one_nth.y);
                w *= weight(n.x, m.x, i.x, x, one_nth.x);
                const ivec3 p = ivec3(first.xy + ivec2(x, y), LAYERS ? i.z : first.z + z);
                precise vec4 part = w * number(texelFetch(source, AT, 0));
                sum += part;
            }
    store(i, sum);
}
""".replace("HALF_MAGNITUDE", HALF_MAGNITUDE)


def generate(source: Any, target: Any) -> None:
    """Compute a level of an image from the level before it; see ``Image.generate_mips``."""
    form, dtype = source.part.memory.form, source.dtype
    bits, is_float = 8 * dtype.itemsize, dtype.kind == "f"
    is_half = is_float and bits == 16
    # The shader reads integers, and float16 as bits, because devices convert normalised numbers
    # differently.
    form = form._replace(format=None, dtype=np.dtype("u2") if is_half else dtype)
    source, target = source.viewed(form), target.viewed(form)
    prefix, suffix = ("", "f") if is_float and not is_half else ("u", "ui")
    if dtype.kind == "i":
        prefix, suffix = "i", "i"
    kind = f"{form.dims}D{'Array' * form.has_layers}"
    defines: dict[str, str | int] = {
        "TEXTURE": f"{prefix}texture{kind}", "IMAGE": f"{prefix}image{kind}",
        "FORMAT": f"{'rgba'[: form.channels]}{bits}{suffix}", "TEXEL": f"{prefix}vec4",
        "AT": _COORDINATES[form.dims, form.has_layers],
        "LAYERS": "true" if form.has_layers else "false",
        "HALF" if is_half else "FLOAT" if is_float else "INTEGER": 1,
    }  # fmt: skip
    if not is_float:
        limits = np.iinfo(dtype)
        most = np.nextafter(np.float32(limits.max), 0) if bits == 32 else limits.max
        defines |= {"LEAST": f"{float(limits.min)}", "MOST": f"{float(most)}"}
    loaded = load(_TEXT, defines=defines, name="generate_mips")
    shader = source.device.compile_shader(replace(loaded, is_builtin=True))
    layers = form.has_layers
    sizes = [(*reversed(each.part.sizes[layers:]), 1, 1)[:3] for each in (source, target)]
    threads: Any = (*sizes[1][:2], source.part.sizes[0] if layers else sizes[1][2])
    ones = [np.float32(1) / np.float32(n) for n in sizes[0]]
    shader(source, target, n=sizes[0], m=sizes[1], one_nth=ones, threads=threads)
