"""The benchmark of users' shaders measures all workloads, and compares their results with NumPy's."""

import json
import os
from pathlib import Path

import benchmarks.shaders.__main__ as bench
import numpy as np
import pytest

import vkops

pytestmark = pytest.mark.features
SCRIPTS = Path(__file__).parents[2] / "scripts"


@pytest.fixture(autouse=True)
def small(monkeypatch, adapter):
    monkeypatch.setattr(bench, "LARGE", 1000)
    works = {name: (what, 1) for name, (what, _) in bench._WORKLOADS.items()}
    monkeypatch.setattr(bench, "_WORKLOADS", works)
    path = os.pathsep.join([str(SCRIPTS), str(SCRIPTS.parent), os.environ.get("PYTHONPATH", "")])
    monkeypatch.setenv("PYTHONPATH", path)  # for the process that compiles from the cache on disk
    monkeypatch.setenv("VKOPS_ADAPTER", adapter.name)


def run(capsys, *options):
    bench.main(["--rounds", "1", *options])
    return capsys.readouterr().out


def test_all_workloads_as_json(capsys):
    results = json.loads(run(capsys, "--json"))["results"]
    assert {result["work"] for result in results} == {"tiny", "axpy", "nbody", "compile"}
    for result in results:
        assert {"vkops", "kompute"} <= result["seconds"].keys()
        assert min(result["seconds"].values()) > 0


def test_a_table(capsys):
    printed = run(capsys)
    assert "Ratio: time of the other divided by time of vkops" in printed
    assert "bound, no waits" in printed


def test_a_wrong_result_is_refused(monkeypatch):
    monkeypatch.setattr(bench.bench_shaders, "axpy", lambda x, y: np.zeros_like(y))
    with pytest.raises(vkops.DeviceError, match="tiny: the result of vkops differs from NumPy's"):
        list(bench.measure(vkops.Device(), 1))
