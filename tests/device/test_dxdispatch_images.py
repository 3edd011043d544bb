"""Images, textures and texel buffers in models and in ``vkops shader run``, from and to pictures."""

from __future__ import annotations

import io
import json

import numpy as np
import pytest
from models import dispatch, model, resource, zeros

from vkops.cli import main
from vkops.system import pictures

SHADER = """#version 450
layout(local_size_x = 4, local_size_y = 4) in;
layout(binding = 0) uniform sampler2D Picture;
layout(binding = 1, rgba8) writeonly uniform image2D Result;
layout(binding = 2) uniform samplerBuffer Gain;
void main() {
    ivec2 at = ivec2(gl_GlobalInvocationID.xy), size = imageSize(Result);
    if (any(greaterThanEqual(at, size))) return;
    vec4 texel = texture(Picture, (vec2(at) + vec2(SHIFT + 0.5, 0.5)) / vec2(size));
    imageStore(Result, at, vec4(texel.rgb * texelFetch(Gain, 1).y, 1));
}"""
PIXELS = np.random.default_rng(1).integers(0, 256, (6, 5, 3), np.uint8)
GAIN = np.float32([1, 2, 3, 0.5])
HALF = np.rint(PIXELS * 0.5)


@pytest.fixture
def files(tmp_path, monkeypatch):
    """Files of a shader, a picture and an array in the current folder; reads a picture there."""
    (tmp_path / "s.comp").write_text(SHADER)
    (tmp_path / "p.png").write_bytes(pictures.encoded(PIXELS, ".png"))
    np.save(tmp_path / "g.npy", GAIN.reshape(2, 2))
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("VKOPS_EXPECT", raising=False)
    return lambda name: pictures.read(io.BytesIO((tmp_path / name).read_bytes())).astype(float)


def test_a_model_with_images(files, adapter, cap, tmp_path):
    shader = {"type": "glsl", "sourcePath": "s.comp", "compilerArgs": ["-DSHIFT=1"]}
    nearest = {"Picture": {"filter": "nearest", "address": "repeat"}}
    document = model(
        {
            "Picture": {"initialValues": {"sourcePath": "p.png"}},
            "Result": zeros(96, "UINT8"),
            "Gain": resource("FLOAT32", [9, *GAIN.tolist()]),
        },
        {"half": {**shader, "samplers": nearest}},
        {
            **dispatch(
                "half",
                Picture="Picture",
                Result={"name": "Result", "elementOffset": 6, "shape": [6, 5, 3]},
                Gain={"name": "Gain", "elementOffset": 1, "format": "R32G32_FLOAT"},
            ),
            "threadGroupCount": [2, 2, 1],
        },
        {"type": "print", "resource": "Result"},
        {"type": "writeFile", "resource": "Result", "targetPath": "r.npy"},
        {"type": "writeFile", "resource": "Result", "targetPath": "r.png", "dimensions": [32, 1, 3]},
        {"type": "writeFile", "resource": "Result", "targetPath": "r.jpg", "dimensions": [2, 2, 3, 3]},
    )  # fmt: skip
    (tmp_path / "m.json").write_text(json.dumps(document))
    assert main(["run", "m.json", "-a", adapter.name]) == 0
    seen = cap.readouterr()
    assert "Failed to write resource to file" in seen.err
    assert "r.jpg': got (2, 2, 3, 3) uint8, must be" in seen.err
    stored = np.load("r.npy")
    assert np.abs(stored[6:].reshape(PIXELS.shape) - np.roll(HALF, -1, 1)).max() <= 1
    assert not stored[:6].any()
    np.testing.assert_array_equal(files("r.png").ravel(), stored)


def test_dxdispatch_copies_a_picture_as_floats(files, adapter):
    sizes = {"DataType": "FLOAT32", "Sizes": [1, 3, 6, 5]}
    document = model(
        {
            "A": {"initialValuesDataType": "FLOAT32", "initialValues": {"sourcePath": "p.png"}},
            "B": zeros(90),
        },
        {"copy": {"type": "ELEMENT_WISE_IDENTITY", "desc": {"InputTensor": sizes, "OutputTensor": sizes}}},
        dispatch("copy", InputTensor="A", OutputTensor="B"),
        {"type": "writeFile", "resource": "B", "targetPath": "b.png"},
    )  # fmt: skip
    with open("m.json", "w") as file:
        json.dump(document, file)
    assert main(["run", "m.json", "-a", adapter.name]) == 0
    np.testing.assert_array_equal(files("b.png"), PIXELS)


