"""``vkops debug trace``, and ``check`` of models: the interpreter against plans and by hand."""

import re
import shutil
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import rapidjson
import spirv
from hypothesis import given, settings
from hypothesis import strategies as st
from indexed_plans import indexed_case
from interpreted import bytes_of, plan_run
from kernel_plans import TUNINGS, padded, stream_plans, window
from strategies import input_bytes, plans

from vkops import shaders
from vkops.debug.driver_comparison import compare
from vkops.debug.model_trace import Element, trace_plans, traced
from vkops.debug.shader_check import Case
from vkops.errors import ModelError
from vkops.plan import execute

# -- shaders ---------------------------------------------------------------------------------------

HEAD = """#version 450
layout(local_size_x = 64) in;
layout(std430, binding = 0) readonly buffer X { uint x[]; };
layout(std430, binding = 1) buffer Y { uint y[]; };
layout(std430, binding = 2) buffer Z { uint z[]; };
layout(push_constant) uniform Push { uint n; };
shared uint part[64];
uint i = gl_LocalInvocationIndex;
"""


def way(body, element, **options):
    """The lines of an element's way, each with its number, what was made, and what of."""
    buffers = {"X": np.arange(100, 164, dtype=np.uint32), "Y": 256, "Z": np.zeros(64, np.uint32)}
    case = Case.of(HEAD + body, buffers, push=[7], name="x", **options)
    trace = traced(case, 1, "Y", (element,))
    first = HEAD.count("\n") + 1
    return [
        (line.place.line - first, f"{line.name} = {line.value}", [" = ".join(s[:2]) for s in line.sources])
        for line in trace.lines
    ]  # fmt: skip


def test_each_texel_of_a_sample_has_its_own_value():
    text = """#version 450
layout(local_size_x = 1) in;
layout(binding = 0) uniform sampler2D picture;
layout(std430, binding = 1) buffer Y { float y[]; };
void main() { y[0] = texture(picture, vec2(0.5)).x; }"""
    given = {"picture": np.arange(4, dtype=np.float32).reshape(2, 2), "Y": 4}
    (line,) = traced(Case.of(text, given), 1, "Y", (0,)).lines
    assert line.value == "1.5"
    assert [source[:2] for source in line.sources] == [
        (f"picture({n % 2}, {n // 2})", f"{n}.0") for n in (0, 2, 1, 3)
    ]


def test_a_way_through_local_variables():
    body = """
    void main() {
        uint from = 63 - i;
        uvec2 both = uvec2(x[from], n);
        both.y += 1;
        y[i] = both.x * both.y;
    }"""
    assert way(body, 3) == [
        (5, "y[3] = 1280", ["i = 3", "both.x = 160", "both.y = 8"]),
        (4, "both.y = 8", ["both.y = 7"]),
        (3, "both = (160, 7)", ["x[60] = 160", "from = 60", "Push.n = 7"]),
        (2, "from = 60", ["i = 3"]),
        (-1, "i = 3", ["gl_LocalInvocationIndex = 3"]),
    ]


def test_a_way_through_shared_memory_functions_and_branches():
    body = """
    uint twice(uint v) { return v * 2; }
    void main() {
        part[i] = x[i];
        barrier();
        uint sum = 0;
        for (uint k = 0; k < 2; ++k) sum += k == 1 ? twice(part[i ^ 1]) : 1;
        y[i] = sum;
    }"""
    lines = way(body, 5)
    assert lines[0] == (7, "y[5] = 209", ["i = 5", "sum = 209"])
    assert lines[1][:2] == (6, "sum = 209")
    assert (3, "part[4] = 104", ["i = 4", "x[4] = 104"]) in lines
    assert (6, "sum = 1", ["sum = 0"]) in lines
    assert all("part[4]" not in name or "104" in name for _, name, _ in lines)


def test_ways_from_atomic_operations_and_other_workgroups():
    body = """
    void main() {
        uint old = atomicAdd(z[gl_WorkGroupID.x], x[i]);
        y[i] = old;
    }"""
    lines = way(body, 2)
    assert lines[0] == (3, "y[2] = 201", ["i = 2", "old = 201"])
    assert {*lines[1][2]} == {"z[0] = 201", "x[2] = 102", "gl_WorkGroupID.x = 0", "i = 2"}
    changes = [change for _, change, _ in lines if change.startswith("z[0]")]
    assert changes == ["z[0] = 201", "z[0] = 100"]
    (last, *_) = way(body.replace("y[i] = old", "if (i == 0) y[0] = z[1]"), 0, groups=2)
    assert last == (3, "y[0] = 8416", ["z[1] = 8416"])  # by the other workgroup


