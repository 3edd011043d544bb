"""Undefined values, functions with special numbers, blocks in shared memory, and deep calls in the interpreter."""

import re

import numpy as np
import pytest
import spirv

from vkops import shaders
from vkops.debug import check
from vkops.debug.shader_check import Case
from vkops.interpreter import glsl_functions, instructions, operations, undefined_results
from vkops.interpreter.recorder import Recorder
from vkops.interpreter.subgroups import Subgroups
from vkops.interpreter.tracing import Tracer
from vkops.interpreter.values import SourceLine
from vkops.shaders.grammar import FUNCTIONS, OPCODES

HEAD = """#version 450
#extension GL_KHR_shader_subgroup_basic : require
layout(local_size_x = 32) in;
layout(std430, binding = 0) buffer X { uint x[]; };
layout(std430, binding = 1) buffer Y { uint y[]; };
shared uint part[32];
uint own = gl_LocalInvocationIndex;
"""


def checked(body, **options):
    return check(f"{HEAD}void main() {{ {body} }}", name="x", **options)


# -- undefined values are faults where they are used -----------------------------------------------

# ``n`` is from 3 to 34: results that are undefined for some of the invocations.
UNDEFINED = {
    "1u << n": "shift", "~0u >> n": "shift", "uint(-1 >> n)": "shift", "uvec2(1u << n, 1).x": "shift",
    "bitfieldExtract(x[own], int(n), 2)": "shift", "bitfieldInsert(x[own], 1u, int(n), 1)": "shift",
    "atomicExchange(part[own], 1u)": "never written", "part[own]": "never written",
}  # fmt: skip


def scopes(bodies, expression):
    """A line for each body, with ``a`` and shared memory of its own."""
    start = f"uint n = own + 3; uint a = {expression};"
    return [f"{{ {start} {body} }}".replace("part[", f"part{k}[") for k, body in enumerate(bodies)]


def checked_lines(lines):
    """Check a shader of these lines; return the report, and the line of its first one."""
    parts = "".join(f"shared uint part{k}[32];" for k in range(len(lines)))
    text = "\n".join([f"{HEAD}{parts}", "void main() {", *lines, "}"])
    return check(text, name="x"), HEAD.count("\n") + 3


@pytest.mark.parametrize("expression", UNDEFINED)
def test_a_value_that_is_not_used_is_no_fault(expression):
    unused = "n < 30 ? a : ~0u" if UNDEFINED[expression] == "shift" else "n > 99 ? a : ~0u"
    bodies = [
        "",
        f"y[own] = {unused};",
        f"uint b = a * 2 + 1; y[own] = {unused.replace(' a ', ' b ')};",
        "uvec2 v = uvec2(a, n); y[own] = v.y;",
        "uint b[2] = uint[2](a, n); y[own] = b[n & 0u | 1u];",
        "if (n > 99) y[own] = a;",
    ]
    report, _ = checked_lines(scopes(bodies, expression))
    assert report.ok, str(report)


@pytest.mark.parametrize("expression", UNDEFINED)
def test_a_value_that_is_used_is_a_fault(expression):
    bodies = [
        "y[own] = a;", "if (a > 5) y[own] = 1;", "y[a & 31u] = 1;", "y[own] = a * 2 + 1;", "y[own] = uvec2(n)[a & 1u];",
        "for (uint k = 0; k < (a & 1u); ++k) y[own] = 1;", "atomicAdd(y[own], a);", "switch (a) { case 1: y[own] = 1; }",
        "float w; y[own] = uint(modf(float(a), w)) + uint(w);",
    ]  # fmt: skip
    lines = scopes(bodies, expression)
    report, first = checked_lines(lines)
    places = {f.place.line for f in report.findings if f.kind == UNDEFINED[expression]}
    assert places == {*range(first, first + len(lines))}, str(report)


def test_the_messages_of_shifts_say_the_span_of_numbers():
    for value, text in (
        ("1u << (own + 3)", "shifts a number of 32 bits by 32 to 34;"),
        ("1u << (own == 4 ? 33 : 1)", "shifts a number of 32 bits by 33;"),
        ("bitfieldExtract(x[own], int(own + 3), 2)", "uses 2 bits from bit 31 to 34 on"),
    ):
        assert text in str(checked(f"y[own] = {value};"))


