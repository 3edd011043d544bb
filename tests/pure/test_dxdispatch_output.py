"""What is printed: values, statistics, sizes."""

import copy
import json
from pathlib import Path

import numpy as np
import pytest
from models import SPLIT

from vkops.cli import main
from vkops.cli.device_commands import memory_size
from vkops.dxdispatch import load_model
from vkops.dxdispatch.data_types import dtype_of
from vkops.runner import console, output_files
from vkops.runner.dispatch_timing import report


@pytest.fixture
def printed(tmp_path, capsys):
    """Print resources as they are at first; return the text."""

    def printed(*, verbose=False, **resources):
        file = tmp_path / "m.json"
        model = {"resources": resources, "dispatchables": {}, "commands": []}
        file.write_text(json.dumps(model))
        for found in load_model(file).resources.values():
            data = b"".join(found.values.chunks())
            padded = data.ljust(found.size, b"\xaa")
            dtype = dtype_of(found.data_type)
            count = found.values.nbytes // dtype.itemsize
            read = lambda offset, n, all=padded: all[offset:][:n]  # noqa: E731
            console.print_values(found.name, dtype, count, read, verbose=verbose)
        return capsys.readouterr().out

    return printed


def resource(data_type, initial, **more):
    return {"initialValuesDataType": data_type, "initialValues": initial, **more}


@pytest.mark.parametrize(
    ("data_type", "initial", "text"),
    [
        ("FLOAT32", [0.1, 1e6, 999999, 10 / 3, "inf", "-inf", "nan", -0.0, 1e-5, 123456.7],
         "0.1, 1e+06, 999999, 3.33333, inf, -inf, nan, -0, 1e-05, 123457"),
        ("FLOAT64", [1 / 3, 1e300, 100000, 1000000], "0.333333, 1e+300, 100000, 1e+06"),
        ("FLOAT16", [0.1, 1, 65504, 2, 3], "0.0999756, 1, 65504, 2, 3"),
        ("INT8", [-128, 65, 127], "-128, 65, 127"),
        ("UINT8", [0, 65, 255], "0, 65, 255"),
        ("INT16", [-32768, 5], "-32768, 5"),
        ("UINT64", [2**64 - 1, 1000000], "18446744073709551615, 1000000"),
        ("INT64", [-(2**63)], "-9223372036854775808"),
    ],
)  # fmt: skip
def test_print(printed, data_type, initial, text):
    seen = printed(A=resource(data_type, initial))
    assert seen == f"Resource 'A': {text}\n"


def test_print_shows_initial_values_not_padding(printed):
    roomy = resource("FLOAT32", [1, 2], sizeInBytes=64)
    assert printed(A=roomy) == "Resource 'A': 1, 2\n"


def test_verbose_print(printed):
    ten = resource("INT16", {"valueStart": -1, "valueDelta": 1, "valueCount": 10})
    seen = printed(A=resource("FLOAT32", [0, 1]), B=ten, verbose=True)
    first, second, rest = seen.split("\n\n")
    assert first == "Resource 'A':\n[0] 0 (0x       0)\n[1] 1 (0x3F800000)"
    lines = second.splitlines()
    assert lines[:3] == ["Resource 'B':", "[ 0] -1 (0xFFFF)", "[ 1] 0 (0x   0)"]
    assert lines[-1] == "[ 9] 8 (0x   8)"
    assert rest == ""


def test_print_in_pieces_has_no_seam(printed, monkeypatch):
    sequence = resource("INT32", {"valueStart": 0, "valueDelta": 7, "valueCount": 100})
    whole = printed(A=sequence), printed(A=sequence, verbose=True)
    monkeypatch.setattr(output_files, "CHUNK_BYTES", 12)
    assert (printed(A=sequence), printed(A=sequence, verbose=True)) == whole
    assert whole[0].count(", ") == 99


def test_statistics():
    assert list(report("x", [9, 4, 1, 3, 2], 1, 0)) == [
        "Dispatch 'x': 5 iterations, 3.0000 ms median (CPU)"  # of 1 2 3 4, the upper middle
    ]
    assert list(report("x", [9, 4, 1], 2, 1)) == [
        "Dispatch 'x': 3 iterations",
        "CPU Timings (Cold) : 2 samples, 6.5000 ms average, 4.0000 ms min, "
        "9.0000 ms median, 9.0000 ms max",
        "CPU Timings (Hot)  : 1 samples, 1.0000 ms average, 1.0000 ms min, "
        "1.0000 ms median, 1.0000 ms max",
    ]
    # One sample alone is hot, whatever the warm-up; no warm-up, nothing cold.
    assert len(list(report("x", [9], 5, 1))) == 2
    assert len(list(report("x", [9, 8], 0, 1))) == 2


@pytest.mark.parametrize(
    ("nbytes", "text"),
    [
        (0, "0 bytes"),
        (1024, "1024 bytes"),
        (1025, "1.00 KB"),
        (2**20, "1024.00 KB"),
        (2**30, "1024.00 MB"),
        (3 * 2**29, "1.50 GB"),
    ],
)
def test_memory_sizes(nbytes, text):
    assert memory_size(nbytes) == text


NAME = "a\x1b]0;b\x07\x9b2J\u202ec\nd"
"""It would set a terminal's title, clear the screen, turn the text around, and begin a line."""
SHOWN = r"a\x1b]0;b\x07\x9b2J\u202ec\nd"


def test_names_do_not_control_the_terminal(capsys):
    console.info(f"Dispatch '{NAME}'")
    console.info(console.command_started(1, NAME))
    console.info(console.command_completed(1))
    for verbose in (False, True):
        console.print_values(NAME, np.dtype(np.uint8), 1, lambda *_: b"\7", verbose=verbose)
    assert capsys.readouterr().out == (
        f"Dispatch '{SHOWN}'\n[StartCmd][   1]\t: {SHOWN}\n[EndCmd][   1]\t: hr=0x0        \n\n"
        f"Resource '{SHOWN}': 7\nResource '{SHOWN}':\n[0] 7 (0x 7)\n\n"
    )
    console.complain(NAME)
    assert capsys.readouterr().err == SHOWN.replace(r"\nd", " d") + "\n"


@pytest.mark.parametrize("strides", [[1], [1, 1]])  # right, and an error that has the name
def test_names_in_what_the_command_line_says(tmp_path, monkeypatch, capsys, strides):
    monkeypatch.chdir(tmp_path)
    model = copy.deepcopy(SPLIT)
    model["dispatchables"] = {NAME: model["dispatchables"]["split"]}
    model["dispatchables"][NAME]["desc"]["InputTensor"]["Strides"] = strides
    model["commands"] = []
    Path("m.json").write_text(json.dumps(model))
    main(["check", "m.json"])
    said = "".join(capsys.readouterr())
    assert r"\x1b]0;b" in said
    assert all(c.isprintable() or c == "\n" for c in said)
