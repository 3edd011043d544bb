"""``vkops debug trace``, and ``check`` of models: the interpreter against plans and by hand."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
import spirv
from hypothesis import given, settings
from hypothesis import strategies as st
from indexed_plans import indexed_case
from interpreted import bytes_of, plan_run
from kernel_plans import TUNINGS, stream_plans
from strategies import input_bytes, plans

from vkops import shaders
from vkops.cli import main
from vkops.debug.model_trace import Element, trace_plans, traced
from vkops.debug.shader_check import Case
from vkops.plan import execute

ROOT = Path(__file__).parents[2]

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


def way(body, element, output="Y", **options):
    """The lines of an element's way, each with its number, what was made, and what of."""
    given = {"X": np.arange(100, 164, dtype=np.uint32), "Y": 256, "Z": np.zeros(64, np.uint32)}
    case = Case.of(HEAD + body, given, push=[7], name="x", **options)
    found = traced(case, 1, output, (element,)).trace
    first = HEAD.count("\n") + 1
    return [
        (line.place.line - first, f"{line.name} = {line.value}", [" = ".join(s[:2]) for s in line.sources])
        for line in found.lines
    ]  # fmt: skip


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
    found = way(body, 5)
    assert found[0] == (7, "y[5] = 209", ["i = 5", "sum = 209"])
    assert found[1][:2] == (6, "sum = 209")
    assert (3, "part[4] = 104", ["i = 4", "x[4] = 104"]) in found
    assert (6, "sum = 1", ["sum = 0"]) in found
    assert all("part[4]" not in name or "104" in name for _, name, _ in found)


def test_ways_from_atomic_operations_and_other_workgroups():
    body = """
    void main() {
        uint old = atomicAdd(z[gl_WorkGroupID.x], x[i]);
        y[i] = old;
    }"""
    found = way(body, 2)
    assert found[0] == (3, "y[2] = 201", ["i = 2", "old = 201"])
    assert {*found[1][2]} == {"z[0] = 201", "x[2] = 102", "gl_WorkGroupID.x = 0", "i = 2"}
    changes = [made for _, made, _ in found if made.startswith("z[0]")]
    assert changes == ["z[0] = 201", "z[0] = 100"]
    (last, *_) = way(body.replace("y[i] = old", "if (i == 0) y[0] = z[1]"), 0, groups=2)
    assert last == (3, "y[0] = 8416", ["z[1] = 8416"])  # by the other workgroup


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
    found = way(body, 0)
    assert found[0][:2] == (7, f"y[0] = {64 * (sum(range(100, 164)) + 64)}")


def test_values_that_meet_in_phis():
    """Compilers with optimizations make these instead of local variables."""
    text = HEAD + "void main() { uint s = n; for (uint k = 0; k < 3; ++k) s += x[k]; y[i] = s; }"
    module = shaders.load(text, name="x", debug=True).spirv
    case = Case.of(
        spirv.tool("spirv-opt", "-O", spirv=module), [np.arange(64, dtype=np.uint32), 256], push=[7]
    )
    found = traced(case, 1, "Y", (5,)).trace
    reads = {source[:2] for line in found.lines for source in line.sources}
    assert {("x[1]", "1"), ("x[2]", "2"), ("Push.n", "7")} <= reads
    assert found.value == "10"


# -- kernels against plans -------------------------------------------------------------------------


def check(plan, tuning, inputs, seed):
    """Trace a random byte of a plan's outputs that it writes, and compare it with the plan."""
    run, outputs = plan_run(plan, tuning, inputs)
    before = [bytes_of(run, number).copy() for number in outputs]
    wanted = execute(plan, inputs, before)
    random = np.random.default_rng(seed)
    output = int(random.integers(len(outputs)))
    region = plan.outputs[output].regions[random.integers(len(plan.outputs[output].regions))]
    if region.kind == "scatter":  # where it goes depends on indices
        return None
    index = random.integers(region.sizes)
    size = plan.element_size
    at = (region.target.offset + int(np.dot(index, region.target.strides))) * size
    found = trace_plans(run, Element(outputs[output], at, size))
    assert not found.differs, found.verdict
    assert found.found == wanted[output][at : at + size].tobytes()
    assert found.trace.lines[0].name.startswith("target")
    inputs = [s for line in found.trace.lines for s in line.sources if s[2] == "input"]
    assert any(name.startswith("table") for name, *_ in inputs)
    assert dict(found.facts)["Kernel"] in shaders.VARIANTS
    return found


