"""Slang: bindings, modules, generics and errors, the compiler's command line, and where it is found."""

import re
import sys

import numpy as np
import pytest
from processes import SLANG, script
from refusals import fault

from vkops import shaders
from vkops.debug import check
from vkops.errors import InvalidDescError, ShaderCompileError
from vkops.shaders import slang

pytestmark = [pytest.mark.usefixtures("own_cache"), SLANG]

SUM = """
import parts.number_of;
StructuredBuffer<Pair> pairs;
RWStructuredBuffer<float> sum;
[[vk::binding(3, 1)]] RWByteAddressBuffer raw;
cbuffer Sizes { uint count; float2x3 m; float a[2]; };
[vk::constant_id(4)] const int N = 4;
interface IOperator { static float apply(float a, float b); }
struct Mul : IOperator { static float apply(float a, float b) { return a * b; } }
struct Add : IOperator { static float apply(float a, float b) { return a + b; } }
#ifndef OP
#define OP Mul
#endif
[shader("compute")] [numthreads(64, 1, 1)]
void Run(uint3 id : SV_DispatchThreadID, uniform float q) {
    if (id.x < count) sum[id.x] = OP.apply(pairs[id.x].y.z, m[1][2] + a[1]) * N + raw.Load<int>(0) + q;
}
[shader("compute")] [numthreads(1, 1, 1)] void Of<T : IOperator>() { sum[0] = T.apply(2, 3); }
"""
MODULE = "public struct Pair { public float x; public float3 y; };\n"
TEXTS = {"parts/number-of.slang": MODULE}


def load(text=SUM, entry="Run", **options):
    return shaders.load(
        text, **{"language": "slang", "entry": entry, "include": TEXTS, "name": "x", **options}
    )


@pytest.mark.parametrize("target_env", ["vulkan1.0", "vulkan1.1", "vulkan1.2", "vulkan1.3"])
def test_bindings_have_the_order_of_the_declarations(target_env):
    shader = load(target_env=target_env, constants={"N": 3})
    assert [(b.point, b.kind, b.set, b.binding) for b in shader.blocks] == [
        ("pairs", "storage", 0, 0), ("sum", "storage", 0, 1), ("Sizes", "uniform", 0, 2),
        ("raw", "storage", 1, 3),
    ]  # fmt: skip
    assert (shader.entry_point, shader.push_names) == ("Run", ["q"])
    assert [(c.name, c.location) for c in shader.specialization_constants] == [("N", 4)]


def test_registers_are_bindings_and_spaces_are_sets():
    text = "StructuredBuffer<uint> a : register(t3, space1); RWStructuredBuffer<uint> b : register(u2);"
    shader = load(text + "[numthreads(1,1,1)] void Run() { b[0] = a[0]; }")
    assert [(b.point, b.place) for b in shader.blocks] == [("b", (0, 2)), ("a", (1, 3))]


@pytest.mark.parametrize(("defines", "expected"), [({}, 6 * 3 * 4), ({"OP": "Add"}, (6 + 3) * 4)])
def test_values(defines, expected):
    pairs = np.tile(np.array([9, 0, 0, 0, 4, 5, 3, 0], np.float32), 64)
    buffers = {"pairs": pairs, "sum": np.zeros(64, np.float32), "raw": np.ones(4, np.int32)}
    sizes = {"count": 3, "m": [[1, 2, 3], [4, 5, 6]], "a": [9, 0]}
    report = check(
        SUM, {**buffers, "Sizes": sizes}, push={"q": 0.5}, language="slang", entry="Run",
        include=TEXTS, defines=defines,
    )  # fmt: skip
    assert report.ok, report
    np.testing.assert_array_equal(report.buffers["sum"][:4], [*[expected + 1.5] * 3, 0])


@pytest.mark.parametrize(("entry", "expected"), [("Of<Mul>", 6), ("Of<Add>", 5)])
def test_arguments_of_a_generic_entry_point(entry, expected):
    report = check(
        SUM, {"sum": np.zeros(1, np.float32)}, language="slang", entry=entry, include=TEXTS
    )
    assert report.buffers["sum"][0] == expected


def test_files_are_slang_by_their_suffix(tmp_path):
    (tmp_path / "parts dir/parts").mkdir(parents=True)
    (tmp_path / "parts dir/parts/number-of.slang").write_text(MODULE)
    (tmp_path / "s.slang").write_text(SUM)
    settings = {"entry": "Run", "include": [tmp_path / "parts dir"]}
    shader = shaders.load(tmp_path / "s.slang", **settings)
    (tmp_path / "parts dir/parts/number-of.slang").write_text(
        MODULE.replace("float x", "float4 z; public float x")
    )
    other = shaders.load(tmp_path / "s.slang", **settings)
    assert [shader.blocks[0].stride, other.blocks[0].stride] == [32, 48]  # the cache saw the change


BODY = "[numthreads(1,1,1)] void Run() {}"
REGISTERS = """StructuredBuffer<float> c : register(t1);
RWStructuredBuffer<float> d : register(u1);
StructuredBuffer<float> a : register(t0);
RWStructuredBuffer<float> b : register(u0);
[numthreads(1,1,1)] void Run() { b[0] = c[0]; }
[numthreads(1,1,1)] void Both() { b[0] = a[0]; }
"""

MEMBERS = """struct Two { RWStructuredBuffer<float> a, b; };
[[vk::binding(0)]] Two p;
[[vk::binding(1)]] Two q;
[numthreads(1,1,1)] void Run() { q.a[0] = p.b[0]; }
"""


