"""Shaders of the user's own, without a device: what is refused, and with which error."""

from __future__ import annotations

import struct
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
from spirv import assembled, stripped

from vkops import shaders
from vkops.errors import (
    BindingError,
    InvalidDescError,
    InvalidDescTypeError,
    ShaderCompileError,
    VkopsError,
)
from vkops.extent import Extent
from vkops.shaders.shader import MAX_BINDING, MAX_PUSH_BYTES

HEAD = "#version 450\n"
MAIN = "void main() {}"
DATA = "layout(std430, binding = 0) buffer Data { uint data[]; };"

ENTRY = """OpCapability Shader
OpMemoryModel Logical GLSL450
OpEntryPoint GLCompute %main "main"
OpExecutionMode %main LocalSize 1 1 1
%void = OpTypeVoid
%function = OpTypeFunction %void
%main = OpFunction %void None %function
%label = OpLabel
OpReturn
OpFunctionEnd
"""


def load(body, **options):
    return shaders.load(HEAD + body, name="x", **options)


def fault(call, kind=VkopsError):
    """Return the text of an error, which must be one line and of exactly this kind."""
    with pytest.raises(kind) as caught:
        call()
    text = str(caught.value)
    assert text.isprintable()
    assert type(caught.value) is kind
    return text


# -- sources ------------------------------------------------------------------------------------


def test_forms_of_a_source(tmp_path):
    text = HEAD + DATA + MAIN
    Path(tmp_path, "a.comp").write_text(text)
    spirv = shaders.compile(text)
    Path(tmp_path, "a.spv").write_bytes(spirv)
    loaded = [
        shaders.load(text),
        shaders.load(tmp_path / "a.comp"),
        shaders.load(tmp_path / "a.spv"),
        shaders.load(spirv),
    ]
    assert [s.name for s in loaded] == ["<source>", "a.comp", "a.spv", "<source>"]
    assert all(s.spirv == spirv for s in loaded)


@pytest.mark.parametrize("target_env", ["vulkan1.0", "vulkan1.1"])
def test_target_env(target_env):
    (block,) = load(DATA + MAIN, target_env=target_env).blocks
    assert (block.name, block.kind, block.readonly) == ("Data", "storage", False)


def test_settings_of_the_compiler(tmp_path):
    Path(tmp_path, "n.glsl").write_text("const uint N = M;\n")
    text = (
        '#extension GL_GOOGLE_include_directive : require\n#include "n.glsl"\n'
        "shared uint s[N];" + MAIN
    )
    debug = load(text, defines={"M": 7}, include_dirs=[tmp_path], debug=True)
    plain = load(text, defines={"M": "7"}, include_dirs=[str(tmp_path)])
    assert debug.module.shared_nbytes == plain.module.shared_nbytes == 28
    assert b"#version" in debug.spirv
    assert b"#version" not in plain.spirv


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"", "0 bytes that are not SPIR-V"),
        (b"abc", "3 bytes that are not SPIR-V"),
        (HEAD.encode() * 9, "117 bytes that are not SPIR-V"),
        (struct.pack("<5I", 0x07230203, 0x10300, 0, 1, 0)[:19], "19 bytes that are not SPIR-V"),
    ],
)
def test_not_spirv(tmp_path, data, said):
    Path(tmp_path, "x.spv").write_bytes(data)
    assert fault(lambda: shaders.load(data, name="x"), ShaderCompileError) == f"x: {said}"
    text = fault(lambda: shaders.load(tmp_path / "x.spv"), ShaderCompileError)
    assert text == f"x.spv: {said}"


def test_damaged_spirv():
    spirv = load(DATA + "void main() { data[0] = 1u; }").spirv
    for start in range(0, len(spirv), 4):
        for word in (b"\xff" * 4, bytes(4)):
            with suppress(VkopsError):  # and no other error
                shaders.load(spirv[:start] + word + spirv[start + 4 :])
    for end in range(0, len(spirv), 4):
        with pytest.raises(ShaderCompileError):
            shaders.load(spirv[:end])