@pytest.mark.parametrize("tuning", TUNINGS.values(), ids=TUNINGS)
@settings(max_examples=10)
@given(plan=st.one_of(plans(), stream_plans()), seed=st.integers(0, 99))
def test_random_elements_of_random_plans(tuning, plan, seed):
    check(plan, tuning, input_bytes(plan, 0), seed)


def test_random_elements_of_plans_with_indices():
    found = []
    for seed in range(12):
        case = indexed_case(seed)
        inputs = [np.frombuffer(array.tobytes(), np.uint8) for array in case.inputs]
        found.append(check(case.plan, TUNINGS["cpu"], inputs, seed))
    assert any(each and "moved by the indices" in dict(each.facts)["Region"] for each in found)


# -- models ----------------------------------------------------------------------------------------


@pytest.fixture
def command(tmp_path, monkeypatch, capsys):
    """Run ``vkops debug`` with a model or a file: status, standard output, standard error."""

    def run(name, content, *arguments):
        path = tmp_path / "m.json"
        if isinstance(content, dict):
            path.write_text(json.dumps(content))
        status = main(
            ["debug", name, str(path if isinstance(content, dict) else content), *arguments]
        )
        seen = capsys.readouterr()
        assert seen.err.count("\n") == (seen.err != "")
        return status, seen.out, seen.err.removesuffix("\n")

    monkeypatch.chdir(tmp_path)
    return run


def values(kind, count, start=0, delta=1):
    values = {"valueStart": start, "valueDelta": delta, "valueCount": count}
    return {"initialValuesDataType": kind, "initialValues": values}


def slice1(kind, sizes, taken, strides, offsets=None, **target):
    return {
        "type": "SLICE1",
        "desc": {
            "InputTensor": {"DataType": kind, "Sizes": sizes},
            "OutputTensor": {"DataType": kind, "Sizes": taken, **target},
            "InputWindowOffsets": offsets or [0] * len(sizes),
            "InputWindowSizes": [
                n if abs(s) == 1 else n * abs(s) for n, s in zip(taken, strides, strict=True)
            ],
            "InputWindowStrides": strides,
        },
    }


def model(operator, kind, count):
    """A model with one dispatch from X to Y."""
    bindings = {"InputTensor": "X", "OutputTensor": "Y"}
    return {
        "resources": {"X": values(kind, count), "Y": values(kind, count, delta=0)},
        "dispatchables": {"it": operator},
        "commands": [{"type": "dispatch", "dispatchable": "it", "bindings": bindings}],
    }


REVERSE = slice1("INT64", [70], [33], [-2], [2], Strides=[2])
TRANSPOSE = {
    "type": "ELEMENT_WISE_IDENTITY",
    "desc": {
        "InputTensor": {"DataType": "UINT32", "Sizes": [64, 64], "Strides": [1, 64]},
        "OutputTensor": {"DataType": "UINT32", "Sizes": [64, 64]},
    },
}


def test_the_way_of_an_element(command):
    status, out, _ = command("trace", model(REVERSE, "INT64", 70), "30", "--rows", "2")
    region, source, kernel, store, text, of, *_, more, end = out.splitlines()
    assert status == 0
    assert (
        region
        == "Region: 1 of 1: sizes (33,), to 0, strides (2,), from input 0 at 67, strides (-2,)"
    )
    assert (source, kernel) == ("Source: InputTensor, byte 56", "Kernel: copy_8")
    assert store.endswith("copy.comp:33: target[60] = (7, 0), by invocation (30, 0, 0)")
    assert text == "    target[item.dst] = constant ? pattern : element;"
    assert "element = (7, 0)" in of
    assert more.endswith(" more (--rows shows them)")
    assert end == "The kernel did as the plan says"


