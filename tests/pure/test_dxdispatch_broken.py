"""Every model of tests/broken_models has one fault, and gives one line that names its place."""

import json
import re
from pathlib import Path

import broken_models
import pytest
from models import model, resource
from processes import cpu_time, outcome

from vkops.cli import main

SECONDS = 5
"""The command takes less time of the processor, whatever the file says."""

SEQUENCE = {"valueStart": 0, "valueDelta": 1, "valueCount": 10**12}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("broken_models")
    broken_models.write(path)
    return path


def listing(folder):
    return sorted(str(path) for path in folder.rglob("*"))


@pytest.mark.parametrize("name", broken_models.CASES)
def test_one_line_and_status_1(name, folder, monkeypatch, capfd, message):
    monkeypatch.chdir(folder)
    before = listing(folder)
    with cpu_time(below=SECONDS):
        assert main(["check", f"{name}.json"]) == 1
    seen = capfd.readouterr()
    line = seen.err.removesuffix("\n")
    _, at, rule = broken_models.CASES[name]
    place = f"{name}.json:{at}: " if at[:1].isdigit() else f"{name}.json: {at}: "
    assert (place if at else f"{name}.json: ") in line
    assert re.findall(r" \[([A-Z0-9]+-\d\d)\]$", line) == ([rule] if rule else [])
    message(line, operators=broken_models.OPERATOR_NAMES)
    assert seen.out == ""
    assert listing(folder) == before


def test_the_models_that_are_changed_are_sound(folder, monkeypatch, capfd):
    monkeypatch.chdir(folder)
    for text in (broken_models.SPLIT, broken_models.SHADER):
        Path("sound.json").write_bytes(text)
        assert main(["check", "sound.json"]) == 0, capfd.readouterr().err
    Path("sound.json").unlink()


LIMITED = """
from resource import RLIMIT_AS, RLIMIT_CPU, setrlimit
setrlimit(RLIMIT_AS, (2 << 30, 2 << 30))
setrlimit(RLIMIT_CPU, (30, 30))
import sys
from vkops.cli import main
sys.exit(main())
"""


@pytest.mark.posix("limits of a process's memory", tests_only=True)
@pytest.mark.parametrize(
    ("make", "reason"),
    [
        (
            lambda: '{"a":' + "[" * 60_000_000,
            ":1:261: nested too deeply, must be 256 levels at most",
        ),
        (
            lambda: json.dumps(model({"A": resource("UINT8", SEQUENCE)})),
            ": resources.A: got 1000000000000 bytes, must be 0 to 68719476736",
        ),
    ],
    ids=["deep", "huge sequence"],
)
def test_models_that_would_take_much_memory(tmp_path, make, reason):
    """They are refused in a process that may take 2 GiB and 30 s."""
    file = tmp_path / "bomb.json"
    file.write_text(make())
    said = f"Failed to parse the model: {file}{reason}\n"
    assert outcome("-c", LIMITED, "check", file) == (1, "", said)
