"""The sources of a shader: its text, the files that it includes, and the compiler's flags."""

from __future__ import annotations

import hashlib
import os
import re
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from vkops.errors import ShaderCompileError
from vkops.system.files import below, open_regular, read_regular

MAX_SOURCE_BYTES = 4 << 20
"""Bytes of a shader's text and of all files that it includes."""

MAX_SPIRV_BYTES = 16 << 20
"""Bytes of a SPIR-V module; the kernels of vkops have up to 30,000."""

MAX_INCLUDES = 10_000

# Any quoted name after the word, also in comments and in a false #if: that costs a recompilation
# at worst, while a missed file would give outdated SPIR-V.
_INCLUDE = re.compile(
    rb"""\binclude(?:[ \t]|/\*(?:[^*]|\*(?!/)){0,200}\*/)*(?=(["<])([^"<>\n]*))"""
)
# What may follow the word in an untrusted shader. glslang may read other names, and strings after
# a comment, differently because of escapes, NULs and line ends.
_QUOTED = re.compile(rb"""\binclude[ \t]*(?=["<]|/\*)""")
_PLAIN_NAME = re.compile(
    rb"""(?:"[^\x00-\x1f\x7f"<>\\]{1,1000}"|<[^\x00-\x1f\x7f"<>\\]{1,1000}>)"""
)
_TEXT_FOLDER = "<folder of text>"
_SPLICE = re.compile(rb"\\(?:\r\n|\n|\r)")
_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_TARGET_ENV = re.compile(r"vulkan1\.\d")


def flags(defines: Mapping[str, str | int], target_env: str, debug: bool) -> tuple[str, ...]:
    """Return the compiler's options, which do not depend on the order of ``defines``.

    Raises:
        ShaderCompileError: a define or ``target_env`` is not valid.
    """
    if not _TARGET_ENV.fullmatch(target_env):
        raise ShaderCompileError(f"target_env {target_env!r} is not a Vulkan version: 'vulkan1.1'")
    macros = []
    for name, value in sorted(defines.items()):
        text = str(int(value) if isinstance(value, bool) else value)
        if not _IDENTIFIER.fullmatch(name):
            raise ShaderCompileError(f"define {name!r} is not a GLSL identifier")
        if not text.isprintable():
            raise ShaderCompileError(f"define {name}: value {text!r} is not one printable line")
        macros.append(f"-D{name}={text}")
    return ("-V", "-S", "comp", "--target-env", target_env, *macros, *(["-g"] if debug else []))


def read(source: str | Path, limit: int = MAX_SOURCE_BYTES) -> bytes:
    """Return the bytes of GLSL text, or of the file a path names.

    Raises:
        ShaderCompileError: the file cannot be read, or there are more than ``limit`` bytes.
    """
    if isinstance(source, str):
        text = source.encode(errors="replace")
        if len(text) > limit:
            raise ShaderCompileError(f"got {len(text)} bytes of text, must be {limit} at most")
        return text
    try:
        return read_regular(source, limit)
    except OSError as error:
        raise ShaderCompileError(f"{source}: {error.strerror}", file=str(source)) from error
    except ValueError as error:
        raise ShaderCompileError(f"{str(source)!r} is not a file name") from error


def digest(
    source: str | Path,
    include_dirs: Sequence[Path],
    flags: Sequence[str],
    roots: Sequence[Path] | None = None,
) -> str:
    """Return the SHA-256 of the source, all files that it may include, and the flags.

    It depends on the names and contents of files, not on their time stamps, and on their folders
    only with ``-g``, which writes them into the SPIR-V. Included files must be in one of ``roots``,
    with symbolic links resolved, unless ``roots`` is None.

    Raises:
        ShaderCompileError: the source file cannot be read, or an included one is outside.
    """
    text, includes = _read_all(source, include_dirs, roots)
    parts = [*map(os.fsencode, flags), text]
    if "-g" in flags:
        file = [source] if isinstance(source, Path) else []
        parts += (os.fsencode(path) for path in (Path.cwd(), *file, *include_dirs))
    for name, _, content in includes:
        parts += (name, content)
    total = hashlib.sha256()
    for part in parts:
        total.update(b"%d:" % len(part) + part)
    return total.hexdigest()


def lines(source: str | Path, include_dirs: Sequence[Path] = ()) -> dict[str, list[str]]:
    """Return the lines of a file and of all files that it may include, by their real paths.

    For GLSL text, these are the included files only.

    Raises:
        ShaderCompileError: the source file cannot be read.
    """
    text, includes = _read_all(source, include_dirs, None)
    found = {os.path.realpath(source): text} if isinstance(source, Path) else {}
    for _, path, content in includes:
        if path is not None:
            found[os.path.realpath(path)] = content
    return {path: text.decode(errors="replace").splitlines() for path, text in found.items()}


