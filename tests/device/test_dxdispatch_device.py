"""The examples and the broken models through ``vkops run`` on real drivers."""

import json
import re
from pathlib import Path

import broken_models
import numpy as np
import pytest
from adapters import own_loader
from models import dispatch, model, resource, zeros
from processes import outcome

from vkops.cli import main
from vkops.gpu.memory import host_memory

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples"

LEVELS = {"diagonal_matrix1": "5.1", "resample2": "5.1", "resample3": "6.4", "unfold": "6.4"}
"""The feature level of examples that the default level is too low for."""


@pytest.mark.parametrize("name", sorted(path.stem for path in EXAMPLES.glob("*.json")))
def test_examples_print_the_documented_lines(name, adapter, cap, tmp_path):
    arguments = ["-a", adapter.name, "--output_path", str(tmp_path), "--flat"]
    arguments += ["--dml_feature_level", LEVELS.get(name, "5.0")]
    assert main(["run", str(EXAMPLES / f"{name}.json"), *arguments]) == 0
    seen = cap.readouterr()
    assert seen.err == ""
    first = "; the first run, later ones are faster"
    assert seen.out.count(first) == ("Dispatch" in seen.out)
    start, *lines = seen.out.replace(first, "").splitlines()
    assert start == f"Running on '{adapter.name}'"
    forms = (
        "Compile Op", "Compiling op using IDMLDevice1::CompileGraph", r"Dispatch '\w+': \d+ iterations?, \d+\.\d{4} ms median \(CPU\).*",
        r"Resource '\w+'.*", r"\[\d+\] .+ \(0x[ \dA-F]+\)", "",
    )  # fmt: skip
    for line in lines:
        assert any(re.fullmatch(form, line) for form in forms), line


def test_the_files_of_the_example(adapter, tmp_path):
    file = EXAMPLES / "initial_values.json"
    assert main(["run", str(file), "-a", adapter.name, "--output-path", str(tmp_path)]) == 0
    folder = tmp_path / "out"
    assert (folder / "list.bin").read_bytes() == b"\x80\x02\x00\x00\x00\x00\x00\x3f"
    np.testing.assert_array_equal(np.load(folder / "thirds.npy"), [[1 / 3, 2 / 3], [1, 4 / 3]])
    np.testing.assert_array_equal(np.load(folder / "roomy.npy"), np.float32([1, 2, 3, 0]))


@pytest.fixture(scope="module")
def broken(tmp_path_factory):
    folder = tmp_path_factory.mktemp("broken_models")
    broken_models.write(folder)
    return folder


@pytest.mark.parametrize("name", [
    "text_truncated", "axis_is_string", "axis_beyond_rank", "initial_binding_too_short",
    "outputs_overlap", "print_without_type",
])  # fmt: skip
def test_broken_models_run_nothing(name, broken, adapter, monkeypatch, cap, tmp_path):
    """`vkops run` refuses a model with the code of `vkops check`: here is one for each step."""
    monkeypatch.chdir(broken)
    assert main(["check", f"{name}.json"]) == 1
    error = cap.readouterr().err
    assert main(["run", f"{name}.json", "-a", adapter.name, "--output_path", str(tmp_path)]) == 1
    seen = cap.readouterr()
    assert (seen.err, seen.out) == (error, "")  # no device was opened
    assert list(tmp_path.iterdir()) == []
    assert not (broken / "written").exists()


def test_a_resource_too_large_for_the_device(adapter, capfd, monkeypatch, tmp_path):
    monkeypatch.setenv("VKOPS_MEMORY_LIMIT", str(2**34))
    monkeypatch.setattr(host_memory, "available", lambda: 2**34)
    file = tmp_path / "big.json"
    file.write_text(json.dumps(model({"A": zeros(2**35, "UINT8")})))
    assert main(["run", str(file), "-a", adapter.name]) == 1
    seen = capfd.readouterr()
    assert seen.err.count("\n") == 1
    assert seen.err.startswith("Failed to execute the model: ")
    assert "34359738368" in seen.err


@own_loader
def test_a_machine_without_driver_gives_one_line():
    nowhere = {"VK_DRIVER_FILES": "/nonexistent", "VK_ICD_FILENAMES": "/nonexistent"}
    status, printed, errors = outcome("-m", "vkops", "run", EXAMPLES / "split.json", **nowhere)
    assert (status, printed) == (1, "")
    assert errors.count("\n") == 1
    assert errors.startswith("Failed to create adapter: no Vulkan driver")


def chain(kinds):
    """A model of dispatches that each read what the one before wrote, and what comes out."""
    table = {"DataType": "INT32", "Sizes": [4, 6]}
    halves = [{"DataType": "INT32", "Sizes": [4, n]} for n in (2, 4)]
    dispatchables = {
        "split": {"type": "SPLIT", "InputTensor": table, "OutputTensors": halves, "Axis": 1},
        "join": {"type": "JOIN", "InputTensors": halves[::-1], "OutputTensor": table, "Axis": 1},
    }
    for dispatchable, kind in zip(dispatchables.values(), kinds, strict=True):
        dispatchable["dmlCompileType"] = kind
    steps = [
        dispatch("split", InputTensor="A", OutputTensors=["Left", "Right"]),
        dispatch("join", InputTensors=["Right", "Left"], OutputTensor="A"),
    ]
    start = {"valueStart": 0, "valueDelta": 1, "valueCount": 24}
    resources = {
        "Left": zeros(8, "INT32"),
        "Right": zeros(16, "INT32"),
        "A": resource("INT32", start),
    }
    expected = np.roll(np.arange(24).reshape(4, 6), -4 * 2, axis=1)
    return model(resources, dispatchables, *4 * steps, {"type": "print", "resource": "A"}), expected


@pytest.mark.parametrize("kinds", [
    ("DmlCompileOp",) * 2, ("DmlCompileGraph",) * 2, ("DmlCompileOp", "DmlCompileGraph")
])  # fmt: skip
def test_dependent_dispatches_give_the_same_as_single_ones(kinds, adapter, capfd, tmp_path):
    document, expected = chain(kinds)
    (tmp_path / "m.json").write_text(json.dumps(document))
    assert main(["run", str(tmp_path / "m.json"), "-a", adapter.name, "--flat"]) == 0
    lines = capfd.readouterr().out.splitlines()
    assert lines[-1] == "Resource 'A': " + ", ".join(map(str, expected.ravel()))
    graphs = kinds.count("DmlCompileGraph")
    assert lines.count("Compiling op using IDMLDevice1::CompileGraph") == graphs
