"""Images, textures, samplers and texel buffers, compared with NumPy."""

from __future__ import annotations

import gc
import itertools

import numpy as np
import pytest
from arrays import any_numbers as values
from instructions import calls
from processes import python
from refusals import fault

import vkops
from vkops.debug import check
from vkops.errors import BindingError, show
from vkops.gpu.run import image_memory
from vkops.runtime.shader_arguments import images as image_arguments
from vkops.shaders.image_formats import FORMATS

pytestmark = pytest.mark.memory

DTYPES = ("u1", "i1", "u2", "i2", "u4", "i4", "f2", "f4")
FORMS = [  # dimensions, layers, sizes
    (1, False, (13,)), (1, True, (2, 11)), (2, False, (7, 9)), (2, False, (1, 8)),
    (2, True, (3, 5, 6)), (3, False, (5, 4, 7)),
]  # fmt: skip


def each_form():
    for (dims, layers, sizes), dtype in itertools.product(FORMS, DTYPES):
        for channels in ((), (1,), (2,), (3,), (4,)):
            yield dims, layers, values(sizes + channels, dtype)


HEAD = "#version 450\nlayout(local_size_x = 4, local_size_y = 4) in;\n"


def run(device, text, *arguments, threads, **named):
    head = HEAD if isinstance(threads, tuple) else HEAD.replace("y = 4", "y = 1")
    return device.compile_shader(head + text, name="x")(*arguments, threads=threads, **named)


# -- elements --------------------------------------------------------------------------------------


def test_elements_come_back(any_device):
    for dims, layers, array in each_form():
        image = any_device.image(array, dims=dims, layers=layers)
        assert (image.shape, image.dtype, image.nbytes) == (array.shape, array.dtype, array.nbytes)
        np.testing.assert_array_equal(image.numpy(), array)
        np.testing.assert_array_equal(np.asarray(image.tensor()), array)
        turned = any_device.tensor(np.ascontiguousarray(array[..., ::-1]))[..., ::-1]
        np.testing.assert_array_equal(any_device.image(turned, dims=dims, layers=layers), array)


def test_an_image_of_a_shape_is_zeros(device):
    junk = device.image(np.full((64, 64, 4), 255, np.uint8))
    del junk
    image = device.image((64, 64), format="rgba8")
    assert (image.shape, image.dtype, image.format) == ((64, 64, 4), np.uint8, "rgba8")
    assert not image.numpy().any()
    assert device.image((3, 5), channels=2).shape == (3, 5, 2)
    for form, shape in (("r32f", (3, 5)), ("rg32f", (3, 5, 2)), ("rgba32f", (3, 5, 4))):
        assert device.image((3, 5), format=form).shape == shape
    assert len(device.image(5, np.int16, dims=1)) == 5


@pytest.mark.parametrize(
    "key",
    [
        np.s_[...], np.s_[1], np.s_[:, 2:5, 3:4], np.s_[-1, 1:, :-2], np.s_[0:2, 3], np.s_[..., :],
        np.s_[2, 4, 5, :], np.s_[1:3],
    ],
)  # fmt: skip
@pytest.mark.parametrize("channels", [3, 4])
def test_rectangles_and_layers(any_device, key, channels):
    array = values((3, 5, 6, channels), np.uint16)
    image = any_device.image(array, layers=True)
    assert image[key].shape == array[key].shape
    np.testing.assert_array_equal(image[key].numpy(), array[key])
    pixels = values(array[key].shape, np.uint16, 1)
    for value in (pixels, any_device.tensor(pixels), 7):
        image[key] = value
        array[key] = np.asarray(value)
        np.testing.assert_array_equal(image.numpy(), array)


def test_an_image_is_written_to_a_part_of_another_one(device):
    source, target = values((4, 6), np.float32), values((9, 9), np.float32, 1)
    image = device.image(target)
    image[2:5, 1:4] = device.image(source)[1:, 2:5]
    target[2:5, 1:4] = source[1:, 2:5]
    np.testing.assert_array_equal(image.numpy(), target)


