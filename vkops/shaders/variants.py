"""The kernels of the package: their sources and defines."""

from __future__ import annotations

import functools
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

from vkops.errors import ShaderCompileError, show
from vkops.shaders import compiler, constants, recorded_shaders, sources
from vkops.shaders.binary import is_spirv

_PACKAGE = Path(__file__).parent
_TARGET_ENV = "vulkan1.1"


@dataclass(frozen=True)
class Variant:
    """One kernel: ``source``, a file in ``source_dir()``, compiled with ``defines``."""

    name: str
    source: str
    defines: Mapping[str, int]

    @property
    def file_name(self) -> str:
        """The name of the kernel's SPIR-V file in the wheel; it depends on sources and flags."""
        flags = sources.flags(self.defines, _TARGET_ENV, debug=False)
        digest = sources.digest(source_dir() / self.source, [source_dir()], flags)
        return f"{self.name}-{digest[:16]}.spv"

    def compile(
        self, *, defines: Mapping[str, str | int] = {}, debug: bool = False, cache: bool = True
    ) -> bytes:
        """Compile the kernel, even if the package contains its SPIR-V.

        ``defines`` are added to its own; the other arguments are those of ``shaders.compile``.
        """
        return compiler.compile(
            source_dir() / self.source,
            defines={**self.defines, **defines},
            target_env=_TARGET_ENV,
            debug=debug,
            cache=cache,
            name=self.name,
            allow_paths=True,
        )


_BY_UNIT: tuple[tuple[str, str, tuple[int, ...], dict[str, int]], ...] = (
    # Names and sources, the sizes of the elements in bytes, and the other defines.
    ("copy_{}", "copy.comp", (16, 8, 4), {}),
    ("copy_{}", "copy_subword.comp", (2, 1), {}),
    ("copy_block_{}", "copy_block.comp", (8, 4, 2, 1), {}),
    ("copy_tile_{}", "copy_tile.comp", (16, 8, 4, 2, 1), {}),
    ("copy_elements_{}", "copy_elements.comp", (8, 4), {}),
    ("copy_grid_{}", "copy_grid.comp", (8, 4, 2, 1), {}),
    ("gather_{}", "gather.comp", (16, 8, 4), {}),
    ("gather_run_{}", "gather_run.comp", (8, 4, 2, 1), {}),
    ("scatter_{}", "scatter.comp", (16, 8, 4), {}),
    ("gather_any_{}", "gather.comp", (16, 8, 4), {"GENERAL": 1}),
    ("gather_any_{}", "gather_subword.comp", (2, 1), {"GENERAL": 1}),
    ("scatter_any_{}", "scatter.comp", (16, 8, 4), {"GENERAL": 1}),
    ("scatter_any_{}", "scatter_subword.comp", (2, 1), {"GENERAL": 1}),
    ("gather_limited_{}", "gather.comp", (8, 4), {"GENERAL": 1, "LIMITED": 1}),
    ("gather_limited_{}", "gather_subword.comp", (2, 1), {"GENERAL": 1, "LIMITED": 1}),
    ("scatter_limited_{}", "scatter.comp", (8, 4), {"GENERAL": 1, "LIMITED": 1}),
    ("scatter_limited_{}", "scatter_subword.comp", (2, 1), {"GENERAL": 1, "LIMITED": 1}),
    ("scatter_words_{}", "scatter.comp", (16, 8), {"BY_WORD": 1}),
    ("copy_{}_wide", "copy.comp", (16,), {"WIDE": 1}),
    ("gather_{}_wide", "gather.comp", (16,), {"WIDE": 1}),
)
_ALL = (
    *(
        Variant(name.format(unit), source, {"UNIT": unit, **defines})
        for name, source, units, defines in _BY_UNIT
        for unit in units
    ),
    Variant("copy_reverse", "copy_reverse.comp", {}),
    Variant("copy_run", "copy_run.comp", {}),
    Variant("copy_run_wide", "copy_run.comp", {"WIDE": 1}),
    Variant("copy_rows", "copy_rows.comp", {"SEGMENTS": 1}),
    Variant("copy_rows_4", "copy_rows.comp", {"SEGMENTS": 4}),
    Variant("copy_stream", "copy_stream.comp", {"SEGMENTS": 0}),
    Variant("copy_stream_4", "copy_stream.comp", {"SEGMENTS": 4}),
    Variant("copy_stream_shared", "copy_stream.comp", {"SEGMENTS": 0, "SHARED": 1}),
)
VARIANTS: Mapping[str, Variant] = MappingProxyType({variant.name: variant for variant in _ALL})


def source_dir() -> Path:
    """Return the folder of the GLSL sources: the package's own, in a checkout ``shaders/``.

    VKOPS_SHADER_DIR names another folder, to try changes.
    """
    if chosen := os.environ.get("VKOPS_SHADER_DIR"):
        return Path(chosen)
    packaged = _PACKAGE / "glsl"
    return packaged if packaged.is_dir() else _PACKAGE.parents[1] / "shaders"


def compiler_state() -> str:
    """Return the path of the GLSL compiler, or a text: what needs it, and how to install it.

    The wheel contains the SPIR-V of its kernels; a checkout compiles them when they are used.
    """
    try:
        return compiler.find_compiler()
    except ShaderCompileError as error:
        compiled = (_PACKAGE / "spirv").is_dir()
        users = "only GLSL shaders of your own and `vkops debug` need it" if compiled else "needed"
        return f"none; {users}: {error.message}"


@functools.cache
def spirv(name: str) -> bytes:
    """Return the SPIR-V of the kernel ``name``.

    If the SPIR-V in the package is not of the current sources, the kernel is compiled and cached.
    VKOPS_KERNEL_DEFINES gives macros, separated by commas; the kernel is then compiled with these
    and with source lines.

    >>> len(spirv("copy_4")) % 4
    0

    Raises:
        ShaderCompileError: there is no such kernel, or it cannot be compiled.
    """
    variant = VARIANTS.get(name)
    if variant is None:
        raise ShaderCompileError(f"no kernel is called {show(name)}, only {', '.join(VARIANTS)}")
    try:
        if macros := os.environ.get("VKOPS_KERNEL_DEFINES"):
            pairs = (macro.partition("=") for macro in macros.split(","))
            return variant.compile(defines={key: value or 1 for key, _, value in pairs}, debug=True)
        shipped = _PACKAGE / "spirv" / variant.file_name
        is_recorded = recorded_shaders.FOLDER in os.environ  # by ``compile``, with its key
        code = shipped.read_bytes() if shipped.is_file() and not is_recorded else b""
        return code if is_spirv(code) else variant.compile()
    except ImportError as error:  # of a module of Python's
        raise ShaderCompileError(compiler.EXITING) from error


@functools.cache
def for_records(kernel: bytes, *, aligned: bool) -> bytes:
    """Return the SPIR-V of a kernel for tables whose records begin with workgroups, or do not."""
    return constants.specialized(kernel, {0: bytes([aligned, 0, 0, 0])})
