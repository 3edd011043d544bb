"""Run the command line in a child process, so that a crash of a driver can be reported."""

from __future__ import annotations

import sys

from vkops.cli.main import main
from vkops.system.processes import crash, supervise

HANG_SECONDS = 5
"""Seconds after which an interrupted child is taken to hang in a driver, and killed."""

CHILD = "import sys; from vkops.cli import main; sys.exit(main())"
"""The program of the child where there is no fork."""


def program() -> int:
    """Run the command line in a child, and return its exit status: the ``vkops`` program.

    If the child crashed, one line on standard error says so.
    """
    end = supervise(main, CHILD, HANG_SECONDS)
    crashed = crash(end.status)
    if end.hung:
        sys.stderr.write(f"Interrupted: the driver did not answer for {HANG_SECONDS} s\n")
    elif crashed:
        sys.stderr.write(
            f"The driver ended the process ({crashed}): a shader may have left its buffers, which "
            "`vkops debug validate` tells, or the driver is at fault\n"
        )
    if end.status < 0:
        return 128 - end.status
    return 1 if crashed else end.status