@pytest.mark.parametrize(
    ("bind", "out", "output"),
    [
        (["Picture:p.png", "Gain:g.npy"], "Result:uint8:6x5x3", "Result:r.png"),
        (["Picture=p.png", "Gain=g.npy"], "Result:uint8:6x5x4", "r.png"),
        (["p.png"], "uint8:6x5x3", "r.png"),
    ],
)
def test_a_shader_with_pictures(files, adapter, capsys, bind, out, output):
    arguments = [part for text in bind for part in ("--bind", text)]
    if len(bind) == 1:
        np.savez("g.npz", Gain=GAIN.reshape(2, 2))
        arguments += ["--bind", "g.npz"]
    command = ["shader", "run", "s.comp", "-DSHIFT=0", *arguments, "--out", out, "--threads", "5,6"]
    assert main([*command, "-a", adapter.name, "--output", output]) == 0, capsys.readouterr().err
    pixels = files("r.png")
    assert np.abs(pixels[..., :3] - HALF).max() <= 1
    assert pixels.shape[2] == (4 if "x4" in out else 3)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--bind", "s.comp.png", "--out", "Result:uint8:6x5x3"], "not a picture"),
        (["--bind", "p.png", "--out", "Result:uint8:6x5x6"], "channels"),
        (["--bind", "p.png", "--out", "Result:uint8:6x5"], "declared channels"),
        (["--bind", "p.png", "--out", "Result:int32:6x5x4", "--output", "r.png"], "declared type"),
        (["--bind", "p.png", "--out", "Result:uint8:6x5x4", "--output", "r.jpg"], "JPEG"),
        (["--bind", "p.png", "--out", "Result:uint8:6x5x4", "--output", "r.gif"], "suffix"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_refused_pictures(files, adapter, capsys, tmp_path, message, arguments, said):
    (tmp_path / "s.comp.png").write_text(SHADER)
    command = ["shader", "run", "s.comp", "-DSHIFT=0", *arguments, "--bind", "Gain:g.npy"]
    assert main([*command, "--threads", "5,6", "-a", adapter.name]) == 1
    message(capsys.readouterr().err.strip())


ARRAYS = """#version 450
layout(local_size_x = 4, local_size_y = 4) in;
layout(binding = 0) uniform texture2D Textures[3];
layout(binding = 1) uniform sampler Samplers[2];
layout(binding = 2) uniform sampler2D Both[2];
layout(binding = 3, r32f) uniform image2D Images[2];
layout(binding = 4) readonly buffer Rows { float row[]; } rows[2];
layout(binding = 5) uniform samplerBuffer Texels[2];
void main() {
    ivec2 at = ivec2(gl_LocalInvocationID.xy);
    vec2 there = (vec2(at) + 0.5) / 2;  // outside of a texture of 2 x 2 texels
    float own = textureLod(sampler2D(Textures[2], Samplers[0]), there, 0).x
        + 100 * textureLod(sampler2D(Textures[0], Samplers[1]), there, 0).x
        + 1000 * textureLod(Both[1], there, 0).x
        + 10000 * rows[1].row[at.x] + 100000 * texelFetch(Texels[1], at.y / 2).x;
    imageStore(Images[1], at, own + imageLoad(Images[0], at));
}"""
SMALL = [np.arange(4, dtype=np.float32).reshape(2, 2) + 4 * n for n in range(3)]
BORDER = [{"filter": "nearest", "address": each} for each in ("repeat", "border")]
LISTS = {
    "Textures": "abc", "Both": "bc", "Images": "xy", "Rows": "ac", "Texels": "ab",
}  # fmt: skip


@pytest.fixture
def arrays(files, tmp_path):
    """Files of a shader with arrays and of what it is bound to; the result that it must have."""
    (tmp_path / "arrays.comp").write_text(ARRAYS)
    for name, values in zip("abc", SMALL, strict=True):
        np.save(f"{name}.npy", values)
    for name in "xy":
        np.save(f"{name}.npy", np.full((4, 4), 0.25, np.float32))
    first, second, third = SMALL
    sampled = np.pad(third, (0, 2), "wrap") + 100 * np.pad(first, (0, 2))
    rows = 10000 * third.ravel() + 100000 * second[:, 0].repeat(2)[:, None]
    return sampled + rows + 0.25


def model_of_arrays(samplers=BORDER, **changed):
    """A model with a list for each array."""
    bindings = {name: [*each] for name, each in (LISTS | changed).items()}
    one = {"filter": "nearest", "address": "repeat"}
    shader = {"type": "glsl", "sourcePath": "arrays.comp"}
    return model(
        {name: {"initialValues": {"sourcePath": f"{name}.npy"}} for name in "abcxy"},
        {"s": {**shader, "samplers": {"Samplers": samplers, "Both": one}}},
        dispatch("s", **bindings),
        {"type": "writeFile", "resource": "y", "targetPath": "r.npy"},
    )


def test_a_model_with_arrays(arrays, adapter, capsys):
    with open("m.json", "w") as file:
        json.dump(model_of_arrays(), file)
    assert main(["run", "m.json", "-a", adapter.name]) == 0, capsys.readouterr().err
    expected = arrays + 1000 * np.pad(SMALL[2], (0, 2), "wrap")
    np.testing.assert_array_equal(np.load("r.npy"), expected.ravel())
    for command in (["check"], ["explain"], ["debug", "check"]):
        assert main([*command, "m.json"]) == 0, capsys.readouterr().err
    trace = ["debug", "trace", "m.json", "5", "--output", "Images[1]"]
    capsys.readouterr()
    assert main([*trace, "--compare", adapter.name]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[1].startswith("All outputs are the same on ")
    assert lines[2].startswith(f"arrays.comp:16: Images[1](1, 1) = {expected[1, 1]}, by")


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"Textures": "ab"}, "Textures: got a list of 2, must be a list of 3"),
        ({"Rows": "acb"}, "Rows: got a list of 3, must be a list of 2"),
        ({"samplers": BORDER + BORDER}, "samplers.Samplers"),
    ],
    ids=lambda each: "_".join(each) if isinstance(each, dict) else "",
)
def test_refused_arrays_in_models(arrays, capsys, message, change, said):
    with open("m.json", "w") as file:
        json.dump(model_of_arrays(**change), file)
    assert main(["check", "m.json"]) == 1
    message(capsys.readouterr().err.strip(), said)


