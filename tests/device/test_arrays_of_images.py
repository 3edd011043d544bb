"""Arrays of images, textures, samplers and texel buffers: lists, indices, copies, limits, errors."""

from __future__ import annotations

import numpy as np
import pytest
from adapters import UNDER_LAYER
from instructions import calls
from refusals import fault

from vkops import shaders
from vkops.errors import BindingError

pytestmark = pytest.mark.memory

SOURCE = """#version 450
layout(local_size_x = 4, local_size_y = 4) in;
layout(binding = 0) buffer Y { float y[4][4]; };
layout(binding = 1) uniform texture2D Textures[3];
layout(binding = 2) uniform sampler Samplers[2];
layout(binding = 3) uniform sampler2D Both[2];
layout(binding = 4, r32f) uniform image2D Images[2];
layout(binding = 5) uniform samplerBuffer Buffers[2];
PUSH
void main() {
    ivec2 at = ivec2(gl_LocalInvocationID.xy);
    vec2 there = (vec2(at) + 0.5) / 2;  // outside of a texture of 2 x 2 texels
    y[at.y][at.x] = textureLod(sampler2D(Textures[which], Samplers[0]), there, 0).x
        + 10 * textureLod(sampler2D(Textures[0], Samplers[which & 1]), there, 0).x
        + 1000 * textureLod(Both[which & 1], there, 0).x
        + 100000 * texelFetch(Buffers[which & 1], at.x).x
        + imageLoad(Images[which & 1], at).x;
    imageStore(Images[1], at, vec4(at.x + 1));
}"""
PUSH = "layout(push_constant) uniform Push { int which; };"
DYNAMIC = SOURCE.replace("PUSH", PUSH)
PICTURES = [np.float32([[1, 2], [3, 4]]) + 4 * n for n in range(3)]
ROWS = [np.arange(4, dtype=np.float32) + n for n in range(2)]


def constant(which):
    """The shader with indices that are constants, as Mesa 22.3 needs them."""
    return SOURCE.replace("PUSH", "").replace("which", str(which))


def arguments(device):
    """Images, tensors, views and arrays, as the elements of each array."""
    images = [
        device.image(np.full((4, 4), 0.25, np.float32)),
        device.tensor(np.zeros((4, 8)) + 0.5),
    ]
    images[1] = images[1].astype(np.float32)[:, ::2]
    return {
        "Y": device.tensor(np.zeros((4, 4), np.float32)),
        "Textures": [device.image(PICTURES[0]), PICTURES[1], device.tensor(PICTURES[2])],
        "Samplers": [device.sampler("nearest", "repeat"), device.sampler("nearest", "border")],
        "Both": [(device.image(PICTURES[1]), device.sampler("nearest", "mirror")), PICTURES[2]],
        "Images": images,
        "Buffers": [device.tensor(each) for each in ROWS],
    }  # fmt: skip


def expected(which):
    """The values of Y, and of the second image."""
    first = np.pad(PICTURES[which], (0, 2), "wrap")
    apart = np.pad(PICTURES[0], (0, 2), "constant" if which & 1 else "wrap")
    both = np.pad(PICTURES[2 if which & 1 else 1], (0, 2), "edge" if which & 1 else "symmetric")
    total = (
        first + 10 * apart + 1000 * both + 100000 * ROWS[which & 1] + (0.5 if which & 1 else 0.25)
    )
    return total, np.tile(np.arange(1, 5), (4, 1))


@pytest.mark.parametrize("which", range(3))
@pytest.mark.parametrize(
    "is_dynamic",
    [False, pytest.param(True, marks=pytest.mark.features)],
    ids=["constant", "dynamic"],
)
def test_each_element_is_bound(device, which, is_dynamic):
    inputs = arguments(device)
    shader = device.compile_shader(DYNAMIC if is_dynamic else constant(which))
    shader(**inputs, groups=1, **({"which": which} if is_dynamic else {}))
    total, stored = expected(which)
    np.testing.assert_allclose(inputs["Y"].numpy(), total, rtol=1e-6)
    np.testing.assert_array_equal(inputs["Images"][1].numpy(), stored)


def test_samplers_without_an_argument_are_the_default(device):
    inputs = arguments(device)
    del inputs["Samplers"]
    device.compile_shader(constant(0))(**inputs, groups=1)
    assert inputs["Y"].numpy()[0, 0] == expected(0)[0][0, 0]  # the centre of a texel


