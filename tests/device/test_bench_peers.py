"""Each library that is installed does the works that it says it can, and does them right."""

from __future__ import annotations

import json

import numpy as np
import pytest

from vkops.bench import Work, measure, peers
from vkops.bench.works import join, permute, split, step, window
from vkops.cli import main
from vkops.errors import DeviceError

TINY = {
    "split": split("float32", (4, 6), 1, [1, 3, 2]),
    "split of rank 4": split("float32", (1, 1, 6, 2), 2, [2, 1, 3]),
    "split of half words": split("uint16", (4, 7), 1, [2, 5]),
    "split of many": split("float32", (64,), 0, [1] * 64),
    "join": join("float32", (3, 4), 1, 3),
    "join of bytes": join("uint8", (5, 3), 1, 3),
    "join of many": join("float32", (16,), 0, 64),
    "join of rank 5": join("int64", (2, 1, 3, 2, 4), 2, 2),
    "window": window("float32", (6, 7), (1, 2), (3, 4)),
    "steps": step("float32", (7, 9), (2, 3)),
    "steps back": step("float64", (7, 9), (-2, 3)),
    "reverse": step("float32", (5, 6), (-1, -1)),
    "reverse of bytes": step("uint8", (5, 5), (-1, -1)),
    "transpose": permute("float32", (5, 6), (1, 0)),
    "transpose of bytes": permute("uint8", (5, 7), (1, 0)),
    "permute": permute("float32", (2, 3, 4, 5, 2, 3, 2, 2), (7, 3, 5, 1, 6, 2, 4, 0)),
}
WORKS = [Work(name, name, False, build) for name, build in TINY.items()]
NOT_NCNN = {name for name in TINY if "of bytes" in name or "half words" in name} | {
    "join of rank 5", "steps", "steps back", "permute",
}  # fmt: skip


@pytest.mark.parametrize("name", peers.installed())
def test_peer(device, name):
    """`measure` compares each result with NumPy's."""
    results = list(measure(device, WORKS, {name: peers.load(name, device.info)}, rounds=1))
    done = {result.work for result in results if name in result.seconds}
    assert done == set(TINY) - (NOT_NCNN if name == "ncnn" else set())


def test_wgpu_by_kernels_alone(device, monkeypatch):
    pytest.importorskip("wgpu")
    from vkops.bench.peers import webgpu

    monkeypatch.setattr(webgpu, "_MAX_COPIES", 0)
    results = measure(device, WORKS, {"wgpu": webgpu.Peer(device.info)}, rounds=1)
    done = {result.work for result in results if "wgpu" in result.seconds}
    assert done >= set(TINY) - {"join of many"}


class Wrong:
    """Says it is done when nothing has been done."""

    label, version = "Wrong", "1"

    def prepare(self, case, arrays):
        results = [np.zeros(shape, case.dtype) for shape in case.output_shapes]
        return peers.Program(lambda: None, lambda: results)


def test_wrong_result(device):
    with pytest.raises(DeviceError) as error:
        list(measure(device, WORKS[:1], {"wrong": Wrong()}, rounds=1))
    assert str(error.value) == "split: output 0 of wrong differs from NumPy's"


def test_command(adapter, capsys):
    arguments = ["bench", "W11", "W16", "--peers", "--rounds", "1", "-a", adapter.name, "--json"]
    assert main(arguments) == 0
    report = json.loads(capsys.readouterr().out)
    assert list(report["peers"]) == peers.installed()
    assert set(report["versions"]) >= {"vkops", "kp", "numpy", *peers.installed()}
    for result in report["results"]:
        assert set(result["seconds"]) >= {"vkops", *peers.installed()}
