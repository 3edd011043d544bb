"""Dispatchables of type glsl and spirv: read, checked and explained without a device."""

import copy
import json
import re
from pathlib import Path

import numpy as np
import pytest
from models import SPLIT, dispatch, model, zeros
from refusals import fault

from vkops import shaders
from vkops.cli import main
from vkops.dml import FeatureLevel
from vkops.dxdispatch import load_model, prepare
from vkops.errors import ModelError
from vkops.shaders.listing import describe

GLSL = """#version 450
layout(local_size_x = 64) in;
layout(constant_id = 0) const uint OFFSET = 0u;
layout(constant_id = 1) const bool UP = false;
layout(std430, binding = 0) readonly buffer Source { uint source[]; } from;
layout(std430, binding = 1) buffer Target { uint target[]; };
layout(push_constant) uniform Push { uint factor; float scale; int step; };
void main() { target[0] = factor * from.source[0] + OFFSET; }
"""
PUSHED = [
    {"name": "factor", "type": "UINT32", "value": 10},
    {"type": "FLOAT32", "value": "-inf"},
    {"type": "DML_TENSOR_DATA_TYPE_INT32", "value": -1},
]


def of_shader(**members):
    """A model with one dispatch of a shader; None leaves a member out."""
    shader = {"type": "glsl", "sourcePath": "s.comp", "pushConstants": PUSHED, **members}
    return model(
        {"X": zeros(8, "UINT32"), "Y": zeros(4, "UINT32")},
        {"s": {k: v for k, v in shader.items() if v is not None}},
        {**dispatch("s", Source="X", Target="Y"), "threadGroupCount": [2, 1, 1]},
    )


def with_command(**members):
    document = of_shader()
    document["commands"][0].update(members)
    return document


@pytest.fixture(autouse=True)
def _files(tmp_path):
    (tmp_path / "s.comp").write_text(GLSL)
    (tmp_path / "s.spv").write_bytes(shaders.compile(GLSL))
    (tmp_path / "included").mkdir()
    (tmp_path / "included" / "n.glsl").write_text("#define N 3\n")


def prepared(load, made):
    return prepare(load(made), FeatureLevel.LATEST)


def refused(load, made):
    return fault(lambda: prepared(load, made), ModelError)


# -- what is read ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "path"),
    [("glsl", "s.comp"), ("GLSL", "s.comp"), ("spirv", "s.spv"), ("Spirv", "s.spv")],
)
def test_kinds_of_sources(load, kind, path):
    document = of_shader(type=kind, sourcePath=path)
    (bound,) = prepared(load, document).commands
    shader = bound.dispatchable.shader
    assert (shader.name, shader.spirv) == (path, shaders.compile(GLSL))
    assert bound.dispatchable.push_constants == (10, float("-inf"), -1)
    assert bound.groups == (2, 1, 1)
    nbytes = {block.name: block.source.nbytes for block in bound.inputs}
    assert nbytes == {"Source": 32, "Target": 16}
    del document["commands"][0]["threadGroupCount"]
    assert prepared(load, document).commands[0].groups == (1, 1, 1)


ARGUMENTS = [
    ["-D", "A=3", "-D", "B"],
    ["-DA=3", "-DB"],
    ["-D", "A=1+2", "-DB=", "-g"],
    ["-I", "included", "-DA=N", "-DB=1", "-DINCLUDE"],
    ["-Iincluded", "-D", "A=N", "-DB", "-DINCLUDE=1"],
    ["-e", "main", "-DA=3", "-DB"],
    ["-emain", "--target-env", "vulkan1.0", "-DA=3", "-DB"],
    ["--target-env=vulkan1.1", "-DA=(4 - 1)", "-DB"],
]
CONFIGURED = """#version 450
#ifdef INCLUDE
#extension GL_GOOGLE_include_directive : require
#include "n.glsl"
#endif
#ifndef B
#error B
#endif
shared uint s[A];
void main() { s[0] = 1; }
"""


@pytest.mark.parametrize("arguments", ARGUMENTS)
def test_compiler_arguments(load, tmp_path, arguments, monkeypatch):
    """Sources and includes are beside the model, wherever the program is started."""
    (tmp_path / "c.comp").write_text(CONFIGURED)
    document = of_shader(sourcePath="c.comp", compilerArgs=arguments, pushConstants=None)
    document["commands"] = []
    shader = prepared(load, document).model.dispatchables["s"].shader
    assert shader.shared_nbytes == 12
    assert (b"INCLUDE" in shader.spirv) == ("-g" in arguments)
    monkeypatch.chdir("/")
    shader = load_model(tmp_path / "m.json").dispatchables["s"].shader
    assert shader.shared_nbytes == 12


