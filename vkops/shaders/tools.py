"""Run glslangValidator and the programs of spirv-tools, bounded in time and memory."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from vkops.errors import ShaderCompileError, printable, show
from vkops.system.processes import describe, run_limited
from vkops.system.vulkan import how_to_install

TIMEOUT_S = 30.0
"""A kernel compiles in a tenth of a second; a program that takes longer than this does not end."""

MEMORY_BYTES = 2 << 30
"""glslang allocates 100 MB a second for a file that includes itself."""

_OTHER_NAMES = {"glslangValidator": ("glslang",)}  # as newer versions of glslang call it


def find(program: str, package: str, variable: str | None = None) -> str:
    """Find ``program`` in PATH, or the file that the environment variable ``variable`` names.

    ``package`` is Debian's that contains it.

    Raises:
        ShaderCompileError: it is not there; the message says how to install it.
    """
    chosen = os.environ.get(variable, "") if variable else ""
    for name in [chosen] if chosen else (program, *_OTHER_NAMES.get(program, ())):
        if found := shutil.which(name):
            return os.path.abspath(found)  # the program may run in another folder
    if chosen:
        raise ShaderCompileError(f"{variable} names {chosen!r}, which is not an executable file")
    hint = f", or set {variable} to its path" if variable else ""
    raise ShaderCompileError(
        f"{program} is not on PATH: install it ({how_to_install(package)}){hint}"
    )


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
        ShaderCompileError: it cannot be started, or has not ended after ``TIMEOUT_S``.
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
    return returncode, output.decode(errors="replace")


# -- SPIR-V as text -------------------------------------------------------------------------------

_STRING = r'"(?:[^"\\]|\\.)*"'  # it can contain line breaks

_INSTRUCTION = re.compile(rf'(?:[^"\n]|{_STRING})+', re.DOTALL)
_TOKEN = re.compile(rf"{_STRING}|\S+", re.DOTALL)


class Instruction(NamedTuple):
    """An instruction; ``result`` is an id, or ``""`` if it has none."""

    result: str
    op: str
    operands: tuple[str, ...]
    text: str


def instructions(text: str) -> list[Instruction]:
    """Parse the output of spirv-dis.

    Raises:
        ShaderCompileError: there is something else in it.
    """
    found = []
    for line in _INSTRUCTION.findall(text):
        words = _TOKEN.findall(line)
        result = words[0] if words[1:2] == ["="] else ""
        op, *operands = (words[2:] if result else words) or [""]
        if not op.startswith("Op"):
            raise ShaderCompileError(f"spirv-dis printed {show(line)}, which is not an instruction")
        found.append(Instruction(result, op, tuple(operands), line))
    return found


def unquoted(literal: str) -> str:
    """Return the value of a string literal."""
    return re.sub(r"\\(.)", r"\1", literal[1:-1], flags=re.DOTALL)


def disassemble(spirv: bytes, *, names: bool = False) -> str:
    """Return a module as text, one instruction a line; ids are numbers, or ``names``.

    Raises:
        ShaderCompileError: it is damaged, or spirv-dis is missing.
    """
    options = ["--no-header", "--no-indent", *([] if names else ["--raw-id"])]
    program = find("spirv-dis", "spirv-tools")
    returncode, text = run([program, *options, "-"], stdin=spirv)
    if returncode != 0:
        raise _failed("SPIR-V cannot be read", returncode, text)
    return text


# -- changed modules ------------------------------------------------------------------------------


def specialized(spirv: bytes, values: Mapping[int, str]) -> bytes:
    """Return a module with other default values of specialization constants, by SpecId.

    Raises:
        ShaderCompileError: a value is wrong, or spirv-opt is missing.
    """
    pairs = " ".join(f"{number}:{value}" for number, value in values.items())
    option = f"--set-spec-const-default-value={pairs}"
    return _optimized(spirv, [option], "specialization constants cannot be set")


def with_constants_computed(spirv: bytes) -> bytes:
    """Return a module with all constants computed from the specialization constants' defaults.

    Raises:
        ShaderCompileError: it is damaged, or spirv-opt is missing.
    """
    options = ["--freeze-spec-const", "--fold-spec-const-op-composite"]
    return _optimized(spirv, options, "specialization constants cannot be computed")


def with_limited_indices(spirv: bytes) -> bytes:
    """Return a module with each index of an array or a vector clamped to the existing elements.

    A runtime array must have at least one element: the length of an empty one is not a limit.

    Raises:
        ShaderCompileError: it is damaged, or spirv-opt is missing.
    """
    return _optimized(spirv, ["--graphics-robust-access"], "indices cannot be limited")


def _optimized(spirv: bytes, options: Sequence[str], failure: str) -> bytes:
    program = find("spirv-opt", "spirv-tools")
    try:
        with tempfile.TemporaryDirectory(prefix="vkops-") as folder:
            output = Path(folder, "out.spv")
            returncode, log = run([program, *options, "-o", str(output), "-"], stdin=spirv)
            if returncode != 0 or not output.exists():
                raise _failed(failure, returncode, log)
            return output.read_bytes()
    except OSError as error:
        raise ShaderCompileError(f"no temporary folder for spirv-opt: {error.strerror}") from error


def _failed(what: str, returncode: int, log: str) -> ShaderCompileError:
    reason = printable(" ".join(log.split())).removeprefix("error: ") or describe(returncode)
    return ShaderCompileError(f"{what}: {reason}", log=log)
