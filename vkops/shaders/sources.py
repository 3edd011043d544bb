"""The sources of a shader: its text, the files that it includes, and the compiler's flags."""

from __future__ import annotations

import hashlib
import os
import re
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import chain, product
from pathlib import Path
from typing import Any

from vkops.errors import ShaderCompileError, show
from vkops.shaders import slang
from vkops.system.files import below, open_regular, read_regular

MAX_SOURCE_BYTES = 4 << 20
"""Bytes of a shader's text and of all files that it includes."""

MAX_SPIRV_BYTES = 16 << 20
"""Bytes of a SPIR-V module; the kernels of vkops have up to 30,000."""

Include = str | Path | Sequence[str | Path] | Mapping[str, str]
"""Folders of included files, or their texts by name."""

_MACRO_BITS = 64

MAX_LOOKUPS = 100_000
"""Pairs of a folder and the name of an included file."""

# Any quoted name after the word, also in comments and in a false #if: that costs a recompilation
# at worst, while a missed file would give outdated SPIR-V.
_INCLUDE = re.compile(rb"""\binclude(?:[ \t]|/\*(?:[^*]|\*(?!/)){0,200}\*/)*(?=["<]([^"<>\n]*))""")
# What may follow the word in an untrusted shader. glslang may read other names, and strings after
# a comment, differently because of escapes, NULs and line ends.
_QUOTED = re.compile(rb"""\binclude[ \t]*(?=["<]|/\*)""")
_PLAIN_NAME = re.compile(
    rb"""(?:"[^\x00-\x1f\x7f"<>\\]{1,1000}"|<[^\x00-\x1f\x7f"<>\\]{1,1000}>)"""
)
_SPLICE = re.compile(rb"\\(?:\r\n|\n|\r)")
# The same, for a part of the name of a text: neither "." nor "..", and a file of each system.
_PLAIN_PART = re.compile(r"""(?!\.{1,2}\Z)[^\x00-\x1f\x7f"<>\\:*?|]{1,100}""")
# ``import a.b_c;`` of Slang, which may be in a/b-c.slang.
_IMPORT = re.compile(rb"""\b(?:import|__include)\s+(?:"([^"\n]*)"|([\w.]+))\s*;""")
_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_GENERIC = re.compile(r"[A-Za-z_][A-Za-z0-9_]*<[A-Za-z0-9_<>., ]+>")
_REGISTERS = (
    "--hlsl-iomap", "--auto-map-bindings", "--hlsl-offsets", "--shift-texture-binding", "0",
    "--shift-uav-binding", "64", "--shift-UBO-binding", "128",
    "--shift-sampler-binding", "192",
)  # fmt: skip

ALLOW_INCLUDES = "-DVKOPS_INCLUDES\r#extension GL_GOOGLE_include_directive : require"
"""Allows ``#include`` in GLSL that does not request the extension, as glslc does.

glslang puts macros after #version, where they do not count as lines. It cuts one at a line feed,
and ends a line at a carriage return. Its own option for this, -P, is newer than version 12.
"""

_TARGET_ENV = re.compile(r"vulkan1\.\d")


def flags(
    defines: Mapping[str, str | int],
    target_env: str,
    debug: bool,
    language: str = "glsl",
    entry: str = "main",
) -> tuple[str, ...]:
    """Return the compiler's options, which do not depend on the order of ``defines``.

    The entry point is for HLSL and Slang, where it can have arguments: ``Sum<float>``. In HLSL, the
    bindings of registers t0, u0 and b0 are 0, 64 and 128.

    Raises:
        ShaderCompileError: a define, ``target_env`` or ``entry`` is not valid.
    """
    if not _TARGET_ENV.fullmatch(target_env):
        raise ShaderCompileError(f"target_env {target_env!r} is not a Vulkan version: 'vulkan1.1'")
    is_slang = language == "slang"
    if not _IDENTIFIER.fullmatch(entry) and not (is_slang and _GENERIC.fullmatch(entry)):
        raise ShaderCompileError(f"entry {entry!r} is not the name of a function")
    macros = []
    for name, value in sorted(defines.items()):
        text = str(int(value) if isinstance(value, bool) else value)
        if not _IDENTIFIER.fullmatch(name):
            raise ShaderCompileError(f"define {name!r} is not an identifier")
        if not text.isprintable():
            raise ShaderCompileError(f"define {name}: value {text!r} is not one printable line")
        macros.append(f"-D{name}={text}")
    hlsl = ["-D", "-e", entry, *_REGISTERS] if language == "hlsl" else []
    if hlsl and target_env > "vulkan1.1":  # glslang makes BufferBlocks, which SPIR-V 1.4 lacks
        hlsl += ["--target-env", "spirv1.3"]
    options = ("-V", "-S", "comp", *hlsl, "--target-env", target_env)
    options = slang.flags(entry, target_env) if is_slang else options
    return (*options, *macros, *(["-g"] if debug else []))


