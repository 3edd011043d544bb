"""``vkops debug trace --compare``: the interpreter against a driver, which is right or is not."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest

import vkops
from vkops.cli import main
from vkops.debug.driver_comparison import compare
from vkops.debug.shader_check import Case
from vkops.onnx.specialization import Specialization

ROOT = Path(__file__).parents[2]
SHADER = """#version 450
layout(local_size_x = 8) in;
layout(std430, binding = 0) readonly buffer X { uint x[]; };
layout(std430, binding = 1) buffer Y { uint y[]; };
layout(push_constant) uniform Push { uint n; };
shared uint part[8];
void main() {
    uint own = gl_LocalInvocationIndex;
    part[own] = x[own] * n;
    BARRIER
    y[own] = part[7 - own];
}
"""


@pytest.fixture
def compared(adapter, tmp_path, monkeypatch, capsys):
    """Compare a shader or a model with a driver: status, standard output, standard error."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("VKOPS_EXPECT", raising=False)
    Path("s.comp").write_text(SHADER)
    np.save("x.npy", np.arange(10, 18, dtype=np.uint32))

    def run(target, *arguments):
        status = main(["debug", "trace", str(target), "--compare", adapter.name, *arguments])
        seen = capsys.readouterr()
        return status, seen.out.splitlines(), seen.err.removesuffix("\n")

    return run


GIVEN = ["s.comp", "--bind", "X=x.npy", "--bind", "Y=32", "--push", "3", "-D"]
MODELS = ["split.json", "shader.json", "scatter.json"]


@pytest.fixture
def wrong_driver(monkeypatch):
    """A driver that makes one byte wrong in each result, from the fifth on."""
    read = vkops.Buffer.read

    def wrong(self, *arguments):
        data = bytearray(read(self, *arguments))
        data[4] ^= 64
        return bytes(data)

    monkeypatch.setattr(vkops.Buffer, "read", wrong)


def test_the_same_results(compared, adapter):
    status, out, err = compared(*GIVEN, "BARRIER=barrier();")
    assert (status, err) == (0, "")
    assert out[1:] == [f"All outputs are the same on '{adapter.name}'"]
    _, out, _ = compared(*GIVEN, "BARRIER=barrier();", "2")
    assert out[2].startswith("s.comp:11: y[2] = 45, by invocation (2, 0, 0)")


@pytest.mark.parametrize(
    "name", sorted(path.name for path in (ROOT / "examples").glob("*.[jo][sn][on][nx]"))
)
def test_the_same_results_of_models(compared, adapter, name):
    status, out, _ = compared(ROOT / "examples" / name, "--dml_feature_level", "6.4")
    assert (status, out[-1]) == (0, f"All outputs are the same on '{adapter.name}'")


@pytest.mark.usefixtures("wrong_driver")
def test_a_driver_at_fault(compared, adapter):
    status, out, err = compared(*GIVEN, "BARRIER=barrier();")
    assert status == 1
    assert out[1] == f"Y: element 1 is 48 in the interpreter, and 112 on '{adapter.name}'"
    assert out[2] == "s.comp:11: y[1] = 48, by invocation (1, 0, 0)"
    assert "s.comp:9: part[6] = 48, by invocation (6, 0, 0)" in out
    expected = (
        f"The interpreter found no fault: the driver of '{adapter.name}' is probably at fault"
    )
    assert err == expected


@pytest.mark.usefixtures("wrong_driver")
@pytest.mark.parametrize("name", MODELS)
def test_a_driver_at_fault_with_a_model(compared, name):
    status, out, err = compared(ROOT / "examples" / name)
    (difference,) = (line for line in out if " in the interpreter, and " in line)
    assert difference.startswith("Dispatch 1, '")
    assert "element 1 is " in difference
    assert status == 1
    assert "no fault: the driver" in err
    assert any("by invocation (" in line for line in out)


def test_strings_are_compared(compared, monkeypatch):
    text = """<ir_version: 9, opset_import: ["" : 18]>
    turn (string[2, 2] words) => (string[2, 2] y) { y = Transpose (words) }"""
    onnx.save(onnx.parser.parse_model(text), "s.onnx")
    np.save("w.npy", np.array([["a", "b"], ["c", "d"]]))
    assert compared("s.onnx", "--input", "w.npy")[0] == 0
    run = Specialization.run
    monkeypatch.setattr(Specialization, "run", lambda *given: [y[::-1] for y in run(*given)])
    status, out, _ = compared("s.onnx", "--input", "w.npy")
    assert status == 1
    assert out[1].startswith("Output 'y': element 0 is a in the interpreter, and b on ")


