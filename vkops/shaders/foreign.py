"""Languages of shaders that vkops does not compile: how to recognise and how to translate them."""

from __future__ import annotations

import re
from collections.abc import Collection
from pathlib import Path
from typing import NamedTuple

from vkops.errors import ShaderCompileError, printable

_COMMENT = re.compile(rb"//[^\n]*|/\*.*?\*/", re.DOTALL)
_COMPILED = re.compile(
    rb"^\s*#\s*version\b|\blayout\s*\(|\bnumthreads\b|\[\s*shader\s*\(", re.MULTILINE
)
"""Words of GLSL, HLSL and Slang, whose own errors are to be shown."""


class ForeignLanguage(NamedTuple):
    """A language, the suffixes of its files, words that only it has, and advice for users."""

    name: str
    suffixes: Collection[str]
    words: re.Pattern[bytes]
    advice: str

    def error(self, name: str, log: str = "") -> ShaderCompileError:
        """Make the error for a source of this language that is called ``name``."""
        message = printable(f"{name}: vkops does not compile {self.name}; {self.advice}")
        return ShaderCompileError(message, file=name, log=log)


_LOADED = "and load the .spv file, with the entry point's name as entry"
_REWRITTEN = "nothing translates it to Vulkan's SPIR-V: write the kernel in GLSL, HLSL or Slang"

LANGUAGES = (
    ForeignLanguage(
        "WGSL",
        {".wgsl"},
        re.compile(rb"@\s*(?:compute|group|workgroup_size)\b|\bvar\s*<\s*(?:storage|workgroup)\b"),
        "translate it with `naga kernel.wgsl kernel.spv` or "
        f"`tint --format=spirv -o kernel.spv kernel.wgsl`, {_LOADED}",
    ),
    ForeignLanguage(
        "Metal",
        {".metal"},
        re.compile(rb"\[\[\s*(?:buffer\s*\(|thread_position_in_)|<metal_stdlib>"),
        _REWRITTEN,
    ),
    ForeignLanguage(
        "OpenCL C",
        {".cl"},
        re.compile(rb"\b__kernel\b|\bkernel\s+void\b|\b__(?:global|local)\s|\bget_global_id\s*\("),
        f"translate it with `clspv kernel.cl -o kernel.spv`, {_LOADED}",
    ),
    ForeignLanguage(
        "CUDA",
        {".cu", ".cuh", ".ptx", ".hip"},
        re.compile(rb"\b__(?:global|device|shared)__\b|\b(?:thread|block)Idx\b|\.visible \.entry"),
        _REWRITTEN,
    ),
)
"""In the order in which texts are compared: Metal, too, has ``kernel void``."""

SUFFIXES = tuple(suffix for language in LANGUAGES for suffix in language.suffixes)


def recognised(text: bytes) -> ForeignLanguage | None:
    """Return the language of a text that no compiler accepts, if it is one of these."""
    code = _COMMENT.sub(b" ", text)
    if _COMPILED.search(code):
        return None
    return next((language for language in LANGUAGES if language.words.search(code)), None)


def check_file(path: Path) -> None:
    """Check that a file's suffix is not that of one of these languages.

    Raises:
        ShaderCompileError: it is one; the message says how to translate the file.
    """
    for language in LANGUAGES:
        if path.suffix in language.suffixes:
            raise language.error(str(path))
