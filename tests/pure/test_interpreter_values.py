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
from vkops.interpreter.tracing import Tracer
from vkops.interpreter.values import SourceLine
from vkops.shaders.grammar import FUNCTIONS

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


@pytest.mark.parametrize(
    ("name", "wrong"), [("NClamp", [False, True, False]), ("FClamp", [True, True, True])]
)
def test_limits_of_clamp_that_are_crossed_or_nan(name, wrong):
    """NClamp, which glslang does not write, ignores NaN."""
    operands = [*np.array([[np.nan, 1, 1], [0, 3, np.nan], [2, 2, 2]], np.float32)]
    rule = undefined_results.RULES[FUNCTIONS[name]]
    (found,) = undefined_results.undefined(rule, operands[0].dtype, operands, SourceLine("x", 1))
    assert found.missing.tolist() == wrong
    assert found.why[0].message.startswith("uses clamp with limits from ")


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
