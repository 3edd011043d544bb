"""Each library that is installed executes workloads, and its results are NumPy's."""

import json

import numpy as np
import pytest
from bench_cases import MOVEMENTS, VIEWS
from benchmarks import peers

from vkops.bench import Workload, measure
from vkops.cli import main
from vkops.cli.main import COMMANDS
from vkops.errors import DeviceError

TINY = {**VIEWS, **MOVEMENTS}
WORKLOADS = [Workload(name, name, False, made) for name, made in TINY.items()]
NOT_NCNN = {name for name in TINY if "of bytes" in name or "half words" in name} | {
    "join of rank 5", "steps", "steps back", "permute", *MOVEMENTS,
}  # fmt: skip
REFUSED = {"ncnn": NOT_NCNN, "wgpu": set(MOVEMENTS), "onnxruntime": {"one-hot"}}


@pytest.mark.parametrize("name", peers.PEERS)
def test_peer(device, name):
    """`measure` compares each result with NumPy's."""
    if name not in peers.installed():
        pytest.skip(f"{name} is not installed: pip install 'vkops[peers]'")
    results = list(
        measure(device, WORKLOADS, {name: peers.load(name, device.info).prepare}, rounds=1)
    )
    done = {result.work for result in results if name in result.seconds}
    assert done == set(TINY) - REFUSED.get(name, set())


def test_wgpu_by_kernels_alone(device, monkeypatch):
    pytest.importorskip("wgpu")
    from benchmarks.peers import webgpu

    monkeypatch.setattr(webgpu, "_MAX_COPIES", 0)
    results = measure(device, WORKLOADS, {"wgpu": webgpu.Peer(device.info).prepare}, rounds=1)
    done = {result.work for result in results if "wgpu" in result.seconds}
    assert done >= set(TINY) - {"join of many", *MOVEMENTS}


def wrong(case, arrays):
    """Says it is done when nothing has been done."""
    results = [np.zeros(shape, case.dtype) for shape in case.output_shapes]
    return lambda: None, lambda: results


def test_wrong_result(device):
    with pytest.raises(DeviceError) as error:
        list(measure(device, WORKLOADS[:1], {"wrong": wrong}, rounds=1))
    assert str(error.value) == "split: output 0 of wrong differs from NumPy's"


def test_command(adapter, capsys, monkeypatch):
    monkeypatch.setitem(COMMANDS, "bench", "benchmarks.command")
    arguments = ["bench", "W11", "W16", "--peers", "--rounds", "1", "-a", adapter.name, "--json"]
    assert main(arguments) == 0
    report = json.loads(capsys.readouterr().out)
    assert list(report["peers"]) == peers.installed()
    assert set(report["versions"]) >= {"vkops", "kp", "numpy", *peers.installed()}
    for result in report["results"]:
        assert set(result["seconds"]) >= {"vkops", *peers.installed()}
