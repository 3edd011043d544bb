"""What the SPIR-V of a shader depends on, apart from the compiler: text, includes, flags."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from vkops.errors import ShaderCompileError

# Any quoted name after the word: commented-out includes and those in a false #if count too.
# That costs a recompilation at worst; missing one would serve stale SPIR-V.
_INCLUDE = re.compile(rb'\binclude\b[^"<\n]*["<]([^">\n]+)[">]')
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


def read(source: str | Path) -> bytes:
    """Return the bytes of GLSL text, or of the file a path names.

    Raises:
        ShaderCompileError: the file cannot be read.
    """
    if isinstance(source, str):
        return source.encode(errors="replace")
    try:
        return source.read_bytes()
    except OSError as error:
        raise ShaderCompileError(f"{source}: {error.strerror}", file=str(source)) from error


def digest(source: str | Path, include_dirs: Sequence[Path], flags: Sequence[str]) -> str:
    """Hash, as SHA-256 in hexadecimal, the source, all it may include, and the flags.

    Names and contents count, the folders they lie in do not (except with ``-g``, which writes
    them into the SPIR-V), and neither do time stamps.

    Raises:
        ShaderCompileError: the source file cannot be read.
    """
    text = read(source)
    own = [source.parent] if isinstance(source, Path) else []
    parts = [*map(os.fsencode, flags), text]
    if "-g" in flags:
        file = [source] if isinstance(source, Path) else []
        parts += (os.fsencode(path) for path in (Path.cwd(), *file, *include_dirs))
    search = tuple(os.path.realpath(folder) for folder in (*own, *include_dirs))
    for name, content in _includes(text, search, set()):
        parts += (name, content)
    total = hashlib.sha256()
    for part in parts:
        total.update(b"%d:" % len(part) + part)
    return total.hexdigest()


def _includes(
    text: bytes, search: tuple[str, ...], seen: set[tuple[str, tuple[str, ...]]]
) -> Iterator[tuple[bytes, bytes]]:
    """Yield name and content of each file included from ``text``, and from those files.

    glslang's search order: the including file's folder, the folder of the file that included
    that one, and so on, then the include folders.
    """
    for name in _INCLUDE.findall(text.replace(b"\\\r\n", b"").replace(b"\\\n", b"")):
        for folder in search:
            path = f"{folder}/{os.fsdecode(name)}"
            try:
                content = Path(path).read_bytes()
            except (OSError, ValueError):  # not there, or no possible file name
                continue
            yield name, content
            own = os.path.realpath(os.path.dirname(path))
            visit = os.path.basename(path), (own, *(other for other in search if other != own))
            if visit not in seen:  # files may include each other
                seen.add(visit)
                yield from _includes(content, visit[1], seen)
            break
        else:
            yield name, b""
