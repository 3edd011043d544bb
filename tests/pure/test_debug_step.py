"""``vkops debug step``: the record of an invocation, the commands, and what is printed."""

import io
import re
import shlex

import numpy as np
import pytest
from shader_programs import COUNT, Generator
from spirv import assembled

from vkops import shaders
from vkops.cli import main
from vkops.debug import check
from vkops.debug.shader_check import Case
from vkops.interpreter.recorder import Recorder
from vkops.interpreter.scheduler import Run
from vkops.interpreter.state import Settings
from vkops.interpreter.tracing import Tracer
from vkops.shaders.binary import HEADER_WORDS, Op, positions

SOURCE = """#version 450

layout(local_size_x = 4) in;
#include "by.glsl"
layout(std430, binding = 0) buffer Data { uint data[]; };
layout(push_constant) uniform Push { uint n; };
struct Pair { float weight; ivec2 place; };
shared uint part[4];
void main() {
    uint own = gl_LocalInvocationIndex;
    Pair pair = Pair(0.5, ivec2(own, -1));
    for (uint i = 0u; i < n; ++i) {
        data[own] = by(data[own], i);
    }
    for (int i = 0; i < 2; ++i) pair.place.y -= i;
    part[own] = data[own];
    barrier();
    bool odd = (part[3u - own] & 1u) != 0u;
    data[own + (odd ? 9u : 0u)] = part[3u - own];
}
"""
BY = """uint by(uint number, uint count) {
    uint more = number + 1u;
    return more * (count + 1u);
}
"""


@pytest.fixture
def step(tmp_path, monkeypatch, capsys):
    """Run ``vkops debug step`` in a folder with the commands on standard input: what it prints after each.

    Commands are a list, or a text with "; " between them; an argument is a text of several.
    """
    monkeypatch.chdir(tmp_path)
    (tmp_path / "own.comp").write_text(SOURCE)
    (tmp_path / "by.glsl").write_text(BY)
    monkeypatch.setenv("COLUMNS", "200")

    def run(*arguments, commands=(), shader="own.comp", push="2"):
        commands = commands.split("; ") if isinstance(commands, str) else commands
        arguments = [word for each in arguments for word in each.split()]
        monkeypatch.setattr("sys.stdin", io.StringIO("".join(f"{line}\n" for line in commands)))
        pushed = ["--push", push] if push else []
        assert main(["debug", "step", shader, *pushed, *arguments]) == 0
        seen = capsys.readouterr()
        assert seen.err == ""
        first, *parts = seen.out.split("(vkops) ")
        for line, part in zip((*commands, ""), parts, strict=True):
            assert part.partition("\n")[0] == line
        return [first, *(part.partition("\n")[2].rstrip("\n") for part in parts[:-1])]

    return run


def test_forwards(step):
    first, *seen = step(
        "--invocation 2,0,0", commands="step; step; ; step; print more; next; finish; next"
    )
    count = int(re.search(r"executed (\d+) lines", first)[1])
    assert count - len(LINES) in (0, 1)  # the closing brace
    assert [first, *seen] == [
        f"own.comp: invocation (2, 0, 0) executed {count} lines; try 'help'\n"
        "main () at own.comp:10\n10        uint own = gl_LocalInvocationIndex;\n",
        "11        Pair pair = Pair(0.5, ivec2(own, -1));",
        "12        for (uint i = 0u; i < n; ++i) {",
        "13            data[own] = by(data[own], i);",
        "by (number=2, count=0) at by.glsl:2\n2         uint more = number + 1u;",
        "more = <not written>",
        "3         return more * (count + 1u);",
        "main () at own.comp:13\n13            data[own] = by(data[own], i);",
        "12        for (uint i = 0u; i < n; ++i) {",
    ]  # fmt: skip


