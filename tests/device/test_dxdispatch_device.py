"""The examples and the broken models through ``vkops run`` on real drivers."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from models import dispatch, model, resource, zeros

from vkops import dml
from vkops.cli import main

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples"
BROKEN = ROOT / "tests" / "broken_models"
OPERATOR_NAMES = ", ".join(sorted(dml.OPERATORS))
EXPECTED = json.loads((BROKEN / "expected.json").read_text().replace("{operators}", OPERATOR_NAMES))

LEVELS = {"diagonal_matrix1": "5.1", "resample2": "5.1", "resample3": "6.4", "unfold": "6.4"}
"""The feature level of examples that the default level is too low for."""

PRINTED = {
    "split": [
        "Compile Op",
        "Dispatch 'split': 1 iterations, T ms median (CPU)",
        "Resource 'Left': 11, 12, 21, 22",
        "Resource 'Middle': 13, 14, 15, 23, 24, 25",
        "Resource 'Right': 16, 26",
    ],
    "join": [
        "Compile Op",
        "Dispatch 'join': 1 iterations, T ms median (CPU)",
        "Resource 'All': 0, 1, 0.1, 0.2, 0.3, 8, 9",
    ],
    "slice": [
        "Compile Op",
        "Dispatch 'slice': 1 iterations, T ms median (CPU)",
        "Resource 'Part': 1, 2, 3, 21, 22, 23",
    ],
    "slice1_backwards": [
        "Compile Op",
        "Dispatch 'slice1': 1 iterations, T ms median (CPU)",
        "Resource 'Picked':",
        "[0] 101 (0x65)",
        "[1] 99 (0x63)",
        "[2] 97 (0x61)",
        "",
    ],
    "slice_grad": [
        "Compile Op",
        "Dispatch 'slice_grad': 1 iterations, T ms median (CPU)",
        "Resource 'Spread': 97, 0, 99, 0, 0, 0, 0, 0, 105, 0, 107, 0, 0, 0, 0, 0",
    ],
    "tile": [
        "Compile Op",
        "Dispatch 'tile': 1 iterations, T ms median (CPU)",
        "Resource 'Tiles': "
        + ", ".join(str(3 * (row % 2) + column % 3 + 1) for row in range(6) for column in range(9)),
    ],
    "gather": [
        "Compile Op",
        "Dispatch 'gather': 1 iterations, T ms median (CPU)",
        "Resource 'Taken': 1, 2, 3, 4, 3, 4, 5, 6",
    ],
    "gather_elements": [
        "Compile Op",
        "Dispatch 'gather': 1 iterations, T ms median (CPU)",
        "Resource 'Taken': 4, 8, 3, 7, 2, 3",
    ],
    "gather_nd": [
        "Compile Op",
        "Dispatch 'gather': 1 iterations, T ms median (CPU)",
        "Resource 'Rows': 2, 3, 4, 5",
    ],
    "gather_nd1": [
        "Compile Op",
        "Dispatch 'gather': 1 iterations, T ms median (CPU)",
        "Resource 'Taken': 0, 3, 7, 4, 9, 10",
    ],
    "reverse_subsequences": [
        "Compile Op",
        "Dispatch 'reverse': 1 iterations, T ms median (CPU)",
        "Resource 'Reversed': 2, 1, 3, 4, 8, 7, 6, 5, 11, 10, 9, 12",
    ],
    "scatter": [
        "Compile Op",
        "Dispatch 'scatter': 1 iterations, T ms median (CPU)",
        "Resource 'Scattered': 20, 11, 0, 10, 0, 22, 0, 21, 12",
    ],
    "scatter_nd": [
        "Compile Op",
        "Dispatch 'scatter': 1 iterations, T ms median (CPU)",
        "Resource 'Scattered': 1, 11, 3, 10, 9, 6, 7, 12",
    ],
    "one_hot": [
        "Compile Op",
        "Dispatch 'one_hot': 1 iterations, T ms median (CPU)",
        "Resource 'Rows': 2, 4, 4, 4, 4, 4, 4, 2, 4, 4, 2, 4",
    ],
    "fill_value_constant": [
        "Compile Op",
        "Dispatch 'fill': 1 iterations, T ms median (CPU)",
        "Resource 'Filled': 13, 13, 13, 13, 13, 13, 13, 13",
    ],
    "fill_value_sequence": [
        "Compile Op",
        "Dispatch 'fill': 1 iterations, T ms median (CPU)",
        "Resource 'Filled': 3.2, 4.7, 6.2, 7.7, 9.2",
    ],
    "padding": [
        "Compile Op",
        "Dispatch 'pad': 1 iterations, T ms median (CPU)",
        "Resource 'Padded': "
        + ", ".join(["7, 6, 5, 6, 7, 8, 7, 6, 5, 6, 3, 2, 1, 2, 3, 4, 3, 2, 1, 2"] * 4),
    ],
    "padding1": [
        "Compile Op",
        "Dispatch 'pad': 1 iterations, T ms median (CPU)",
        "Resource 'Padded': "
        + ", ".join(
            ["9"] * 10
            + ["9, 9, 1, 2, 3, 4, 9, 9, 9, 9, 9, 9, 5, 6, 7, 8, 9, 9, 9, 9"] * 2
            + ["9"] * 30
        ),
    ],
    "upsample_2d": [
        "Compile Op",
        "Dispatch 'upsample': 1 iterations, T ms median (CPU)",
        "Resource 'Large': 1, 1, 1, 2, 2, 2, 1, 1, 1, 2, 2, 2, 3, 3, 3, 4, 4, 4, 3, 3, 3, 4, 4, 4",
    ],
    "resample": [
        "Compile Op",
        "Dispatch 'resample': 1 iterations, T ms median (CPU)",
        "Resource 'Large': 1, 2, 2, 3, 4, 4, 1, 2, 2, 3, 4, 4, 5, 6, 6, 7, 8, 8, 5, 6, 6, 7, 8, 8",
    ],
    "resample1": [
        "Compile Op",
        "Dispatch 'resample1': 1 iterations, T ms median (CPU)",
        "Resource 'Large': 1, 2, 2, 3, 4, 4, 5, 6, 6, 7, 8, 8, 5, 6, 6, 7, 8, 8, 5, 6, 6, 7, 8, 8",
    ],
    "resample2": [
        "Compile Op",
        "Dispatch 'resample2': 1 iterations, T ms median (CPU)",
        "Resource 'Large': 1, 1, 2, 3, 3, 4, 1, 1, 2, 3, 3, 4, 5, 5, 6, 7, 7, 8, 5, 5, 6, 7, 7, 8",
    ],
    "resample3": [
        "Compile Op",
        "Dispatch 'resample3': 1 iterations, T ms median (CPU)",
        "Resource 'Large': 1, 2, 3, 3, 4, 4, 5, 6, 7, 7, 8, 8, 5, 6, 7, 7, 8, 8, 5, 6, 7, 7, 8, 8",
    ],
    "space_to_depth": [
        "Compile Op",
        "Dispatch 'space_to_depth': 1 iterations, T ms median (CPU)",
        "Resource 'Depth': " + ", ".join(str(9 * k + i) for k in range(8) for i in range(6)),
    ],
    "space_to_depth1": [
        "Compile Op",
        "Dispatch 'space_to_depth1': 1 iterations, T ms median (CPU)",
        "Resource 'Depth': " + ", ".join(str(9 * k + i) for k in range(8) for i in range(6)),
    ],
    "depth_to_space1": [
        "Compile Op",
        "Dispatch 'depth_to_space1': 1 iterations, T ms median (CPU)",
        "Resource 'Space': 0, 9, 1, 10, 2, 11, 18, 27, 19, 28, 20, 29, 3, 12, 4, 13, 5, 14, 21, 30, "
        "22, 31, 23, 32, 36, 45, 37, 46, 38, 47, 54, 63, 55, 64, 56, 65, 39, 48, 40, 49, 41, 50, "
        "57, 66, 58, 67, 59, 68",
    ],
    "depth_to_space": [
        "Compile Op",
        "Dispatch 'depth_to_space': 1 iterations, T ms median (CPU)",
        "Resource 'Space': 0, 18, 1, 19, 2, 20, 36, 54, 37, 55, 38, 56, 3, 21, 4, 22, 5, 23, 39, 57, "
        "40, 58, 41, 59, 9, 27, 10, 28, 11, 29, 45, 63, 46, 64, 47, 65, 12, 30, 13, 31, 14, 32, 48, "
        "66, 49, 67, 50, 68",
    ],
    "diagonal_matrix": [
        "Compile Op",
        "Dispatch 'diagonal_matrix': 1 iterations, T ms median (CPU)",
        "Resource 'Identity': 1, 0, 0, 0, 1, 0, 0, 0, 1",
    ],
    "diagonal_matrix1": [
        "Compile Op",
        "Compile Op",
        "Dispatch 'upper': 1 iterations, T ms median (CPU)",
        "Dispatch 'band': 1 iterations, T ms median (CPU)",
        "Resource 'Upper': 0, 7, 3, 7, 9, 0, 0, 8, 6, 9, 0, 0, 0, 8, 7, 0, 0, 0, 0, 4",
        "Resource 'Band': 7, 7, 7, 0, 0, 0, 7, 7, 7, 0, 0, 0, 7, 7, 7, 0, 0, 0, 7, 7",
    ],
    "unfold": [
        "Compile Op",
        "Dispatch 'unfold': 1 iterations, T ms median (CPU)",
        "Resource 'Columns': "
        + ", ".join(
            str(5 * (row + y - 1) + column + x) if 0 <= row + y - 1 < 5 else "0"
            for y, x in np.ndindex(3, 3)
            for row, column in np.ndindex(5, 3)
        ),
    ],
    "transpose": [
        "Compiling op using IDMLDevice1::CompileGraph",
        "Dispatch 'transpose': 1 iterations, T ms median (CPU)",
        "Resource 'Turned': 1, 9007199254740993, 2, 5, 3, 6",
    ],
    "channel_shuffle": [
        "Dispatch 'shuffle': 1 iterations, T ms median (CPU)",
        "Resource 'Shuffled': 0, 1, 4, 5, 8, 9, 2, 3, 6, 7, 10, 11",
        "Dispatch 'shuffle': 1 iterations, T ms median (CPU)",
        "Resource 'Later': 0, 4, 8, 1, 5, 9, 2, 6, 10, 3, 7, 11",
    ],
    "shader": [
        "Compile Op",
        "Dispatch 'scale': 1 iterations, T ms median (CPU)",
        "Dispatch 'reverse': 1 iterations, T ms median (CPU)",
        "Resource 'Scaled': 11, 21, 31, 41, 51, 61",
        "Resource 'Reversed': 61, 51, 41, 31, 21, 11",
    ],
    "initial_values": [
        "Resource 'Array': 0.0999756, -2, inf, nan, 65504",
        "Resource 'Constant': -1, -1, -1, -1",
        "Resource 'Sequence': 250, 253, 0, 3",
        "Resource 'NumPy': 0.333333, 0.666667, 1, 1.33333",
        "Resource 'Raw':",
        "[0] 0 (0x   0)",
        "[1] 255 (0x  FF)",
        "[2] 4096 (0x1000)",
        "[3] 65535 (0xFFFF)",
        "",
        "Resource 'Roomy': 1, 2, 3",
        "Resource 'List' written to 'OUT/out/list.bin'",
        "Resource 'NumPy' written to 'OUT/out/thirds.npy'",
        "Resource 'Roomy' written to 'OUT/out/roomy.npy'",
    ],
}


def test_every_example_is_listed():
    assert EXPECTED.keys() >= ONE_FOR_EACH_STEP
    assert sorted(PRINTED) == sorted(path.stem for path in EXAMPLES.glob("*.json"))


@pytest.mark.parametrize("name", sorted(PRINTED))
def test_examples_print_the_documented_lines(name, adapter, cap, tmp_path):
    arguments = ["-a", adapter.name, "--output_path", str(tmp_path), "--flat"]
    arguments += ["--dml_feature_level", LEVELS.get(name, "5.0")]
    assert main(["run", str(EXAMPLES / f"{name}.json"), *arguments]) == 0
    seen = cap.readouterr()
    assert seen.err == ""
    first = "; the first run, later ones are faster"
    assert seen.out.count(first) == any("Dispatch" in line for line in PRINTED[name])
    printed = re.sub(r", [0-9.]+ ms median \(GPU\)", "", seen.out.replace(first, ""))
    printed = re.sub(r"\d+\.\d{4} ms", "T ms", printed)
    lines = printed.replace(str(tmp_path), "OUT").splitlines()
    assert lines == [f"Running on '{adapter.name}'", *PRINTED[name]]


def test_the_files_of_the_example(adapter, tmp_path):
    file = EXAMPLES / "initial_values.json"
    assert main(["run", str(file), "-a", adapter.name, "--output-path", str(tmp_path)]) == 0
    folder = tmp_path / "out"
    assert (folder / "list.bin").read_bytes() == b"\x80\x02\x00\x00\x00\x00\x00\x3f"
    np.testing.assert_array_equal(np.load(folder / "thirds.npy"), [[1 / 3, 2 / 3], [1, 4 / 3]])
    np.testing.assert_array_equal(np.load(folder / "roomy.npy"), np.float32([1, 2, 3, 0]))


# `vkops run` refuses a model with the code of `vkops check`, whose test takes all of them: here
# is one for each step that can fail.
ONE_FOR_EACH_STEP = {
    "text_truncated.json",
    "axis_is_string.json",
    "axis_beyond_rank.json",
    "initial_binding_too_short.json",
    "outputs_overlap.json",
    "print_without_type.json",
}


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=() if name in ONE_FOR_EACH_STEP else pytest.mark.slow)
        for name in sorted(EXPECTED)
    ],
)
def test_broken_models_run_nothing(name, adapter, monkeypatch, cap, tmp_path):
    monkeypatch.chdir(BROKEN)
    assert main(["run", name, "-a", adapter.name, "--output_path", str(tmp_path)]) == 1
    seen = cap.readouterr()
    assert seen.err == EXPECTED[name] + "\n"
    assert seen.out == f"Running on '{adapter.name}'\n"
    assert list(tmp_path.iterdir()) == []
    assert not (BROKEN / "written").exists()


def test_a_resource_too_large_for_the_device(adapter, capfd, tmp_path):
    file = tmp_path / "big.json"
    file.write_text(json.dumps(model({"A": zeros(2**35, "UINT8")})))
    assert main(["run", str(file), "-a", adapter.name]) == 1
    seen = capfd.readouterr()
    assert seen.err.count("\n") == 1
    assert seen.err.startswith("Failed to execute the model: ")
    assert "34359738368" in seen.err


def test_a_machine_without_driver_gives_one_line():
    nowhere = {"VK_DRIVER_FILES": "/nonexistent", "VK_ICD_FILENAMES": "/nonexistent"}
    done = subprocess.run(
        [sys.executable, "-c", "import sys; from vkops.cli import main; sys.exit(main())",
         "run", str(EXAMPLES / "split.json")],
        env={**os.environ, **nowhere}, cwd=ROOT, capture_output=True, text=True, timeout=60,
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.count("\n") == 1
    assert done.stderr.startswith("Failed to create adapter: no Vulkan driver")


def chain(kinds):
    """A model of dispatches that each read what the one before wrote, and what comes out."""
    table = {"DataType": "INT32", "Sizes": [4, 6]}
    halves = [{"DataType": "INT32", "Sizes": [4, n]} for n in (2, 4)]
    window = {
        "InputWindowOffsets": [0, 0],
        "InputWindowSizes": [4, 6],
        "InputWindowStrides": [-1, 1],
    }
    both = {"InputTensor": table, "OutputTensor": table}
    dispatchables = {
        "split": {"type": "SPLIT", "InputTensor": table, "OutputTensors": halves, "Axis": 1},
        "join": {"type": "JOIN", "InputTensors": halves[::-1], "OutputTensor": table, "Axis": 1},
        "turn": {"type": "SLICE1", **both, **window},
        "back": {"type": "ELEMENT_WISE_IDENTITY", **both},
    }
    for dispatchable, kind in zip(dispatchables.values(), kinds, strict=True):
        dispatchable["dmlCompileType"] = kind
    steps = [
        dispatch("split", InputTensor="A", OutputTensors=["Left", "Right"]),
        dispatch("join", InputTensors=["Right", "Left"], OutputTensor="B"),
        dispatch("turn", InputTensor="B", OutputTensor="C"),
        dispatch("back", InputTensor="C", OutputTensor="A"),
    ]
    start = {"valueStart": 0, "valueDelta": 1, "valueCount": 24}
    resources = dict.fromkeys(("Left", "Right", "B", "C"), zeros(24, "INT32"))
    resources["A"] = resource("INT32", start)
    expected = np.arange(24).reshape(4, 6)
    for _ in range(3):
        expected = np.roll(expected, -2, axis=1)[::-1]
    return model(resources, dispatchables, *3 * steps, {"type": "print", "resource": "A"}), expected


@pytest.mark.parametrize(
    "kinds",
    [
        ("DmlCompileOp",) * 4,
        ("DmlCompileGraph",) * 4,
        ("DmlCompileOp", "DmlCompileGraph") * 2,
    ],
)
def test_dependent_dispatches_give_the_same_as_single_ones(kinds, adapter, capfd, tmp_path):
    made, expected = chain(kinds)
    (tmp_path / "m.json").write_text(json.dumps(made))
    assert main(["run", str(tmp_path / "m.json"), "-a", adapter.name, "--flat"]) == 0
    lines = capfd.readouterr().out.splitlines()
    assert lines[-1] == "Resource 'A': " + ", ".join(map(str, expected.ravel()))
    graphs = kinds.count("DmlCompileGraph")
    assert lines.count("Compiling op using IDMLDevice1::CompileGraph") == graphs
