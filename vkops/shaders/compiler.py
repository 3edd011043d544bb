"""Compile and validate shaders; errors are one line each."""

from __future__ import annotations

import functools
import hashlib
import os
import re
import sys
import tempfile
from collections import Counter, OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from vkops.errors import InvalidDescError, ShaderCompileError, printable
from vkops.shaders import diagnostics, foreign, slang, sources, tools
from vkops.shaders.binary import Op, corrected, is_spirv
from vkops.shaders.module import Module
from vkops.system.disk_cache import DiskCache

EXITING = "no shader can be compiled while Python exits"
TEXT = "<source>" if os.name != "nt" else "(source)"  # Windows has no < in names
"""The file that is the source in the SPIR-V of a text."""

_REVISION = 3
"""Changes with the modules that vkops makes of what the compiler writes."""

_CACHE = DiskCache("spirv", "shader cache", sources.MAX_SPIRV_BYTES)
_VALID = DiskCache("valid", "cache of valid shaders", 100)
_MAX_RECENT = 128
_MAX_RECENT_BYTES = 1 << 20
_recent: OrderedDict[str, bytes] = OrderedDict()
"""The modules that this process compiled or loaded last, by their keys."""

_TARGETS = {4: "vulkan1.1spv1.4", 5: "vulkan1.2", 6: "vulkan1.3"}
"""The environments of SPIR-V 1.4 and later."""

_LAYOUTS = {
    "": (),
    "uniformBufferStandardLayout": ("--uniform-buffer-standard-layout",),
    "scalarBlockLayout": ("--scalar-block-layout",),
}
"""Features of Vulkan that allow other layouts of blocks, each more, and options of spirv-val."""

_SIZED_BY_IDS = (6 << 16 | Op.ExecutionModeId).to_bytes(4, "little")
"""The first word of the mode LocalSizeId, which SPIR-V before 1.6 may have with maintenance4."""

_NO_ENTRY = "Entry point not found"  # with no line; slang.py makes the same of Slang's message
_ENTRY = re.compile(rb"\[\s*numthreads[^\]]*\]\s*(?:\[[^\]]*\]\s*)*\w+\s+(\w+)\s*\(")
_GLOBALS = b"$Global"
_PUSHED = re.compile(r"\[\[\s*vk\s*::\s*push_constant\s*\]\](?!\s*(?:ConstantBuffer|cbuffer)\b)")

line_users: list[object] = []
"""Those that need lines: while there are some, the SPIR-V of all sources of users has them.

They are added and removed one by one, as the observers of a ``VulkanDevice``.
"""


def read(
    source: str | Path, *, language: str | None = None, debug: bool = False, **settings: Any
) -> bytes:
    """Return the SPIR-V of a text, of a file, or in a .spv file, unchecked.

    ``language`` is that of ``load``, and ``settings`` are those of ``compile``.

    Raises:
        ShaderCompileError: it is wrong, or a tool is missing.
        InvalidDescError: the entry point of HLSL or Slang is missing (SH-03).
    """
    if language is None:
        if isinstance(source, Path):
            foreign.check_file(source)
        suffix = source.suffix if isinstance(source, Path) else ""
        language = {".spv": "spirv", ".hlsl": "hlsl", ".slang": "slang"}.get(suffix, "glsl")
    if language == "spirv" and isinstance(source, Path):
        return corrected(sources.read(source, sources.MAX_SPIRV_BYTES))
    debug = debug or bool(line_users)
    return compile(source, language=language, memoize=True, debug=debug, **settings)


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
    name: str = "<source>",
    allow_paths: bool = False,
    root: Path | None = None,
) -> bytes:
    r"""Compile a compute shader to SPIR-V: a file if ``source`` is a path, else text.

    ``language`` is glsl, hlsl or slang; ``entry`` is the function that is compiled, for GLSL main.
    ``#include "x.glsl"`` is searched for beside the including file, then in ``include``: one or
    more folders, or a mapping of names to texts. With symbolic links resolved, it must be in one of
    these, or in ``root`` if that is given, unless ``allow_paths`` is true. ``debug`` adds the
    source and line numbers to the SPIR-V, ``cache=False`` does not use the disk cache, ``memoize``
    also keeps the SPIR-V in memory, and errors call a text ``name``.

    >>> spirv = compile("#version 450\nvoid main() {}")
    >>> len(spirv) % 4
    0

    Raises:
        ShaderCompileError: the shader is wrong, or the compiler is missing or fails.
        InvalidDescError: the entry point of HLSL or Slang is missing (SH-03).
    """
    # Messages of the layer then have lines.
    debug = debug or "VKOPS_MESSAGE_LOG" in os.environ
    flags = sources.flags(defines, target_env, debug, language, entry)
    if language == "glsl" and sources.has_includes(sources.read(source)):
        flags = (*flags, sources.ALLOW_INCLUDES)
    try:
        command = slang.find_compiler() if language == "slang" else (find_compiler(),)
        with sources.include_folders(include) as (folders, texts):
            trusted = (source.parent, *folders) if isinstance(source, Path) else folders
            roots = None if allow_paths else trusted if root is None else [root]
            roots = [*roots, texts] if roots is not None and texts is not None else roots
            compilation = _Compilation(command, source, entry, flags, folders, texts, roots, name)
            key = compilation.key()  # which refuses included files outside of the folders
            if not cache:
                return compilation.run()
            spirv = _recent.get(key) if memoize else None
            if spirv is None:
                spirv = compilation.cached(key)
                if memoize and compilation.is_known and len(spirv) <= _MAX_RECENT_BYTES:
                    _recent[key] = spirv
                while len(_recent) > _MAX_RECENT:
                    _recent.popitem(last=False)
            return spirv
    except ImportError as error:  # of a module of Python's
        raise ShaderCompileError(EXITING) from error
    except OSError as error:
        raise ShaderCompileError(f"no temporary folder to compile in: {error.strerror}") from error