LINES = [10, 11, 12, 13, 2, 3, 13, 12, 13, 2, 3, 13, 12, 15, 15, 15, 16, 17, 18, 19]
"""Where the invocation stops, also after calls in line 13 and in each iteration in line 15."""
AFTER_CALLS = (6, 11)
CLOSING_BRACE = "20    }"
"""Some versions of glslang stop there as well, at the end of ``main``."""


def without_closing_brace(texts):
    """What is printed at the stops, without that at the closing brace of ``main``."""
    return [text for text in texts if not text.endswith(CLOSING_BRACE)]


def line_of(text):
    """The number of the line that is shown."""
    return int(re.search(r"^(\d+) ", text, re.MULTILINE)[1])


def test_backwards_is_the_way_back(step):
    """Backwards, no line is entered where a call in it has returned."""
    there = without_closing_brace(step("--invocation 1", commands=["step"] * 21))
    assert [line_of(text) for text in there[: len(LINES)]] == LINES
    assert set(there[len(LINES) :]) == {"The invocation has ended."}
    back = step("--invocation 1", commands=["continue", *["reverse-step"] * 19, "rs"])
    back = without_closing_brace(back)
    expected = [line for n, line in enumerate(LINES) if n not in AFTER_CALLS][::-1]
    assert [line_of(text) for text in back[2 : 2 + len(expected)]] == expected
    assert back[-1].startswith("No more reverse-execution history.\n")


def test_next_and_finish_do_not_stop_in_functions(step):
    commands = {"next": 11, "next 3": 12, "reverse-next": 13, "step": 2, "reverse-finish": 13, "n": 12, "rn ": 13, "step 2": 3,
                "rs": 2, "finish": 13, "step ": 12, "rn 99": 10}  # fmt: skip
    _, *seen = step(commands=commands)
    assert [line_of(text) for text in seen] == [*commands.values()]


def test_values_at_each_line(step):
    """Variables, parts of them, and what other invocations have written until then."""
    commands = ["break 16", "continue", "info locals", "info buffers", "print pair.place.y", "print pair.place[0]",
                "p data[own]", "p part[data[0]]", "p n", "rc", "c", "next", "next", "p part", "next", "p odd",
                "c", "p data[1]", "info args", "info locals"]  # fmt: skip
    seen = step("--invocation 1", commands=commands)
    data = [(n + 2) * 2 for n in range(4)]
    shown = "{" + ", ".join(map(str, data)) + "}"
    assert seen[1] == "Breakpoint 1 at own.comp:16"
    assert seen[2] == "Breakpoint 1, main () at own.comp:16\n16        part[own] = data[own];"
    assert seen[3].splitlines() == [
        "own = 1",
        "pair = {weight = 0.5, place = {1, -2}}",
        "i = 2",
        "odd = <not written>",
    ]
    empty = ", ".join(["<not written>"] * 4)
    assert sorted(seen[4].splitlines()) == [f"data = {shown}", "n = 2", f"part = {{{empty}}}"]
    assert seen[5:10] == [
        "pair.place.y = -2",
        "pair.place[0] = 1",
        f"data[own] = {data[1]}",
        "got 4, must be 0 to 3",
        "n = 2",
    ]
    assert seen[10].startswith("No more reverse-execution history.\n")
    assert seen[14] == f"part = {shown}"
    assert seen[16] == "odd = false"
    assert seen[17:19] == ["The invocation has ended.", f"data[1] = {data[2]}"]
    assert seen[19:] == ["No args.", "No locals."]


def test_a_fault_is_shown_with_the_index_of_this_invocation(step):
    """Invocation 0 has another one, which other commands would show."""
    np.save("data.npy", np.array([1, 1, 0, 0], np.uint32))
    seen = step("--invocation 3 --bind Data=data.npy", push="0", commands="c; p own; c; rc")
    line, fault = seen[1].splitlines()
    assert line_of(line) == 19
    assert fault.startswith("Fault: out of bounds: index 12 of 'data' is out of bounds: it has 4")
    assert seen[2:4] == ["own = 3", "The invocation has ended."]
    assert seen[4].splitlines()[-1] == fault


