"""Images whose texels have several samples, in the interpreter."""

from __future__ import annotations

import numpy as np
import pytest

from vkops.cli import main
from vkops.debug import check
from vkops.errors import BindingError
from vkops.gpu.run.image_samples import copying

TEXT = """#version 450
layout(local_size_x = 8) in;
layout(binding = 0, FORMAT) uniform KINDimage2DMSFORM A;
layout(binding = 1) uniform KINDsampler2DMSFORM T;
layout(std430, binding = 2) writeonly buffer O { TYPE o[]; };
void main() { int i = int(gl_LocalInvocationIndex); BODY }"""


def text(body, form="", format_="r32f", kind="", type_="vec4"):
    names = {"FORMAT": format_, "KIND": kind, "FORM": form, "TYPE": type_, "BODY": body}
    result = TEXT
    for name, value in names.items():
        result = result.replace(name, value)
    return result


@pytest.mark.parametrize("samples", [2, 4, 8, 16, 32, 64])
@pytest.mark.parametrize("layers", [0, 3])
def test_samples_are_elements_of_the_axis_behind_the_sizes(samples, layers):
    shape = (*[layers] * bool(layers), 2, 5, samples)
    source = np.random.default_rng(1).integers(0, 1 << 32, (*shape, 4), dtype=np.uint32)
    at = "ivec3(i % 5, i / 5 % 2, z)" if layers else "ivec2(i % 5, i / 5 % 2)"
    body = f"for (int z = 0; z < {layers or 1}; z++) for (int s = 0; s < imageSamples(A); s++)"
    body += f" for (; i < 10; i += 8) imageStore(A, {at}, s, texelFetch(T, {at}, textureSamples(T) - 1 - s));"
    body = body.replace("for (; i < 10; i += 8)", "for (int k = i; k < 10; k += 8)")
    body = body.replace("i % 5", "k % 5").replace("i / 5", "k / 5")
    sizes = "imageSize(A).xyz" if layers else "imageSize(A), textureSize(T).x"
    body += f" o[i] = uvec4({sizes}, imageSamples(A)) + imageLoad(A, {at.replace('z', '0')}, i % 2) * 0;"
    shader = text(body, "Array" * bool(layers), "rgba32ui", "u", "uvec4")
    report = check(shader, {"A": np.zeros_like(source), "T": source, "O": 128})
    assert report.ok, str(report)
    np.testing.assert_array_equal(report.buffers["A"], source[..., ::-1, :])
    wanted = [5, 2, layers or 5, samples]
    np.testing.assert_array_equal(report.buffers["O"].reshape(8, 4), [wanted] * 8)


def test_atomic_operations_change_one_sample():
    body = "imageAtomicAdd(A, ivec2(1, 0), i % 4, uint(i + 1)); o[i] = uvec4(0);"
    given = np.zeros((2, 3, 4), np.uint32)
    shader = text(body, format_="r32ui", kind="u", type_="uvec4")
    report = check(shader, {"A": given, "T": given, "O": 128})
    assert report.ok, str(report)
    given[0, 1] = [6, 8, 10, 12]
    np.testing.assert_array_equal(report.buffers["A"], given)


@pytest.mark.parametrize(
    ("body", "kind", "text_", "count"),
    [
        ("imageStore(A, ivec2(1, 0), i / 2, vec4(i)); o[i] = vec4(0);", "data race", "'A(1, 0, sample 0)' in an image", 4),
        ("imageStore(A, ivec2(i / 4, 1), i % 4, vec4(i)); o[i] = vec4(0);", "", "", 0),
        ("imageStore(A, ivec2(i / 4, 0), i % 4, vec4(i)); o[i] = imageLoad(A, ivec2(1 - i / 4, 0), 2);",
         "data race", "'A(1, 0, sample 2)' in an image", 8),
        ("imageStore(A, ivec2(i % 3, i / 3), 1, vec4(i)); barrier(); o[i] = imageLoad(A, ivec2(1 + i / 8, 0), 1);",
         "plain barrier", "'A(1, 0, sample 1)' in an image", 7),
        ("o[i] = imageLoad(A, ivec2(1, 0), i);", "out of bounds",
         "index (1, 0, sample 4) of 'A' is out of bounds: it has 5 x 3 texels of 4 samples", 4),
        ("o[i] = imageLoad(A, ivec2(i, 0), 3);", "out of bounds", "index (5, 0, sample 3) of 'A'", 3),
        ("imageStore(A, ivec2(1, 0), -i, vec4(1)); o[i] = vec4(0);", "out of bounds", "index (1, 0, sample -1) of 'A'", 7),
        ("o[i] = texelFetch(T, ivec2(1), i);", "out of bounds",
         "index (1, 1, sample 2) of 'T' is out of bounds: it has 4 x 4 texels of 2 samples", 6),
    ],
)  # fmt: skip
def test_findings_are_of_samples(body, kind, text_, count):
    given = {"A": np.zeros((3, 5, 4), np.float32), "T": np.zeros((4, 4, 2), np.uint8), "O": 128}
    report = check(text(body), given)
    assert [(each.kind, each.count) for each in report.findings] == [(kind, count)] * bool(kind)
    assert all(text_ in each.message for each in report.findings), str(report)


