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
    made = model(
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
    (tmp_path / "m.json").write_text(json.dumps(made))
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
    made = model(
        {
            "A": {"initialValuesDataType": "FLOAT32", "initialValues": {"sourcePath": "p.png"}},
            "B": zeros(90),
        },
        {"copy": {"type": "ELEMENT_WISE_IDENTITY", "desc": {"InputTensor": sizes, "OutputTensor": sizes}}},
        dispatch("copy", InputTensor="A", OutputTensor="B"),
        {"type": "writeFile", "resource": "B", "targetPath": "b.png"},
    )  # fmt: skip
    with open("m.json", "w") as file:
        json.dump(made, file)
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
    found = files("r.png")
    assert np.abs(found[..., :3] - HALF).max() <= 1
    assert found.shape[2] == (4 if "x4" in out else 3)


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
