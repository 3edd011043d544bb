"""Compile and validate shaders; errors are one line each."""

from __future__ import annotations

import functools
import hashlib
import os
import re
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from vkops.errors import ShaderCompileError, printable
from vkops.shaders import cache as disk
from vkops.shaders import sources, tools
from vkops.system.processes import describe

_TEXT = "<source>"
_MAX_QUOTED = 500
"""Characters of the compiler's message that an error's message quotes; its log has all."""

_LOCATED = re.compile(r"^ERROR: (?P<file>.+?):(?P<line>\d+): (?P<text>.*)$", re.MULTILINE)
_STATED = re.compile(r"^(?:ERROR|.*: Error): (?P<text>.*)$", re.MULTILINE)


def compile(
    source: str | Path,
    *,
    defines: Mapping[str, str | int] = {},
    include_dirs: Sequence[Path] = (),
    target_env: str = "vulkan1.1",
    debug: bool = False,
    cache: bool = True,
    name: str = _TEXT,
    allow_paths: bool = False,
    root: Path | None = None,
) -> bytes:
    r"""Compile a compute shader to SPIR-V: a file if ``source`` is a path, else GLSL text.

    ``#include "x.glsl"`` (with GL_GOOGLE_include_directive) is searched for beside the including
    file, then in ``include_dirs``. With symbolic links resolved, it must be in one of these, or in
    ``root`` if that is given, unless ``allow_paths`` is true. ``debug`` adds the source and line
    numbers to the SPIR-V, ``cache=False`` does not use the disk cache, and errors call GLSL text
    ``name``.

    >>> spirv = compile("#version 450\nvoid main() {}")
    >>> len(spirv) % 4
    0

    Raises:
        ShaderCompileError: the shader is wrong, or the compiler is missing or fails.
    """
    flags = sources.flags(defines, target_env, debug)
    compiler = find_compiler()
    try:  # text is compiled in an empty folder, which has another name each time
        own = source.parent if isinstance(source, Path) else Path(tempfile.gettempdir(), _TEXT)
    except OSError as error:
        raise _without_folder(error) from error
    folders = (own, *include_dirs)
    trusted = folders if isinstance(source, Path) else include_dirs
    roots = None if allow_paths else trusted if root is None else [root]

    def key() -> str:
        digest = sources.digest(source, folders, flags, roots)
        return hashlib.sha256(f"{digest}\n{_version(compiler)}".encode()).hexdigest()

    before = key()
    found = disk.load(before) if cache else None
    if found is not None:
        return found
    spirv = _compile(compiler, source, name, include_dirs, flags)
    if cache and key() == before:  # no file was edited while the compiler read it
        disk.store(before, spirv)
    return spirv


def find_compiler() -> str:
    """Return the path of the GLSL compiler.

    Raises:
        ShaderCompileError: it is not installed.
    """
    return tools.find("glslangValidator", "glslang-tools", "VKOPS_GLSLANG")


def validate(spirv: bytes, *, target_env: str = "vulkan1.1") -> None:
    """Check ``spirv`` with spirv-val.

    Raises:
        ShaderCompileError: it is not valid for ``target_env``, or spirv-val is missing.
    """
    validator = tools.find("spirv-val", "spirv-tools")
    returncode, log = tools.run([validator, "--target-env", target_env, "-"], stdin=spirv)
    if returncode != 0:
        reason = " ".join(log.split()).removeprefix("error: ") or describe(returncode)
        message = f"invalid SPIR-V: {reason}"
        raise ShaderCompileError(message, log=log)


@functools.cache
def _version(compiler: str) -> str:
    returncode, output = tools.run([compiler, "--version"])
    if returncode != 0 or not output.strip():
        outcome = f"ended with {describe(returncode)}" if returncode else "says nothing"
        message = f"{compiler} is not a GLSL compiler: --version {outcome}"
        raise ShaderCompileError(message, log=output)
    return output


def _compile(
    compiler: str,
    source: str | Path,
    name: str,
    include_dirs: Sequence[Path],
    flags: Sequence[str],
) -> bytes:
    try:
        with tempfile.TemporaryDirectory(prefix="vkops-") as path:
            folder = Path(path)
            text = sources.read(source)
            output = folder / "out.spv"
            if isinstance(source, Path):
                # Joined, so that no name of a file or a folder can look like an option.
                file, cwd, name = os.path.join(source.parent, source.name), None, str(source)
                file = f"./{file}" if file.startswith("-") else file
            else:
                # The text can include files only from include_dirs, as this folder is its own. Its
                # random name does not get into the SPIR-V, as the compiler runs in it.
                file, cwd = _TEXT, folder
                (folder / _TEXT).write_bytes(text)
            includes = [f"-I{os.path.abspath(path) if cwd else path}" for path in include_dirs]
            argv = [compiler, *flags, *includes, "-o", str(output), file]
            try:
                returncode, log = tools.run(argv, cwd=cwd)
            except ShaderCompileError as error:
                message = f"{name}: {error.message}"
                raise ShaderCompileError(message, file=name, log=error.log) from error
            log = log.replace(_TEXT, name) if cwd else log
            if returncode != 0:
                raise _diagnosed(compiler, name, returncode, log)
            spirv = sources.read(output, sources.MAX_SPIRV_BYTES) if output.exists() else b""
    except OSError as error:
        raise _without_folder(error) from error
    if not disk.is_spirv(spirv):
        what = f"{len(spirv)} bytes that are not SPIR-V" if spirv else "no SPIR-V"
        message = f"{name}: {compiler} reported success and wrote {what}"
        raise ShaderCompileError(message, file=name, log=log)
    return spirv


def _without_folder(error: OSError) -> ShaderCompileError:
    return ShaderCompileError(f"no temporary folder to compile in: {error.strerror}")


def _diagnosed(compiler: str, name: str, returncode: int, log: str) -> ShaderCompileError:
    """Make an error of the compiler's output: its first message with a line, or its first message.

    ``#line`` in the shader changes the file and line that the compiler names.
    """
    located, stated = _LOCATED.search(log), _STATED.search(log)
    file, line, text = name, None, ""
    if located and located["file"] == "-1":  # where glslang keeps the -D macros
        text = f": in the defines: {_quoted(located['text'])}"
    elif located:
        file, line = os.path.normpath(located["file"]), int(located["line"])
        text = f":{line}: {_quoted(located['text'])}"
    elif stated:
        text = f": {_quoted(stated['text'])}"
    else:
        text = f": {compiler} failed without a diagnostic ({describe(returncode)})"
        if returncode < 0:  # how glslang ends on an endless chain of includes
            text += "; does a file include itself?"
    return ShaderCompileError(printable(f"{file}{text}"), file=file, line=line, log=log)


def _quoted(text: str) -> str:
    """Shorten a message of the compiler."""
    text = " ".join(text.split())
    return text if len(text) <= _MAX_QUOTED else f"{text[:_MAX_QUOTED]}…"
