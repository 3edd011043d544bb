"""Images whose texels have several samples, compared with NumPy and with the interpreter."""

from __future__ import annotations

import re

import numpy as np
import pytest
from arrays import any_numbers as values
from refusals import check_refusals

import vkops
from vkops.cli import main
from vkops.debug import check
from vkops.gpu.run import image_samples

pytestmark = [pytest.mark.memory, pytest.mark.features]

DTYPES = ("u1", "i1", "u2", "i2", "u4", "i4", "f2", "f4")
SAMPLES = 4
"""Where devices store samples at all, these are as many."""

HEAD = "#version 450\nlayout(local_size_x = 4, local_size_y = 4) in;\n"
SHIFT = """
layout(binding = 0, rgba8) uniform image2DMS Target;
layout(binding = 1) uniform sampler2DMS Source;
layout(binding = 2, r32ui) uniform uimage2DMSArray Counts;
layout(std430, binding = 3) writeonly buffer Sizes { ivec4 sizes[]; };
void main() {
    const ivec2 p = ivec2(gl_GlobalInvocationID.xy);
    if (all(equal(p, ivec2(0))))
        sizes[0] = ivec4(imageSize(Counts), imageSamples(Target)) * ivec4(1, 1, 1, textureSamples(Source));
    if (any(greaterThanEqual(p, textureSize(Source)))) return;
    for (int s = 0; s < imageSamples(Target); s++) {
        imageStore(Target, p, s, imageLoad(Target, p, s) + texelFetch(Source, p.xy, 3 - s));
        imageAtomicAdd(Counts, ivec3(1, 0, p.y % 3), s, uint(p.x + 1));
    }
}"""


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("layers", [(), (3,)])
def test_samples_come_back(any_device, layers, dtype):
    for channels in ((), (1,), (2,), (3,), (4,)):
        array = values((*layers, 5, 7, SAMPLES, *channels), dtype)
        # SwiftShader says that it has no samples of these.
        if "SwiftShader" in any_device.name and dtype in ("i1", "i2"):
            with pytest.raises(vkops.InvalidDescError, match="must be none on 'SwiftShader"):
                any_device.image(array, layers=bool(layers), samples=True)
            continue
        image = any_device.image(array, layers=bool(layers), samples=True)
        assert (image.shape, image.samples, image.nbytes) == (array.shape, SAMPLES, array.nbytes)
        assert image.numpy().tobytes() == array.tobytes()
        turned = any_device.tensor(np.ascontiguousarray(array[..., ::-1]))[..., ::-1]
        again = any_device.image(turned, layers=bool(layers), samples=True)
        assert again.tensor().numpy().tobytes() == array.tobytes()


def test_formats_that_shaders_cannot_store(device):
    """The copies of vkops store samples through views of another format."""
    array = values((5, 7, SAMPLES, 4), "u1")
    image = device.image(array, samples=True, format="rgba8_srgb")
    assert image.numpy().tobytes() == array.tobytes()


def test_an_image_of_a_shape_is_zeros(device):
    junk = device.image(np.full((64, 64, SAMPLES), 255, np.uint8), samples=True)
    del junk
    image = device.image((64, 64, SAMPLES), format="rgba8", samples=True)
    assert (image.shape, image.dtype) == ((64, 64, SAMPLES, 4), np.uint8)
    assert not image.numpy().any()


@pytest.mark.parametrize(
    "key", [np.s_[1], np.s_[:, 2:5, 3:4], np.s_[-1, 1:, :-2], np.s_[0:2, 3], np.s_[2, 4, 5]]
)
@pytest.mark.parametrize("channels", [(), (3,)])
def test_rectangles_and_layers(any_device, key, channels):
    array = values((3, 5, 6, SAMPLES, *channels), np.uint8)
    image = any_device.image(array, layers=True, samples=True)
    np.testing.assert_array_equal(image[key].numpy(), array[key])
    pixels = values(array[key].shape, np.uint8, 1)
    for value in (pixels, any_device.tensor(pixels), 7):
        image[key] = value
        array[key] = np.asarray(value)
        np.testing.assert_array_equal(image.numpy(), array)


