"""The declarations of SPIR-V modules, and changed modules."""

from __future__ import annotations

import pytest
from spirv import assembled, stripped

from vkops import shaders
from vkops.errors import ShaderCompileError
from vkops.shaders import tools
from vkops.shaders.instructions import Scalar
from vkops.shaders.listing import describe
from vkops.shaders.module import Module

HEAD = "#version 450\n"
MAIN = "void main() {}"


def module(body, **settings):
    return Module.read(shaders.compile(f"{HEAD}{body}", **settings))


# -- blocks ----------------------------------------------------------------------------------------

STD430 = {  # members of a block: its size, and the stride of a runtime array
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
STD140 = {
    "uint a;": (4, 0),
    "float a[3];": (48, 0),
    "vec3 a[2]; mat3 m;": (80, 0),
    "layout(row_major) mat2x3 m;": (48, 0),
    "mat2x3 m; float b;": (36, 0),
    "S s; uint a;": (20, 0),
    "S s[2]; vec2 v;": (40, 0),
}
DECLARED = "layout(constant_id = 0) const uint N = 3; struct S { float x; ivec2 y; };"


@pytest.mark.parametrize("members", STD430)
def test_the_size_of_a_storage_block(members):
    text = f"layout(std430, binding = 0) buffer B {{ {members} }};"
    (found,) = module(f"{DECLARED}{text}{MAIN}").blocks
    assert (found.nbytes, found.stride) == STD430[members]
    assert (found.name, found.kind, found.binding, found.readonly) == ("B", "storage", 0, False)


@pytest.mark.parametrize("members", STD140)
def test_the_size_of_a_uniform_block(members):
    text = f"layout(std140, binding = 0) uniform U {{ {members} }};"
    (found,) = module(f"{DECLARED}{text}{MAIN}").blocks
    assert (found.nbytes, found.stride) == STD140[members]
    assert (found.kind, found.readonly) == ("uniform", True)


def block(name, binding=0, layout="", instance="", members="uint a[];"):
    layout = f"layout(std430, set = 0, binding = {binding}) {layout}"
    return f"{layout} buffer {name} {{ {members} }} {instance};"


@pytest.mark.parametrize("target_env", ["vulkan1.0", "vulkan1.1"])
def test_names_and_access_of_blocks(target_env):
    """For Vulkan 1.0 storage blocks are BufferBlocks in class Uniform."""
    found = module(
        block("A", 4, "readonly", "in_")
        + block("B", 2, "writeonly")
        + block("C", 2, "readonly", "again")
        + block("D", 7, "", "d", "readonly uint n; readonly uint v[];")
        + block("E", 8, "", "e", "readonly uint n; uint v[];")
        + "layout(binding = 5) uniform F { vec4 v; } f;"
        + MAIN,
        target_env=target_env,
    ).blocks
    assert [(b.binding, b.name, b.instance, b.kind, b.readonly) for b in found] == [
        (2, "B", "", "storage", False),
        (2, "C", "again", "storage", True),
        (4, "A", "in_", "storage", True),
        (5, "F", "f", "uniform", True),
        (7, "D", "d", "storage", True),
        (8, "E", "e", "storage", False),
    ]
    assert [b.point for b in found] == ["B", "C", "A", "F", "D", "E"]
    assert all(found[2].is_called(name) for name in ("A", "in_", "4"))
    assert not found[0].is_called("")


def test_stripped_blocks_are_called_by_their_bindings():
    text = block("A", 4, "readonly", "in_") + block("B", 2)
    spirv = stripped(module(text + MAIN).spirv)
    found = Module.read(spirv)
    assert [(b.name, b.instance, b.point) for b in found.blocks] == [("", "", "2"), ("", "", "4")]
    assert dict(describe(found))["Blocks"] == "2 (storage); 4 (storage, read only)"


ONE_STRUCT = """
OpCapability Shader
OpMemoryModel Logical GLSL450
OpEntryPoint GLCompute %main "main"
OpExecutionMode %main LocalSize 1 1 1
OpName %struct "type.RWStructuredBuffer.uint"
OpName %x "In"
OpName %y "Out"
OpDecorate %array ArrayStride 4
OpMemberDecorate %struct 0 Offset 0
OpDecorate %struct BufferBlock
OpDecorate %x DescriptorSet 0
OpDecorate %x Binding 0
OpDecorate %y DescriptorSet 0
OpDecorate %y Binding 1
%void = OpTypeVoid
%function = OpTypeFunction %void
%uint = OpTypeInt 32 0
%array = OpTypeRuntimeArray %uint
%struct = OpTypeStruct %array
%pointer = OpTypePointer Uniform %struct
%x = OpVariable %pointer Uniform
%y = OpVariable %pointer Uniform
%main = OpFunction %void None %function
%label = OpLabel
OpReturn
OpFunctionEnd
"""


def test_blocks_of_one_struct_go_by_their_own_names():
    """Compilers of HLSL make them: the name of the struct is the name of none of them."""
    found = Module.read(assembled(ONE_STRUCT)).blocks
    assert [(b.point, b.binding) for b in found] == [("In", 0), ("Out", 1)]
    assert not any(b.is_called("type.RWStructuredBuffer.uint") for b in found)


@pytest.mark.parametrize(
    ("declared", "kind"),
    [
        (block("A", instance="a[2]"), "array of storage"),
        ("layout(binding = 0) uniform U { vec4 v; } u[2];", "array of uniform"),
        ("layout(binding = 0) uniform sampler2D s;", "image or sampler"),
        ("layout(binding = 0, rgba8) uniform image2D s;", "image or sampler"),
        ("layout(binding = 0, rgba8) uniform image2D s[3];", "array of image or sampler"),
    ],
)
def test_other_kinds(declared, kind):
    (found,) = module(declared + MAIN).blocks
    assert found.kind == (f"{kind} blocks" if "array" in kind else kind)


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
    found = module(f"{DECLARED} layout(push_constant) uniform P {{ {members} }} p; {MAIN}")
    assert [s[:3] for s in found.push_constants] == PUSHED[members]
    assert found.push_nbytes == max(location for _, _, location in PUSHED[members]) + 4


def test_push_constants_without_names_are_numbered():
    text = f"{DECLARED} layout(push_constant) uniform P {{ uint a; S s; }}; {MAIN}"
    found = Module.read(stripped(module(text).spirv))
    assert [s.name for s in found.push_constants] == ["0", "1.0", "1.1[0]", "1.1[1]"]


def test_no_push_constants():
    assert module(MAIN).push_constants == ()
    assert module(MAIN).push_nbytes == 0


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
        Scalar("I", "int", 1, "-3"),
        Scalar("F", "float", 2, "1.5"),
        Scalar("T", "bool", 3, "1"),
        Scalar("N", "bool", 4, "0"),
        Scalar("U", "uint", 9, "4000000000"),
    )


