"""Shaders of the user's own, without a device: what is refused, and with which error."""

import struct
from pathlib import Path

import numpy as np
import pytest
from refusals import fault
from spirv import VOID, assembled, entry_point, head, stripped

from vkops import shaders
from vkops.errors import BindingError, ShaderCompileError
from vkops.extent import Extent
from vkops.shaders import grammar
from vkops.shaders.features import CAPABILITIES
from vkops.shaders.shader import MAX_BINDING

HEAD = "#version 450\n"
MAIN = "void main() {}"
DATA = "layout(std430, binding = 0) buffer Data { uint data[]; };"

ENTRY = head() + VOID + entry_point()


def load(body, **options):
    return shaders.load(HEAD + body, name="x", **options)


# -- sources ------------------------------------------------------------------------------------


def test_forms_of_a_source(tmp_path):
    text = HEAD + DATA + MAIN
    Path(tmp_path, "a.comp").write_text(text)
    spirv = shaders.compile(text)
    Path(tmp_path, "a.spv").write_bytes(spirv)
    sources = text, tmp_path / "a.comp", tmp_path / "a.spv", spirv
    loaded = [shaders.load(source) for source in sources]
    assert [s.name for s in loaded] == ["<source>", "a.comp", "a.spv", "<source>"]
    assert all(s.spirv == spirv for s in loaded)


def test_settings_of_the_compiler(tmp_path):
    Path(tmp_path, "n.glsl").write_text("const uint N = M;\n")
    text = (
        '#extension GL_GOOGLE_include_directive : require\n#include "n.glsl"\n'
        "shared uint s[N]; void main() { s[0] = 1; }"
    )
    debug = load(text, defines={"M": 7}, include_dirs=[tmp_path], debug=True)
    plain = load(text, defines={"M": "7"}, include_dirs=[str(tmp_path)])
    assert debug.shared_nbytes == plain.shared_nbytes == 28
    assert b"#version" in debug.spirv
    assert b"#version" not in plain.spirv


def test_not_spirv(tmp_path):
    for data in (
        b"",
        b"abc",
        HEAD.encode() * 9,
        struct.pack("<5I", 0x07230203, 0x10300, 0, 1, 0)[:19],
    ):
        Path(tmp_path, "x.spv").write_bytes(data)
        for source, name in ((data, "x"), (tmp_path / "x.spv", "x.spv")):
            said = fault(lambda source=source: shaders.load(source, name="x"), ShaderCompileError)
            assert said == f"{name}: {len(data)} bytes that are not SPIR-V"


def test_spirv_that_is_refused():
    spirv = assembled(ENTRY.replace("OpReturn\n", "OpReturnValue %void\n"))
    said = fault(lambda: shaders.load(spirv, name="x"), ShaderCompileError)
    assert said.startswith("x: invalid SPIR-V: line "), said


@pytest.mark.parametrize("version", ["spv1.3", "spv1.4", "spv1.5", "spv1.6"])
def test_a_workgroup_whose_size_has_ids(version):
    """Before SPIR-V 1.6, Vulkan allows it with maintenance4."""
    text = ENTRY.replace(
        "ExecutionMode %main LocalSize 1 1 1", "ExecutionModeId %main LocalSizeId %c %one %one"
    )
    constants = "%uint = OpTypeInt 32 0\n%c = OpConstant %uint 4\n%one = OpConstant %uint 1\n"
    shader = shaders.load(assembled(text.replace("%void = ", f"{constants}%void = "), version))
    assert shader.local_size == (4, 1, 1)
    assert "maintenance4" in shader.needs