@pytest.mark.usefixtures("wrong_driver")
def test_a_shader_at_fault(compared):
    status, out, err = compared(*GIVEN, "BARRIER=")
    assert status == 1
    assert out[-1].startswith("s.comp:11: data race: 'part[7]' in shared memory")
    assert err == "The shader is at fault: the interpreter found faults, which are above"


LEVELS = """#version 450
layout(local_size_x = 3) in;
layout(binding = 0) uniform sampler2D X;
layout(binding = 1) buffer Y { float y[]; };
void main() {
    uint i = gl_LocalInvocationIndex;
    y[i] = textureLod(X, vec2(0.5), float(i)).x + 100 * textureQueryLevels(X);
}"""


def test_all_levels_are_compared(compared, tmp_path):
    (tmp_path / "l.comp").write_text(LEVELS)
    arguments = ["l.comp", "--bind", "Y=12"]
    for number, sizes in enumerate([(4, 4), (2, 2), (1, 1)]):
        np.save(f"{number}.npy", np.full(sizes, number + 1, np.float32))
        arguments += ["--bind", f"X={number}.npy"]
    status, out, _ = compared(*arguments, "2")
    assert (status, out[1][:25]) == (0, "All outputs are the same ")
    assert out[2].startswith("l.comp:7: y[2] = 303.0, by")
    status, _, err = compared(*arguments, "--bind", "Y=12")
    assert (status, "got Y twice" in err) == (2, True)


EVERYTHING = """#version 450
#extension GL_EXT_buffer_reference : require
layout(local_size_x = 4) in;
layout(buffer_reference, std430, buffer_reference_align = 4) buffer Numbers { float x[]; };
layout(binding = 0) readonly buffer A { float a[]; } as[2];
layout(binding = 1, rgba8) uniform image2D B;
layout(binding = 2) uniform sampler2D C;
layout(binding = 3, r32f) uniform imageBuffer D;
layout(push_constant) uniform Push { Numbers numbers; };
void main() {
    int i = int(gl_LocalInvocationIndex);
    vec4 sampled = texture(C, vec2(0.3 * i, 0));
    imageStore(B, ivec2(i, 1), 0.1 * i + imageLoad(B, ivec2(i, 0)));
    imageStore(D, i, sampled + as[1].a[i]);
    numbers.x[i] += as[0].a[i];
}"""


@pytest.mark.features
@pytest.mark.parametrize(
    ("output", "at", "line"),
    [("", 0, ""), ("B", 16, 13), ("D", 2, 14), ("push_constants.numbers", 3, 15)],
)
def test_all_that_shaders_use_is_compared(device, monkeypatch, output, at, line):
    rows = np.arange(4, dtype=np.float32)
    arguments = {
        "A": [rows, rows + 1], "B": np.arange(24, dtype=np.uint8).reshape(2, 4, 3),
        "D": rows.copy(),  # the same array would share memory
        "C": (np.float32([[0, 1, 2]]), {"filter": "nearest", "address": "repeat"}),
    }  # fmt: skip
    case = Case.of(EVERYTHING, arguments, push={"numbers": rows.copy()}, name="x")
    check = Case.check

    def changed(self):
        report = check(self)
        if output:
            report.buffers[output] = report.buffers[output].copy()
            report.buffers[output].reshape(-1)[at] += 9
        return report

    monkeypatch.setattr(Case, "check", changed)
    difference = compare(case, device)
    if not output:
        assert difference is None
        return
    assert difference.what.startswith(f"{output}: element {at} is ")
    assert (difference.trace.lines[0].place.line, difference.findings) == (line, ())
    assert "the driver of" in difference.verdict


@pytest.mark.features
def test_weights_of_linear_samplers_may_have_few_bits(device):
    text = """#version 450
layout(local_size_x = 64) in;
layout(binding = 0) uniform sampler2D A;
layout(binding = 1) buffer B { float b[]; };
void main() { uint i = gl_LocalInvocationIndex; b[i] = 100 * texture(A, vec2(i / 70.0, 0.4)).x; }"""
    picture = np.random.default_rng(1).integers(0, 256, (4, 8, 4), np.uint8)
    case = Case.of(text, {"A": picture, "B": np.zeros(64, np.float32)}, name="x")
    assert compare(case, device) is None
