"""The benchmark of transfers measures all rows, and compares the bytes."""

import json

import numpy as np
import pytest
from benchmarks import transfers as bench

pytestmark = pytest.mark.memory


def run(capsys, adapter, *options):
    bench.main(["--rounds", "1", "--mib", "5", "--adapter", adapter.name, *options])
    return capsys.readouterr().out


@pytest.mark.parametrize("options", [[], ["--staged"]])
def test_all_rows(capsys, adapter, options):
    document = json.loads(run(capsys, adapter, "--json", *options))
    assert document["ratios"].keys() == document["ratios_cpu"].keys() == bench.COMPARED.keys()
    assert min(document["gb_per_s"].values()) > 0
    printed = run(capsys, adapter, *options)
    assert "5 MiB on " in printed
    assert "two memcpys" in printed


def test_a_wrong_result_is_refused(monkeypatch, device):
    tensor = type(device).tensor
    monkeypatch.setattr(type(device), "tensor", lambda self, array: tensor(self, ~array))
    with pytest.raises(SystemExit, match="changed the bytes"):
        bench.rows(device, np.iinfo(np.uint16).max)
