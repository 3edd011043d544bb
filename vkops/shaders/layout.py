"""The types of push constants and blocks, with the offsets of all numbers in them."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from vkops.shaders.binary import Declarations, Decoration, Op, Storage
from vkops.system.threads import cached_property

_CODES = {
    "bool": {4: "I"},
    "uint": {1: "B", 2: "H", 4: "I", 8: "Q"},
    "int": {1: "b", 2: "h", 4: "i", 8: "q"},
    "float": {2: "e", 4: "f", 8: "d"},
}
_MAX_FAST = 1024
"""Numbers that are packed by one call of ``struct``."""


class ScalarType(NamedTuple):
    """A scalar type: bool, uint, int or float, with its size in bytes.

    >>> str(ScalarType("uint", 4)), str(ScalarType("float", 2))
    ('uint', 'float16')
    """

    kind: str
    nbytes: int

    @property
    def numbers(self) -> int:
        """How many numbers it consists of."""
        return 1

    @property
    def scalars(self) -> frozenset[ScalarType]:
        """A set with this type alone."""
        return frozenset((self,))

    def __str__(self) -> str:
        return self.kind if self.nbytes == 4 else f"{self.kind}{8 * self.nbytes}"

    @property
    def format(self) -> str:
        """The format by which ``struct`` packs it."""
        return f"<{_CODES[self.kind][self.nbytes]}"

    def wrapped(self, value: int, *, signed: bool | None = None) -> int:
        """Return the integer of this type that has the same bits as one with the other sign."""
        half = 1 << (8 * self.nbytes - 1)
        is_signed = self.kind == "int" if signed is None else signed
        return (value + half) % (2 * half) - half if is_signed else value % (2 * half)

    def words(self, value: float) -> bytes:
        """Return the words of a constant with a value."""
        data = struct.pack(self.format, value)
        return data + (b"\xff" if self.kind == "int" and value < 0 else b"\0") * (-len(data) % 4)


# Types are compared by identity: a struct can have many members of one type.


@dataclass(frozen=True, eq=False)
class ArrayType:
    """An array, vector or matrix (an array of columns); ``count`` is None if it is unknown."""

    element: Type
    count: int | None
    stride: int
    nbytes: int
    form: str = "array"  # or vector, matrix, or cooperative: what an invocation has of a matrix

    @cached_property
    def numbers(self) -> int:
        """How many numbers it consists of."""
        return (self.count or 0) * self.element.numbers

    @property
    def scalars(self) -> frozenset[ScalarType]:
        """The types of its numbers."""
        return self.element.scalars


class Member(NamedTuple):
    """A member of a struct."""

    name: str
    offset: int
    type: Type


@dataclass(frozen=True, eq=False)
class StructType:
    """A struct; ``nbytes`` is its size without an array of unknown length at the end."""

    members: tuple[Member, ...]
    nbytes: int

    @cached_property
    def numbers(self) -> int:
        """How many numbers it consists of."""
        return sum(member.type.numbers for member in self.members)

    @cached_property
    def scalars(self) -> frozenset[ScalarType]:
        """The types of its numbers."""
        return frozenset[ScalarType]().union(*(member.type.scalars for member in self.members))

    @property
    def stride(self) -> int:
        """The bytes of an element of the array of unknown length; 0 if there is none."""
        arrays = (m.type for m in self.members if isinstance(m.type, ArrayType))
        return next((array.stride for array in arrays if array.count is None), 0)

    @cached_property
    def unnamed(self) -> Member | None:
        """The only member, if it has no name in the source, as in buffers of HLSL and Slang."""
        only = self.members[0] if len(self.members) == 1 else None
        return only if only and (only.name.startswith("@") or only.name.isdecimal()) else None

    @cached_property
    def numbered(self) -> dict[str, Member]:
        """Its members by name; empty if they are not all single numbers."""
        by_name = {member.name: member for member in self.members}
        return (
            by_name if all(isinstance(member.type, ScalarType) for member in self.members) else {}
        )

    @cached_property
    def packer(self) -> struct.Struct | None:
        """Packs all numbers in order, if they have ascending offsets."""
        if self.numbers > _MAX_FAST:
            return None
        end, parts = 0, []
        for leaf in leaves(self):
            if leaf.location < end:
                return None
            parts.append(f"{leaf.location - end}x{leaf.type.format[1:]}")
            end = leaf.location + leaf.type.nbytes
        parts.append(f"{self.nbytes - end}x")
        return struct.Struct("<" + "".join(parts))


Type = ScalarType | ArrayType | StructType

_OPAQUE = StructType((), 0)
"""Stands for a type without a size, such as an image."""


class Scalar(NamedTuple):
    """A number in a struct, or a specialization constant.

    ``location`` is its offset in bytes, or the constant's SpecId.
    """

    name: str
    type: ScalarType
    location: int
    default: float = 0


def leaves(type_: Type | None, name: str = "", offset: int = 0) -> Iterator[Scalar]:
    """Yield the numbers of a type in the order of their declaration; matrices go by columns."""
    if isinstance(type_, ScalarType):
        yield Scalar(name, type_, offset)
    elif isinstance(type_, StructType):
        for member in type_.members:
            if member.type.numbers:
                path = f"{name}.{member.name}" if name else member.name
                yield from leaves(member.type, path, offset + member.offset)
    elif type_ is not None and type_.numbers:
        for n in range(type_.count or 0):
            yield from leaves(type_.element, f"{name}[{n}]", offset + n * type_.stride)


class Types:
    """The types of a module, by id."""

    def __init__(
        self,
        module: Declarations,
        numbers: Mapping[int, ScalarType],
        constants: Mapping[int, Any],
        scopes: Mapping[int, int] | None = None,
    ) -> None:
        self._module = module
        self._constants = constants
        self._scopes = scopes or {}
        self.faults: list[str] = []
        self._known: dict[tuple[int, int, bool], Type] = {
            (id_, 0, False): number for id_, number in numbers.items()
        }

    def type(self, id_: int, matrix_stride: int = 0, *, row_major: bool = False) -> Type:
        """Return a type; packed where no layout is declared.

        The stride of matrices and their order are decorations of the struct's member. An array of
        less than one element counts as one, and is reported in ``faults``.
        """
        key = id_, matrix_stride, row_major
        if key not in self._known:
            self._known[key] = self._made(*key)
        return self._known[key]

    def _made(self, id_: int, matrix_stride: int, row_major: bool) -> Type:
        op, words = self._module.defined[id_]
        stride = self._module.decorated(id_).get(Decoration.ARRAY_STRIDE, (0,))[0]
        if op == Op.TypeStruct:
            return self._struct(id_)
        if op == Op.TypePointer and words[1] == Storage.PHYSICAL:
            return ScalarType("uint", 8)  # an address
        if op == Op.TypeCooperativeMatrixKHR:
            number = self.type(words[1])
            scope, rows, columns = (self._constants[id_] for id_ in words[2:5])
            count = -(-rows * columns // self._scopes.get(scope, 1))
            return ArrayType(number, count, number.nbytes, count * number.nbytes, "cooperative")
        if op not in (Op.TypeVector, Op.TypeMatrix, Op.TypeArray, Op.TypeRuntimeArray):
            return self._known.get((id_, 0, False), _OPAQUE)
        element = self.type(words[1], matrix_stride, row_major=row_major)
        size = element.nbytes
        if op == Op.TypeVector:
            return ArrayType(element, words[2], size, size * words[2], "vector")
        if op == Op.TypeRuntimeArray:
            return ArrayType(element, None, stride or size, 0)
        if op == Op.TypeArray:
            count = self._constants.get(words[2])
            if not isinstance(count, int) or count < 1:
                self.faults.append(f"an array has {count} elements, must have at least 1")
                count = 1
            return ArrayType(element, count, stride or size, (stride or size) * count)
        assert isinstance(element, ArrayType)
        columns, rows = words[2], element.count or 0
        if row_major:
            column = ArrayType(element.element, rows, matrix_stride, 0, "vector")
            return ArrayType(column, columns, element.stride, matrix_stride * rows, "matrix")
        step = matrix_stride or size
        return ArrayType(element, columns, step, step * columns, "matrix")

    def _struct(self, id_: int) -> StructType:
        members = []
        end, largest = 0, 1  # ``largest`` is the largest alignment of members without an offset
        for number, member in enumerate(self._module.defined[id_].words[1:]):
            decorations = self._module.decorated(id_, number)
            (stride,) = decorations.get(Decoration.MATRIX_STRIDE, (0,))
            type_ = self.type(member, stride, row_major=Decoration.ROW_MAJOR in decorations)
            if Decoration.OFFSET in decorations:
                (offset,) = decorations[Decoration.OFFSET]
            else:
                alignment = max((number.nbytes for number in type_.scalars), default=1)
                offset, largest = end + -end % alignment, max(largest, alignment)
            name = self._module.names.get((id_, number), "") or str(number)
            members.append(Member(name, offset, type_))
            end = max(end, offset + type_.nbytes)
        return StructType(tuple(members), end + -end % largest)