def test_capabilities_that_vkops_does_not_support_are_named():
    """Also those that spirv-val is too old to know; no instruction behind them is looked at."""
    names = {n: name for n, name in grammar.CAPABILITIES.items() if name not in CAPABILITIES}
    names[65000] = "capability 65000"
    assert {"BFloat16TypeKHR", "Float8EXT", "RayQueryKHR", "UntypedPointersKHR"} <= {
        *names.values()
    }
    for number, name in names.items():
        words = (
            0x07230203,
            0x10600,
            0,
            9,
            0,
            2 << 16 | 17,
            1,
            2 << 16 | 17,
            number,
            1 << 16 | 4999,
        )
        spirv = np.array(words, np.uint32).tobytes()
        said = fault(lambda spirv=spirv: shaders.load(spirv, name="x"))
        assert said == f"x capabilities: got {name}, which vkops does not support [SH-02]"


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"source": 5}, "source"),
        ({"source": None}, "source"),
        ({"source": "shaders/a.comp"}, "source"),
        ({"source": "a.spv"}, "source"),
        ({"source": Path("a\0b.spv")}, "'a\\x00b.spv'"),
        ({"source": Path("a\0b.comp")}, "'a\\x00b.comp'"),
        ({"source": Path("missing.comp")}, "missing.comp"),
        ({"source": Path("missing.spv")}, "missing.spv"),
        ({"constants": [1]}, "constants"),
        ({"defines": ["A"]}, "defines"),
        ({"defines": {1: 1}}, "defines"),
        ({"defines": {"A": 1.5}}, "defines"),
        ({"defines": {"A": 1 << 64}}, "defines"),
        ({"include": 5}, "include"),
        ({"include": [1]}, "include"),
        ({"include_dirs": [Path("a\0")]}, "'a\\x00'"),
        ({"include": {"a": 1}}, "include"),
        ({"language": "cuda"}, "language"),
        ({"language": "spirv"}, "language"),
        ({"source": b"", "language": "hlsl"}, "language"),
        ({"entry": 1}, "entry"),
        ({"entry": "-h", "language": "hlsl"}, "entry '-h'"),
        ({"target_env": 1}, "target_env"),
        ({"name": None}, "name"),
    ],
)
def test_arguments_of_the_wrong_kind(given, said, message):
    call = {"source": HEAD + MAIN, **given}
    message(fault(lambda: shaders.load(call.pop("source"), **call), ShaderCompileError), said)


@pytest.mark.parametrize("name", ["../a", "/a", "", "a/./b", "a\n", "C:a", "<source>"])
def test_names_of_included_texts_are_relative_paths(name):
    said = fault(lambda: load(MAIN, include={name: ""}), ShaderCompileError)
    assert said == f"include: got the name {name!r}, must be a relative path"


def test_names_are_printable(message):
    text = ENTRY.replace(
        "%void = ",
        """OpName %s "a\nb\x07"
OpMemberDecorate %s 0 Offset 0
OpDecorate %s Block
OpDecorate %v DescriptorSet 32
OpDecorate %v Binding 0
%uint = OpTypeInt 32 0
%s = OpTypeStruct %uint
%p = OpTypePointer StorageBuffer %s
%v = OpVariable %p StorageBuffer
%void = """,
        1,
    ).replace("%label = OpLabel", "%label = OpLabel\n%t = OpLoad %s %v")
    error = fault(lambda: shaders.load(assembled(text), name="x"))
    message(error, r"x a\nb\x07: ", "[SH-01]")


# -- SH-01 to SH-03: shaders that vkops can run ---------------------------------------------------

REFUSED = [  # declarations and statements, and the error
    ("layout(binding = 0, set = 32) buffer B { uint b; };", "b = 1;", "x B [SH-01]"),
    (f"layout(binding = {MAX_BINDING + 1}) buffer B {{ uint b; }};", "b = 1;", "x B [SH-01]"),
    ("layout(binding = 0) buffer B { uint b; } b; layout(binding = 0) uniform U { uint u; } u;",
     "b.b = u.u;", "x U [SH-01]"),
    ("#extension GL_NV_cooperative_matrix : require\n#extension GL_KHR_memory_scope_semantics : require\n",
     "fcoopmatNV<32, gl_ScopeSubgroup, 8, 8> m = fcoopmatNV<32, gl_ScopeSubgroup, 8, 8>(1.0);",
     "x capabilities [SH-02]"),
]  # fmt: skip


