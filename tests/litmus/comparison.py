"""Runs executions of litmus tests in the debugger, and compares its data races with the model's."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from litmus.executions import Execution, executions
from litmus.model import races
from litmus.program import Claim, NotExpressibleError, Test
from litmus.translation import Layout, Translation, layout, storages
from vkops.debug.shader_check import Case
from vkops.interpreter.races import Races
from vkops.interpreter.scheduler import Run
from vkops.interpreter.state import Settings

NO_TURNS = "no order has the results that are meant"
"""Only executions in which invocations take turns can be run; the model allows more."""

Pairs = set[tuple[int, int]]
"""Numbers of two events, the earlier one first."""


def found(translation: Translation, where: Layout) -> tuple[Pairs, list[int]]:
    """Return the data races that the debugger finds in an execution, and what events have read."""
    case = Case.of(
        translation.assembled(), translation.buffers, where.groups, subgroup_size=where.subgroup_size,
        name="litmus",
    )  # fmt: skip
    settings = Settings(where.subgroup_size, "descending")
    memory = case.memory()
    run = Run(case.shader, memory, case.groups, case.push, settings, observers=[Races()])
    run.run()
    pairs = {
        (min(lines), max(lines))
        for finding in run.findings
        if finding.kind == "data race" and finding.other
        for lines in [(finding.place.line - 1, finding.other.line - 1)]
    }
    return pairs, np.ravel(case.results(memory).get("results", ())).tolist()


@dataclass
class Verdict:
    """The result of one test.

    Attributes:
        test: the test.
        reason: why it cannot be expressed; empty if it was run.
        runs: how many executions were run, with each way to store variables.
        differences: executions in which the debugger and the model say otherwise, as texts.
        claims: for each claim, "agrees", "disagrees", or ``NO_TURNS``.
    """

    test: Test
    reason: str = ""
    runs: int = 0
    differences: list[str] = field(default_factory=list)
    claims: list[tuple[Claim, str]] = field(default_factory=list)


def judge(test: Test, count: int = 4) -> Verdict:
    """Run a test in orders that are chosen for its claims, and in others; ``count`` of each."""
    verdict = Verdict(test)
    try:
        where = layout(test)
        ways = list(storages(test))
        if not ways:
            raise NotExpressibleError("storage classes that share memory, or of several workgroups")
        every = list(executions(test))
        if not every:
            raise NotExpressibleError("loops that end in few orders")
        chosen = dict.fromkeys(range(min(count, len(every))))
        for claim in test.claims:
            meant = [number for number, each in enumerate(every) if claim.holds(each.results)]
            if claim.is_racy:  # those which the model says have one come first
                meant.sort(key=lambda number: not races(test, every[number]))
            chosen |= dict.fromkeys(meant[:count])
        outcomes = {
            number: _is_racy(test, every[number], where, ways[turn % len(ways)], verdict)
            for turn, number in enumerate(chosen)
        }
    except NotExpressibleError as error:
        verdict.reason = str(error)
        return verdict
    for claim in test.claims:
        meant = [o for number, o in outcomes.items() if claim.holds(every[number].results)]
        agrees = any(claim.is_racy in (None, each) for each in meant) == claim.exists
        result = "agrees" if agrees else "disagrees" if meant else NO_TURNS
        verdict.claims.append((claim, result))
    return verdict


def _is_racy(
    test: Test, execution: Execution, where: Layout, storage: dict[int, str], verdict: Verdict
) -> bool:
    """Return whether the debugger finds a data race in an execution; note what the model says else."""
    expected = races(test, execution)
    pairs, read = found(Translation(test, execution, storage), where)
    verdict.runs += 1
    values = [event.read for event in execution.events]
    if any(values) and read[: len(values)] != values:
        verdict.differences.append(f"{test.name} {storage}: other values: {read} for {values}")
    accused = {_location(test, execution, pair) for pair in pairs}
    lost = {pair for pair in expected if _location(test, execution, pair) not in accused}
    for what, kind in ((lost, "missed"), (pairs - expected, "false")):
        if what:
            verdict.differences.append(_text(test, kind, storage, what, execution))
    return bool(pairs)


def _location(test: Test, execution: Execution, pair: tuple[int, int]) -> str:
    return test.location(execution.events[pair[0]].code.variable)


def _text(
    test: Test, what: str, storage: dict[int, str], pairs: Pairs, execution: Execution
) -> str:
    steps = "; ".join(f"{n}: {show(event)}" for n, event in enumerate(execution.events))
    return f"{test.name} {storage}: {what} {sorted(pairs)} in {steps}"


def show(event) -> str:
    """An event as the tests write it."""
    code = event.code
    kind = {"load": "ld", "store": "st", "change": "rmw", "fence": "membar", "barrier": "cbar"}[
        code.kind
    ]
    words = [
        kind, "atom" * code.is_atomic, "acq" * code.acquires, "rel" * code.releases,
        "private" * (bool(code.variable) and code.is_private), "coherent" * code.is_coherent,
        ("sg", "wg", "qf", "dv")[code.scope] if not code.variable or code.is_atomic or code.is_coherent else "",
        f"sc{code.storage}" * bool(code.variable), *(f"semsc{n}" for n in sorted(code.semantics)),
        "semav" * code.makes_available, "semvis" * code.makes_visible,
    ]  # fmt: skip
    return f"P{event.who} {'.'.join(filter(None, words))} {code.variable}{code.instance}"
