"""Run the command line in a child process, so that a crash of a driver can be reported."""

from __future__ import annotations

import ctypes
import os
import signal
import sys
from types import FrameType
from typing import NoReturn

from vkops.cli.main import main

_PR_SET_PDEATHSIG = 1
_ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_HUNG = signal.SIGVTALRM  # ends a process, and nothing else sends it
HANG_SECONDS = 5
"""Seconds after which an interrupted child is taken to hang in a driver, and killed."""


def program() -> int:
    """Run the command line in a child, and return its exit status: the ``vkops`` program.

    If a signal ended the child, one line on standard error says so.
    """
    parent = os.getpid()
    signal.pthread_sigmask(signal.SIG_BLOCK, _ENDING)  # until both processes have their handlers
    child = os.fork()
    if not child:
        # It must not outlive a parent that was killed.
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:
            os._exit(1)
        for number in _ENDING[1:]:  # clean up and end its children, as at an interrupt
            signal.signal(number, lambda received, _: sys.exit(128 + received))
        signal.pthread_sigmask(signal.SIG_UNBLOCK, _ENDING)
        return main()
    received_signals = []

    def forward(number: int, _: FrameType | None) -> None:
        received_signals.append(number)
        signal.alarm(HANG_SECONDS)
        if number != signal.SIGINT:  # which the terminal sends to both
            os.kill(child, number)

    for number in _ENDING:
        signal.signal(number, forward)
    signal.signal(signal.SIGALRM, lambda *_: os.kill(child, _HUNG))
    signal.pthread_sigmask(signal.SIG_UNBLOCK, _ENDING)
    _, status = os.waitpid(child, 0)
    if os.WIFSIGNALED(status) and os.WTERMSIG(status) == _HUNG:
        sys.stderr.write(f"Interrupted: the driver did not answer for {HANG_SECONDS} s\n")
        sys.exit(128 + received_signals[0])
    if os.WIFSIGNALED(status):
        _die_like(os.WTERMSIG(status))
    return os.WEXITSTATUS(status)


def _die_like(number: int) -> NoReturn:
    name = signal.Signals(number).name
    if number in (signal.SIGSEGV, signal.SIGBUS, signal.SIGFPE, signal.SIGABRT, signal.SIGILL):
        sys.stderr.write(
            f"The driver ended the process ({name}): a shader may have left its buffers, which "
            "`vkops debug validate` tells, or the driver is at fault\n"
        )
    sys.exit(128 + number)
