"""Compute shaders: their requirements, bindings and push constants."""

from __future__ import annotations

import functools
import struct
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence, Sized
from dataclasses import dataclass, replace
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from vkops.arguments.values import ArgumentName, integer, integers
from vkops.errors import (
    BindingError,
    InvalidDescError,
    ShaderCompileError,
    did_you_mean,
    printable,
    show,
)
from vkops.notebook import repr_html
from vkops.shaders import (
    compiler,
    constants,
    features,
    foreign,
    limited_indices,
    packing,
    sources,
)
from vkops.shaders.binary import corrected, declared_capabilities, is_spirv
from vkops.shaders.compiler import validated
from vkops.shaders.layout import StructType
from vkops.shaders.module import DESCRIPTOR_TYPES, Block, Module
from vkops.shaders.packing import Number, fitting
from vkops.shaders.slot import Slot
from vkops.shaders.tensor_layout import find_fault
from vkops.system.threads import cached_property

if TYPE_CHECKING:
    import numpy

__all__ = ["MAX_BINDING", "Arguments", "Number", "Shader", "load"]

MAX_SETS = 32
"""Descriptor sets of a shader; drivers bind 4 to 32."""

MAX_BINDING = 4095
"""Drivers allocate memory for the unused bindings of a set, too."""

_SUFFIXES = (".comp", ".glsl", ".hlsl", ".slang", ".spv", *foreign.SUFFIXES)

LANGUAGES = ("glsl", "hlsl", "slang", "spirv")

_KINDS: Mapping[str, tuple[type | tuple[type, ...], str]] = {
    "source": ((str, Path, bytes), "text, a path or SPIR-V"),
    "language": ((str, type(None)), "'glsl', 'hlsl', 'slang' or 'spirv'"),
    "entry": (str, "a string"),
    "constants": (Mapping, "a mapping of names or ids to numbers"),
    "defines": (Mapping, "a mapping of names to text or integers"),
    "include": ((str, Path, list, tuple, Mapping), "folders, or a mapping of names to texts"),
    "target_env": (str, "a string"),
    "name": (str, "a string"),
    "debug": (bool, "True or False"),
    "allow_paths": (bool, "True or False"),
}


class Arguments(NamedTuple):
    """The destinations of a call's arguments: by position, then by name, then outputs.

    Attributes:
        slots: the bindings that have an argument, by set and number.
        outputs: the names of the outputs.
        pushed: the numbers of the arguments that are push constants.
        packer: packs the arguments whose numbers are in ``order``, if each push constant has one.
    """

    slots: tuple[Slot, ...]
    outputs: tuple[str, ...]
    pushed: Mapping[str, int]
    packer: struct.Struct | None
    order: tuple[int, ...]


