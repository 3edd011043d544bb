"""The benchmark measures the workloads, and its command reports the results."""

import json
from dataclasses import replace

import numpy as np
import pytest
from bench_cases import MOVEMENTS

from vkops import kernels
from vkops.bench import WORKLOADS, Workload, measure, traffic
from vkops.cli import main
from vkops.debug import traffic as counts
from vkops.gpu.kernels.encoding import GPU

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
    workloads = [Workload(name, name, False, case.scaled(3)) for name, case in MOVEMENTS.items()]
    assert [result.work for result in measure(device, workloads, rounds=1)] == list(MOVEMENTS)


def test_command(adapter, capsys):
    assert main(["bench", "W11", "W16", "--rounds", "1", "-a", adapter.name, "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["device"] == adapter.name
    assert report["peers"] == {}
    assert set(report["versions"]) == {"vkops", "kp", "numpy"}
    assert [result["work"] for result in report["results"]] == ["W11", "W16"]
    assert main(["bench", "W11", "--rounds", "1", "-a", adapter.name]) == 0
    assert "W11" in capsys.readouterr().out


def reduced(n, lanes):
    """The elements that so many invocations read to reduce ``n``: each reads four at a time."""
    return 4 * sum(-(-(n - own) // (4 * lanes)) for own in range(min(lanes, n)))


def scanned(n):
    """The words that a scan of float32 loads and stores.

    Workgroups load tiles of 1,024 elements, the last one again and again where there are none. If
    there are several, each takes a number, and publishes the result of its tile and that at its
    end, in two words each, but for the last one. It reads the results of all tiles before, and that
    at the end of the one before.
    """
    tiles = -(-n // 1024)
    if tiles == 1:
        return np.array([1024 if n > 8 else n, n])
    results = sum(tile + 1 for tile in range(1, tiles))
    return np.array([1024 * tiles + 2 * results, n + 2 * 2 * (tiles - 1) + tiles])


def sorted_bytes(n, digits):
    """The bytes that a sort of bytes of one tile moves, which have so many digits.

    Counting loads 512 elements at a time, and adds up numbers of digits, which are scanned. The
    workgroup that then moves 2,560 elements takes a number, stores its counts and its ends of 256
    digits, and loads where these begin.
    """
    return 4 * scanned(256) + [512 * -(-n // 512) + 2560 + 1024, 4 * digits + 4 + 2 * 1024 + n]


TRAFFIC = [
    (
        kernels.sum,
        (40_000,),  # two workgroups have 16,384 of them
        "float32",
        [4 * (32_768 + reduced(7_232, 128) + reduced(3, 1) + 1), 4 * (3 + 1 + 1)],
    ),
    (
        kernels.sum,
        (1 << 22,),
        "float32",
        [4 * ((1 << 22) + reduced(256, 128) + 1), 4 * (256 + 1 + 1)],
    ),
    (lambda x: kernels.sum(x, 0), (1000, 300), "float32", [4 * 300_300, 4 * 600]),
    (kernels.cumsum, (5000,), "float32", 4 * scanned(5000)),
    (kernels.sort, (2500,), "uint8", sorted_bytes(2500, 10)),
    (
        lambda x: kernels.bincount(x, size=10, dtype="int32"),
        (10_000,),
        "int32",
        [40_000 + 40, 2 * 40 + 40],
    ),
]


@pytest.mark.features
@pytest.mark.parametrize(("call", "shape", "dtype", "expected"), TRAFFIC)
def test_the_traffic_of_kernels(device, monkeypatch, call, shape, dtype, expected):
    tuning = replace(GPU, sources=device.tuning.sources, invocations=128)
    monkeypatch.setattr(device, "tuning", tuning)
    monkeypatch.setattr(counts, "MAX_GROUPS_COUNTED", 256)
    x = device.tensor((np.arange(np.prod(shape)) % 10).astype(dtype).reshape(shape))
    _, traffic, _ = counts.call_traffic(lambda: call(x))
    assert [traffic.loads.requested, traffic.stores.requested] == [*expected]
    assert traffic.is_estimate == (x.size == 1 << 22)


def test_the_traffic_of_kernels_in_the_table(adapter, capsys, monkeypatch):
    for name, (_, call) in traffic.KERNELS.items():
        monkeypatch.setitem(traffic.KERNELS, name, (1 << 10, call))
    command = ["bench", "W16", *traffic.KERNELS, "--traffic", "-a", adapter.name]
    assert main([*command, "--json"]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert [*printed] == ["W16", *traffic.KERNELS]
    (part,) = printed["W16"]  # a load and a store of each vector; no fewer operations are possible
    assert part["work"]["accesses"] == 1
    assert part["work"]["operations"] > 1
    (part,) = printed["cumsum"]
    assert part["loads"]["must_move"] == part["stores"]["must_move"] == 4096
    assert part["loads"]["subgroups of 32"]["32"] == 4096
    assert part["dispatches"] == 1
    assert printed["sort"][-1]["dispatches"] > 1
    assert main(command) == 0
    assert f"all, {printed['sort'][-1]['dispatches']} dispatches" in capsys.readouterr().out
