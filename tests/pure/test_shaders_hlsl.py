"""HLSL: registers, entry points, errors; included texts; and how often the tools are run."""

import subprocess
from array import array
from pathlib import Path

import numpy as np
import pytest
from processes import SLANG
from refusals import fault

from vkops import shaders
from vkops.debug import check
from vkops.errors import InvalidDescError, ShaderCompileError
from vkops.shaders.binary import Op, corrected, positions

ADD = """
struct Pair { float x; float3 y; };
StructuredBuffer<float> a : register(t0);
StructuredBuffer<Pair> pairs : register(t1);
RWStructuredBuffer<float> sum : register(u0);
RWByteAddressBuffer raw;
cbuffer Sizes : register(b0) { uint count; row_major float2x3 m; };
cbuffer Other : register(b0, space2) { float scale; }; groupshared float here[10];
[numthreads(64, 1, 1)]
void Add(uint3 id : SV_DispatchThreadID) {
    if (id.x < count) sum[id.x] = (a[id.x] + pairs[id.x].y.z) * m[1][2] * scale + raw.Load(0) + here[0];
}
[numthreads(1, 1, 1)] void Clear() { sum[0] = 0; }
"""


def load(text=ADD, entry="Add", **options):
    return shaders.load(text, language="hlsl", entry=entry, name="x", **options)


@pytest.mark.parametrize("target_env", ["vulkan1.0", "vulkan1.1", "vulkan1.2", "vulkan1.3"])
def test_registers_and_names(target_env):
    shader = load(target_env=target_env)
    assert [(b.point, b.kind, b.set, b.binding, b.readonly) for b in shader.blocks] == [
        ("a", "storage", 0, 0, True), ("pairs", "storage", 0, 1, True),
        ("sum", "storage", 0, 64, False), ("raw", "storage", 0, 65, False),
        ("Sizes", "uniform", 0, 128, True), ("Other", "uniform", 2, 128, True),
    ]  # fmt: skip
    assert shader.block("2.128").name == "Other"
    clear = load(entry="Clear")
    assert [b.point for b in clear.blocks] == ["sum"]
    assert (shader.shared_nbytes, clear.shared_nbytes) == (40, 0)
    assert (shader.local_size, clear.local_size) == ((64, 1, 1), (1, 1, 1))
    assert shader.entry_point == "Add"


def test_matrices_are_indexed_as_in_the_shader():
    shader = load()
    packed = shader.pack_uniform(shader.block("Sizes"), {"count": 7, "m": [[1, 2, 3], [4, 5, 6]]})
    numbers = [7, 0, 0, 0, 1, 2, 3, 0, 4, 5, 6, 0]
    assert [round(n) for n in memoryview(packed[16:]).cast("f")] == numbers[4:]
    assert packed[:16] == bytes([7, *[0] * 15])


@pytest.mark.parametrize(
    ("text", "entry", "said"),
    [
        (ADD, "main", "x entry point [SH-03]"),
        (ADD.replace("sum[0] = 0", "\n\n  sun[0] = 0"), "Add", "x:15"),
        ('#include "no.hlsl"', "Add", "x:1"),
        ("AppendStructuredBuffer<uint> l; [numthreads(1,1,1)] void Add() { l.Append(1); }", "Add", "x l@count [SH-01]"),
    ],
)  # fmt: skip
def test_errors(text, entry, said, message):
    with pytest.raises((InvalidDescError, ShaderCompileError)) as caught:
        load(text, entry)
    message(caught.value, *said.split())


PREFIX = """
RWStructuredBuffer<uint> x;
RWStructuredBuffer<float> y;
[numthreads(64, 1, 1)]
void main(uint i : SV_DispatchThreadID) {
    uint own = x[i];
    x[i] = WavePrefixSum(own) * 100 + WavePrefixCountBits(own > 1);
    y[i] = WavePrefixProduct(y[i]) + WavePrefixSum(y[i]) + WaveActiveSum(y[i]);
}
"""