def test_reverse_continue_stops_at_a_fault_behind_a_call_in_the_line(step, tmp_path):
    """Backwards, other commands pass the place behind the call."""
    (tmp_path / "call.comp").write_text(SOURCE.replace("data[own] = by(", "data[own + 9u] = by("))
    seen = step(shader="call.comp", push="1", commands="c; b 16; c; rc; n; rn")
    fault = seen[1].splitlines()[-1]
    assert fault.startswith("Fault: out of bounds: index 9 of 'data'")
    assert line_of(seen[3].splitlines()[-1]) == 16
    assert [line_of(seen[4].splitlines()[-2]), seen[4].splitlines()[-1]] == [13, fault]
    assert [line_of(seen[n].splitlines()[0]) for n in (5, 6)] == [12, 13]
    assert "Fault" not in seen[6]


SCAN = """#version 450
layout(local_size_x = 8) in;
layout(std430, binding = 0) buffer Data { uint data[]; };
shared uint part[8];
uint scan(uint own, uint value) {
    part[own] = value;
    barrier();
    for (uint by = 1u; by < 8u; by *= 2u) {
        uint before = 0u;
        if (own > by)
            before = part[own - by];
        barrier();
        part[own] += before;
        barrier();
    }
    return part[own];
}
void main() {
    uint i = gl_GlobalInvocationID.x;
    uint sum = scan(gl_LocalInvocationID.x, data[i]);
    data[i] = sum;
}
"""
WROTE = "Written by invocation ({}, 0, 0) at scan.comp:{}"


@pytest.fixture
def scan(step, tmp_path):
    """Step through a scan that is wrong, in the second of two workgroups."""
    (tmp_path / "scan.comp").write_text(SCAN)
    np.save("ones.npy", np.ones(16, np.uint32))

    def run(commands, invocation=13):
        options = f"--invocation {invocation} --bind Data=ones.npy --groups 2"
        return step(options, shader="scan.comp", push=None, commands=commands)[1:]

    return run


def test_breakpoints_at_functions_and_with_conditions_and_until(scan):
    first, second = "scan if own == 5", "13 if by > 1 && before != own / 3 * 2"
    seen = scan(f"break {first}; b {second}; info b; c; c; p by; c")
    listed = f"1  {first}\n2  scan.comp:{second}"
    assert seen[:3] == [f"Breakpoint 1 at {first}", f"Breakpoint 2 at scan.comp:{second}", listed]
    stop = "Breakpoint 1, scan (own=5, value=1) at scan.comp:6\n6         part[own] = value;"
    assert seen[3] == stop
    assert [seen[4].splitlines()[0][:13], seen[5]] == ["Breakpoint 2,", "by = 4"]
    assert seen[6] == "The invocation has ended."
    there = scan("b 13; c; until 10; u; u; rc; u; u; until 99")
    assert [line_of(text) for text in there[1:8]] == [13, 10, 11, 12, 13, 14, 16]
    assert there[8] == "There is no code at scan.comp:99."
    there = scan("b 13 if nothing > 1; c")
    said = 'The condition is wrong: No symbol "nothing" in current context.'
    assert there[1].splitlines()[0] == said


def test_watch_says_who_wrote_an_element_forwards_and_backwards(scan):
    watch = "watch part[own - 1]"
    seen = scan(f"{watch}; b 6; c; {watch}; c; c; p part[4]; rc; rc; rc; info b")
    assert seen[0] == 'No symbol "own" in current context.'
    assert seen[3] == "Watchpoint 2: part[4]\nNot written so far."
    first = [
        "Watchpoint 2: part[4]",
        "Old value = <not written>",
        "New value = 1",
        WROTE.format(12, 6) + ": part[own] = value;",
    ]
    assert seen[4].splitlines() == [*first, "7         barrier();"]
    second = ["Old value = 1", "New value = 2", WROTE.format(12, 13) + ": part[own] += before;"]
    assert seen[5].splitlines() == [first[0], *second, "14            barrier();"]
    assert seen[6] == "part[4] = 2"
    assert seen[7].splitlines() == [first[0], *second, "13            part[own] += before;"]
    assert seen[8].splitlines()[:4] == first
    assert line_of(seen[8].splitlines()[-1]) == 6
    assert seen[9].startswith("No more reverse-execution history.")
    assert seen[10] == "1  scan.comp:6\n2  part[4]"


