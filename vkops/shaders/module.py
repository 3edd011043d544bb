"""The declarations of a SPIR-V module, for one of its entry points.

Terms and rules are those of the SPIR-V specification.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from vkops.errors import InvalidDescError, ShaderCompileError, show
from vkops.shaders import constants, features
from vkops.shaders.binary import (
    DAMAGED,
    GL_COMPUTE,
    Declarations,
    Decoration,
    Op,
    Storage,
    declarations,
    is_spirv,
    string,
)
from vkops.shaders.grammar import INSTRUCTIONS
from vkops.shaders.image_formats import ImageType
from vkops.shaders.layout import Scalar, ScalarType, StructType, Types, leaves
from vkops.system.threads import cached_property

if TYPE_CHECKING:
    import numpy

DESCRIPTOR_TYPES: Mapping[str, int] = {
    "sampler": 0, "combined image sampler": 1, "sampled image": 2, "storage image": 3,
    "uniform texel buffer": 4, "storage texel buffer": 5, "uniform": 6, "storage": 7,
}  # fmt: skip
"""The VkDescriptorType of each kind of block."""

_STRUCT_NAMES = (0, 1, 2)  # unknown, ESSL, GLSL: there the name of the struct is the block's
_WORKGROUP_SIZE = 25
_LOCAL_SIZE, _LOCAL_SIZE_ID = 17, 38
_RESOURCES = (Storage.UNIFORM_CONSTANT, Storage.UNIFORM, Storage.STORAGE_BUFFER)
_STORED = 2
_COUNTERS = ("counter.var.", "@count")
_ARRAYS = (Op.TypeArray, Op.TypeRuntimeArray)

_Module = TypeVar("_Module", bound="Module")


class Block(NamedTuple):
    """A storage or uniform block, which a buffer is bound to, or an image, a texture or a sampler.

    ``instance`` is the name of the block's instance, ``""`` if it has none. ``nbytes`` is the least
    size of the buffer, and ``stride`` that of an element of a runtime array at the end. ``length``
    is the length of an array of blocks, which has a buffer for each element: 0 means a
    runtime-sized array, and None that the block is not an array.
    """

    name: str
    instance: str
    kind: str  # one of DESCRIPTOR_TYPES, or one that vkops does not support
    set: int
    binding: int
    readonly: bool
    nbytes: int
    stride: int
    type: StructType | None
    length: int | None = None
    image: ImageType | None = None

    @property
    def place(self) -> tuple[int, int]:
        """Its descriptor set and its binding."""
        return self.set, self.binding

    @property
    def number(self) -> str:
        """Its binding, or ``SET.BINDING`` if it is not in set 0."""
        return f"{self.set}.{self.binding}" if self.set else str(self.binding)

    @property
    def point(self) -> str:
        """The name by which a buffer is bound to it."""
        return self.name or self.instance or self.number

    @property
    def is_array(self) -> bool:
        """Whether it is an array of blocks, images or samplers."""
        return self.length is not None

    def bound_to(self, elements: Sequence[Any]) -> Any:
        """Return the value to bind for its elements: a list for an array, else the only one."""
        return [*elements] if self.is_array else elements[0]

    @property
    def dtype(self) -> numpy.dtype[Any] | None:
        """The NumPy type of all of its numbers; None if they have several."""
        import numpy as np

        if self.image and self.image.format:
            return np.dtype(self.image.format.dtype)
        scalars = sorted(self.type.scalars) if self.type else []
        if len(scalars) != 1 or scalars[0].kind == "bool":
            return None
        return np.dtype(f"{scalars[0].kind}{8 * scalars[0].nbytes}")

    @property
    def scalar_nbytes(self) -> int:
        """The bytes of its smallest number."""
        numbers = self.type.scalars if self.type else ()
        return min((number.nbytes for number in numbers), default=4)

    @property
    def names(self) -> Sequence[str]:
        """Its name, its instance's name, and its binding."""
        return [name for name in (self.name, self.instance, self.number) if name]