def test_only_the_first_of_several_exchanges_finds_what_was_never_written():
    body = "uint before = atomicExchange(part[0], own); {} y[own] = before;"
    report = checked(body.format(""))
    assert [(f.kind, f.count, f.invocations) for f in report.findings] == [
        ("never written", 1, ((0, 0, 0),))
    ]
    assert checked(body.format("if (own != 0)")).ok


# -- barriers of subgroups -------------------------------------------------------------------------


def test_a_barrier_of_a_subgroup_orders_its_invocations():
    body = "part[own] = own; subgroupBarrier(); y[own] = part[own ^ 1u];"
    assert checked(body).ok
    assert checked(body.replace("subgroupB", "b")).ok
    without = checked(body.replace("subgroupBarrier();", ""))
    assert [f.kind for f in without.findings] == ["data race"]


@pytest.mark.parametrize(
    "barrier", ["subgroupBarrier()", "subgroupMemoryBarrierShared(); subgroupBarrier()"]
)
def test_other_subgroup_sizes_are_run_where_barriers_are_the_only_operations(barrier):
    """Subgroups of 8 do not have both of the invocations that are 16 apart."""
    body = f"part[own] = own; {barrier}; y[own] = part[own ^ 16u];"
    assert [f.kind for f in checked(body).findings] == ["data race"]
    assert checked(body, subgroup_size=32).ok


def test_messages_without_lines_do_not_speak_of_lines():
    text = f"{HEAD}void main() {{ part[own] = own; y[own] = part[own ^ 1u]; }}"
    assert "wrote it in the same line, and" in str(check(text))
    result = str(check(spirv.stripped(shaders.compile(text, debug=True))))
    assert "data race" in result
    assert "the second wrote it, and there is no barrier" in result
    assert not re.search(r"\blines?\b", result)


def test_messages_without_names_have_the_numbers_of_ids():
    text = f"{HEAD}void main() {{ part[own ^ 1u] = x[own]; y[own] = part[own] + part[own ^ 2u]; }}"
    for buffers in ([128], []):  # one that is not written, and one that is
        findings = check(spirv.stripped(shaders.compile(text)), buffers).findings
        names = [each for f in findings for each in re.findall(r"'(.*?)'", f.message)]
        assert names
        assert all(re.fullmatch(r"%?\d+(\[\d+\])?", each) for each in names), names


# -- blocks in shared memory -----------------------------------------------------------------------

BLOCKS = """#version 450
#extension GL_EXT_shared_memory_block : require
#extension GL_EXT_shader_explicit_arithmetic_types : require
layout(local_size_x = 4) in;
layout(std430, binding = 0) buffer Y { uint y[]; };
shared A { uint a[4]; };
shared B { uint16_t b[10]; };
uint own = gl_LocalInvocationIndex;
void main() { BODY }"""


def test_blocks_in_shared_memory_are_the_same_memory():
    text = BLOCKS.replace(
        "BODY", "a[own] = 7 + own * 65537; barrier(); y[own] = b[own * 2] + (b[own * 2 + 1] << 8);"
    )
    loaded = shaders.load(text, target_env="vulkan1.2")
    assert loaded.shared_nbytes == 20
    report = check(loaded)
    assert report.ok, str(report)
    assert report.buffers["Y"].tolist() == [7, 8 + (1 << 8), 9 + (2 << 8), 10 + (3 << 8)]
    race = BLOCKS.replace("BODY", "a[own] = own; b[7 - own * 2] = uint16_t(1); y[own] = a[own];")
    assert "data race" in str(check(race, target_env="vulkan1.2"))
    unwritten = BLOCKS.replace("BODY", "a[own] = 1; barrier(); y[own] = b[own + 6];")
    assert "reads 'B.b', which was never written" in str(check(unwritten, target_env="vulkan1.2"))
    plain = text.replace("a[4]; };", "a[4];").replace("b[10]; };", "b[10];")
    plain = plain.replace("shared A {", "shared").replace("shared B {", "shared")
    assert shaders.load(plain, target_env="vulkan1.2").shared_nbytes == 36