# What is wrong in a kernel, in which model, and an element that shows it.
BUGS = {
    "a missing store": ("copy.comp", "target[item.dst] = constant ? pattern : element;", "", (REVERSE, "INT64", 70), "30"),
    "a wrong value": ("copy.comp", "= source[item.src];", "= source[item.src] + 1u;", (REVERSE, "INT64", 70), "30"),
    "a wrong source": ("region.glsl", "item.src = head.HEAD_SRC;", "item.src = head.HEAD_SRC + 1u;", (REVERSE, "INT64", 70), "30"),
    "a wrong stride": ("region.glsl", "value * digit.DIGIT_DST;", "value * (digit.DIGIT_DST + 1u);", (REVERSE, "INT64", 70), "31"),
    "an item left out": ("region.glsl", "if (rest >= head.HEADER_ITEMS)", "if (rest + 1u >= head.HEADER_ITEMS)", (REVERSE, "INT64", 70), "32"),
    "tiles": ("copy_tile.comp", "uint inner = column - groups", "uint inner = (column ^ 1u) - groups", (TRANSPOSE, "UINT32", 4096), "3,6"),
    "runs": ("copy_run.comp", "uint(start) & 15u", "uint(start + 1) & 15u",
             (slice1("UINT32", [4, 5, 9], [3, 4, 7], [1, 1, 1], [1, 1, 1]), "UINT32", 180), "2,3,5"),
    "bytes": ("copy_subword.comp", "src + (base + t) * stride;", "src + (base + t) * stride + 1u;",
              (slice1("UINT8", [64], [21], [3]), "UINT8", 64), "10"),
}  # fmt: skip


@pytest.mark.parametrize("bug", BUGS)
def test_planted_bugs(command, tmp_path, monkeypatch, bug):
    file, right, wrong, arguments, element = BUGS[bug]
    folder = tmp_path / "shaders"
    shutil.copytree(shaders.source_dir(), folder)
    text = (folder / file).read_text()
    assert text.count(right) == 1
    (folder / file).write_text(text.replace(right, wrong))
    monkeypatch.setenv("VKOPS_SHADER_DIR", str(folder))
    status, _, err = command("trace", model(*arguments), element)
    assert status == 1
    assert err.startswith("The kernel differs from the plan: got ")


def split(kind, sizes, parts):
    outputs = [{"DataType": kind, "Sizes": [n, *sizes[1:]]} for n in parts]
    tensor = {"DataType": kind, "Sizes": sizes}
    return {"type": "SPLIT", "desc": {"InputTensor": tensor, "OutputTensors": outputs, "Axis": 0}}


def dispatch(name, **bindings):
    return {"type": "dispatch", "dispatchable": name, "bindings": bindings}


SPLIT = {
    "resources": {"X": values("UINT16", 10, 1), "A": values("UINT16", 4), "B": values("UINT16", 6)},
    "dispatchables": {"cut": split("UINT16", [10], [4, 6])},
    "commands": [dispatch("cut", InputTensor="X", OutputTensors=["A", "B"])],
}


def test_what_cannot_be_traced(command, message):
    shader = ROOT / "examples/transpose_wrong.comp"
    for content, arguments, status, named in (
        (SPLIT, ["0"], 1, "--output"),
        (SPLIT, ["0", "--output", "Y"], 1, "--output"),
        (SPLIT, ["4", "--output", "OutputTensors[0]"], 1, "element (4,)"),
        (SPLIT, ["1,2", "--output", "OutputTensors[0]"], 1, "element (1, 2)"),
        (SPLIT, ["--output", "OutputTensors[0]", "--", "-1"], 1, "element (-1,)"),
        (SPLIT, ["0", "--dispatch", "2"], 1, "--dispatch"),
        ({**SPLIT, "commands": []}, ["0"], 1, "--dispatch"),
        (SPLIT, ["a"], 2, "'element'"),
        (SPLIT, ["0,"], 2, "'element'"),
        (SPLIT, [], 1, "ELEMENT"),
        (shader, ["0", "--push", "3,5", "--output", "Source"], 1, "--output"),
        (shader, ["999", "--push", "3,5"], 1, "element (999,)"),
        ("none.json", ["0"], 1, "none.json"),
        ("m.txt", ["0"], 1, "m.txt"),
    ):
        got, _, error = command("trace", content, *arguments)
        assert got == status
        message(error, *named.split())