@pytest.mark.parametrize(
    ("text", "version", "said"),
    [
        (ENTRY, "spv1.5",
         "x: invalid SPIR-V: line 0: Invalid SPIR-V binary version 1.5 for target environment "
         "SPIR-V 1.3 (under Vulkan 1.1 semantics)."),
        (ENTRY.replace("LocalSize 1 1 1", "LocalSizeId %c %c %c").replace("Mode ", "ModeId ")
         .replace("%void = ", "%uint = OpTypeInt 32 0\n%c = OpConstant %uint 1\n%void = "),
         "spv1.3", "x: invalid SPIR-V: line 4: LocalSizeId mode is not allowed by the current "
         "environment."),
    ],
)  # fmt: skip
def test_spirv_that_is_refused(text, version, said):
    spirv = assembled(text, version)
    assert fault(lambda: shaders.load(spirv, name="x"), ShaderCompileError).startswith(said)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"source": 5}, "source: got 5, must be GLSL text, a path or SPIR-V"),
        ({"source": None}, "source: got None, must be GLSL text, a path or SPIR-V"),
        ({"source": Path("a\0b.spv")}, r"'a\x00b.spv' is not a file name"),
        ({"source": Path("a\0b.comp")}, r"'a\x00b.comp' is not a file name"),
        ({"source": Path("missing.comp")}, "missing.comp: No such file or directory"),
        ({"source": Path("missing.spv")}, "missing.spv: No such file or directory"),
        ({"constants": [1]}, "constants: got [1], must be a mapping of names or ids to numbers"),
        ({"defines": ["A"]}, "defines: got ['A'], must be a mapping of names to text or integers"),
        ({"defines": {1: 1}}, "defines: got 1: 1, must be names with text or integers"),
        ({"defines": {"A": 1.5}}, "defines: got 'A': 1.5, must be names with text or integers"),
        (
            {"defines": {"A": 1 << 64}},
            "defines: got 'A': 18446744073709551616, must be names with text or integers",
        ),
        ({"defines": {"A B": 1}}, "define 'A B' is not a GLSL identifier"),
        ({"include_dirs": "a"}, "include_dirs: got 'a', must be a list of paths"),
        ({"include_dirs": [1]}, "include_dirs: got 1, must be paths"),
        ({"include_dirs": [Path("a\0")]}, r"'a\x00' is not a file name"),
        ({"target_env": 1}, "target_env: got 1, must be a string"),
        ({"name": None}, "name: got None, must be a string"),
    ],
)
def test_arguments_of_the_wrong_kind(given, said):
    call = {"source": HEAD + MAIN, **given}
    assert fault(lambda: shaders.load(call.pop("source"), **call), ShaderCompileError) == said


def test_names_are_printable():
    text = ENTRY.replace(
        "%void = ",
        """OpName %s "a\nb\x07"
OpMemberDecorate %s 0 Offset 0
OpDecorate %s Block
OpDecorate %v DescriptorSet 1
OpDecorate %v Binding 0
%uint = OpTypeInt 32 0
%s = OpTypeStruct %uint
%p = OpTypePointer StorageBuffer %s
%v = OpVariable %p StorageBuffer
%void = """,
        1,
    )
    assert fault(lambda: shaders.load(assembled(text), name="x"), InvalidDescError) == (
        r"x a\nb\x07: got storage in set 1, must be a "
        "storage or uniform block in set 0 [SH-01]"
    )


# -- SH-01 to SH-03: shaders for Kompute ----------------------------------------------------------

