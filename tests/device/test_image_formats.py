"""Every pair of a format of GLSL and a type of NumPy: a shader sees the right numbers, or refuses."""

import itertools
import re

import ml_dtypes
import numpy as np
import pytest
from arrays import any_numbers as values

from vkops.debug.arguments import arguments
from vkops.errors import BindingError, InvalidDescError
from vkops.shaders import load
from vkops.shaders.image_formats import FORMATS

DTYPES = (
    "?", "u1", "i1", "u2", "i2", "u4", "i4", "u8", "i8", "f2", "f4", "f8", "c8", "V4", ">u2", ">i4",
    ">f4", ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn,
)  # fmt: skip

PACKED = {"rgb10_a2": (10, 10, 10, 2), "r11f_g11f_b10f": (11, 11, 10)}
KINDS = {"ui": "uint", "i": "int"}
TYPES = {"float": ("", "vec4", "f4"), "uint": ("u", "uvec4", "u4"), "int": ("i", "ivec4", "i4")}
SIZES = (2, 3)

TEXT = """#version 450
#extension GL_EXT_samplerless_texture_functions : require
layout(local_size_x = 6) in;
DECLARATIONS
layout(std430, binding = 0) writeonly buffer O { TYPE o[]; };
void main() { int i = int(gl_LocalInvocationIndex); ivec2 p = ivec2(i % 3, i / 3); LOADS }"""

USES = {
    "storage image": ("readonly uniform Pimage2D", "imageLoad(NAME, p)", 2, False),
    "storage texel buffer": ("readonly uniform PimageBuffer", "imageLoad(NAME, i)", 16, True),
    "texture": ("uniform Ptexture2D", "texelFetch(NAME, p, 0)", 1, False),
    "uniform texel buffer": ("uniform PtextureBuffer", "texelFetch(NAME, i)", 8, True),
}
"""Declarations, how a texel is read, the feature of the format, and whether it is a texel buffer."""


def parsed(name):
    """The channels of a format, their bits, the kind of numbers and the suffix, by its name."""
    if name.removesuffix("ui") in PACKED:
        return 1, 32, "uint" if name.endswith("ui") else "float", "packed"
    letters, bits, suffix = re.fullmatch(
        r"(r|rg|rgba)(8|16|32|64)(|ui|i|f|_snorm|_srgb)", name
    ).groups()
    return len(letters), int(bits), KINDS.get(suffix, "float"), suffix


def fits(dtype, channels, name):
    """Whether elements are those of a format: the type, its sign and byte order, and how many."""
    count, bits, _, suffix = parsed(name)
    kind = {"f": "float", "i": "int", "_snorm": "int"}.get(suffix, "uint")
    return channels == count and dtype == np.dtype(f"{kind}{bits}")


def seen(array, name):
    """The four numbers of each texel that a shader sees."""
    channels, _, kind, suffix = parsed(name)
    texels = array.reshape(-1, channels)
    result = np.tile(np.array([0, 0, 0, 1], TYPES[kind][2]), (len(texels), 1))
    if suffix == "packed":
        widths, at = PACKED[name.removesuffix("ui")], 0
        for channel, width in enumerate(widths):
            part = texels[:, 0] >> at & ((1 << width) - 1)
            at += width
            if name.startswith("r11f"):
                result[:, channel] = (part << (15 - width)).astype("u2").view("f2")
            else:
                result[:, channel] = part / ((1 << width) - 1) if kind == "float" else part
    elif kind == "float" and suffix != "f":
        result[:, :channels] = np.maximum(texels / np.iinfo(texels.dtype).max, -1)
    else:
        result[:, :channels] = texels
    return result


def array_of(dtype, channels, shape=SIZES):
    numbers = values((*shape, channels), "u4") & np.uint32(0x3BDD7BDF)  # no infinite parts
    if np.dtype(dtype).kind in "f" and np.dtype(dtype).isnative:
        return (numbers / np.float32(1 << 24)).astype(dtype)
    return np.resize(numbers.view("u1"), (*shape, channels * np.dtype(dtype).itemsize)).view(dtype)


def compiled(device, use, kind, formats):
    """A shader with a resource A0, A1, ... for each format, whose texels it writes to O in turn."""
    declaration, load_, _, _ = USES[use]
    prefix, type_, _ = TYPES[kind]
    declarations, loads = "", ""
    for number, name in enumerate(formats):
        layout = f"binding = {number + 1}{', ' * bool(name)}{name}"
        declared = re.sub(r"\bP", prefix, declaration)
        declarations += f"layout({layout}) {declared} A{number};\n"
        loads += f"o[{6 * number} + i] = {load_.replace('NAME', f'A{number}')}; "
    text = TEXT.replace("DECLARATIONS", declarations).replace("LOADS", loads)
    return device.compile_shader(text.replace("TYPE", type_), name="x")


def refused(error, call, *args, **kwargs):
    """Assert that a call raises an error, given by its class, its field and its rule."""
    kind, field, rule = error
    with pytest.raises(kind, match=rf"^{field}: .* \[{rule}\]$"):
        call(*args, **kwargs)


def texels(point):
    return BindingError, f"x {point}", "SH-14"