def test_a_way_through_other_invocations_of_a_subgroup():
    text = HEAD.replace("450\n", "450\n#extension GL_KHR_shader_subgroup_arithmetic : require\n")
    text += "void main() { uint s = subgroupInclusiveAdd(x[i] << 1); y[i] = s; }"
    case = Case.of(text, [np.arange(64, dtype=np.uint32), 256], push=[7], subgroup_size=8)
    trace = traced(case, 1, "Y", (10,))
    assert trace.value == str(2 * (8 + 9 + 10))
    reads = {source[:2] for line in trace.lines for source in line.sources}
    assert {("x[8]", "8"), ("x[15]", "15")} <= reads
    assert ("x[7]", "7") not in reads


def test_a_number_that_nothing_stores():
    assert way("void main() { if (i < 3) y[i] = 1; }", 3) == []
    assert way("void main() { if (i < 3) y[i] = 1; }", 2)[0][1] == "y[2] = 1"


def test_many_invocations_are_not_followed():
    body = """
    void main() {
        part[i] = x[i] + 1;
        barrier();
        uint sum = 0;
        for (uint k = 0; k < 64; ++k) sum += part[k] * gl_WorkGroupID.x + part[63 - k];
        z[i] = sum;
        if (i == 0) { sum = 0; for (uint k = 0; k < 64; ++k) sum += z[k]; y[0] = sum; }
    }"""
    lines = way(body, 0)
    assert lines[0][:2] == (7, f"y[0] = {64 * (sum(range(100, 164)) + 64)}")


def test_values_that_meet_in_phis():
    """Compilers with optimizations make these instead of local variables."""
    text = HEAD + "void main() { uint s = n; for (uint k = 0; k < 3; ++k) s += x[k]; y[i] = s; }"
    module = shaders.load(text, name="x", debug=True).spirv
    optimized = spirv.tool("spirv-opt", "-O", spirv=module)
    case = Case.of(optimized, [np.arange(64, dtype=np.uint32), 256], push=[7])
    trace = traced(case, 1, "Y", (5,))
    reads = {source[:2] for line in trace.lines for source in line.sources}
    assert {("x[1]", "1"), ("x[2]", "2"), ("Push.n", "7")} <= reads
    assert trace.value == "10"


# -- kernels against plans -------------------------------------------------------------------------


def check(plan, tuning, inputs, seed):
    """Trace a random byte of a plan's outputs that it writes, and compare it with the plan."""
    run, outputs = plan_run(plan, tuning, inputs)
    before = [bytes_of(run, number).copy() for number in outputs]
    expected = execute(plan, inputs, before)
    random = np.random.default_rng(seed)
    output = int(random.integers(len(outputs)))
    region = plan.outputs[output].regions[random.integers(len(plan.outputs[output].regions))]
    if region.kind == "scatter":  # where it goes depends on indices
        return None
    index = random.integers(region.sizes)
    size = plan.element_size
    at = (region.target.offset + int(np.dot(index, region.target.strides))) * size
    trace = trace_plans(run, Element(str(outputs[output]), at, size))
    assert not trace.differs, trace.verdict
    assert trace.stored == expected[output][at : at + size].tobytes()
    assert trace.lines[0].name.startswith("target")
    inputs = [s for line in trace.lines for s in line.sources if s[2] == "input"]
    assert any(name.startswith("table") for name, *_ in inputs)
    assert dict(trace.facts)["Kernel"] in shaders.VARIANTS
    return trace


@pytest.mark.parametrize("tuning", TUNINGS.values(), ids=TUNINGS)
@settings(max_examples=5)
@given(plan=st.one_of(plans(), stream_plans()), seed=st.integers(0, 99))
def test_random_elements_of_random_plans(tuning, plan, seed):
    check(plan, tuning, input_bytes(plan, 0), seed)


def test_random_elements_of_plans_with_indices():
    traces = []
    for seed in range(6):
        case = indexed_case(seed)
        inputs = [np.frombuffer(array.tobytes(), np.uint8) for array in case.inputs]
        traces.append(check(case.plan, TUNINGS["cpu"], inputs, seed))
    assert any(each and "moved by the indices" in dict(each.facts)["Region"] for each in traces)