@pytest.mark.parametrize("constants", [{"OFFSET": 7, "1": 1}, {"0": 7, "UP": 1}])
def test_specialization_constants(load, constants):
    (bound,) = prepared(load, of_shader(specializationConstants=constants)).commands
    module = bound.dispatchable.shader
    assert [c.default for c in module.specialization_constants] == [7, 1]


@pytest.mark.parametrize(
    ("source", "target", "expected"),
    [
        ({"Source": "X"}, {"Target": "Y"}, [(0, 32), (0, 16)]),
        ({"from": "X"}, {"1": "Y"}, [(0, 32), (0, 16)]),  # an instance and a number
        ({"Source": ["X"]}, {"Target": ["Y"]}, [(0, 32), (0, 16)]),
        ({"Source": {"name": "X", "elementOffset": 3}}, {"Target": "Y"}, [(12, 20), (0, 16)]),
        ({"Source": {"name": "X", "elementOffset": 3, "elementCount": 2}}, {"Target": "Y"},
         [(12, 8), (0, 16)]),
        ({"Source": {"name": "X", "elementOffset": 1, "elementCount": 1, "elementSizeInBytes": 8,
                     "format": "UNKNOWN"}},
         {"Target": {"name": "Y", "format": "DXGI_FORMAT_UNKNOWN"}}, [(8, 8), (0, 16)]),
        ({"Source": {"name": "X", "elementCount": 4}},
         {"Target": {"name": "X", "elementOffset": 4}}, [(0, 16), (16, 16)]),
        ({"Source": "X"}, {"Target": "X"}, [(0, 32), (0, 32)]),
    ],
)  # fmt: skip
def test_bindings(load, source, target, expected):
    (bound,) = prepared(load, with_command(bindings={**source, **target})).commands
    assert [block.name for block in bound.inputs] == ["Source", "Target"]
    assert [block.name for block in bound.outputs] == ["Target"]
    assert [(block.source.offset, block.source.nbytes) for block in bound.inputs] == expected


# -- HLSL ------------------------------------------------------------------------------------------

HLSL = """#include "n.hlsl"
StructuredBuffer<T> a;
RWStructuredBuffer<T> sum;
cbuffer Sizes { uint count; };
[numthreads(N, 1, 1)] void CSMain(uint3 id : SV_DispatchThreadID) {
    if (id.x < count) sum[id.x] += a[id.x];
}
"""


def of_hlsl(tmp_path, *arguments, **members):
    (tmp_path / "s.hlsl").write_text(HLSL)
    (tmp_path / "included" / "n.hlsl").write_text("#define N 8\n")
    shader = {"type": "HLSL", "sourcePath": "s.hlsl", "compilerArgs": list(arguments), **members}
    return model(
        {"X": zeros(8, "FLOAT32"), "C": {**zeros(1, "UINT32"), "sizeInBytes": 256}},
        {"s": shader},
        dispatch("s", a="X", sum="X", Sizes="C"),
    )


@pytest.mark.parametrize("compiler", [{}, {"compiler": "dxc"}, {"compiler": "glslangValidator"}])
@pytest.mark.parametrize(
    "arguments",
    [
        ["-T", "cs_6_2", "-E", "CSMain", "-D", "T=float", "-I", "included"],
        ["-Tcs_5_0", "-ECSMain", "-DT=float", "-Iincluded", "-Zi"],
    ],
)
def test_hlsl(load, tmp_path, arguments, compiler):
    (bound,) = prepared(load, of_hlsl(tmp_path, *arguments, **compiler)).commands
    shader = bound.dispatchable.shader
    assert shader.local_size == (8, 1, 1)
    assert [block.point for block in shader.blocks] == ["a", "sum", "Sizes"]
    assert (b"included" in shader.spirv) == ("-Zi" in arguments)