def test_memory_in_several_pieces(device, monkeypatch, change_device):
    """Each range of memory has dispatches of its own, and each dispatch so many samples."""
    change_device(max_range=2048)
    monkeypatch.setattr(image_samples, "MAX_SAMPLES", 1024)
    for dtype, channels in (("u1", ()), ("u2", (3,)), ("u4", (4,))):
        array = values((19, 37, SAMPLES, *channels), dtype)
        image = device.image(device.tensor(array), samples=True)
        np.testing.assert_array_equal(image.numpy(), array)


@pytest.mark.parametrize("as_images", [False, True])
def test_shaders_read_and_write_samples(device, as_images):
    """Tensors are copied to images, and back if the shader writes them."""
    source, target = values((5, 7, SAMPLES, 4), "u1"), np.zeros((5, 7, SAMPLES, 4), np.uint8)
    counts, sizes = np.zeros((3, 2, 2, SAMPLES), np.uint32), np.zeros(4, np.int32)
    arrays = {"Target": target, "Source": source, "Counts": counts}
    bound = {
        name: device.image(array, layers=array is counts, samples=True)
        if as_images
        else device.tensor(array)
        for name, array in arrays.items()
    }
    bound["Sizes"] = device.tensor(sizes)
    device.compile_shader(HEAD + SHIFT)(**bound, threads=(7, 5))
    report = check(HEAD + SHIFT, {**arrays, "Sizes": sizes}, threads=(7, 5))
    assert report.ok, str(report)
    np.testing.assert_array_equal(report.buffers["Target"], source[:, :, ::-1])
    for name, array in (arrays | report.buffers).items():
        np.testing.assert_array_equal(bound[name].numpy(), array, err_msg=name)
    assert bound["Sizes"].tolist() == [2, 2, 3, 16]


def test_an_output_and_a_layer(device):
    text = """layout(binding = 0) uniform usampler2DMS Source;
    layout(binding = 1, r8ui) writeonly uniform uimage2DMS Target;
    void main() {
        const ivec2 p = ivec2(gl_GlobalInvocationID.xy);
        if (any(greaterThanEqual(p, imageSize(Target)))) return;
        for (int s = 0; s < 4; ++s) imageStore(Target, p, s, texelFetch(Source, p, s) + 1u);
    }"""
    shader = device.compile_shader(HEAD + text)
    array = values((2, 5, 6, SAMPLES), "u1") // 2
    image = device.image(array, layers=True, samples=True)
    result = shader(image[1], out="Source", threads=(6, 5))
    np.testing.assert_array_equal(result.numpy(), array[1] + 1)
    part = shader(image[1, 1:4, 2:5], out="Source", threads=(6, 5))
    np.testing.assert_array_equal(part.numpy(), array[1, 1:4, 2:5] + 1)


def test_checked_programs(device):
    array = values((5, 7, SAMPLES), "f4")
    text = """layout(binding = 0, r32f) uniform image2DMS I;
    void main() {
        const ivec2 p = ivec2(gl_GlobalInvocationID.xy);
        if (p.x < 7 && p.y < 5) imageStore(I, p, NUMBER, imageLoad(I, p, 1) * 2);
    }"""
    image = device.image(array, samples=True)
    with vkops.debug.checking(strict=True, kernels=True) as checks:
        device.compile_shader(HEAD + text, defines={"NUMBER": 1})(image, threads=(7, 5))
        wrong = device.compile_shader(HEAD + text, defines={"NUMBER": 4})
        with pytest.raises(vkops.debug.CheckError, match=r"index \(0, 0, sample 4\) of 'I'"):
            wrong(image, threads=(7, 5))
    assert checks.checked == 1
    array[..., 1] *= 2
    np.testing.assert_array_equal(image.numpy(), array)