def test_an_image_of_a_tensor_in_several_pieces(device, change_device):
    """No row of texels ends where a piece does."""
    change_device(max_range=1024)
    array = values((3, 19, 37), np.uint32)
    tensor = device.tensor(array)
    assert len(tensor.buffer.extents) > 1
    image = device.image(tensor, dims=3)
    np.testing.assert_array_equal(image.numpy(), array)


# -- mip levels ------------------------------------------------------------------------------------


def half(array, dims, layers):
    """The next level, as the documentation defines it."""
    axes = range(layers, layers + dims)
    taps, weights = [], []
    for axis in axes:
        n = array.shape[axis]
        m = max(1, n // 2)
        i = np.arange(m)
        count = 1 if n == 1 else 2 + n % 2
        taps.append([2 * i + k for k in range(count)])
        outer = np.stack([m - i, np.full(m, m), i + 1]).astype("f4") * (
            np.float32(1) / np.float32(n)
        )
        weights.append(outer if count == 3 else np.full((count, m), 1 / count, "f4"))
    total = np.float32(0)
    for chosen in itertools.product(*[range(len(each)) for each in taps]):
        part, weight = array.astype("f4"), np.float32(1)
        for axis, k, at, own in zip(axes, chosen, taps, weights, strict=True):
            part = part.take(at[k], axis)
            shape = [-1 if each == axis else 1 for each in range(array.ndim)]
            weight = weight * own[k].reshape(shape)
        total = total + weight * part
    if array.dtype.kind != "f":
        limits = np.iinfo(array.dtype)
        most = limits.max if array.itemsize < 4 else np.nextafter(np.float32(limits.max), 0)
        total = np.clip(np.floor(total + np.float32(0.5)), limits.min, most)
    return total.astype(array.dtype)


@pytest.mark.features
def test_mip_levels(device):
    """Texels of all types in one form, and all forms with two: shaders convert and add up apart."""
    for dims, layers, array in each_form():
        is_each_type = (dims, layers) == (2, True)
        if not is_each_type and (array.shape[-1] != 4 or array.dtype not in ("u1", "f4")):
            continue
        count = max(array.shape[layers : layers + dims]).bit_length()
        image = device.image(array, dims=dims, layers=layers, mips=count)
        assert image.generate_mips() is image
        for level in range(1, count):
            expected = half(image.mip(level - 1).numpy(), dims, layers)
            np.testing.assert_array_equal(image.mip(level).numpy(), expected)


def test_a_level_is_stored_to_and_read(device):
    image = device.image(np.zeros((8, 6), np.float32), mips=3)
    text = "layout(binding = 0, r32f) writeonly uniform image2D I;\n"
    text += "void main() { imageStore(I, ivec2(gl_GlobalInvocationID.xy), vec4(7)); }"
    run(device, text, image.mip(1), threads=(3, 4))
    assert [image.mip(n).numpy().max() for n in range(3)] == [0, 7, 0]
    fetch = "#extension GL_EXT_samplerless_texture_functions : require\n"
    fetch += "layout(binding = 0) uniform texture2D T;\n"
    fetch += "layout(std430, binding = 1) buffer O { float o[]; };\n"
    fetch += "void main() { if (gl_GlobalInvocationID.x < o.length()) "
    fetch += "o[gl_GlobalInvocationID.x] = texelFetch(T, ivec2(0), int("
    fetch += "gl_GlobalInvocationID.x)).x + textureQueryLevels(T); }"
    assert run(device, fetch, image, out=3, threads=3).tolist() == [3, 10, 3]
    # The first level that SwiftShader's texelFetch reads has the view's first level as its number.
    first = 2 if "SwiftShader" in device.name else 9
    assert run(device, fetch, image.mip(1), out=1, threads=1).tolist() == [first]


# -- formats ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["", "u", "i"])
def test_the_declaration_decides_what_integers_are(device, kind):
    """Images of the same bytes in three shaders; integers of the other sign are refused."""
    text = f"""#extension GL_EXT_samplerless_texture_functions : require
    layout(binding = 0) uniform {kind}texture2D T;
    layout(std430, binding = 1) buffer O {{ float o[]; }};
    void main() {{ o[gl_GlobalInvocationID.x] = texelFetch(T, ivec2(gl_GlobalInvocationID.x, 0), 0).x; }}"""
    for dtype in ("u1", "i1", "u2", "i2"):
        array = np.array([[0, 1, 100, 127]], dtype)
        if kind and kind != dtype[0]:
            with pytest.raises(
                BindingError, match=r"tensor.view\(\) reads the same bytes \[SH-14\]"
            ):
                run(device, text, device.image(array), out=4, threads=4)
            array = array.view(f"{kind}{dtype[1]}")
        seen = run(device, text, device.image(array), out=4, threads=4).numpy()
        most = np.iinfo(dtype).max
        np.testing.assert_allclose(seen, array[0] / most if not kind else array[0], rtol=1e-6)


def test_srgb_is_decoded_where_it_is_sampled(device):
    """To half a step of the eight bits, and by CPU drivers to 0.002."""
    image = device.image(np.arange(256, dtype=np.uint8).reshape(1, 64, 4), format="rgba8_srgb")
    text = "layout(binding = 0) uniform sampler2D T;\nlayout(binding = 1, rgba32f) writeonly uniform image2D O;"
    text += "void main() { ivec2 p = ivec2(gl_GlobalInvocationID.xy); imageStore(O, p, texelFetch(T, p, 0)); }"
    seen = run(device, text, image, out=(1, 64), threads=(64, 1)).numpy()
    srgb = np.arange(256).reshape(1, 64, 4) / 255
    srgb = srgb + np.array([-1, 0, 1]).reshape(3, 1, 1, 1) * 0.5 / 255
    low, linear, high = np.where(srgb <= 0.04045, srgb / 12.92, ((srgb + 0.055) / 1.055) ** 2.4)
    linear[..., 3] = srgb[1, ..., 3]
    np.testing.assert_allclose(seen[..., 3], linear[..., 3], atol=1e-6)
    most = 2e-3 if device.info.type == "CPU" else 1
    assert (np.abs(seen - linear) <= np.maximum(high - linear, linear - low).clip(max=most)).all()


# -- textures and samplers -------------------------------------------------------------------------

SAMPLE = """
layout(binding = 0) uniform sampler2D T;
layout(std430, binding = 1) readonly buffer At { vec2 at[]; };
layout(std430, binding = 2) writeonly buffer O { float o[]; };
void main() {
    if (gl_GlobalInvocationID.x < o.length())
        o[gl_GlobalInvocationID.x] = textureLod(T, at[gl_GlobalInvocationID.x], 0).x;
}
"""


def test_a_texture_with_a_sampler_apart(device):
    text = SAMPLE.replace("sampler2D T;", "texture2D T;\nlayout(binding = 3) uniform sampler S;")
    text = text.replace("textureLod(T", "textureLod(sampler2D(T, S)")
    array, at = np.float32([[0, 8]]), np.float32([[0.5, 0.5]])
    assert run(device, text, device.image(array), at, out=1, threads=1).tolist() == [4]
    nearest = device.sampler("nearest")
    assert run(device, text, array, at, S=nearest, out=1, threads=1).tolist() == [8]


# -- bindings --------------------------------------------------------------------------------------

INVERT = """
layout(binding = 0, rgba8) readonly uniform image2D Picture;
layout(binding = 1, rgba8) writeonly uniform image2D Result;
void main() {
    const ivec2 p = ivec2(gl_GlobalInvocationID.xy);
    imageStore(Result, p, vec4(1 - imageLoad(Picture, p).rgb, 1));
}"""
ADD = """
layout(binding = 0, r32ui) uniform uimage2D I;
void main() { imageAtomicAdd(I, ivec2(gl_GlobalInvocationID.xy), 1); }
"""


def test_outputs_that_a_call_makes(device):
    array = values((5, 7, 3), np.uint8)
    picture = device.image(array)
    for given in (picture, array, device.tensor(array)):
        result = run(device, INVERT, given, out="Picture", threads=(7, 5))
        assert isinstance(result, vkops.Image)
        np.testing.assert_array_equal(result.numpy(), 255 - array)
    assert run(device, INVERT, picture, out=(5, 7), threads=(7, 5)).shape == (5, 7, 4)
    assert run(device, INVERT, picture, out=picture, threads=(7, 5)) is picture
    np.testing.assert_array_equal(picture.numpy(), 255 - array)
    gray = values((5, 7), np.float32)
    inverse = INVERT.replace("rgba8", "r32f")
    result = run(device, inverse, gray, out="Picture", threads=(7, 5))
    np.testing.assert_array_equal(result.numpy(), 1 - gray)
    sampled = inverse.replace(", r32f) readonly uniform image2D", ") uniform sampler2D")
    sampled = sampled.replace("imageLoad(Picture, p)", "texelFetch(Picture, p, 0)")
    for texture in (device.image(gray), gray):
        pair = texture, device.sampler()
        result = run(device, sampled, pair, out="Picture", threads=(7, 5))
        np.testing.assert_array_equal(result.numpy(), 1 - gray)


@pytest.mark.parametrize("recorded", [False, True])
def test_tensors_in_the_place_of_images(any_device, recorded):
    """They are copied, and written back: views and three channels, too."""
    array, spare = values((5, 9, 3), np.uint8), np.zeros((6, 7, 4), np.uint8)
    source, target = any_device.tensor(array)[:, 1:8][::-1], any_device.tensor(spare)
    numbers = any_device.tensor(np.arange(12, dtype=np.uint32).reshape(3, 4).T)
    image = any_device.image((4, 3), np.uint32)
    invert, add = (any_device.compile_shader(HEAD + text) for text in (INVERT, ADD))

    def work():
        invert(source, target[1:, :, :3], threads=(7, 5))
        add(numbers[1:], threads=(3, 3))
        add(image[1:3, :2], threads=(2, 2))

    if recorded:
        with any_device.record() as program:
            work()
        program.run()
        program.run()
    else:
        work()
        work()
    spare[1:, :, :3] = 255 - array[:, 1:8][::-1]
    np.testing.assert_array_equal(target.numpy(), spare)
    expected = np.arange(12).reshape(3, 4).T.copy()
    expected[1:] += 2
    np.testing.assert_array_equal(numbers.numpy(), expected)
    assert image.numpy().tolist() == [[0, 0, 0], [2, 2, 0], [2, 2, 0], [0, 0, 0]]


def test_texel_buffers(device):
    text = """
    layout(binding = 0) uniform samplerBuffer Source;
    layout(binding = 1, r32f) uniform imageBuffer Target;
    void main() {
        const int i = int(gl_GlobalInvocationID.x);
        if (i < textureSize(Source)) imageStore(Target, i, texelFetch(Source, i) + imageLoad(Target, i));
    }"""
    for dtype in ("f4", "f2", "u1", "i1", "i2"):
        array = values((40,), dtype)
        whole = device.tensor(array)
        has_it = device.vulkan.native.format_features(FORMATS["r16_snorm"].vulkan)[1] & 8
        if dtype == "i2" and not has_it:  # Vulkan requires the other formats
            with pytest.raises(BindingError, match=r"^x Source: .* r16_snorm in .*\[SH-14\]$"):
                run(device, text, whole, whole, threads=1)
            break
        for start, stop, step in ((0, 40, 1), (7, 20, 1), (1, 40, 3)):
            part, base = whole[start:stop:step], values((len(array[start:stop:step]),), np.float32)
            target = device.tensor(base)
            run(device, text, part, target, threads=40)
            numbers = array[start:stop:step].astype(np.float64)
            if array.dtype.kind != "f":
                numbers = np.maximum(numbers / np.iinfo(dtype).max, -1)
            np.testing.assert_allclose(target.numpy(), base + numbers, rtol=1e-5, atol=1e-6)
    pairs = device.tensor(values((8, 2), np.float32))
    target = device.tensor(np.zeros(8, np.float32))
    run(device, text, pairs, target, threads=8)
    np.testing.assert_array_equal(target.numpy(), pairs.numpy()[:, 0])


def test_a_view_as_elements_and_as_texels(device):
    """They share a copy, as bindings of the same elements do."""
    text = """
    layout(std430, binding = 0) readonly buffer Source { float source[]; };
    layout(binding = 1, r32f) uniform imageBuffer Target;
    void main() {
        const int i = int(gl_GlobalInvocationID.x);
        if (i < source.length()) imageStore(Target, i, vec4(source[i] * 10));
    }"""
    x = device.tensor(np.arange(8, dtype=np.float32))
    run(device, text, x[::2], x[::2], threads=4)
    assert x.tolist() == [0, 1, 20, 3, 40, 5, 60, 7]


def test_hlsl(device):
    text = """
    Texture2D<float4> Picture; SamplerState Smooth; Texture2DArray<uint> Layers;
    Buffer<float> Weights; RWBuffer<uint> Count; RWTexture2D<float4> Result;
    [numthreads(4, 4, 1)] void main(uint3 id : SV_DispatchThreadID) {
        uint w, h; Result.GetDimensions(w, h);
        if (id.x >= w || id.y >= h) return;
        float4 seen = Picture.SampleLevel(Smooth, (id.xy + 0.5) / float2(w, h), 0);
        Result[id.xy] = seen * Weights[1] + Layers[uint3(id.xy, 1)];
        InterlockedAdd(Count[0], 1);
    }"""
    shader = device.compile_shader(text, language="hlsl")
    picture, layers = values((5, 7, 4), np.float32), values((2, 5, 7), np.uint8)
    count = device.tensor(np.zeros(1, np.uint32))
    named = {"Layers": device.image(layers, layers=True), "Weights": np.float32([0, 2])}
    result = shader(
        Picture=device.image(picture), Count=count, **named, out="Picture", threads=(7, 5)
    )
    np.testing.assert_allclose(result.numpy(), picture * 2 + layers[1][..., None], rtol=1e-5)
    assert count.tolist() == [35]


# -- memory, order and isolation -------------------------------------------------------------------


def test_memory_is_counted_and_freed(adapter):
    with vkops.Device(adapter.index) as device:
        before = device.memory_report().used
        image = device.image(np.zeros((256, 256, 4), np.float32), mips=9)
        assert device.memory_report().used - before >= 4 * 4 * 256 * 256
        part = image[:2]
        del image
        assert device.memory_report().used > before
        del part
        gc.collect()
        device.synchronize()
        assert device.memory_report().used == before
        device.image_pool.max_range = 1 << 20
        with pytest.raises(vkops.OutOfDeviceMemoryError, match="an image of"):
            device.image((1024, 1024))
    with pytest.raises(vkops.DeviceError, match="closed"):
        device.image((4, 4))


def test_calls_are_in_order_without_waiting(any_device):
    shader = any_device.compile_shader(HEAD + ADD)
    image = any_device.image((64, 64), np.uint32)
    seen = []
    for _ in range(20):
        shader(image, threads=(64, 64))
        seen.append(image.tensor())
    assert (image.numpy() == 20).all()
    assert [each.numpy().max() for each in seen] == [*range(1, 21)]


def test_accesses_outside_of_an_image_are_discarded(device):
    """And of its part that is bound: neighbours in memory stay as they are."""
    images = [device.image(np.full((8, 8), 5, np.uint32)) for _ in range(3)]
    text = """layout(binding = 0, r32ui) uniform uimage2D I;
    layout(std430, binding = 1) buffer O { uint o[]; };
    void main() {
        const ivec2 p = ivec2(gl_GlobalInvocationID.xy) * 3 - 40;
        const bool inside = all(greaterThanEqual(p, ivec2(0))) && all(lessThan(p, ivec2(8)));
        if (inside) return;
        o[0] |= imageLoad(I, p).x;
        imageStore(I, p, uvec4(9));
    }"""
    seen = device.tensor(np.zeros(1, np.uint32))
    run(device, text, images[1], seen, threads=(40, 40))
    assert all((image.numpy() == 5).all() for image in images)
    assert seen.tolist() == [0]


def test_a_call_with_images(device):
    """As many calls of Python as with tensors."""
    shader = device.compile_shader(HEAD + INVERT)
    one, two = (device.image(np.zeros((4, 4, 4), np.uint8)) for _ in range(2))
    for _ in range(2):
        shader(one, two, threads=(4, 4))
    assert calls(lambda: shader(one, two, threads=(4, 4))) - 1 <= 25


@pytest.mark.parametrize(("dims", "layers", "sizes"), FORMS)
def test_images_are_made_with_their_sizes(device, monkeypatch, dims, layers, sizes):
    """Only the validation layer tells whether sides that an image does not have are 1."""
    made, called = [], image_memory._called
    monkeypatch.setattr(image_memory, "_called", lambda *a: made.append(a[-1]) or called(*a))
    device.image(sizes, dims=dims, layers=layers)
    assert made[0] == (*reversed(sizes[layers:]), 1, 1)[:3]


def test_shaders_store_to_one_level(device, monkeypatch):
    """Only the validation layer tells whether the view of a storage image has one level."""
    parts, place = [], image_arguments._viewed
    monkeypatch.setattr(image_arguments, "_viewed", lambda *a: parts.append(a[-1]) or place(*a))
    picture = device.image(np.zeros((4, 4, 4), np.uint8), mips=2)
    result = device.image(np.zeros((4, 4, 4), np.uint8))
    run(device, INVERT, picture, result, threads=(4, 4))
    assert parts == [(0, 1, 0, 1)] * 2


# -- errors ----------------------------------------------------------------------------------------

WRONG_IMAGES = [
    ({"array": (0, 4)}, "shape [IMG-01]"),
    ({"array": (4,)}, "shape [IMG-01]"),
    ({"array": (4, 4, 4, 1)}, "shape [IMG-01]"),
    ({"array": (4, 4), "dims": 4}, "dims [IMG-01]"),
    ({"array": (4, 4), "dims": 3, "layers": True}, "dims [IMG-01]"),
    ({"array": (4, 4, 5)}, "channels [IMG-02]"),
    ({"array": (4, 4, 2), "channels": 3}, "channels [IMG-02]"),
    ({"array": (4, 4), "dtype": np.float64}, "dtype [IMG-03]"),
    ({"array": (4, 4), "format": "rgb8"}, "format [IMG-03]"),
    ({"array": np.zeros((4, 4), np.uint8), "format": "r32f"}, "dtype [IMG-03]"),
    ({"array": (4, 4), "mips": 4}, "mips [IMG-04]"),
    ({"array": (4, 4), "mips": 0}, "mips [IMG-04]"),
]


@pytest.mark.parametrize(("wrong", "named"), WRONG_IMAGES)
def test_images_that_are_refused(device, message, wrong, named):
    error = fault(lambda: device.image(**wrong))
    message(error, *named.split(), device=device.info.label)
    assert "[IMG-04]" in fault(lambda: device.image((1 << 20, 4)))


@pytest.mark.parametrize(
    ("wrong", "named"),
    [
        (lambda i: i[::2], "image [IMG-05]"), (lambda i: i[2:2], "image [IMG-05]"),
        (lambda i: i[..., 1], "image [IMG-05]"), (lambda i: i["a"], "image [IMG-05]"),
        (lambda i: i[0, 0, 0, 0], "image [IMG-05]"), (lambda i: i.mip(1), "level [IMG-05]"),
        (lambda i: i.__setitem__(0, np.zeros((3, 3))), "image [IMG-06]"),
        (lambda i: i.__setitem__(0, i.tensor()), "image [IMG-06]"),
        (lambda i: i.device.sampler("cubic"), "filter [IMG-07]"),
        (lambda i: i.device.sampler("linear", "wrap"), "address [IMG-07]"),
        (lambda i: i.device.sampler("linear", "repeat", normalized=False), "address [IMG-07]"),
        (lambda i: i.device.image((4, 4), format="rgb10_a2", mips=2).generate_mips(), "format [IMG-03]"),
    ],
)  # fmt: skip
def test_uses_of_images_that_are_refused(device, message, wrong, named):
    image = device.image(np.zeros((3, 5, 2), np.uint8))
    message(fault(lambda: wrong(image)), *named.split())
    with pytest.raises(IndexError):
        image[3]


def test_elements_of_the_host_are_not_copied_to_an_image(device, message):
    host = vkops.Tensor.from_array(device, np.zeros((4, 4), np.float32), on_host=True)
    message(fault(lambda: device.image(host), BindingError), "image", "[SH-12]")


BINDINGS = """
layout(binding = 0, rgba8) readonly uniform image2D Picture;
layout(binding = 1) uniform usampler2D T;
layout(binding = 2) uniform sampler S;
layout(binding = 3, r32f) readonly uniform imageBuffer B;
layout(binding = 4) buffer O { uint o; };
layout(binding = 5) uniform texture2D F;
void main() {
    o = uint(imageLoad(Picture, ivec2(0)).x + imageLoad(B, 0).x) + texelFetch(T, ivec2(0), 0).x;
    o += uint(textureLod(sampler2D(F, S), vec2(0), 0).x);
}
"""


@pytest.mark.parametrize(
    ("wrong", "named"),
    [
        ({"Picture": np.zeros((4, 4), np.uint8)}, "x Picture [SH-14]"),
        ({"Picture": np.zeros((4, 4, 4), np.float32)}, "x Picture [SH-14]"),
        ({"Picture": np.zeros((4, 4, 4, 4), np.uint8)}, "x Picture [SH-13]"),
        ({"Picture": ({"layers": True}, np.zeros((4, 4, 4, 4), np.uint8))}, "x Picture [SH-13]"),
        ({"Picture": ({"format": "rgba8ui"}, np.zeros((4, 4, 4), np.uint8))}, "x Picture [SH-14]"),
        ({"Picture": "picture"}, "x Picture [SH-13]"),
        ({"T": np.zeros((4, 4), np.float32)}, "x T [SH-14]"),
        ({"T": "linear"}, "x T [SH-15]"),
        ({"F": "host"}, "x F [SH-12]"),
        ({"S": "smooth"}, "x S [SH-13]"),
        ({"B": np.zeros(4, np.uint32)}, "x B [SH-14]"),
        ({"B": "buffer"}, "x B [SH-14]"),
        ({"O": ({}, np.zeros((4, 4), np.uint8))}, "x O [B-02]"),
    ],
)  # fmt: skip
def test_bindings_that_are_refused(device, message, wrong, named):
    good = {
        "Picture": np.zeros((4, 4, 4), np.uint8), "T": np.zeros((4, 4), np.uint8),
        "B": np.zeros(4, np.float32), "O": device.tensor(np.zeros(1, np.uint32)),
        "F": np.zeros((4, 4), np.float32),
    }  # fmt: skip
    run(device, BINDINGS, **good, threads=1)
    ((name, value),) = wrong.items()
    if isinstance(value, tuple):
        value = device.image(value[1], **value[0])
    elif isinstance(value, str):
        texture = device.image(np.zeros((4, 4), np.uint8)), device.sampler("linear")
        host = vkops.Tensor.from_array(device, good["F"], on_host=True)
        resources = {"linear": texture, "buffer": device.buffer(16), "host": host}
        value = resources.get(value, value)
    error = fault(lambda: run(device, BINDINGS, **good | {name: value}, threads=1), BindingError)
    images = {"image": show(value)} if name == "O" else {}
    message(error, *named.split(), **images, device=device.info.label)


def test_images_that_the_interpreter_is_not_given(message):
    shader = vkops.shaders.load("#version 450\n" + BINDINGS, name="x")
    message(fault(lambda: check(shader), BindingError), "x Picture", "[SH-04]")


FREED = """
import gc, sys, weakref
import numpy as np, vkops
device = vkops.Device(int(sys.argv[1]))
text = '''#version 450
layout(local_size_x = 1) in;
layout(binding = 0) uniform sampler2D x;
layout(binding = 1) buffer Y { float y[]; };
void main() { y[0] = textureLod(x, vec2(0.5), 0).x; }'''
shader = device.compile_shader(text)
print(shader(np.ones((2, 2), np.float32), out=1, groups=1).item())
opened = weakref.ref(device.vulkan)
del shader
device.close()
del device
gc.collect()
print(opened())
"""


def test_a_default_sampler_does_not_keep_a_device(adapter):
    assert python("-c", FREED, adapter.index) == "1.0\nNone\n"