def test_watch_a_variable_of_a_function_and_the_last_change_of_a_buffer(scan):
    seen = scan(
        "b 12; c; watch before; delete 1; c; c; c 99; watch data[4]; watch data[12]; rc; invocation 3; i b"
    )
    assert seen[4].splitlines()[:3] == ["Watchpoint 2: before", "Old value = 1", "New value = 0"]
    assert seen[5].splitlines()[:3] == ["Watchpoint 2: before", "Old value = 0", "New value = 2"]
    assert [text.splitlines()[1] for text in seen[7:9]] == [
        WROTE.format(n, 21) + ": data[i] = sum;" for n in (4, 12)
    ]
    assert re.findall("^Watchpoint (.*)", seen[9], re.MULTILINE) == ["3: data[4]", "4: data[12]"]
    assert re.findall(r"^\d  (.*)", seen[11], re.MULTILINE) == ["data[4]", "data[12]"]


def test_another_invocation_and_workgroup(scan):
    """They are at the same visit of the line."""
    seen = scan("b 10; c; delete; next 5; p by; invocation 9; p by; invocation 8,0; workgroup 0; invocation; p own; invocation 0; c; invocation 9")  # fmt: skip
    assert seen[5].splitlines()[0] == "Invocation (9, 0, 0) of workgroup (1, 0, 0)"
    assert seen[5].splitlines()[-1] == seen[3].splitlines()[-1]
    assert seen[6] == seen[4]
    heads = [text.splitlines()[0] for text in seen[7:10]]
    assert heads[0] == "Invocation (8, 0, 0) of workgroup (1, 0, 0)"
    assert heads[1:] == ["Invocation (0, 0, 0) of workgroup (0, 0, 0)"] * 2
    assert seen[10] == "own = 0"
    assert seen[13].endswith("The invocation has ended.")


def test_an_invocation_that_has_not_run(step, tmp_path):
    """The first half of the workgroups does not end."""
    (tmp_path / "loop.comp").write_text(
        "#version 450\nlayout(std430, binding = 0) buffer Data { uint data[]; };\n"
        "void main() {\n  atomicAdd(data[0], 1u);\n  while (data[0] > 0u) atomicAdd(data[0], 2u);\n}"
    )
    options = ("--groups", "2", "--max-iterations", "9")
    seen = step(
        *options, shader="loop.comp", push=None, commands="watch data[0]; invocation 1; i b"
    )
    ended = "Invocation (1, 0, 0) of workgroup (1, 0, 0)\nA loop does not end."
    assert seen[2:] == [ended, "1  data[0]"]


def test_tables_of_neighbours(scan, step):
    seen = scan("b 11 if by == 4; c; table own, part[own - 1]; table/xw before; c; table own")
    rows = [row.split("  ") for row in seen[2].splitlines()]
    assert [[cell.strip() for cell in row if cell.strip()] for row in rows[:3]] == [
        ["invocation", "own", "part[own - 1]"], ["-", "(8, 0, 0)", "0", "?"], ["-", "(9, 0, 0)", "1", "1"]
    ]  # fmt: skip
    assert (len(rows), rows[6][0]) == (10, "*")
    # Invocations 0 to 4 do not take the branch of invocation 5.
    assert re.findall(r"^(.)", seen[3], re.MULTILINE) == [" ", *"-----*  ", "-"]
    assert "0x0" in seen[3]
    assert seen[5] == 'No symbol "own" in current context.'
    options = ("--groups", "2", "--subgroup-size", "4", "--invocation", "5")
    table = step(*options, shader="scan.comp", push=None, commands="table gl_LocalInvocationID")[1]
    assert [line.split("  ")[-1].strip() for line in table.splitlines()[1:]] == [
        f"{{{n}, 0, 0}}" for n in range(4, 8)
    ]


