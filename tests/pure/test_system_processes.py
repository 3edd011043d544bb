"""Programs with limits, and how processes end: on this system, and on one without POSIX."""

import json
import time
from pathlib import Path

import pytest
from processes import BOTH_WAYS, python, wait_for_end

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
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
print(child.pid, flush=True)
time.sleep(600)
"""


@pytest.fixture(params=BOTH_WAYS)
def run(request, monkeypatch):
    """Run Python text with limits; return its status and its output."""
    if request.param == "without POSIX":
        monkeypatch.setenv("PYTHONPATH", PORTABLE, prepend=":")

    def run(code, seconds=30):
        return json.loads(python("-c", RUN, code, seconds))

    return run


def test_status_and_output(run):
    status, output = run("import sys; print(1); sys.stderr.write('2'); sys.exit(3)")
    assert (status, output.split()) == (3, ["1", "2"])


def test_a_program_that_takes_too_long_is_ended_with_its_children(run):
    started = time.monotonic()
    for seconds in (2, 60):  # a slow machine may take longer to start both programs
        status, output = run(WITH_A_CHILD, seconds)
        assert status == "timeout"
        if output:
            break
    assert time.monotonic() - started < 500  # neither was waited for
    wait_for_end(int(output))


def test_a_program_that_takes_too_much_memory_does_not_get_it(run):
    status, output = run(
        "import time\nheld = []\n"
        "for _ in range(100):\n"
        "    held.append(b'1' * (20 << 20))\n"
        "    time.sleep(0.05)\n"
        "print('got it')",
        seconds=300,
    )
    assert status not in (0, "timeout")
    assert "got it" not in output
