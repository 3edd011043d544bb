"""Pictures that are read and written, and images, texels and samplers in models, without a device."""

import io
import json
from pathlib import Path

import numpy as np
import pytest
from models import dispatch, model, zeros
from PIL import Image
from refusals import fault

from vkops.cli import main
from vkops.dml import FeatureLevel
from vkops.dxdispatch import load_model, prepare
from vkops.errors import ModelError
from vkops.system import pictures

GREY, COLOURS = np.arange(12, dtype=np.uint8).reshape(3, 4), np.arange(48, dtype=np.uint8)


@pytest.mark.parametrize(
    "pixels",
    [GREY, GREY.astype(np.uint16) * 5000, *(COLOURS[: 12 * n].reshape(3, 4, n) for n in (2, 3, 4))],
    ids=["grey", "grey of 16 bits", "grey and opacity", "colours", "colours and opacity"],
)
def test_pixels_come_back(pixels):
    back = pictures.read(io.BytesIO(pictures.encoded(pixels, ".png")))
    assert back.dtype == pixels.dtype
    np.testing.assert_array_equal(back, pixels)


@pytest.mark.parametrize(
    ("mode", "shape"), [("1", ()), ("P", (3,)), ("CMYK", (3,)), ("L", ()), ("RGB", (3,))]
)
def test_pictures_of_other_kinds_are_converted(mode, shape):
    file = io.BytesIO()
    source = Image.fromarray(np.full((4, 6, 3), 255, np.uint8)).convert(mode)
    source.save(file, "JPEG" if mode == "CMYK" else "PNG")
    pixels = pictures.read(file)
    assert (pixels.shape, pixels.dtype) == ((4, 6, *shape), np.uint8)
    assert pixels.min() == 255


def test_floats_are_from_0_to_1():
    floats = np.float32([[0, 0.5, 1], [-3, 7, np.nan]])[..., None]
    pixels = pictures.read(io.BytesIO(pictures.encoded(floats, ".png")))
    np.testing.assert_array_equal(pixels, [[0, 128, 255], [0, 255, 0]])


@pytest.mark.parametrize(
    "pixels",
    [
        GREY.astype(np.int32),
        COLOURS.reshape(2, 4, 6),
        COLOURS.reshape(4, 4, 3).astype(np.uint16),
        COLOURS,
    ],
    ids=["int32", "6 channels", "colours of 16 bits", "no rows"],
)
def test_arrays_that_are_no_pictures(pixels, message):
    message(fault(lambda: pictures.encoded(pixels, ".png"), pictures.PictureError))
    with pytest.raises(pictures.PictureError):
        pictures.encoded(COLOURS.reshape(3, 4, 4), ".jpg")


def test_files_that_are_no_pictures(message, monkeypatch):
    file = pictures.encoded(np.zeros((64, 64), np.uint8), ".png")
    for data in (b"", file[:40]):
        message(fault(lambda data=data: pictures.read(io.BytesIO(data)), pictures.PictureError))
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 3000)
    said = fault(lambda: pictures.read(io.BytesIO(file)), pictures.PictureError)
    assert said.startswith("has more pixels than Pillow reads: ")


# -- models ----------------------------------------------------------------------------------------

SHADER = """#version 450
layout(binding = 0) uniform sampler2D Picture;
layout(binding = 1, rgba8) uniform image2D Result;
layout(binding = 2, r32f) uniform imageBuffer Gain;
layout(binding = 3) uniform sampler Smooth;
layout(binding = 4) uniform texture2D Other;
void main() {
    vec4 all = imageLoad(Gain, 0) + texture(sampler2D(Other, Smooth), vec2(0));
    imageStore(Result, ivec2(0), texture(Picture, vec2(0)) + all);
}"""
BINDINGS = {
    "Picture": "P", "Result": {"name": "R", "shape": [3, 4, 3]}, "Gain": "G", "Other": "P",
}  # fmt: skip


@pytest.fixture(autouse=True)
def _files(tmp_path):
    (tmp_path / "s.comp").write_text(SHADER)
    (tmp_path / "p.png").write_bytes(pictures.encoded(COLOURS.reshape(3, 4, 4), ".png"))


def of_images(bindings, resource=(), command=(), **shader):
    resources = {
        "P": {"initialValues": {"sourcePath": "p.png"}, **dict(resource)},
        "R": zeros(36, "UINT8"),
        "G": zeros(6),
        "Words": {"initialValues": [{"type": "UINT32", "value": 1}]},
        "Numbers": zeros(12, "INT32"),
    }
    write = {"type": "writeFile", "resource": "R", "targetPath": "r.png", **dict(command)}
    dispatchable = {"type": "glsl", "sourcePath": "s.comp", **shader}
    command = dispatch("s", **{k: v for k, v in {**BINDINGS, **bindings}.items() if v})
    return model(resources, {"s": dispatchable}, command, write)