def test_displays_and_formats(step):
    commands = {
        "print/x own - 3u": "0xffffffff", "p/d own - 3": "-1", "p own * n + 0x10": "20", "p -own % 5 == 4 || !true": "true",
        "p/t data[own]": "0b10", "p (own - n) * 1.5": "0.0", "p 7 / 2": "3", "p 7.0 / 2": "3.5", "p ~own & 0xf": "13",
        "p pair.weight * own": "1.0", "p/x pair.weight": "0x3f000000", "p pair.place + 1": "{3, 0}", "p/f data": "{0.0, 0.0, 0.0, 0.0}",
        "p pair.place.yx": "{-1, 2}", "p pair.place.grr + 1": "{0, 3, 3}", "p pair.place.ts.y": "2",
        "p -pair.place.x / 4": "0", "p -7 % 4": "-3", "p own >> 1 < n": "true",
    }  # fmt: skip
    np.save("data.npy", np.array([1, 1, 2, 0], np.uint32))
    seen = step("--invocation 2 --bind Data=data.npy", commands=["n 2", *commands, "display/x own + 14", "n", "display pair.place", "display",
                "undisplay 1", "n"])  # fmt: skip
    shown = [text.rpartition(" = ")[2] for text in seen[2:]]
    expected = {**commands, "p/f data": shown[[*commands].index("p/f data")]}
    assert dict(zip(commands, shown, strict=False)) == expected
    first, after, second, both, _, last = seen[2 + len(commands) :]
    assert (first, second) == ("1: own + 14 = 0x10", "2: pair.place = {2, -1}")
    assert both == f"{first}\n{second}"
    assert [after.splitlines()[1:], last.splitlines()[-1:]] == [[first], [second]]


def test_check_offers_the_command_that_steps_to_its_finding(step, tmp_path, monkeypatch, capsys):
    (tmp_path / "race.comp").write_text(SOURCE.replace("barrier();", "") + "\n")
    options = ["race.comp", "--push", "2", "-D", "A=b c", "--subgroup-size", "4"]
    assert main(["debug", "check", *options]) == 1
    finding, one, other, *_, offer = capsys.readouterr().out.splitlines()
    assert (one, other) == (
        "   18 |     bool odd = (part[3u - own] & 1u) != 0u;",
        "   16 |     part[own] = data[own];",
    )
    words = shlex.split(offer.removeprefix("Step to the first: "))
    monkeypatch.setattr("sys.stdin", io.StringIO(""))
    assert (words[:3], main(words[1:])) == (["vkops", "debug", "step"], 0)
    fault = f"Fault: {finding.partition(': ')[2].rpartition(', 4 times')[0]}"
    assert fault in capsys.readouterr().out


def test_blank_lines_are_listed_as_blank_lines(step, tmp_path):
    (tmp_path / "blank.comp").write_text(SOURCE.replace("shared uint", "\n  \nshared uint"))
    lines = step(shader="blank.comp", commands="list 8")[1].splitlines()
    assert lines[5:8] == ["8", "9", "10    shared uint part[4];"]


def test_a_data_race_is_shown_at_the_access_of_this_invocation(step, tmp_path):
    (tmp_path / "race.comp").write_text(SOURCE.replace("barrier();", "") + "\n")
    for own in (0, 2):
        seen = step(f"--invocation {own}", commands="c; c", shader="race.comp")
        line, fault = seen[1].splitlines()
        assert line_of(line) == 18
        assert fault.startswith(
            f"Fault: data race: 'part[{3 - own}]' in shared memory: the first invocation reads it"
        )
        assert fault.endswith(f"; invocations ({own}, 0, 0) and ({3 - own}, 0, 0)")


