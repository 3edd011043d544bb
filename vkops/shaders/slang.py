"""Slang: its compiler, its options, and its messages in the form of those of glslang."""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

from vkops.errors import ShaderCompileError
from vkops.shaders import tools

VARIABLE = "VKOPS_SLANGC"
_NO_ENTRY = "no function found matching entry point name"

_LIBRARIES = ("*slang-compiler.*", "libslang.*", "slang.dll")
"""The names of the compiler in newer and older versions of slangpy."""

_SPIRV = {"vulkan1.0": 3, "vulkan1.1": 3, "vulkan1.2": 5, "vulkan1.3": 6}
"""The minor versions of SPIR-V, 1.3 at least."""

_OPTIONS = (
    "-lang", "slang", "-target", "spirv", "-stage", "compute",
    "-O0",  # the driver optimizes; what Slang runs here is a library that not all packages have
    "-fvk-use-entrypoint-name",
)  # fmt: skip

OVERLAP = "39001"
"""The warning about two parameters with one binding, such as register(t0) and register(u0)."""

_SOURCE = r"\n +\|\n.*\n +\| *\^+ "
"""The part of newer messages between a location and its fault: the line, and the mark below it."""

_MESSAGE = re.compile(
    r"^(?P<old>.*)\((?P<number>\d+)\): (?:fatal )?error (?:\d+): (?P<said>.*)$"
    r"|^(?:fatal )?error\[E\d+\]: (?P<title>.*)(?:\n +-+> (?P<file>.*?):(?P<line>\d+):\d+"
    rf"(?:{_SOURCE}(?P<detail>.+))?)?",
    re.MULTILINE,
)  # fmt: skip


def find_compiler() -> tuple[str, ...]:
    """Return the command that compiles Slang: slangc, or Python with the library of slangpy.

    The last part of it is the file of the compiler.

    Raises:
        ShaderCompileError: there is none.
    """
    if not os.environ.get(VARIABLE) and not shutil.which("slangc"):
        package = importlib.util.find_spec("slangpy")
        for folder in package.submodule_search_locations or () if package else ():
            for pattern in _LIBRARIES:
                for library in sorted(Path(folder).glob(pattern)):
                    program = Path(__file__).with_name("slang_library.py")
                    return sys.executable, "-I", str(program), str(library)
    return (tools.find("slangc", "vkops[slang]", VARIABLE),)


def flags(entry: str, target_env: str) -> tuple[str, ...]:
    """Return the compiler's options; ShaderCompileError if Slang has no such target."""
    if target_env not in _SPIRV:
        message = f"target_env: got {target_env!r}, must be {' or '.join(_SPIRV)} for Slang"
        raise ShaderCompileError(message)
    return (*_OPTIONS, "-profile", f"spirv_1_{_SPIRV[target_env]}", "-entry", entry)


def with_located_errors(log: str, overlapping: Sequence[str] = ()) -> str:
    """Return the compiler's messages with a line ``ERROR: FILE:LINE: TEXT`` before each error.

    Warnings that parameters named in ``overlapping`` share a binding become errors. If no warning
    names one of these, all such warnings do: the compiler does not name members of structures.
    """

    def located(match: re.Match[str]) -> str:
        file, line = match["old"] or match["file"], match["number"] or match["line"]
        text = (match["said"] or match["detail"] or match["title"]).removesuffix(".")
        if text.startswith(_NO_ENTRY):
            text = f"Entry point not found: {text}"
        at = f"{file}:{line}: " if file else ""
        return f"ERROR: {at}{text}\n{match[0]}"

    if overlapping:
        names = "|".join(map(re.escape, overlapping))
        named = rf"(?: {OVERLAP}:|\[E{OVERLAP}\]:.*\n +-+> .*{_SOURCE}).*'(?:{names})'"
        if re.search(rf"warning{named}", log) is None:
            named = rf" {OVERLAP}:|\[E{OVERLAP}\]"
        log = re.sub(rf"warning(?={named})", "error", log)
    return _MESSAGE.sub(located, log)


def dependencies(file: Path) -> list[str]:
    """Return the files that the compiler read, from its output ``TARGET: FILE FILE``."""
    text = file.read_text("utf-8", "surrogateescape") if file.exists() else ""
    names = re.split(r"(?<!\\)\s+", text.partition(": ")[2].strip())
    return [re.sub(r"\\(.)|\$(\$)", r"\1\2", name) for name in names if name]
