"""Compute shaders that Kompute can run: their requirements, bindings and push constants."""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Any

from vkops.errors import (
    BindingError,
    InvalidDescError,
    InvalidDescTypeError,
    ShaderCompileError,
    printable,
    show,
)
from vkops.extent import Extent
from vkops.shaders import compiler, sources, tools
from vkops.shaders.argument_checks import Number, check_kinds, fitting, literal
from vkops.shaders.cache import is_spirv
from vkops.shaders.module import Block, Module

__all__ = [
    "MAX_BINDING",
    "MAX_PUSH_BYTES",
    "SUBGROUP",
    "Number",
    "Shader",
    "load",
    "read",
]

SUBGROUP = {
    "GroupNonUniform": "BASIC",
    "GroupNonUniformVote": "VOTE",
    "GroupNonUniformArithmetic": "ARITHMETIC",
    "GroupNonUniformBallot": "BALLOT",
    "GroupNonUniformShuffle": "SHUFFLE",
    "GroupNonUniformShuffleRelative": "SHUFFLE_RELATIVE",
    "GroupNonUniformClustered": "CLUSTERED",
    "GroupNonUniformQuad": "QUAD",
}
"""Capabilities, and the VkSubgroupFeatureFlagBits that a device must have for them."""

_WITHOUT_FEATURES = ("Shader", "Matrix", *SUBGROUP)
"""Capabilities that need no Vulkan feature: Kompute enables none."""

MAX_BINDING = 255
"""Kompute numbers its buffers without gaps: unused bindings have a buffer, too."""

MAX_PUSH_BYTES = 4096
"""Bytes of push constants; devices support 128 or 256, none is known to support more."""

_SHOWN_NAMES = 16

_FORMATS = {"uint": "<I", "int": "<i", "float": "<f"}


@dataclass(frozen=True)
class Shader:
    """A shader that ``load`` made; errors call it ``name``."""

    name: str
    module: Module
    spirv: bytes
    """The SPIR-V for Kompute: ``module`` with storage blocks only."""

    def with_limited_indices(self) -> bytes:
        """Return the SPIR-V with each index clamped to the elements of its array or vector.

        Raises:
            ShaderCompileError: spirv-opt is missing, or cannot change this module.
        """
        return _valid(tools.with_limited_indices(self.spirv), self.name)

    @property
    def blocks(self) -> tuple[Block, ...]:
        """The blocks that buffers must be bound to, by binding."""
        return self.module.blocks

    def block(self, point: str) -> Block | None:
        """Return the block with this name, instance name or binding."""
        return next((block for block in self.blocks if block.is_called(point)), None)

    def bind(self, extents: Mapping[str, tuple[Extent, int]]) -> list[tuple[Block, Extent]]:
        """Return a block for each binding, with the bytes that are bound to it.

        ``extents`` has them by the names of blocks, each with the bytes of its resource. Blocks
        that share a binding are one: as large as the largest, and read only if all are.

        Raises:
            BindingError: a name does not exist, or a binding has no bytes or twice (SH-04), bytes
                are outside of the resource or too few (SH-05), or overlap in part (SH-06).
        """
        bound: dict[int, tuple[Block, Extent]] = {}
        points: dict[int, str] = {}
        for point, (extent, capacity) in extents.items():
            block = self.block(point)
            if block is None:
                names = ", ".join(b.point for b in self.blocks) or "none"
                message = f"there is no such block; there are {names}"
                name = point if point and point.isprintable() else repr(point)
                raise BindingError(self.name, name, message, "SH-04")
            if block.binding in bound:
                message = f"binding {block.binding} is also that of {points[block.binding]}"
                raise BindingError(self.name, point, message, "SH-04")
            alike = [b for b in self.blocks if b.binding == block.binding]
            block = block._replace(
                readonly=all(b.readonly for b in alike), nbytes=max(b.nbytes for b in alike)
            )
            bound[block.binding], points[block.binding] = (block, extent), point
            minimum = max(4, *(b.nbytes + b.stride for b in alike))
            self._check_extent(point, extent, capacity, minimum)
        for block in self.blocks:
            if block.binding not in bound:
                raise BindingError(self.name, block.point, "nothing is bound to it", "SH-04")
        for (one, first), (other, second) in combinations(bound.values(), 2):
            if first.overlaps(second) and first != second and not (one.readonly and other.readonly):
                message = (
                    f"shares some bytes with {points[one.binding]}, must share all or none: each "
                    "has a copy while the shader runs"
                )
                raise BindingError(self.name, points[other.binding], message, "SH-06")
        return [bound[number] for number in sorted(bound)]

    def _check_extent(self, point: str, extent: Extent, capacity: int, minimum: int) -> None:
        _, start, nbytes = extent
        if start % 4 or extent.end > capacity:
            message = (
                f"got offset {start} and {nbytes} bytes, must begin at a multiple of 4 "
                f"and end at {capacity} or before"
            )
            raise BindingError(self.name, point, message, "SH-05")
        if nbytes % 4 or nbytes < minimum:
            message = f"got {nbytes} bytes, must be a multiple of 4 and at least {minimum}"
            raise BindingError(self.name, point, message, "SH-05")

    def pack(self, numbers: Sequence[Number]) -> bytes:
        """Return push constants as bytes, each number at its offset in the shader.

        Raises:
            InvalidDescError: too few, too many, or one does not fit its type (SH-09).
        """
        declared = self.module.push_constants
        try:
            given = [numbers[n] for n in range(len(numbers))]
        except (TypeError, LookupError):
            message = f"got {show(numbers)}, must be a sequence of numbers"
            raise InvalidDescTypeError(self.name, "push_constants", message, "SH-09") from None
        if len(given) != len(declared):
            names = ", ".join(f"{s.type} {s.name}" for s in declared[:_SHOWN_NAMES]) or "none"
            more = ", ..." if len(declared) > _SHOWN_NAMES else ""
            message = f"got {len(given)} numbers, must be {len(declared)}: {names}{more}"
            raise InvalidDescError(self.name, "push_constants", message, "SH-09")
        packed = bytearray(self.module.push_nbytes)
        for scalar, number in zip(declared, given, strict=True):
            value = fitting(self.name, f"push_constants.{scalar.name}", scalar, number, "SH-09")
            struct.pack_into(_FORMATS[scalar.type], packed, scalar.location, value)
        return bytes(packed)


