"""Every file of tests/broken_models has one fault; each gives exactly the line expected."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
from models import model, resource
from processes import cpu_time

from vkops import dml
from vkops.cli import main

FOLDER = Path(__file__).parents[1] / "broken_models"
OPERATOR_NAMES = ", ".join(sorted(dml.OPERATORS))
EXPECTED = json.loads((FOLDER / "expected.json").read_text().replace("{operators}", OPERATOR_NAMES))

# The command takes less time of the processor, whatever the file says.
SECONDS = 5


def listing():
    return sorted(str(path) for path in FOLDER.rglob("*"))


def test_the_table_is_complete():
    assert sorted(EXPECTED) == sorted(
        path.name for path in FOLDER.glob("*.json") if path.name != "expected.json"
    )
    assert len(set(EXPECTED.values())) == len(EXPECTED)


@pytest.mark.parametrize("name", sorted(EXPECTED))
def test_one_line_and_status_1(name, monkeypatch, capfd):
    monkeypatch.chdir(FOLDER)
    before = listing()
    with cpu_time(below=SECONDS):
        assert main(["check", name]) == 1
    seen = capfd.readouterr()
    assert seen.err == EXPECTED[name] + "\n"
    assert seen.out == ""
    assert listing() == before


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
        cwd=FOLDER.parents[1],
        timeout=120,
        preexec_fn=limit,
    )  # fmt: skip


@pytest.mark.posix("limits of a process's memory", tests_only=True)
@pytest.mark.parametrize(
    ("megabytes", "reason"),
    [
        (60, r":1:261: nested too deeply, allowed 256 levels"),
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
        "allowed 0 to 68719476736\n"
    )
