"""Programs with limits, and how processes end: on this system, and on one without POSIX."""

import json
import os
import time
from pathlib import Path

import psutil
import pytest
from processes import BOTH_WAYS, python

PORTABLE = str(Path(__file__).parents[1] / "portable")
RUN = """
import json, subprocess, sys
from vkops.system.processes import run_limited
try:
    status, output = run_limited(
        [sys.executable, "-c", sys.argv[1]], seconds=float(sys.argv[2]), nbytes=200 << 20
    )
except subprocess.TimeoutExpired as error:
    status, output = "timeout", error.stdout or b""
print(json.dumps([status, output.decode()]))
"""
WITH_A_CHILD = """
import subprocess, sys, time
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
print(child.pid, flush=True)
time.sleep(60)
"""


@pytest.fixture(params=BOTH_WAYS)
def run(request, monkeypatch):
    """Run Python text with limits; return its status, its output and the seconds it took."""
    if request.param == "without POSIX":
        monkeypatch.setenv("PYTHONPATH", PORTABLE, prepend=":")

    def run(code, seconds=30):
        start = time.monotonic()
        printed = python("-c", RUN, code, seconds)
        return *json.loads(printed), time.monotonic() - start

    return run


def test_status_and_output(run):
    status, output, _ = run("import sys; print(1); sys.stderr.write('2'); sys.exit(3)")
    assert (status, output.split()) == (3, ["1", "2"])


def test_a_program_that_takes_too_long_is_ended_with_its_children(run):
    status, output, seconds = run(WITH_A_CHILD, seconds=10 if os.name == "nt" else 2)
    assert status == "timeout"
    assert seconds < 40
    deadline = time.monotonic() + 10
    while psutil.pid_exists(int(output)) and time.monotonic() < deadline:
        if psutil.Process(int(output)).status() == psutil.STATUS_ZOMBIE:
            break
        time.sleep(0.05)
    else:
        assert not psutil.pid_exists(int(output))


def test_a_program_that_takes_too_much_memory_does_not_get_it(run):
    status, output, seconds = run(
        "import time\nheld = []\n"
        "for _ in range(100):\n"
        "    held.append(b'1' * (20 << 20))\n"
        "    time.sleep(0.05)\n"
        "print('got it')"
    )
    assert status != 0
    assert "got it" not in output
    assert seconds < 30
