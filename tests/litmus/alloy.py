"""Reads the litmus tests of Khronos's Alloy model (KhronosGroup/Vulkan-MemoryModel, alloy/tests)."""

from __future__ import annotations

import re
from pathlib import Path

from litmus.program import SCOPES, Claim, Instruction, Invocation, Registers, Test

_VERDICT = re.compile(r"(SATISFIABLE|NOSOLUTION)\s+(NOCHAINS\s+)?(.*)")


def read(path: Path) -> Test:
    """Return the test in a file."""
    test = Test(path.stem)
    place = [0, 0, 0]  # the last subgroup, workgroup and queue family
    numbers: dict[int, int] = {}  # that which the file gives an invocation, and ours
    conditions: dict[str, int] = {}
    verdicts, waits = [], []
    number = 0
    for line in path.read_text().splitlines():
        word, *rest = line.split() or [""]
        if not word or word.startswith("//"):
            continue
        if word in ("NEWSG", "NEWWG", "NEWQF"):
            place[("NEWSG", "NEWWG", "NEWQF").index(word)] += 1
        elif word == "NEWTHREAD":
            number = int(rest[0]) if rest else number + 1
            numbers[number] = len(test.invocations)
            test.invocations.append(Invocation(*place))
        elif word == "SSW":
            waits.append((int(rest[0]), int(rest[1])))
        elif word == "SLOC":
            test.locations[rest[0]] = test.locations[rest[1]] = rest[0]
        elif match := _VERDICT.match(line):
            verdicts.append(match.groups())
        else:
            who = len(test.invocations) - 1
            instruction, expected = _instruction(word, rest, f"r{len(conditions)}")
            test.invocations[-1].code.append(instruction)
            if instruction.reads:
                conditions[f"{who}:{instruction.register}"] = expected
    test.waits = [(numbers[one], numbers[other]) for one, other in waits]

    def holds(results: Registers) -> bool:
        return all(results[name] == value for name, value in conditions.items() if value >= 0)

    for verdict, without_chains, formula in verdicts:
        if without_chains or "#rs" in formula:
            continue  # of implementations without chains, or of another relation
        is_racy = {"#dr=0": False, "#dr>0": True}.get(formula.split()[-1])
        claim = Claim(verdict == "SATISFIABLE", is_racy, holds, f"{verdict} {formula}")
        test.claims.append(claim)
    return test


def _instruction(word: str, rest: list[str], register: str) -> tuple[Instruction, int]:
    """Return an instruction, and the value that it must read, or -1."""
    tokens = set(word.split("."))
    scope = next((SCOPES[each] for each in tokens if each.startswith("scope")), 0)
    semantics = frozenset(int(each[-1]) for each in tokens if each.startswith("semsc"))
    common = {
        "scope": scope, "acquires": "acq" in tokens, "releases": "rel" in tokens, "semantics": semantics,
        "makes_available": "semav" in tokens, "makes_visible": "semvis" in tokens,
    }  # fmt: skip
    if tokens & {"avdevice", "visdevice"}:
        return Instruction("device"), -1
    if "cbar" in tokens:
        return Instruction("barrier", instance=rest[0], **common), -1
    if "membar" in tokens:
        return Instruction("fence", **common), -1
    is_change = "rmw" in tokens or tokens >= {"ld", "st"}
    kind = "change" if is_change else "load" if "ld" in tokens else "store"
    variable, *values = (each for each in rest if each != "=")
    values = [int(each) for each in values] or [-1]
    written = values[-1] if kind == "change" else values[0]
    instruction = Instruction(
        kind, variable, next(int(each[-1]) for each in tokens if re.fullmatch(r"sc\d", each)),
        is_atomic=is_change or "atom" in tokens, is_coherent=bool(tokens & {"av", "vis"}),
        is_private=not tokens & {"av", "vis", "nonpriv", "atom", "rmw"},
        register="" if kind == "store" else register, value=max(written, 0), **common,
    )  # fmt: skip
    return instruction, values[0]