REFUSED = {
    "layout(binding = 0, set = 1) buffer B { uint b; };":
        "x B: got storage in set 1, must be a storage or uniform block in set 0 [SH-01]",
    "layout(binding = 0) uniform sampler2D s;":
        "x s: got image or sampler in set 0, must be a storage or uniform block in set 0 [SH-01]",
    "layout(binding = 0) buffer B { uint b; } c[2];":
        "x c: got array of storage blocks in set 0, must be a storage or uniform block in set 0 "
        "[SH-01]",
    f"layout(binding = {MAX_BINDING + 1}) buffer B {{ uint b; }};":
        "x B: got binding 256, must be 255 at most [SH-01]",
    "#extension GL_EXT_shader_explicit_arithmetic_types_int64 : require\n"
    "shared uint64_t v; void f() { v = 1ul; }":
        "x capabilities: got Int64, which need Vulkan features, and Kompute enables none [SH-02]",
    "shared double v; void f() { v = 1.0lf; }":
        "x capabilities: got Float64, which need Vulkan features, and Kompute enables none [SH-02]",
    "#extension GL_EXT_shader_8bit_storage : require\n"
    "layout(binding = 0) buffer B { uint8_t b[]; };":
        "x capabilities: got StorageBuffer8BitAccess, which need Vulkan features, and Kompute "
        "enables none [SH-02]",
    "#extension GL_EXT_shader_16bit_storage : require\n"
    "layout(binding = 0) buffer B { float16_t b[]; };":
        "x capabilities: got StorageBuffer16BitAccess, which need Vulkan features, and Kompute "
        "enables none [SH-02]",
    "#extension GL_EXT_shader_explicit_arithmetic_types_int16 : require\n"
    "#extension GL_EXT_shader_explicit_arithmetic_types_int8 : require\n"
    "shared int16_t v; shared int8_t w;":
        "x capabilities: got Int16, Int8, which need Vulkan features, and Kompute enables none "
        "[SH-02]",
    f"layout(push_constant) uniform P {{ uint a[{MAX_PUSH_BYTES // 4 + 1}]; }};":
        "x push constants: got 4100 bytes, must be 4096 at most [SH-08]",
    "layout(push_constant) uniform P { uint a[100000000]; };":
        "x push constants: got 400000000 bytes, must be 4096 at most [SH-08]",
}  # fmt: skip


@pytest.mark.parametrize("body", REFUSED)
def test_shaders_that_kompute_cannot_run(body):
    assert fault(lambda: load(body + MAIN), InvalidDescError) == REFUSED[body]


KEPT = [
    "layout(binding = 0) buffer B { uint b; }; layout(binding = 9) uniform U { vec4 u; };",
    f"layout(binding = {MAX_BINDING}) buffer B {{ uint b; }};",
    "#extension GL_KHR_shader_subgroup_basic : require\n"
    "#extension GL_KHR_shader_subgroup_quad : require\n"
    "#extension GL_KHR_shader_subgroup_clustered : require\n"
    "shared uint s; void f() { s = subgroupClusteredAdd(subgroupQuadBroadcast(s, 0u), 2u); }",
    f"layout(push_constant) uniform P {{ uint a[{MAX_PUSH_BYTES // 4}]; }};",
    "",
]


@pytest.mark.parametrize("body", KEPT)
def test_shaders_that_kompute_can_run(body):
    assert load(body + MAIN).name == "x"


def test_another_entry_point():
    spirv = assembled(ENTRY.replace('"main"', '"start"'))
    assert fault(lambda: shaders.load(spirv, name="x"), InvalidDescError) == (
        "x entry point: got 'start', must be 'main': Kompute starts nothing else [SH-03]"
    )


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
        ({"U": 2**32 - 1}, "4294967295"),
        ({9: 0}, "0"),
        ({"I": -(2**31)}, "-2147483648"),
        ({1: np.int64(7)}, "7"),
        ({"I": 2.0}, "2"),
        ({"F": 0.1}, "0.100000001"),
        ({2: -0.0}, "-0"),
        ({"F": 1e-45}, "0x1p-149"),
        ({"F": float("inf")}, "0x1p+128"),
        ({"F": float("-inf")}, "-0x1p+128"),
        ({"F": float("nan")}, "0x1.8p+128"),
        ({"F": np.float32(3)}, "3"),
        ({"T": 0}, "0"),
        ({3: True}, "1"),
    ],
)
def test_constants(constants, default):
    (key,) = constants
    found = load(CONSTANTS + MAIN, constants=constants).module.specialization_constants
    assert [c.default for c in found if key in (c.name, c.location)] == [default]
    plain = load(CONSTANTS + MAIN).module.specialization_constants
    assert sum(a != b for a, b in zip(found, plain, strict=True)) == (key not in (3,))


def test_constants_without_names():
    spirv = stripped(load(CONSTANTS + MAIN).spirv)
    assert shaders.load(spirv, constants={9: 5}).module.specialization_constants[-1].default == "5"
    assert fault(lambda: shaders.load(spirv, constants={"": 5}, name="x"), InvalidDescError) == (
        "x constants: there is no constant ''; there are 1 (unnamed), 2 (unnamed), 3 (unnamed), "
        "9 (unnamed) [SH-10]"
    )


