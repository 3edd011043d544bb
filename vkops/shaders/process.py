"""Runs the compiler and the validator: found by name, bounded in time and memory."""

from __future__ import annotations

import contextlib
import os
import resource
import shutil
import signal
import subprocess
from collections.abc import Sequence
from pathlib import Path

from vkops.errors import ShaderCompileError

TIMEOUT_S = 30.0
"""A kernel compiles in a tenth of a second; what takes longer than this never ends."""

MEMORY_BYTES = 2 << 30
"""An endless chain of includes eats 100 MB a second."""


def find(program: str, package: str, variable: str | None = None) -> str:
    """Find ``program``: what the environment's ``variable`` names, else what PATH has.

    Raises:
        ShaderCompileError: there is none; the message says which package brings it.
    """
    chosen = os.environ.get(variable, "") if variable else ""
    if found := shutil.which(chosen or program):
        # A path of several parts stays right when the program runs in another folder.
        return os.path.abspath(found)
    if chosen:
        raise ShaderCompileError(f"{variable} names {chosen!r}, which is not an executable file")
    hint = f", or set {variable} to its path" if variable else ""
    raise ShaderCompileError(
        f"{program} is not on PATH: install it (Debian's package {package}){hint}"
    )


def run(
    argv: Sequence[str], *, cwd: Path | None = None, stdin: bytes | None = None
) -> tuple[int, str]:
    """Run a program; return its exit status and all it said.

    The status is minus the signal if one ended it, as everywhere in Python.

    Raises:
        ShaderCompileError: it cannot be started, or is not done after ``TIMEOUT_S``.
    """
    try:
        process = subprocess.Popen(
            argv,
            cwd=cwd,
            stdin=subprocess.DEVNULL if stdin is None else subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    except OSError as error:
        raise ShaderCompileError(f"{argv[0]} cannot be started: {error.strerror}") from error
    with process:
        with contextlib.suppress(OSError):  # it may be over already
            resource.prlimit(process.pid, resource.RLIMIT_DATA, (MEMORY_BYTES, MEMORY_BYTES))
        try:
            said, _ = process.communicate(stdin, timeout=TIMEOUT_S)
        except BaseException as error:
            # The whole group: a wrapper script's child would keep the pipe open.
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            if isinstance(error, subprocess.TimeoutExpired):
                log = (error.stdout or b"").decode(errors="replace")
                message = f"{argv[0]} was stopped: not done after {TIMEOUT_S:g} s"
                raise ShaderCompileError(message, log=log) from None
            raise
    return process.returncode, said.decode(errors="replace")


def status(returncode: int) -> str:
    """Say ``returncode`` in words.

    >>> status(2), status(-11)
    ('exit status 2', 'killed by SIGSEGV')
    """
    if returncode >= 0:
        return f"exit status {returncode}"
    try:
        return f"killed by {signal.Signals(-returncode).name}"
    except ValueError:  # a real-time signal has no name
        return f"killed by signal {-returncode}"
