"""Calls of shaders that are written as programs, which repeat them."""

from __future__ import annotations

import io
import json
import re
from zipfile import ZipFile

import numpy as np
import pytest
from processes import outcome

import vkops
from vkops.cli import main
from vkops.debug import bug_report
from vkops.errors import DeviceError
from vkops.gpu.run.vulkan_device import VulkanDevice

SHADER = """#version 450
layout(local_size_x = 4) in;
layout(std430, binding = 0) readonly buffer X { float x[]; };
layout(std430, binding = 1) buffer Y { float y[]; };
layout(binding = 2) uniform Offset { float offset; };
layout(push_constant) uniform Push { float a; };
void main() { uint i = gl_GlobalInvocationID.x; if (i < y.length()) y[i] += a * x[i] + offset; }"""


def test_a_call_is_repeated(adapter, device, tmp_path, monkeypatch, capsys):
    shader = device.compile_shader(SHADER, name="axpy")
    x, y = device.tensor(np.arange(12, dtype=np.float32)), device.buffer(32)
    y.write(np.ones(8, np.float32))
    path = tmp_path / "case.zip"
    with vkops.capture_call(path):
        shader(x[::2], (y, 4, 24), [5.0], a=2, threads=6)
        shader(x[::2], (y, 4, 24), [5.0], a=2, threads=6)  # one is captured
    assert not VulkanDevice.observers
    assert np.frombuffer(y.read(), np.float32)[2] == 1 + 2 * (2 * 2 + 5)
    assert outcome(path, adapter.name)[:2] == (0, "Y: 0 of 6 elements differ\n")
    status, text, errors = outcome(path, "no such device")
    assert (status, text) == (1, "")
    assert re.fullmatch("DeviceError: no adapter whose name contains 'no such device'.*\n", errors)
    call = json.loads(ZipFile(path).read("call.json"))
    assert call["name"] == "axpy"
    assert call["groups"] == [2, 1, 1]
    assert call["device"] == {"name": adapter.name, "driver": adapter.driver}
    array = np.load(io.BytesIO(ZipFile(path).read("outputs/Y.npy")))
    assert array.tolist() == [1 + 2 * 2 * n + 5 for n in range(6)]
    monkeypatch.setattr(bug_report, "report", lambda: "# this machine")
    assert main(["debug", "report", "--case", str(path)]) == 0
    assert ZipFile(path).read("report.md") == b"# this machine"


def test_outputs_that_differ(adapter, device, tmp_path):
    shader = device.compile_shader(SHADER)
    x, y = (device.tensor(np.ones(8, np.float32)) for _ in range(2))
    path, changed = tmp_path / "case.zip", tmp_path / "changed.zip"
    with vkops.capture_call(path):
        shader.dispatch({"X": x, "Y": y, "Offset": {"offset": 1}}, 2, [2])
    with ZipFile(path) as before, ZipFile(changed, "w") as after:
        for name in before.namelist():
            content = bytearray(before.read(name))
            if name == "outputs/Y.npy":
                content[-1] ^= 1
            after.writestr(name, bytes(content))
    status, text, _ = outcome(changed, adapter.name)
    assert status == 1
    assert text.startswith("Y: 1 of 8 elements differ\n  element 7: got 4.0, was ")


ARRAY = """#version 450
layout(local_size_x = 8) in;
layout(std430, binding = 0) readonly buffer X { float x[]; } inputs[2];
layout(std430, binding = 1) buffer Y { float y[]; };
void main() { uint i = gl_GlobalInvocationID.x; y[i] = inputs[0].x[i] - inputs[1].x[i]; }"""


HLSL = """StructuredBuffer<float> x : register(t0);
RWStructuredBuffer<float> y : register(u0);
[[vk::constant_id(3)]] const float a = 1;
[numthreads(8, 1, 1)]
void Scale(uint3 id : SV_DispatchThreadID) { y[id.x] = a * x[id.x]; }"""


@pytest.mark.parametrize("kind", ["array", "bound", "entry", "indirect", "kernel", "recorded"])
def test_all_kinds_of_calls_are_captured(adapter, device, tmp_path, kind):
    x, y = (device.tensor(np.arange(8, dtype=np.float32)) for _ in range(2))
    shader, counts = device.compile_shader(SHADER), device.tensor(np.uint32([2, 1, 1]))
    array = device.compile_shader(ARRAY)
    scale = device.compile_shader(HLSL, language="hlsl", entry="Scale", constants={"a": 3})
    square = vkops.ElementwiseKernel("float32 x", "float32 y", "y = x * x")

    def recorded():
        with device.record() as program:
            shader(x, y, [1], a=1, groups=2)
        program.run()

    calls = {
        "array": lambda: array([x[::-1], x], y, groups=1),
        "bound": lambda: shader.bound({"X": x, "Y": y, "Offset": [1]}, 2, [1]).dispatch(),
        "entry": lambda: scale(x, y, groups=1),
        "indirect": lambda: shader(x, y, [1], a=1, groups=counts),
        "kernel": lambda: square(x, y),
        "recorded": recorded,
    }
    path = tmp_path / "case.zip"
    with vkops.capture_call(tmp_path / "outer.zip"), vkops.capture_call(path):
        calls[kind]()
    with ZipFile(path) as file:
        (output,) = json.loads(file.read("call.json"))["outputs"]
        assert (np.load(io.BytesIO(file.read(f"outputs/{output}.npy"))) == y.numpy()).all()
    for each in (path, path.with_name("outer.zip")):
        assert outcome(each, adapter.name)[:2] == (0, f"{output}: 0 of 8 elements differ\n")


IMAGE = """#version 450
layout(binding = 0, r32f) uniform image2D picture;
void main() { imageStore(picture, ivec2(0), vec4(1)); }"""


def test_calls_that_cannot_be_captured(device, tmp_path, capsys):
    path = tmp_path / "case.zip"
    stored = device.compile_shader(IMAGE)
    calls = {
        "no shader was called in its block": lambda: None,
        "a storage image, picture": lambda: stored(device.image((2, 2), np.float32), groups=1),
    }

    for text, call in calls.items():
        with pytest.raises(DeviceError, match=text), vkops.capture_call(path):
            call()
        assert not VulkanDevice.observers
        assert not path.exists()
    with pytest.raises(ZeroDivisionError), vkops.capture_call(path):
        _ = 1 / 0
    path.write_bytes(b"text")
    assert main(["debug", "report", "--case", str(path)]) == 1
    assert capsys.readouterr().err.endswith("must be a file of vkops.capture_call\n")