def _read_all(
    source: str | Path, include_dirs: Sequence[Path], roots: Sequence[Path] | None
) -> tuple[bytes, Iterator[tuple[bytes, str | None, bytes]]]:
    """Return the text of a source, and what ``_Includes.of`` finds in it."""
    text = read(source)
    if isinstance(source, Path):
        own = source.parent
    else:  # instead of the folder that text is compiled in, which is random and empty
        try:
            own = Path(tempfile.gettempdir(), _TEXT_FOLDER)
        except OSError as error:
            message = f"no temporary folder to compile in: {error.strerror}"
            raise ShaderCompileError(message) from error
    return text, _Includes(include_dirs, roots).of(text, os.path.realpath(own))


class _Includes:
    """Finds included files as glslang does, and refuses those outside of ``roots``.

    glslang looks in the folder of the including file, in that of the file that included that one,
    and so on, and then in the include folders. Some versions look for names in angle brackets only
    in the latter.
    """

    def __init__(self, include_dirs: Sequence[Path], roots: Sequence[Path] | None) -> None:
        self._dirs = tuple(map(os.path.realpath, include_dirs))
        self._roots = None if roots is None else tuple(map(os.path.realpath, roots))
        self._available = MAX_SOURCE_BYTES

    def of(self, text: bytes, own: str) -> Iterator[tuple[bytes, str | None, bytes]]:
        """Yield the name, path and content of each file that is included, directly or not.

        A file that does not exist has no path.
        """
        waiting: list[tuple[tuple[bytes, bytes], tuple[str, ...]]]
        waiting = [(include, (own,)) for include in reversed(self._includes(text))]
        seen: set[tuple[str, tuple[str, ...]]] = set()
        while waiting:
            (bracket, name), folders = waiting.pop()
            path, content = self._found(name, self._dirs if bracket == b"<" else folders)
            yield name, path, content
            if path is None:
                continue
            inner = os.path.realpath(os.path.dirname(path))
            stack = (inner, *(other for other in folders if other != inner))
            visit = os.path.basename(path), stack
            if visit not in seen:  # files may include each other
                seen.add(visit)
                waiting += ((include, stack) for include in reversed(self._includes(content)))
            if len(seen) > MAX_INCLUDES:
                raise ShaderCompileError(f"more than {MAX_INCLUDES} files are included")

    def _includes(self, text: bytes) -> list[tuple[bytes, bytes]]:
        """Return bracket and name of each include, with continued lines joined and as they are."""
        found: dict[tuple[bytes, bytes], None] = {}
        for each in dict.fromkeys((_SPLICE.sub(b"", text), text)):
            if self._roots is not None:
                self._check_names(each)
            found.update(dict.fromkeys((match[1], match[2]) for match in _INCLUDE.finditer(each)))
        return list(found)

    @staticmethod
    def _check_names(text: bytes) -> None:
        for match in _QUOTED.finditer(text):
            if not _PLAIN_NAME.match(text, match.end()):
                shown = text[match.start() : match.start() + 60].decode(errors="replace")
                raise ShaderCompileError(
                    f"{shown!r}: an include must be a plain name in quotes, unless --allow_paths "
                    "is given"
                )

    def _found(self, name: bytes, folders: tuple[str, ...]) -> tuple[str | None, bytes]:
        """Return path and content of the first file of that name."""
        for folder in dict.fromkeys((*folders, *self._dirs)):
            path = f"{folder}/{os.fsdecode(name)}".replace("\\", "/")  # as glslang does
            if folder.endswith(_TEXT_FOLDER):  # it does not exist, but ".." leads out of it
                path = os.path.normpath(path)
            try:
                os.stat(path)
                self._check(name, path)
                with open_regular(path) as file:
                    content = file.read(self._available + 1)
            except (OSError, ValueError):  # missing, or not a valid file name
                continue
            self._available -= len(content)
            if self._available < 0:
                raise ShaderCompileError(f"more than {MAX_SOURCE_BYTES} bytes are included")
            return path, content
        return None, b""

    def _check(self, name: bytes, path: str) -> None:
        if self._roots is None:
            return
        try:
            is_inside = any(below(Path(root), path) for root in self._roots)
        except ValueError as error:
            raise ShaderCompileError(f"include {os.fsdecode(name)!r} is no file name") from error
        if not is_inside:
            where = " or ".join(map(repr, self._roots)) or "none"
            raise ShaderCompileError(
                f"include {os.fsdecode(name)!r} is outside of the folder {where}, which a shader "
                "may leave only with --allow_paths"
            )
        if not os.path.isfile(path):  # the compiler would open it, and wait
            raise ShaderCompileError(f"include {os.fsdecode(name)!r} is not a regular file")
