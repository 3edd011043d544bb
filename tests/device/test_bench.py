"""The benchmark measures the workloads, and its command reports the results."""

import json
from dataclasses import replace

from vkops.bench import WORKLOADS, measure
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
    tiny = {
        "W19": ((50, 8), (20,)),
        "W20": ((30, 40), (30, 7)),
        "W21": ((50, 8), (20, 1), (20, 8)),
        "W22": ((2, 3, 4, 5),),
        "W23": ((2, 8, 3, 4),),
        "W24": ((5, 6),),
        "W25": ((2, 3, 4, 5),),
        "W26": ((9, 1), (1, 2)),
        "W27": ((3, 7, 2), (3,)),
    }
    found = [
        replace(workload, case=replace(workload.case, shapes=tiny[workload.name]).scaled(3))
        for workload in WORKLOADS
        if workload.name in tiny
    ]
    assert [result.work for result in measure(device, found, rounds=1)] == list(tiny)


def test_command(adapter, capsys):
    assert main(["bench", "W11", "W16", "--rounds", "1", "-a", adapter.name, "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["device"] == adapter.name
    assert report["peers"] == {}
    assert set(report["versions"]) == {"vkops", "kp", "numpy"}
    assert [result["work"] for result in report["results"]] == ["W11", "W16"]
    assert main(["bench", "W11", "--rounds", "1", "-a", adapter.name]) == 0
    assert "W11" in capsys.readouterr().out
