"""``vkops.debug.check``: faults are found with their lines, and correct shaders are silent."""

import contextlib
import os
import re
import shutil
import signal
import subprocess
import sys
from functools import partial

import numpy as np
import pytest
import spirv
from checked_shaders import CORRECT, FAULTY, loaded

from vkops.cli import main, shader_commands
from vkops.debug import check, stepper
from vkops.debug.results import differences, number_at
from vkops.debug.shader_check import Case
from vkops.errors import InvalidDescError
from vkops.interpreter.observer import Observer
from vkops.interpreter.recorder import Recorder
from vkops.interpreter.state import MAX_ITERATIONS
from vkops.shaders import compile, load, tools

CASES = {**FAULTY, **CORRECT}


@pytest.mark.parametrize("name", CASES)
def test_faults_are_found_in_their_lines_and_correct_shaders_are_silent(name, monkeypatch, capsys):
    case = CASES[name]
    monkeypatch.chdir(case.path.parent)
    status = main(["debug", "check", case.path.name, *case.options])
    out = capsys.readouterr().out
    found = re.findall(rf"^{case.path.name}:(\d+): ([^:]+): ", out, re.MULTILINE)
    assert {(int(line), kind) for line, kind in found} == case.findings, out
    assert status == bool(case.findings)
    assert bool(case.findings) == (name in FAULTY)


@pytest.mark.parametrize("name", FAULTY)
def test_an_invocation_that_a_finding_names_executes_its_line(name, monkeypatch):
    """The debugger, which ``--to-fault`` lets begin at the first one, stops there with the finding."""
    monkeypatch.chdir(FAULTY[name].path.parent)
    findings = [each for each in loaded(FAULTY[name]).check().findings if each.invocations]
    for finding in findings:
        one = loaded(FAULTY[name])
        recorder = Recorder(stepper.number(one, finding.invocations[0]))
        one.run(finding.subgroup_size, finding.schedule, observers=[recorder])
        faults = [(stop.place, each) for stop in recorder.stops for each in stop.faults]
        places = [place for place, each in faults if each.startswith(f"{finding.kind}: ")]
        assert finding.place in places, faults


HEAD = """#version 450
#extension GL_KHR_shader_subgroup_arithmetic : require
#extension GL_KHR_shader_subgroup_ballot : require
layout(local_size_x = 64) in;
layout(std430, binding = 0) buffer Data { uint data[]; };
layout(std430, binding = 1) buffer Out { uint result[]; };
shared uint part[64];
uint i = gl_GlobalInvocationID.x, own = gl_LocalInvocationIndex;
"""
UNDEFINED_IN_TWO_WAYS = """void main() {
  uint shifted = 1u << (own + 32u); //! shift
  uint x; uint unwritten = x + 1u; //! never written
  uint value = own < 32 ? shifted : unwritten;
  CARRIED
  result[i] = value; //! use
}"""


@pytest.mark.parametrize(
    ("carried", "is_passed"),
    [
        ("", False),
        ("uint copy[2] = uint[2](value, 0); value = copy[own & 0u];", False),
        ("value = value * 2u + 1u;", False),
        ("value = uvec2(value, 1).yx.y;", False),
        ("for (uint k = 0; k < 3; ++k) value += k;", False),
        ("part[own] = value; barrier(); value = part[own];", True),
        ("part[own] = value; barrier(); value = part[63u - own];", True),
        ("part[own] = value; part[own] += 1u; value = part[own];", True),
        ("part[own] = value; barrier(); value = atomicExchange(part[own], 1u);", True),
        ("value = subgroupBroadcast(value, 0u);", True),
    ],
)
def test_each_undefined_number_has_the_reason_of_its_own(carried, is_passed):
    """However it is copied, computed with or passed to another invocation."""
    text = HEAD + UNDEFINED_IN_TWO_WAYS.replace("CARRIED", carried)
    lines = {part: n for n, line in enumerate(text.splitlines(), 1)
             for _, mark, part in [line.partition("//! ")] if mark}  # fmt: skip
    used = lines.pop("use") - 1
    wanted = {(kind, *((used, at) if is_passed else (at, None)), 32) for kind, at in lines.items()}
    findings = check(text, {"Out": 256}, subgroup_size=32).findings
    assert {(f.kind, f.place.line, f.other and f.other.line, f.count) for f in findings} == wanted
    assert {f.invocations[0][0] < 32 for f in findings} == {True, False}


