"""Findings in each language of shaders: their names, their lines, and what is evaluated."""

import re
import subprocess
from functools import partial

import pytest
import spirv
from processes import SLANG

from vkops.debug import check
from vkops.shaders import compiler, load, read
from vkops.shaders.listing import listing

# -- names and lines -------------------------------------------------------------------------------

OF_GLSL = """#version 450
layout(local_size_x = 4) in;
layout(std430, binding = 0) buffer Data { int data[]; };
layout(std430, binding = 1) buffer Result { int result[]; };
shared int part[4];
void main() {
    uint t = gl_LocalInvocationID.x;
    part[t] = data[t];
    barrier();
    int quotient = 100 / int(t);
    result[t + 1] = quotient;
    data[t] = part[3 - t];
}
"""
OF_HLSL = """RWStructuredBuffer<int> data : register(u0);
RWStructuredBuffer<int> result : register(u1);
groupshared int part[4];
[numthreads(4, 1, 1)]
void main(uint3 id : SV_GroupThreadID) {
    uint t = id.x;
    part[t] = data[t];
    GroupMemoryBarrierWithGroupSync();
    int quotient = 100 / int(t);
    result[t + 1] = quotient;
    data[t] = part[3 - t];
}
"""
FAULTS = """
division by zero: divides an integer by zero; invocation (0, 0, 0)
{} | int quotient = 100 / int(t);
out of bounds: index 4 of 'result' is out of bounds: it has 4 elements; invocation (3, 0, 0)
{} | result[t + 1] = quotient;
never written: reads 'part', which is undefined because an invocation in line {} reads 'data', which was never written: block data is given a size, but no values; invocation (0, 0, 0), 4 times
{} | data[t] = part[3 - t];
{} | part[t] = data[t];
"""


@pytest.fixture
def command(command, tmp_path, monkeypatch):
    """Run ``vkops debug`` in a folder."""
    monkeypatch.chdir(tmp_path)
    return partial(command, "debug")


@pytest.fixture(params=["glsl", "debug information", "hlsl", pytest.param("slang", marks=SLANG)])
def of_language(request, tmp_path):
    """A file and its text, in each language, and SPIR-V with DebugLine and DebugSource."""
    suffix = {"hlsl": "hlsl", "slang": "slang"}.get(request.param, "comp")
    text, file = OF_GLSL if suffix == "comp" else OF_HLSL, tmp_path / f"x.{suffix}"
    file.write_text(text)
    if request.param == "debug information":
        file = with_debug_info(tmp_path)
    return file, text


def with_debug_info(folder):
    """Compile x.comp with NonSemantic.Shader.DebugInfo.100."""
    options = ["-gVS", "--target-env", "vulkan1.1", "-o", "x.spv"]
    argv = [compiler.find_compiler(), *options, "x.comp"]
    done = subprocess.run(argv, cwd=folder, capture_output=True, text=True, check=False)
    if "unrecognized" in done.stdout:
        pytest.skip("glslang is too old to write DebugLine")
    assert done.returncode == 0, done.stdout
    return folder / "x.spv"


def test_findings_have_the_names_and_the_lines_of_every_language(command, of_language):
    file, text = of_language
    first, second = (block.point for block in load(file).blocks)
    arguments = (file.name, "--bind", f"{first}=16", "--bind", f"{second}=16")
    _, out, _ = command("check", *arguments)
    numbers = {line.strip(): n for n, line in enumerate(text.splitlines(), 1)}
    shown = [re.sub(r"^.*?:(\d+): ", "", line) for line in out.splitlines()[:-2]]
    faults = FAULTS.replace("block data", f"block {first}").strip().splitlines()
    wanted = []
    for line in faults:
        code = line.removeprefix("{} | ")
        wanted.append(line.format(numbers.get(code, numbers["part[t] = data[t];"])))
    assert [re.sub(" +", " ", line).strip() for line in shown] == wanted


def test_other_tools_have_the_names_and_the_lines_of_every_language(command, of_language):
    file, text = of_language
    numbers = {n: line.strip() for n, line in enumerate(text.splitlines(), 1) if "] = " in line}
    listed = listing(read(file, debug=True))
    assert all(f":{n}: {line}\n" in listed.replace("  ", "") for n, line in numbers.items())
    commands = file.with_name("commands")
    commands.write_text("print data[1]\ninfo buffers\n")
    _, out, _ = command("step", file, "--commands", commands)
    assert "data[1] = 1\n" in out
    assert re.search(r"^(data|result|\w* = {data) = {0, 1, 2, 3}", out, re.MULTILINE), out
    _, second = (block.point for block in load(file).blocks)
    _, out, _ = command("trace", file, "1", "--output", second)
    *_, (number, _) = [each for each in numbers.items() if each[1].startswith("result")]
    assert f":{number}: result[1] = " in out
    assert f"\n    {numbers[number]}\n" in out