def test_a_loop_in_one_line_stops_at_each_iteration(step):
    commands = "b 15; c; p pair.place.y; c; p i; c; c; i b; delete; i b; rc"
    seen = step("--invocation 1", commands=commands)
    assert seen[2].startswith("Breakpoint 1, ")
    assert seen[4].startswith("Breakpoint 1, ")
    assert seen[8:11] == ["1  own.comp:15", "", "No breakpoints."]


WRONG = ["foo", "123", "r", "n 0", "n x", "step 99999999999", "break 400", "break by.glsl:9", "break x", "delete 3", "list 99",
         "info", "info x", "print", "print data[", "print data[-1]", "print own.x", "print own[0]", "print nothing",
         "print pair.x", "print pair.place.z", "print pair.place.xz", "print pair.place.xg", "print own.xx", "print data[pair]", "print 3", "print " + "9" * 5000, "print a" + "[" * 3000,
         "help x", "! x", "finish x", "watch 3", "watch nothing", "until x", "print/q own", "print more + 1", "print own +",
         "display nothing", "undisplay 9", "invocation 4", "invocation a", "workgroup 0,0,1", "table own, nothing", "break main.x",
         "print pair.weight << 1", "print pair", "print pair + 1", "print/f odd"]  # fmt: skip


def test_a_wrong_command_gets_one_line(step, message):
    for line, text in zip(WRONG, step(commands=WRONG)[1:], strict=True):
        assert text.count("\n") == 0, line
        message(text if len(text) < 200 else text[:40])


def test_help_and_lists(step):
    seen = step(commands="help; help rn; list; list 2; bt; b by.glsl:2; c; bt; l")
    for name in ("next", "step", "finish", "continue", "reverse-step", "reverse-next", "reverse-continue", "print", "break",
                 "info", "list", "backtrace", "quit"):  # fmt: skip
        assert re.search(rf"^{name} +[A-Z]", seen[1], re.MULTILINE)
    assert seen[2] == "reverse-next      Go back by a line of this function."
    assert [line[:2].strip() for line in seen[3].splitlines()] == [str(n) for n in range(5, 15)]
    assert [line[:2].strip() for line in seen[4].splitlines()] == [str(n) for n in range(1, 11)]
    assert seen[5] == "#0  main () at own.comp:10"
    assert seen[8] == "#0  by (number=0, count=0) at by.glsl:2\n#1  main () at own.comp:13"
    assert seen[9].splitlines() == [f"{n:<5} {line}" for n, line in enumerate(BY.splitlines(), 1)]


def test_at_most_200_numbers_are_printed(step, tmp_path):
    """Also of arrays in arrays, and no temporary variables of the compiler."""
    (tmp_path / "pairs.comp").write_text("""#version 450
layout(local_size_x = 1) in;
layout(std430, binding = 0) buffer Pairs { uvec2 pairs[]; };
void main() { int n = 5;
    n += pairs[0].x == 0u ? int(pairs[1].x) : -n;
    pairs[0].y = uint(n);
}""")
    np.save(tmp_path / "pairs.npy", np.arange(400, dtype=np.uint32))
    options = {"shader": "pairs.comp", "push": None}
    seen = step("--bind Pairs=pairs.npy", commands="print pairs; n; info locals", **options)
    pairs = ", ".join(f"{{{n}, {n + 1}}}" for n in range(0, 200, 2))
    assert seen[1] == f"pairs = {{{pairs}, ...}}"
    assert re.findall(r"^\S+ =", seen[3], re.M) == ["n ="]


def test_commands_of_a_file(step, tmp_path):
    """They are read in place of standard input; an empty line repeats, as there."""
    (tmp_path / "commands").write_text("next\n\np own\n")
    seen = step("--commands commands", commands="next; ; p own")
    assert [line_of(text) for text in seen[1:3]] == [11, 12]
    assert seen[3] == "own = 0"


