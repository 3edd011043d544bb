"""Litmus tests of Vulkan's memory model: the debugger, the model in tests/litmus, and a verdict agree."""

from itertools import zip_longest
from pathlib import Path
from random import Random

import pytest
from litmus import alloy, dat3m, programs, progress
from litmus.comparison import judge
from litmus.executions import executions
from litmus.generation import generated
from litmus.model import races
from litmus.program import NotExpressibleError
from litmus.translation import layout

FAR = "P0@sg 0, wg 0, qf 0 | P1@sg 0, wg 1, qf 0"
NEAR = "P0@sg 0, wg 0, qf 0 | P1@sg 1, wg 0, qf 0"
THREE = "P0@sg 0, wg 0, qf 0 | P1@sg 1, wg 0, qf 0 | P2@sg 0, wg 1, qf 0"
CHAIN = f"{FAR} | P2@sg 0, wg 2, qf 0 | P3@sg 1, wg 2, qf 0"
REL, ACQ = "st.atom.rel.dv.sc0.semsc0 f, 1", "ld.atom.acq.dv.sc0.semsc0 r0, f"
GOT = "filter (P1:r0 == 1)"
ALL = "semsc0.semsc1"


def body(places, *rows, condition=GOT):
    """A test of rows of instructions, a column for each invocation."""
    return f"Vulkan own\n{{\nx=0; f=0; g=0;\n}}\n{places};\n" + ";\n".join([*rows, condition])


def message(
    write="st.av.dv.sc0 x, 1",
    release=REL,
    acquire=ACQ,
    read="ld.vis.dv.sc0 r1, x",
    places=FAR,
    middle=" | ",
):
    return body(places, f"{write} | {acquire}", middle, f"{release} | {read}")


ORDERED = {
    "message": message(),
    "a write behind a coherent one": message(write="st.nonpriv.sc0 x, 1", middle="st.av.dv.sc0 x, 2 | "),
    "a read behind a coherent one": message(read="ld.vis.dv.sc0 r1, x; | ld.nonpriv.sc0 r2, x"),
    "a change needs no visibility": message(read="rmw.atom.wg.sc0 r1, x, 2"),
    "a write behind a change for the workgroup": message(write="rmw.atom.wg.sc0 r1, x, 2", read="st.nonpriv.sc0 x, 3"),
    "a read behind a change for the workgroup": message(write="rmw.atom.wg.sc0 r1, x, 2", read="ld.nonpriv.sc0 r1, x"),
    "atomic loads of two workgroups": message(write="ld.atom.wg.sc0 r1, x", read="ld.atom.wg.sc0 r1, x", acquire="ld.atom.dv.sc0 r0, f", release="st.atom.dv.sc0 f, 1"),
    "a load and an atomic load": message(write="ld.nonpriv.sc0 r1, x", read="ld.atom.dv.sc0 r1, x", acquire="ld.atom.dv.sc0 r0, f", release="st.atom.dv.sc0 f, 1"),
    "words that each say that they are there, of two who write the same": body(
        THREE, "st.atom.dv.sc0 x, 1 | ld.atom.dv.sc0 r0, x | st.atom.dv.sc0 x, 1",
        "st.atom.dv.sc0 f, 1 | ld.atom.dv.sc0 r1, f | st.atom.dv.sc0 f, 1",
        condition="filter (P1:r0 == 1 /\\ P1:r1 == 1)",
    ),
    "a word that says what it is, which is replaced, and written by another one, too": body(
        THREE, "st.atom.dv.sc0 x, 1 | ld.atom.dv.sc0 r0, x | st.atom.dv.sc0 x, 1",
        "st.atom.dv.sc0 x, 2 | ld.atom.dv.sc0 r1, x | ", condition="filter (P1:r0 == 1 /\\ P1:r1 == 2)",
    ),
    "a fence of the memory of its flag": message(
        release=f"membar.rel.dv.{ALL}; st.atom.dv.sc1 f, 1", acquire="ld.atom.acq.dv.sc1.semsc0 r0, f"
    ),
    "a chain ordered by another class": body(
        CHAIN,
        "st.nonpriv.sc0 x, 1 | ld.atom.acq.dv.sc1.semsc1 r0, f | ld.atom.acq.dv.sc1.semsc0.semsc1.semvis r0, g | ",
        "st.atom.rel.dv.sc1.semsc0.semsc1.semav f, 1 | st.atom.rel.dv.sc1.semsc1 g, 1 | st.atom.rel.wg.sc0.semsc0 h, 1 | ld.atom.acq.wg.sc0.semsc0.semvis r0, h",
        " | | | ld.nonpriv.sc0 r1, x",
        condition="filter (P1:r0 == 1 /\\ P2:r0 == 1 /\\ P3:r0 == 1)",
    ),
}  # fmt: skip
RACES = {
    "no release": message(release="st.atom.dv.sc0 f, 1"),
    "a write for the workgroup": message(write="st.av.wg.sc0 x, 1"),
    "a write for the workgroup, and one for the device": message(
        write="st.atom.wg.sc0 x, 1", release="st.atom.dv.sc0 f, 1", acquire="ld.atom.dv.sc0 r0, f",
        middle="st.atom.dv.sc0 x, 2 | ", read="ld.atom.dv.sc0 r1, x",
    ),
    "a flag for the workgroup": message(release="st.atom.rel.dv.sc0.semsc0 f, 2; rmw.atom.wg.sc0 r1, f, 1"),
    "a fence of other memory than its flag": message(
        release="membar.rel.dv.semsc0; st.atom.dv.sc1 f, 1", acquire="ld.atom.acq.dv.sc1.semsc0 r0, f"
    ),
    "a fence of other memory than the flag it has seen": message(
        release="st.atom.rel.dv.sc1.semsc0 f, 1", acquire="ld.atom.dv.sc1 r0, f; | membar.acq.dv.semsc0"
    ),
    "atomic operations of two workgroups": message(write="rmw.atom.wg.sc0 r1, x, 1", read="ld.atom.wg.sc0 r1, x", release="st.atom.dv.sc0 f, 1"),
    "an atomic load for the workgroup": message(write="st.atom.wg.sc0 x, 1", read="ld.atom.wg.sc0 r1, x"),
    "a message over two steps, one for another class": body(
        THREE,
        "st.av.dv.sc0 x, 1 | ld.atom.acq.wg.sc0.semsc0 r0, f | ld.atom.acq.dv.sc1.semsc1 r0, g",
        "st.atom.rel.wg.sc0.semsc0 f, 1 | st.atom.rel.dv.sc1.semsc1 g, 1 | ld.vis.dv.sc0 r1, x",
        condition="filter (P1:r0 == 1 /\\ P2:r0 == 1)",
    ),
}  # fmt: skip


