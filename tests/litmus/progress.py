"""Forward progress: the litmus tests of Dat3M, in an exact search and in the debugger.

A test ends under a model of Dat3M if no execution of it goes on for ever in which those invocations
go on that must by this model. Each test says the same of workgroups as of subgroups.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from itertools import groupby
from math import inf
from pathlib import Path
from typing import NamedTuple

import numpy as np

from litmus.executions import Machine
from litmus.program import Instruction, Jump, Local, NotExpressibleError, Test
from litmus.programs import PROGRAMS, TABLES, Dat3MProgram
from vkops.debug.shader_check import Case
from vkops.interpreter.schedules import explored

MODELS: dict[str, Callable[[set[int], set[int]], set[int]]] = {
    "Fair": lambda live, _: live,
    "HSA": lambda live, _: {*sorted(live)[:1]},
    "OBE": lambda live, begun: live & begun,
    "HSA_OBE": lambda live, begun: {*sorted(live)[:1]} | (live & begun),
    "LOBE": lambda live, begun: {who for who in live if who <= max(begun, default=-1)},
    "UNFAIR": lambda _live, _begun: set(),
}
"""For each model, which of the invocations that have not ended go on, with those that have begun."""

WAITS = frozenset(("loop", "forward progress"))
"""The findings of what need not end."""

CHECKED, MOST, SEED = 8, 300, 1
"""How many schedules ``check`` runs; how many are tried after these until one has a finding; and their seed."""

_ROW = re.compile(r"(?m)^(?:;\s*)?(litmus/\S+\.litmus),([01])$")


def expected(folder: Path) -> dict[str, dict[str, bool]]:
    """Return by the paths of tests under which models they end.

    That includes those which Dat3M has in comments: they end, but its own search cannot show it.
    """
    verdicts: defaultdict[str, dict[str, bool]] = defaultdict(dict)
    for model in MODELS:
        table = folder / f"dartagnan/src/test/resources/VULKAN-Liveness-{model}-expected.csv"
        if table.is_file():
            for path, verdict in _ROW.findall(table.read_text()):
                verdicts[path][model] = verdict == "1"
    return dict(verdicts)


# -- the definition --------------------------------------------------------------------------------


class _Unbounded(Machine):
    """A test that was executed up to some point; two are alike if they go on alike."""

    max_jumps = inf

    @property
    def key(self) -> tuple[object, ...]:
        values = frozenset(self.registers.items()), frozenset(self.memory.items())
        return tuple(self.at), *values, self.begun

    @property
    def begun(self) -> frozenset[int]:
        return frozenset(event.who for event in self.events)

    @property
    def live(self) -> set[int]:
        return {who for who in range(len(self.at)) if self.next(who) is not None}


class Executions:
    """All states of a test, and for each what follows if an invocation goes on."""

    def __init__(self, test: Test) -> None:
        start = _Unbounded(test)
        self._first = start.key
        self._states = {start.key: start}
        self._next: dict[object, list[tuple[int, object]]] = {}
        rest = [start]
        while rest:
            state = rest.pop()
            following = self._next[state.key] = []
            for who in state.live:
                after = state.copy()
                after.step((who,))
                following.append((who, after.key))
                if after.key not in self._states:
                    self._states[after.key] = after  # type: ignore[assignment]
                    rest.append(after)  # type: ignore[arg-type]

    def end(self, model: str) -> bool:
        """Whether all executions that a model allows end."""
        for cycle in self._cycles():
            state = self._states[next(iter(cycle))]
            steps = {who for key in cycle for who, after in self._next[key] if after in cycle}
            if steps and MODELS[model](state.live, set(state.begun)) <= steps:
                return False
        return True

    def _cycles(self) -> Iterator[set[object]]:
        """Yield the largest sets of states that can be reached from each other, as Tarjan found."""
        lowest: dict[object, int] = {}
        path: list[object] = []
        done: set[object] = set()
        calls = [(self._first, iter(self._next[self._first]))]
        order = {self._first: 0}
        while calls:
            key, following = calls[-1]
            if key not in lowest:
                lowest[key] = order[key] = len(order)
                path.append(key)
            for _, after in following:
                if after not in lowest:
                    calls.append((after, iter(self._next[after])))
                    break
                if after not in done:
                    lowest[key] = min(lowest[key], order[after])
            else:
                calls.pop()
                if calls:
                    lowest[calls[-1][0]] = min(lowest[calls[-1][0]], lowest[key])
                if lowest[key] == order[key]:
                    at = path.index(key)
                    yield {*path[at:]}
                    done.update(path[at:])
                    del path[at:]


# -- the debugger ----------------------------------------------------------------------------------

_SCOPE = "gl_ScopeQueueFamily, 0, 0"


def shader(test: Test) -> str:
    """Return a test as GLSL: a loop for each invocation, which executes from ``at`` on."""
    names = sorted({each.variable for each in test.instructions})
    body = []
    for who, invocation in enumerate(test.invocations):
        used = sorted(
            {c.register for c in invocation.code if not isinstance(c, Jump) and c.register}
        )
        body += [
            f"if (own == {who}u) {{ uint {', '.join(f'{name} = 0u' for name in ['at', *used])};"
        ]
        body += [f"    while (at < {len(invocation.code)}u) {{"]
        for number, code in enumerate(invocation.code):
            step = f"at = {number + 1}u;"
            if isinstance(code, Local) or (isinstance(code, Instruction) and code.operation):
                raise NotExpressibleError("an operation on registers")
            if isinstance(code, Jump):
                left, right = (
                    each if isinstance(each, str) else f"{each}u" for each in code.operands
                )
                same = "!=" if code.operation == "bne" else "=="
                step = f"at = {left} {same} {right} ? {invocation.labels[code.label]}u : {number + 1}u;"
            elif code.kind == "store":
                step = f"atomicStore({code.variable}, {code.value}u, {_SCOPE}); {step}"
            elif code.kind == "load":
                step = f"{code.register} = atomicLoad({code.variable}, {_SCOPE}); {step}"
            elif code.kind == "change":
                step = f"{code.register} = atomicExchange({code.variable}, {code.value}u, {_SCOPE}); {step}"
            else:
                raise NotExpressibleError(f"a {code.kind}")
            body.append(f"        if (at == {number}u) {{ {step} }}")
        body.append("    } }")
    return "\n".join([
        "#version 450", "#extension GL_KHR_memory_scope_semantics : require",
        "layout(local_size_x = SIZE) in;",
        f"layout(std430, binding = 0) buffer Words {{ uint {', '.join(names)}; }};",
        "void main() {", "uint own = gl_GlobalInvocationID.x;", *body, "}",
    ])  # fmt: skip


class Isolation(NamedTuple):
    """Where each invocation of a test is alone: in a workgroup, or in a subgroup."""

    name: str
    groups: int
    size: int


def isolations(test: Test) -> tuple[Isolation, ...]:
    """Return where the invocations of a test run."""
    count = len(test.invocations)
    return Isolation("workgroups", count, 1), Isolation("subgroups", 1, count)


def found(test: Test, isolation: Isolation) -> set[str]:
    """Return the findings of what need not end, of ``check`` or of the first schedule that has one."""
    names = sorted({each.variable for each in test.instructions})
    words = np.array([test.initial.get(name, 0) for name in names], np.uint32)
    case = Case.of(
        shader(test), {"Words": words}, isolation.groups, subgroup_size=1, max_iterations=1000,
        schedules=CHECKED, seed=SEED, defines={"SIZE": str(isolation.size)}, name="test",
    )  # fmt: skip
    kinds = {finding.kind for finding in case.check().findings} & WAITS
    for schedule in explored(CHECKED + MOST, SEED)[CHECKED:]:
        if kinds:
            break
        case.run(schedule=schedule)
        kinds = {finding.kind for finding in case.findings} & WAITS
    return kinds


def claim(verdicts: dict[str, bool], name: str) -> str:
    """Return what Dat3M says of a test of workgroups or of subgroups."""
    if verdicts["OBE"]:
        return f"{name}: it ends"
    return f"{name}: it ends only if all go on" if verdicts["Fair"] else f"{name}: it need not end"


def agrees(verdicts: dict[str, bool], kinds: set[str]) -> bool:
    """Whether findings are those of a test; what always can hang may be a finding of each kind."""
    if verdicts["OBE"]:
        return not kinds
    return kinds == {"forward progress"} if verdicts["Fair"] else bool(kinds)


# -- programs --------------------------------------------------------------------------------------

Hierarchy = dict[str, str]
"""The model of the workgroups of a queue family, of the subgroups of a workgroup and so on; "" is the default."""

OURS = {"QUEUE_FAMILY": "OBE", "WORK_GROUP": "OBE", "SUB_GROUP": "UNFAIR"}
"""What the debugger takes for granted."""

_WEAKER = {
    "UNFAIR": {"UNFAIR", "HSA", "OBE", "HSA_OBE", "LOBE", "FAIR"},
    "HSA": {"HSA", "HSA_OBE", "FAIR"}, "OBE": {"OBE", "HSA_OBE", "LOBE", "FAIR"},
    "HSA_OBE": {"HSA_OBE", "FAIR"}, "LOBE": {"LOBE", "FAIR"}, "FAIR": {"FAIR"},
}  # fmt: skip
"""The models under which at least those invocations go on that do so under a model."""

_HIERARCHY = re.compile(r"Hierarchy (\w+) = ProgressModel\.\w+\(([^;]*)\);")
_PROGRAM_ROW = re.compile(r'\{"([\w-]+\.spvasm)", \d+, (\w+), (PASS|FAIL)\}')
_SCOPED = re.compile(r"Vulkan\.(\w+),\s*ProgressModel\.(\w+)")


def programs(folder: Path) -> Iterator[tuple[str, str, str, str]]:
    """Yield each program with a model, the verdict, and what is made of it; and what was found."""
    (table,) = (folder / TABLES).rglob("SpirvLivenessTest.java")
    text = table.read_text()
    models: dict[str, Hierarchy] = {}
    for name, inside in _HIERARCHY.findall(text):
        default = re.search(r"ProgressModel\.(\w+)", inside)
        assert default is not None
        models[name] = {"": default[1], **dict(_SCOPED.findall(inside))}
    for path, rows in groupby(_PROGRAM_ROW.findall(text), key=lambda row: f"termination/{row[0]}"):
        program = Dat3MProgram((folder / PROGRAMS / path).read_text())
        outcomes = program.run(orders=explored(CHECKED + MOST, SEED)[:100])
        findings = {kind: text for each in outcomes for kind, text in each.findings.items()}
        hangs = bool({"barrier", *WAITS} & findings.keys())
        sizes = program.groups, program.subgroups, program.lanes
        scopes = [scope for scope, size in zip(OURS, sizes, strict=True) if size > 1]
        for _, model, result in rows:
            verdict = "a model under which others go on"
            if result == "PASS" and _is_weaker(models[model], OURS, scopes):
                verdict = "disagrees" if hangs else "agrees"
            elif result == "FAIL" and _is_weaker(OURS, models[model], scopes):
                verdict = "agrees" if hangs else "disagrees"
            ends = "it ends" if result == "PASS" else "it need not end"
            yield path, f"{model}: {ends}", verdict, "; ".join(findings.values())


def _is_weaker(one: Hierarchy, other: Hierarchy, scopes: Iterable[str]) -> bool:
    """Whether at least those go on under another model that do so under one."""
    pairs = [
        tuple(model.get(scope, model.get("", "")) for model in (one, other)) for scope in scopes
    ]
    return all(after in _WEAKER[before] for before, after in pairs)