def load(
    source: str | Path | bytes,
    *,
    constants: Mapping[str | int, Number] = {},
    defines: Mapping[str, str | int] = {},
    include_dirs: Sequence[Path] = (),
    target_env: str = "vulkan1.1",
    debug: bool = False,
    name: str = "<source>",
    allow_paths: bool = False,
    root: Path | None = None,
) -> Shader:
    r"""Load a compute shader: GLSL text, a file of it, a .spv file, or SPIR-V.

    ``constants`` are specialization constants, by name or id; the other arguments are those of
    ``compile``, for GLSL.

    >>> text = "#version 450\nlayout(std430, binding = 0) buffer Data { uint data[]; };"
    >>> shader = load(text + "void main() { data[0] = 1u; }")
    >>> [block.name for block in shader.blocks]
    ['Data']

    Raises:
        ShaderCompileError: it is wrong, or a tool is missing.
        InvalidDescError: Kompute cannot run it (SH-01 to SH-03), or a constant is not one of its
            own (SH-10).
    """
    settings = {"defines": defines, "include_dirs": include_dirs, "target_env": target_env}
    switches = {"debug": debug, "allow_paths": allow_paths}
    check_kinds({"source": source, "constants": constants, "name": name, **settings, **switches})
    if isinstance(source, bytes):
        spirv = source
    else:
        name = printable(source.name if isinstance(source, Path) else name)
        spirv = read(source, **settings, **switches, name=name, root=root)
    module = Module.read(_valid(spirv, name), name)
    _check(name, module)
    module = module.specialize(_literals(name, module, constants))
    if module.push_nbytes > MAX_PUSH_BYTES:
        message = f"got {module.push_nbytes} bytes, must be {MAX_PUSH_BYTES} at most"
        raise InvalidDescError(name, "push constants", message, "SH-08")
    for axis, size in zip("xyz", module.local_size, strict=True):
        if size < 1:
            message = f"got {size}, must be at least 1"
            raise InvalidDescError(name, f"local_size_{axis}", message, "SH-08")
    made = module.with_storage_blocks().spirv
    return Shader(name, module, made if made is spirv else _valid(made, name))


def read(source: str | Path, **settings: Any) -> bytes:
    """Return the SPIR-V of GLSL text, of a GLSL file, or in a .spv file, unchecked.

    ``settings`` are those of ``compile``.

    Raises:
        ShaderCompileError: it is wrong, or a tool is missing.
    """
    if isinstance(source, Path) and source.suffix == ".spv":
        return sources.read(source, sources.MAX_SPIRV_BYTES)
    return compiler.compile(source, **settings)


def _valid(spirv: bytes, name: str) -> bytes:
    """Check that SPIR-V is valid for Vulkan 1.1, the version that Kompute uses."""
    if not is_spirv(spirv):
        raise ShaderCompileError(f"{name}: {len(spirv)} bytes that are not SPIR-V", file=name)
    try:
        compiler.validate(spirv)
    except ShaderCompileError as error:
        message = f"{name}: {printable(error.message)}"
        raise ShaderCompileError(message, file=name, log=error.log) from error
    return spirv


def _check(name: str, module: Module) -> None:
    """Refuse a shader that Kompute cannot run."""
    for block in module.blocks:
        if block.set != 0 or block.kind not in ("storage", "uniform"):
            got = f"{block.kind} in set {block.set}"
            message = f"got {got}, must be a storage or uniform block in set 0"
            raise InvalidDescError(name, block.point, message, "SH-01")
    if module.blocks and module.blocks[-1].binding > MAX_BINDING:
        last = module.blocks[-1]
        message = f"got binding {last.binding}, must be {MAX_BINDING} at most"
        raise InvalidDescError(name, last.point, message, "SH-01")
    unknown = [c for c in module.capabilities if c not in _WITHOUT_FEATURES]
    if unknown:
        got = ", ".join(unknown)
        message = f"got {got}, which need Vulkan features, and Kompute enables none"
        raise InvalidDescError(name, "capabilities", message, "SH-02")
    if module.entry_point != "main":
        message = f"got {module.entry_point!r}, must be 'main': Kompute starts nothing else"
        raise InvalidDescError(name, "entry point", message, "SH-03")


def _literals(name: str, module: Module, constants: Mapping[str | int, Number]) -> dict[int, str]:
    """Return the values of specialization constants as text, by SpecId."""
    literals = {}
    for key, number in constants.items():
        found = [c for c in module.specialization_constants if key in (c.name, c.location)]
        if not found or key == "":
            declared = module.specialization_constants
            known = ", ".join(f"{c.location} ({c.name or 'unnamed'})" for c in declared) or "none"
            message = f"there is no constant {show(key)}; there are {known}"
            raise InvalidDescError(name, "constants", message, "SH-10")
        field = f"constants[{show(key)}]"
        if found[0].location in literals:
            message = f"constant {found[0].location} is given twice"
            raise InvalidDescError(name, field, message, "SH-10")
        value = fitting(name, field, found[0], number, "SH-10")
        literals[found[0].location] = literal(found[0].type, value)
    return literals
