"""Reads the litmus tests of Dat3M for Vulkan (hernanponcedeleon/Dat3M, litmus/VULKAN)."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path

from litmus.executions import OPERATIONS
from litmus.program import (
    SCOPES,
    Claim,
    Instruction,
    Invocation,
    Jump,
    Local,
    NotExpressibleError,
    Registers,
    Test,
)

_PLACE = re.compile(r"P(\d+)\s*@\s*sg\s*(\d+)\s*,\s*wg\s*(\d+)\s*,\s*qf\s*(\d+)")
_CONDITION = re.compile(r"(?s)(~?exists|forall|filter)\s*(.*)")
_OPERAND = r"(P?\d+\s*:\s*\w+|-?\w+)"
_TERM = re.compile(rf"\s*{_OPERAND}\s*(==?|!=)\s*{_OPERAND}\s*")

RESULTS, RACES = "VULKAN-expected.csv", "VULKAN-DR-expected.csv"
"""The files with the expected verdicts, in dartagnan/src/test/resources."""


def expected(folder: Path, name: str) -> dict[str, bool]:
    """Return what a file of verdicts says, by the paths of tests."""
    lines = (folder / "dartagnan/src/test/resources" / name).read_text().splitlines()
    rows = [line.split(",") for line in lines if line.startswith("litmus/")]
    return {path: verdict.strip() == "1" for path, verdict in rows}


def read(path: Path, text: str, verdicts: Mapping[str, bool]) -> Test:
    """Return the test in a text; ``verdicts`` are those of results and of data races, as far as there are."""
    head, _, rest = text.partition("{")
    name = head.split("\n")[0].split(maxsplit=1)[-1]
    variables, _, rest = rest.partition("}")
    test = Test(f"{path.parent.name}/{path.stem}" if path.name else name)
    if rest.lstrip().startswith("{"):
        waits, _, rest = rest.lstrip()[1:].partition("}")
        test.waits = [(int(a), int(b)) for a, b in re.findall(r"ssw\s+(\d+)\s+(\d+)", waits)]
    _variables(test, variables)
    rows = [[cell.strip() for cell in row.split("|")] for row in rest.split(";")]
    ending = rows.pop()[-1]
    places = [_PLACE.fullmatch(cell) for cell in rows.pop(0)]
    test.invocations = [Invocation(*(int(p[n]) for n in (2, 3, 4))) for p in places if p]
    for row in rows:
        for who, cell in enumerate(row):
            if cell:
                _parse(test.invocations[who], cell, test.invocations[who].workgroup)
    _claims(test, ending, verdicts)
    return test


def _variables(test: Test, text: str) -> None:
    for part in filter(str.strip, text.split(";")):
        words = re.sub(r"\s", " ", part).strip()
        if match := re.fullmatch(r"(\w+) aliases (\w+)", words):
            test.locations[match[1]] = test.location(match[2])
        elif match := re.fullmatch(r"(\w+) ?= ?(-?\d+)", words):
            test.initial[match[1]] = int(match[2])
        elif not re.fullmatch(r"P\d+ ?: ?\w+ ?= ?0", words):
            raise NotExpressibleError(f"an initial value that is not known: {words}")


def _operand(text: str) -> int | str:
    return text if text.startswith("r") else int(text, 0)


def _parse(invocation: Invocation, cell: str, workgroup: int) -> None:
    word, *rest = cell.split(maxsplit=1)
    operands = [each.strip() for each in rest[0].split(",")] if rest else []
    tokens = word.split(".")
    if match := re.fullmatch(r"(LC\d+)\s*:", cell):
        invocation.labels[match[1]] = len(invocation.code)
    elif word == "goto":
        invocation.code.append(Jump(operands[0]))
    elif word in ("beq", "bne", "blt", "bgt", "ble", "bge"):
        pair = _operand(operands[0]), _operand(operands[1])
        invocation.code.append(Jump(operands[2], word, pair))
    elif tokens[0] in OPERATIONS:
        invocation.code.append(
            Local(operands[0], word, (_operand(operands[1]), _operand(operands[2])))
        )
    else:
        invocation.code.append(_instruction(tokens, operands, workgroup))


def _instruction(tokens: list[str], operands: list[str], workgroup: int) -> Instruction:
    kinds = {"st": "store", "ld": "load", "rmw": "change", "membar": "fence", "cbar": "barrier"}
    if tokens[0] not in kinds:
        return Instruction("device")
    kind = kinds[tokens[0]]
    common = {
        "scope": next((SCOPES[each] for each in tokens if each in SCOPES), 0),
        "acquires": bool({"acq", "acq_rel"} & set(tokens)),
        "releases": bool({"rel", "acq_rel"} & set(tokens)),
        "semantics": frozenset(int(each[-1]) for each in tokens if each.startswith("semsc")),
        "makes_available": "semav" in tokens,
        "makes_visible": "semvis" in tokens,
    }
    if kind == "fence":
        return Instruction(kind, **common)
    if kind == "barrier":
        if len(operands) > 1:
            raise NotExpressibleError("a named barrier")
        return Instruction(kind, instance=f"{workgroup}:{operands[0]}", **common)
    storage = next(int(each[-1]) for each in tokens if re.fullmatch(r"sc\d", each))
    is_coherent = bool({"av", "vis"} & set(tokens))
    is_atomic = "atom" in tokens
    variable, value, register = operands[0], operands[-1], ""
    if kind != "store":
        register, variable, *_ = operands
    operation = next((each for each in tokens[1:] if each in OPERATIONS), "")
    return Instruction(
        kind, variable, storage, is_atomic=is_atomic, is_coherent=is_coherent,
        is_private=not (is_coherent or is_atomic or "nonpriv" in tokens), register=register,
        value=0 if kind == "load" else _operand(value), operation=operation, **common,
    )  # fmt: skip


def _claims(test: Test, ending: str, verdicts: Mapping[str, bool]) -> None:
    match = _CONDITION.search(ending)
    kind, text = match.groups() if match else ("exists", "0 == 0")
    holds = _condition(text)
    if RESULTS in verdicts:
        negated = kind == "forall"
        exists = verdicts[RESULTS] == (kind == "exists")
        shown = f"{kind}: {'satisfied' if verdicts[RESULTS] else 'not satisfied'}"
        test.claims.append(
            Claim(exists, None, (lambda results: not holds(results)) if negated else holds, shown)
        )
    if RACES in verdicts:
        meant = holds if kind == "filter" else _condition("")
        shown = "no data race" if verdicts[RACES] else "a data race"
        test.claims.append(Claim(not verdicts[RACES], True, meant, shown))


def _condition(text: str) -> Callable[[Registers], bool]:
    """Return a condition on results, which is one of terms with "/\\", "\\/" and parentheses."""

    def term(match: re.Match[str]) -> str:
        left, comparison, right = match.groups()
        same = "!=" if comparison == "!=" else "=="
        return f" (value({left!r}) {same} value({right!r})) "

    python = _TERM.sub(term, text).replace("/\\", " and ").replace("\\/", " or ")
    python = re.sub(r"\s+", " ", python).strip() or "True"
    compiled = compile(python, text, "eval")

    def holds(results: Registers) -> bool:
        def value(name: str) -> int:
            name = re.sub(r"[P\s]", "", name) if ":" in name else name
            return int(name) if re.fullmatch(r"-?\d+", name) else results.get(name, 0)

        return bool(eval(compiled, {"value": value}))

    return holds