def test_specialize():
    before = module(CONSTANTS + MAIN)
    after = before.specialize({1: "5", 2: "0x1p+128", 3: "false", 4: "true", 9: "0"})
    assert [c.default for c in after.specialization_constants] == ["5", "0x1p+128", "0", "1", "0"]
    assert len(after.spirv) == len(before.spirv)
    assert before.specialize({}) is before


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
    found = module(text)
    assert found.local_size == LOCAL_SIZES[layout]
    if "_id" in layout:
        changed = found.specialize({0: "32"})
        assert changed.local_size == (32, *LOCAL_SIZES[layout][1:])


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
    text = f"layout(local_size_x = 64, local_size_x_id = 5) in; {DECLARED} {declared} {MAIN}"
    found = module(text)
    assert found.shared_nbytes == nbytes
    if "gl_WorkGroupSize" in declared:
        assert found.specialize({0: "2", 5: "8"}).shared_nbytes == 4 * (2 * 8 + 1)


def test_loops_and_instructions():
    text = "layout(std430, binding = 0) buffer B { uint a[]; };"
    loop = "void main() { for (uint i = 0; i < a[0]; ++i) for (uint j = 0; j < i; ++j) a[i] = j; }"
    found = module(text + loop)
    assert found.loops == 2
    assert found.capabilities == ("Shader",)
    assert found.entry_point == "main"
    assert module(text + loop, debug=True).instructions == found.instructions