def prefixes(size):
    """Return the values of both buffers, and what the shader makes of them."""
    x = np.resize(np.arange(1, 6, dtype=np.uint32), 64)
    y = np.resize(np.array([2, 1, 0.5, 1], np.float32), 64)
    rows = [x.reshape(-1, size), (x > 1).reshape(-1, size), y.reshape(-1, size)]
    before, counts, sums = (np.cumsum(row, 1) - row for row in rows)
    product = np.cumprod(rows[2], 1) / rows[2]
    y_after = product + sums + rows[2].sum(1)[:, None]
    return [x, y], [(before * 100 + counts).reshape(-1), y_after.reshape(-1)]


@pytest.mark.parametrize("size", [4, 8, 32, 64])
def test_prefix_operations_exclude_the_own_value(size):
    inputs, reference = prefixes(size)
    report = check(PREFIX, inputs, language="hlsl", subgroup_size=size, target_env="vulkan1.1")
    for result, expected in zip(report.buffers.values(), reference, strict=True):
        np.testing.assert_array_equal(result, expected)


def test_inclusive_scans_of_other_languages_and_compilers_stay():
    spirv = shaders.compile(PREFIX, language="hlsl")
    words = array("I", spirv)
    scans = [
        at + 4
        for at, op, _ in positions(words)
        if op in Op.SUBGROUP and words[at + 4] == 2 and op != 342
    ]
    assert len(scans) == 3
    for at in scans:
        words[at] = 1  # as glslang writes them
    assert corrected(words.tobytes()) == spirv
    language = next(at + 1 for at, op, _ in positions(words) if op == Op.Source)
    for at, value in ((language, 2), (2, 14 << 16)):  # GLSL, and the generator of dxc
        other = words[:]
        other[at] = value
        assert corrected(other.tobytes()) == other.tobytes()
        assert shaders.load(other.tobytes()).spirv == other.tobytes()
    assert shaders.load(words.tobytes()).spirv == spirv


STRUCT = """
struct Sizes { uint count; };
[[vk::push_constant]] Sizes sizes;
RWStructuredBuffer<uint> sum;
[numthreads(1, 1, 1)] void Add() { sum[0] = sizes.count; }
"""


@pytest.mark.parametrize("text", [
    STRUCT,
    "#define PUSH [[vk::push_constant]]\n" + STRUCT.replace("[[vk::push_constant]]", "PUSH"),
])  # fmt: skip
def test_push_constants_that_glslang_ignores(text, message):
    message(fault(lambda: load(text), ShaderCompileError), "x: ", "[[vk::push_constant]]")


@pytest.mark.parametrize(
    "declared",
    [
        "[[vk::push_constant]] ConstantBuffer<Sizes> sizes; static uint n = 0;",
        "[[vk::push_constant]] cbuffer Push { Sizes sizes; }; uint n; // [[vk::push_constant]] x",
    ],
)
def test_push_constants(declared):
    text = STRUCT.replace("[[vk::push_constant]] Sizes sizes;", declared)
    shader = load(text.replace("sizes.count", "sizes.count + n"))
    assert shader.push_nbytes == 4


def test_files_are_hlsl_by_their_suffix(tmp_path):
    (tmp_path / "s.hlsl").write_text('#include "parts/n.hlsl"\n' + ADD)
    (tmp_path / "s.txt").write_text(ADD)
    (tmp_path / "parts").mkdir()
    (tmp_path / "parts" / "n.hlsl").write_text("#define NUMBER 5\n")
    shader = shaders.load(tmp_path / "s.hlsl", entry="Add", defines={"X": 1})
    other = shaders.load(tmp_path / "s.txt", language="hlsl", entry="Add")
    assert [b[:5] for b in shader.blocks] == [b[:5] for b in other.blocks]


# -- included texts --------------------------------------------------------------------------------

GLSL = """#version 450
#extension GL_GOOGLE_include_directive : require
#include "parts/n.glsl"
shared uint s[N];
void main() { s[0] = 1; }
"""
TEXTS = {"parts/n.glsl": '#include "m.glsl"\n', "parts/m.glsl": "const uint N = 7;\n"}