def has(device, use, name):
    feature, is_buffer = USES[use][2:]
    return device.vulkan.native.format_features(FORMATS[name].vulkan)[is_buffer] & feature


def agrees(result, array, name):
    close = {"rtol": 1e-6, "atol": 1e-7, "err_msg": f"{array.dtype} as {name}"}
    np.testing.assert_allclose(result, seen(array, name), **close)


@pytest.mark.features
@pytest.mark.parametrize("use", ["storage image", "storage texel buffer"])
@pytest.mark.parametrize("kind", TYPES)
def test_declared_formats(device, use, kind):
    """Of the type of each format there is one array; all others are refused, on the host, too."""
    most = device.limits.max_per_stage_descriptor_storage_images
    formats = [name for name in FORMATS if parsed(name)[1] < 64 and parsed(name)[2] == kind]
    formats = [name for name in formats if parsed(name)[3] != "_srgb" and has(device, use, name)]
    assert len(formats) > 7
    for start in range(0, len(formats), most):
        part = formats[start : start + most]
        shader = compiled(device, use, kind, part)
        right = {}
        for name in part:
            arrays = [array_of(dtype, parsed(name)[0]) for dtype in DTYPES]
            (right[name],) = [each for each in arrays if fits(each.dtype, parsed(name)[0], name)]
        named = {f"A{number}": each for number, each in enumerate(right.values())}
        arguments(shader.shader, {**named, "O": 96 * len(part)}, {})
        tensors = {name: device.tensor(each) for name, each in named.items()}
        results = shader(**tensors, out={"O": (len(part), 6, 4)}, groups=1).numpy()
        for result, (name, array) in zip(results, right.items(), strict=True):
            agrees(result, array, name)
        for (number, name), dtype in itertools.product(enumerate(part), DTYPES):
            channels = parsed(name)[0]
            array = array_of(dtype, channels)
            if not fits(array.dtype, channels, name):
                wrong = {f"A{number}": array}
                error = texels(f"A{number}")
                refused(error, shader, **{**tensors, **wrong}, out=(6, 4), groups=1)
                wrong = {**named, **wrong, "O": 96 * len(part)}
                refused(error, arguments, shader.shader, wrong, {})


@pytest.mark.parametrize("use", ["texture", "uniform texel buffer"])
@pytest.mark.parametrize("kind", TYPES)
def test_declared_kinds(device, use, kind):
    """Without a format, integers of 8 and 16 bits are normalised where the kind is float."""
    shader, tried = compiled(device, use, kind, [""]), 0
    for dtype, channels in itertools.product(DTYPES, (1, 2, 4)):
        array = array_of(dtype, channels)
        names = [
            name for name in FORMATS if fits(array.dtype, channels, name)
            if parsed(name)[2] == kind and parsed(name)[3] not in ("_srgb", "packed")
        ]  # fmt: skip
        if not names or parsed(names[0])[1] == 64:
            refused(texels("A0"), shader, A0=array, out=(6, 4), groups=1)
            refused(texels("A0"), arguments, shader.shader, {"A0": array, "O": 96}, {})
        elif has(device, use, names[0]):
            assert len(names) == 1
            arguments(shader.shader, {"A0": array, "O": 96}, {})
            agrees(shader(A0=array, out=(6, 4), groups=1).numpy(), array, names[0])
            tried += 1
    assert tried > 6


def test_formats_of_images(device):
    """An image has a format only if that has its elements; a shader that declares it sees them."""
    declared = [
        name for name in ("rgba8", "rgba8_snorm", "r32f") if has(device, "storage image", name)
    ]
    shaders = {name: compiled(device, "storage image", "float", [name]) for name in declared}
    for name, dtype in itertools.product(FORMATS, DTYPES):
        channels, bits, *_ = parsed(name)
        array = array_of(dtype, channels)
        if bits == 64 or not has(device, "texture", name):
            continue
        if not fits(array.dtype, channels, name):
            error = InvalidDescError, "dtype", "IMG-03"
            refused(error, device.image, array, format=name)
            continue
        image = device.image(array, format=name)
        np.testing.assert_array_equal(image.numpy().reshape(array.shape), array)
        for other, shader in shaders.items():
            if other == name:
                agrees(shader(A0=image, out=(6, 4), groups=1).numpy(), array, name)
            else:
                refused(texels("A0"), shader, A0=image, out=(6, 4), groups=1)


def test_wide_images_need_wide_numbers():
    """Images of 64 bits have declarations of their own: u64image2D."""
    text = """#version 450
    #extension GL_EXT_shader_explicit_arithmetic_types_int64 : require
    #extension GL_EXT_shader_image_int64 : require
    layout(binding = 0, r64ui) readonly uniform u64image2D A;
    layout(std430, binding = 1) writeonly buffer O { uint64_t o[]; };
    void main() { o[0] = imageLoad(A, ivec2(0)).x; }"""
    shader = load(text, name="x")
    for dtype in DTYPES:
        array = array_of(dtype, 1)
        if array.dtype == np.uint64:
            arguments(shader, {"A": array, "O": 8}, {})
        else:
            refused(texels("A"), arguments, shader, {"A": array, "O": 8}, {})