@pytest.mark.parametrize(("declared", "code", "named"), REFUSED, ids=[case[2] for case in REFUSED])
def test_shaders_that_are_refused(declared, code, named, message):
    message(fault(lambda: load(f"{declared} void main() {{ {code} }}")), *named.split())


KEPT = [
    ("layout(binding = 0) buffer B { uint b; }; layout(binding = 9) uniform U { vec4 u; };", "b = uint(u.x);"),
    (f"layout(set = 3, binding = {MAX_BINDING}) buffer B {{ uint b; }};", "b = 1;"),
    ("#extension GL_KHR_shader_subgroup_basic : require\n"
     "#extension GL_KHR_shader_subgroup_quad : require\n"
     "#extension GL_KHR_shader_subgroup_clustered : require\n"
     "shared uint s;", "s = subgroupClusteredAdd(subgroupQuadBroadcast(s, 0u), 2u);"),
    ("shared double s;", "s = 1.0lf;"),
    ("layout(push_constant) uniform P { uint a[100000000]; };", "a[0];"),
    ("", ""),
]  # fmt: skip


@pytest.mark.parametrize(("declared", "code"), KEPT)
@pytest.mark.parametrize("target_env", ["vulkan1.1", "vulkan1.3"])
def test_shaders_that_are_accepted(declared, code, target_env):
    shader = load(f"{declared} void main() {{ {code} }}", target_env=target_env)
    assert shader.spirv_version == {"vulkan1.1": (1, 3), "vulkan1.3": (1, 6)}[target_env]


LAYOUTS = {  # GLSL with a number a, and the features that its layout needs
    "std430, binding = 0) buffer B { float a; vec3 b; };": (),
    "std430, binding = 0) uniform B { float b[4]; float a; };": ("uniformBufferStandardLayout",),
    "scalar, binding = 0) buffer B { vec3 b; vec3 c[2]; float a; };": ("scalarBlockLayout",),
}


@pytest.mark.parametrize("declared", LAYOUTS)
def test_layouts_that_need_a_feature(declared):
    text = f"#extension GL_EXT_scalar_block_layout : require\nlayout({declared}"
    for _ in range(2):  # also from the cache
        shader = load(f"{text} shared float s; void main() {{ s = a; }}")
        assert shader.needs == LAYOUTS[declared]
        shaders.shader._shader.cache_clear()


def test_another_entry_point(message):
    spirv = assembled(ENTRY.replace('"main"', '"start"'))
    message(fault(lambda: shaders.load(spirv, name="x")), "x entry point: ", "[SH-03]")
    assert shaders.load(spirv, entry="start").entry_point == "start"
    message(fault(lambda: load(MAIN, entry="start")), "x entry point: ", "[SH-03]")


# -- SH-10: specialization constants ---------------------------------------------------------------

CONSTANTS = """
layout(constant_id = 9) const uint U = 4000000000u;
layout(constant_id = 1) const int I = -3;
layout(constant_id = 2) const float F = 1.5;
layout(constant_id = 3) const bool T = true;
"""


@pytest.mark.parametrize(
    ("constants", "default"),
    [
        ({"U": 2**32 - 1}, 2**32 - 1),
        ({9: 0}, 0),
        ({"I": -(2**31)}, -(2**31)),
        ({1: np.int64(7)}, 7),
        ({"I": 2.0}, 2),
        ({"F": 0.1}, float(np.float32(0.1))),
        ({2: -0.0}, -0.0),
        ({"F": 1e-45}, 2.0**-149),
        ({"F": float("inf")}, float("inf")),
        ({"F": float("-inf")}, float("-inf")),
        ({"F": float("nan")}, float("nan")),
        ({"F": np.float32(3)}, 3),
        ({"T": 0}, 0),
        ({3: True}, 1),
    ],
)
def test_constants(constants, default):
    (key,) = constants
    loaded = load(CONSTANTS + MAIN, constants=constants).specialization_constants
    (chosen,) = (c.default for c in loaded if key in (c.name, c.location))
    assert repr(float(chosen)) == repr(float(default))
    plain = load(CONSTANTS + MAIN).specialization_constants
    assert sum(a != b for a, b in zip(loaded, plain, strict=True)) == (key not in (3,))