@pytest.mark.parametrize(
    ("bindings", "point", "expected"),
    [
        ({}, "Picture", ((3, 4, 4), "u1", 48)),
        ({}, "Result", ((3, 4, 3), "u1", 36)),
        ({}, "Gain", ((6,), "f4", 24)),
        ({"Picture": {"name": "G", "shape": [1, 2], "elementOffset": 3}}, "Picture", ((1, 2), "f4", 8)),
        ({"Picture": {"name": "Words", "shape": [1, 1], "format": "R16G16_FLOAT"}}, "Picture", None),
        ({"Picture": {"name": "Words", "shape": [1, 1, 2], "format": "DXGI_FORMAT_R16G16_FLOAT"}}, "Picture", ((1, 1, 2), "f2", 4)),
        ({"Result": {"name": "P", "format": "rgba8"}}, "Result", ((3, 4, 4), "u1", 48)),
        ({"Result": {"name": "P", "format": "UNKNOWN"}}, "Result", ((3, 4, 4), "u1", 48)),
        ({"Gain": {"name": "G", "elementOffset": 2, "elementCount": 3}}, "Gain", ((4,), "f4", 16)),
    ],
)  # fmt: skip
def test_shapes_and_types_of_bindings(load, bindings, point, expected):
    if expected is None:
        assert "[SH-14]" in fault(lambda: load(of_images(bindings)), ModelError)
        return
    (bound, _) = prepare(load(of_images(bindings)), FeatureLevel.LATEST).commands
    source = next(block.source for block in bound.inputs if block.name == point)
    shape, dtype, nbytes = expected
    assert (source.shape, source.dtype, source.nbytes) == (shape, np.dtype(dtype), nbytes)


REFUSED = {
    "no shape": of_images({"Result": "R"}),
    "no rows": of_images({"Result": {"name": "R", "shape": [36]}}),
    "channels": of_images({"Result": {"name": "R", "shape": [3, 4, 5]}}),
    "empty": of_images({"Result": {"name": "R", "shape": [0, 4, 4]}}),
    "few bytes": of_images({"Result": {"name": "R", "shape": [4, 4, 4]}}),
    "type": of_images({"Result": {"name": "Numbers", "shape": [3, 4]}}),
    "no type": of_images({"Result": {"name": "Words", "shape": [1, 1]}}),
    "other format": of_images({"Result": {"name": "P", "format": "R8G8B8A8_UINT"}}),
    "unknown format": of_images({"Result": {"name": "P", "format": "R8G8"}}),
    "type of texels": of_images({"Gain": "Numbers"}),
    "sampler": of_images({"Smooth": "P"}),
    "not bound": of_images({"Result": None}),
    "samplers for a texture": of_images({}, samplers={"Other": {}}),
    "filter": of_images({}, samplers={"Smooth": {"filter": "cubic"}}),
    "type of a picture": of_images({}, resource={"initialValuesDataType": "INT32"}),
    "resampled": of_images({}, resource={"resampleSize": [1, 3, 8, 8]}),
    "type of a written picture": of_images({}, command={"resource": "Numbers"}),
}


@pytest.mark.parametrize("made", REFUSED.values(), ids=REFUSED)
def test_models_that_are_refused(load, made, message):
    message(fault(lambda: prepare(load(made), FeatureLevel.LATEST), ModelError))


def test_a_picture_of_floats_is_as_dxdispatch_has_it(tmp_path):
    document = of_images({"Picture": {"name": "P", "shape": [12, 4]}, "Other": "R"})
    document["commands"] = []
    document["resources"]["P"]["initialValuesDataType"] = "FLOAT16"
    (tmp_path / "m.json").write_text(json.dumps(document))
    resource = load_model(tmp_path / "m.json").resources["P"]
    data = b"".join(resource.values.pieces())
    expected = (COLOURS.reshape(3, 4, 4) / 255).astype(np.float16).transpose(2, 0, 1)[None]
    assert resource.values.shape == (1, 4, 3, 4)
    np.testing.assert_array_equal(np.frombuffer(data, np.float16).reshape(1, 4, 3, 4), expected)


def test_the_interpreter_runs_images(load, capsys):
    load(of_images({}))
    assert main(["debug", "check", "m.json"]) == 0
    assert main(["debug", "trace", "m.json", "0", "--output", "Result"]) == 0
    seen = capsys.readouterr().out
    assert seen.startswith(
        "m.json: nothing was found in 1 dispatches\ns.comp:9: Result(0, 0) = (0, 2, 4, 255), by"
    )
    assert main(["check", "m.json"]) == 0
    assert Path("m.json").is_file()
