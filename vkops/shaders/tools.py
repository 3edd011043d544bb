"""spirv-tools: SPIR-V as text, and back."""

from __future__ import annotations

import re
import tempfile
from pathlib import Path

from vkops.errors import ShaderCompileError, printable, show
from vkops.shaders import process

STRING = r'"(?:[^"\\]|\\.)*"'
"""A string in the text; one can go over many lines."""

INSTRUCTION = re.compile(rf'(?:[^"\n]|{STRING})+', re.DOTALL)


_TOKEN = re.compile(rf"{STRING}|\S+", re.DOTALL)


def words(instruction: str) -> list[str]:
    """An instruction's result ("" where it has none), its name, and its operands.

    Raises:
        ShaderCompileError: it is none.
    """
    found = _TOKEN.findall(instruction)
    found = [found[0], *found[2:]] if found[1:2] == ["="] else ["", *found]
    if len(found) < 2 or not found[1].startswith("Op"):
        raise ShaderCompileError(f"spirv-dis printed {show(instruction)}, which is no instruction")
    return found


def unquoted(literal: str) -> str:
    """What a string in the text stands for."""
    return re.sub(r"\\(.)", r"\1", literal[1:-1], flags=re.DOTALL)


def disassemble(spirv: bytes, *, names: bool = False) -> str:
    """The module as text, an instruction a line; ids are numbers, or ``names`` as in the source.

    Raises:
        ShaderCompileError: it is damaged, or spirv-dis is missing.
    """
    options = ["--no-header", "--no-indent", *([] if names else ["--raw-id"])]
    program = process.find("spirv-dis", "spirv-tools")
    returncode, text = process.run([program, *options, "-"], stdin=spirv)
    if returncode != 0:
        raise _failed("SPIR-V cannot be read", returncode, text)
    return text


def assemble(text: str, target_env: str) -> bytes:
    """The module that a text stands for; numeric ids stay as they are.

    Raises:
        ShaderCompileError: the text is wrong, or spirv-as is missing.
    """
    options = ["--preserve-numeric-ids", "--target-env", target_env]
    return _made("spirv-as", options, text.encode(), "SPIR-V cannot be assembled")


def frozen(spirv: bytes) -> bytes:
    """The module with its specialization constants as they are by default, and what follows.

    Raises:
        ShaderCompileError: it is damaged, or spirv-opt is missing.
    """
    options = ["--freeze-spec-const", "--fold-spec-const-op-composite"]
    return _made("spirv-opt", options, spirv, "specialization constants cannot be computed")


def with_limited_indices(spirv: bytes) -> bytes:
    """The module with each index of an array or a vector clamped to the elements that exist.

    An array without end must have one element at least: the length of an empty one is not a limit.

    Raises:
        ShaderCompileError: it is damaged, or spirv-opt is missing.
    """
    return _made("spirv-opt", ["--graphics-robust-access"], spirv, "indices cannot be limited")


def _made(tool: str, options: list[str], stdin: bytes, failure: str) -> bytes:
    program = process.find(tool, "spirv-tools")
    try:
        with tempfile.TemporaryDirectory(prefix="vkops-") as folder:
            output = Path(folder, "out.spv")
            returncode, log = process.run([program, *options, "-o", str(output), "-"], stdin=stdin)
            if returncode != 0 or not output.exists():
                raise _failed(failure, returncode, log)
            return output.read_bytes()
    except OSError as error:
        raise ShaderCompileError(f"no temporary folder for {tool}: {error.strerror}") from error


def _failed(what: str, returncode: int, log: str) -> ShaderCompileError:
    said = printable(" ".join(log.split())).removeprefix("error: ")
    return ShaderCompileError(f"{what}: {said or process.status(returncode)}", log=log)
