"""The declarations of SPIR-V modules, and changed modules."""

import re
import struct
from contextlib import suppress

import pytest
from refusals import fault
from spirv import VOID, assembled, bound, entry_point, head, stripped

from vkops import shaders
from vkops.debug import check
from vkops.errors import ShaderCompileError
from vkops.shaders import constants, tools
from vkops.shaders.binary import corrected
from vkops.shaders.layout import Scalar, ScalarType
from vkops.shaders.limited_indices import with_limited_indices
from vkops.shaders.listing import describe
from vkops.shaders.module import Module

HEAD = "#version 450\n"
MAIN = "void main() {}"


def module(body, **settings):
    return Module.read(shaders.compile(f"{HEAD}{body}", **settings))


def declared(found):
    """Return all blocks of a module; what is tested here is not whether they are used."""
    return sorted(found.blocks + found.unused, key=lambda block: (block.set, block.binding))


# -- blocks ----------------------------------------------------------------------------------------

STORAGE = {  # members of a block: its size, and the stride of a runtime array
    "uint a;": (4, 0),
    "uint a[];": (0, 4),
    "uint n; vec2 a[];": (8, 8),
    "vec3 a; float b;": (16, 0),
    "vec3 a[2]; float b[3];": (44, 0),
    "mat4 m;": (64, 0),
    "mat4 m[];": (0, 64),
    "mat3 m[2]; uint a[];": (96, 4),
    "layout(row_major) mat2x3 m;": (24, 0),
    "layout(row_major) mat2x3 m[2][3];": (144, 0),
    "mat2x3 m;": (32, 0),
    "layout(row_major) mat4x2 m; mat4x2 n[];": (32, 32),
    "layout(offset = 32) uint a;": (36, 0),
    "uint a; layout(align = 64) vec4 b[];": (64, 16),
    "S s; uint a[];": (16, 4),
    "S s[3]; uint a;": (52, 0),
    "S s[];": (0, 16),
    "uint a[2][3][4];": (96, 0),
    "bvec3 b; uvec2 u;": (24, 0),
    "ivec4 i; uint a[N * 2 + 1];": (44, 0),
}
UNIFORM = {
    "uint a;": (4, 0),
    "float a[3];": (48, 0),
    "vec3 a[2]; mat3 m;": (80, 0),
    "layout(row_major) mat2x3 m;": (48, 0),
    "mat2x3 m; float b;": (36, 0),
    "S s; uint a;": (20, 0),
    "S s[2]; vec2 v;": (40, 0),
}
SIZES = {"storage": STORAGE, "uniform": UNIFORM}
DECLARED = "layout(constant_id = 0) const uint N = 3; struct S { float x; ivec2 y; };"


@pytest.mark.parametrize("kind", SIZES)
def test_the_sizes_of_blocks(kind):
    layout, keyword = ("std430", "buffer") if kind == "storage" else ("std140", "uniform")
    text = "".join(
        f"layout({layout}, binding = {n}) {keyword} B{n} {{ {members} }} b{n};"
        for n, members in enumerate(SIZES[kind])
    )
    blocks = declared(module(f"{DECLARED}{text}{MAIN}"))
    assert [(b.nbytes, b.stride) for b in blocks] == [*SIZES[kind].values()]
    for n, each in enumerate(blocks):
        assert (each.name, each.kind, each.binding) == (f"B{n}", kind, n)
        assert each.readonly == (kind == "uniform")


def block(name, binding=0, layout="", instance="", members="uint a[];"):
    layout = f"layout(std430, set = 0, binding = {binding}) {layout}"
    return f"{layout} buffer {name} {{ {members} }} {instance};"


@pytest.mark.parametrize("target_env", ["vulkan1.0", "vulkan1.1"])
def test_names_and_access_of_blocks(target_env):
    """For Vulkan 1.0 storage blocks are BufferBlocks in class Uniform."""
    loaded = module(
        block("A", 4, "readonly", "in_")
        + block("B", 2, "writeonly")
        + block("C", 2, "readonly", "again")
        + block("D", 7, "", "d", "readonly uint n; readonly uint v[];")
        + block("E", 8, "", "e", "readonly uint n; uint v[];")
        + "layout(binding = 5) uniform F { vec4 v; } f;"
        + MAIN,
        target_env=target_env,
    )
    blocks = declared(loaded)
    assert [(b.binding, b.name, b.instance, b.kind, b.readonly) for b in blocks] == [
        (2, "B", "", "storage", False),
        (2, "C", "again", "storage", True),
        (4, "A", "in_", "storage", True),
        (5, "F", "f", "uniform", True),
        (7, "D", "d", "storage", True),
        (8, "E", "e", "storage", False),
    ]
    assert [b.point for b in blocks] == ["B", "C", "A", "F", "D", "E"]
    assert all(name in blocks[2].names for name in ("A", "in_", "4"))
    assert "" not in blocks[0].names