def has_includes(text: bytes) -> bool:
    """Whether a text may include files."""
    return bool(_names(text, strict=False))


def check_kinds(defines: Mapping[Any, Any], include: Any) -> None:
    """Raise an error for defines and included files of wrong types."""
    texts, folders = _parts_of(include)
    for field, mapping, kinds, expected in (
        ("defines", defines, (str, int), "text or integers"),
        ("include", texts, (str,), "texts"),
    ):
        for key, value in mapping.items():
            long = isinstance(value, int) and value.bit_length() > _MACRO_BITS
            if not isinstance(key, str) or not isinstance(value, kinds) or long:
                message = f"got {show(key)}: {show(value)}, must be names with {expected}"
                raise ShaderCompileError(f"{field}: {message}")
    for path in folders:
        if not isinstance(path, (str, Path)):
            raise ShaderCompileError(f"include: got {show(path)}, must be paths")
        if "\0" in str(path):
            raise ShaderCompileError(f"{str(path)!r} is not a file name")


def _parts_of(include: Include) -> tuple[Mapping[str, str], Sequence[str | Path]]:
    """Return the texts of included files by name, and the folders of others."""
    if isinstance(include, Mapping):
        return include, ()
    return {}, [include] if isinstance(include, (str, Path)) else include


@contextmanager
def include_folders(include: Include) -> Iterator[tuple[list[Path], Path | None]]:
    """Yield the folders of included files; and the folder that the texts of a mapping are in.

    Raises:
        ShaderCompileError: a name of a text is not a plain relative one, or there are too many.
    """
    texts, folders = _parts_of(include)
    if not texts:
        yield [Path(folder) for folder in folders], None
        return
    for name in texts:
        if not all(map(_PLAIN_PART.fullmatch, name.split("/"))):
            raise ShaderCompileError(f"include: got the name {show(name)}, must be a relative path")
    if sum(map(len, texts.values())) > MAX_SOURCE_BYTES:
        raise ShaderCompileError(f"more than {MAX_SOURCE_BYTES} bytes are included")
    with tempfile.TemporaryDirectory(prefix="vkops-") as folder:
        for name, text in texts.items():
            path = Path(folder, name)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(text.encode(errors="replace"))
        yield [Path(folder)], Path(folder)


def read(source: str | Path, limit: int = MAX_SOURCE_BYTES) -> bytes:
    """Return the bytes of a text or a file; ShaderCompileError if they are more than ``limit``."""
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


def embedded_lines(text: str) -> list[str]:
    """Return the lines of a source in a module, without those that the compiler put before it."""
    lines = text.splitlines()
    return lines[lines.index("#line 1") + 1 if "#line 1" in lines else 0 :]


def digest(
    source: str | Path,
    folders: Sequence[Path],
    flags: Sequence[str],
    roots: Sequence[Path] | None = None,
    read_paths: set[str] | None = None,
) -> str:
    """Return the SHA-256 of the source, all files that it may include, and the flags.

    ``folders`` are that of the source and the include folders. The hash depends on the names and
    contents of files, not on their time stamps and folders; see ``debug_folders``. Included files
    must be in one of ``roots``, with symbolic links resolved, unless ``roots`` is None.
    ``read_paths`` gets the paths of these files.

    Raises:
        ShaderCompileError: the source file cannot be read, or an included one is outside.
    """
    text = read(source)
    parts = [*map(os.fsencode, flags), text]
    for place, name, content, path in _included(text, folders, roots):
        parts += (b"%d" % place, name, content)
        if read_paths is not None:
            read_paths.add(path)
    return hashed(parts)


