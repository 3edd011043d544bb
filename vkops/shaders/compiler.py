"""Compile and validate shaders; errors are one line each."""

from __future__ import annotations

import functools
import hashlib
import os
import re
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from vkops.errors import InvalidDescError, ShaderCompileError, printable
from vkops.shaders import bundle_use, diagnostics, foreign, slang, sources, tools
from vkops.shaders.binary import Op, corrected, is_spirv
from vkops.shaders.compile_notice import compiling
from vkops.shaders.module import Module
from vkops.shaders.recorded_shaders import record
from vkops.system.disk_cache import DiskCache
from vkops.system.threads import cached_property

EXITING = "no shader can be compiled while Python exits"
TEXT = "<source>" if os.name != "nt" else "(source)"  # Windows has no < in names
"""The file that is the source in the SPIR-V of a text."""

UNNAMED = "<source>"
"""The name of a source that has none; a file has its own."""

_REVISION = 3
"""A part of keys: it changes when vkops changes the output of the compiler in another way."""

_CACHE = DiskCache("spirv", "shader cache", sources.MAX_SPIRV_BYTES)
_VALID = DiskCache("valid", "cache of valid shaders", 100)
_MAX_RECENT = 128
_MAX_RECENT_BYTES = 1 << 20
_recent: dict[str, bytes] = {}
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
    """Compile a text or a file, or read a .spv file; return the SPIR-V, which is not checked.

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
    name: str = UNNAMED,
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
        with sources.include_folders(include) as (folders, texts):
            trusted = (source.parent, *folders) if isinstance(source, Path) else folders
            roots = None if allow_paths else trusted if root is None else [root]
            roots = [*roots, texts] if roots is not None and texts is not None else roots
            if isinstance(source, Path) and name == UNNAMED:
                name = printable(source.name)
            compilation = _Compilation(
                language, source, entry, flags, folders, texts, roots, name, cache, memoize
            )
            return compilation.spirv()
    except ImportError as error:  # of a module of Python's
        raise ShaderCompileError(EXITING) from error
    except OSError as error:
        raise ShaderCompileError(f"no temporary folder to compile in: {error.strerror}") from error


@dataclass(frozen=True)
class _Compilation:
    """The compilation of a source, with everything that the SPIR-V depends on."""

    language: str
    source: str | Path
    entry: str
    flags: Sequence[str]
    include: Sequence[Path]
    texts: Path | None  # the temporary folder of included texts
    roots: Sequence[Path] | None
    name: str
    cache: bool
    memoize: bool
    known: set[str] = field(default_factory=set)  # files that the key depends on
    read: set[str] = field(default_factory=set)  # files that the compiler of Slang read

    @property
    def is_known(self) -> bool:
        """Whether the key depends on all files that were read."""
        return self.read <= self.known

    @cached_property
    def command(self) -> Sequence[str]:
        """The command that starts the compiler; its last part is the compiler's file."""
        find = slang.find_compiler if self.language == "slang" else lambda: (find_compiler(),)
        return bundle_use.needed(find, self.name)

    def spirv(self) -> bytes:
        """Return the SPIR-V from a bundle, from memory or the disk, or compile it."""
        key, seconds = self.key(), 0.0
        spirv = bundle_use.find(key)
        if spirv is not None:
            validated(spirv, self.name)
        else:
            spirv, seconds = self._cached(key) if self.cache else self._compiled()
        if self.is_known:
            record(self.name, key, spirv, seconds)
        return spirv

    @property
    def _folders(self) -> Sequence[Path]:
        """The folders of the source, and of included files."""
        # A text is compiled in an empty folder with a random name, which the key must not contain.
        temporary = Path(tempfile.gettempdir(), TEXT)
        folder = self.source.parent if isinstance(self.source, Path) else temporary
        return (folder, *self.include)

    def key(self) -> str:
        """Return the hash of everything that the SPIR-V depends on, except compiler and folders.

        Raise a ShaderCompileError for included files outside of the folders that may be read.
        """
        digest = sources.digest(self.source, self._folders, self.flags, self.roots, self.known)
        return hashlib.sha256(f"{digest}\n{_REVISION}".encode()).hexdigest()

    def _cached(self, key: str) -> tuple[bytes, float]:
        """Return the SPIR-V from memory or the disk, or compile it; see ``_compiled``."""
        folders = sources.debug_folders(self.source, self._folders, self.flags, self.texts)
        own_key = _key(sources.hashed([key.encode(), *folders]), self.command[-1])
        if self.memoize and (recent := _recent.get(own_key)):
            return recent, 0.0
        spirv, seconds = _CACHE.load(own_key), 0.0
        if spirv is None or not is_spirv(spirv):
            spirv, seconds = self._compiled()
            if self.is_known and self.key() == key:  # no file was edited while it was read
                _CACHE.store(own_key, spirv)
        if self.memoize and self.is_known and len(spirv) <= _MAX_RECENT_BYTES:
            _recent[own_key] = spirv
        for oldest in [*_recent][:-_MAX_RECENT]:
            _recent.pop(oldest, None)  # other threads drop them, too
        return spirv, seconds

    def _compiled(self) -> tuple[bytes, float]:
        """Compile; return the SPIR-V and the seconds that it took."""
        start = time.perf_counter()
        with compiling(self.name):
            spirv = self.run()
        return spirv, time.perf_counter() - start

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
        """Return a line of the source or of an included file, if the file may be read."""
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

    If spirv-val is missing, the feature of a module in a bundle is taken from the bundle.

    Raises:
        ShaderCompileError: it is not valid, or spirv-val is missing; the message names ``name``.
    """
    if not is_spirv(spirv):
        raise ShaderCompileError(f"{name}: {len(spirv)} bytes that are not SPIR-V", file=name)
    minor = spirv[5]
    if spirv[6] != 1 or minor > max(_TARGETS):
        message = f"{name}: got SPIR-V {spirv[6]}.{minor}, must be 1.0 to 1.{max(_TARGETS)}"
        raise ShaderCompileError(message, file=name)
    digest = hashlib.sha256(spirv).hexdigest()
    try:
        validator = bundle_use.needed(lambda: tools.find("spirv-val", "spirv-tools"), name)
    except ShaderCompileError:
        entry = bundle_use.entry_of(digest)
        if entry is None:
            raise
        Module.read(spirv, name)  # one error if it is damaged
        layout = next((feature for feature in entry.features if feature in _LAYOUTS), "")
    else:
        layout = _layout(spirv, name, _key(digest, validator))
    record(name, digest, spirv)
    return layout


def _layout(spirv: bytes, name: str, key: str) -> str:
    """Return the feature that the layouts of a module need, from the cache or from spirv-val."""
    known = _VALID.load(key)
    if known is not None and known.decode(errors="replace") in _LAYOUTS:
        return known.decode()
    refusal = None
    more = ("--allow-localsizeid",) if _SIZED_BY_IDS in spirv else ()
    for layout, options in _LAYOUTS.items():
        try:
            environment = _TARGETS.get(spirv[5], "vulkan1.1")
            validate(spirv, target_env=environment, options=(*options, *more))
        except ShaderCompileError as error:
            refusal = refusal or error
        else:
            _VALID.store(key, layout.encode())
            return layout
    assert refusal is not None
    message = f"{name}: {printable(refusal.message)}"
    raise ShaderCompileError(message, file=name, log=refusal.log) from refusal


def with_robust_access(spirv: bytes, name: str) -> bytes:
    """Return the module of ``tools.with_robust_access``, or that of a bundle, after validation.

    Raises:
        ShaderCompileError: the module is damaged, or spirv-opt is missing.
    """
    key = sources.hashed([b"robust access", spirv])
    robust = bundle_use.find(key)
    if robust is None:
        bundle_use.needed(lambda: tools.find("spirv-opt", "spirv-tools"), name)
        robust = tools.with_robust_access(spirv)
    validated(robust, name)
    record(name, key, robust)
    return robust


def _key(digest: str, program: str) -> str:
    """Return the hash of the input of a program and of the file of the program."""
    status = os.stat(path := os.path.realpath(program))
    identity = f"{path}\n{status.st_size}\n{status.st_mtime_ns}"
    return hashlib.sha256(f"{digest}\n{identity}\n{_REVISION}".encode()).hexdigest()


def _without(log: str, folder: Path) -> str:
    """Remove a folder from the names of its files in a log, with slashes of either kind.

    On Windows, glslang writes slashes in some of the names.
    """
    prefix = re.escape(f"{folder}{os.sep}").replace(re.escape(os.sep), r"[/\\]")
    return re.sub(prefix, "", log)