def test_later_dispatches_have_what_the_others_made(command):
    """Operators, one with an input that it owns, and a shader."""
    owned = split("UINT16", [10], [4, 6])
    owned["desc"]["InputTensor"]["Flags"] = "OWNED_BY_DML"
    identity = {"DataType": "UINT16", "Sizes": [4]}
    Path("twice.comp").write_text(
        "#version 450\nlayout(local_size_x = 2) in;\n"
        "layout(std430, binding = 0) buffer Data { uint data[]; };\n"
        "void main() { data[gl_GlobalInvocationID.x] *= 2; }"
    )
    content = {
        "resources": {**SPLIT["resources"], "Z": values("UINT16", 10, 101)},
        "dispatchables": {
            **SPLIT["dispatchables"],
            "kept": {**owned, "bindings": {"InputTensor": "X"}},
            "back": {"type": "ELEMENT_WISE_IDENTITY", "desc": {"InputTensor": identity, "OutputTensor": identity}},
            "twice": {"type": "glsl", "sourcePath": "twice.comp"},
        },
        "commands": [
            dispatch("cut", InputTensor="Z", OutputTensors=["A", "B"]),
            dispatch("back", InputTensor="A", OutputTensor="X"),
            {**dispatch("twice", Data="X"), "threadGroupCount": [1, 1, 1]},
            dispatch("cut", InputTensor="X", OutputTensors=["A", "B"]),
            dispatch("kept", OutputTensors=["A", "B"]),
            {"type": "print", "resource": "A"},
        ],
    }  # fmt: skip
    first = ["--output", "OutputTensors[0]", "--dispatch"]
    status, out, _ = command("trace", content, "3", *first, "4")
    assert status == 0
    assert "element = 13631694" in out  # 206 and 208
    status, out, _ = command("trace", content, "1", "--dispatch", "3")
    assert (status, Path(out.splitlines()[0]).name) == (0, "twice.comp:4: data[1] = 13631694, by invocation (1, 0, 0)")  # fmt: skip
    status, out, _ = command("trace", content, "3", *first, "5")
    assert "Source: InputTensor, byte 6" in out
    assert command("check", content) == (0, "m.json: nothing was found in 8 dispatches\n", "")


def test_onnx_models(command):
    path = ROOT / "examples/channel_shuffle.onnx"
    np.save("x.npy", np.arange(6, dtype=np.float32).reshape(1, 6, 1, 1))
    status, out, _ = command("trace", path, "0,1,0,0", "--input", "x.npy")
    assert status == 0
    assert "Source: x, byte 12" in out or "Source: x, byte 8" in out
    assert command("check", path)[:2] == (
        0,
        "channel_shuffle.onnx: nothing was found in 1 dispatches\n",
    )
    status, out, _ = command("check", ROOT / "examples/channel_shuffle.json")
    assert (status, out) == (0, "channel_shuffle.json: nothing was found in 2 dispatches\n")


EXAMPLES = sorted(path.name for path in (ROOT / "examples").glob("*.json"))


@pytest.mark.parametrize("name", EXAMPLES)
def test_examples_are_silent(command, name):
    status, out, _ = command("check", ROOT / "examples" / name, "--dml_feature_level", "6.4")
    assert (status, out.splitlines()[1:]) == (0, [])


def test_faults_of_a_model_are_named_with_the_dispatch(command, tmp_path, monkeypatch):
    folder = tmp_path / "shaders"
    shutil.copytree(shaders.source_dir(), folder)
    text = (folder / "copy.comp").read_text()
    (folder / "copy.comp").write_text(
        text.replace("= source[item.src];", "= source[item.src + 999u];")
    )
    monkeypatch.setenv("VKOPS_SHADER_DIR", str(folder))
    content = model(REVERSE, "INT64", 70)
    content["commands"] *= 2
    status, out, _ = command("check", content)
    first, second = out.splitlines()
    assert status == 1
    assert first.startswith("dispatch 1, 'it', copy_8: ")
    assert "copy.comp:32: out of bounds: index " in first
    assert second.startswith("dispatch 2, 'it', copy_8: ")