def given(option, separator, **changed):
    """The files of all arrays as arguments of a command."""
    lists = LISTS | changed
    named = [f"{name}{separator}{each}.npy" for name, own in lists.items() for each in own]
    return [part for text in named for part in (option, text)]


def test_arrays_on_the_command_line(arrays, adapter, capsys):
    """They have the default samplers, as the interpreter has, which is compared."""
    command = ["shader", "run", "arrays.comp", *given("--bind", ":", Images="x")]
    out = ["--out", "Images:float32:4x4", "--output", "Images[1]:r.npy"]
    assert main([*command, *out, "-a", adapter.name]) == 0, capsys.readouterr().err
    texel = SMALL[2] + 100 * SMALL[0] + 1000 * SMALL[2]
    rest = 10000 * SMALL[2].ravel()[0] + 100000 * SMALL[1].ravel()[0] + 0.25
    assert np.load("r.npy")[0, 0] == texel[0, 0] + rest
    assert main(["debug", "check", "arrays.comp", *given("--bind", "=")]) == 0
    compare = ["debug", "trace", "arrays.comp", "--compare", adapter.name]
    assert main([*compare, *given("--bind", "=")]) == 0, capsys.readouterr().err
    assert main([*command, "--bind", "Rows:a.npy", *out, "-a", adapter.name]) == 1
    assert "Rows: got a list of 3, must be a list of 2" in capsys.readouterr().err