def test_stripped_blocks_are_called_by_their_bindings():
    text = block("A", 4, "readonly", "in_") + block("B", 2, instance="out_")
    spirv = stripped(module(text + "void main() { out_.a[0] = in_.a[0]; }").spirv)
    loaded = Module.read(spirv)
    assert [(b.name, b.instance, b.point) for b in loaded.blocks] == [("", "", "2"), ("", "", "4")]
    assert dict(describe(loaded))["Blocks"] == "2 (storage); 4 (storage, read only)"


ONE_STRUCT = f"""{head()}OpName %struct "type.RWStructuredBuffer.uint"
OpName %x "In"
OpName %y "Out"
OpDecorate %array ArrayStride 4
OpMemberDecorate %struct 0 Offset 0
OpDecorate %struct BufferBlock
OpDecorate %x DescriptorSet 0
OpDecorate %x Binding 0
OpDecorate %y DescriptorSet 0
OpDecorate %y Binding 1
{VOID}%uint = OpTypeInt 32 0
%array = OpTypeRuntimeArray %uint
%struct = OpTypeStruct %array
%pointer = OpTypePointer Uniform %struct
%x = OpVariable %pointer Uniform
%y = OpVariable %pointer Uniform
{entry_point()}"""


def test_blocks_of_one_struct_go_by_their_own_names():
    """Compilers of HLSL make them: the name of the struct is the name of none of them."""
    blocks = declared(Module.read(assembled(ONE_STRUCT)))
    assert [(b.point, b.binding) for b in blocks] == [("In", 0), ("Out", 1)]
    assert not any("type.RWStructuredBuffer.uint" in b.names for b in blocks)


KINDS = {
    "uniform sampler": "sampler", "uniform sampler2D": "combined image sampler",
    "uniform itexture3D": "sampled image", "rgba8) uniform image2D": "storage image",
    "r32f) uniform imageBuffer": "storage texel buffer",
    "uniform usamplerBuffer": "uniform texel buffer",
}  # fmt: skip


@pytest.mark.parametrize(("length", "expected"), [("", None), ("[1]", 1), ("[3]", 3)])
def test_other_kinds_and_arrays(length, expected):
    uniform = f"layout(binding = 1) uniform U {{ vec4 v; }} u{length};"
    text = block("A", instance=f"a{length}") + uniform
    for n, kind in enumerate(KINDS, 2):
        format_ = ", " if ")" in kind else ") "
        text += f"layout(binding = {n}{format_}{kind} s{n}{length};"
    first, second, *others = declared(module(text + MAIN))
    assert [(b.point, b.kind, b.length, b.nbytes, b.stride) for b in (first, second)] == [
        ("A", "storage", expected, 0, 4), ("U", "uniform", expected, 16, 0),
    ]  # fmt: skip
    assert [(b.kind, b.length) for b in others] == [(kind, expected) for kind in KINDS.values()]


# -- numbers ---------------------------------------------------------------------------------------

PUSHED = {  # members: names, types and offsets
    "uint a; int b; float c;": [("a", "uint", 0), ("b", "int", 4), ("c", "float", 8)],
    "vec3 v; float f;": [
        ("v[0]", "float", 0), ("v[1]", "float", 4), ("v[2]", "float", 8), ("f", "float", 12),
    ],
    "uint a; layout(offset = 16) uint b;": [("a", "uint", 0), ("b", "uint", 16)],
    "uint a[2]; ivec2 b[1];": [
        ("a[0]", "uint", 0), ("a[1]", "uint", 4), ("b[0][0]", "int", 8), ("b[0][1]", "int", 12),
    ],
    "S s[2];": [
        ("s[0].x", "float", 0), ("s[0].y[0]", "int", 8), ("s[0].y[1]", "int", 12),
        ("s[1].x", "float", 16), ("s[1].y[0]", "int", 24), ("s[1].y[1]", "int", 28),
    ],
    "mat2 m;": [
        ("m[0][0]", "float", 0), ("m[0][1]", "float", 4),
        ("m[1][0]", "float", 8), ("m[1][1]", "float", 12),
    ],
    "layout(row_major) mat2x3 m;": [
        ("m[0][0]", "float", 0), ("m[0][1]", "float", 8), ("m[0][2]", "float", 16),
        ("m[1][0]", "float", 4), ("m[1][1]", "float", 12), ("m[1][2]", "float", 20),
    ],
    "uint b; uint a[N - 1];": [("b", "uint", 0), ("a[0]", "uint", 4), ("a[1]", "uint", 8)],
}  # fmt: skip


