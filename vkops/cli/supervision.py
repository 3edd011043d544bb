"""The command line in a process of its own: a driver that crashes takes that one only."""

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
_HUNG = signal.SIGVTALRM  # which nobody else sends, and which ends a process
PATIENCE_S = 5
"""An interrupted child that is not done by then hangs in a driver, which no interrupt reaches."""


def program() -> int:
    """Run the command line in a child, and return its exit status: the ``vkops`` program.

    A child that a signal ended is told of in one line.
    """
    parent = os.getpid()
    signal.pthread_sigmask(signal.SIG_BLOCK, _ENDING)  # until both know what to do
    child = os.fork()
    if not child:
        # It must not outlive a parent that was killed.
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:
            os._exit(1)
        for number in _ENDING[1:]:  # cleaning up, and ending what it started, as at an interrupt
            signal.signal(number, lambda received, _: sys.exit(128 + received))
        signal.pthread_sigmask(signal.SIG_UNBLOCK, _ENDING)
        return main()
    asked = []

    def ask(number: int, _: FrameType | None) -> None:
        asked.append(number)
        signal.alarm(PATIENCE_S)
        if number != signal.SIGINT:  # which the terminal sends to both
            os.kill(child, number)

    for number in _ENDING:
        signal.signal(number, ask)
    signal.signal(signal.SIGALRM, lambda *_: os.kill(child, _HUNG))
    signal.pthread_sigmask(signal.SIG_UNBLOCK, _ENDING)
    _, status = os.waitpid(child, 0)
    if os.WIFSIGNALED(status) and os.WTERMSIG(status) == _HUNG:
        sys.stderr.write(f"Interrupted: the driver did not answer for {PATIENCE_S} s\n")
        sys.exit(128 + asked[0])
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