def test_a_trace_compares_with_a_device(device, adapter, tmp_path, monkeypatch, capsys):
    device.compile_shader(HEAD + SHIFT)
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("VKOPS_EXPECT", raising=False)
    (tmp_path / "x.comp").write_text(HEAD + SHIFT)
    np.save("source.npy", values((5, 7, SAMPLES, 4), "u1"))
    options = [
        "--bind", "Target=uint8:5x7x4x4", "--bind", "Source=source.npy",
        "--bind", "Counts=uint32:3x2x2x4", "--bind", "Sizes=16", "--threads", "7,5",
    ]  # fmt: skip
    assert main(["debug", "trace", "x.comp", "--compare", adapter.name, *options]) == 0
    assert capsys.readouterr().out.endswith(f"All outputs are the same on '{adapter.name}'\n")


@pytest.mark.parametrize("number", [-1, SAMPLES, 1000, 2**31 - 1])
def test_accesses_to_samples_outside_are_discarded(device, number):
    """Neighbours in memory stay as they are."""
    text = """layout(binding = 0, r32ui) uniform uimage2DMS I;
    layout(binding = 1) uniform usampler2DMS S;
    layout(std430, binding = 2) buffer O { uint o[]; };
    layout(push_constant) uniform Push { int number; };
    void main() {
        const ivec2 p = ivec2(gl_GlobalInvocationID.xy);
        o[0] |= imageLoad(I, p, number).x | texelFetch(S, p, number).x;
        imageStore(I, p, number, uvec4(9));
        imageAtomicAdd(I, p, number, 8);
    }"""
    fives = np.full((8, 8, SAMPLES), 5, np.uint32)
    images = [device.image(fives, samples=True) for _ in range(3)]
    seen = device.tensor(np.zeros(1, np.uint32))
    shader = device.compile_shader(HEAD + text)
    shader(images[1], images[1], seen, number=number, threads=(8, 8))
    for image in images:
        np.testing.assert_array_equal(image.numpy(), fives)
    # SwiftShader reads another sample, whatever the device's features say.
    assert seen.tolist() == ([5] if "SwiftShader" in device.name else [0])


def test_notebooks_show_the_first_samples(device):
    array = values((5, 7, SAMPLES, 4), "u1")
    images = device.image(array, samples=True), device.image(array[:, :, 0].copy())
    one, two = (re.search("base64,[^\"']*", image._repr_html_())[0] for image in images)
    assert one == two


def test_uses_that_are_refused(device, message):
    image = device.image((4, 4, SAMPLES), samples=True)
    several = device.compile_shader(
        f"{HEAD}layout(binding = 0, r32f) uniform image2DMS I; void main() {{ imageStore(I, ivec2(0), 0, vec4(0)); }}",
        name="x",
    )
    one = device.compile_shader(
        f"{HEAD}layout(binding = 0, r32f) uniform image2D I; void main() {{ imageStore(I, ivec2(0), vec4(0)); }}",
        name="x",
    )
    check_refusals(
        message,
        lambda: device.image((4, 4, 3), samples=True),
        lambda: device.image((4, 4), samples=True),
        lambda: device.image((4, 4, SAMPLES), samples=4),
        lambda: device.image((4, SAMPLES), dims=1, samples=True),
        lambda: device.image((4, 4, SAMPLES), mips=2, samples=True),
        lambda: image[1, 2, 3],
        lambda: image[..., 1],
        lambda: several(device.tensor(np.zeros((4, 4, 3), np.float32)), groups=1),
    )
    for shader, bound, what in (
        (several, device.image((4, 4)), "2 dimensions with samples for r32f image2DMS"),
        (one, image, "2 dimensions for r32f image2D"),
    ):
        with pytest.raises(
            vkops.BindingError, match=rf"I: got <.*, must be an image of {what} \[SH-13\]"
        ):
            shader(bound, groups=1)


def test_what_a_device_lacks_is_refused(device, change_device):
    device.image((4, 4, SAMPLES), samples=True)
    with pytest.raises(vkops.InvalidDescError, match=r"samples: got 64 samples, must be .*4.* on "):
        device.image((4, 4, 64), samples=True)
    change_device(features=frozenset())
    with pytest.raises(
        vkops.InvalidDescError, match="samples: needs shaderStorageImageMultisample"
    ):
        device.image((4, 4, SAMPLES), samples=True)