@pytest.mark.parametrize("suffix", ["comp", pytest.param("slang", marks=SLANG)])
def test_sources_that_do_not_fit_one_instruction(tmp_path, suffix):
    """OpSourceContinued and DebugSourceContinued have what comes after 262,000 bytes."""
    text, start = (OF_GLSL, "void") if suffix == "comp" else (OF_HLSL, "[numthreads")
    comments = "// a long comment about the shader\n" * 9_000
    file = tmp_path / f"x.{suffix}"
    file.write_text(text.replace(start, comments + start))
    sources = [each.source.partition("|")[2].strip() for each in check(file).findings]
    assert sources == ["int quotient = 100 / int(t);", "result[t + 1] = quotient;"]


OF_SLANG = """RWStructuredBuffer<float> result;
struct Pair { int first; float second; };
groupshared Pair pairs[4];
float at(float list[3], int k) { return list[k]; }  //! index 3 of 'list' is out of bounds
[shader("compute")]
[numthreads(4, 1, 1)]
void main(uint3 id : SV_GroupThreadID) {
    uint t = id.x;
    float unset[4];
    float3 list = float3(1, 2, 3);
    float copied[3] = { 1, 2, 3 };
    float2 both;
    if (t > 0)
        result[t] = both.y;  //! reads 'both', which was never written
    pairs[t].first = 1;
    GroupMemoryBarrierWithGroupSync();
    result[t] = pairs[3 - t].second;  //! reads 'pairs.second', which was never written
    result[t] = unset[t];  //! reads 'unset', which was never written
    result[t] = both.x;  //! reads 'both', which was never written
    result[t] = at(copied, int(t));
}
"""


@SLANG
def test_findings_have_the_names_of_variables_parameters_and_members_of_slang(command, tmp_path):
    """Slang does not name what is never written, and gives all members of Pair the number 0."""
    file = tmp_path / "x.slang"
    file.write_text(OF_SLANG)
    wanted = [
        (n, line.partition("//! ")[2])
        for n, line in enumerate(OF_SLANG.splitlines(), 1)
        if "//!" in line
    ]
    findings = check(file, {"result": 16}).findings
    assert [(f.place.line, f.message.partition(":")[0]) for f in findings] == wanted
    assert [f.invocations[0] for f in findings if f.place.line == 14] == [(1, 0, 0)]
    commands = tmp_path / "commands"
    commands.write_text("break 17\ncontinue\ninfo locals\nprint pairs[0]\n")
    _, out, _ = command("step", file, "--commands", commands)
    for text in ("t = 0", "list = {1.0, 2.0, 3.0}", "copied = {1.0, 2.0, 3.0}"):
        assert f"\n{text}\n" in out, out
    assert "unset = {<not written>, <not written>, <not written>, <not written>}\n" in out
    assert "{first = 1, second = <not written>}" in out


OF_ARGUMENTS = """#version 450
layout(local_size_x = 4) in;
layout(std430, binding = 0) buffer Result { float result[]; };
float at(float list[3], uint k) {
    return list[k];  //! index 3 of 'list' is out of bounds
}
void add(out float total, float part) {
    total += part;  //! reads 'total', which was never written
}
void main() {
    uint t = gl_LocalInvocationIndex;
    float copied[3] = float[3](1.0, 2.0, 3.0), sum = 0.0;
    add(sum, at(copied, t));
    result[t] = sum;
}
"""


def test_variables_for_arguments_have_the_names_of_parameters(command, tmp_path):
    """glslang calls them "param", as the debugger does not, where they are no variables."""
    (tmp_path / "x.comp").write_text(OF_ARGUMENTS)
    findings = check(tmp_path / "x.comp").findings
    marked = [(n, line.split("//! ")) for n, line in enumerate(OF_ARGUMENTS.splitlines(), 1)]
    wanted = [(n, parts[1]) for n, parts in marked if parts[1:]]
    assert [(f.place.line, f.message.partition(":")[0]) for f in findings] == wanted
    (tmp_path / "commands").write_text("break 14\ncontinue\ncontinue\ninfo locals\n")
    _, out, _ = command("step", "x.comp", "--commands", "commands")
    assert "copied = {1.0, 2.0, 3.0}\n" in out
    assert "list" not in out.partition("info locals")[2]