COPY, TILE = window(8, [33], [3], 0, [2]), window(4, [64, 64], [1, 64])
GRID = padded(4, (9, 13), (0, 1), (0, 1), "reflect")
# What is wrong in a kernel, in which plan, and an element that shows it.
BUGS = {
    "a missing store": ("copy.comp", "target[item.dst] = constant ? pattern : element;", "", COPY, 30),
    "a wrong value": ("copy.comp", "= source[item.src];", "= source[item.src] + 1u;", COPY, 30),
    "a wrong source": ("region.glsl", "item.src = head.HEAD_SRC;", "item.src = head.HEAD_SRC + 1u;", COPY, 30),
    "a wrong stride": ("region.glsl", "value * digit.DIGIT_DST;", "value * (digit.DIGIT_DST + 1u);", COPY, 31),
    "an item left out": ("region.glsl", "if (rest >= head.HEADER_ITEMS)", "if (rest + 1u >= head.HEADER_ITEMS)", COPY, 32),
    "tiles": ("copy_tile.comp", "(column - groups *", "((column ^ 1u) - groups *", TILE, 198),
    "rows": ("copy_rows.comp", "unaligned(next - left)", "unaligned(next - left + 1u)", window(1, [5, 37], [53, 1], 3), 37),
    "grids": ("copy_grid.comp", "column - mix(0u, size.LEVEL_SIZE, beyond)", "column", GRID, 1),
    "streams": ("copy_stream.comp", "cursor.src += skipped;", "cursor.src += skipped + 1u;", window(1, [15, 7], [53, 1], 3), 97),
    "bytes": ("copy_subword.comp", "src + (base + t) * stride;", "src + (base + t) * stride + 1u;", window(1, [333], [2]), 10),
}  # fmt: skip


@pytest.fixture
def edited(tmp_path, monkeypatch):
    """Change a text in a file of the kernels."""

    def edit(file, right, wrong):
        folder = tmp_path / "shaders"
        shutil.copytree(shaders.source_dir(), folder)
        text = (folder / file).read_text()
        assert text.count(right) == 1
        (folder / file).write_text(text.replace(right, wrong))
        monkeypatch.setenv("VKOPS_SHADER_DIR", str(folder))

    return edit


@pytest.mark.parametrize("bug", BUGS)
def test_planted_bugs(edited, bug):
    file, right, wrong, plan, number = BUGS[bug]
    target, size = plan.outputs[0].regions[0].target, plan.element_size
    at = int(np.dot(np.unravel_index(number, target.sizes), target.strides)) * size
    edited(file, right, wrong)
    run, (output,) = plan_run(plan, TUNINGS["gpu"], input_bytes(plan, 0))
    trace = trace_plans(run, Element(str(output), at, size))
    assert trace.differs, trace.text(20)
    assert trace.verdict.startswith("The kernel differs from the plan: got ")


# -- models ----------------------------------------------------------------------------------------

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.fixture
def command(command, tmp_path, monkeypatch):
    """Run ``vkops debug`` in a folder."""
    monkeypatch.chdir(tmp_path)
    return partial(command, "debug")


def test_what_cannot_be_traced(command, message):
    Path("none.comp").write_text("#version 450\nvoid main() {}")
    Path("read.comp").write_text(
        "#version 450\nlayout(std430, binding = 0) readonly buffer X { uint x; };\n"
        "shared uint y; void main() { y = x; }"
    )
    model, shader = EXAMPLES / "split.json", EXAMPLES / "transpose_wrong.comp"
    first = ["--output", "OutputTensors[0]"]
    for file, arguments, status, named in (
        (model, ["0"], 1, "--output"), (model, ["0", "--output", "Y"], 1, "--output"), (model, ["4,0", *first], 1, "ELEMENT: got (4, 0)"),
        (model, ["1", *first], 1, "ELEMENT: got (1,)"), (model, [*first, "--", "-1,0"], 1, "ELEMENT: got (-1, 0)"),
        (model, ["0", "--dispatch", "2"], 1, "--dispatch"), (model, ["a"], 2, "'ELEMENT'"), (model, ["0,"], 2, "'ELEMENT'"),
        (model, [], 1, "ELEMENT"), (shader, ["0", "--push", "3,5", "--output", "Source"], 1, "--output"),
        (shader, ["999", "--push", "3,5"], 1, "ELEMENT: got (999,)"), ("none.json", ["0"], 1, "none.json"), ("m.txt", ["0"], 1, "m.txt"),
        ("none.comp", ["0"], 1, "ELEMENT"), ("read.comp", ["0"], 1, "ELEMENT"), ("read.comp", ["0", "--output", "X"], 1, "ELEMENT"),
    ):  # fmt: skip
        got, _, error = command("trace", file, *arguments)
        assert got == status
        message(error.removesuffix("\n"), *named.split())