@pytest.mark.parametrize(
    ("kind", "options", "wrong"),
    [
        ("HLSL", "-D NAME[=VALUE], -I FOLDER, -Zi, -E NAME, -T cs_5_0 to cs_6_7",
         ["-enable-16bit-types", "-O3", "-HV", "-T", "-Tps_6_0", "-E", "-spirv", "-g", "/D"]),
        ("glsl", "-D NAME[=VALUE], -I FOLDER, -g, -e main, --target-env vulkan1.0 to vulkan1.3",
         ["-T", "-O3", "", "--help", "--", "-gg", "A=3", "-estart", "-e", "-D", "-I", "--target-env",
          "--target-env=vulkan1.4", "-I\0", "@file", "-h\n"]),
    ],
    ids=["dxc", "glslang"],
)  # fmt: skip
def test_arguments_of_compilers_that_are_refused(load, tmp_path, kind, options, wrong):
    (tmp_path / "s.hlsl").touch()
    path = "s.hlsl" if kind == "HLSL" else "s.comp"
    for argument in wrong:
        document = of_shader(type=kind, sourcePath=path, compilerArgs=["-DA", argument])
        said = f"{AT}.compilerArgs[1]: got {json.dumps(argument)}, must be {options}"
        assert refused(load, document) == said


def test_hlsl_that_is_refused(load, tmp_path, message):
    arguments = ["-T", "cs_6_0", "-D", "T=float", "-I", "included"]
    message(refused(load, of_hlsl(tmp_path, *arguments)), f"{AT}: s.hlsl entry point: ", "[SH-03]")
    text = refused(load, of_hlsl(tmp_path, *arguments, "-ECSMain", "-D", "T=flaot"))
    assert text.startswith(f"{AT}.sourcePath: ")
    assert "s.hlsl:2: " in text
    document = of_hlsl(tmp_path, *arguments, sourcePath="s.comp")
    message(refused(load, document), f"{AT}.sourcePath: ")


# -- what is refused, beside the faults in broken_models -------------------------------------------

AT = "m.json: dispatchables.s"


@pytest.mark.parametrize(
    ("members", "said"),
    [
        ({"sourcePath": "s.spv"}, ".sourcePath"),
        ({"type": "spirv", "sourcePath": "s.spv", "compiler": "glslangValidator"}, ".compiler"),
        ({"type": "spirv", "sourcePath": "s.spv", "compilerArgs": []}, ".compilerArgs"),
        ({"compilerArgs": "-g"}, ".compilerArgs"),
        ({"compilerArgs": ["-g", 1]}, ".compilerArgs[1]"),
        ({"compilerArgs": ["--target-env", "opengl"]}, ".compilerArgs[0]"),
        ({"compilerArgs": ["-DA B=1"]}, ".sourcePath"),
        ({"compilerArgs": ["-DA=1\n2"]}, ".sourcePath"),
        ({"specializationConstants": {"OFFSET": "1"}}, ".specializationConstants.OFFSET"),
        ({"specializationConstants": {"1" * 5000: 1}}, ".specializationConstants [SH-10]"),
        ({"pushConstants": [*PUSHED, {}]}, ".pushConstants s.comp push_constants [SH-09]"),
        ({"pushConstants": [1, 2, 3]}, ".pushConstants[0]"),
        ({"pushConstants": [{"value": 1}, *PUSHED[1:]]}, ".pushConstants[0]"),
        ({"pushConstants": [{"type": "UINT32", "value": 2**32}, *PUSHED[1:]]}, ".pushConstants[0].value"),
    ],
)  # fmt: skip
def test_wrong_members_are_refused(load, members, said, message):
    message(refused(load, of_shader(**members)), AT, *said.split())


@pytest.mark.posix("names with control characters", tests_only=True)
def test_errors_of_shaders_are_one_line(load, tmp_path):
    (tmp_path / "a\nb.comp").write_text("#version 450\nvoid main() { x = 1; }\n")
    text = refused(load, of_shader(sourcePath="a\nb.comp"))
    assert text.startswith(f"{AT}.sourcePath: a\\nb.comp: ")


BINDING = "ERROR while binding resources: m.json: commands[0].bindings"
FAR = {"name": "X", "elementOffset": 2**64 - 1, "elementSizeInBytes": 2**64 - 1}