@pytest.mark.parametrize(
    ("constants", "said"),
    [
        ({"X": 1}, "constants: there is no constant 'X'; there are 1 (I), 2 (F), 3 (T), 9 (U)"),
        ({4: 1}, "constants: there is no constant 4; there are 1 (I), 2 (F), 3 (T), 9 (U)"),
        ({None: 1}, "constants: there is no constant None; there are 1 (I), 2 (F), 3 (T), 9 (U)"),
        ({"U": -1}, "constants['U']: got -1, must be uint"),
        ({"U": 2**32}, "constants['U']: got 4294967296, must be uint"),
        ({"I": 1.5}, "constants['I']: got 1.5, must be int"),
        ({1: "7"}, "constants[1]: got '7', must be int"),
        ({"I": 10**5000}, "constants['I']: got an integer of 16610 bits, must be int"),
        ({"I": float("nan")}, "constants['I']: got nan, must be int"),
        ({"F": "1.5"}, "constants['F']: got '1.5', must be float"),
        ({"F": 1e39}, "constants['F']: got 1e+39, must be float"),
        ({"F": None}, "constants['F']: got None, must be float"),
        ({"T": 2}, "constants['T']: got 2, must be bool"),
        ({"U": 1, 9: 1}, "constants[9]: constant 9 is given twice"),
    ],
)
def test_constants_that_are_wrong(constants, said):
    text = fault(lambda: load(CONSTANTS + MAIN, constants=constants), InvalidDescError)
    assert text == f"x {said} [SH-10]"
    text = fault(lambda: load(MAIN, constants={"N": 1}), InvalidDescError)
    assert text == "x constants: there is no constant 'N'; there are none [SH-10]"


@pytest.mark.parametrize("axis", "xyz")
def test_workgroups_without_invocations(axis):
    text = f"layout(local_size_{axis}_id = 0) in; {MAIN}"
    assert fault(lambda: load(text, constants={0: 0}), InvalidDescError) == (
        f"x local_size_{axis}: got 0, must be at least 1 [SH-08]"
    )


def test_names_of_text_are_printable():
    text = fault(
        lambda: shaders.load(f"{HEAD}void main() {{ x; }}", name="a\nb"), ShaderCompileError
    )
    assert text == r"a\nb:2: 'x' : undeclared identifier"


# -- SH-09: push constants -------------------------------------------------------------------------

PUSH = "layout(push_constant) uniform P { uint u; int i; layout(offset = 16) float f[2]; };"


def test_push_constants_have_the_declared_offsets():
    packed = load(PUSH + MAIN).pack([1, -1, 0.5, float("-inf")])
    assert packed == struct.pack("<Ii8x2f", 1, -1, 0.5, float("-inf"))
    assert load(MAIN).pack([]) == b""
    assert load(PUSH + MAIN).pack(np.arange(4)) == struct.pack("<Ii8x2f", 0, 1, 2, 3)


@pytest.mark.parametrize(
    ("numbers", "said"),
    [
        ([], "push_constants: got 0 numbers, must be 4: uint u, int i, float f[0], float f[1]"),
        ([1] * 5, "push_constants: got 5 numbers, must be 4: uint u, int i, float f[0], "
         "float f[1]"),
        ([-1, 0, 0, 0], "push_constants.u: got -1, must be uint"),
        ([0, 2**31, 0, 0], "push_constants.i: got 2147483648, must be int"),
        ([0, 0, "1", 0], "push_constants.f[0]: got '1', must be float"),
        ([0, 0, 0, 1e300], "push_constants.f[1]: got 1e+300, must be float"),
        ([10**5000, 0, 0, 0], "push_constants.u: got an integer of 16610 bits, must be uint"),
        ("abcd", "push_constants.u: got 'a', must be uint"),
    ],
)  # fmt: skip
def test_push_constants_that_are_wrong(numbers, said):
    shader = load(PUSH + MAIN)
    assert fault(lambda: shader.pack(numbers), InvalidDescError) == f"x {said} [SH-09]"