def test_later_dispatches_have_what_the_others_made(command):
    status, out, _ = command("trace", EXAMPLES / "shader.json", "1", "--dispatch", "2")
    assert status == 0
    assert "source[4] = 51 (input)" in out  # which the shader made
    assert out.endswith("The kernel did as the plan says\n")
    _, out, _ = command("trace", EXAMPLES / "shader.json", "4")
    assert "scale.comp:13: target[4] = 51, by invocation (4, 0, 0)" in out


def test_an_earlier_dispatch_makes_a_deferred_input(command):
    document = rapidjson.loads((EXAMPLES / "channel_shuffle.json").read_text(), parse_mode=1 | 2)
    last = {"x": {"name": "Later", "shape": [2, 6, 1, 1]}, "y": "Images"}
    document["commands"].append({"type": "dispatch", "dispatchable": "shuffle", "bindings": last})
    Path("m.json").write_text(rapidjson.dumps(document))
    shutil.copy(EXAMPLES / "channel_shuffle.onnx", ".")
    status, out, _ = command("trace", "m.json", "1,1,0,0", "--dispatch", "3")
    assert (status, "Source: x, byte 32" in out) == (0, True)


def test_blocks_that_are_bound_by_the_names_of_instances(command):
    text = (EXAMPLES / "scale.comp").read_text().replace("target[]; };", "target[]; } to;")
    Path("scale.comp").write_text(re.sub(r"\btarget(?=\[i|\.)", "to.target", text))
    model = (EXAMPLES / "shader.json").read_text()
    Path("m.json").write_text(model.replace('"Target"', '"to"'))
    assert command("check", "m.json")[:2] == (0, "m.json: nothing was found in 2 dispatches\n")


def test_inputs_that_an_operator_owns(command):
    status, out, _ = command("trace", EXAMPLES / "transpose.json", "1,0")
    assert status == 0
    assert "Source: InputTensor, byte " in out


def test_onnx_models(command):
    np.save("x.npy", np.arange(6, dtype=np.float32).reshape(1, 6, 1, 1))
    status, out, _ = command("trace", EXAMPLES / "channel_shuffle.onnx", "0,1,0,0", "--input", "x.npy")  # fmt: skip
    assert status == 0
    assert "Source: x, byte 8" in out
    status, out, _ = command("trace", EXAMPLES / "channel_shuffle.json", "0,1,0,0")
    assert (status, out.splitlines()[1]) == (0, "Source: x, byte 16")


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*.[jo]*n*")), ids=lambda path: path.name)
def test_examples_are_silent(command, path):
    status, out, _ = command("check", path, "--dml_feature_level", "6.4")
    assert (status, len(out.splitlines())) == (0, 1)
    assert f"{path.name}: nothing was found in " in out


def test_faults_of_a_model_are_named_with_the_dispatch(command, edited):
    edited("region.glsl", "item.src = head.HEAD_SRC;", "item.src = head.HEAD_SRC + 999u;")
    status, out, _ = command("check", EXAMPLES / "channel_shuffle.json")
    first, source, second, _ = out.splitlines()
    assert status == 1
    assert first.startswith("dispatch 1, 'shuffle', copy_8: ")
    assert "copy.comp:34: out of bounds: index " in first
    assert "= source[item.src];" in source
    assert second.startswith("dispatch 2, 'shuffle', copy_elements_4: ")


def test_a_loop_that_does_not_end_stops_a_model(command, tmp_path):
    """A later dispatch would not have its inputs; no device is asked to run such a shader."""
    text = (EXAMPLES / "scale.comp").read_text()
    shutil.copy(EXAMPLES / "shader.json", tmp_path)
    endless = text.replace("void main() {", "void main() { while (true);", 1)
    (tmp_path / "scale.comp").write_text(endless)
    loop = "loop: did not end: no invocation left it in 16,384 iterations; invocation (0, 0, 0)"
    status, out, _ = command("check", "shader.json")
    assert status == 1
    first = rf"dispatch 1, 'scale', scale.comp: scale\.comp:\d+: {re.escape(loop)}.*\n.*\n"
    assert re.fullmatch(first, out)
    status, out, error = command("trace", "shader.json", "1", "--dispatch", "2")
    assert (status, out) == (1, "")
    assert loop in error
    nobody: Any = None
    with pytest.raises(ModelError, match="loop: did not end"):
        compare(Case.of(tmp_path / "scale.comp", push=[1], max_iterations=9), nobody)
