"""Orders of workgroups and subgroups: what needs progress that Vulkan does not promise."""

from math import isqrt
from pathlib import Path

import numpy as np
import pytest

from vkops.cli import main
from vkops.debug import check, stepper
from vkops.debug.shader_check import Case
from vkops.errors import InvalidDescError
from vkops.interpreter import schedules
from vkops.interpreter.recorder import Recorder
from vkops.interpreter.schedules import Batch, Rounds, Sizes

HEAD = """#version 450
#extension GL_KHR_shader_subgroup_ballot : require
layout(local_size_x = 64) in;
layout(std430, binding = 0) coherent buffer D { uint next; uint flag; uint data; uint result; };
shared uint near, part, ticket;
uint own = gl_LocalInvocationIndex, group = gl_WorkGroupID.x;
"""


def checked(body, *, groups=2, subgroup_size=32, nbytes=4, **options):
    words = np.zeros(nbytes, np.uint32)
    how = {"groups": groups, "subgroup_size": subgroup_size, "name": "x", "max_iterations": 2000}
    return check(HEAD + body, {"D": words}, **how, **options)


def found(body, **options):
    return [finding.kind for finding in checked(body, **options).findings]


# -- workgroups ------------------------------------------------------------------------------------

GIVE = "data = 42u; memoryBarrierBuffer(); atomicExchange(flag, 1u);"
POLLS = {
    "or": "while (atomicOr(flag, 0u) == 0u) {}",
    "exchange": "while (atomicCompSwap(flag, 1u, 1u) != 1u);",
    "counts": "uint n = 0u; while (atomicAdd(flag, 0u) == 0u) ++n;",
    "variable": "bool go = false; do { uint seen = atomicMax(flag, 0u); if (seen > 0u) go = true; } while (!go);",
    "function": "wait();",
    "barriers": "for (;;) { if (own == 0u) part = atomicAdd(flag, 0u); barrier(); if (part != 0u) break; barrier(); }",
}  # fmt: skip
WAIT = "void wait() { while (atomicAdd(flag, 0u) == 0u) {} }\n"
TICKET = "if (own == 0u) ticket = atomicAdd(next, 1u); barrier(); uint at = ticket;"


def by_workgroups(at, poll, *, gives_first):
    take = f"if (at == 1u) {{ {poll} memoryBarrierBuffer(); if (own == 0u) result = data; }}"
    give = f"if (at == 0u && own == 0u) {{ {GIVE} }}"
    both = give + take if gives_first else take + give
    poll_by_one = "" if "barrier" in poll else "if (own != 0u) return;"
    return f"{WAIT}void main() {{ {at} {poll_by_one} {both} }}"


@pytest.mark.parametrize("gives_first", [True, False])
@pytest.mark.parametrize("poll", POLLS)
@pytest.mark.parametrize("at", ["uint at = group;", "uint at = 1u - group;", TICKET])
def test_only_what_waits_by_tickets_needs_no_workgroup_that_has_not_begun(at, poll, gives_first):
    """Whichever begins first, and whichever branch comes first in the text."""
    report = checked(by_workgroups(at, POLLS[poll], gives_first=gives_first))
    expected = set() if at == TICKET else {"forward progress"}
    assert {finding.kind for finding in report.findings} == expected, str(report)
    if at == TICKET:
        assert report.buffers["D"][3] == 42
    for finding in report.findings:
        assert "a workgroup that need not have begun: waits for '" in finding.message
        assert poll == "barriers" or "waits for 'flag' to change" in finding.message


@pytest.mark.parametrize("groups", [4, 7])
def test_workgroups_that_wait_in_pairs(groups):
    """The order finds no pair of which the second one begins first, as all run at once."""
    body = f"void main() {{ if (own != 0u) return; if (group % 2u == 0u) {{ {GIVE} }} else {{ {POLLS['or']} }} }}"
    assert "forward progress" in found(body, groups=groups)