@pytest.mark.parametrize("numbers", [5, None, iter([1]), {"u": 1, "i": 2, "f": 3, "g": 4}])
def test_push_constants_are_a_sequence(numbers):
    text = fault(lambda: load(PUSH + MAIN).pack(numbers), InvalidDescTypeError)
    assert text.startswith("x push_constants: got ")
    assert text.endswith(", must be a sequence of numbers [SH-09]")


def test_many_push_constants_have_a_short_message():
    shader = load(f"layout(push_constant) uniform P {{ uint a[1000]; }}; {MAIN}")
    text = fault(lambda: shader.pack([1]), InvalidDescError)
    assert text.startswith("x push_constants: got 1 numbers, must be 1000: uint a[0], uint a[1], ")
    assert text.endswith("uint a[15], ... [SH-09]")


# -- SH-04 to SH-06: bindings ---------------------------------------------------------------------

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
    return load(BLOCKS + MAIN).bind(spans)


@pytest.mark.parametrize(
    "names", [("A", "B", "C"), ("from", "1", "to"), ("0", "B", "D"), ("A", "B", "3")]
)
def test_names_of_blocks(names):
    bound = bind(dict(zip(names, (X, Y, Z), strict=True)))
    assert [(block.binding, extent) for block, extent in bound] == [(0, X[0]), (1, Y[0]), (3, Z[0])]


def test_blocks_of_one_binding_are_one():
    """As large as the largest, and read only if all are, whichever is named."""
    for name in "CD":
        block, _ = bind({"A": X, "B": Y, name: Z})[2]
        assert (block.nbytes, block.readonly) == (32, False)


@pytest.mark.parametrize(
    ("spans", "said"),
    [
        ({"A": X, "B": Y}, "C: nothing is bound to it [SH-04]"),
        ({}, "A: nothing is bound to it [SH-04]"),
        ({"A": X, "B": Y, "E": Z}, "E: there is no such block; there are A, B, C, D [SH-04]"),
        ({"a\n": X}, r"'a\n': there is no such block; there are A, B, C, D [SH-04]"),
        ({"": X}, "'': there is no such block; there are A, B, C, D [SH-04]"),
        ({"A": X, "from": Y}, "from: binding 0 is also that of A [SH-04]"),
        ({"C": X, "D": Y}, "D: binding 3 is also that of C [SH-04]"),
        ({"A": span("X", 2, 4)}, "A: got offset 2 and 4 bytes, must begin at a multiple of 4 "
         "and end at 64 or before [SH-05]"),
        ({"A": span("X", 60, 8)}, "A: got offset 60 and 8 bytes, must begin at a multiple of 4 "
         "and end at 64 or before [SH-05]"),
        ({"A": span("X", 68, 0)}, "A: got offset 68 and 0 bytes, must begin at a multiple of 4 "
         "and end at 64 or before [SH-05]"),
        ({"from": span("X", 0, 0)}, "from: got 0 bytes, must be a multiple of 4 and at least 4 "
         "[SH-05]"),
        ({"A": span("X", 0, 6)}, "A: got 6 bytes, must be a multiple of 4 and at least 4 "
         "[SH-05]"),
        ({"B": span("X", 0, 4)}, "B: got 4 bytes, must be a multiple of 4 and at least 8 "
         "[SH-05]"),
        ({"C": span("X", 0, 16)}, "C: got 16 bytes, must be a multiple of 4 and at least 32 "
         "[SH-05]"),
        ({"A": X, "1": Y, "to": span("Y", 32, 32)},
         "to: shares some bytes with 1, must share all or none: each has a copy while the shader "
         "runs [SH-06]"),
    ],
)  # fmt: skip
def test_bindings_that_are_wrong(spans, said):
    assert fault(lambda: bind(spans), BindingError) == f"x {said}"


@pytest.mark.parametrize(
    "spans",
    [
        {"A": X, "B": X, "C": X},  # all of it
        {"A": span("X", 0, 32), "B": span("X", 16, 32), "C": Z},  # both only read
        {"A": span("X", 0, 32), "B": Y, "C": span("X", 32, 32)},  # beside it
    ],
)
def test_bytes_that_may_be_shared(spans):
    assert len(bind(spans)) == 3