def test_an_interrupt_at_the_prompt_ends_it(step, monkeypatch, capsys):
    def interrupt(self, line):
        raise KeyboardInterrupt

    monkeypatch.setattr("sys.stdin", io.StringIO("next\n"))
    monkeypatch.setattr("cmd.Cmd.onecmd", interrupt)
    assert main(["debug", "step", "own.comp", "--push", "2"]) == 130
    assert capsys.readouterr().err == "Interrupted\n"


# -- the record ------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(4))
def test_the_record_does_not_change_results(seed):
    text = Generator(seed).program()
    source = np.random.default_rng(seed).integers(0, 2**32, 32, dtype=np.uint32)
    loaded = shaders.load(text, debug=True, name="random")
    case = Case.of(loaded, {"Source": source, "Target": 4 * 32 * COUNT}, threads=32)
    contents = []
    for observers in ([], [recorder := Recorder(0), Tracer([0])]):
        memory = case.memory()
        Run(case.shader, memory, case.groups, case.push, Settings(), observers=observers).run()
        contents.append(memory[0, 1].contents())
    np.testing.assert_array_equal(*contents)
    assert len(recorder.stops) > 40


LOG = """#version 450
layout(local_size_x = 8) in;
layout(std430, binding = 0) buffer Log { uint log[]; };
void main() {
    uint own = gl_LocalInvocationIndex, x = own * 77u, at = own * 40u;
    for (uint k = 0u; k < 4u + own % 3u; ++k) {
        if ((x & 1u) == 0u) {
            x = x / 2u + k;
            log[at++] = x;
        } else {
            x = x * 3u + 1u;
            log[at++] = x;
        }
    }
}
"""


@pytest.mark.parametrize("own", [0, 3, 7])
def test_values_are_those_that_the_shader_logs_itself(step, tmp_path, own):
    (tmp_path / "log.comp").write_text(LOG)
    log = check(LOG, {"Log": np.zeros(320, np.uint32)}).buffers["Log"]
    np.save("zeros.npy", np.zeros(320, np.uint32))
    commands = ["b 9", "b 12", *["c", "p x"] * (4 + own % 3)]
    arguments = ("--invocation", str(own), "--bind", "Log=zeros.npy")
    seen = step(*arguments, shader="log.comp", push="", commands=commands)
    values = [int(text.split()[-1]) for text in seen[4::2]]
    assert values == log[own * 40 :][: len(values)].tolist()
    back = ["c"] * (1 + len(values)) + ["rc", "p x"] * len(values)
    seen = step(*arguments, shader="log.comp", push="", commands=["b 9", "b 12", *back])
    assert [int(text.split()[-1]) for text in seen if text.startswith("x = ")] == values[::-1]


def without(spirv, *opcodes):
    """Return a module without some instructions."""
    words = np.frombuffer(spirv, np.uint32)
    kept = [words[:HEADER_WORDS]]
    kept += [words[at : at + n] for at, op, n in positions(words.tolist()) if op not in opcodes]
    return np.concatenate(kept).tobytes()


def test_what_a_module_lacks(step, tmp_path, message, capsys):
    plain = shaders.read(SOURCE, include={"by.glsl": BY}, debug=True)
    (tmp_path / "plain.spv").write_bytes(without(plain, Op.Name, Op.MemberName, Op.Source, 2))
    seen = step(shader="plain.spv", commands="next; info locals; list")
    assert "no source text (OpSource)" in seen[0]
    assert "no names (OpName)" in seen[0]
    assert re.fullmatch(r"11    in .*", seen[1])
    number = re.match(r"(%\d+) = 0\n", seen[2])[1]
    assert step(shader="plain.spv", commands=["next", f"print {number}"])[2] == f"{number} = 0"
    (tmp_path / "lines.spv").write_bytes(without(plain, Op.Line))
    assert main(["debug", "step", "lines.spv", "--push", "2"]) == 1
    message(capsys.readouterr().err.strip())