@pytest.mark.parametrize("members", PUSHED)
def test_push_constants(members):
    loaded = module(f"{DECLARED} layout(push_constant) uniform P {{ {members} }} p; {MAIN}")
    assert [(s.name, str(s.type), s.location) for s in loaded.push_constants] == PUSHED[members]
    assert loaded.push_nbytes == max(location for _, _, location in PUSHED[members]) + 4


def test_push_constants_without_names_are_numbered():
    text = f"{DECLARED} layout(push_constant) uniform P {{ uint a; S s; }}; {MAIN}"
    loaded = Module.read(stripped(module(text).spirv))
    assert [s.name for s in loaded.push_constants] == ["0", "1.0", "1.1[0]", "1.1[1]"]


CONSTANTS = """
layout(constant_id = 9) const uint U = 4000000000u;
layout(constant_id = 1) const int I = -3;
layout(constant_id = 2) const float F = 1.5;
layout(constant_id = 3) const bool T = true;
layout(constant_id = 4) const bool N = false;
const uint TWICE = U * 2;
"""


def test_specialization_constants():
    assert module(CONSTANTS + MAIN).specialization_constants == (
        Scalar("I", ScalarType("int", 4), 1, -3),
        Scalar("F", ScalarType("float", 4), 2, 1.5),
        Scalar("T", ScalarType("bool", 4), 3, 1),
        Scalar("N", ScalarType("bool", 4), 4, 0),
        Scalar("U", ScalarType("uint", 4), 9, 4000000000),
    )


def specialize(found, values):
    """Return a module with other values of specialization constants, by SpecId."""
    types = {constant.location: constant.type for constant in found.specialization_constants}
    words = {location: types[location].words(value) for location, value in values.items()}
    return Module.read(constants.specialized(found.spirv, words))


WIDE = """
#extension GL_EXT_shader_explicit_arithmetic_types : require
layout(constant_id = 0) const int64_t L = -5l;
layout(constant_id = 1) const uint64_t U = 5ul;
layout(constant_id = 2) const double D = 0.5lf;
layout(constant_id = 3) const int16_t S = -7s;
layout(constant_id = 4) const float16_t H = 1.5hf;
"""


def test_specialization_constants_of_other_sizes():
    loaded = module(WIDE + MAIN)
    assert [(c.name, str(c.type), c.default) for c in loaded.specialization_constants] == [
        ("L", "int64", -5), ("U", "uint64", 5), ("D", "float64", 0.5), ("S", "int16", -7),
        ("H", "float16", 1.5),
    ]  # fmt: skip
    values = {0: -(2**63), 1: 2**64 - 1, 2: 1e300, 3: -1, 4: -0.25}
    after = specialize(loaded, values)
    assert {c.location: c.default for c in after.specialization_constants} == values
    shaders.validate(after.spirv, target_env="vulkan1.1")


COMPUTED = {  # of N = 7, I = -7, B = true, W = 64 invocations
    "N * 2u + 1u": 15, "N - 3u": 4, "N / 2u": 3, "N % 4u": 3, "N << 2": 28, "N >> 1": 3,
    "uint(-I)": 7, "uint(I / -2)": 3, "uint(-(I >> 1))": 4, "uint(abs(2)) + N": 9,
    "(N & 6u) | 8u": 14, "N ^ 1u": 6, "~N & 15u": 8, "B ? N : 1u": 7, "!B ? N : 1u": 1,
    "I < 0 ? 3u : 4u": 3, "N < 7u ? 3u : 4u": 4, "B && N == 7u ? 5u : 6u": 5,
    "B != (I >= 1) || false ? 2u : 9u": 2, "gl_WorkGroupSize.x": 64, "N - gl_WorkGroupSize.y": 6,
    # What is divided by zero, which SPIR-V leaves undefined, is 0.
    "N / (N - 7u) + 2u": 2, "N % (N - 7u) + 3u": 3, "uint(I / (I + 7)) + 4u": 4,
}  # fmt: skip