# -- functions -------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_modf_of_special_numbers(dtype):
    x = np.array([-5, -0.0, np.inf, -np.inf, -1.5, 0.75, 0, 2.5], dtype)
    t = {2: "float16_t", 4: "float", 8: "double"}[x.itemsize]
    text = f"""#version 450
    #extension GL_EXT_shader_explicit_arithmetic_types : require
    layout(local_size_x = 8) in;
    layout(std430, binding = 0) buffer X {{ {t} x[]; }};
    layout(std430, binding = 1) buffer Y {{ {t} y[]; }};
    void main() {{ uint i = gl_LocalInvocationIndex; {t} whole; y[2 * i] = modf(x[i], whole); y[2 * i + 1] = whole; }}"""
    result = check(text, {"X": x, "Y": np.zeros(16, dtype)}).buffers["Y"].reshape(-1, 2)
    np.testing.assert_array_equal(result.T, np.modf(x))
    np.testing.assert_array_equal(np.signbit(result), np.repeat(np.signbit(x)[:, None], 2, 1))


@pytest.mark.parametrize("width", [16, 32, 64])
def test_ldexp_with_exponents_of_all_sizes(width):
    """GLSL has 32 bits only; an exponent that does not fit makes 0 or infinity."""
    limit = 1 << (width - 1)
    exponents = np.array([5, -1, -limit, limit - 1], f"i{width // 8}")
    operands = np.ones(4, np.float32), exponents
    with np.errstate(over="ignore"):
        entry = glsl_functions.FUNCTIONS[FUNCTIONS["Ldexp"]]
        result = operations.apply(entry, operands, np.dtype("f4"))
    assert result.tolist() == [32, 0.5, 0, np.inf]


NAN, INF, LEAST = np.nan, np.inf, -(2**31)
GROUP = Subgroups(np.zeros(2, int), np.arange(2), 32)

# An instruction or function, the type of its operands, these at and beside the borders of what is
# defined, for which of them the result is undefined, and a part of the message.
BORDERS = [
    ("ShiftRightLogical", "u2", [[1] * 4, [0, 15, 16, 2**16 - 1]], "0011", "16 bits by 16 to 65535"),
    ("ShiftLeftLogical", "u8", [[1] * 3, [63, 64, 65]], "011", "64 bits by 64 to 65"),
    ("ShiftRightArithmetic", "i4", [[-1] * 3, [31, 32, -1]], "011", "32 bits by -1 to 32"),
    ("BitFieldUExtract", "u4", [[1] * 4, [31, 31, 32, 0], [1, 2, 0, 33]], "0101", "2 to 33 bits from bit 0 to 31"),
    ("BitFieldInsert", "i4", [[1] * 3, [0] * 3, [0, 0, 1], [32, 33, 32]], "011", "32 to 33 bits from bit 0 to 1"),
    ("SRem", "i4", [[0, 5, -1, 1], [1, 3, 3, -3]], "0011", "-1 to 1 % -3 to 3"),
    ("SMod", "i4", [[5, 5], [3, -3]], "01", "5 % -3"),
    ("SDiv", "i4", [[LEAST, LEAST, LEAST + 1, 1], [-1, 1, -1, -1]], "1000", "divides -2147483648 by -1"),
    ("FRem", "f4", [[1, 0, 1], [1, 0, -0.0]], "011", "mod(0.0 to 1.0, "),
    ("FMod", "f4", [[1, 1], [1e-30, 0]], "01", "mod(1.0, 0.0)"),
    ("GroupNonUniformBallotFindLSB", "u4", [[[0, 0, 0, 0], [0, 0, 0, 1]]], "10", "that has none"),
    ("GroupNonUniformBallotBitExtract", "u4", [[[1, 0, 0, 0]] * 2, [31, 32]], "01", "uses bit 32 of"),
    ("GroupNonUniformInverseBallot", "u4", [[[1, 0, 0, 0], [1, 0, 0, 2]]], "01", "that differ"),
    ("Pow", "f4", [[-1, 0, 0, 0, 1, -0.0], [2, 0, -1, 1, -1, 1]], "111000", "pow(-1.0 to 0.0, -1.0 to 2.0)"),
    ("Atan2", "f4", [[0, 0, 1, -0.0], [0, 1, 0, 0]], "1001", "atan(0, 0)"),
    ("FMin", "f4", [[NAN, 1, 1], [1, NAN, INF]], "110", "of NaN"),
    ("FMax", "f4", [[NAN, 1, 1], [1, NAN, INF]], "110", "of NaN"),
    ("Sqrt", "f4", [[0, -0.0, -0.5]], "001", "sqrt(-0.5)"),
    ("InverseSqrt", "f4", [[1e-30, 0, -1]], "011", "inversesqrt(-1.0 to 0.0)"),
    ("Log", "f4", [[1e-30, 0, -1]], "011", "log(-1.0 to 0.0)"),
    ("Log2", "f4", [[1e-30, 0, -1]], "011", "log2(-1.0 to 0.0)"),
    ("Asin", "f4", [[1, -1, 1.25, -1.25]], "0011", "asin(-1.25 to 1.25)"),
    ("Acos", "f4", [[1, -1, 1.25, -1.25]], "0011", "acos(-1.25 to 1.25)"),
    ("Acosh", "f4", [[1, 0.75]], "01", "acosh(0.75)"),
    ("Atanh", "f4", [[0.75, 1, -1, -0.75]], "0110", "atanh(-1.0 to 1.0)"),
    ("SmoothStep", "f4", [[0, 1, 2], [1, 1, 1], [0, 0, 0]], "011", "second edge"),
    ("Ldexp", "f4", [[1, 1, 0, 0, INF], np.array([127, 128, 128, 129, 5])], "01010", "ldexp(0.0 to 1.0, 128 to 129)"),
    ("Frexp", "f4", [[1, INF, -INF]], "011", "frexp(-inf to inf)"),
    ("FrexpStruct", "f4", [[0, NAN]], "01", "frexp(nan)"),
    ("MatrixInverse", "f4", [[[[1, 2], [3, 4]], [[1, 2], [2, 4]]]], "01", "determinant is 0"),
    ("FClamp", "f4", [[NAN, 1, 1, 1], [0, 3, NAN, 2], [2, 2, 2, 2]], "1110", "clamp with limits from nan to 2.0"),
    ("NClamp", "f4", [[NAN, 1, 1], [0, 3, NAN], [2, 2, 2]], "010", "clamp with limits from 3.0 to 2.0"),
    ("SClamp", "i4", [[0, 0], [1, -1], [1, -2]], "01", "limits from -1 to -2"),
    ("UClamp", "u4", [[0, 0], [1, 2], [1, 1]], "01", "limits from 2 to 1"),
    ("Normalize", "f4", [[[0, 0], [0, 1e-30]]], "10", "vector of zeros"),
]  # fmt: skip