def test_buffers_of_hlsl(step, tmp_path):
    (tmp_path / "own.hlsl").write_text(
        "RWStructuredBuffer<float4> data : register(u0);\n[numthreads(4, 1, 1)]\n"
        "void main(uint3 id : SV_DispatchThreadID) {\n  data[id.x] = data[3 - id.x].y;\n}\n"
    )
    seen = step(shader="own.hlsl", push="", commands="c; c; p data[0].w; p data[3][1]; p data")
    race = "Fault: data race: 'data[0].y' in a storage buffer"
    assert [race in text for text in seen[:2]].count(True) == 1  # glslang 15 stops at main() before
    assert seen[2] == "The invocation has ended."
    assert seen[3:5] == ["data[0].w = 4.0", "data[3][1] = 1.0"]
    assert seen[5].startswith("data = {{4.0, 4.0, 4.0, 4.0}, ")


BY_VALUE = """OpCapability Shader
OpMemoryModel Logical GLSL450
OpEntryPoint GLCompute %1 "main"
OpExecutionMode %1 LocalSize 2 1 1
%2 = OpString "own.slang"
OpName %5 "twice"
OpName %6 "pair"
%7 = OpTypeVoid
%8 = OpTypeFunction %7
%9 = OpTypeInt 32 1
%10 = OpTypeVector %9 2
%11 = OpTypeFunction %9 %10
%12 = OpConstant %9 -21
%13 = OpConstantComposite %10 %12 %12
%1 = OpFunction %7 None %8
%14 = OpLabel
OpLine %2 7 0
%15 = OpFunctionCall %9 %5 %13
OpReturn
OpFunctionEnd
%5 = OpFunction %9 None %11
%6 = OpFunctionParameter %10
%16 = OpLabel
OpLine %2 3 0
%17 = OpCompositeExtract %9 %6 0
OpReturnValue %17
OpFunctionEnd
"""


def test_parameters_by_value(step, tmp_path):
    """As Slang passes them; glslang passes pointers."""
    (tmp_path / "own.spv").write_bytes(assembled(BY_VALUE))
    seen = step(
        "--invocation 1", shader="own.spv", push="", commands="step; info args; p pair.y; rs; bt"
    )
    assert seen[1] == "twice (pair={-21, -21}) at own.slang:3\n3     in own.slang"
    assert seen[2:4] == ["pair = {-21, -21}", "pair.y = -21"]
    assert seen[5] == "#0  %1 () at own.slang:7"


@pytest.mark.parametrize("body", ["if (own == 1u) while (true) i += 2u;", "while (true) i += 2u;"])
def test_a_loop_that_does_not_end(step, tmp_path, body):
    """The record ends where the run stopped: this invocation, or another one, is in a loop."""
    (tmp_path / "own.comp").write_text(
        "#version 450\nlayout(local_size_x = 2) in;\n"
        f"void main() {{ uint own = gl_LocalInvocationIndex, i = 1u;\n{body} }}"
    )
    limit = ["--max-iterations", "9", "--invocation", "1"]
    seen = step(*limit, push="", commands="continue; print i; continue")
    assert seen[1].endswith("Fault: loop: did not end: no invocation left it in 9 iterations")
    assert seen[2:] == ["i = 19", "A loop does not end."]
    seen = step(*limit[:2], push="", commands="continue")
    assert seen[1].endswith("A loop does not end.") == ("own ==" in body)


def test_wrong_arguments(step, command, message):
    wrong = ("--invocation 4", "--invocation 0,0,1", "--invocation a", "--commands missing")
    for arguments in wrong:
        status, out, err = command("debug", "step", "own.comp", "--push", "2", *arguments.split())
        assert (status in (1, 2), out) == (True, "")
        message(err.strip())
