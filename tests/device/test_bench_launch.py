"""The benchmark of calls measures all rows, and compares their results with NumPy's."""

import json
import sys

import pytest
from benchmarks import launch as bench

import vkops

ROWS = {
    "vkops: call", "vkops: bound", "vkops: ElementwiseKernel, out=", "vkops: roll(x, 1)",
    "vkops: split(x, 2)", "vkops: concat of two", "vkops: recorded, a step", "Kompute: a step",
}  # fmt: skip


def run(capsys, *options):
    bench.main(["--rounds", "1", *options])
    return capsys.readouterr()


def test_all_rows_as_json(capsys, adapter):
    document = json.loads(run(capsys, "--json", "--adapter", adapter.name).out)
    assert document["microseconds"].keys() >= ROWS
    for name, cost in document["microseconds"].items():
        assert cost.keys() == {"chain", "cpu"} | ({"one"} if "a step" not in name else set())
        assert cost.pop("cpu") >= 0  # Windows counts the time of a thread in steps of 16 ms
        assert min(cost.values()) > 0


def test_a_table_without_a_library_that_does_not_work(monkeypatch, capsys, adapter):
    monkeypatch.setattr(bench, "is_installed", lambda package: package == "slangpy")
    monkeypatch.setitem(sys.modules, "slangpy", None)
    printed = run(capsys, "--adapter", adapter.name)
    assert "chain of 100" in printed.out
    assert printed.err.startswith("slangpy is left out: import of slangpy halted")


def test_a_wrong_result_is_refused(monkeypatch, device):
    monkeypatch.setattr(bench, "is_installed", lambda package: False)
    monkeypatch.setattr(bench, "GLSL", bench.GLSL.replace("a * x[i]", "x[i]"))
    with pytest.raises(vkops.DeviceError, match="vkops: call: the result differs from NumPy's"):
        bench.measure(device, 1)
