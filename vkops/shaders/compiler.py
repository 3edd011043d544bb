"""Compile and validate shaders; errors are one line each."""

from __future__ import annotations

import hashlib
import os
import re
import tempfile
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from vkops.errors import InvalidDescError, ShaderCompileError, printable
from vkops.shaders import cache as disk
from vkops.shaders import sources, tools
from vkops.system.processes import describe

TEXT = "<source>"
"""The file that is the source in the SPIR-V of a text."""

_MAX_QUOTED = 500
"""Characters of the compiler's message that an error's message quotes; its log has all."""

_MAX_RECENT = 128
_MAX_RECENT_BYTES = 1 << 20
_recent: OrderedDict[str, bytes] = OrderedDict()
"""The modules that this process compiled or loaded last, by their keys."""

_LOCATED = re.compile(r"^ERROR: (?P<file>.+?):(?P<line>\d+): (?P<text>.*)$", re.MULTILINE)
_NO_ENTRY = "Entry point not found"
_ENTRY = re.compile(rb"\[\s*numthreads[^\]]*\]\s*(?:\[[^\]]*\]\s*)*\w+\s+(\w+)\s*\(")
_STATED = re.compile(r"^(?:ERROR|.*: Error): (?P<text>.*)$", re.MULTILINE)


def compile(
    source: str | Path,
    *,
    language: str = "glsl",
    entry: str = "main",
    defines: Mapping[str, str | int] = {},
    include: sources.Include = (),
    target_env: str = "vulkan1.1",
    debug: bool = False,
    cache: bool = True,
    memoize: bool = False,
    name: str = TEXT,
    allow_paths: bool = False,
    root: Path | None = None,
) -> bytes:
    r"""Compile a compute shader to SPIR-V: a file if ``source`` is a path, else text.

    ``language`` is glsl or hlsl; for HLSL, ``entry`` is the function that is compiled.
    ``#include "x.glsl"`` (in GLSL with GL_GOOGLE_include_directive) is searched for beside the
    including file, then in ``include``: one or more folders, or a mapping of names to texts. With
    symbolic links resolved, it must be in one of these, or in ``root`` if that is given, unless
    ``allow_paths`` is true. ``debug`` adds the source and line numbers to the SPIR-V,
    ``cache=False`` does not use the disk cache, ``memoize`` also keeps the SPIR-V in memory, and
    errors call a text ``name``.

    >>> spirv = compile("#version 450\nvoid main() {}")
    >>> len(spirv) % 4
    0

    Raises:
        ShaderCompileError: the shader is wrong, or the compiler is missing or fails.
        InvalidDescError: the entry point of HLSL is missing (SH-03).
    """
    flags = sources.flags(defines, target_env, debug, language, entry)
    compiler = find_compiler()
    try:
        with sources.include_folders(include) as (folders, texts):
            trusted = (source.parent, *folders) if isinstance(source, Path) else folders
            roots = None if allow_paths else trusted if root is None else [root]
            roots = [*roots, texts] if roots is not None and texts is not None else roots
            compilation = _Compilation(compiler, source, flags, folders, texts, roots, name)
            key = compilation.key()  # which refuses included files outside of the folders
            if not cache:
                return compilation.run()
            spirv = _recent.get(key) if memoize else None
            if spirv is None:
                spirv = compilation.cached(key)
                if memoize and len(spirv) <= _MAX_RECENT_BYTES:
                    _recent[key] = spirv
                while len(_recent) > _MAX_RECENT:
                    _recent.popitem(last=False)
            return spirv
    except OSError as error:
        message = f"no temporary folder to compile in: {error.strerror}"
        raise ShaderCompileError(message) from error