@dataclass(frozen=True)
class _Compilation:
    """A source with all that its SPIR-V depends on."""

    command: Sequence[str]  # whose last part is the file of the compiler
    source: str | Path
    entry: str
    flags: Sequence[str]
    include: Sequence[Path]
    texts: Path | None  # the temporary folder of included texts
    roots: Sequence[Path] | None
    name: str
    known: set[str] = field(default_factory=set)  # files that the key depends on
    read: set[str] = field(default_factory=set)  # files that the compiler of Slang read

    @property
    def is_known(self) -> bool:
        """Whether the key depends on all files that were read."""
        return self.read <= self.known

    def key(self) -> str:
        """Return the hash of all that the SPIR-V depends on."""
        # Text is compiled in an empty folder, which has another name each time.
        temporary = Path(tempfile.gettempdir(), TEXT)
        folder = self.source.parent if isinstance(self.source, Path) else temporary
        folders = (folder, *self.include)
        digest = sources.digest(
            self.source, folders, self.flags, self.roots, self.texts, self.known
        )
        return _key(digest, self.command[-1])

    def cached(self, key: str) -> bytes:
        """Return the SPIR-V from the disk cache, or compile and store it."""
        stored = _CACHE.load(key)
        if stored is not None and is_spirv(stored):
            return stored
        spirv = self.run()
        if self.is_known and self.key() == key:  # no file was edited while the compiler read it
            _CACHE.store(key, spirv)
        return spirv

    def run(self) -> bytes:
        """Compile."""
        if sys.is_finalizing():
            raise ShaderCompileError(EXITING)
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
            is_slang, written = "-lang" in self.flags, folder / "dependencies"
            depends = ["-depfile", str(written)] if is_slang else []
            loop = "; does a file include itself?" if sources.has_includes(text) else ""
            argv = [*self.command, *self.flags, *includes, file, *depends, "-o", str(output)]
            try:
                returncode, log = tools.run(argv, cwd=cwd)
            except ShaderCompileError as error:
                message = f"{name}: {error.message}{loop}"
                raise ShaderCompileError(message, file=name, log=error.log) from error
            log = log.replace(TEXT, name) if cwd else log
            log = _without(log, self.texts) if self.texts else log
            spirv = sources.read(output, sources.MAX_SPIRV_BYTES) if output.exists() else b""
            is_double = is_slang and returncode == 0 and slang.OVERLAP in log
            blocks = Module.read(spirv).blocks if is_double else ()
            uses = Counter(block.place for block in blocks)
            overlapping = [block.point for block in blocks if uses[block.place] > 1]
            log = slang.with_located_errors(log, overlapping) if is_slang else log
            if returncode != 0 or overlapping:
                if language := foreign.recognised(text):
                    raise language.error(name, log)
                located = diagnostics.LOCATED.search(log)
                if _NO_ENTRY in (log if located is None else located[0]):
                    raise self._without_entry(name, text)
                code = functools.partial(self._code, name if cwd else file, text)
                crash = loop or "; that is a fault of the compiler, not of the shader"
                raise diagnostics.error(self.command[-1], name, returncode, log, crash, code)
            macros = [flag for flag in self.flags if flag.startswith("-D")]  # and -D for HLSL
            real_source = os.path.realpath(os.path.join(cwd or "", file))
            for path in slang.dependencies(written):
                real = os.path.realpath(os.path.join(cwd or "", path))
                if self.roots is not None and real != real_source:
                    sources.check_inside(path, real, self.roots)
                self.read.update({real} - {real_source})
            argv = [*self.command, "-E", "-S", "comp", *macros, *includes, file]
            if _GLOBALS in spirv and _PUSHED.search(tools.run(argv, cwd=cwd)[1]):
                message = f"{name}: glslang ignores [[vk::push_constant]] before a struct's name: "
                message += "write [[vk::push_constant]] ConstantBuffer<NAME> instead of NAME"
                raise ShaderCompileError(message, file=name, log=log)
        if not is_spirv(spirv):
            what = f"{len(spirv)} bytes that are not SPIR-V" if spirv else "no SPIR-V"
            message = f"{name}: {self.command[-1]} reported success and wrote {what}"
            raise ShaderCompileError(message, file=name, log=log)
        return corrected(spirv)

    def _code(self, source: str, text: bytes, file: str, line: int) -> str:
        """Return a line of the source, or of an included file that may be read."""
        code = diagnostics.numbered_lines(text, source).get((file, line), "")
        if code or file == source:
            return code
        try:
            path = Path(self.texts or "", file)
            path = path if path.exists() else Path(file)
            if self.roots is not None:
                sources.check_inside(file, os.path.realpath(path), self.roots)
            return diagnostics.numbered_lines(sources.read(path), file).get((file, line), "")
        except (ShaderCompileError, OSError, ValueError):  # #line can name anything
            return ""

    def _without_entry(self, name: str, text: bytes) -> InvalidDescError:
        """Make an error that names the functions with [numthreads]."""
        names = [match.decode(errors="replace") for match in _ENTRY.findall(text)]
        allowed = " or ".join(map(repr, names)) or "a function of the shader"
        return InvalidDescError(
            name, "entry point", f"got {self.entry!r}, must be {allowed}", "SH-03"
        )