@dataclass(frozen=True, eq=False)
class Module:
    """A SPIR-V module with one of its compute entry points; errors call it ``name``.

    ``needs`` are the features of Vulkan that a device must have, ``capabilities`` what it declares,
    and ``unknown`` are the capabilities and execution modes that vkops does not support. ``fault``
    says what is wrong with the values of its specialization constants; it is empty if nothing is.
    ``blocks`` are those that the entry point uses, by set and binding; ``unused`` are others.
    ``push`` is the struct of its push constants.
    """

    name: str
    spirv: bytes = field(repr=False)
    spirv_version: tuple[int, int]
    entry_point: str
    entry_points: tuple[str, ...]
    capabilities: tuple[str, ...]
    needs: tuple[str, ...]
    unknown: tuple[str, ...]
    fault: str
    local_size: tuple[int, int, int]
    blocks: tuple[Block, ...]
    unused: tuple[Block, ...]
    push: StructType | None
    specialization_constants: tuple[Scalar, ...]
    shared_nbytes: int
    instructions: int
    loops: int

    @classmethod
    def read(
        cls: type[_Module], spirv: bytes, name: str = "SPIR-V", entry: str | None = None
    ) -> _Module:
        """Read the bytes of a .spv file; None is the first entry point.

        Raises:
            ShaderCompileError: the bytes are not a module with a compute shader.
            InvalidDescError: there is no such entry point (SH-03).
        """
        if not is_spirv(spirv):
            raise ShaderCompileError(f"{name}: {len(spirv)} bytes that are not SPIR-V", file=name)
        try:
            module = declarations(spirv)
            entries = {
                string(words[2:]): words[1] for _, words in module.entries if words[0] == GL_COMPUTE
            }
            if not entries:
                message = f"has {len(module.entries)} entry points, none of a compute shader"
                raise ShaderCompileError(message)
            entry = next(iter(entries)) if entry is None else entry
            if entry not in entries:
                message = f"got {show(entry)}, must be {' or '.join(map(show, entries))}"
                raise InvalidDescError(name, "entry point", message, "SH-03")
            return _read(cls, name, spirv, module, entry, entries)
        except ShaderCompileError as error:
            raise ShaderCompileError(f"{name}: {error.message}", file=name) from error
        except InvalidDescError:
            raise
        except DAMAGED as error:
            raise ShaderCompileError(f"{name}: damaged SPIR-V", file=name) from error

    @cached_property
    def uses_addresses(self) -> bool:
        """Whether it accesses memory by addresses."""
        return "PhysicalStorageBufferAddresses" in self.capabilities

    @property
    def subgroup_operations(self) -> tuple[str, ...]:
        """The VkSubgroupFeatureFlagBits that a device must have."""
        return tuple(features.SUBGROUP[c] for c in self.capabilities if c in features.SUBGROUP)

    @cached_property
    def push_constants(self) -> tuple[Scalar, ...]:
        """The numbers in the push constants, in order."""
        return tuple(leaves(self.push))

    @property
    def push_names(self) -> list[str]:
        """The names of the members of the push constants."""
        return [member.name for member in self.push.members] if self.push else []

    @property
    def push_nbytes(self) -> int:
        """Size of the push constants in bytes."""
        return self.push.nbytes if self.push else 0


def _read(
    cls: type[_Module],
    name: str,
    spirv: bytes,
    module: Declarations,
    entry: str,
    entries: Mapping[str, int],
) -> _Module:
    function = entries[entry]
    numbers = constants.numbers(module)
    values = constants.values(module, numbers)
    types = Types(module, numbers, values)
    for id_, (op, _) in module.defined.items():
        if op == Op.TypeArray:
            types.type(id_)  # finds wrong lengths
    used = module.used(function)
    variables = list(module.variables())
    blocks = sorted(_blocks(module, types, values), key=lambda pair: pair[1].place)
    pushes = {id_: pointee for id_, kind, pointee in variables if kind == Storage.PUSH_CONSTANT}
    chosen = [pointee for id_, pointee in pushes.items() if id_ in used]
    # Push constants that no instruction uses must belong to the only entry point.
    if not chosen and len(module.entries) == 1:
        chosen = list(pushes.values())[:1]
    pushed = [types.type(id_) for id_ in chosen]
    shared: dict[int, int] = {}
    for id_, kind, pointee in variables:
        if kind == Storage.WORKGROUP and id_ in used:
            key = module.shared_memory(id_, pointee)
            shared[key] = max(shared.get(key, 0), types.type(pointee).nbytes)
    ops = [each.op for body in module.functions.values() for each in body]
    return cls(
        name,
        spirv,
        module.version,
        entry,
        tuple(entries),
        tuple(map(features.name, module.capabilities)),
        features.needs(module, numbers, function),
        features.unknown(module, function),
        next(iter(types.faults), ""),
        _local_size(module, values, function),
        tuple(block for id_, block in blocks if id_ in used),
        tuple(block for id_, block in blocks if id_ not in used),
        next((type_ for type_ in pushed if isinstance(type_, StructType)), None),
        tuple(sorted(_specialization_constants(module, numbers, values), key=lambda c: c.location)),
        sum(shared.values()),
        sum(op not in (Op.Line, Op.NoLine) for op in ops),
        ops.count(Op.LoopMerge),
    )


