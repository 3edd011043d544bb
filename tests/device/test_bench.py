"""The benchmark measures the workloads, and its command reports the results."""

from __future__ import annotations

import json

from vkops.bench import WORKLOADS, measure
from vkops.cli import main

SMALL = [workload for workload in WORKLOADS if workload.name in {"W11", "W15", "W16"}]


def test_results(device):
    for result in measure(device, SMALL, rounds=1):
        assert list(result.seconds) == ["vkops", "end_to_end", "numpy", "memcpy", "buffer_copy"]
        assert min(result.seconds.values()) > 0
        assert result.ratio() == result.seconds["numpy"] / result.seconds["vkops"]


def test_command(adapter, capsys):
    assert main(["bench", "W11", "W16", "--rounds", "1", "-a", adapter.name, "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["device"]["name"] == adapter.name
    assert report["peers"] == {}
    assert set(report["versions"]) == {"vkops", "kp", "numpy"}
    assert [result["work"] for result in report["results"]] == ["W11", "W16"]
    assert main(["bench", "W11", "--rounds", "1", "-a", adapter.name]) == 0
    assert "W11" in capsys.readouterr().out


def test_unknown_workload(capsys):
    assert main(["bench", "W99"]) == 2
    assert "got 'W99', allowed W1, W2," in capsys.readouterr().err
