"""Run glslangValidator and the programs of spirv-tools, bounded in time and memory."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from vkops import lavapipe
from vkops.errors import ShaderCompileError, printable
from vkops.system.processes import describe, run_limited

TIMEOUT_S = 120.0
"""Seconds after which a program counts as hanging; a kernel compiles in a tenth of a second."""

MEMORY_BYTES = 2 << 30
"""glslang allocates 100 MB a second for a file that includes itself."""

_OTHER_NAMES = {"glslangValidator": ("glslang",)}  # as newer versions of glslang call it


def find(program: str, package: str, variable: str | None = None) -> str:
    """Find ``program``, or the file that the environment variable ``variable`` names.

    Programs of vkops_lavapipe, or on Windows of vkops_compilers, are preferred to those on PATH,
    which may be too old. ``package`` is the Debian package that contains it, or an extra of vkops.

    Raises:
        ShaderCompileError: it is not there; the message says how to install it.
    """
    chosen = os.environ.get(variable, "") if variable else ""
    names = [chosen] if chosen else [program, *_OTHER_NAMES.get(program, ())]
    if not chosen and (folder := lavapipe.programs()):
        names.insert(0, os.path.join(folder, program))
    path = next(filter(None, map(shutil.which, names)), None)
    if path:
        return os.path.abspath(path)  # absolute, because the program may run in another folder
    if chosen:
        raise ShaderCompileError(f"{variable} names {chosen!r}, which is not an executable file")
    hint = f", or set {variable} to its path" if variable else ""
    is_extra = package.startswith("vkops[")
    install = f"pip install '{package}'" if is_extra else lavapipe.how_to_install(package)
    raise ShaderCompileError(f"{program} is not on PATH: install it ({install}){hint}")


def run(
    argv: Sequence[str],
    *,
    cwd: Path | None = None,
    stdin: bytes | None = None,
    variables: Mapping[str, str] = {},
) -> tuple[int, str]:
    """Run a program, and return its exit status and its output, standard error included.

    The status is minus the number of a signal if a signal ended the program. ``variables`` are
    added to the environment.

    Raises:
        ShaderCompileError: it cannot be started, has not ended after ``TIMEOUT_S``, or may not
            write a file as large as its output.
    """
    try:
        returncode, output = run_limited(
            argv, seconds=TIMEOUT_S, nbytes=MEMORY_BYTES, cwd=cwd, stdin=stdin, variables=variables
        )
    except OSError as error:
        raise ShaderCompileError(f"{argv[0]} cannot be started: {error.strerror}") from error
    except subprocess.TimeoutExpired as error:
        log = (error.stdout or b"").decode(errors="replace")
        message = f"{argv[0]} was stopped: not done after {TIMEOUT_S:g} s"
        raise ShaderCompileError(message, log=log) from None
    text = output.decode(errors="replace").replace(os.linesep, "\n")
    if -returncode == getattr(signal, "SIGXFSZ", None):
        limit = "a limit of this process (ulimit -f) allows no files that large"
        raise ShaderCompileError(f"{argv[0]} was stopped: {limit}", log=text)
    return returncode, text


# -- SPIR-V ---------------------------------------------------------------------------------------


def run_on(spirv: bytes, what: str, program: str, *options: str) -> str:
    """Return the output of a program of spirv-tools; if it fails, an error begins with ``what``."""
    returncode, log = run([find(program, "spirv-tools"), *options, "-"], stdin=spirv)
    if returncode != 0:
        reason = printable(" ".join(log.split())).removeprefix("error: ") or describe(returncode)
        raise ShaderCompileError(f"{what}: {reason}", log=log)
    return log


def disassemble(spirv: bytes) -> str:
    """Return a module as text, with names of ids; ShaderCompileError if it is damaged."""
    return run_on(spirv, "SPIR-V cannot be read", "spirv-dis", "--no-header", "--no-indent")


def with_robust_access(spirv: bytes) -> bytes:
    """Return a module with each index of a buffer, array or vector clamped to its elements.

    A runtime array must have at least one element, because indices cannot be clamped to none.

    Raises:
        ShaderCompileError: it is damaged, or spirv-opt is missing.
    """
    return _changed(
        spirv, "indices cannot be limited", "--remove-duplicates", "--graphics-robust-access"
    )


def optimized(spirv: bytes) -> bytes:
    """Return a module without code that drivers' compilers remove, such as unused loads.

    Raises:
        ShaderCompileError: it is damaged, or spirv-opt is missing.
    """
    return _changed(spirv, "SPIR-V cannot be optimized", "-O")


def _changed(spirv: bytes, what: str, *options: str) -> bytes:
    try:
        with tempfile.TemporaryDirectory(prefix="vkops-") as folder:
            output = Path(folder, "out.spv")
            run_on(spirv, what, "spirv-opt", *options, "-o", str(output))
            return output.read_bytes() if output.exists() else b""
    except OSError as error:
        raise ShaderCompileError(f"no temporary folder for spirv-opt: {error.strerror}") from error
