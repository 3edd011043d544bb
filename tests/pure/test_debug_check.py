"""``vkops.debug.check``: planted faults are found with their lines, and correct shaders are silent."""

from __future__ import annotations

import faulty_shaders
import numpy as np
import pytest
import usual_shaders

from vkops.debug import check


def buffers(options):
    """Buffers of a case: ``zeros:BYTES``, ``range:NUMBERS``, a number of bytes or an array."""
    made = {}
    for name, value in options.get("buffers", {}).items():
        kind, _, count = str(value).partition(":")
        if kind == "zeros":
            value = np.zeros(int(count) // 4, np.uint32)
        elif kind == "range" or options.get("fill"):
            value = np.arange(int(count or value), dtype=np.uint32)
        made[name] = value
    return made


def checked(case):
    given = {
        name: case.options[name]
        for name in ("groups", "floats", "push", "threads")
        if name in case.options
    }
    return check(case.text, buffers(case.options), name="faulty", **given)


@pytest.mark.parametrize("case", faulty_shaders.CASES, ids=lambda case: case.name)
def test_planted_faults(case):
    report = checked(case)
    assert not report.ok
    assert {finding.kind for finding in report.findings} == {case.kind}, str(report)
    assert {finding.place.line for finding in report.findings} & {*case.lines}, str(report)
    assert all(finding.place.file == "faulty" for finding in report.findings)


@pytest.mark.parametrize("case", usual_shaders.CASES, ids=lambda case: case.name)
def test_usual_shaders_are_silent(case):
    report = checked(case)
    assert report.ok, str(report)