def test_lengths_that_are_computed():
    text = (
        "layout(local_size_x = 64, local_size_x_id = 9) in;"
        "layout(constant_id = 0) const uint N = 7u; layout(constant_id = 1) const int I = -7;"
        "layout(constant_id = 2) const bool B = true;"
    )
    text += "".join(
        block(f"B{n}", n, "", f"b{n}", f"uint s[{length}];") for n, length in enumerate(COMPUTED)
    )
    blocks = declared(module(f"{text} void main() {{ b0.s[0] = gl_WorkGroupSize.x; }}"))
    assert [b.nbytes // 4 for b in blocks] == [*COMPUTED.values()]


@pytest.mark.parametrize("lengths", [{(0, 0): 3, (1, 0): 2}, {(0, 0): 3}, {}])
def test_arrays_of_blocks_without_lengths_get_these(lengths):
    text = "#extension GL_EXT_nonuniform_qualifier : require\n" + "".join(
        f"layout(set = {n}, binding = 0) buffer B{n} {{ uint s[]; }} b{n}[];" for n in (0, 1)
    )
    spirv = module(
        f"{text} void main() {{ uint i = gl_LocalInvocationIndex; b0[i].s[0] = b1[i].s[1]; }}"
    ).spirv
    changed = with_limited_indices(spirv, tuple(lengths.items()))
    shaders.validate(changed)
    blocks = declared(Module.read(changed))
    assert [block.length for block in blocks] == [lengths.get((n, 0), 1) for n in (0, 1)]


LOCAL_SIZES = {
    "": (1, 1, 1),
    "layout(local_size_x = 4, local_size_z = 2) in;": (4, 1, 2),
    "layout(local_size_x_id = 0, local_size_y = 8) in;": (1, 8, 1),
    "layout(local_size_x = 4, local_size_x_id = 0) in;": (4, 1, 1),
}


@pytest.mark.parametrize("layout", LOCAL_SIZES)
def test_local_size(layout):
    size = "gl_WorkGroupSize.x" if layout else "1"  # glslang 16 refuses one that is not declared
    text = f"{layout} shared uint s; void main() {{ s = {size}; }}"
    loaded = module(text)
    assert loaded.local_size == LOCAL_SIZES[layout]
    if "_id" in layout:
        changed = specialize(loaded, {0: 32})
        assert changed.local_size == (32, *LOCAL_SIZES[layout][1:])


_SHARED = re.compile(r"shared \S+ (\w)(\[?)")


@pytest.mark.parametrize(
    ("declared", "nbytes"),
    [
        ("", 0),
        ("shared uint a;", 4),
        ("shared vec3 a[5]; shared bool b;", 64),
        ("shared mat3 m;", 36),
        ("shared S s[2];", 24),
        ("shared uint a[N];", 12),
        ("shared uint a[N * gl_WorkGroupSize.x + 1];", 4 * (3 * 64 + 1)),
    ],
)
def test_shared_memory(declared, nbytes):
    names = [f"{name}{'[0]' * bool(array)}" for name, array in _SHARED.findall(declared)]
    main = f"void main() {{ {''.join(f'{name} = {name};' for name in names)} }}"
    loaded = module(
        f"layout(local_size_x = 64, local_size_x_id = 5) in; {DECLARED} {declared} {main}"
    )
    assert loaded.shared_nbytes == nbytes
    if "gl_WorkGroupSize" in declared:
        assert specialize(loaded, {0: 2, 5: 8}).shared_nbytes == 4 * (2 * 8 + 1)


def test_loops_and_instructions():
    text = "layout(std430, binding = 0) buffer B { uint a[]; };"
    loop = "void main() { for (uint i = 0; i < a[0]; ++i) for (uint j = 0; j < i; ++j) a[i] = j; }"
    loaded = module(text + loop)
    assert loaded.loops == 2
    assert loaded.capabilities == ("Shader",)
    assert loaded.entry_point == "main"
    assert module(text + loop, debug=True).instructions == loaded.instructions


# -- changed modules --------------------------------------------------------------------------------


def test_strings_in_debug_information():
    """They hold the whole source: quotes, backslashes, line breaks."""
    source = '// a "quoted" \\n text; x = "\n/* %5 = OpNop */ #define Q \\\n 1\n'
    loaded = module(source + CONSTANTS + MAIN, debug=True)
    assert loaded.specialization_constants == module(CONSTANTS + MAIN).specialization_constants


def test_description():
    text = (
        "layout(local_size_x = 8) in; shared vec4 s[512];"
        "layout(constant_id = 0) const uint N = 3; layout(constant_id = 1) const bool B = true;"
        "layout(constant_id = 2) const float F = 0.1;"
        "layout(binding = 1) uniform U { dvec4 v; } u; layout(push_constant) uniform P { vec2 p; };"
    )
    text += block("A", 0, "readonly", "a") + block("C", 2, members="uint c;")
    text = text.replace("set = 0, binding = 2", "set = 3, binding = 2")
    loaded = module(f"{text} void main() {{ c = a.a[0] + uint(u.v.x); s[0] = vec4(p, p); }}")
    facts = dict(describe(loaded))
    assert facts.pop("Code").endswith(f" instructions, 0 loops, {len(loaded.spirv):,} bytes")
    assert facts == {
        "Workgroup": "8 x 1 x 1 invocations",
        "Blocks": "0 A a (storage, read only); 1 U u (uniform); 3.2 C (storage)",
        "Push constants": "float p[0], float p[1] (8 bytes)",
        "Specialization constants": "uint N = 3, bool B = 1, float F = 0.100000001",
        "Shared memory": "8,192 bytes",
        "Capabilities": "Shader, Float64",
        "Features": "shaderFloat64",
    }


# -- entry points ----------------------------------------------------------------------------------


def two_entries():
    """A module with the entry points "one" and "two", which use "In" and "Out".

    "two" uses push constants and shared memory, too.
    """
    head, main = ONE_STRUCT.split("%main = ")
    text = head.replace(
        'OpEntryPoint GLCompute %main "main"\nOpExecutionMode %main LocalSize 1 1 1',
        'OpEntryPoint GLCompute %one "one"\nOpEntryPoint GLCompute %two "two"\n'
        "OpExecutionMode %one LocalSize 1 1 1\nOpExecutionMode %two LocalSize 5 1 1",
    )
    text = text.replace(
        "%void =",
        "OpDecorate %pushed Block\nOpMemberDecorate %pushed 0 Offset 0\n%void =",
    )
    text = text.replace(
        "OpName %struct", 'OpSource HLSL 500\nOpMemberName %pushed 0 "factor"\nOpName %struct'
    )
    text += "%zero = OpConstant %uint 0\n%element = OpTypePointer Uniform %uint\n"
    text += "%pushed = OpTypeStruct %uint\n%to_pushed = OpTypePointer PushConstant %pushed\n"
    text += "%push = OpVariable %to_pushed PushConstant\n%word = OpTypePointer PushConstant %uint\n"
    text += (
        "%to_shared = OpTypePointer Workgroup %uint\n%shared = OpVariable %to_shared Workgroup\n"
    )
    used = "\n%used = OpAccessChain %word %push %zero\n%read = OpLoad %uint %shared"
    for name, variable, more in (("one", "%x", ""), ("two", "%y", used)):
        use = f"OpLabel\n%use_{name} = OpAccessChain %element {variable} %zero %zero{more}"
        text += f"%{name} = {main}".replace("%label", f"%label_{name}").replace("OpLabel", use)
    return assembled(text)


def test_several_entry_points(message):
    spirv = two_entries()
    shaders.validate(spirv)
    one, two = (Module.read(spirv, entry=entry) for entry in ("one", "two"))
    assert one.entry_points == two.entry_points == ("one", "two")
    assert ([b.point for b in one.blocks], [b.point for b in one.unused]) == (["In"], ["Out"])
    assert ([b.point for b in two.blocks], two.local_size) == (["Out"], (5, 1, 1))
    assert [[c.name for c in each.push_constants] for each in (one, two)] == [[], ["factor"]]
    assert (one.shared_nbytes, two.shared_nbytes) == (0, 4)
    assert Module.read(spirv).entry_point == "one"
    assert dict(describe(two))["Entry points"] == "one, two"
    message(fault(lambda: Module.read(spirv, "x", "main")), "x entry point: ", "[SH-03]")


@pytest.mark.parametrize("type_", ["float16_t", "int16_t", "uint16_t", "int8_t"])
def test_there_are_no_conversions_to_the_same_type(type_):
    """glslang 12 makes conversions of them, which the specification forbids."""
    narrow = "#extension GL_EXT_shader_{}bit_storage : require\n"
    text = f"""#version 450
{narrow.format(8)}{narrow.format(16)}
layout(binding = 0) buffer X {{ {type_} x[]; }};
layout(binding = 1) buffer Y {{ {type_} y[]; }};
void main() {{ y[0] = {type_}(x[0]); }}"""
    spirv = shaders.compile(text, target_env="vulkan1.2")
    conversions = [spirv.count(struct.pack("<I", 4 << 16 | op)) for op in (113, 114, 115)]
    assert conversions == [0, 0, 0]
    shaders.load(spirv)  # spirv-val accepts it


def test_languages_that_spirv_val_does_not_know():
    """Slang's is 11, and SPIRV-Tools of Debian 12 know 6."""
    source = struct.pack("<3I", 3 << 16 | 3, 5, 500)
    spirv = two_entries()
    assert spirv.count(source) == 1
    other = spirv.replace(source, struct.pack("<3I", 3 << 16 | 3, 11, 500))
    first, second = (shaders.load(module, entry="two") for module in (spirv, other))
    assert repr(first.blocks) == repr(second.blocks)
    assert corrected(spirv) == spirv
    for damaged in (b"", b"abc", other[:-1], other[:30], other[:20] + bytes(8)):
        assert corrected(damaged) == damaged


GROUPS = f"""{head()}OpName %factor "factor"
{{}}
OpDecorate %struct BufferBlock
{VOID}%uint = OpTypeInt 32 0
%zero = OpConstant %uint 0
%factor = OpSpecConstant %uint 5
%array = OpTypeRuntimeArray %uint
%struct = OpTypeStruct %uint %uint %array
%to_struct = OpTypePointer Uniform %struct
%to_uint = OpTypePointer Uniform %uint
%x = OpVariable %to_struct Uniform
{
    entry_point('''%place = OpAccessChain %to_uint %x %zero
OpStore %place %factor
''')
}"""
IN_SET_1 = "OpDecorate {0} DescriptorSet 1\nOpDecorate {0} Binding 3\nOpDecorate {0} NonWritable\n"
FIRST = "OpMemberDecorate %struct 0 Offset 0\n"
PLAIN = (
    FIRST
    + IN_SET_1.format("%x")
    + "OpDecorate %array ArrayStride 16\nOpDecorate %factor SpecId 4\n"
    "OpMemberDecorate %struct 1 Offset 8\nOpMemberDecorate %struct 2 Offset 16\n"
)
GROUPED = {
    "resource": PLAIN.replace(
        IN_SET_1.format("%x"),
        IN_SET_1.format("%g") + "%g = OpDecorationGroup\nOpGroupDecorate %g %x\n",
    ),
    "array": PLAIN.replace("%array", "%g") + "%g = OpDecorationGroup\nOpGroupDecorate %g %array\n",
    "constant": PLAIN.replace("%factor", "%g")
    + "%g = OpDecorationGroup\nOpGroupDecorate %g %factor\n",
    "members": PLAIN.replace("OpMemberDecorate %struct 1", "OpDecorate %g").replace(
        "OpMemberDecorate %struct 2", "OpDecorate %h"
    )
    + "%g = OpDecorationGroup\n%h = OpDecorationGroup\n"
    "OpGroupMemberDecorate %g %struct 1\nOpGroupMemberDecorate %h %struct 2\n",
}


@pytest.mark.parametrize("kind", GROUPED)
def test_groups_of_decorations(kind):
    one, other = (
        shaders.load(assembled(GROUPS.format(text), "spv1.0"), constants={4: 7})
        for text in (PLAIN, GROUPED[kind])
    )
    assert repr(one.blocks) == repr(other.blocks)
    assert [(b.set, b.binding, b.stride, b.nbytes) for b in one.blocks] == [(1, 3, 16, 16)]
    assert other.specialization_constants == (Scalar("factor", ScalarType("uint", 4), 4, 7),)


def test_a_resource_without_a_binding(message):
    """spirv-val finds it, too."""
    loaded = Module.read(assembled(GROUPS.format(FIRST), "spv1.0"))
    message(fault(lambda: shaders.shader._check("x", loaded)), "x %", "[SH-01]")


LITERALS = ONE_STRUCT.replace("%y", "%UNUSED").replace("OpName %struct", """%file = OpString "file"
OpName %struct""").replace("%array = ", """%uint2 = OpTypeVector %uint 2
%array = """).replace("%label = OpLabel", """%label = OpLabel
OpLine %file 13 14
%length = OpArrayLength %uint %x 0
%pair = OpCompositeConstruct %uint2 %length %length
%other = OpVectorShuffle %uint2 %pair %pair 3 1""")  # fmt: skip


@pytest.mark.parametrize("number", [1, 3, 13, 14])
def test_a_variable_whose_id_is_a_number_in_an_instruction_is_not_used(number):
    spirv = assembled(LITERALS.replace("%UNUSED", f"%{number}"))
    shaders.validate(spirv)
    loaded = Module.read(spirv)
    assert [block.instance for block in loaded.blocks] == ["In"]
    assert [block.instance for block in loaded.unused] == ["Out"]


# -- features --------------------------------------------------------------------------------------

EXTENSIONS = "".join(
    f"#extension GL_{name} : require\n"
    for name in (
        "EXT_shader_explicit_arithmetic_types", "EXT_shader_atomic_int64",
        "EXT_shader_atomic_float", "EXT_shader_atomic_float2", "EXT_shader_16bit_storage",
        "EXT_shader_8bit_storage", "KHR_memory_scope_semantics", "KHR_shader_subgroup_arithmetic",
        "EXT_shader_subgroup_extended_types_int64",
    )
)  # fmt: skip
BUFFER = "layout(binding = 0) buffer B {{ {0} b[]; }};"
NEEDS = {
    ("uint", "b[0] = s;"): [],
    ("uint", "atomicAdd(b[0], 1u); b[1] = subgroupAdd(b[2]);"): [],
    ("int64_t", "b[0] = 1l;"): ["shaderInt64"],
    ("double", "b[0] = 1.0lf;"): ["shaderFloat64"],
    ("uint64_t", "atomicAdd(b[0], 1ul);"): ["shaderInt64", "shaderBufferInt64Atomics"],
    ("uint64_t", "atomicMax(s, 1ul);"): ["shaderInt64", "shaderSharedInt64Atomics"],
    ("uint64_t", "b[0] = subgroupAdd(b[1]);"): ["shaderInt64", "shaderSubgroupExtendedTypes"],
    ("float", "atomicAdd(b[0], 1.0);"): ["shaderBufferFloat32AtomicAdd"],
    ("float", "atomicAdd(s, 1.0); atomicExchange(b[0], s);"):
        ["shaderSharedFloat32AtomicAdd", "shaderBufferFloat32Atomics"],
    ("float", "atomicMax(b[0], 1.0);"): ["shaderBufferFloat32AtomicMinMax"],
    ("double", "atomicAdd(b[0], 1.0lf);"): ["shaderFloat64", "shaderBufferFloat64AtomicAdd"],
    ("float16_t", "b[0] = b[1];"): ["storageBuffer16BitAccess"],
    ("float16_t", "b[0] = b[1] * 2.0hf;"): ["shaderFloat16", "storageBuffer16BitAccess"],
    ("int16_t", "b[0] = s;"): ["shaderInt16", "storageBuffer16BitAccess"],
    ("uint8_t", "b[0] = b[1];"): ["storageBuffer8BitAccess"],
    ("int8_t", "b[0] = s;"): ["shaderInt8", "storageBuffer8BitAccess"],
}  # fmt: skip


@pytest.mark.parametrize(("type_", "code"), NEEDS)
def test_features(type_, code):
    shared = f"shared {type_} s;" if re.search(r"\bs\b", code) else ""
    loaded = module(f"{EXTENSIONS}{BUFFER.format(type_)}{shared} void main() {{ {code} }}")
    shaders.validate(loaded.spirv)
    assert sorted(loaded.needs) == sorted(NEEDS[type_, code])
    assert loaded.subgroup_operations == (("BASIC", "ARITHMETIC") if "subgroup" in code else ())


# -- wrong modules -------------------------------------------------------------------------------------


@pytest.mark.parametrize("stages", [["Fragment"], ["Vertex", "Fragment"]])
def test_no_compute_entry_point(stages, message):
    points = [f'OpEntryPoint {stage} %main "main{n}"' for n, stage in enumerate(stages)]
    text = ONE_STRUCT.replace('OpEntryPoint GLCompute %main "main"', "\n".join(points))
    with pytest.raises(ShaderCompileError) as caught:
        Module.read(assembled(text), "x.spv")
    message(caught.value, f"x.spv: has {len(stages)} entry points, ")
    assert caught.value.file == "x.spv"


@pytest.mark.parametrize("behind", ["", "OpNoLine\n", "OpLine %file 1 1\n"])
def test_instructions_behind_the_last_function_belong_to_none(behind):
    """Compilers such as clspv write non-semantic instructions there."""
    more = 'OpExtension "SPV_KHR_non_semantic_info"\n%set = OpExtInstImport "NonSemantic.Example"\n'
    text = head(more=more) + VOID + entry_point()
    text = text.replace("%void", '%file = OpString "a"\n%void', 1)
    alone = Module.read(assembled(text))
    module = Module.read(assembled(f"{text}{behind}%note = OpExtInst %void %set 1 %file\n"))
    assert module.instructions == alone.instructions
    assert check(assembled(f"{text}%note = OpExtInst %void %set 1 %file\n")).ok


@pytest.mark.parametrize(
    ("type_", "kind"),
    [
        ("OpTypeAccelerationStructureKHR", "OpVariable of OpTypeAccelerationStructureKHR"),
        ("OpTypeRayQueryKHR", "OpVariable of OpTypeRayQueryKHR"),
        ("OpTypeSampler", "sampler"),
        ("OpTypeImage %float 2D 0 0 1 2 Rgba8", "storage image"),
        ("OpTypeImage %float 2D 0 1 1 1 Unknown", "sampled image"),
        ("OpTypeImage %float SubpassData 0 0 0 2 Unknown", "imageSubpassData"),
    ],
)
def test_resources_are_named_as_what_they_are(type_, kind):
    text = f"""{head()}{bound("v")}%float = OpTypeFloat 32
%opaque = {type_}
%pointer = OpTypePointer UniformConstant %opaque
%v = OpVariable %pointer UniformConstant
{VOID}{entry_point("%loaded = OpLoad %opaque %v" + chr(10))}"""
    (block,) = Module.read(assembled(text)).blocks
    assert block.kind == kind


def test_damaged_spirv():
    """Whatever a word is changed to: a module that may be wrong, or an error."""
    text = f"{DECLARED}{block('B', members='S s[N + 1]; mat3 m;')} {CONSTANTS.replace('N', 'M')}"
    source = (
        f"{text}shared uint a[N]; void f() {{ a[0] = 1; }} void main() {{ f(); s[0].x = m[0].x; }}"
    )
    spirv = module(source, debug=True).spirv
    for at in (4, 7, 16):  # the version and the schema
        with pytest.raises(ShaderCompileError, match="the header is wrong"):
            Module.read(spirv[:at] + b"\1" + spirv[at + 1 :])
    for start in range(20, len(spirv), 4):
        for word in (b"\xff" * 4, bytes(4), b"\x01\0\0\0", spirv[start - 4 : start]):
            with suppress(ShaderCompileError):  # and no other error
                describe(Module.read(spirv[:start] + word + spirv[start + 4 :]))
    with pytest.raises(ShaderCompileError, match=r"^SPIR-V cannot be "):
        tools.disassemble(spirv[:40] + b"\xff" * 8 + spirv[48:])


ARRAYS = {
    "UniformBuffer": ("uniform U { uint n; } u[3];", "u[{}].n"),
    "StorageBuffer": ("buffer S { uint n; } u[3];", "u[{}].n"),
    "SampledImage": ("uniform usampler2D u[3];", "texelFetch(u[{}], ivec2(0), 0).x"),
    "StorageImage": ("uniform readonly uimage2D u[3];", "imageLoad(u[{}], ivec2(0)).x"),
    "UniformTexelBuffer": ("uniform usamplerBuffer u[3];", "texelFetch(u[{}], 0).x"),
    "StorageTexelBuffer": ("uniform readonly uimageBuffer u[3];", "imageLoad(u[{}], 0).x"),
}


@pytest.mark.parametrize("kind", ARRAYS)
def test_features_of_arrays_of_resources(kind):
    """An index that is a constant needs no feature."""
    declared, value = ARRAYS[kind]
    form = ", r32ui" * ("uimage" in declared)
    for index, expected in (("2", []), ("b[1] % 3", [f"shader{kind}ArrayDynamicIndexing"])):
        code = f"b[0] = {value.format(index)};"
        array = f"layout(binding = 1{form}) {declared}"
        loaded = module(f"{BUFFER.format('uint')}{array} void main() {{ {code} }}")
        assert [*loaded.needs] == expected
