"""Images, textures, samplers and texel buffers in the interpreter, against a device and by findings."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from arrays import any_numbers as values

from vkops.debug import check
from vkops.errors import BindingError
from vkops.interpreter.texels import decoded
from vkops.shaders.image_formats import FORMATS

pytestmark = pytest.mark.memory

SIZE = 24
HEAD = """#version 450
#extension GL_EXT_samplerless_texture_functions : require
#extension GL_EXT_shader_image_load_formatted : require
layout(local_size_x = 24) in;
layout(std430, binding = 0) writeonly buffer O { vec4 o[]; };
layout(std430, binding = 3) readonly buffer P { vec4 p[]; };
"""


POINTS = np.random.default_rng(1).uniform(-1.7, 2.7, (SIZE, 4)).astype(np.float32)


def both(device, declarations, body, image, sampler=None, points=POINTS):
    """Return the numbers that a shader computes, on a device and in the interpreter."""
    text = f"{HEAD}{declarations}\nvoid main() {{ uint i = gl_LocalInvocationIndex; vec4 at = p[i]; {body} }}"
    settings = sampler and {"filter": sampler[0], "address": sampler[1], **dict(sampler[2:])}

    def bound(image, sampler):
        if "X;" in declarations:
            return {"X": image if sampler is None else (image, sampler), "P": points}
        return {"T": image, "S": sampler, "P": points}

    arguments = bound(device.tensor(image), sampler and device.sampler(**settings))
    result = device.compile_shader(text, name="x")(**arguments, out={"O": (SIZE, 4)}, groups=1)
    report = check(text, {**bound(image, settings), "O": 16 * SIZE})
    assert report.ok, str(report)
    return result, report.buffers["O"].reshape(SIZE, 4)


FORMS = {  # dimensions and layers: sizes, coordinates
    "1D": ((5,), "at.x"), "2D": ((4, 7), "at.xy"), "3D": ((3, 4, 5), "at.xyz"),
    "1DArray": ((3, 6), "at.xy"), "2DArray": ((3, 4, 5), "at.xyz"),
    "Cube": ((6, 4, 4), "at.xyz - 0.5"), "CubeArray": ((12, 3, 3), "vec4(at.xyz - 0.5, at.w)"),
}  # fmt: skip


@pytest.mark.features
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("dtype", ["f4", "u1"])
def test_samples(device, form, dtype):
    sizes, at = FORMS[form]
    for address, filter_, channels in itertools.product(
        ("clamp", "repeat", "mirror", "border"), ("nearest", "linear"), (1, 4)
    ):
        if "Cube" in form and address != "clamp":
            continue
        image = values((*sizes, channels), dtype)
        declared = f"layout(binding = 1) uniform sampler{form} X;"
        one, two = both(device, declared, f"o[i] = texture(X, {at});", image, (filter_, address))
        close = 0.03 if filter_ == "linear" else 1e-6
        if "Cube" in form:  # drivers choose what is in corners; SwiftShader reads 0 at edges
            size = np.sort(np.abs(POINTS[:, :3] - np.float32(0.5)), axis=1)
            has_no_edges = filter_ == "linear" and "SwiftShader" in device.name
            chosen = size[:, int(has_no_edges)] < (0.66 if has_no_edges else 0.7) * size[:, 2]
            one, two = np.asarray(one)[chosen], two[chosen]
        np.testing.assert_allclose(two, one, atol=close, err_msg=f"{address} {filter_} {channels}")


PICTURE = "layout(binding = 1) uniform sampler2D X;"
SPLIT = "layout(binding = 1) uniform texture2D T; layout(binding = 2) uniform sampler S;"
CASES = {
    "offset": (PICTURE, "o[i] = textureOffset(X, at.xy, ivec2(2, -1));"),
    "split": (SPLIT, "o[i] = texture(sampler2D(T, S), at.xy);"),
    "fetch": (SPLIT, "o[i] = texelFetch(T, ivec2(i % 7, i % 5), 0) + texelFetchOffset(T, ivec2(1), 0, ivec2(1, 0));"),
    "gather": (PICTURE, "o[i] = textureGather(X, at.xy, 1) + textureGatherOffset(X, at.xy, ivec2(1, 2), 2);"),
    "gather offsets": (PICTURE, "o[i] = textureGatherOffsets(X, at.xy, ivec2[](ivec2(0), ivec2(3, 1), ivec2(-1, 2), ivec2(1)), 0);"),
    "projection": (PICTURE, "o[i] = textureProj(X, vec3(at.xy, 1.5 + at.z * 0.1));"),
    "choice": (SPLIT, "o[i] = i % 3 == 0 ? texture(sampler2D(T, S), at.xy) : textureLod(sampler2D(T, S), at.yx, 0);"),
    "sizes": (SPLIT, "o[i] = vec4(textureSize(T, 0), textureQueryLevels(T), 1);"),
}  # fmt: skip


@pytest.mark.features
@pytest.mark.parametrize("name", CASES)
def test_instructions_on_textures(device, name):
    declared, body = CASES[name]
    for filter_ in ("nearest", "linear"):
        one, two = both(device, declared, body, values((5, 7, 4), "f4"), (filter_, "mirror"))
        np.testing.assert_allclose(two, one, atol=0.06)


@pytest.mark.features
def test_texels_without_normalized_coordinates(device):
    sampler = ("linear", "border", ("normalized", False))
    body = "o[i] = textureLod(X, at.xy * 6, 0);"
    one, two = both(device, PICTURE, body, values((5, 7, 4), "f4"), sampler)
    np.testing.assert_allclose(two, one, atol=0.03)


@pytest.mark.features
def test_levels(device):
    """Vulkan defines the level of detail of gradients with little precision."""
    image = device.image(values((16, 8, 4), "f4"), mips=4).generate_mips()
    levels = [image.mip(number).numpy() for number in range(4)]
    for body, close in (
        ("textureLod(X, at.xy, 3 * at.z)", 0.05),
        ("textureGrad(X, at.xy, vec2(0.25), vec2(0.125))", 0.2),
    ):
        text = f"{HEAD}{PICTURE}\nvoid main() {{ uint i = gl_LocalInvocationIndex; vec4 at = p[i]; o[i] = {body}; }}"
        output = device.compile_shader(text)(image, P=POINTS, out={"O": (SIZE, 4)}, groups=1)
        for picture in (levels, image):
            report = check(text, {"X": picture, "P": POINTS, "O": 16 * SIZE})
            assert report.ok, str(report)
            result = report.buffers["O"].reshape(SIZE, 4)
            np.testing.assert_allclose(result, np.asarray(output), atol=close)


STORED = """#version 450
#extension GL_EXT_shader_explicit_arithmetic_types_int64 : require
#extension GL_EXT_shader_image_int64 : require
layout(local_size_x = 4, local_size_y = 4) in;
layout(binding = 0, FORMAT) readonly uniform Pimage2D A;
layout(binding = 1, FORMAT) writeonly uniform Pimage2D B;
layout(std430, binding = 2) writeonly buffer O { TYPE o[]; };
layout(std430, binding = 3) readonly buffer V { TYPE v[]; };
void main() { ivec2 p = ivec2(gl_LocalInvocationID.xy); uint i = gl_LocalInvocationIndex;
  o[i] = imageLoad(A, p); imageStore(B, p.yx, v[i]); }"""


@pytest.mark.features
def test_formats(device):
    """Drivers round to the nearest float of a format, or to the next one towards 0.

    GPUs round to any of the two normalized numbers that are next to a float.
    """
    tried = 0
    for form in FORMATS.values():
        is_stored = device.vulkan.native.format_features(form.vulkan)[0] & 2
        if form.name.endswith("_srgb") or form.dtype[1] == "8" or not is_stored:
            continue
        prefix, type_, dtype = {
            "uint": ("u", "uvec4", "u4"),
            "int": ("i", "ivec4", "i4"),
            "float": ("", "vec4", "f4"),
        }[form.kind]
        text = (
            STORED.replace("FORMAT", form.name)
            .replace("TYPE", type_)
            .replace("Pimage", f"{prefix}image")
        )
        image = values((4, 4, form.channels), form.dtype)
        if form.name == "r11f_g11f_b10f":
            image = values((4, 4, 1), "u4") & np.uint32(0x3BFF7BDF & ~0x20000 & ~0x40)
        numbers = values((16, 4), dtype, 2)
        if form.kind != "float":  # drivers wrap or clamp integers that a format lacks
            numbers = np.fmod(numbers, np.array([100, 100, 100, 4], dtype))
        images = [device.image(array, format=form.name) for array in (image, np.zeros_like(image))]
        result = device.compile_shader(text)(
            *images, V=device.tensor(numbers), out={"O": numbers.shape}, groups=1
        )
        report = check(
            text, {"A": image, "B": np.zeros_like(image), "V": numbers, "O": numbers.nbytes}
        )
        assert report.ok, str(report)
        seen = report.buffers["O"].reshape(numbers.shape)
        np.testing.assert_allclose(seen, np.asarray(result), rtol=3e-7, err_msg=form.name)
        stored = [
            decoded(each.reshape(16, -1), form) for each in (report.buffers["B"], images[1].numpy())
        ]
        close = {"f2": 2**-10, "u4": 2**-5 * (form.name == "r11f_g11f_b10f")}.get(form.dtype, 0)
        is_normalized = form.kind == "float" and form.dtype in ("i1", "u1", "i2", "u2")
        may_differ = is_normalized and device.info.type != "CPU"
        step = may_differ and 1.001 / np.iinfo(form.dtype).max
        np.testing.assert_allclose(*stored, rtol=close, atol=step, err_msg=form.name)
        tried += 1
    assert tried > 20


ATOMICS = """#version 450
layout(local_size_x = 32) in;
layout(binding = 0, r32ui) uniform uimage2DArray A;
layout(binding = 1, r32i) uniform iimageBuffer B;
layout(binding = 2) uniform samplerBuffer T;
layout(std430, binding = 3) writeonly buffer O { float o[]; };
void main() { uint i = gl_LocalInvocationIndex; ivec3 p = ivec3(i % 3, i % 2, i % 2);
  imageAtomicAdd(A, p, i); imageAtomicMax(A, ivec3(0, 1, 0), int(i)); imageAtomicMin(B, int(i % 4), -int(i));
  o[i] = texelFetch(T, int(i % 5)).y + imageSize(A).x + 10 * imageSize(A).z + imageSize(B) + textureSize(T); }"""


@pytest.mark.features
def test_atomic_operations_and_texel_buffers(device):
    a, b, t = np.zeros((2, 3, 4), np.uint32), np.arange(6, dtype=np.int32), values((5, 2), "f4")
    arguments = [device.image(a, layers=True), device.tensor(b), device.tensor(t)]
    result = device.compile_shader(ATOMICS)(*arguments, out={"O": 32}, groups=1)
    report = check(ATOMICS, [a, b, t, 128])
    assert report.ok, str(report)
    np.testing.assert_array_equal(report.buffers["O"], np.asarray(result))
    np.testing.assert_array_equal(report.buffers["A"], arguments[0].numpy())
    np.testing.assert_array_equal(report.buffers["B"], arguments[1].numpy())


MANY = """#version 450
#extension GL_EXT_nonuniform_qualifier : require
layout(local_size_x = 12) in;
layout(binding = 0) uniform sampler2D T[3];
layout(binding = 1, r32f) uniform image2D A[2];
layout(std430, binding = 2) writeonly buffer O { float o[]; };
void main() { uint i = gl_LocalInvocationIndex; ivec2 p = ivec2(i % 4, i / 4);
  o[i] = texture(T[nonuniformEXT(i % 3)], vec2(0.1 * i)).x + textureSize(T[nonuniformEXT(i % 3)], 0).x;
  if (i % 4 < 2) imageStore(A[nonuniformEXT(i % 4)], p, vec4(i)); }"""


def test_arrays_of_images():
    textures = [np.full((2, n + 2), 10 * n, np.float32) for n in range(3)]
    stored = [np.zeros((3, 4), np.float32) for _ in range(2)]
    report = check(MANY, {"T": textures, "A": stored, "O": 48})
    assert report.ok, str(report)
    np.testing.assert_allclose(report.buffers["O"], [2, 13, 24] * 4, rtol=1e-6)
    for number in range(2):
        stored[number][:, number] = np.arange(3) * 4 + number
        np.testing.assert_array_equal(report.buffers[f"A[{number}]"], stored[number])


FAULTS = """#version 450
layout(local_size_x = 8) in;
layout(binding = 0, r32f) uniform image2D A;
layout(binding = 1) uniform sampler2D T;
layout(std430, binding = 2) writeonly buffer O { float o[]; };
void main() { int i = int(gl_LocalInvocationIndex); BODY }"""


@pytest.mark.parametrize(
    ("body", "kind", "text", "count"),
    [
        ("o[i] = imageLoad(A, ivec2(i, 2)).x;", "out of bounds", "index (5, 2) of 'A' is out of bounds: it has 5 x 3 texels", 3),
        ("imageStore(A, ivec2(-i, 0), vec4(1)); o[i] = 0;", "out of bounds", "index (-1, 0)", 7),
        ("o[i] = textureSize(T, i / 7).x;", "out of bounds", "index 1 of 'T' is out of bounds: it has 1 levels", 1),
        ("o[i] = texelFetch(T, ivec2(1), i / 7).x;", "out of bounds", "index (1, 1) of 'T'", 1),
        ("imageStore(A, ivec2(i / 2, 1), vec4(i)); o[i] = 0;", "data race", "'A(0, 1)' in an image: the first", 4),
        ("imageStore(A, ivec2(i % 5, i / 5), vec4(i)); barrier(); o[i] = imageLoad(A, ivec2(4 + i / 8, 0)).x;",
         "plain barrier", "the barrier between them does not order images (memoryBarrierImage does)", 7),
        ("imageStore(A, ivec2(i % 5, i / 5), vec4(i)); memoryBarrierImage(); barrier(); o[i] = imageLoad(A, ivec2(4 + i / 8, 0)).x;",
         "", "", 0),
        ("o[i] = texture(T, vec2(i, -i)).x;", "", "", 0),
    ],
)  # fmt: skip
def test_findings(body, kind, text, count):
    buffers = {"A": np.zeros((3, 5), np.float32), "T": np.zeros((4, 4), np.uint8), "O": 32}
    report = check(FAULTS.replace("BODY", body), buffers)
    expected = [(kind, count)] if kind else []
    assert [(each.kind, each.count) for each in report.findings] == expected, str(report)
    assert all(text in each.message for each in report.findings)


@pytest.mark.parametrize(
    ("given", "rule"),
    [
        (np.zeros((3, 5, 5), np.float32), "SH-13"), (np.zeros((3, 5), np.int32), "SH-14"), ("x", "SH-13"),
        ((np.zeros((3, 5), np.float32), {"colour": 3}), "SH-13"), (None, "SH-04"),
    ],
)  # fmt: skip
def test_arguments_that_are_refused(given, rule):
    other = {} if given is None else {"T": given}
    with pytest.raises(BindingError) as caught:
        check(
            FAULTS.replace("BODY", "o[i] = texture(T, vec2(i)).x;"),
            {**other, "A": np.zeros((3, 5), np.float32)},
        )
    assert caught.value.rule == rule


@pytest.mark.parametrize("sizes", [(4,), (4, 4), (2, 3), (2, 2, 2)])
def test_levels_of_other_sizes_are_refused(sizes):
    text = """#version 450
    layout(binding = 0) uniform sampler2D X;
    layout(binding = 1) buffer Y { vec4 y[]; };
    void main() { y[0] = textureLod(X, vec2(0), 1); }"""
    images = [np.zeros((4, 5), np.float32), np.zeros(sizes, np.float32)]
    if sizes == (2, 2, 2):
        images[1:] = [np.zeros(n, np.float32) for n in ((2, 2), (1, 1), (1, 1))]
    with pytest.raises(BindingError, match=r"X: level [13] is .* of 1 to 3 levels \[SH-13\]"):
        check(text, {"X": images})
