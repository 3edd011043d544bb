"""The benchmark measures the workloads, and its command reports the results."""

import json

from bench_cases import MOVEMENTS

from vkops.bench import WORKLOADS, Workload, measure
from vkops.cli import main

SMALL = [workload for workload in WORKLOADS if workload.name in {"W11", "W15", "W16"}]


def test_results(device):
    for result in measure(device, SMALL, rounds=1):
        always = {"vkops", "end_to_end", "numpy", "numpy_into", "memcpy", "buffer_copy"}
        assert result.seconds.keys() - {"device"} == always
        assert ("device" in result.seconds) == (device.info.limits.timestamp_valid_bits > 0)
        assert min(result.seconds.values()) > 0
        assert result.ratio() == result.seconds["numpy"] / result.seconds["vkops"]


def test_movements(device):
    """`measure` compares what vkops makes, by its operator and its function, with NumPy's."""
    found = [Workload(name, name, False, case.scaled(3)) for name, case in MOVEMENTS.items()]
    assert [result.work for result in measure(device, found, rounds=1)] == list(MOVEMENTS)


def test_command(adapter, capsys):
    assert main(["bench", "W11", "W16", "--rounds", "1", "-a", adapter.name, "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["device"] == adapter.name
    assert report["peers"] == {}
    assert set(report["versions"]) == {"vkops", "kp", "numpy"}
    assert [result["work"] for result in report["results"]] == ["W11", "W16"]
    assert main(["bench", "W11", "--rounds", "1", "-a", adapter.name]) == 0
    assert "W11" in capsys.readouterr().out