def test_sizes_are_those_of_the_given_constants(message):
    body = (
        "layout(constant_id = 0) const uint N = 1; const uint HALF = N / 2;"
        f"{DATA} shared float s[HALF]; void main() {{ float a[HALF]; s[0] = a[0]; }}"
    )
    assert load(body, constants={"N": 8}).shared_nbytes == 16
    message(fault(lambda: load(body, constants={"M": 8})), "there is no constant", "[SH-10]")
    message(fault(lambda: load(body), ShaderCompileError), "an array has 0 elements")


def test_constants_without_names(message):
    spirv = stripped(load(CONSTANTS + MAIN).spirv)
    assert shaders.load(spirv, constants={9: 5}).specialization_constants[-1].default == 5
    message(fault(lambda: shaders.load(spirv, constants={"": 5}, name="x")), "constants", "[SH-10]")


@pytest.mark.parametrize(
    ("constants", "said"),
    [
        ({"X": 1}, "constants"),
        ({4: 1}, "constants"),
        ({None: 1}, "constants"),
        ({"U": -1}, "constants['U']"),
        ({"U": 2**32}, "constants['U']"),
        ({"I": 1.5}, "constants['I']"),
        ({1: "7"}, "constants[1]"),
        ({"I": 10**5000}, "constants['I']"),
        ({"I": float("nan")}, "constants['I']"),
        ({"F": "1.5"}, "constants['F']"),
        ({"F": 1e39}, "constants['F']"),
        ({"F": None}, "constants['F']"),
        ({"T": 2}, "constants['T']"),
        ({"U": 1, 9: 1}, "constants[9]"),
    ],
)
def test_constants_that_are_wrong(constants, said, message):
    message(fault(lambda: load(CONSTANTS + MAIN, constants=constants)), f"x {said}: ", "[SH-10]")


def test_constants_of_a_shader_without_any(message):
    message(fault(lambda: load(MAIN, constants={"N": 1})), "x constants: ", "[SH-10]")


@pytest.mark.parametrize("axis", "xyz")
def test_workgroups_without_invocations(axis, message):
    text = f"layout(local_size_{axis}_id = 0) in; {MAIN}"
    message(fault(lambda: load(text, constants={0: 0})), f"x local_size_{axis}: ", "[SH-08]")


# -- SH-04 to SH-06: bindings ---------------------------------------------------------------------

USE = "void main() { to.c.x = from.a[0] + b[0] + d[0].x; }"
BLOCKS = (
    "layout(std430, binding = 0) readonly buffer A { uint a[]; } from;"
    "layout(std430, binding = 1) readonly buffer B { uint n; uint b[]; };"
    "layout(std430, binding = 3) buffer C { uvec4 c; } to;"
    "layout(std430, binding = 3) readonly buffer D { uvec2 d[4]; };"
)


def span(name, start, nbytes):
    """Bytes of a resource that has 64."""
    return Extent(name, start, nbytes), 64


X, Y, Z = (span(name, 0, 64) for name in "XYZ")


def bind(spans):
    load(BLOCKS + USE).check(spans)
    return load(BLOCKS + USE).slots(spans)


@pytest.mark.parametrize(
    "names", [("A", "B", "C"), ("from", "1", "to"), ("0", "B", "D"), ("A", "B", "3")]
)
def test_names_of_blocks(names):
    bound = bind(dict(zip(names, (X, Y, Z), strict=True)))
    points = [(slot.point, slot.block.binding) for slot in bound]
    assert points == [*zip(names, (0, 1, 3), strict=True)]


def test_blocks_of_one_binding_are_one():
    """As large as the largest, and read only if all are, whichever is named."""
    for name in "CD":
        *read, written = bind({"A": X, "B": Y, name: span("Z", 0, 32)})
        assert [slot.is_written for slot in (*read, written)] == [False, False, True]
        with pytest.raises(BindingError, match="at least 32"):
            bind({"A": X, "B": Y, name: span("Z", 0, 16)})