@pytest.mark.features
def test_an_array_without_a_length(device):
    source = """#version 450
    #extension GL_EXT_nonuniform_qualifier : require
    layout(local_size_x = 4) in;
    layout(binding = 0) buffer Y { float y[]; };
    layout(binding = 1, r32f) readonly uniform image1D Images[];
    layout(push_constant) uniform Push { int which; };
    void main() { uint i = gl_LocalInvocationIndex; y[i] = imageLoad(Images[which], int(i)).x; }"""
    shader = device.compile_shader(source)
    is_limited = device.info.type == "CPU" and not device.vulkan.validated
    for count in (1, 2):
        y = device.tensor(np.zeros(4, np.float32))
        images = [device.image(row, dims=1) for row in ROWS[:count]]
        shader(y, images, which=count + 7 if is_limited else count - 1, groups=1)
        np.testing.assert_array_equal(y.numpy(), ROWS[count - 1])


@pytest.mark.parametrize(
    ("name", "change", "said"),
    [
        ("Textures", lambda each: each[1], "x Textures [SH-04]"),
        ("Textures", lambda each: each[:2], "x Textures [SH-04]"),
        ("Textures", lambda each: [*each[:2], None], "x Textures[2] [SH-13]"),
        ("Samplers", lambda each: [each[0], 1], "x Samplers[1] [SH-13]"),
        ("Both", lambda each: [each[0], np.zeros((2, 2), np.uint32)], "x Both[1] [SH-14]"),
        ("Images", lambda each: [each[1], each[1][:, ::-1]], "x Images[1] [SH-06]"),
        ("Buffers", lambda each: [each[0], each[1].view(np.uint32)], "x Buffers[1] [SH-14]"),
    ],
    ids=["no list", "few", "none", "sampler", "type", "shared", "type of texels"],
)
def test_errors(device, name, change, said, message):
    inputs = arguments(device)
    inputs[name] = change(inputs[name])
    shader = device.compile_shader(constant(0), name="x")
    error = fault(lambda: shader(**inputs, groups=1), BindingError)
    message(error, *said.split(), device=device.info.label)


def test_features():
    needs = shaders.load(DYNAMIC).needs
    assert {
        "shaderSampledImageArrayDynamicIndexing", "shaderStorageImageArrayDynamicIndexing",
        "shaderUniformTexelBufferArrayDynamicIndexing",
    } <= {*needs}  # fmt: skip
    assert not [need for need in shaders.load(constant(1)).needs if "Indexing" in need]


TEXELS = """
shader = device.compile_shader('''#version 450
layout(local_size_x = 1) in;
layout(binding = 0, r32f) uniform imageBuffer x;
layout(binding = 1) uniform samplerBuffer y;
void main() { imageStore(x, 0, imageLoad(x, 0) + texelFetch(y, 1)); }''')
x, y = (device.tensor(np.ones(256, np.float32)) for _ in range(2))
for n in range(24):
    shader(x, y, groups=1)
    device.synchronize()
    if n == 3:
        faulty.record(1)
print(x.numpy()[0], json.dumps(counts()))
"""


@pytest.mark.system("cc")
@pytest.mark.skipif(UNDER_LAYER, reason="under the layer, each call makes its own")
def test_views_of_texels_are_kept(adapter, faulty):
    """So are the descriptor sets with them: a call that was made before makes neither."""
    total, made = faulty(TEXELS, adapter.index, "direct").split(maxsplit=1)
    assert total == "25.0"
    assert "vkCreateBufferView" not in made
    assert "vkAllocateDescriptorSets" not in made
    assert '"vkCmdDispatch": 20' in made


def test_a_call_with_arrays_makes_few_python_calls(device):
    inputs = arguments(device) | {"Both": [device.image(each) for each in PICTURES[:2]]}
    inputs["Textures"] = inputs["Both"] + inputs["Both"][:1]
    inputs["Images"] = [*inputs["Images"][:1], device.image(np.zeros((4, 4), np.float32))]
    shader = device.compile_shader(constant(0))
    for _ in range(3):
        shader(**inputs, groups=1)
    assert calls(lambda: shader(**inputs, groups=1)) <= 120