# -- changed modules --------------------------------------------------------------------------------


def test_strings_in_debug_information():
    """They hold the whole source: quotes, backslashes, line breaks."""
    source = '// a "quoted" \\n text; x = "\n/* %5 = OpNop */ #define Q \\\n 1\n'
    found = module(source + CONSTANTS + MAIN, debug=True)
    assert found.specialization_constants == module(CONSTANTS + MAIN).specialization_constants


@pytest.mark.parametrize("target_env", ["vulkan1.0", "vulkan1.1"])
def test_uniform_blocks_become_storage_blocks(target_env):
    text = "layout(binding = 3) uniform U { vec3 v[2]; } u;" + block("A", 1, "readonly")
    before = module(text + MAIN, target_env=target_env)
    after = before.with_storage_blocks()
    shaders.validate(after.spirv, target_env=target_env)
    assert [b.kind for b in before.blocks] == ["storage", "uniform"]
    assert [b.kind for b in after.blocks] == ["storage", "storage"]
    assert [b.nbytes for b in after.blocks] == [b.nbytes for b in before.blocks]
    assert after.spirv[4:8] == before.spirv[4:8]  # the version
    assert after.with_storage_blocks() is after


def test_description():
    text = (
        "layout(local_size_x = 8) in; shared vec4 s[512];"
        "layout(constant_id = 0) const uint N = 3; layout(constant_id = 1) const bool B = true;"
        "layout(binding = 1) uniform U { vec4 v; } u; layout(push_constant) uniform P { vec2 p; };"
    )
    found = module(text + block("A", 0, "readonly", "a") + block("C", 2, members="uint c;") + MAIN)
    assert dict(describe(found)) == {
        "Workgroup": "8 x 1 x 1 invocations",
        "Blocks": "0 A a (storage, read only); 1 U u (uniform); 2 C (storage)",
        "Push constants": "float p[0], float p[1] (8 bytes)",
        "Specialization constants": "uint N = 3, bool B = 1",
        "Shared memory": "8,192 bytes",
        "Code": f"4 instructions, 0 loops, {len(found.spirv):,} bytes",
        "Capabilities": "Shader",
    }


# -- wrong modules -------------------------------------------------------------------------------------


def entry_points(*stages):
    points = [f'OpEntryPoint {stage} %main "main{n}"' for n, stage in enumerate(stages)]
    text = ONE_STRUCT.replace('OpEntryPoint GLCompute %main "main"', "\n".join(points))
    return assembled(text)


@pytest.mark.parametrize(
    ("stages", "said"),
    [
        (["GLCompute"] * 2, "2 entry points (GLCompute, GLCompute)"),
        (["Fragment"], "1 entry points (Fragment)"),
        (["Vertex", "Fragment"], "2 entry points (Vertex, Fragment)"),
    ],
)
def test_one_compute_entry_point(stages, said):
    with pytest.raises(ShaderCompileError) as caught:
        Module.read(entry_points(*stages), "x.spv")
    assert str(caught.value) == f"x.spv: has {said}, must have one, of a compute shader"
    assert caught.value.file == "x.spv"


@pytest.mark.parametrize("read", [tools.disassemble, tools.with_constants_computed])
def test_damaged_spirv(read):
    spirv = shaders.compile(HEAD + MAIN)
    with pytest.raises(ShaderCompileError, match=r"^(SPIR-V|specialization constants) cannot be "):
        read(spirv[:40] + b"\xff" * 8 + spirv[48:])