@pytest.mark.parametrize(
    ("bindings", "said"),
    [
        ({"from": "X"}, ".from [SH-04]"),
        ({"Source": {"name": "X", "elementOffset": 8}}, ".Source s.comp Source [SH-05]"),
        ({"Source": {"name": "X", "elementOffset": 1, "elementSizeInBytes": 2}}, ".Source s.comp Source [SH-05]"),
        ({"Target": None, "1": FAR},
         "[\"1\"] s.comp 1 [SH-05]"),
    ],
)  # fmt: skip
def test_wrong_bindings_are_refused(load, bindings, said, message):
    bound = {"Source": "X", "Target": "Y", **bindings}
    document = with_command(bindings={k: v for k, v in bound.items() if v is not None})
    message(refused(load, document), BINDING, *said.split())


READ = "m.json: commands[0].bindings.Source"


@pytest.mark.parametrize(("member", "value"), [("format", "R32_UINT"), ("elementCount", -1)])
def test_wrong_members_of_bindings_are_refused(load, member, value, message):
    source = {"name": "X", member: value}
    document = with_command(bindings={"Source": source, "Target": "Y"})
    message(refused(load, document), f"{READ}.{member}: ")


def test_counts_need_the_size_of_an_element(load, message):
    document = with_command(bindings={"Source": {"name": "L", "elementCount": 1}, "Target": "Y"})
    document["resources"]["L"] = {"initialValues": [{"type": "UINT32", "value": 1}]}
    message(refused(load, document), f"{READ}: ")
    document["commands"][0]["bindings"]["Source"]["elementSizeInBytes"] = 4
    assert prepared(load, document).commands[0].inputs[0].source.nbytes == 4


@pytest.mark.parametrize(
    ("groups", "said"),
    [
        ([1, 1, 2**32 - 1], "[2] [SH-07]"),
        ({"name": "Y", "elementOffset": 2, "elementSizeInBytes": 4}, " 8 bytes [SH-07]"),
        ({"name": "Y", "elementOffset": 1, "elementSizeInBytes": 2}, " 14 bytes [SH-07]"),
        ([1, 1, -1], "[2]"),
        (1, ""),
        ("none", ""),
    ],
)
def test_group_counts_that_are_refused(load, groups, said, message):
    text = refused(load, with_command(threadGroupCount=groups))
    message(text, "m.json: commands[0].threadGroupCount", *said.split())


def test_group_counts(load):
    """Operators choose their own, and look at none."""
    prepared(load, with_command(threadGroupCount=[65535, 65535, 65535]))
    split = copy.deepcopy(SPLIT)
    split["commands"][0]["threadGroupCount"] = [0, 65536, 2**32 - 1]
    prepared(load, split)


# -- told ------------------------------------------------------------------------------------------


def test_check_and_explain_describe_the_shader(load, capsys):
    load(of_shader())
    assert main(["check", "m.json"]) == 0
    seen = capsys.readouterr()
    assert seen.err == ""
    assert "│ s            │ a shader │ none         │ accepted │" in seen.out
    assert main(["explain", "m.json", "--html", "page.html"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].rstrip() == "s: compute shader s.comp"
    told = dict(line.rstrip().split("  ", 1) for line in lines[1:] if "  " in line)
    facts = {key: text.strip() for key, text in told.items()}
    assert facts == dict(describe(shaders.load(GLSL)))
    page = re.sub("<[^>]*>", "", Path("page.html").read_text())
    assert all(text in page for text in facts.values())


ROWS = """#version 450
layout(std430, binding = 0) readonly buffer Source { vec3 source[]; };
layout(std430, binding = 1) buffer Target { float target[]; };
void main() { target[0] = source[0].x; }
"""


@pytest.mark.parametrize(
    ("shape", "binding", "is_right"),
    [
        ((4, 4), {}, True),
        ((12,), {}, True),
        ((4, 3), {}, False),
        ((2, 4, 3), {}, False),
        ((4, 3), {"elementCount": 4}, True),  # a part of it: bytes
    ],
)
def test_arrays_of_files_have_the_layout_of_a_block(load, tmp_path, shape, binding, is_right):
    (tmp_path / "s.comp").write_text(ROWS)
    np.save(tmp_path / "x.npy", np.zeros(shape, np.float32))
    document = of_shader(pushConstants=None)
    document["resources"]["X"] = {"initialValues": {"sourcePath": "x.npy"}}
    document["commands"][0]["bindings"]["Source"] = {"name": "X", **binding}
    if is_right:
        prepared(load, document)
    else:
        error = fault(lambda: prepared(load, document), ModelError)
        assert re.search(
            r"commands\[0\]\.bindings\.Source: .* must be of shape .* \[SH-16\]$", error
        )