@dataclass(frozen=True, eq=False, repr=False)
class Shader(Module):
    """A shader from ``load``: a module whose blocks and push constants take values by name.

    ``is_builtin`` says whether it is a part of vkops: checks of users' shaders skip it.
    """

    is_builtin: bool = False

    _repr_html_ = repr_html

    def __repr__(self) -> str:
        return f"<vkops.shaders.Shader {self.name!r} of blocks {_listed(self.blocks)}>"

    def with_limited_indices(self, lengths: limited_indices.Lengths = ()) -> bytes:
        """Return the SPIR-V with each index clamped to the elements of its array or vector.

        Indices of buffers are not clamped in a module that uses addresses, which reach all memory.

        Raises:
            ShaderCompileError: spirv-opt is missing, or cannot change this module.
        """
        spirv = limited_indices.with_limited_indices(self.spirv, lengths)
        if not self.uses_addresses:
            spirv = compiler.with_robust_access(spirv, self.name)
        return spirv

    @cached_property
    def _by_point(self) -> dict[str, Block]:
        """The block for each name: the name of a block, of its instance, or a binding.

        The names of an unused block stand for a used block with the same binding, if there is one.
        """
        pairs = [(block, block) for block in self.blocks]
        pairs += [(u, self.places[u.place][0]) for u in self.unused if u.place in self.places]
        return {name: used for block, used in reversed(pairs) for name in block.names}

    @cached_property
    def _keywords(self) -> dict[str, bool]:
        """For each name that a call can use, whether it is the name of a push constant."""
        is_pushed = {name: False for unused in self.unused for name in unused.names}
        is_pushed |= dict.fromkeys(self.push_names, True)
        return is_pushed | dict.fromkeys(self._by_point, False)

    @cached_property
    def places(self) -> Mapping[tuple[int, int], Sequence[Block]]:
        """The blocks of each binding, by set and number: one buffer is bound to all of them."""
        places: dict[tuple[int, int], list[Block]] = {}
        for block in sorted(self.blocks, key=attrgetter("place")):
            places.setdefault(block.place, []).append(block)
        return places

    def bindings(
        self, lengths: Mapping[tuple[int, int], int] = {}
    ) -> Sequence[Sequence[tuple[int, int, int]]]:
        """Return the bindings of each set: number, type of descriptor in Vulkan, how many it has.

        ``lengths`` are those of the arrays of blocks that have as many elements as are bound.
        """
        sets: list[list[tuple[int, int, int]]] = []
        for (number, binding), (block, *_) in self.places.items():
            sets += [[] for _ in range(number + 1 - len(sets))]
            count = block.length or lengths.get(block.place, 1)
            sets[number].append((binding, DESCRIPTOR_TYPES[block.kind], count))
        return tuple(map(tuple, sets))

    def block(self, point: str) -> Block | None:
        """Return the block with this name, instance name or binding."""
        return self._by_point.get(point)

    def named(self, points: Iterable[str]) -> dict[str, Block]:
        """Return the block that each name stands for, in the order of sets and bindings.

        Names of blocks that the shader declares and does not use are left out.

        Raises:
            BindingError: a name does not exist, or two are of one binding (SH-04).
        """
        names: dict[tuple[int, int], str] = {}
        for point in points:
            block = self._by_point.get(point)
            if block is not None:
                if (other := names.setdefault(block.place, point)) != point:
                    message = f"binding {block.number} is also that of {other}"
                    raise BindingError(self.name, point, message, "SH-04")
            elif not any(point in unused.names for unused in self.unused):
                message = f"there is no such block; there are {_listed(self.blocks)}"
                message += did_you_mean(point, self._by_point)
                name = point if point and point.isprintable() else repr(point)
                raise BindingError(self.name, name, message, "SH-04")
        ordered = [names[place] for place in self.places if place in names]
        return {name: self._by_point[name] for name in ordered}

    def slots(
        self, points: Collection[str], sources: Sequence[int] | None = None
    ) -> tuple[Slot, ...]:
        """Return the binding of each name, see ``named``, and those of all other samplers.

        ``sources`` are the numbers of the arguments, by default 0, 1 and so on.
        """
        sources = range(len(points)) if sources is None else sources
        numbers = dict(zip(points, sources, strict=True))
        bound = self.named(points)
        taken = {block.place for block in bound.values()}
        samplers = [b.point for b in self.blocks if b.kind == "sampler" and b.place not in taken]
        return tuple(
            Slot(point, block, self.is_written(block), numbers.get(point, -1))
            for point, block in (self.named([*bound, *samplers]) if samplers else bound).items()
        )

    def is_written(self, block: Block) -> bool:
        """Whether the shader writes to the memory that is bound to a block."""
        return not all(each.readonly for each in self.places[block.place])

    def arguments(
        self, positional: int, keywords: Sequence[str], outputs: Sequence[str] | int | None
    ) -> Arguments:
        """Return where the arguments of a call go.

        A name can have an underscore at its end, if it is one of Python or of the call. ``outputs``
        are their names, or the number of them.

        Raises:
            BindingError: a name does not exist, or is given twice, there are more arguments by
                position than blocks, or the outputs are not the blocks without an argument (SH-04).
        """
        bound: dict[str, int] = {}
        pushed: dict[str, int] = {}
        for number, keyword in enumerate(keywords, positional):
            name = keyword if keyword in self._keywords else keyword.removesuffix("_")
            if name not in self._keywords:
                push = ", ".join(self.push_names) or "none"
                message = f"is no block ({_listed(self.blocks)}) and no push constant ({push})"
                message += did_you_mean(keyword, self._keywords)
                raise BindingError(self.name, keyword, message, "SH-04")
            target = pushed if self._keywords[name] else bound
            if name in target:
                raise BindingError(self.name, keyword, f"{name} is given twice", "SH-04")
            target[name] = number
        named = outputs if isinstance(outputs, tuple) else ()
        bound |= self.by_position(range(positional), [*bound, *named])
        free = self.free(bound)
        listed = _listed(free)
        if isinstance(outputs, int) and (outputs != len(free) or not free):
            message = f"got {outputs}, must be one for each block without a buffer: {listed}"
            message += self._named_samplers
            raise BindingError(self.name, "out", message, "SH-04")
        for name in named:
            block = self.block(name)
            if block is None or block.place not in [each.place for each in free]:
                message = f"got {show(name)}, must be a block without a buffer: {listed}"
                raise BindingError(self.name, "out", message, "SH-04")
        written = tuple([block.point for block in free]) if isinstance(outputs, int) else named
        bound |= {name: n for n, name in enumerate(written, positional + len(keywords))}
        layout = self.push or StructType((), 0)
        packer, order = None, tuple(pushed.values())
        if pushed.keys() == layout.numbered.keys():
            packer, order = layout.packer, tuple([pushed[name] for name in layout.numbered])
        slots = self.slots(bound, [*bound.values()])
        return Arguments(slots, written, pushed, packer, order)

    def check(self, extents: Mapping[str, Any]) -> None:
        """Check the bytes that are bound to blocks, and that all but samplers are bound.

        ``extents`` has pairs of them and of the bytes of their resource, by the names of blocks; of
        an array, a list. Blocks that share a binding are one, as large as the largest. Blocks that
        the shader declares and does not use are ignored.

        Raises:
            BindingError: a name does not exist, or a binding has no bytes or twice (SH-04), or
                bytes are outside of the resource, misaligned or too few (SH-05).
        """
        bound = [block for block in self.blocks if block.kind == "sampler"]
        for slot, ((_, start, nbytes), capacity) in self.elements(extents):
            bound.append(slot.block)
            if slot.block.type is not None:
                self.check_bytes(slot.point, slot.block, start, nbytes, capacity)
        self.check_complete(bound)

    def elements(self, values: Mapping[str, Any]) -> Iterator[tuple[Slot, Any]]:
        """Return a slot and a value for each binding; those of an array for each of its elements.

        Blocks that the shader declares and does not use are ignored. Errors are those of ``named``
        and ``expanded``.
        """
        slots = [slot for slot in self.slots(values) if slot.source >= 0]
        return zip(*self.expanded(slots, [*values.values()]), strict=True)

    def check_bytes(self, point: str, block: Block, start: int, nbytes: int, capacity: int) -> None:
        """Check the bytes that are bound to the blocks of one binding; see ``check`` (SH-05)."""
        alike = self.places[block.place]
        step = max(b.scalar_nbytes for b in alike)
        minimum = max(step, *(b.nbytes + b.stride for b in alike))
        message = ""
        if start % step or start + nbytes > capacity:
            message = (
                f"got offset {start} and {nbytes} bytes, must begin at a multiple of {step} "
                f"and end at {capacity} or before"
            )
        elif nbytes % step or nbytes < minimum:
            message = f"got {nbytes} bytes, must be a multiple of {step} and at least {minimum}"
        if message:
            raise BindingError(self.name, point, message, "SH-05")

    def check_complete(self, bound: Iterable[Block]) -> None:
        """Check that each binding is that of one of these blocks (SH-04)."""
        places = {block.place for block in bound}
        for place, (block, *_) in self.places.items():
            if place not in places:
                raise BindingError(self.name, block.point, "nothing is bound to it", "SH-04")

    def expanded(
        self, slots: Sequence[Slot], arguments: Sequence[Any]
    ) -> tuple[Sequence[Slot], list[Any]]:
        """Return slots and the argument of each; for an array, both of each element.

        Raises:
            BindingError: the value is not a list, or not as long as the array (SH-04).
        """
        every = [*arguments, None]  # for samplers without an argument
        values = [every[slot.source] for slot in slots]
        if not self.has_arrays:
            return slots, values
        pairs: list[tuple[Slot, Any]] = []
        for slot, value in zip(slots, values, strict=True):
            if (length := slot.block.length) is None:
                pairs.append((slot, value))
                continue
            if value is None and slot.block.kind == "sampler":
                value = [None] * length
            count = len(value) if isinstance(value, (list, tuple)) else 0
            if not count or length not in (0, count):
                got = f"a list of {count}" if count else show(value)
                message = f"got {got}, must be a list of {length or 'one or more'} for the array"
                raise BindingError(self.name, slot.point, message, "SH-04")
            pairs += [
                (slot._replace(point=f"{slot.point}[{number}]"), each)
                for number, each in enumerate(value)
            ]
        return [slot for slot, _ in pairs], [value for _, value in pairs]

    @cached_property
    def has_arrays(self) -> bool:
        """Whether a block is an array of blocks, images or samplers."""
        return any(block.is_array for block in self.blocks)

    def check_elements(
        self,
        point: str,
        block: Block,
        dtype: numpy.dtype[Any],
        shape: tuple[int, ...],
        *,
        bits: bool = False,
    ) -> None:
        """Check a tensor that is bound to the blocks of one binding; see ``find_fault``."""
        blocks = self.places[block.place]
        faults = [find_fault(each, dtype, shape, bits=bits) for each in blocks]
        if (fault := faults[0]) and all(faults):
            raise BindingError(self.name, point, fault.message, fault.rule)

    def free(self, points: Iterable[str] = ()) -> list[Block]:
        """Return the first block of each binding to which none of these names belongs.

        Samplers are left out: they have a default, and are given by name.
        """
        taken = {block.place for block in map(self.block, points) if block is not None}
        firsts = [blocks[0] for place, blocks in self.places.items() if place not in taken]
        return [block for block in firsts if block.kind != "sampler"]

    @property
    def _named_samplers(self) -> str:
        """The end of an error message, if a sampler that was given by position may be the cause."""
        samplers = [block for block in self.blocks if block.kind == "sampler"]
        return f"; samplers are given by name: {_listed(samplers)}" if samplers else ""

    def by_position(self, values: Sequence[Any], points: Iterable[str] = ()) -> dict[str, Any]:
        """Return values by the names of the blocks that these names leave free, in their order.

        Raises:
            BindingError: there are more values than such blocks (SH-04).
        """
        free = [block.point for block in self.free(points)]
        if len(values) > len(free):
            names = ", ".join(free) or "none"
            message = f"got {len(values)} by position, must be {len(free)} at most: {names}"
            if self.unused:
                message += f"; the shader does not use {_listed(self.unused)}"
            raise BindingError(self.name, "buffers", message + self._named_samplers, "SH-04")
        return dict(zip(free, values, strict=False))

    def group_counts(
        self, groups: Any, threads: Any, limit: Sequence[int] = ()
    ) -> tuple[int, int, int] | None:
        """Return three numbers of workgroups; None if a number of threads is 0.

        ``limit`` is the largest number in each dimension, on a device.

        Raises:
            InvalidDescError: these are not one to three integers, both or none is given, or a
                number is 0 or above the limit (SH-07).
        """
        if (groups is None) == (threads is None):
            message = "got groups and threads, must be one of them"
            if groups is None:
                message = "is missing: give it, or threads for a number of invocations"
            raise InvalidDescError(self.name, "groups", message, "SH-07")
        value = groups if threads is None else threads
        argument = ArgumentName(self.name, "groups" if threads is None else "threads", "SH-07")
        counts = (
            integers(value, argument) if isinstance(value, Sized) else (integer(value, argument),)
        )
        if not 1 <= len(counts) <= 3:
            message = f"got {len(counts)} numbers, must be one to three"
            raise InvalidDescError(self.name, argument.field, message, "SH-07")
        counts, sizes = (*counts, 1, 1)[:3], (1, 1, 1)
        if threads is not None:
            if min(counts) < 0:
                message = f"got {show(threads)}, must be numbers from 0"
                raise InvalidDescError(self.name, "threads", message, "SH-07")
            if 0 in counts:
                return None
            sizes = self.local_size
        x, y, z = [-(-count // size) for count, size in zip(counts, sizes, strict=True)]
        for axis, (count, most, size) in enumerate(zip((x, y, z), limit, sizes, strict=False)):
            if not 1 <= count <= most:
                hint = "; use several dimensions, or a loop in the shader" if count > most else ""
                if threads is not None:
                    hint = f", {most} workgroups of {size}; give fewer, and loop over the grid in "
                    hint += "the shader"
                message = f"got {counts[axis]}, must be 1 to {most * size} on this device{hint}"
                raise InvalidDescError(self.name, f"{argument.field}[{axis}]", message, "SH-07")
        return x, y, z

    def pack(self, values: packing.Values) -> bytes:
        """Return push constants as bytes, each number at its offset in the shader.

        ``values`` are all numbers in the order of their declaration, a mapping of names to values,
        a structured NumPy scalar, or bytes; see ``packing.pack``.

        Raises:
            InvalidDescError: a name is missing or unknown, or a value does not fit (SH-09).
        """
        return packing.pack(self.name, "push_constants", self.push, values)

    def pack_uniform(self, block: Block, values: packing.Values) -> bytes:
        """Return the contents of a uniform block as bytes; as ``pack`` in all other respects."""
        packed = packing.pack(self.name, block.point, block.type, values)
        # Pad to whole words: lavapipe (Mesa 22.3, 25.0) reads zeros after the last whole word.
        return packed + bytes(-len(packed) % 4)


def load(
    source: str | Path | bytes,
    *,
    language: str | None = None,
    entry: str = "main",
    constants: Mapping[str | int, Number] = {},
    defines: Mapping[str, str | int] = {},
    include: sources.Include = (),
    include_dirs: Sequence[Path] = (),
    target_env: str = "vulkan1.1",
    debug: bool = False,
    name: str = compiler.UNNAMED,
    allow_paths: bool = False,
    root: Path | None = None,
) -> Shader:
    r"""Load a compute shader: a text, a file, or SPIR-V.

    ``language`` is glsl, hlsl, slang or spirv. By default, files are .hlsl, .slang, .spv, or GLSL
    by their suffix, and texts are GLSL. ``entry`` is the entry point: that of GLSL is main.
    ``constants`` are specialization constants, by name or id; the other arguments are those of
    ``compile``.

    >>> text = "#version 450\nlayout(std430, binding = 0) buffer Data { uint data[]; };"
    >>> shader = load(text + "void main() { data[0] = 1u; }")
    >>> [block.name for block in shader.blocks]
    ['Data']

    Raises:
        ShaderCompileError: it is wrong, or a tool is missing.
        InvalidDescError: vkops cannot run it (SH-01 to SH-03, SH-08), or a constant is not one of
            its own (SH-10).
    """
    settings: dict[str, Any] = {
        "language": language, "entry": entry, "defines": defines,
        "include": include or include_dirs, "target_env": target_env, "debug": debug,
        "allow_paths": allow_paths,
    }  # fmt: skip
    _check_kinds({"source": source, "constants": constants, "name": name, **settings})
    if isinstance(source, bytes):
        spirv = corrected(source)
    else:
        name = printable(source.name if isinstance(source, Path) else name)
        spirv = compiler.read(source, **settings, name=name, root=root)
    entry = entry.partition("<")[0]  # the arguments of a generic function of Slang
    shader = _shader(spirv, name, entry)
    if constants:
        shader = _shader(spirv, name, entry, _constants(name, shader, constants))
    if shader.fault:  # checked here, because it depends on the values of constants
        raise ShaderCompileError(f"{name}: {shader.fault}", file=name)
    for axis, size in zip("xyz", shader.local_size, strict=True):
        if size < 1:
            message = f"got {size}, must be at least 1"
            raise InvalidDescError(name, f"local_size_{axis}", message, "SH-08")
    return shader


def _listed(blocks: Sequence[Block]) -> str:
    return ", ".join(block.point for block in blocks) or "none"


def _check_kinds(settings: Mapping[str, Any]) -> None:
    """Raise an error for arguments of wrong types."""
    for field, value in settings.items():
        kinds, expected = _KINDS[field]
        if not isinstance(value, kinds):
            raise ShaderCompileError(f"{field}: got {show(value)}, must be {expected}")
    source, language = settings["source"], settings["language"]
    wrong = LANGUAGES[:-1] if isinstance(source, bytes) else ("spirv",)
    if language not in (None, *LANGUAGES) or (language in wrong and not isinstance(source, Path)):
        allowed = " or ".join(repr(each) for each in LANGUAGES if each not in wrong)
        hint = "; SPIR-V is bytes or a pathlib.Path" if language == "spirv" else ""
        for each in foreign.LANGUAGES:
            if isinstance(language, str) and language.upper() in each.name.upper().split():
                hint = f"; for {each.name}, {each.advice}"
        raise ShaderCompileError(f"language: got {show(language)}, must be {allowed}{hint}")
    if isinstance(source, str) and source.endswith(_SUFFIXES):
        message = f"got the text {show(source)}, must be a pathlib.Path if it is a file"
        raise ShaderCompileError(f"source: {message}")
    sources.check_kinds(settings["defines"], settings["include"])


@functools.lru_cache(maxsize=128)
def _shader(
    spirv: bytes, name: str, entry: str, values: tuple[tuple[int, bytes], ...] = ()
) -> Shader:
    """Return a valid module that vkops can run, with values of specialization constants."""
    _refuse(name, features.unsupported(declared_capabilities(spirv) if is_spirv(spirv) else ()))
    layout = validated(spirv, name)
    shader = Shader.read(constants.specialized(spirv, dict(values)), name, entry)
    _check(name, shader)
    return replace(shader, needs=(*shader.needs, layout)) if layout else shader


def _check(name: str, module: Module) -> None:
    """Raise an error for a shader that vkops cannot run."""
    firsts: dict[tuple[int, int], Block] = {}
    for block in module.blocks:
        message, first = "", firsts.setdefault(block.place, block)
        if block.kind not in DESCRIPTOR_TYPES:
            message = f"got {block.kind}, must be a block, an image, a texture or a sampler"
        elif block.set >= MAX_SETS:
            message = f"got set {block.set}, must be {MAX_SETS - 1} at most"
        elif block.binding > MAX_BINDING:
            message = f"got binding {block.binding}, must be {MAX_BINDING} at most"
        elif block.kind != first.kind:
            message = f"got binding {block.number} for a {first.kind} and a {block.kind}"
        elif block.length != first.length:
            message = f"got binding {block.number} for arrays of different lengths"
        if message:
            raise InvalidDescError(name, block.point, message, "SH-01")
    _refuse(name, module.unknown)


def _refuse(name: str, unknown: Sequence[str]) -> None:
    """Raise an error for capabilities and modes that vkops does not support."""
    if unknown:
        message = f"got {', '.join(unknown)}, which vkops does not support"
        raise InvalidDescError(name, "capabilities", message, "SH-02")


def _constants(
    name: str, module: Module, numbers: Mapping[str | int, Number]
) -> tuple[tuple[int, bytes], ...]:
    """Return the values of specialization constants by SpecId."""
    values: dict[int, bytes] = {}
    for key, number in numbers.items():
        matches = [c for c in module.specialization_constants if key in (c.name, c.location)]
        if not matches or key == "":
            declared = module.specialization_constants
            known = ", ".join(f"{c.location} ({c.name or 'unnamed'})" for c in declared) or "none"
            message = f"there is no constant {show(key)}; there are {known}"
            message += did_you_mean(key, [c.name for c in declared])
            raise InvalidDescError(name, "constants", message, "SH-10")
        field = f"constants[{show(key)}]"
        (constant, *_) = matches
        if constant.location in values:
            message = f"constant {constant.location} is given twice"
            raise InvalidDescError(name, field, message, "SH-10")
        value = fitting(name, field, constant.type, number, "SH-10")
        values[constant.location] = constant.type.words(value)
    return tuple(values.items())
