"""Answers of DirectML in recorded.json, which tests compare with where there is no DirectML."""

from __future__ import annotations

import json
from base64 import b64decode, b64encode
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import operator_table

from directml import comparison, dll
from directml.dll import DONE, Answer
from directml.faults import random_raw
from directml.packing import Raw, RawTensor
from vkops import dml

FILE = Path(__file__).with_name("recorded.json")
EACH = 42
"""Random descriptors of each operator, with up to two faults."""
EXECUTED = 14
"""Random cases of each operator."""
LARGEST = 400
"""Bytes of the inputs and outputs of a case."""


def record() -> None:
    """Ask the newest DirectML, and write the answers."""
    raws = comparison.broken()
    for name in operator_table.OPERATORS:
        random = Random(f"recorded {name}")
        raws += [raw for _, raw in (random_raw(random, name, k % 3) for k in range(EACH))]
    asked, cases = comparison.expressible(raws)
    constraints = [
        [raw.operator, _fields(raw), f"{answer.hresult:08x}"]
        for raw, answer in zip(asked, dll.ask(cases, "recorded"), strict=True)
    ]
    made = []
    for name in operator_table.OPERATORS:
        random = Random(f"recorded {name}")
        made += [comparison.random_case(random, name, LARGEST) for _ in range(EXECUTED)]
    answers = dll.ask([comparison.case_of(*each).bytes() for each in made], "recorded")
    execution = [
        [desc.operator, _fields(Raw.of(desc)), *(_texts(each) for each in (inputs, answer.outputs))]
        for (desc, inputs), answer in zip(made, answers, strict=True)
        if answer.stage == DONE
    ]
    lines = {"constraints": constraints, "execution": execution}
    sections = [
        f'"{name}": [\n' + ",\n".join(json.dumps(each, separators=(",", ":")) for each in several)
        for name, several in lines.items()
    ]
    about = "What the DirectML.dll of feature level 6_4 in dlls.txt said; scripts/test --directml record"
    text = "{" + f'"about": "{about}",\n' + "],\n".join(sections) + "]}\n"
    FILE.write_text(text, "utf-8")
    print(f"{len(constraints)} descriptors, {len(execution)} executed, {len(text)} bytes")


def constraints() -> Iterator[comparison.Outcome]:
    """What vkops says of the recorded descriptors."""
    for operator, fields, hresult in _recorded()["constraints"]:
        raw = _raw(operator, fields)
        error = comparison.verdict(raw)
        yield comparison.judged(raw, error, Answer(dll.CREATE, int(hresult, 16), 0, 0))


def execution() -> Iterator[comparison.Outcome]:
    """What vkops makes of the recorded inputs."""
    for operator, fields, inputs, outputs in _recorded()["execution"]:
        desc = _raw(operator, fields).desc()
        answer = Answer(DONE, 0, 0, 0, tuple(map(b64decode, outputs)))
        yield comparison.executed(desc, list(map(b64decode, inputs)), answer)


def _recorded() -> Any:
    return json.loads(FILE.read_text("utf-8"))


def _texts(several: Any) -> list[str]:
    return [b64encode(data).decode() for data in several]


def _fields(raw: Raw) -> dict[str, Any]:
    return {name: _value(value) for name, value in raw.fields.items()}


def _value(value: Any) -> Any:
    """A value of a field in JSON, which has no infinity and no structures."""
    if isinstance(value, RawTensor):
        return {"tensor": list(vars(value).values())}
    if isinstance(value, dml.ScaleBias):
        return {"scale_bias": [str(value.scale), str(value.bias)]}
    if isinstance(value, dml.Size2D):
        return {"size_2d": [value.width, value.height]}
    if isinstance(value, tuple):
        return list(map(_value, value))
    if isinstance(value, float):
        return str(value)
    return value if value is None or isinstance(value, bool) else int(value)


def _raw(operator: str, fields: dict[str, Any]) -> Raw:
    return Raw(operator, {name: _given(value) for name, value in fields.items()})


def _given(value: Any) -> Any:
    if isinstance(value, list):
        return tuple(map(_given, value))
    if isinstance(value, str):
        return float(value)
    if isinstance(value, dict):
        [(kind, parts)] = value.items()
        if kind == "tensor":
            return RawTensor(*map(_given, parts))
        return dml.Size2D(*parts) if kind == "size_2d" else dml.ScaleBias(*map(float, parts))
    return value
