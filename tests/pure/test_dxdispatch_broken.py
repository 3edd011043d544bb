"""Every model of tests/broken_models has one fault, and gives one line that names its place."""

import json
import re
import subprocess
import sys
from pathlib import Path

import broken_models
import pytest
from models import model, resource
from processes import cpu_time

from vkops.cli import main

# The command takes less time of the processor, whatever the file says.
SECONDS = 5


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    made = tmp_path_factory.mktemp("broken_models")
    broken_models.write(made)
    return made


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


def run_in_process(file):
    """Check a model in a process that may take 2 GiB and 30 s; return status and streams."""
    from resource import RLIMIT_AS, RLIMIT_CPU, setrlimit

    def limit():
        setrlimit(RLIMIT_AS, (2 << 30, 2 << 30))
        setrlimit(RLIMIT_CPU, (30, 30))

    return subprocess.run(
        [sys.executable, "-c", "import sys; from vkops.cli import main; sys.exit(main())",
         "check", file],
        capture_output=True,
        text=True,
        cwd=Path(__file__).parents[2],
        timeout=120,
        preexec_fn=limit,
    )  # fmt: skip


@pytest.mark.posix("limits of a process's memory", tests_only=True)
@pytest.mark.parametrize(
    ("megabytes", "reason"),
    [
        (60, r":1:261: nested too deeply, must be 256 levels at most"),
        (100, r": longer than 64 MiB; keep large initial values in \.npy or raw files .*"),
    ],
)
def test_deep_or_long_files_are_refused(tmp_path, megabytes, reason):
    file = tmp_path / "bomb.json"
    with open(file, "wb") as stream:
        stream.write(b'{"a":')
        for _ in range(megabytes):
            stream.write(b"[" * 1_000_000)
    done = run_in_process(file)
    assert (done.returncode, done.stdout) == (1, "")
    assert re.fullmatch(f"Failed to parse the model: {re.escape(str(file))}{reason}\n", done.stderr)


@pytest.mark.posix("limits of a process's memory", tests_only=True)
def test_huge_sequence_is_refused_before_it_is_made(tmp_path):
    file = tmp_path / "huge.json"
    sequence = {"valueStart": 0, "valueDelta": 1, "valueCount": 10**12}
    file.write_text(json.dumps(model({"A": resource("UINT8", sequence)})))
    done = run_in_process(file)
    assert done.returncode == 1
    assert done.stderr == (
        f"Failed to parse the model: {file}: resources.A: got 1000000000000 bytes, "
        "must be 0 to 68719476736\n"
    )
