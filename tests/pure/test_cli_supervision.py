"""The ``vkops`` program: a child does the work, and its end is told whatever it is."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

import pytest

PROGRAM = "import os, signal, sys, time, vkops.cli.supervision as s; s.main = {main}; sys.exit(s.program())"


def start(main):
    return subprocess.Popen(
        [sys.executable, "-c", PROGRAM.format(main=main)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


@pytest.mark.parametrize("name", ["SIGSEGV", "SIGABRT", "SIGBUS"])
def test_a_crash_is_reported_in_one_line(name):
    process = start(f"lambda: os.kill(os.getpid(), signal.{name})")
    _, said = process.communicate(timeout=60)
    assert process.returncode == 128 + signal.Signals[name]
    assert said.count("\n") == 1
    assert said.startswith(f"The driver ended the process ({name}): ")


def test_sigkill_is_not_reported_as_a_crash():
    process = start("lambda: os.kill(os.getpid(), signal.SIGKILL)")
    assert process.communicate(timeout=60) == ("", "")
    assert process.returncode == 128 + signal.SIGKILL


@pytest.mark.parametrize("status", [0, 1, 2, 130])
def test_the_exit_status_is_that_of_the_child(status):
    process = start(f"lambda: {status}")
    assert process.communicate(timeout=60) == ("", "")
    assert process.returncode == status


@pytest.mark.parametrize("name", ["SIGTERM", "SIGHUP", "SIGKILL"])
def test_the_child_ends_with_its_parent(name):
    process = start("lambda: print(os.getpid(), flush=True) or time.sleep(60)")
    child = int(process.stdout.readline())
    process.send_signal(signal.Signals[name])
    process.communicate(timeout=60)
    assert process.returncode in (128 + signal.Signals[name], -signal.Signals[name])
    for _ in range(100):
        try:
            os.kill(child, 0)
        except ProcessLookupError:
            return
        time.sleep(0.05)
    pytest.fail("the child is still there")


@pytest.mark.parametrize("name", ["SIGTERM", "SIGHUP"])
def test_the_child_cleans_up(name):
    script = 'exec("try: print(flush=True); time.sleep(60)\\nfinally: print(str(1), flush=True)")'
    process = start(f"lambda: {script}")
    assert process.stdout.readline() == "\n"
    process.send_signal(signal.Signals[name])
    assert process.communicate(timeout=60) == ("1\n", "")
    assert process.returncode == 128 + signal.Signals[name]


def test_the_program_itself():
    done = subprocess.run(
        [sys.executable, "-m", "vkops", "nonsense"], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "Failed to parse command-line arguments: No such command 'nonsense'.\n"


WITHOUT_FORK = """
import os, signal, sys
del os.fork, signal.SIGHUP, signal.SIGALRM, signal.SIGVTALRM, signal.alarm, signal.pthread_sigmask
import vkops.cli.supervision as s
s.CHILD = {child} or s.CHILD
sys.exit(s.program())
"""


@pytest.mark.parametrize(
    ("child", "arguments", "status", "out", "err"),
    [
        (None, ["rule", "SPLIT-05"], 0, "SPLIT-05: ", ""),
        (None, ["xyz"], 2, "", "Failed to parse command-line arguments: "),
        ("import os; os.abort()", [], 128 + signal.SIGABRT, "", "The driver ended the process (SI"),
    ],
)
def test_a_system_without_fork_and_its_signals(child, arguments, status, out, err):
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_FORK.format(child=repr(child)), *arguments],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == status
    assert done.stdout.startswith(out)
    assert done.stderr.startswith(err)
    assert done.stderr.count("\n") == (status != 0)