# As above, with the type of the results.
CONVERSIONS = [
    ("ConvertFToS", "i4", "f4", [LEAST, LEAST - 256, 2**31 - 128, 2**31], "0101", "-2147483904.0 to 2147483648.0"),
    ("ConvertFToS", "i2", "f4", [-32768.5, -32769, 32767.5, 32768], "0101", "-32769.0 to 32768.0"),
    ("ConvertFToU", "u4", "f4", [-0.5, -1, 2**32 - 256, 2**32], "0101", "-1.0 to 4294967296.0"),
    ("ConvertFToU", "u2", "f8", [65535.5, NAN], "01", "converts nan to an integer"),
]  # fmt: skip


def rule_of(name):
    """Return the rule of an instruction or function."""
    if name in OPCODES:
        return undefined_results.OPERATIONS[OPCODES[name]]
    return undefined_results.RULES[FUNCTIONS[name]]


@pytest.mark.parametrize(
    ("name", "how", "dtype", "operands", "wrong", "text"),
    [
        *((name, GROUP, *more) for name, *more in BORDERS),
        *((name, np.dtype(to), dtype, [x], *more) for name, to, dtype, x, *more in CONVERSIONS),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_the_borders_of_what_is_defined(name, how, dtype, operands, wrong, text):
    arrays = [np.asarray(each, getattr(each, "dtype", dtype)) for each in operands]
    with np.errstate(all="ignore"):
        (found,) = undefined_results.undefined(rule_of(name), how, arrays, SourceLine("x", 1))
    assert "".join(map(str, map(int, found.missing))) == wrong
    assert text in found.why[0].message


def test_the_borders_of_all_rules_are_tested():
    tested = {rule_of(name) for name, *_ in (*BORDERS, *CONVERSIONS)}
    assert tested == {*undefined_results.OPERATIONS.values(), *undefined_results.RULES.values()}


ONES, HALF = 2**32 - 1, 0.91**0.5

# An instruction or function, the type of its operands and results, operands where its definition
# branches, and the results.
RESULTS = [
    ("UDiv", "u4", [[7, ONES, 5, 0], [2, 1, 0, 0]], [3, ONES, ONES, ONES]),
    ("SDiv", "i4", [[7, -7, 7, -7, 5, -5], [2, 2, -2, -2, 0, 0]], [3, -3, -3, 3, -1, -1]),
    ("UMod", "u4", [[7, ONES, 5], [4, 2, 0]], [3, 1, ONES]),
    ("SRem", "i4", [[7, -7, 7, -7, 5], [4, 4, -4, -4, 0]], [3, -3, 3, -3, -1]),
    ("SMod", "i4", [[7, -7, 7, -7, 5], [4, 4, -4, -4, 0]], [3, 1, -1, -3, -1]),
    ("FRem", "f4", [[7, -7, 7], [4, 4, -4]], [3, -3, 3]),
    ("FMod", "f4", [[7, -7, 7], [4, 4, -4]], [3, 1, -1]),
    ("ShiftRightLogical", "i2", [[-1, -1, -1], [0, 1, 15]], [-1, 2**15 - 1, 1]),
    ("ShiftRightArithmetic", "u2", [[2**16 - 1, 2**15, 4], [15, 14, 1]], [2**16 - 1, 2**16 - 2, 2]),
    ("ShiftLeftLogical", "u8", [[1, 1], [31, 63]], [2**31, 2**63]),
    ("BitFieldUExtract", "u4", [[0xF0] * 4, [4, 5, 0, 0], [4, 1, 32, 0]], [15, 1, 0xF0, 0]),
    ("BitFieldSExtract", "i4", [[0xF0] * 4, [4, 4, 0, 31], [4, 5, 32, 0]], [-1, 15, 0xF0, 0]),
    ("BitFieldInsert", "u4", [[ONES] * 4, [0] * 4, [4, 31, 0, 0], [4, 1, 32, 0]], [ONES - 0xF0, ONES >> 1, 0, ONES]),
    ("BitReverse", "u2", [[1, 2**15, 6]], [2**15, 1, 3 << 13]),
    ("BitCount", "u8", [[0, 2**64 - 1, 2**63 + 1]], [0, 64, 2]),
    ("IAddCarry", "u4", [[ONES, ONES, 1], [1, 0, 2]], [[0, ONES, 3], [1, 0, 0]]),
    ("ISubBorrow", "u4", [[0, 1, 2], [1, 1, 1]], [[ONES, 0, 1], [1, 0, 0]]),
    ("UMulExtended", "u4", [[ONES, 2], [ONES, 3]], [[1, 6], [ONES - 1, 0]]),
    ("SMulExtended", "i8", [[-(2**63), 2**62], [2, 2]], [[0, -(2**63)], [-1, 0]]),
    ("FOrdNotEqual", "f4", [[1, 1, NAN], [2, 1, 1]], [True, False, False]),
    ("FUnordNotEqual", "f4", [[1, 1, NAN], [2, 1, 1]], [True, False, True]),
    ("FUnordLessThan", "f4", [[1, 1, 1], [2, 1, NAN]], [True, False, True]),
    ("FUnordGreaterThanEqual", "f4", [[1, 1, NAN], [2, 1, NAN]], [False, True, True]),
    ("Step", "f4", [[1, 1, 1], [0.5, 1, 2]], [0, 1, 1]),
    ("SmoothStep", "f4", [[1] * 4, [3] * 4, [0, 1.5, 2, 4]], [0, 0.15625, 0.5, 1]),
    ("FMix", "f4", [[1, 1, 1], [3, 3, 3], [0, 0.25, 1]], [1, 1.5, 3]),
    ("FSign", "f4", [[-2, 0, 3]], [-1, 0, 1]),
    ("FClamp", "f4", [[0, 1, 2, 3, 4], [1] * 5, [3] * 5], [1, 1, 2, 3, 3]),
    ("FindILsb", "u4", [[0, 1, 2**31, 12]], [-1, 0, 31, 2]),
    ("FindUMsb", "u4", [[0, 1, ONES, 12]], [-1, 0, 31, 3]),
    ("FindSMsb", "i4", [[0, -1, -2, 1, 2**31 - 1]], [-1, -1, 0, 0, 30]),
    ("Reflect", "f4", [[[3, -4]], [[0, 1]]], [[3, 4]]),
    ("FaceForward", "f4", [[[1, 2]] * 3, [[1, 0]] * 3, [[1, 0], [0, 1], [-1, 0]]], [[-1, -2], [-1, -2], [1, 2]]),
    ("Refract", "f4", [[[0.6, -0.8]] * 3, [[0, 1]] * 3, [1, 0.5, 2]], [[0.6, -0.8], [0.3, -HALF], [0, 0]]),
]  # fmt: skip


@pytest.mark.parametrize(("name", "dtype", "operands", "results"), RESULTS)
def test_results_where_a_definition_branches(name, dtype, operands, results):
    table, number = (
        (operations.TABLE, OPCODES[name])
        if name in OPCODES
        else (glsl_functions.FUNCTIONS, FUNCTIONS[name])
    )
    is_condition = isinstance(np.ravel(results)[0], np.bool_)
    kind = "?" if is_condition else "i4" if name.startswith("Find") else dtype
    result = operations.apply(
        table[number], [np.array(each, dtype) for each in operands], np.dtype(kind)
    )
    np.testing.assert_allclose(result, np.array(results, kind), rtol=1e-6)


@pytest.mark.parametrize("opcode", range(4450, 4456))
def test_integer_dot_products(opcode):
    """Of bytes in a word and of vectors, with and without a summand, which saturates."""
    random = np.random.default_rng(opcode)
    kinds = ("ss", "uu", "su")[(opcode - 4450) % 3]
    for dtype, columns in ((np.uint8, 4), (np.uint16, 3), (np.uint32, 2)):
        a, b = random.integers(0, np.iinfo(dtype).max, (2, 50, columns), dtype, endpoint=True)
        signed = [
            v.view(f"i{v.itemsize}") if k == "s" else v for v, k in zip((a, b), kinds, strict=True)
        ]
        exact = [
            sum(int(p) * int(q) for p, q in zip(*rows, strict=True))
            for rows in zip(*signed, strict=True)
        ]
        result = np.dtype("i8" if kinds[0] == "s" else "u8")
        operands = [v.view("u4").reshape(-1) if dtype == np.uint8 else v for v in (a, b)]
        if opcode >= 4453:
            limits = np.iinfo(result)
            summand = random.integers(limits.min, limits.max, 50, result, endpoint=True)
            exact = [
                min(max(e + int(s), limits.min), limits.max)
                for e, s in zip(exact, summand, strict=True)
            ]
            operands.append(summand)
        wide = operations.apply(operations.TABLE[opcode], operands, result)
        assert [int(v) % 2**64 for v in wide] == [e % 2**64 for e in exact]
        if opcode < 4453:
            narrow = operations.apply(operations.TABLE[opcode], operands, np.dtype("u4"))
            assert narrow.tolist() == [e % 2**32 for e in exact]


# -- calls and errors ------------------------------------------------------------------------------

DEEP = "uint f0(uint a) { return a + 1; }\n" + "\n".join(
    f"uint f{n}(uint a) {{ return f{n - 1}(a) + 1; }}" for n in range(1, 600)
)


def test_calls_of_any_depth():
    case = Case.of(f"{HEAD}{DEEP}\nvoid main() {{ y[own] = f599(own); }}")
    report = case.check()
    assert report.ok, str(report)
    assert report.buffers["Y"].tolist() == [600 + n for n in range(32)]
    case.run(observers=[recorder := Recorder(1), Tracer(range(2))])
    assert max(stop.scope.depth for stop in recorder.stops) == 600


@pytest.mark.parametrize(
    "error", [KeyError, TypeError, AssertionError, ValueError, ZeroDivisionError]
)
def test_errors_of_the_interpreter_are_not_taken_for_refusals(monkeypatch, error):
    def broken(run, step):
        raise error("broken")

    monkeypatch.setitem(instructions.HANDLERS, 132, broken)
    with pytest.raises(error, match="broken"):
        checked("y[own] = x[own] * 3;")