def test_a_lock_of_workgroups_needs_nothing():
    body = """void main() { if (own != 0u) return;
        while (atomicCompSwap(flag, 0u, 1u) != 0u) {}
        memoryBarrierBuffer(); result += 1u; memoryBarrierBuffer(); atomicExchange(flag, 0u); }"""
    report = checked(body, groups=9, schedules=4)
    assert report.ok, str(report)
    assert report.buffers["D"][3] == 9


# -- subgroups and invocations ---------------------------------------------------------------------

NEAR_GIVE = "part = 7u; memoryBarrierShared(); atomicExchange(near, 1u);"
NEAR_POLL = "while (atomicAdd(near, 0u) == 0u) {} memoryBarrierShared(); result = part;"


def by_subgroups(giver, taker, *, gives_first, between=""):
    give, take = (
        f"if (own == {giver}u) {{ {NEAR_GIVE} }}",
        f"if (own == {taker}u) {{ {NEAR_POLL} }}",
    )
    parts = [give, between, take] if gives_first else [take, between, give]
    return f"void main() {{ if (own == 0u) near = 0u; barrier(); {' '.join(parts)} }}"


@pytest.mark.parametrize("gives_first", [True, False])
@pytest.mark.parametrize(("giver", "taker"), [(32, 0), (0, 32)])
def test_a_subgroup_that_waits_for_another_one(giver, taker, gives_first):
    report = checked(by_subgroups(giver, taker, gives_first=gives_first), groups=1)
    (finding,) = report.findings
    assert (finding.kind, report.buffers["D"][3]) == ("forward progress", 7)
    assert finding.message.startswith(
        "needs forward progress of a subgroup: the first invocation waits for 'near'"
    )
    assert finding.invocations == ((taker, 0, 0), (giver, 0, 0))
    assert "with workgroups in the order first:0:" in str(finding)


def test_a_barrier_lets_all_subgroups_go_on():
    body = by_subgroups(32, 0, gives_first=True, between="barrier();")
    assert found(body, groups=1, schedules=5) == []


def test_subgroups_that_take_tickets_need_nothing():
    """One that runs alone finds what it waits for."""
    take = "uint t = 0u; if (gl_SubgroupInvocationID == 0u) { t = atomicAdd(next, 1u);"
    body = f"void main() {{ {take} while (atomicAdd(flag, 0u) != t) {{}} atomicExchange(flag, t + 1u); }} }}"
    assert found(body, groups=3, schedules=4) == []


@pytest.mark.parametrize(
    "body",
    [
        by_subgroups(1, 0, gives_first=False),
        # A lock that the invocations of a subgroup take together.
        "void main() { while (atomicCompSwap(flag, 0u, 1u) != 0u); result += 1u; atomicExchange(flag, 0u); }",
    ],
)
def test_an_invocation_that_waits_for_one_of_its_subgroup(body):
    findings = checked(body, groups=1).findings
    messages = [f.message for f in findings if f.kind == "forward progress"]
    assert [m.partition(":")[0] for m in messages] == ["needs forward progress of an invocation"]