# -- both sides of a choice ------------------------------------------------------------------------

HLSL_HEAD = """RWStructuredBuffer<int> data : register(u0);
RWStructuredBuffer<int> result : register(u1);
groupshared int part[8];
[numthreads(8, 1, 1)]
void main(uint3 id : SV_GroupThreadID) {
    int t = id.x; part[t] = t; GroupMemoryBarrierWithGroupSync();
"""
GLSL_HEAD = """#version 450
layout(local_size_x = 8) in;
layout(std430, binding = 0) buffer Data { int data[]; };
layout(std430, binding = 1) buffer Result { int result[]; };
shared int part[8];
void main() { int t = int(gl_LocalInvocationIndex); part[t] = t; barrier();
"""
OF_HLSL_2018 = "; this side of {} is not chosen, but HLSL before 2021, which glslang compiles, evaluates both: use if"


def notes(body, head=HLSL_HEAD, language="hlsl"):
    """The notes of findings, each with how many invocations have it; of a result that is used, ""."""
    findings = check(head + body + "}", language=language, name="x").findings
    return {f.message.partition(";")[1] + f.message.partition(";")[2]: f.count for f in findings}


@pytest.mark.parametrize(
    ("expression", "unused", "used"),
    [
        ("t >= 2 ? data[t - 2] : 0", {"?:": 2}, 0),
        ("t < 2 ? 0 : part[t - 2]", {"?:": 2}, 0),
        ("t >= 2 ? data[t - 2] * 3 + 1 : 0", {"?:": 2}, 0),
        ("t >= 2 ? part[data[t - 2]] : 0", {"?:": 2}, 0),
        ("t >= 4 ? (t >= 6 ? data[t - 6] : 1) : 3", {"?:": 6}, 0),
        ("(t >= 2 ? int2(data[t - 2], 1) : int2(1, 2)).x", {"?:": 2}, 0),
        ("t > 0 ? 100 / t : 5", {"?:": 1}, 0),
        ("t > 0 ? 100 % t : 5", {"?:": 1}, 0),
        ("t >= 2 && data[t - 2] > 0", {"&&": 2}, 0),
        ("t < 2 || data[t - 2] > 0", {"||": 2}, 0),
        ("t > 1 ? data[t - 3] : 0", {"?:": 2}, 1),
        ("t < 2 ? data[t - 2] : 0", {}, 2),
        ("(t >= 2 ? data[t - 2] : 0) + data[t - 2]", {"?:": 2}, 2),  # it is read twice
        ("t >= 2 ? value : value * 2", {}, 2),
        ("data[t - 2] > 0 ? 1 : 0", {}, 2),
    ],
)  # fmt: skip
def test_a_result_that_is_not_chosen_but_computed(expression, unused, used):
    """The message says so only of those invocations that do not use it."""
    wanted = {OF_HLSL_2018.format(operator): count for operator, count in unused.items()}
    wanted |= {"": used} if used else {}
    value = "int value = data[t - 2]; " if "value" in expression else ""
    assert notes(f"{value}result[t] = {expression};") == wanted
    branch = re.fullmatch(r"(t [<>=]+ \d) \? (.*) : (\w+)", expression)
    condition, one, other = branch.groups() if branch else ("", "", "")
    if branch and not used and "?" not in one:  # the cure
        assert notes(f"if ({condition}) result[t] = {one}; else result[t] = {other};") == {}


def test_only_what_is_selected_by_an_instruction_is_computed_without_being_chosen():
    """?:, && and || of GLSL evaluate what they choose; SPIR-V without OpSource has no language."""
    for expression in ("t >= 2 ? data[t - 2] : 0", "int(t >= 2 && data[t - 2] > 0)"):
        assert notes(f"result[t] = {expression};", GLSL_HEAD, "glsl") == {}
    other = "; this operand of a selection is not chosen, but both are evaluated: use a branch"
    body = "result[t] = t >= 2 ? data[t - 2] : 0; }"
    shader = spirv.stripped(compiler.compile(HLSL_HEAD + body, language="hlsl"))
    (finding,) = check(shader, name="x").findings
    assert finding.message.endswith(other)


@SLANG
def test_slang_evaluates_what_it_chooses():
    for expression in ("t >= 2 ? data[t - 2] : 0", "int(t >= 2 && data[t - 2] > 0)"):
        assert notes(f"result[t] = {expression};", language="slang") == {}
