"""The ``vkops`` program: a child does the work, and its end is told whatever it is."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from processes import BOTH_WAYS, outcome, wait_for_end

PROGRAM = """
import os, signal, sys, time
import vkops.cli.supervision as s
s.main = {main}
s.CHILD = {child!r}
sys.exit(s.program())
"""
CHILD = "import os, signal, sys, time; sys.exit(({main})())"
PORTABLE = Path(__file__).parents[1] / "portable"


@pytest.fixture(params=BOTH_WAYS)
def system(request, monkeypatch):
    """Both ways to start the child: this system's, and that of systems without forks."""
    if request.param == "without POSIX":
        monkeypatch.setenv("PYTHONPATH", str(PORTABLE), prepend=os.pathsep)


def start(main):
    program = PROGRAM.format(main=main, child=CHILD.format(main=main))
    streams = dict.fromkeys(["stdout", "stderr"], subprocess.PIPE)
    return subprocess.Popen([sys.executable, "-c", program], **streams, text=True)


def ended(main):
    """The exit status of the program, and what it printed."""
    process = start(main)
    printed = process.communicate(timeout=300)
    return process.returncode, *printed


@pytest.mark.posix("signals that end processes", tests_only=True)
@pytest.mark.parametrize("name", ["SIGSEGV", "SIGABRT", "SIGBUS", "SIGKILL"])
def test_a_crash_is_reported_in_one_line(system, name):
    """SIGKILL is not one: another process sent it."""
    status, printed, said = ended(f"lambda: os.kill(os.getpid(), signal.{name})")
    assert (status, printed) == (128 + signal.Signals[name], "")
    is_crash = name != "SIGKILL"
    assert said.count("\n") == is_crash
    assert said.startswith(f"The driver ended the process ({name}): " * is_crash)


@pytest.mark.posix("a forked child, which has its own handlers of signals")
@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM", "SIGHUP"])
def test_a_signal_while_the_interpreter_exits_ends_the_process_silently(name):
    raising = f"__import__('atexit').register(signal.raise_signal, signal.{name})"
    assert ended(f"lambda: {raising} and 0") == (128 + signal.Signals[name], "", "")


@pytest.mark.posix("a parent that ignores the ends of its children")
def test_the_end_of_a_child_is_noticed_where_the_parent_ignored_it():
    main = "lambda: 3"
    program = "import signal; signal.signal(signal.SIGCHLD, signal.SIG_IGN)"
    program += PROGRAM.format(main=main, child=CHILD.format(main=main))
    assert outcome("-c", program)[0] == 3


@pytest.mark.parametrize("status", [0, 1, 2, 130])
def test_the_exit_status_is_that_of_the_child(system, status):
    assert ended(f"lambda: {status}") == (status, "", "")


@pytest.mark.posix("signals that end the child with its parent")
@pytest.mark.parametrize("name", ["SIGTERM", "SIGHUP", "SIGKILL"])
def test_the_child_ends_with_its_parent(name):
    process = start("lambda: print(os.getpid(), flush=True) or time.sleep(600)")
    child = int(process.stdout.readline())
    process.send_signal(signal.Signals[name])
    process.communicate(timeout=300)
    assert process.returncode in (128 + signal.Signals[name], -signal.Signals[name])
    wait_for_end(child)


@pytest.mark.posix("signals that end the child with its parent")
@pytest.mark.parametrize("name", ["SIGTERM", "SIGHUP"])
def test_the_child_cleans_up(name):
    # A signal right before a long sleep would be handled only after it.
    loop = "try:\\n print(flush=True)\\n while True: time.sleep(0.01)"
    script = f'exec("{loop}\\nfinally: print(str(1), flush=True)")'
    process = start(f"lambda: {script}")
    assert process.stdout.readline() == "\n"
    process.send_signal(signal.Signals[name])
    assert process.communicate(timeout=300) == ("1\n", "")
    assert process.returncode == 128 + signal.Signals[name]


def test_the_program_itself(system):
    said = "Failed to parse command-line arguments: No such command 'nonsense'.\n"
    assert outcome("-m", "vkops", "nonsense") == (2, "", said)
