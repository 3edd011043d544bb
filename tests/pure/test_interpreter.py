"""The interpreter of shaders against NumPy, and the kernels of vkops against plans; no Vulkan."""

from array import array
from functools import partial

import numpy as np
import pytest
import spirv
from hypothesis import given, settings
from hypothesis import strategies as st
from indexed_plans import indexed_case
from interpreted import bytes_of, plan_run
from kernel_plans import TUNINGS, grid_plans, padded_plans, window
from strategies import input_bytes, plans

from vkops import shaders
from vkops.debug import check
from vkops.errors import BindingError, InvalidDescError, ShaderCompileError
from vkops.gpu.kernels.choice import choose_kernel
from vkops.interpreter import scheduler
from vkops.interpreter.program import ShaderProgram
from vkops.plan import execute
from vkops.plan.algebra import optimize
from vkops.shaders.binary import Op, positions
from vkops.shaders.module import Module

HEAD = """#version 450
#extension GL_EXT_shader_explicit_arithmetic_types : require
#extension GL_KHR_shader_subgroup_arithmetic : require
#extension GL_KHR_shader_subgroup_clustered : require
#extension GL_KHR_shader_subgroup_shuffle : require
#extension GL_KHR_shader_subgroup_ballot : require
#extension GL_EXT_debug_printf : require
layout(local_size_x = 32) in;
layout(std430, binding = 0) buffer X { T x[]; };
layout(std430, binding = 1) buffer Y { U y[]; };
uint i = gl_GlobalInvocationID.x;
"""
UINTS_HEAD = HEAD.replace("T x", "uint x").replace("U y", "uint y")


def computed(body, x, result, *, count=1, **options):
    """Run statements that assign to elements of Y, of which there are ``count`` for each of X."""
    names = {"u": "uint", "i": "int", "f": "float"}
    types = {
        key: f"{names[dtype.kind]}{8 * dtype.itemsize}_t"
        for key, dtype in (("T", x.dtype), ("U", np.dtype(result)))
    }
    text, y = f"{HEAD}void main() {{ {body} }}", np.zeros(count * x.size, result)
    report = check(text, {"X": x, "Y": y}, threads=x.size, defines=types, name="x", **options)
    assert report.ok, str(report)
    return report


def compare(expressions, x, same=np.testing.assert_array_equal, **options):
    """Compute expressions of x[i], or statements that assign to ``y[i]``, and compare the results."""
    lines = [
        f"{{ {each if ';' in each else f'y[i] = {each};'} }}".replace(
            "y[i]", f"y[i + {k * x.size}]"
        )
        for k, each in enumerate(expressions)
    ]
    report = computed("\n".join(lines), x, x.dtype, count=len(lines), **options)
    results = report.buffers["Y"].reshape(-1, x.size)
    for (expression, wanted), result in zip(expressions.items(), results, strict=True):
        same(result, wanted, err_msg=expression)


UINTS = [np.uint8, np.uint16, np.uint32, np.uint64]
INTS = [np.int8, np.int16, np.int32, np.int64]


def numbers(dtype):
    values = np.frombuffer(np.random.default_rng(1).bytes(64 * np.dtype(dtype).itemsize), dtype)
    values = values.copy()
    values[:3] = 0, 1, np.iinfo(dtype).max
    return values


