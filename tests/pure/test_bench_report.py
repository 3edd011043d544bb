"""Reports of the benchmark: tables, JSON and plots of a faked result set."""

import io
import json
import re

import benchmarks
import pytest
from benchmarks import peers
from benchmarks import plot as plots
from benchmarks.command import read, tables
from refusals import fault
from rich.console import Console

from vkops.bench import WORKLOADS, Report, Result
from vkops.cli.main import COMMANDS
from vkops.errors import VkopsError

OWN = {"vkops": 2e-3, "end_to_end": 8e-3, "numpy": 6e-3, "numpy_into": 4e-3, "memcpy": 1e-3}
OWN["buffer_copy"] = 3e-3


def report(count=None, **labels):
    """Peers named by keyword are four times as slow as vkops, but cannot execute the second workload."""
    results = []
    for number, each in enumerate(WORKLOADS[:count]):
        seconds = OWN | dict.fromkeys(() if number == 1 else labels, 8e-3)
        results.append(Result(each.name, each.description, each.contiguous, 2**20, seconds))
    device = "Some GPU", "some driver 1.2", "2026-01-02", 2, {"numpy": "2.0"}
    return Report(*device, labels, 1, 9, results)


def text(made, width):
    console = Console(width=width, record=True, file=io.StringIO())
    console.print(made)
    return console.export_text()


def row(shown, start):
    return next(line.split() for line in shown.splitlines() if line.strip().startswith(start))


@pytest.fixture(autouse=True)
def of_scripts_bench(monkeypatch):
    """The command is the one of scripts/bench."""
    monkeypatch.setitem(COMMANDS, "bench", "benchmarks.command")


def test_table_fits_80_columns():
    (made,) = tables(report())
    shown = text(made, 80)
    assert max(map(len, shown.splitlines())) <= 80
    assert row(shown, "W15")[-7:] == ["1.0", "2.000", "3.00x", "2.00x", "0.50x", "1.50x", "0.75x"]
    assert row(shown, "geometric")[-5:] == ["3.00x", "2.00x", "0.50x", "1.50x", "0.75x"]


def test_peers_have_a_table_of_their_own():
    _, made = tables(report(3, torch="PyTorch CPU", wgpu="wgpu"))
    shown = text(made, 120)
    assert "PyTorch CPU" in shown
    assert row(shown, "W1")[-3:] == ["2.000", "4.00x", "4.00x"]
    assert row(shown, "W2")[-1] == "2.000"
    assert row(shown, "geometric")[-2:] == ["4.00x", "4.00x"]


def test_a_peer_without_results_has_no_mean():
    original = report(2, torch="PyTorch CPU")
    _, table = tables(Report(**{**vars(original), "results": original.results[1:]}))
    assert "x " not in text(table, 120).split("Ratios: ")[0]


def test_json_reads_back(tmp_path):
    original = report(torch="PyTorch CPU")
    path = tmp_path / "r.json"
    path.write_text(json.dumps(original.json_ready()))
    assert read(path) == original


@pytest.mark.parametrize(
    "content", ["", "[]", "{}", '{"results": [], "device": {}}', '{"results": [{"seconds": 1}]}']
)
def test_other_files_are_refused(tmp_path, content):
    path = tmp_path / "r.json"
    path.write_text(content)
    said = f"{path}: not a report of `vkops bench --json`: "
    assert fault(lambda: read(path), VkopsError).startswith(said)


def test_command_shows_a_saved_report(tmp_path, command):
    saved, plot = tmp_path / "r.json", tmp_path / "p.svg"
    saved.write_text(json.dumps(report(3, wgpu="wgpu").json_ready()))
    assert command("bench", "--help")[1].startswith("Usage: scripts/bench [OPTIONS] [WORKLOAD]...")
    status, shown, _ = command("bench", "--from", saved, "--plot", plot)
    assert (status, "Some GPU (some driver 1.2)" in shown) == (0, True)
    assert "vkops against other libraries" in shown
    # matplotlib notes each text beside its outlines.
    drawn = plot.read_text()
    assert "Some GPU, some driver 1.2, 2026-01-02" in drawn
    labels = ("vkops", "NumPy", "memcpy", "Kompute copy", "wgpu", "cannot")
    for label in (*labels, "against NumPy", "against wgpu", "geometric mean 4"):
        assert re.search(f"<!-- *{label} *-->", drawn), label


@pytest.mark.parametrize("count", [1, 4, 27])
def test_plot_as_png(tmp_path, count):
    path = tmp_path / "p.png"
    plots.plot(report(count, torch="PyTorch CPU"), path)
    assert path.read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("p.pdf", "plot: got {0!r}, must end in .png or .svg"),
        ("no/p.png", "plot: there is no folder {1!r}"),
    ],
)
def test_plot_that_cannot_be_written(tmp_path, command, name, reason):
    path = tmp_path / name
    said = reason.format(str(path), str(path.parent)) + "\n"
    assert command("bench", "--plot", path) == (1, "", said)


def test_unknown_names(monkeypatch, command):
    monkeypatch.setattr(benchmarks, "find_spec", lambda name: None)
    assert peers.installed() == []
    for arguments, allowed in (
        (["--peer", "tensorflow"], "torch, onnxruntime, wgpu, ncnn"),
        (["W99"], "W1, W2,"),
    ):
        status, _, err = command("bench", *arguments)
        assert (status, f"got '{arguments[-1]}', must be {allowed}" in err) == (2, True)