@pytest.mark.parametrize(
    ("spans", "said"),
    [
        ({"A": X, "B": Y}, "C [SH-04]"),
        ({}, "A [SH-04]"),
        ({"A": X, "B": Y, "E": Z}, "E [SH-04]"),
        ({"a\n": X}, "'a\\n' [SH-04]"),
        ({"": X}, "'' [SH-04]"),
        ({"A": X, "from": Y}, "from [SH-04]"),
        ({"C": X, "D": Y}, "D [SH-04]"),
        ({"A": span("X", 2, 4)}, "A [SH-05]"),
        ({"A": span("X", 60, 8)}, "A [SH-05]"),
        ({"A": span("X", 68, 0)}, "A [SH-05]"),
        ({"from": span("X", 0, 0)}, "from [SH-05]"),
        ({"A": span("X", 0, 6)}, "A [SH-05]"),
        ({"B": span("X", 0, 4)}, "B [SH-05]"),
        ({"C": span("X", 0, 16)}, "C [SH-05]"),
    ],
)  # fmt: skip
def test_bindings_that_are_wrong(spans, said, message):
    message(fault(lambda: bind(spans), BindingError), "x", *said.split())


@pytest.mark.parametrize(
    "spans",
    [
        {"A": X, "B": X, "C": X},  # all of it
        {"A": span("X", 0, 32), "B": span("X", 16, 32), "C": Z},  # both only read
        {"A": span("X", 0, 32), "B": Y, "C": span("X", 32, 32)},  # beside it
        {"A": span("X", 0, 48), "B": Y, "C": span("X", 32, 32)},
    ],
)
def test_bytes_that_may_be_shared(spans):
    assert len(bind(spans)) == 3


def test_values_by_position_for_a_block_that_is_not_used(message):
    text = "layout(std430, binding = 1) buffer Other { uint other[]; };"
    shader = load(f"{DATA}{text}void main() {{ other[0] = 1u; }}")
    assert shader.by_position([1]) == {"Other": 1}
    wrong = fault(lambda: shader.by_position([1, 2]), BindingError)
    message(wrong, "x", "buffers", "[SH-04]")


TEXTURE = """layout(binding = 0) uniform texture2D picture;
layout(binding = 1) uniform sampler nearest;
layout(std430, binding = 2) buffer B { vec4 b; };
void main() { b = textureLod(sampler2D(picture, nearest), vec2(0), 0); }"""


@pytest.mark.parametrize(("values", "outputs", "field"), [(2, 1, "out"), (3, None, "buffers")])
def test_samplers_that_are_given_by_position(message, values, outputs, field):
    shader = load(TEXTURE)
    wrong = fault(lambda: shader.arguments(values, (), outputs), BindingError)
    message(wrong, "x", field, "[SH-04]")


CALL = """layout(std430, binding = 0) readonly buffer A { uint a[]; };
layout(std430, binding = 1) buffer B { uint b[]; };
layout(push_constant) uniform Push { uint m, n; };
void main() { b[0] = a[0] + m + n; }"""


def sources(call):
    return [slot.source for slot in call.slots]


def test_where_the_arguments_of_a_call_go():
    shader = load(CALL)
    call = shader.arguments(1, ("n", "B", "m_"), None)
    assert [(slot.point, slot.is_written) for slot in call.slots] == [("A", False), ("B", True)]
    assert (sources(call), call.outputs, call.pushed) == ([0, 2], (), {"n": 1, "m": 3})
    assert call.packer.pack(*[(7, 8, 9, 10)[n] for n in call.order]) == struct.pack("<2I", 10, 8)
    other = shader.arguments(1, ("m",), 1)
    assert (sources(other), other.outputs, other.packer) == ([0, 2], ("B",), None)
    assert sources(shader.arguments(1, (), ("B",))) == [0, 1]
    assert shader.arguments(2, (), ()).outputs == ()