# -- races with accesses before the last one -------------------------------------------------------

RACE = """#version 450
layout(local_size_x = 32, local_size_y = 2) in;
layout(std430, binding = 0) buffer Data { uint data[]; };
layout(std430, binding = 1) buffer Out { uint result[]; };
shared uint part[1];
uint own = gl_LocalInvocationIndex;
void main() {
    if (own == 0) part[0] = data[0];
    barrier();
    uint s = 0;
    if (own == FIRST) s = PLACE;
    if (own == 5) { s = PLACE; PLACE = 1; }
    result[own] = s;
}"""


@pytest.mark.parametrize("place", ["part[0]", "data[0]"])
@pytest.mark.parametrize("first", [0, 1, 31, 32, 63])
def test_the_last_reader_writes_what_another_one_has_read(first, place):
    """Also the first and the last invocation, and one of another subgroup."""
    text = RACE.replace("FIRST", str(first)).replace("PLACE", place)
    (found,) = check(text, {"Data": np.zeros(1, np.uint32), "Out": 256}).findings
    assert (found.kind, found.place.line) == ("data race", 12)
    other = (first % 32, first // 32, 0)
    assert found.invocations == ((5, 0, 0), other)


# -- loops that do not end -------------------------------------------------------------------------

WAIT = """layout(std430, binding = 2) buffer Counter { uint counter; };
void main() { result[i] = data[i]; memoryBarrierBuffer(); barrier();
  if (own == 0) { atomicAdd(counter, 1u);
    while (atomicAdd(counter, 0u) < gl_NumWorkGroups.x LIMIT); }
  barrier(); data[i] = result[i ^ 64u]; }"""


def loop_findings(body, limit=100, groups=1, **options):
    arrays = {"Counter": np.zeros(1, np.uint32)} if "Counter" in body else {}
    given_limits = {"groups": groups, "max_iterations": limit, **options}
    report = check(HEAD + body, arrays, **given_limits)
    return [(finding.kind, finding.message) for finding in report.findings]


ENDLESS = "did not end: no invocation left it in 100 iterations"


@pytest.mark.parametrize(
    "body",
    [
        "void main() { uint n = data[i]; while (n != 1000u) n += 2000u; result[0] = n; }",
        "void main() { do { result[i] = i; } while (true); result[0] = part[0]; barrier(); }",
        "uint f(uint n) { while (n < 99u) n = n * 2u; return n; } void main() { result[0] = f(0u) + f(own & 1u); }",
        "void main() { for (uint k = 0u; k < 5u; k += own) result[0] = subgroupAdd(k); }",
    ],
    ids=["counter", "do", "function", "subgroups"],
)  # fmt: skip
def test_a_loop_that_does_not_end_is_the_last_finding(body):
    """Data races after it, results of other orders and other sizes of subgroups only follow from it."""
    findings = loop_findings(body, groups=2)
    assert [each for each in findings if each[0] == "loop"] == [("loop", ENDLESS)]
    assert {kind for kind, _ in findings} <= {"loop", "data race"}
    assert ("data race" in dict(findings)) == ("subgroupAdd" in body)  # all store result[0] in it


def test_a_barrier_of_all_workgroups_needs_those_that_have_not_begun():
    """Not all of 2,048 workgroups begin at once; one that waits for another number never ends."""
    waits = WAIT.replace("LIMIT", "")
    needs = "needs forward progress of a workgroup that need not have begun: waits for 'counter' to change, while"
    assert loop_findings(waits, groups=2) == [
        ("forward progress", f"{needs} 1 of 2 workgroups ran")
    ]
    ran = f"{needs} 1,024 of 2,048 workgroups ran"
    assert loop_findings(waits, groups=2048) == [("forward progress", ran)]
    never = ("loop", "did not end: waits for 'counter', which nothing changes")
    assert loop_findings(WAIT.replace("LIMIT", "+ 1u"), groups=2) == [never]


def test_iterations_that_an_invocation_leaves_do_not_count():
    loop = "for (uint k = 0u; k < own * 3u; ++k) part[own] = k;"
    body = f"void main() {{ {loop} result[i] = data[i]; }}"
    assert loop_findings(body, limit=3) == []
    assert loop_findings(body, limit=2) == [("loop", ENDLESS.replace("100", "2"))]
    whole = "void main() { uint k = 0u; while (k < 100u) ++k; result[i] = k; }"
    assert loop_findings(whole, limit=100) == []
    assert loop_findings(whole, limit=99) == [("loop", ENDLESS.replace("100", "99"))]


NESTED = """#version 450
layout(local_size_x = 8) in;
layout(std430, binding = 0) buffer A { uint a[]; };
layout(std430, binding = 1) buffer B { uint b[]; };
void main() {
    uint sum = 0;
    for (uint k = 0; k < 4; k++) {
        uint j = 2 * k;
        while (atomicOr(a[0], 0u) + j < 3 + 2 * k) j++;
        sum += j;
    }
    b[gl_LocalInvocationIndex] = sum;
}"""


def test_a_loop_that_begins_anew_is_no_repetition_of_an_earlier_iteration():
    """Its counter comes by 3 twice, once with each of two limits, which are not among its phis."""
    spirv = tools.optimized(compile(NESTED))
    report = check(spirv, [np.zeros(1, np.uint32), 32])
    assert report.ok, str(report)
    assert report.buffers["B"].tolist() == [24] * 8


CALLS = """#version 450
layout(local_size_x = 8) in;
layout(std430, binding = 0) buffer A { uint a[]; };
layout(std430, binding = 1) buffer B { uint b[]; };
uint one() { uint n = 0; while (atomicOr(a[0], 0u) + n < 3) n++; return n; }
uint four() { uvec4 n = uvec4(0); while (atomicOr(a[0], 0u) + n.x < 3) n++; return n.x; }
void main() { b[gl_LocalInvocationIndex] = one() + four(); }"""


class Watching(Observer):
    """Notes whether loops are watched when a call ends."""

    def begin(self):
        self.noted = []

    def leave(self, function, active):
        self.noted.append(self.machine.waits.is_watching)


def test_iterations_of_a_call_are_forgotten_when_it_ends():
    """Another call may be an object at the same address, with other variables."""
    case = Case.of(CALLS, {"A": np.zeros(1, np.uint32), "B": 32})
    case.run(observers=[watching := Watching()])
    assert not [*case.findings]
    assert watching.noted == [False] * 3


# -- switch ----------------------------------------------------------------------------------------

SWITCH = """OpCapability Shader
OpCapability CAPABILITY
OpMemoryModel Logical GLSL450
OpEntryPoint GLCompute %1 "main" %2
OpExecutionMode %1 LocalSize 4 1 1
%3 = OpString "own.slang"
OpName %4 ""
OpName %5 "Data"
OpMemberName %5 0 "data"
OpDecorate %2 BuiltIn LocalInvocationIndex
OpDecorate %4 DescriptorSet 0
OpDecorate %4 Binding 0
OpDecorate %5 Block
OpMemberDecorate %5 0 Offset 0
OpDecorate %6 ArrayStride 4
%7 = OpTypeVoid
%8 = OpTypeFunction %7
%9 = OpTypeInt 32 0
%10 = OpTypeInt WIDTH 0
%11 = OpTypePointer Input %9
%6 = OpTypeRuntimeArray %9
%5 = OpTypeStruct %6
%12 = OpTypePointer StorageBuffer %5
%13 = OpTypePointer StorageBuffer %9
%2 = OpVariable %11 Input
%4 = OpVariable %12 StorageBuffer
%14 = OpConstant %9 0
%15 = OpConstant %9 11
%16 = OpConstant %9 22
%17 = OpConstant %9 33
%1 = OpFunction %7 None %8
%18 = OpLabel
%19 = OpLoad %9 %2
%20 = OpAccessChain %13 %4 %14 %19
%21 = OpLoad %9 %20
%22 = OpSConvert %10 %21
LINES
OpSelectionMerge %23 None
OpSwitch %22 %23 0 %24 LARGEST %25
%24 = OpLabel
LINES
OpBranch %23
%25 = OpLabel
OpBranch %23
%23 = OpLabel
%26 = OpPhi %9 %17 %18 %15 %24 %16 %25
LINES
OpStore %20 %26
OpReturn
OpFunctionEnd
"""
LINES = "\n".join(f"OpLine %3 {line} {column}" for line in range(1, 28) for column in (0, 10))


@pytest.mark.parametrize(
    ("bits", "capability"), [(8, "Int8"), (16, "Int16"), (32, "Shader"), (64, "Int64")]
)
def test_a_switch_of_any_width_whose_lines_are_numbers_of_ids(tmp_path, capsys, bits, capability):
    """The words of OpLine are no ids: one may equal that of the selector, and of its type."""
    largest = 2**bits - 1  # of 64 bits, it is two words
    text = SWITCH.replace("LINES", LINES).replace("CAPABILITY", capability)
    text = text.replace("WIDTH", str(bits)).replace("LARGEST", str(largest))
    if bits == 32:
        text = text.replace("%10 = OpTypeInt 32 0\n", "")
        text = text.replace("OpSConvert %10 %21", "OpIAdd %9 %21 %14")
    (tmp_path / "own.spv").write_bytes(spirv.assembled(text))
    data = np.uint32([0, largest & 0xFFFFFFFF, 1, 2**31])
    report = check(tmp_path / "own.spv", {"Data": data})
    assert report.ok
    assert report.buffers["Data"].tolist() == [11, 22, 33, 33 if bits >= 32 else 11]
    np.save(tmp_path / "data.npy", data)
    arguments = [str(tmp_path / "own.spv"), "--bind", f"Data={tmp_path / 'data.npy'}"]
    for command, shown, *rest in (
        ("check", "nothing was found"),
        ("trace", "data[1] = 22", "1"),
        ("step", "at own.slang:27", "--commands", os.devnull),
    ):
        assert main(["debug", command, *arguments, *rest]) == 0
        assert shown in capsys.readouterr().out


# -- the command -----------------------------------------------------------------------------------


@pytest.fixture
def command(command, tmp_path, monkeypatch):
    """Run ``vkops debug check`` in a folder."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "reverse.comp").write_text(REVERSE)
    np.save("x.npy", np.arange(64, dtype=np.uint32))
    return partial(command, "debug", "check")


REVERSE = """#version 450
layout(local_size_x_id = 1) in;
layout(constant_id = 0) const uint shift = 0;
layout(std430, binding = 0) buffer Data { uint data[]; };
layout(push_constant) uniform Push { uint n; };
shared uint part[64];
void main() { uint own = gl_LocalInvocationIndex;
  part[own] = data[own];
#ifdef BARRIER
  barrier();
#endif
  data[own] = part[n - own] << shift; }
"""
OTHERS = ["reverse.comp", "--push", "63", "--constant", "1=64"]
GIVEN = [*OTHERS, "--bind", "Data=x.npy"]


def test_plain_barriers_can_be_left_out(command, tmp_path):
    body = "data[own] = own; barrier(); data[own + 32u] = data[own ^ 1u]; }"
    text = REVERSE.partition("  part[own]")[0] + body
    (tmp_path / "plain.comp").write_text(text)
    arguments = ("plain.comp", "--bind", "Data=x.npy", "--push", "63", "--constant", "1=32")
    result = (
        "plain.comp:8: plain barrier: 'data[1]' in a storage buffer: the first invocation reads it, the second "
        "wrote it in the same line, and the barrier between them does not order buffers (memoryBarrierBuffer does); "
        f"invocations (0, 0, 0) and (1, 0, 0), 32 times\n    8 | {body}\n"
        "Step to the first: vkops debug step plain.comp --bind Data=x.npy --push 63 --constant 1=32 --invocation 0,0,0 --to-fault\n"
    )
    assert command(*arguments)[:2] == (1, result)
    assert command(*arguments, "--no-plain-barriers")[0] == 0
    (tmp_path / "plain.comp").write_text(text.replace("barrier();", ""))
    assert "--no-plain-barriers --invocation 0,0,0" in command(*arguments, "--no-plain-barriers")[1]


def test_the_exit_status_says_whether_there_are_findings(command):
    assert command(*GIVEN, "-D", "BARRIER") == (0, "reverse.comp: nothing was found\n", "")
    status, out, err = command(*GIVEN)
    assert (status, err) == (1, "")
    assert out.startswith("reverse.comp:12: data race: 'part[63]' in shared memory")
    assert "(0, 0, 0) and (63, 0, 0)" in out
    assert "in line 8" in out
    status, out, _ = command(*GIVEN, "-D", "BARRIER", "--constant", "shift=32")
    assert status == 1
    assert out.startswith("reverse.comp:12: shift: shifts a number of 32 bits")


def test_the_sentences_of_findings():
    """They name elements and members, also those of blocks without a name of their own."""
    for body, wanted in (
        ("result[i] += 1;", "reads 'result', which was never written"),
        ("struct S { uint a, b; } s; s.a = i; result[i] = s.b;", "reads 's.b', which was never written"),
        ("struct S { uint a; uvec2 b; } s; if (i > 0) s.b = uvec2(i); result[i] = s.b.y;",
         "reads 's.b.y', which was never written; invocation (0, 0, 0)"),
        ("atomicAdd(part[0], 1u); result[i] = part[0];", "changed it atomically in the same line, and there is no barrier"),
        ("result[i] = (uvec2(i) * 2)[data[i] + 1];", "index 2 of a vector is out of bounds: it has 2 components"),
        ("result[i] = 1u << (data[i] + 1);", "shifts a number of 32 bits by 32"),
        ("result[i] = 1 << (int(own) - 1);", "shifts a number of 32 bits by -1"),
    ):  # fmt: skip
        text = f"{HEAD}void main() {{ {body} }}"
        assert wanted in str(check(text, {"Out": 256})), body


def test_results_are_compared_by_the_types_of_their_numbers():
    block = load("""#version 450
    struct S { vec3 v; uint n; };
    layout(std430, binding = 0) buffer Data { uint count; float sum; dvec2 d; S s[]; };
    void main() { s[0].n = count; }""").block("Data")
    one = np.zeros(32 + 3 * 16, np.uint8)
    one[4:8] = np.float32([10]).view(np.uint8)
    for number in range(3):
        one[44 + 16 * number] = number
    for at, values, wanted in (
        (4, np.float32([10.001]), []), (4, np.float32([10.1]), [4]), (8, np.uint32([5]), []),  # 8 is padding
        (24, np.float64([7]), [24]), (0, np.uint32([9]), [0]), (40, np.float32([2]), [40]),
    ):  # fmt: skip
        other = one.copy()
        other[at : at + values.nbytes] = values.view(np.uint8)
        assert differences(block, one, other).tolist() == wanted
        assert number_at(block, other, at) == ("padding" if at == 8 else str(values[0]))
    other = one.copy()
    other[[44, 60, 76]] = 2, 0, 1  # in another order
    assert differences(block, one, other).tolist() == []


def test_a_buffer_that_is_given_by_its_size_is_not_written(command):
    status, out, _ = command(*OTHERS, "--bind", "Data=256", "-D", "BARRIER")
    assert status == 1
    assert (
        "12: never written: reads 'part', which is undefined because an invocation in line 8 "
        "reads 'data', which was never written: block Data is given a size, but no values"
    ) in out
    assert out.endswith("\nTo give values to what is read: --bind Data=FILE.npy\n")


def test_a_finding_of_one_run_says_how_it_ran(command, tmp_path):
    """The command that steps to it has the size of subgroups, and the order."""
    shutil.copy(FAULTY["clusters"].path, tmp_path / "small.comp")
    _, out, _ = command("small.comp")
    finding, *_, last = out.splitlines()
    assert finding.endswith("; invocation (0, 0, 0), 64 times, with subgroups of 8")
    assert last.endswith(" small.comp --subgroup-size 8 --invocation 0,0,0 --to-fault")
    body = "if (own == 0) { uint turn = atomicAdd(data[0], 1u); if (turn * 64 < i) result[i + 64] = 1; }"
    (tmp_path / "late.comp").write_text(f"{HEAD}void main() {{ {body} }}")
    np.save("zeros.npy", np.zeros(64, np.uint32))
    _, out, _ = command("late.comp", "--groups", "2", "--bind", "Data=zeros.npy")
    assert "; invocation (64, 0, 0), with workgroups in descending order\n" in out
    assert " --schedule descending --invocation 64,0,0 --to-fault\n" in out


def test_push_constants_are_named_by_their_option(command):
    """The numbers of 64 bits are exact, and an empty one is wrong."""
    for arguments, said in (
        (["reverse.comp"], "--push: got 0 numbers, must be 1: uint n [SH-09]\n"),
        (["reverse.comp", "--push", "-1"], "--push n: got -1, must be uint, from 0 to 4294967295 [SH-09]\n"),
        ([*GIVEN, "--constant", "n=1"], "--constant: there is no constant"),
    ):  # fmt: skip
        assert command(*arguments)[2].startswith(f"reverse.comp {said}")
    for text, wrong in (("63,", ""), ("a", "a"), ("1,,2", "")):
        said = f"Invalid value for '--push': got '{wrong}', must be a number\n"
        status, _, err = command(*GIVEN, "--push", text)
        assert (status, err.partition(": ")[2]) == (2, said)
    numbers = shader_commands.numbers("--push", (f"{2**63 + 1},0x10,1e3", "-0.5,true"))
    assert numbers == [2**63 + 1, 16, 1000.0, -0.5, 1]


def test_push_constants_and_specialization_constants_have_names(command):
    """They are given as numbers in order, by names, or as before, with the options' old names."""
    end = ["-D", "BARRIER"]
    expected = command(*GIVEN, *end)
    assert expected[0] == 0
    for given in (
        ["--push", "n=63", "--constant", "1=64", "--bind", "Data=x.npy"],
        ["--push", "63", "--spec", "1=64", "--buffer", "Data=x.npy"],
        ["--push", "63", "--spec=1=64", "--bind", "Data:x.npy"],
        [*OTHERS[1:], "--bind", "x.npy"],  # in the order of bindings
        [*OTHERS[1:], "--bind", "Data=uint32:64"],
    ):
        assert command("reverse.comp", *given, *end) == expected
    assert "--spec" not in command("--help")[1]
    for texts, said in (
        (["63,n=1"], "got 'n=1' after numbers without names"),
        (["n=1", "n=2"], "got n twice"),
        (["n=a"], "got 'a', must be a number"),
    ):
        arguments = [part for text in texts for part in ("--push", text)]
        status, _, err = command("reverse.comp", *arguments)
        assert (status, err.partition(": ")[2]) == (2, f"Invalid value for '--push': {said}\n")
    assert (
        "'--constant': got '64', must be NAME=VALUE"
        in command("reverse.comp", "--constant", "64")[2]
    )
    assert "--push: got 'm'; the members are n" in command("reverse.comp", "--push", "m=1")[2]
    vectors = shader_commands.numbers("--push", ("v=1,2", "n=3,f=.5"))
    assert vectors == {"v": [1, 2], "n": 3, "f": 0.5}


def test_blocks_without_a_buffer_are_named_where_an_index_is_out_of_bounds(command, tmp_path):
    """The size that they get may be the reason."""
    (tmp_path / "far.comp").write_text(
        "#version 450\nlayout(std430, binding = 0) buffer X { uint x[]; };\n"
        "layout(std430, binding = 1) buffer Y { uint y[]; };\nvoid main() { y[3] = x[2]; }"
    )
    status, out, _ = command("far.comp", "--bind", "X=x.npy")
    *_, finding, source, _, last = out.splitlines()
    assert source == "    4 | void main() { y[3] = x[2]; }"
    assert (status, "index 3 of 'y'" in finding) == (1, True)
    assert last == "Blocks without --bind, of one element for each invocation: Y"
    assert "Blocks without" not in command("far.comp", "--bind", "X=x.npy", "--bind", "Y=4")[1]


def test_the_limit_of_iterations(command, tmp_path):
    (tmp_path / "loop.comp").write_text(
        "#version 450\nlayout(std430, binding = 0) buffer Data { uint data[]; };\n"
        "void main() { uint k = 0u;\n  while (k < data[0]) k++;\n  data[0] = k; }"
    )
    arguments = ["loop.comp", "--bind", "Data=n.npy"]
    np.save("n.npy", np.uint32([100]))
    found_nothing = (0, "loop.comp: nothing was found\n", "")
    assert command(*arguments, "--max-iterations", "100") == found_nothing
    assert command(*arguments, "--max-iterations", "99")[0] == 1
    np.save("n.npy", np.uint32([MAX_ITERATIONS + 1]))
    text = (
        "loop.comp:4: loop: did not end: no invocation left it in 16,384 iterations; "
        "invocation (0, 0, 0)\n    4 |   while (k < data[0]) k++;\n"
        "Step to the first: vkops debug step loop.comp --bind Data=n.npy --invocation 0,0,0 --to-fault\n"
    )
    assert command(*arguments) == (1, text, "")
    assert command(*arguments, "--max-iterations", "0")[0] == 2
    with pytest.raises(InvalidDescError, match="max_iterations: got 0, must be"):
        check(REVERSE, name="reverse", max_iterations=0)


@pytest.mark.posix("terminals", tests_only=True)
@pytest.mark.parametrize("arguments", [["check"], ["trace", "0"], ["step"]], ids=lambda a: a[0])
def test_a_terminal_shows_where_a_run_is_and_interrupts_it(command, tmp_path, arguments):
    import pty

    (tmp_path / "loop.comp").write_text(
        "#version 450\nlayout(std430, binding = 0) buffer Data { uint data[]; };\n"
        "void main() { while (data[0] != 2u) {\n data[0] = (data[0] | 1u) + 2u; } }"
    )
    terminal, end = pty.openpty()
    name, *rest = arguments
    program = [sys.executable, "-m", "vkops", "debug", name, "loop.comp", *rest]
    program += ["--max-iterations", "1000000000"]
    with subprocess.Popen(
        program, stdout=subprocess.PIPE, stderr=end, start_new_session=True
    ) as run:
        os.close(end)
        shown = b""
        while not re.search(rb"loop\.comp:[34]: [\d,]+ instructions executed", shown):
            shown += os.read(terminal, 1 << 16)
        os.killpg(run.pid, signal.SIGINT)
        with contextlib.suppress(OSError):  # the end of what the terminal got
            while data := os.read(terminal, 1 << 16):
                shown += data
        assert (run.wait(60), run.stdout.read()) == (130, b"")
    os.close(terminal)
    *_, last, end_of_line = shown.split(b"\r\n")
    assert (last.split(b"\x1b[2K")[-1], end_of_line) == (b"Interrupted", b"")


def test_wrong_arguments(command, message):
    for arguments, status in (
        (["reverse.comp"], 1), (["missing.comp"], 1), ([*GIVEN, "--groups", "0"], 1), ([*GIVEN, "--bind", "Data"], 1), ([*GIVEN, "--bind", "Data=float33:4"], 1),
        ([*GIVEN, "--bind", "Other=4"], 1), ([*OTHERS, "--bind", "Data=missing.npy"], 1), ([*GIVEN, "--groups", "a"], 2),
        ([*GIVEN, "--subgroup-size", "3"], 1), ([*GIVEN, "--groups", "1", "--threads", "2"], 1), ([*GIVEN, "--threads", "0"], 1),
        ([*OTHERS, "--bind", f"Data={1 << 60}"], 1), ([*GIVEN, "--input", "x.npy"], 2), (["x.json", "--groups", "2"], 2),
    ):  # fmt: skip
        got, out, err = command(*arguments)
        assert (got, out) == (status, ""), err
        message(err.strip())


def test_results_have_all_names_of_a_block():
    text = """#version 450
    layout(std430, binding = 3) buffer Data { uint data[]; } own;
    layout(std430, binding = 3) buffer Vectors { uvec4 vectors[]; };
    layout(binding = 4) uniform Other { uint other; };
    void main() { own.data[0] += other; }"""
    for name in ("3", "Data", "own", "Vectors"):
        report = check(text, {name: np.arange(4, dtype=np.uint32), "Other": [7]})
        assert list(report.buffers) == ["Data"]
        assert report.buffers[name].tolist() == [7, 1, 2, 3]
    for name in ("data", "4", "Other", ""):
        with pytest.raises(KeyError):
            report.buffers[name]