@pytest.mark.parametrize("debug", [False, True])
def test_a_mapping_of_included_texts(tmp_path, debug):
    (tmp_path / "s.comp").write_text(GLSL)
    spirv = shaders.load(GLSL, include=TEXTS, debug=debug).spirv
    assert shaders.load(GLSL, include=dict(TEXTS), debug=debug).spirv == spirv
    changed = {**TEXTS, "parts/m.glsl": "const uint N = 9;\n"}
    for source in (GLSL, tmp_path / "s.comp"):
        assert shaders.load(source, include=TEXTS, debug=debug).shared_nbytes == 28
        assert shaders.load(source, include=changed, debug=debug).shared_nbytes == 36
    assert b"vkops-" not in spirv


@pytest.mark.parametrize("as_file", [False, True])
def test_errors_in_included_texts_name_them(tmp_path, as_file, message):
    (tmp_path / "s.comp").write_text(GLSL)
    wrong = {**TEXTS, "parts/m.glsl": "\nconst uint N = M;\n"}
    source = tmp_path / "s.comp" if as_file else GLSL
    text = fault(lambda: shaders.load(source, include=wrong), ShaderCompileError)
    message(text, "parts/m.glsl:2: ")


def test_included_texts_cannot_reach_files(tmp_path):
    (tmp_path / "n.glsl").write_text("const uint N = 7;\n")
    path = Path(tmp_path, "n.glsl").relative_to(tmp_path.anchor).as_posix()
    texts = {"parts/n.glsl": f'#include "{"../" * 20}{path}"\n'}
    with pytest.raises(ShaderCompileError, match="is outside of the folder"):
        shaders.load(GLSL, include=texts)


@pytest.mark.parametrize("include", ["folder", Path("folder"), ["folder"], (Path("folder"),)])
def test_folders_of_included_files(tmp_path, monkeypatch, include):
    monkeypatch.chdir(tmp_path)
    for name, text in TEXTS.items():
        path = tmp_path / "folder" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    assert shaders.load(GLSL, include=include).shared_nbytes == 28


# -- how often the tools are run -------------------------------------------------------------------

PLAIN = """#version 450
layout(constant_id = 0) const uint N = 7;
shared uint s[N * 2];
void main() { s[0] = 1; }
"""
SOURCES = {
    "GLSL": {"source": PLAIN},
    "HLSL": {"source": ADD, "language": "hlsl", "entry": "Add"},
    "Slang": {"source": "import n; [numthreads(N, 1, 1)] void Run() {}", "language": "slang", "entry": "Run",
              "include": {"n.slang": "public static const int N = 4;"}},
    "included": {"source": GLSL, "include": TEXTS},
    "constants": {"source": PLAIN, "constants": {"N": 3}},
    "SPIR-V": {"source": "spirv"},
}  # fmt: skip


@pytest.mark.parametrize(
    "kind",
    [pytest.param(kind, marks=[SLANG] * (kind == "Slang")) for kind in SOURCES],
)
def test_what_was_compiled_before_needs_no_program(tmp_path, monkeypatch, kind):
    """In the same process, and in another that has the same cache on disk."""
    monkeypatch.setenv("VKOPS_CACHE_DIR", str(tmp_path))
    call = dict(SOURCES[kind])
    source = call.pop("source")
    source = shaders.compile(PLAIN) if source == "spirv" else source
    shaders.shader._shader.cache_clear()
    shaders.compiler._recent.clear()
    first = shaders.load(source, **call)

    def refuse(*_args, **_options):
        raise AssertionError("a program was started")

    monkeypatch.setattr(subprocess, "Popen", refuse)
    assert shaders.load(source, **call) is first
    shaders.shader._shader.cache_clear()
    shaders.compiler._recent.clear()
    again = shaders.load(source, **call)
    assert again is not first
    assert again.spirv == first.spirv