def find_compiler() -> str:
    """Return the path of the GLSL compiler; ShaderCompileError if it is not installed."""
    return tools.find("glslangValidator", "glslang-tools", "VKOPS_GLSLANG")


def validate(spirv: bytes, *, target_env: str = "vulkan1.1", options: Sequence[str] = ()) -> None:
    """Check ``spirv`` with spirv-val.

    Raises:
        ShaderCompileError: it is not valid for ``target_env``, or spirv-val is missing.
    """
    tools.run_on(spirv, "invalid SPIR-V", "spirv-val", *options, "--target-env", target_env)


def validated(spirv: bytes, name: str) -> str:
    """Check a module of SPIR-V 1.0 to 1.6, and return the feature that its layouts need, or "".

    Raises:
        ShaderCompileError: it is not valid, or spirv-val is missing; the message names ``name``.
    """
    if not is_spirv(spirv):
        raise ShaderCompileError(f"{name}: {len(spirv)} bytes that are not SPIR-V", file=name)
    minor = spirv[5]
    if spirv[6] != 1 or minor > max(_TARGETS):
        message = f"{name}: got SPIR-V {spirv[6]}.{minor}, must be 1.0 to 1.{max(_TARGETS)}"
        raise ShaderCompileError(message, file=name)
    key = _key(hashlib.sha256(spirv).hexdigest(), tools.find("spirv-val", "spirv-tools"))
    known = _VALID.load(key)
    if known is not None and known.decode(errors="replace") in _LAYOUTS:
        return known.decode()
    refusal = None
    more = ("--allow-localsizeid",) if _SIZED_BY_IDS in spirv else ()
    for layout, options in _LAYOUTS.items():
        try:
            environment = _TARGETS.get(minor, "vulkan1.1")
            validate(spirv, target_env=environment, options=(*options, *more))
        except ShaderCompileError as error:
            refusal = refusal or error
        else:
            _VALID.store(key, layout.encode())
            return layout
    assert refusal is not None
    message = f"{name}: {printable(refusal.message)}"
    raise ShaderCompileError(message, file=name, log=refusal.log) from refusal


def _key(digest: str, program: str) -> str:
    """Return the hash of the input of a program and of the file of the program."""
    status = os.stat(path := os.path.realpath(program))
    identity = f"{path}\n{status.st_size}\n{status.st_mtime_ns}"
    return hashlib.sha256(f"{digest}\n{identity}\n{_REVISION}".encode()).hexdigest()


def _without(log: str, folder: Path) -> str:
    """Cut a folder off the names of its files; in some of them, Windows' glslang writes slashes."""
    prefix = re.escape(f"{folder}{os.sep}").replace(re.escape(os.sep), r"[/\\]")
    return re.sub(prefix, "", log)