def own(text, *, is_racy):
    """The test in a text, which has or has not a data race."""
    return dat3m.read(Path("own/test"), text, {dat3m.RACES: not is_racy})


@pytest.mark.parametrize("name", [*ORDERED, *RACES])
def test_the_debugger_agrees_with_the_model_and_with_the_verdict(name):
    verdict = judge(own(ORDERED.get(name) or RACES[name], is_racy=name in RACES), count=2)
    assert verdict.reason == ""
    assert verdict.differences == []
    assert [result for _, result in verdict.claims] == ["agrees"]


@pytest.mark.parametrize("seed", range(4))
def test_the_debugger_agrees_with_the_model_on_random_tests(seed):
    for number in range(6):
        verdict = judge(generated(Random(f"{seed} {number}"), f"{seed}-{number}"), count=1)
        assert verdict.differences == []


def test_khronos_syntax_is_read(tmp_path):
    path = tmp_path / "own.test"
    path.write_text(
        "// a message\nNEWWG\nNEWSG\nNEWTHREAD\nst.av.scopedev.sc0 x = 1\nst.atom.rel.scopedev.sc0.semsc0 y = 1\n"
        "NEWWG\nNEWSG\nNEWTHREAD\nld.atom.acq.scopedev.sc0.semsc0 y = 1\nld.vis.scopedev.sc0 x\n"
        "SATISFIABLE consistent[X] && #dr=0\nNOSOLUTION consistent[X] && #dr>0\n"
    )
    test = alloy.read(path)
    assert len(test.invocations) == 2
    every = list(executions(test))
    assert len(every) == 3  # the flag and the value, the value, or none is seen
    seen = [each for each in every if test.claims[0].holds(each.results)]
    assert [bool(races(test, each)) for each in seen] == [False]
    assert [result for _, result in judge(test).claims] == ["agrees", "agrees"]


@pytest.mark.parametrize(
    ("lines", "reason"),
    [
        ("st.sc0 x, 1 | avdevice", "operations outside of shaders"),
        ("st.sc0 x, 1 | st.sc1 x, 2", "a variable of two storage classes"),
    ],
)
def test_what_no_dispatch_can_do_is_named(lines, reason):
    with pytest.raises(NotExpressibleError, match=reason):
        layout(own(body(FAR, lines), is_racy=False))


