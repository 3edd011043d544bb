"""What the SPIR-V of a shader depends on, apart from the compiler: text, includes, flags."""

from __future__ import annotations

import hashlib
import os
import re
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from vkops.errors import ShaderCompileError
from vkops.paths import open_regular, read_regular

MAX_SOURCE_BYTES = 4 << 20
"""Of a shader's text with all that it includes."""

MAX_SPIRV_BYTES = 16 << 20
"""Of a SPIR-V module; vkops' own kernels have up to 30,000."""

MAX_INCLUDES = 10_000

# Any quoted name after the word: commented-out includes and those in a false #if count too.
# That costs a recompilation at worst; missing one would serve stale SPIR-V.
_INCLUDE = re.compile(
    rb"""\binclude(?:[ \t]|/\*(?:[^*]|\*(?!/)){0,200}\*/)*(?=(["<])([^"<>\n]*))"""
)
# What may follow the word in a shader that is not trusted. Other names, and strings after a
# comment, may have escapes, NULs and ends that glslang sees and we do not.
_QUOTED = re.compile(rb"""\binclude[ \t]*(?=["<]|/\*)""")
_PLAIN_NAME = re.compile(
    rb"""(?:"[^\x00-\x1f\x7f"<>\\]{1,1000}"|<[^\x00-\x1f\x7f"<>\\]{1,1000}>)"""
)
_TEXT_FOLDER = "<folder of text>"
_SPLICE = re.compile(rb"\\(?:\r\n|\n|\r)")
_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_TARGET_ENV = re.compile(r"vulkan1\.\d")


def flags(defines: Mapping[str, str | int], target_env: str, debug: bool) -> tuple[str, ...]:
    """Spell the compiler's options, the same for the same settings in any order.

    Raises:
        ShaderCompileError: a define or ``target_env`` is not one the compiler can be given.
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


def read(source: str | Path, most: int = MAX_SOURCE_BYTES) -> bytes:
    """Return the bytes of GLSL text, or of the file a path names.

    Raises:
        ShaderCompileError: the file cannot be read, or there are more bytes than ``most``.
    """
    if isinstance(source, str):
        text = source.encode(errors="replace")
        if len(text) > most:
            raise ShaderCompileError(f"got {len(text)} bytes of text, must be {most} at most")
        return text
    try:
        return read_regular(source, most)
    except OSError as error:
        raise ShaderCompileError(f"{source}: {error.strerror}", file=str(source)) from error
    except ValueError as error:
        raise ShaderCompileError(f"{str(source)!r} is no file name") from error


def digest(
    source: str | Path,
    include_dirs: Sequence[Path],
    flags: Sequence[str],
    roots: Sequence[Path] | None = None,
) -> str:
    """Hash, as SHA-256 in hexadecimal, the source, all it may include, and the flags.

    Names and contents count, the folders they lie in do not (except with ``-g``, which writes
    them into the SPIR-V), and neither do time stamps. What is included must lie in one of
    ``roots``, symbolic links resolved; None: anywhere.

    Raises:
        ShaderCompileError: the source file cannot be read, or an included one is outside.
    """
    text = read(source)
    own = source.parent if isinstance(source, Path) else _folder_of_text()
    parts = [*map(os.fsencode, flags), text]
    if "-g" in flags:
        file = [source] if isinstance(source, Path) else []
        parts += (os.fsencode(path) for path in (Path.cwd(), *file, *include_dirs))
    for name, _, content in _Includes(include_dirs, roots).of(text, os.path.realpath(own)):
        parts += (name, content)
    total = hashlib.sha256()
    for part in parts:
        total.update(b"%d:" % len(part) + part)
    return total.hexdigest()


def lines(source: str | Path, include_dirs: Sequence[Path] = ()) -> dict[str, list[str]]:
    """The lines of a source file and of all files that it may include, by their real paths.

    GLSL text has its included files only.

    Raises:
        ShaderCompileError: the source file cannot be read.
    """
    text = read(source)
    own = source.parent if isinstance(source, Path) else _folder_of_text()
    found = {os.path.realpath(source): text} if isinstance(source, Path) else {}
    for _, path, content in _Includes(include_dirs, None).of(text, os.path.realpath(own)):
        if path is not None:
            found[os.path.realpath(path)] = content
    return {path: text.decode(errors="replace").splitlines() for path, text in found.items()}


def _folder_of_text() -> Path:
    """What stands for the folder that text will be compiled in, which is random and empty."""
    try:
        return Path(tempfile.gettempdir(), _TEXT_FOLDER)
    except OSError as error:
        raise ShaderCompileError(f"no temporary folder to compile in: {error.strerror}") from error


class _Includes:
    """What a text includes, found in glslang's order; what is outside of ``roots`` is refused.

    The order: the including file's folder, the folder of the file that included that one, and so
    on, then the include folders. Names in angle brackets are for these alone, in some versions.
    """

    def __init__(self, include_dirs: Sequence[Path], roots: Sequence[Path] | None) -> None:
        self._dirs = tuple(map(os.path.realpath, include_dirs))
        self._roots = None if roots is None else tuple(map(os.path.realpath, roots))
        self._room = MAX_SOURCE_BYTES

    def of(self, text: bytes, own: str) -> Iterator[tuple[bytes, str | None, bytes]]:
        """Yield each file included from ``text``, and from those files: name, path and content.

        One that is not there has no path.
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
        """Bracket and name of each include, as the text is and with its continued lines joined."""
        found: dict[tuple[bytes, bytes], None] = {}
        for each in dict.fromkeys((_SPLICE.sub(b"", text), text)):
            if self._roots is not None:
                self._refuse_strange(each)
            found.update(dict.fromkeys((match[1], match[2]) for match in _INCLUDE.finditer(each)))
        return list(found)

    @staticmethod
    def _refuse_strange(text: bytes) -> None:
        for match in _QUOTED.finditer(text):
            if not _PLAIN_NAME.match(text, match.end()):
                shown = text[match.start() : match.start() + 60].decode(errors="replace")
                raise ShaderCompileError(
                    f"{shown!r}: an include must be a plain name in quotes, without --allow_paths"
                )

    def _found(self, name: bytes, folders: tuple[str, ...]) -> tuple[str | None, bytes]:
        """Path and content of the first file of that name."""
        for folder in dict.fromkeys((*folders, *self._dirs)):
            path = f"{folder}/{os.fsdecode(name)}".replace("\\", "/")  # as glslang does
            if folder.endswith(_TEXT_FOLDER):  # what leads out of it may be there, it is not yet
                path = os.path.normpath(path)
            try:
                os.stat(path)
                self._check(name, path)
                with open_regular(path) as file:
                    content = file.read(self._room + 1)
            except (OSError, ValueError):  # not there, or no possible file name
                continue
            self._room -= len(content)
            if self._room < 0:
                raise ShaderCompileError(f"more than {MAX_SOURCE_BYTES} bytes are included")
            return path, content
        return None, b""

    def _check(self, name: bytes, path: str) -> None:
        if self._roots is None:
            return
        real = os.path.realpath(path)
        if not any(os.path.commonpath((root, real)) == root for root in self._roots):
            where = " or ".join(map(repr, self._roots)) or "none"
            raise ShaderCompileError(
                f"include {os.fsdecode(name)!r} is outside of the folder {where}, which a shader "
                "may leave only with --allow_paths"
            )
        if not os.path.isfile(real):  # the compiler would open it, and wait
            raise ShaderCompileError(f"include {os.fsdecode(name)!r} is not a regular file")