NEWER_OVERLAP = """warning[E39001]: explicit binding overlap
 --> x:{0}:27
  |
{0} | RWStructuredBuffer<float> {1} : register(u1);
  |                           ^ parameter '{1}' overlaps with parameter '{2}'
--'

note: see declaration of '{2}'
 --- x:1:25
"""
OLDER_OVERLAP = "x({0}): warning 39001: parameter '{1}' overlaps with parameter '{2}'.\n"


def test_registers_that_overlap_those_of_parameters_without_use():
    assert [(b.point, b.place) for b in load(REGISTERS).blocks] == [("b", (0, 0)), ("c", (0, 1))]
    newer = "warning[E39001]: bindings overlap\n --> x:4:27\n"
    assert slang.with_located_errors(newer) == newer
    assert slang.with_located_errors(newer, ["b"]).startswith("ERROR: x:4: bindings overlap\n")


@pytest.mark.parametrize("form", [NEWER_OVERLAP, OLDER_OVERLAP], ids=["newer", "older"])
def test_only_overlaps_of_parameters_in_use_are_errors(form):
    log = form.format(2, "d", "c") + form.format(4, "b", "a")
    for used, lines in ((["b", "a"], [4]), (["a"], [4]), (["d"], [2]), (["p.a"], [2, 4])):
        found = slang.with_located_errors(log, used)
        assert re.findall(r"(?m)^ERROR: x:(\d): parameter '(.)' overlaps", found) == [
            (str(line), "d" if line == 2 else "b") for line in lines
        ]


@pytest.mark.parametrize(
    ("text", "options", "said"),
    [
        pytest.param(SUM, {"entry": "main"}, "x entry point [SH-03]", id="entry point"),
        pytest.param(SUM.replace("* N", "* M"), {}, "x:16:", id="name"),
        pytest.param(SUM, {"include": {"parts/number-of.slang": MODULE + "\nfloat f() { return g(); }"}}, "parts/number-of.slang:3:", id="module"),
        pytest.param("import no;\n" + BODY, {}, "x:1:", id="import"),
        pytest.param(REGISTERS, {"entry": "Both"}, "x:4:", id="register"),
        pytest.param(MEMBERS, {}, "x:3:", id="member"),
        pytest.param(BODY, {"target_env": "vulkan1.9"}, "target_env:", id="target"),
        pytest.param(BODY, {"entry": "Run<-h>"}, "entry", id="option"),
    ],
)  # fmt: skip
def test_errors(text, options, said, message):
    with pytest.raises((InvalidDescError, ShaderCompileError)) as caught:
        load(text, **options)
    message(caught.value, *said.split())


NEWER = """error[E30015]: undefined identifier
 --> {0}:5:13
  |
5 | y[id.x] = foo(id.x) + 1;
  |           ^^^ undefined identifier 'foo'.
--'
"""
OLDER = "{0}(5): error 30015: undefined identifier 'foo'.\n"


@pytest.fixture
def fake(tmp_path, monkeypatch):
    """Return a function that makes a script the compiler; its arguments are in a file."""

    def install(body):
        path = script(tmp_path / "fake-slangc", f'echo "$@" > {tmp_path}/arguments\n{body}')
        monkeypatch.setenv("VKOPS_SLANGC", str(path))
        return tmp_path / "arguments"

    return install


@pytest.mark.parametrize("text", [NEWER, OLDER])
def test_messages_of_each_version_have_lines(fake, text):
    fake(f"cat <<'E'\n{text.format('<source>')}E\nexit 1")
    text = fault(lambda: load("\n\n\n\n  y[id.x] = foo(id.x) + 1;"), ShaderCompileError)
    assert text == "x:5: undefined identifier 'foo', in 'y[id.x] = foo(id.x) + 1;'"


def test_command_line_of_slangc(fake, tmp_path):
    fake(f"while [ $# -gt 1 ]; do shift; done; cp {tmp_path}/a.spv $1")
    (tmp_path / "a.spv").write_bytes(shaders.compile("#version 450\nvoid main() {}"))
    settings = {"defines": {"N": 3}, "include": tmp_path, "debug": True, "target_env": "vulkan1.2"}
    shaders.compile(BODY, language="slang", entry="Run", **settings)
    words = (tmp_path / "arguments").read_text().split()
    assert " ".join(words[: words.index("<source>")]) == (
        "-lang slang -target spirv -stage compute -O0 -fvk-use-entrypoint-name "
        f"-profile spirv_1_5 -entry Run -DN=3 -g -I{tmp_path}"
    )


def test_files_outside_of_the_folders_are_refused_and_not_kept(tmp_path):
    (tmp_path / "inside").mkdir()
    (tmp_path / "secret.slang").write_text("public int n() { return 7; }")
    text = '#define WHERE "../secret.slang"\nimport WHERE;\n' + BODY
    with pytest.raises(ShaderCompileError, match="is outside of the folder"):
        load(text, include=tmp_path / "inside")
    used = text.replace("{}", "{ y[0] = n(); }") + "\nRWStructuredBuffer<int> y;"
    first, second = (
        (tmp_path / "secret.slang").write_text(f"public int n() {{ return {n}; }}")
        and load(used, include=tmp_path / "inside", allow_paths=True).spirv
        for n in (7, 8)
    )
    assert first != second  # no cache keeps what depends on a file that it cannot know


def test_missing_compiler(monkeypatch, message):
    monkeypatch.setenv("PATH", "")
    monkeypatch.setitem(sys.modules, "slangpy", None)
    message(fault(load, ShaderCompileError))


def test_slangc_on_the_path_comes_before_slangpy(tmp_path, monkeypatch):
    assert slang.find_compiler()[:2] == (sys.executable, "-I")
    slangc = script(tmp_path / "slangc", "")
    monkeypatch.setenv("PATH", str(tmp_path))
    assert slang.find_compiler() == (str(slangc),)