@dataclass(frozen=True)
class _Compilation:
    """A source with all that its SPIR-V depends on."""

    compiler: str
    source: str | Path
    flags: Sequence[str]
    include: Sequence[Path]
    texts: Path | None  # the temporary folder of included texts
    roots: Sequence[Path] | None
    name: str

    def key(self) -> str:
        """Return the hash of all that the SPIR-V depends on."""
        # Text is compiled in an empty folder, which has another name each time.
        temporary = Path(tempfile.gettempdir(), TEXT)
        own = self.source.parent if isinstance(self.source, Path) else temporary
        folders = (own, *self.include)
        digest = sources.digest(self.source, folders, self.flags, self.roots, self.texts)
        found = os.stat(path := os.path.realpath(self.compiler))
        identity = f"{path}\n{found.st_size}\n{found.st_mtime_ns}"
        return hashlib.sha256(f"{digest}\n{identity}".encode()).hexdigest()

    def cached(self, key: str) -> bytes:
        """Return the SPIR-V from the disk cache, or compile and store it."""
        found = disk.load(key)
        if found is not None:
            return found
        try:
            spirv = self.run()
        except ImportError as error:  # of a module of Python's
            message = f"{self.compiler} cannot be started: Python is exiting"
            raise ShaderCompileError(message) from error
        if self.key() == key:  # no file was edited while the compiler read it
            disk.store(key, spirv)
        return spirv

    def run(self) -> bytes:
        """Compile."""
        with tempfile.TemporaryDirectory(prefix="vkops-") as path:
            folder, name, cwd = Path(path), self.name, None
            text = sources.read(self.source)
            output = folder / "out.spv"
            if isinstance(self.source, Path):
                # Joined, so that no name of a file or a folder can look like an option.
                file, name = os.path.join(self.source.parent, self.source.name), str(self.source)
                file = f"./{file}" if file.startswith("-") else file
                includes = [f"-I{path}" for path in self.include]
            else:
                # The text can include files only from ``include``, as this folder is its own. Its
                # random name does not get into the SPIR-V, as the compiler runs in it.
                file, cwd = TEXT, self.texts or folder
                (cwd / TEXT).write_bytes(text)
                includes = [f"-I{os.path.abspath(p)}" for p in self.include if p != self.texts]
            argv = [self.compiler, *self.flags, *includes, "-o", str(output), file]
            try:
                returncode, log = tools.run(argv, cwd=cwd)
            except ShaderCompileError as error:
                message = f"{name}: {error.message}"
                raise ShaderCompileError(message, file=name, log=error.log) from error
            log = log.replace(TEXT, name) if cwd else log
            log = log.replace(f"{self.texts}{os.sep}", "") if self.texts else log
            if returncode != 0:
                if _NO_ENTRY in log and not _LOCATED.search(log):
                    raise self._without_entry(name, text)
                raise _diagnosed(self.compiler, name, returncode, log)
            spirv = sources.read(output, sources.MAX_SPIRV_BYTES) if output.exists() else b""
        if not disk.is_spirv(spirv):
            what = f"{len(spirv)} bytes that are not SPIR-V" if spirv else "no SPIR-V"
            message = f"{name}: {self.compiler} reported success and wrote {what}"
            raise ShaderCompileError(message, file=name, log=log)
        return spirv

    def _without_entry(self, name: str, text: bytes) -> InvalidDescError:
        """Make an error that names the functions with [numthreads]."""
        entry = self.flags[self.flags.index("-e") + 1]
        found = [match.decode(errors="replace") for match in _ENTRY.findall(text)]
        allowed = " or ".join(map(repr, found)) or "a function of the shader"
        return InvalidDescError(name, "entry point", f"got {entry!r}, must be {allowed}", "SH-03")


def find_compiler() -> str:
    """Return the path of the GLSL compiler.

    Raises:
        ShaderCompileError: it is not installed.
    """
    return tools.find("glslangValidator", "glslang-tools", "VKOPS_GLSLANG")


def validate(spirv: bytes, *, target_env: str = "vulkan1.1", options: Sequence[str] = ()) -> None:
    """Check ``spirv`` with spirv-val.

    Raises:
        ShaderCompileError: it is not valid for ``target_env``, or spirv-val is missing.
    """
    validator = tools.find("spirv-val", "spirv-tools")
    argv = [validator, *options, "--target-env", target_env, "-"]
    returncode, log = tools.run(argv, stdin=spirv)
    if returncode != 0:
        reason = " ".join(log.split()).removeprefix("error: ") or describe(returncode)
        message = f"invalid SPIR-V: {reason}"
        raise ShaderCompileError(message, log=log)


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
    text = " ".join(text.split())
    return text if len(text) <= _MAX_QUOTED else f"{text[:_MAX_QUOTED]}…"