def _local_size(
    module: Declarations, values: Mapping[int, Any], function: int
) -> tuple[int, int, int]:
    """Invocations of a workgroup, with the default values of specialization constants."""
    for target, decorations in module.decorations.items():
        if decorations.get(Decoration.BUILTIN) == (_WORKGROUP_SIZE,) and len(target) == 1:
            x, y, z = values[target[0]]
            return x, y, z
    for _, (id_, mode, *sizes) in module.modes:
        if id_ == function and mode in (_LOCAL_SIZE, _LOCAL_SIZE_ID):
            x, y, z = sizes if mode == _LOCAL_SIZE else map(values.__getitem__, sizes)
            return x, y, z
    return 1, 1, 1


def _blocks(
    module: Declarations, types: Types, values: Mapping[int, Any]
) -> Iterator[tuple[int, Block]]:
    """Yield the blocks with the ids of their variables.

    If several variables share a struct, its name is not used as the name of a block. Compilers of
    languages other than GLSL invent names for structs: there the variable has the block's name.
    """
    variables = list(module.variables())
    shared = Counter(pointee for _, _, pointee in variables)
    for id_, storage, pointee in variables:
        if storage not in _RESOURCES:
            continue
        declared, length = pointee, None
        if declared in module.defined and module.defined[declared].op in _ARRAYS:
            _, pointee, *sizes = module.defined[declared].words
            length = values[sizes[0]] if sizes else 0
        set_, binding = module.place(id_)
        instance = module.names.get((id_,), "" if binding >= 0 else f"%{id_}")
        name = module.names.get((pointee,), "") if shared[declared] == 1 else ""
        if module.language not in _STRUCT_NAMES:
            name, instance = instance or name, ""
        type_, image = None, None
        if storage == Storage.UNIFORM_CONSTANT:
            kind, image = _opaque(module, types, pointee)
        else:
            type_ = types.type(pointee)
            decorated = Decoration.BUFFER_BLOCK in module.decorated(pointee)  # up to SPIR-V 1.3
            kind = "storage" if storage == Storage.STORAGE_BUFFER or decorated else "uniform"
            if name.startswith(_COUNTERS[0]) or name.endswith(_COUNTERS[1]):
                kind = "counter of an append or consume buffer"
        kind = f"{kind} without a binding" if binding < 0 else kind
        block = type_ if isinstance(type_, StructType) else None
        is_readonly = module.has(id_, Decoration.NON_WRITABLE) or not kind.startswith("storage")
        size = (block.nbytes, block.stride) if block else (0, 0)
        place = set_, binding
        yield id_, Block(name, instance, kind, *place, is_readonly, *size, block, length, image)


def _opaque(module: Declarations, types: Types, id_: int) -> tuple[str, ImageType | None]:
    """The kind of an image, a texture or a sampler, and the type of the image."""
    op, words = module.defined[id_]
    if op == Op.TypeSampledImage:
        kind, image = _opaque(module, types, words[1])
        return ("combined image sampler" if kind == "sampled image" else kind), image
    if op == Op.TypeSampler:
        return "sampler", None
    if op != Op.TypeImage:
        return f"OpVariable of {INSTRUCTIONS[op]}", None
    number, kind = types.type(words[1]), ""
    if isinstance(number, ScalarType):  # or nothing
        kind = number.kind + "64" * (number.nbytes == 8)
    image = ImageType.read(words, kind)
    is_stored = words[6] == _STORED
    if image.dimension == "Buffer":
        return ("storage" if is_stored else "uniform") + " texel buffer", image
    kind = "storage image" if is_stored else "sampled image"
    return kind if image.view_type is not None else str(image), image


def _specialization_constants(
    module: Declarations, numbers: Mapping[int, ScalarType], values: Mapping[int, Any]
) -> Iterator[Scalar]:
    for id_, (_, words) in module.defined.items():
        decorations = module.decorated(id_)
        if Decoration.SPEC_ID in decorations:
            name = module.names.get((id_,), "")
            (location,) = decorations[Decoration.SPEC_ID]
            if not isinstance(values[id_], (int, float)):
                raise TypeError("a specialization constant that is not a number")
            yield Scalar(name, numbers[words[0]], location, values[id_])
