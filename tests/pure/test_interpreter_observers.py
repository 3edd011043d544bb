"""Observers of the interpreter: all see the same run, and a check is a class of a few lines."""

import inspect
from collections import Counter
from pathlib import Path

import numpy as np

from vkops.debug.shader_check import CHECKS, Case
from vkops.interpreter.observer import EVENTS, Observer
from vkops.interpreter.races import Races
from vkops.interpreter.recorder import Recorder
from vkops.interpreter.scheduler import Run
from vkops.interpreter.state import Settings
from vkops.interpreter.tracing import Tracer
from vkops.shaders.binary import Op
from vkops.shaders.grammar import FUNCTIONS

TEXT = """#version 450
layout(local_size_x = 4) in;
layout(std430, binding = 0) buffer Data { uint data[]; };
shared uint part[4];
uint twice(uint value) { return value * 2u; }
void main() {
    uint own = gl_LocalInvocationIndex;
    part[own] = twice(data[own]);
    memoryBarrierShared();
    barrier();
    if (own < 2u) atomicAdd(data[own], part[3u - own] / (own + 1u));
}"""


class Count(Observer):
    """Counts what it is told."""

    def __init__(self):
        self.events = Counter()


def counted(name):
    def method(self, *about):
        self.events[name] += 1

    return method


for event in EVENTS:
    setattr(Count, event, counted(event))


def test_observers_combine():
    """A recorder, a tracer, a counter and all checks observe one run."""
    case = Case.of(TEXT, {"Data": np.arange(1, 5, dtype=np.uint32)})
    count, recorder, tracer = Count(), Recorder(1), Tracer([1])
    _, memory = case.run(observers=[count, recorder, tracer])
    assert memory[0, 0].contents().view(np.uint32).tolist() == [9, 5, 3, 4]
    assert not [*case.findings]
    lines = [stop.place.line for stop in recorder.stops]  # some compilers give the last brace one
    assert [line for line in lines[:-1] if line != 12] == [7, 8, 5, 8, 9, 10, 11]
    (last,) = (made for (_, who), made in tracer.changes.items() if made.place.line == 11)
    assert {"data[1]", "own"} == {line.name for line in tracer.lines(last)}
    only_once = dict.fromkeys(("begin", "workgroups", "end", "barrier"), 1)
    assert {name: count.events[name] for name in only_once} == only_once
    assert count.events["enter"] == count.events["leave"] == 2
    assert count.events["access"] > 8
    assert count.events["outside"] == 0


def test_without_checks_nothing_is_found():
    text = TEXT.replace("barrier();", "data[own + 9u] = 1u;")
    case = Case.of(text, {"Data": np.arange(1, 5, dtype=np.uint32)})
    for checks in ([], [Races(), *[kind() for kind in CHECKS]]):
        memory = case.memory()
        run = Run(case.shader, memory, case.groups, case.push, Settings(), observers=checks)
        run.run()
        kinds = {finding.kind for finding in run.findings}
        assert kinds == ({"data race", "out of bounds"} if checks else set())


class Roots(Observer):
    """Finds calls of sqrt() and inversesqrt() with a negative number."""

    def arithmetic(self, step, operands, result):
        """Look at the numbers, one row for each invocation."""
        names = ("Sqrt", "InverseSqrt")
        if step.op == Op.ExtInst and step.operands[1] in map(FUNCTIONS.get, names):
            wrong = operands[0] < 0
            rows = wrong.reshape(len(wrong), -1).any(1)
            self.machine.report_where(rows, "root", "takes the root of a negative number")


def test_the_check_in_contributing():
    """It finds what it says, with the line and an invocation, and is the text of the page."""
    text = TEXT.replace("twice(data[own])", "floatBitsToUint(sqrt(own - 1.0))")
    case = Case.of(text, {"Data": np.arange(1, 5, dtype=np.uint32)})
    case.run(observers=[Roots()])
    (found,) = case.findings
    assert (found.kind, found.place.line, found.count) == ("root", 8, 1)
    assert found.invocations == ((0, 0, 0),)
    page = (Path(__file__).parents[2] / "CONTRIBUTING.md").read_text("utf-8")
    for line in inspect.getsource(Roots).strip().splitlines():
        assert f"\n{'+' + line}\n" in page