PROGRAM = """; @Input: %out = {{0, 0}}
; @Output: forall (%out[0][0] == 7)
; @Config: 2, 1, 1
OpCapability Shader
OpMemoryModel Logical Vulkan
OpEntryPoint GLCompute %main "test" %lane %out
OpDecorate %lane BuiltIn LocalInvocationIndex
OpDecorate %array ArrayStride 4
OpDecorate %block Block
OpMemberDecorate %block 0 Offset 0
OpDecorate %out DescriptorSet 0
OpDecorate %out Binding 0
%void = OpTypeVoid
%function = OpTypeFunction %void
%uint = OpTypeInt 32 0
%zero = OpConstant %uint 0
%seven = OpConstant %uint 7
%array = OpTypeRuntimeArray %uint
%block = OpTypeStruct %array
%pointer = OpTypePointer StorageBuffer %block
%element = OpTypePointer StorageBuffer %uint
%input = OpTypePointer Input %uint
%lane = OpVariable %input Input
%out = OpVariable %pointer StorageBuffer
%main = OpFunction %void None %function
%label = OpLabel
%own = OpLoad %uint %lane
%at = OpAccessChain %element %out %zero WHERE
OpStore %at %seven
OpReturn
OpFunctionEnd
"""


@pytest.mark.parametrize(("where", "is_racy"), [("%own", False), ("%zero", True)])
def test_programs_with_comments_are_run(where, is_racy):
    text = PROGRAM.replace("WHERE", where)
    expected = [programs.Expected(is_racy, None), programs.Expected(None, True)]
    assert [result for _, result, _ in programs.verdicts(text, expected)] == ["agrees", "agrees"]
    wrong = [programs.Expected(not is_racy, None)]
    assert [result for _, result, _ in programs.verdicts(text, wrong)] == ["disagrees"]


# -- forward progress ------------------------------------------------------------------------------

EVERY = {"Fair", "HSA", "OBE", "HSA_OBE", "LOBE"}


def in_columns(*columns):
    """A test with the instructions of each invocation."""
    columns = [[each.strip() for each in column.split(";")] for column in columns]
    rows = [" | ".join(row) for row in zip_longest(*columns, fillvalue="")]
    places = " | ".join(f"P{who}@sg 0, wg 0, qf 0" for who in range(len(columns)))
    text = [f"Vulkan own\n{{\nx=0; y=0; l=0;\n}}\n{places}", *rows, "exists 0==0"]
    return dat3m.read(Path("own/test"), ";\n".join(text), {})


def waits(who, name):
    return f"LC{who}0: ; ld.atom.dv.sc0 r{who}, {name} ; beq r{who}, 0, LC{who}0"


def ticket(who):
    """The one that comes second waits for the first one."""
    first = f"rmw.atom.dv.sc0 r{who}, l, 1 ; bne r{who}, 0, LC{who}0 ; st.atom.dv.sc0 x, 1"
    return f"{first} ; goto LC{who}1 ; {waits(who, 'x')} ; LC{who}1:"


def exchanges(who, value, until):
    return f"LC{who}0: ; rmw.atom.dv.sc0 r{who}, l, {value} ; bne r{who}, {until}, LC{who}0"


ENDS = {
    "nobody waits": (("st.atom.dv.sc0 x, 1", "ld.atom.dv.sc0 r0, x"), {*EVERY, "UNFAIR"}),
    "the first waits": ((waits(0, "x"), "st.atom.dv.sc0 x, 1"), {"Fair"}),
    "the second waits": (("st.atom.dv.sc0 x, 1", waits(1, "x")), EVERY - {"OBE"}),
    "a ticket": (tuple(ticket(who) for who in range(2)), EVERY - {"HSA"}),
    "a lock": (
        tuple(f"{exchanges(who, 1, 0)} ; st.atom.dv.sc0 l, 0" for who in range(2)), EVERY - {"HSA"},
    ),
    "each undoes what the other waits for": ((exchanges(0, 1, 1), exchanges(1, 0, 0)), set()),
    "three in a chain": (("st.atom.dv.sc0 x, 1", f"{waits(1, 'x')} ; st.atom.dv.sc0 y, 1", waits(2, "y")), EVERY - {"OBE"}),
}  # fmt: skip
"""Tests, and the models under which they end."""


@pytest.mark.parametrize("name", ENDS)
def test_forward_progress_is_that_of_the_model(name, monkeypatch):
    """In workgroups and in subgroups, what others do is taken for granted if they have begun."""
    monkeypatch.setattr(progress, "MOST", 20)
    columns, models = ENDS[name]
    test = in_columns(*columns)
    every = progress.Executions(test)
    verdicts = {model: every.end(model) for model in progress.MODELS}
    assert {model for model, ends in verdicts.items() if ends} == models
    for isolation in progress.isolations(test):
        kinds = progress.found(test, isolation)
        assert progress.agrees(verdicts, kinds), (isolation, kinds)
        assert not progress.agrees({**verdicts, "OBE": not verdicts["OBE"]}, kinds)
