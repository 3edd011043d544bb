"""The benchmark's works are right, and its command reports them."""

from __future__ import annotations

import json

import numpy as np
import pytest

from vkops.bench import WORKS, measure
from vkops.cli import main

SMALL = [work for work in WORKS if work.name in {"W11", "W15", "W16"}]


@pytest.mark.parametrize("work", WORKS, ids=lambda work: work.name)
def test_works_say_the_same_as_numpy(work):
    """Descriptors are valid, and describe results of the shapes that NumPy's have."""
    case = work.build(2)
    case.desc.validate()
    assert [t.total_tensor_size_in_bytes for _, t in case.desc.inputs] == [
        int(np.prod(shape)) * case.dtype.itemsize for shape in case.shapes
    ]


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


def test_unknown_work(capsys):
    assert main(["bench", "W99"]) == 2
    assert "got 'W99', allowed W1, W2," in capsys.readouterr().err