@pytest.mark.parametrize("dtype", UINTS + INTS)
def test_integers(dtype):
    x, scalar = numbers(dtype), np.dtype(dtype).type
    bits = 8 * x.itemsize
    with np.errstate(all="ignore"):
        compare({
            "x[i] * x[i] + T(3)": x * x + scalar(3), "-x[i]": (0 - x).astype(dtype), "~x[i]": ~x,
            "x[i] / T(7)": np.sign(x) * (abs(x) // scalar(7)), "x[i] - T(100)": x - scalar(100),
            f"x[i] << {bits - 3}": x << scalar(bits - 3), f"x[i] >> {bits - 3}": x >> scalar(bits - 3),
            "x[i] > T(50) ? T(1) : T(0)": (x > 50).astype(dtype),
        }, x)  # fmt: skip


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_floats(dtype):
    x = np.linspace(-4, 9, 64).astype(dtype)
    compare({
        "x[i] * x[i] + x[i]": x * x + x, "floor(x[i]) + fract(x[i])": np.floor(x) + (x - np.floor(x)),
        "x[i] / U(3)": x / dtype(3), "sqrt(abs(x[i] + U(0)))": np.sqrt(abs(x)),
        "U(int32_t(x[i]))": np.trunc(x), "U(x[i] < U(1))": (x < 1).astype(dtype),
    }, x)  # fmt: skip
    near = partial(np.testing.assert_allclose, rtol=1e-2, atol=1e-2)
    compare({
        "min(x[i], U(2)) + max(x[i], U(5)) + clamp(x[i], U(0), U(1))": np.minimum(x, 2) + np.maximum(x, 5) + np.clip(x, 0, 1),
        "mix(x[i], U(2), U(0.25))": x * 0.75 + 0.5, "mod(x[i], U(2))": x - 2 * np.floor(x / 2),
    }, x, near)  # fmt: skip


def test_functions_of_float32():
    x = np.linspace(0.01, 0.9, 64, dtype=np.float32)
    functions = {
        "sin": np.sin, "cos": np.cos, "tan": np.tan, "asin": np.arcsin, "acos": np.arccos, "atan": np.arctan,
        "exp": np.exp, "log": np.log, "exp2": np.exp2, "log2": np.log2, "sinh": np.sinh, "tanh": np.tanh,
        "inversesqrt": lambda v: 1 / np.sqrt(v), "radians": np.radians, "degrees": np.degrees,
    }  # fmt: skip
    expected = {f"{name}(x[i])": function(x) for name, function in functions.items()}
    compare(expected, x, partial(np.testing.assert_allclose, rtol=1e-5))


def test_vectors_and_matrices():
    x = np.random.default_rng(0).random(64, np.float32)
    a = x[:, None, None] * np.arange(1, 10, dtype=np.float32).reshape(3, 3).T
    a += np.eye(3, dtype=np.float32)
    text = """mat3 m = mat3(1, 2, 3, 4, 5, 6, 7, 8, 9) * x[i] + mat3(1); vec3 v = m * vec3(1, 2, 3);
        y[i] = dot(v, transpose(m)[1]) + determinant(m) + (inverse(m) * v).y + length(cross(v, v.zxy)) + normalize(v).x;"""
    v = a @ np.float32([1, 2, 3])
    expected = (v * a[:, 1, :]).sum(1) + np.linalg.det(a) + 2
    expected += np.linalg.norm(np.cross(v, v[:, [2, 0, 1]]), axis=1)
    expected += v[:, 0] / np.linalg.norm(v, axis=1)
    np.testing.assert_allclose(computed(text, x, np.float32).buffers["Y"], expected, rtol=2e-4)


@pytest.mark.parametrize("size", [1, 2, 4, 8, 16, 32])
def test_subgroups(size):
    x = np.random.default_rng(0).integers(0, 1000, 64, np.uint32)
    rows, most = x.reshape(-1, size), min(size, 4)
    expected = {
        "subgroupAdd(x[i])": rows.sum(1, keepdims=True), "subgroupMax(x[i])": rows.max(1, keepdims=True),
        "subgroupInclusiveAdd(x[i])": rows.cumsum(1), "subgroupExclusiveAdd(x[i])": rows.cumsum(1) - rows,
        f"subgroupShuffle(x[i], gl_SubgroupInvocationID ^ {size - 1})": rows[:, ::-1],
        f"subgroupBroadcast(x[i], {size // 2})": rows[:, size // 2, None],
        f"subgroupClusteredMin(x[i], {most})": np.repeat(rows.reshape(-1, size // most, most).min(2), most, 1),
        "if (x[i] < 500) y[i] = subgroupAdd(x[i]); else y[i] = subgroupAdd(1u);":
            np.where(rows < 500, np.where(rows < 500, rows, 0).sum(1, keepdims=True), (rows >= 500).sum(1, keepdims=True)),
        "uvec4 b = subgroupBallot(x[i] > 500); y[i] = subgroupBallotBitCount(b) + 100 * subgroupBallotExclusiveBitCount(b);":
            (rows > 500).sum(1, keepdims=True) + 100 * ((rows > 500).cumsum(1) - (rows > 500)),
    }  # fmt: skip
    whole = {
        each: np.broadcast_to(rows, (64 // size, size)).ravel() for each, rows in expected.items()
    }
    compare(whole, x, subgroup_size=size)


def test_printed_texts():
    x = np.arange(32, dtype=np.uint32)
    text = 'if (i > 29) debugPrintfEXT("%u of %v2f, %d%%", i, vec2(i, 0.5), -3); y[i] = 0;'
    assert computed(text, x, np.uint32).printed == (
        ((30, 0, 0), "30 of 30.000000, 0.500000, -3%"), ((31, 0, 0), "31 of 31.000000, 0.500000, -3%"),
    )  # fmt: skip


@pytest.mark.parametrize(
    ("form", "printed"),
    [("100%", "100%"), ("50%, %u", "50%, 7"), ("%u %v2f", "7 %v2f"), ("%s", "%s"), ("%ul, %-3x|", "7, %-3x|")],
)  # fmt: skip
def test_conversions_without_a_value_are_printed_as_they_are(form, printed):
    text = f'if (i == 0) debugPrintfEXT("{form}", x[i]); y[i] = 0;'
    ((_, found),) = computed(text, np.full(32, 7, np.uint32), np.uint32).printed
    assert found == printed


@pytest.mark.parametrize(
    "options",
    [["-O"], ["-Os"], ["--merge-return", "--inline-entry-points-exhaustive", "--ssa-rewrite"]],
)
def test_optimized_modules(options):
    """Values across blocks and phis instead of variables."""
    text = (
        UINTS_HEAD
        + """
    uint f(uint n, inout uint a) { for (uint k = 0; k < 9; ++k) { if (k > n) return a; a += k * n; if ((a & 8u) != 0) continue; a ^= 5u; } return a + 1; }
    void main() { uint a = x[i], b = f(i % 7, a); if (b > 20) b = f(a % 5, b); y[i] = a * 1000 + b; }"""
    )
    module = spirv.tool("spirv-opt", *options, spirv=shaders.compile(text))
    x = np.arange(64, dtype=np.uint32)
    plain, optimized = (check(each, {"X": x, "Y": 256}, threads=64) for each in (text, module))
    assert plain.ok
    assert optimized.ok, str(optimized)
    np.testing.assert_array_equal(
        optimized.buffers["1"] if "1" in optimized.buffers else optimized.buffers["Y"],
        plain.buffers["Y"],
    )


def test_more_invocations_than_run_together():
    text = """#version 450
    layout(local_size_x = 64) in;
    layout(std430, binding = 0) buffer Data { uint data[]; };
    layout(std430, binding = 1) buffer Total { uint total; };
    uint i = gl_GlobalInvocationID.x; shared uint part;
    void main() { if (i % 64 == 0) part = i; barrier(); i += part; data[gl_GlobalInvocationID.x] = i; atomicAdd(total, 1u); }"""
    i = np.arange(1500 * 64)
    report = check(text, {"Total": np.zeros(1, np.uint32)}, groups=(30, 50))
    assert [f.kind for f in report.findings] == ["data race"]  # x is the same in 50 rows
    report = check(text, {"Total": np.zeros(1, np.uint32)}, groups=1500)
    assert report.ok, str(report)
    np.testing.assert_array_equal(report.buffers["Data"], i + i // 64 * 64)
    assert report.buffers["Total"].tolist() == [1500 * 64]
    race = check(text.replace("part = i", "part = i, data[0] = i"), {"Total": 4}, groups=1500)
    assert {f.kind for f in race.findings} == {"data race", "never written"}


def test_a_workgroup_may_wait_for_the_ones_before_it(monkeypatch):
    """Also if more workgroups are run than run together."""
    monkeypatch.setattr(scheduler, "MAX_TOGETHER", 256)
    text = """#version 450
    layout(local_size_x = 16) in;
    layout(std430, binding = 0) buffer Sums { uint sums[]; };
    layout(std430, binding = 1) buffer Tickets { uint tickets; };
    void main() { if (gl_LocalInvocationIndex != 0) return;
      uint group = atomicAdd(tickets, 1u), sum = 0; if (group > 0) do sum = atomicOr(sums[group - 1], 0u); while (sum == 0);
      atomicExchange(sums[group], sum + 1); }"""
    buffers = {"Sums": np.zeros(20, np.uint32), "Tickets": np.zeros(1, np.uint32)}
    report = check(text, buffers, groups=20)
    assert report.ok, str(report)
    np.testing.assert_array_equal(report.buffers["Sums"], np.arange(1, 21))


def test_atomic_operations_on_few_numbers():
    """They are executed one after the other, in the order of invocations."""
    text = (
        UINTS_HEAD
        + """
    #extension GL_EXT_shader_atomic_float : require
    shared uint at[3]; shared float f;
    void main() { if (i == 0) { at[0] = at[1] = at[2] = 0; f = 0.0; } barrier();
      uint own = gl_LocalInvocationIndex, k = own % 3;
      y[i * 4] = atomicCompSwap(at[k], x[i], x[i] + 1);
      y[i * 4 + 1] = atomicExchange(f, own % 2 == 0 ? 0.0 : -0.0) == 0.0 ? 1 : 0;
      barrier(); y[i * 4 + 2] = atomicExchange(at[k], own); y[i * 4 + 3] = floatBitsToUint(f); }"""
    )
    x = np.random.default_rng(1).integers(0, 12, 32, np.uint32)
    expected = np.zeros((32, 4), np.uint32)
    at = [0, 0, 0]
    for i in range(32):
        expected[i, 0] = at[i % 3]
        at[i % 3] += at[i % 3] == x[i]
    for i in range(32):
        expected[i, 1:3] = 1, at[i % 3]
        at[i % 3] = i
    expected[:, 3] = 1 << 31  # -0.0, of the last one
    report = check(text, {"X": x, "Y": expected.nbytes})
    np.testing.assert_array_equal(report.buffers["Y"].reshape(32, 4), expected)


def test_each_invocation_leaves_a_loop_by_itself():
    """SwiftShader (2026) and lavapipe (Mesa 22.3) execute the body of a do-while also for those that have left it."""
    x = np.arange(32, dtype=np.uint32) % 4
    loop = "uint n = 0; do { BODY } while (++n < x[i]); y[i] = RESULT;"
    for body, result, before in (
        ("v.y += 1;", "uint(v.y)", "ivec2 v = ivec2(x[i], 0);"),  # lavapipe: 2 2 3 3, not 1 1 2 3
        ("v = x[i] + 5;", "v", "uint v = 0;"),  # both: 5 5 5 8, not 5 6 7 8
    ):
        text = before + loop.replace("BODY", body).replace("RESULT", result)
        report = computed(text, x, np.uint32)
        expected = np.maximum(x, 1) if "y" in result else x + 5
        np.testing.assert_array_equal(report.buffers["Y"], expected)


def test_lines_whose_numbers_are_ids():
    """The words of OpLine are taken neither for types nor for values."""
    source = """#version 450
    layout(binding = 0) buffer X { uint x[]; };
    void main() { switch (x[0]) { case 1: x[1] = 5; break; default: x[1] = x[0]; } }
    """
    words = array("I", shaders.compile(source, debug=True))
    lines = [at for at, op, _ in positions(words) if op == Op.Line]
    for number in range(1, words[3]):
        for at in lines:
            words[at + 2] = words[at + 3] = number
        program = ShaderProgram(Module.read(words.tobytes()), {})
        escaping = [s.op for s in program.functions[program.main].blocks[0].steps if s.escapes]
        assert escaping == []


# -- the kernels of vkops --------------------------------------------------------------------------


def run_plan(plan, tuning, inputs):
    """Run a plan's kernels in the interpreter, and compare all bytes."""
    run, outputs = plan_run(plan, tuning, inputs)
    before = [bytes_of(run, number).copy() for number in outputs]
    for _, each in run.runs():
        report = each.check()
        assert report.ok, str(report)
    for number, wanted in zip(outputs, execute(plan, inputs, before), strict=True):
        np.testing.assert_array_equal(bytes_of(run, number), wanted.view(np.uint8).reshape(-1))


@pytest.mark.parametrize("tuning", TUNINGS.values(), ids=TUNINGS)
@settings(max_examples=15)
@given(plan=plans())
def test_kernels(tuning, plan):
    run_plan(plan, tuning, input_bytes(plan, 0))


@settings(max_examples=10)
@given(plan=st.one_of(grid_plans(), padded_plans()))
def test_kernels_of_borders(plan):
    run_plan(plan, TUNINGS["gpu"], input_bytes(plan, 0))


@pytest.mark.parametrize("size", [1, 2, 4, 8, 16])
def test_kernels_of_tiles(size):
    """Whole tiles, and parts of them on both sides."""
    across, along = 160 // size, 208 // size
    plan = window(size, [2, along, across], [along * across, 1, along])
    assert choose_kernel(optimize(plan), is_cpu=False).kernel.name == f"copy_tile_{size}"
    run_plan(plan, TUNINGS["gpu"], input_bytes(plan, 0))


@pytest.mark.parametrize(("tuning", "first"), [("cpu", 0), ("single", 8)])
def test_kernels_with_indices(tuning, first):
    for seed in range(first, first + 8):
        case = indexed_case(seed)
        inputs = [np.frombuffer(array.tobytes(), np.uint8) for array in case.inputs]
        run_plan(case.plan, TUNINGS[tuning], inputs)


# -- errors ----------------------------------------------------------------------------------------


def test_errors(message):
    text = UINTS_HEAD + "void main() { y[i] = x[i]; }"
    for wrong, kind, rule in (
        ({"buffers": {"Z": 4}}, BindingError, "SH-04"), ({"buffers": {"X": "abc"}}, BindingError, "SH-04"),
        ({"buffers": 5}, BindingError, "SH-04"), ({"buffers": np.arange(4)}, BindingError, "SH-04"), ({"buffers": "abc"}, BindingError, "SH-04"),
        ({"buffers": [4, 4, 4]}, BindingError, "SH-04"), ({"buffers": {"X": 2}}, BindingError, "SH-05"),
        ({"groups": 0}, InvalidDescError, "SH-07"), ({"groups": 1, "threads": 1}, InvalidDescError, "SH-07"),
        ({"groups": (1 << 12,) * 3}, InvalidDescError, "SH-07"), ({"groups": "ab"}, InvalidDescError, "SH-07"),
        ({"subgroup_size": 5}, InvalidDescError, "SH-07"), ({"push": [1]}, InvalidDescError, "SH-09"),
    ):  # fmt: skip
        with pytest.raises(kind) as caught:
            check(text, **{"name": "x", **wrong})
        assert caught.value.rule == rule
        message(str(caught.value))
    with pytest.raises(ShaderCompileError):
        check("void main() {")