def test_two_workgroups_whose_invocations_wait_in_different_lines():
    """Each finding names the line of its own workgroup."""
    begin = "if (own == 0u) near = part = 0u; barrier();"
    poll, give = "while (atomicAdd({0}, 0u) == 0u) {{}}", "atomicExchange({0}, 1u);"
    polls = f"if (group == 1u)\n{poll.format('part')}\nelse\n{poll.format('near')}"
    gives = f"if (group == 0u)\n{give.format('near')}\nelse\n{give.format('part')}"
    body = f"void main() {{ {begin} if (own == 0u) {{ {polls} }} if (own == 1u) {{ {gives} }} }}"
    findings = checked(body, schedule="descending").findings
    waits = {each.invocations[0][0] // 64: each.message.split("'")[1] for each in findings}
    assert waits == {0: "near", 1: "part"}


# -- a look-back -----------------------------------------------------------------------------------

LOOK_BACK = """#version 450
#pragma use_vulkan_memory_model
#extension GL_KHR_memory_scope_semantics : require
layout(local_size_x = 8) in;
layout(std430, binding = 0) buffer Data { uint data[]; };
layout(std430, binding = 1) buffer Out { uint result[]; };
layout(std430, binding = 2) buffer Tickets { uint tickets; };
layout(std430, binding = 3) nonprivate buffer Sums { uint sums[]; };
layout(std430, binding = 4) buffer States { uint states[]; };
shared uint part[8], tile, before;
uint own = gl_LocalInvocationIndex;
#define BUFFER gl_StorageSemanticsBuffer
void publish(uint at, uint state) { atomicStore(states[at], state, SCOPE, BUFFER, gl_SemanticsRelease | gl_SemanticsMakeAvailable); }
void main() {
    if (own == 0u) tile = TILE;
    barrier();
    uint at = tile * 8u + own, all = gl_NumWorkGroups.x;
    part[own] = data[at];
    barrier();
    for (uint step = 1u; step < 8u; step *= 2u) {
        uint other = own >= step ? part[own - step] : 0u;
        INSIDE
        part[own] += other;
        barrier();
    }
    if (own == 0u) {
        uint sum = 0u, look = tile;
        sums[tile] = part[7];
        publish(tile, 1u);
        while (look > 0u) {
            uint state = atomicLoad(states[look - 1u], SCOPE, ACQUIRE);
            if (state > 0u) --look;
            if (state == 1u) sum += sums[look];
            if (state == 2u) { sum += sums[all + look]; break; }
        }
        sums[all + tile] = sum + part[7];
        publish(tile, 2u);
        before = sum;
    }
    AFTER
    result[at] = before + part[own];
}"""
RIGHT = {"TILE": "atomicAdd(tickets, 1u, gl_ScopeQueueFamily, 0, 0)", "SCOPE": "gl_ScopeQueueFamily",
         "INSIDE": "barrier();", "AFTER": "barrier();",
         "ACQUIRE": "gl_StorageSemanticsBuffer, gl_SemanticsAcquire | gl_SemanticsMakeVisible"}  # fmt: skip


def look_back(groups, **changes):
    text = LOOK_BACK
    for name, value in {**RIGHT, **changes}.items():
        text = text.replace(name, value)
    data = np.arange(8 * groups, dtype=np.uint32)
    buffers = {"Data": data, "Out": data.nbytes, "Tickets": np.zeros(1, np.uint32),
               "Sums": np.zeros(2 * groups, np.uint32), "States": np.zeros(groups, np.uint32)}  # fmt: skip
    return text, buffers


@pytest.mark.parametrize("options", [{}, {"schedules": 5, "seed": 3}], ids=["usual", "explored"])
def test_a_look_back_that_is_right(options):
    text, buffers = look_back(12)
    report = check(text, buffers, groups=12, **options)
    assert report.ok, str(report)
    np.testing.assert_array_equal(
        report.buffers["Out"], np.cumsum(buffers["Data"], dtype=np.uint32)
    )


@pytest.mark.parametrize(
    ("changes", "kind"),
    [
        ({"INSIDE": ""}, "data race"),
        ({"AFTER": ""}, "data race"),
        ({"SCOPE": "gl_ScopeWorkgroup"}, "data race"),
        ({"ACQUIRE": "0, 0"}, "data race"),
        ({"TILE": "gl_WorkGroupID.x"}, "forward progress"),
    ],
    ids=lambda each: next(iter(each)) if isinstance(each, dict) else "",
)
def test_a_look_back_that_is_subtly_wrong(changes, kind):
    text, buffers = look_back(6, **changes)
    assert kind in {finding.kind for finding in check(text, buffers, groups=6).findings}


# -- sleep -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("groups", [20, 40])
def test_invocations_sleep_until_what_they_poll_changes(groups):
    """So the instructions grow with the workgroups, not with their square or with a limit."""
    body = "void main() { if (own != 0u) return; uint at = atomicAdd(next, 1u); while (atomicAdd(flag, 0u) != at) {} atomicExchange(flag, at + 1u); }"
    report = checked(body, groups=groups)
    assert report.ok, str(report)
    assert report.instructions < groups * (64 * 40 + groups * 60)


def test_a_bounded_wait_ends():
    """It counts, so it is not taken to wait for ever, whatever else does."""
    body = "void main() { uint n = 0u; while (atomicAdd(flag, 0u) == 0u && n < 900u) ++n; if (own == 0u) result = n; }"
    report = checked(body, groups=1)
    assert report.ok, str(report)
    assert report.buffers["D"][3] == 900


# -- rounds ----------------------------------------------------------------------------------------


def in_rounds(monkeypatch, body, *, round_, groups=2, turns=(0, 0), by_iteration=True, **options):
    """Run a shader with each subgroup as a team, in a given order of turns."""

    def schedule(sizes):
        teams = np.arange(sizes.groups * sizes.subgroups).reshape(-1, sizes.subgroups)
        rounds = Rounds(teams, (), round_, by_iteration)
        yield Batch(np.arange(sizes.groups), np.array(turns[: sizes.subgroups]), rounds)

    monkeypatch.setitem(schedules.SCHEDULES, "given", (schedule, range(1)))
    how = {"groups": groups, "subgroup_size": 32, "name": "x", "max_iterations": 900, **options}
    size = f"layout(local_size_x = {64 if len(turns) > groups else 32})"
    text = HEAD.replace("layout(local_size_x = 64)", size) + body
    case = Case.of(text, {"D": np.zeros(4, np.uint32)}, schedule="given", **how)
    _, memory = case.run()
    return [*case.findings], case.results(memory)["D"]


def swap(*, times):
    """Each workgroup goes on when it finds its own number, but the other one stores its own before."""
    return f"""void main() {{ if (own != 0u) return; uint seen = 9u, tries = 0u;
        while (seen != group && tries < {times}u) {{ seen = atomicExchange(flag, group); COUNT }} atomicMax(result, tries); }}"""


@pytest.mark.parametrize(
    ("round_", "by_iteration", "hangs"),
    [
        ((1, 0), True, True),
        ((1, 0), False, True),
        ((1, 1, 0, 0), True, False),
        ((1, 0, 0), False, False),
    ],
)
def test_workgroups_that_undo_what_the_other_waits_for(monkeypatch, round_, by_iteration, hangs):
    """Each finds the number of the other one for ever, although both go on."""
    body = swap(times=9).replace("COUNT", "")
    findings, _ = in_rounds(monkeypatch, body, round_=round_, by_iteration=by_iteration)
    assert [f.kind for f in findings] == ["loop"] * hangs
    for finding in findings:
        assert "invocations that take turns come back to the same state for ever" in str(finding)
        assert finding.schedule == "given"
        assert finding.place.line == 8


def test_tries_that_are_counted_end(monkeypatch):
    """They come back to the same memory, but not to the same state."""
    body = swap(times=300).replace("COUNT", "++tries;")
    findings, words = in_rounds(monkeypatch, body, round_=(1, 0))
    assert findings == []
    assert words[3] == 300


def test_tries_that_are_counted_in_memory_end():
    """The number is behind an address, and read and compared at once."""
    text = """#version 450
#extension GL_EXT_buffer_reference : require
layout(local_size_x = 1) in;
layout(std430, buffer_reference) coherent buffer Count { uint tries[2]; };
layout(std430, binding = 0) buffer D { uint flag; };
layout(push_constant) uniform Push { Count count; };
void main() { uint own = gl_WorkGroupID.x;
    while (atomicExchange(flag, own) != own && ++count.tries[own] < 20u) {} }"""
    tries, ends = np.zeros(2, np.uint32), set()
    for seed in range(12):
        how = {"push": [tries], "name": "x", "schedule": f"rounds:{seed}"}
        case = Case.of(text, {"D": np.zeros(1, np.uint32)}, 2, **how)
        _, memory = case.run()
        assert [*case.findings] == []
        (counted,) = (words for name, words in case.results(memory).items() if name != "D")
        ends.add(int(counted.max()))
    assert 20 in ends  # in some rounds, each undoes what the other waits for


@pytest.mark.parametrize(
    ("turns", "kinds"), [((0, 0), []), ((0, 1), ["forward progress"]), ((1, 0), [])]
)
@pytest.mark.parametrize("round_", [(0, 1), (1, 0, 0)])
def test_only_a_subgroup_that_has_begun_goes_on(monkeypatch, turns, kinds, round_):
    """The first subgroup waits for the second one, which begins with it, later, or earlier."""
    body = f"void main() {{ if (own == 0u) {{ {POLLS['or']} }} if (own == 32u) {{ {GIVE} }} }}"
    findings, words = in_rounds(monkeypatch, body, round_=round_, groups=1, turns=turns)
    assert [f.kind for f in findings] == kinds
    assert words[2] == 42


@pytest.mark.parametrize("by_iteration", [True, False])
@pytest.mark.parametrize("round_", [(0, 1, 2), (2, 1, 1, 0), (0, 2, 1, 2)])
def test_locks_and_tickets_need_nothing_in_rounds(monkeypatch, round_, by_iteration):
    lock = "while (atomicCompSwap(flag, 0u, 1u) != 0u) {} memoryBarrierBuffer(); result += 1u; memoryBarrierBuffer(); atomicExchange(flag, 0u);"
    tickets = "uint t = atomicAdd(next, 1u); while (atomicOr(flag, 0u) != t) {} memoryBarrierBuffer(); result += 1u; memoryBarrierBuffer(); atomicExchange(flag, t + 1u);"
    for body in (lock, tickets):
        text = f"void main() {{ if (own == 0u) {{ {body} }} }}"
        how = {"round_": round_, "groups": 3, "by_iteration": by_iteration}
        findings, words = in_rounds(monkeypatch, text, **how)
        assert (findings, words[3]) == ([], 3)


# -- schedules -------------------------------------------------------------------------------------


NAMES = [
    "ascending",
    "descending",
    "shuffled:0",
    "shuffled:5",
    "rounds:0",
    "rounds:7",
    "first:3",
    "first:2:1",
]


@pytest.mark.parametrize("schedule", NAMES)
@pytest.mark.parametrize("sizes", [Sizes(1, 1, 9, True), Sizes(5, 3, 2, False), Sizes(64, 2, 1024, True)])  # fmt: skip
def test_each_workgroup_begins_once(schedule, sizes):
    batches = [*schedules.batches(schedule, sizes)]
    groups = np.concatenate([batch.groups for batch in batches])
    assert sorted(groups.tolist()) == [*range(sizes.groups)]
    assert max(len(batch.groups) for batch in batches) <= sizes.together
    for batch in batches:
        if batch.rounds is None:
            assert batch.turns is None or len({*batch.turns.tolist()}) == sizes.subgroups
        else:
            assert {*batch.rounds.round} == {*batch.rounds.teams.ravel().tolist()}
            assert batch.rounds.teams.shape == (len(batch.groups), sizes.subgroups)


@pytest.mark.parametrize(
    "name",
    ["", "backwards", "descending:1", "shuffled", "shuffled:x", "shuffled:-1", "first:1:2:3"],
)
def test_schedules_that_there_are_not(name):
    assert not schedules.is_schedule(name)
    if name:
        with pytest.raises(InvalidDescError, match=r"schedule: got .*, must be ascending"):
            Case.of(HEAD + "void main() {}", schedule=name, name="x")


@pytest.mark.parametrize(
    "options", [{"schedules": 0}, {"schedules": True}, {"seed": -1}, {"seed": None}]
)
def test_wrong_numbers_of_schedules(options):
    (name,) = options
    with pytest.raises(InvalidDescError, match=f"{name}: got"):
        checked("void main() {}", **options)


def test_the_schedule_in_contributing(monkeypatch):
    """It needs a function and a line of the table, and is explored before shuffled ones."""
    page = (Path(__file__).parents[2] / "CONTRIBUTING.md").read_text("utf-8")
    example = page[page.index("+def _even_first") : page.index(" SCHEDULES: dict")]
    names = dict(vars(schedules))
    exec("\n".join(line.removeprefix("+") for line in example.splitlines()), names)
    monkeypatch.setitem(schedules.SCHEDULES, "even_first", (names["_even_first"], range(1)))
    assert schedules.explored(4, 9) == ["ascending", "descending", "even_first", "shuffled:9"]
    test_each_workgroup_begins_once("even_first", Sizes(7, 2, 3, has_atomics=True))
    body = f"void main() {{ if (own != 0u) return; if (group == 1u) {{ {GIVE} }} if (group == 2u) {{ {POLLS['or']} }} }}"
    words = np.zeros(4, np.uint32)
    case = Case.of(HEAD + body, {"D": words}, 4, name="x", schedule="even_first")
    case.run()
    assert [finding.schedule for finding in case.findings] == ["even_first"]


def test_a_finding_of_a_shuffled_order_can_be_repeated():
    """The fourth workgroup that begins writes in its own way, which depends on the order."""
    body = "void main() { if (own == 0u && atomicAdd(next, 1u) == 3u) { uint x; result = x + group; } }"
    text = HEAD + body.replace(
        "uint x; result = x + group",
        "uint k = group == 5u ? 9u : 0u; uint a[4]; a[0] = 1u; result = a[k & 1u]",
    )
    for seed in range(40):
        report = check(
            text,
            {"D": np.zeros(4, np.uint32)},
            groups=8,
            subgroup_size=32,
            schedules=3,
            seed=seed,
            name="x",
        )
        findings = [f for f in report.findings if f.kind == "never written"]
        if findings:
            break
    (finding,) = findings
    assert finding.schedule == f"shuffled:{seed}"
    case = Case.of(
        text,
        {"D": np.zeros(4, np.uint32)},
        8,
        subgroup_size=32,
        name="x",
        schedule=finding.schedule,
    )
    recorder = Recorder(stepper.number(case, finding.invocations[0]))
    case.run(observers=[recorder])
    assert any(
        fault.startswith("never written") for stop in recorder.stops for fault in stop.faults
    )


def test_the_command_repeats_a_schedule(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    text = HEAD + by_subgroups(32, 0, gives_first=True)
    (tmp_path / "x.comp").write_text(text)
    np.save("d.npy", np.zeros(4, np.uint32))
    options = ["x.comp", "--bind", "D=d.npy", "--subgroup-size", "32"]
    assert main(["debug", "check", *options, "--schedules", "3", "--seed", "2"]) == 1
    out = capsys.readouterr().out
    last = out.splitlines()[-1]
    assert "--subgroup-size 32 --schedule shuffled:" in last
    assert "--schedules" not in last
    (tmp_path / "commands").write_text("quit\n")
    command = last.partition("vkops ")[2].split()
    assert main([*command, "--commands", "commands"]) == 0
    assert (
        "Fault: forward progress: needs forward progress of a subgroup" in capsys.readouterr().out
    )
    assert main(["debug", "trace", "x.comp", "3", *options[1:], "--schedule", "descending"]) == 0
    assert main(["debug", "step", *options, "--schedule", "upwards"]) == 1
    assert "--schedule: got 'upwards', must be ascending, descending" in capsys.readouterr().err


def test_sizes_of_primes():
    """A shuffle of any number of workgroups has few batches."""
    for groups in (1, 2, 13, 997):
        for seed in range(5):
            batches = [*schedules.batches(f"shuffled:{seed}", Sizes(groups, 2, 4096, True))]
            assert len(batches) <= max(9, isqrt(groups) // 4)