def debug_folders(
    source: str | Path, folders: Sequence[Path], flags: Sequence[str], unnamed: Path | None
) -> list[bytes]:
    """Return the paths that ``-g`` writes into the SPIR-V; they are those of ``digest``.

    Texts are compiled in folders with random names, which are left out; ``unnamed`` is the folder
    of included texts.
    """
    if "-g" not in flags:
        return []
    named = folders[1:] if isinstance(source, str) else (source, *folders)
    return [os.fsencode(path) for path in (Path.cwd(), *named) if path != unnamed]


def hashed(parts: Iterable[bytes]) -> str:
    """Return the SHA-256 of bytes and of where each part ends."""
    total = hashlib.sha256()
    for part in parts:
        total.update(b"%d:" % len(part) + part)
    return total.hexdigest()


def _included(
    text: bytes, first: Sequence[Path], roots: Sequence[Path] | None
) -> Iterator[tuple[int, bytes, bytes, str]]:
    """Yield each file that a text may include: number of its folder, name, content and path.

    Each name is looked up in the ``first`` folders and in those of all files found, although the
    compiler may include only some of these files. The compiler is not asked, because it opens files
    before it reports their names, and because preprocessing takes as long as compiling.
    """
    names = _names(text, strict=roots is not None)
    if not names:
        return
    folders = list(dict.fromkeys(map(os.path.realpath, first)))
    lookups = [product(range(len(folders)), names)]
    available = MAX_SOURCE_BYTES
    for number, name in chain.from_iterable(lookups):  # the list grows
        if len(folders) * len(names) > MAX_LOOKUPS:
            raise ShaderCompileError(f"included files need more than {MAX_LOOKUPS} lookups")
        path = f"{folders[number]}/{os.fsdecode(name)}".replace("\\", "/")  # as glslang does
        try:
            real = os.path.realpath(path)
            os.stat(real)
            if roots is not None:
                check_inside(os.fsdecode(name), real, roots)
            with open_regular(real) as file:
                content = file.read(available + 1)
        except (OSError, ValueError):  # missing, or not a valid file name
            continue
        available -= len(content)
        if available < 0:
            raise ShaderCompileError(f"more than {MAX_SOURCE_BYTES} bytes are included")
        yield number, name, content, real
        folder = os.path.realpath(os.path.dirname(path))
        if folder not in folders:
            lookups.append(product([len(folders)], names))
            folders.append(folder)
        added = [n for n in _names(content, strict=roots is not None) if n not in names]
        names.update(dict.fromkeys(added))
        lookups.append(product(range(len(folders)), added))


def _names(text: bytes, *, strict: bool) -> dict[bytes, None]:
    """Return the names of includes, both in the text as it is and with continued lines joined.

    With ``strict``, raise an error for includes that glslang may read differently.
    """
    includes: dict[bytes, None] = {}
    for each in dict.fromkeys((_SPLICE.sub(b"", text), text)):
        for match in _QUOTED.finditer(each) if strict else ():
            if not _PLAIN_NAME.match(each, match.end()):
                shown = each[match.start() : match.start() + 60].decode(errors="replace")
                raise ShaderCompileError(
                    f"{shown!r}: an include must be a plain name in quotes, unless --allow_paths "
                    "is given"
                )
        includes.update(dict.fromkeys(match[1] for match in _INCLUDE.finditer(each)))
        for quoted, dotted in _IMPORT.findall(each):
            path = dotted.replace(b".", b"/") + b".slang"
            names = (quoted, quoted + b".slang") if quoted else (path, path.replace(b"_", b"-"))
            includes.update(dict.fromkeys(names))
    return includes


def check_inside(name: str, path: str, roots: Sequence[Path]) -> None:
    """Check that an included file is inside one of the folders, and is a regular file."""
    try:
        below(Path(), name)  # check the name itself: Windows resolves reserved names to others
        is_inside = any(below(Path(root), path) for root in roots)
    except ValueError as error:
        raise ShaderCompileError(f"include {name!r} is no file name") from error
    if not is_inside:
        where = " or ".join(repr(os.path.realpath(root)) for root in roots) or "none"
        raise ShaderCompileError(
            f"include {name!r} is outside of the folder {where}, which a shader may leave only "
            "with --allow_paths"
        )
    if not os.path.isfile(path):  # the compiler would wait forever in opening a pipe
        raise ShaderCompileError(f"include {name!r} is not a regular file")
