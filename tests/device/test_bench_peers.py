"""Each library that is installed executes workloads, and its results are NumPy's."""

import json

import bench_peers as peers
import numpy as np
import pytest

from vkops.bench import Workload, measure
from vkops.bench.measure import Program
from vkops.bench.movements import (
    DepthToSpace,
    Gather,
    GatherElements,
    OneHot,
    PadReflect,
    ReverseSequences,
    ScatterRows,
    Tile,
    Upsample,
)
from vkops.bench.workloads import Join, Permute, Split, Step, Window, case, case_of
from vkops.cli import main
from vkops.errors import DeviceError

TINY = {
    "split": case("float32", Split(1, (1, 3, 2)), (4, 6)),
    "split of rank 4": case("float32", Split(2, (2, 1, 3)), (1, 1, 6, 2)),
    "split of half words": case("uint16", Split(1, (2, 5)), (4, 7)),
    "split of many": case("float32", Split(0, (1,) * 64), (64,)),
    "join": case("float32", Join(1), (3, 4), 3),
    "join of bytes": case("uint8", Join(1), (5, 3), 3),
    "join of many": case("float32", Join(0), (16,), 64),
    "join of rank 5": case("int64", Join(2), (2, 1, 3, 2, 4), 2),
    "window": case("float32", Window((1, 2), (3, 4)), (6, 7)),
    "steps": case("float32", Step((2, 3)), (7, 9)),
    "steps back": case("float64", Step((-2, 3)), (7, 9)),
    "reverse": case("float32", Step((-1, -1)), (5, 6)),
    "reverse of bytes": case("uint8", Step((-1, -1)), (5, 5)),
    "transpose": case("float32", Permute((1, 0)), (5, 6)),
    "transpose of bytes": case("uint8", Permute((1, 0)), (5, 7)),
    "permute": case("float32", Permute((7, 3, 5, 1, 6, 2, 4, 0)), (2, 3, 4, 5, 2, 3, 2, 2)),
}
MOVEMENTS = {
    "gather": case_of("float32", Gather(), (9, 4), (5,)),
    "gather elements": case_of("float32", GatherElements(), (4, 5), (4, 3)),
    "scatter rows": case_of("float32", ScatterRows(), (9, 4), (5, 1), (5, 4)),
    "pad": case_of("float32", PadReflect(1), (2, 3, 4, 5)),
    "depth to space": case_of("float32", DepthToSpace(2), (2, 8, 3, 2)),
    "tile": case_of("float32", Tile((2, 3)), (3, 4)),
    "upsample": case_of("float32", Upsample(2), (2, 3, 4, 5)),
    "one-hot": case_of("uint8", OneHot(6), (7, 1), (1, 2)),
    "reverse sequences": case_of("float32", ReverseSequences(), (3, 5, 2), (3,)),
}
TINY |= MOVEMENTS
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
    results = list(measure(device, WORKLOADS, {name: peers.load(name, device.info)}, rounds=1))
    done = {result.work for result in results if name in result.seconds}
    assert done == set(TINY) - REFUSED.get(name, set())


def test_wgpu_by_kernels_alone(device, monkeypatch):
    pytest.importorskip("wgpu")
    from bench_peers import webgpu

    monkeypatch.setattr(webgpu, "_MAX_COPIES", 0)
    results = measure(device, WORKLOADS, {"wgpu": webgpu.Peer(device.info)}, rounds=1)
    done = {result.work for result in results if "wgpu" in result.seconds}
    assert done >= set(TINY) - {"join of many", *MOVEMENTS}


class Wrong:
    """Says it is done when nothing has been done."""

    label, version = "Wrong", "1"

    def prepare(self, case, arrays):
        results = [np.zeros(shape, case.dtype) for shape in case.output_shapes]
        return Program(lambda: None, lambda: results)


def test_wrong_result(device):
    with pytest.raises(DeviceError) as error:
        list(measure(device, WORKLOADS[:1], {"wrong": Wrong()}, rounds=1))
    assert str(error.value) == "split: output 0 of wrong differs from NumPy's"


def test_command(adapter, capsys):
    arguments = ["bench", "W11", "W16", "--peers", "--rounds", "1", "-a", adapter.name, "--json"]
    assert main(arguments) == 0
    report = json.loads(capsys.readouterr().out)
    assert list(report["peers"]) == peers.installed()
    assert set(report["versions"]) >= {"vkops", "kp", "numpy", *peers.installed()}
    for result in report["results"]:
        assert set(result["seconds"]) >= {"vkops", *peers.installed()}