@pytest.mark.parametrize(
    "given", [np.zeros(4), np.zeros((3, 5)), np.zeros((3, 5, 1)), np.zeros((3, 5, 3)), np.zeros((3, 5, 128)),
              [np.zeros((4, 4, 4)), np.zeros((2, 2, 4))]],
)  # fmt: skip
def test_arrays_without_several_samples_are_refused(given, message):
    levels = [each.astype(np.float32) for each in (given if isinstance(given, list) else [given])]
    arrays = levels if isinstance(given, list) else levels[0]
    other = np.zeros((4, 4, 2), np.float32)
    with pytest.raises(BindingError) as caught:
        check(text("o[i] = imageLoad(A, ivec2(0), 0);"), {"A": arrays, "T": other, "O": 128})
    message(caught.value, "A: ", "[SH-13]")


def test_commands_take_files_and_zeros(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    np.save("t.npy", np.arange(24, dtype=np.float32).reshape(2, 3, 4))
    body = "imageStore(A, ivec2(i % 3, 1), i / 3, texelFetch(T, ivec2(i % 3, 0), 3 - i / 3)); o[i] = vec4(0);"
    (tmp_path / "x.comp").write_text(text(body))
    options = ["x.comp", "--bind", "A=float32:2x3x4", "--bind", "T=t.npy", "--bind", "O=128"]
    assert main(["debug", "check", *options]) == 0
    assert capsys.readouterr().out == "x.comp: nothing was found\n"
    assert main(["debug", "trace", options[0], "17", "--output", "A", *options[1:]]) == 0
    first = capsys.readouterr().out.splitlines()[0]
    assert first == "x.comp:6: A(1, 1, sample 1) = 6.0, by invocation (4, 0, 0)"


@pytest.mark.parametrize("nbytes", [1, 2, 4, 8, 16])
@pytest.mark.parametrize("layers", [(), (2,)])
@pytest.mark.parametrize("into", [False, True])
def test_the_shader_that_copies_boxes_of_samples(nbytes, layers, into):
    """In two dispatches, of which the first copies whole words; nothing around the box is read or written."""
    dtype, channels = np.dtype(f"u{min(nbytes, 4)}"), max(nbytes // 4, 1)
    rng = np.random.default_rng(1)
    image = rng.integers(
        0, 1 << 8 * dtype.itemsize, (*layers, 4, 6, 4, channels), dtype, endpoint=False
    )
    box = np.s_[..., 1:4, 2:5, :, :]
    shape = image[box].shape
    packed = rng.integers(0, 256, -(-image[box].nbytes // 4) * 4, np.uint8)
    wanted = image.copy(), packed.copy()
    if into:
        wanted[0][box] = np.ndarray(shape, dtype, packed)
    else:
        np.ndarray(shape, dtype, wanted[1])[:] = image[box]
    count, half = int(np.prod(shape[:-1])), 32
    for first, some in ((0, half), (half, count - half)):
        words = packed[first * nbytes :][: some * nbytes].view(np.uint32)
        report = check(
            copying(nbytes, has_layers=bool(layers), into=into),
            {"image": image, "Texels": words},
            threads=-(-some * nbytes // max(nbytes, 4)),
            push=(first, some, 2, 1, 0, 3, 3, 4),
        )
        assert report.ok, str(report)
        image = report.buffers.get("image", image)
        words[:] = report.buffers.get("Texels", words)
    np.testing.assert_array_equal(image, wanted[0])
    np.testing.assert_array_equal(packed, wanted[1])
