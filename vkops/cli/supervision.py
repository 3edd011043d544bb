"""Run the command line in a child process, so that a crash of a driver can be reported."""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
from types import FrameType
from typing import NoReturn

from vkops.cli.main import main

_PR_SET_PDEATHSIG = 1
HANG_SECONDS = 5
"""Seconds after which an interrupted child is taken to hang in a driver, and killed."""

CHILD = "import sys; from vkops.cli import main; sys.exit(main())"
"""The program of the child where there is no fork."""

_FIRST_ERROR = 0xC0000000  # of the statuses that Windows gives a process that crashed


def program() -> int:
    """Run the command line in a child, and return its exit status: the ``vkops`` program.

    If the child crashed, one line on standard error says so.
    """
    return _forked() if hasattr(os, "fork") else _spawned()


def _spawned() -> int:
    """Run the command line in a new process, with what every system has."""
    with subprocess.Popen([sys.executable, "-c", CHILD, *sys.argv[1:]]) as child:
        try:
            status = child.wait()
        except KeyboardInterrupt:  # which the console sends to both
            try:
                status = child.wait(HANG_SECONDS)
            except subprocess.TimeoutExpired:
                child.kill()
                _report_hang()
                return 130
    if status < 0:
        _die_like(-status)
    if status >= _FIRST_ERROR:
        _report_crash(f"status {status:#X}")
        return 1
    return status


def _forked() -> int:
    ending = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    hung = signal.SIGVTALRM  # ends a process, and nothing else sends it
    parent = os.getpid()
    signal.pthread_sigmask(signal.SIG_BLOCK, ending)  # until both processes have their handlers
    child = os.fork()
    if not child:
        if sys.platform == "linux":  # it must not outlive a parent that was killed
            ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:
            os._exit(1)
        for number in ending[1:]:  # clean up and end its children, as at an interrupt
            signal.signal(number, lambda received, _: sys.exit(128 + received))
        signal.pthread_sigmask(signal.SIG_UNBLOCK, ending)
        return main()
    received_signals = []

    def forward(number: int, _: FrameType | None) -> None:
        received_signals.append(number)
        signal.alarm(HANG_SECONDS)
        if number != signal.SIGINT:  # which the terminal sends to both
            os.kill(child, number)

    for number in ending:
        signal.signal(number, forward)
    signal.signal(signal.SIGALRM, lambda *_: os.kill(child, hung))
    signal.pthread_sigmask(signal.SIG_UNBLOCK, ending)
    _, status = os.waitpid(child, 0)
    if os.WIFSIGNALED(status) and os.WTERMSIG(status) == hung:
        _report_hang()
        sys.exit(128 + received_signals[0])
    if os.WIFSIGNALED(status):
        _die_like(os.WTERMSIG(status))
    return os.WEXITSTATUS(status)


def _die_like(number: int) -> NoReturn:
    name = signal.Signals(number).name
    if number in (signal.SIGSEGV, signal.SIGBUS, signal.SIGFPE, signal.SIGABRT, signal.SIGILL):
        _report_crash(name)
    sys.exit(128 + number)


def _report_crash(what: str) -> None:
    sys.stderr.write(
        f"The driver ended the process ({what}): a shader may have left its buffers, which "
        "`vkops debug validate` tells, or the driver is at fault\n"
    )


def _report_hang() -> None:
    sys.stderr.write(f"Interrupted: the driver did not answer for {HANG_SECONDS} s\n")
