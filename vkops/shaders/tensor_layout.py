"""Whether the elements of a tensor can have the layout of a block of a shader.

A block has its numbers at offsets that its declaration gives. GLSL puts the elements of `vec3 a[]`
16 bytes apart, so that the rows of an array of shape (n, 3) are not where the shader reads them.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import prod
from typing import TYPE_CHECKING, NamedTuple

from vkops.shaders.layout import ArrayType, ScalarType, StructType, Type
from vkops.shaders.module import Block

if TYPE_CHECKING:
    import numpy

    DType = numpy.dtype[numpy.generic]

MAX_PARTS = 1024
"""Rows of a tensor, and numbers of a record, that are compared with a block; patterns repeat."""

_MAX_GAP = 16
"""The most bytes from a number to the next, as a multiple of its size: std140 aligns to 16."""


class Fault(NamedTuple):
    """The reason why elements cannot be bound to a block, and the rule that they break."""

    message: str
    rule: str


def find_fault(
    block: Block, dtype: DType, shape: tuple[int, ...], *, bits: bool = False
) -> Fault | None:
    """Return why a tensor cannot be bound to a block; None if it can.

    The numbers of a tensor must have the type of the block's numbers (SH-11), or only their size
    with ``bits``; signs of integers do not matter. Its rows, or the fields of its records, must be
    where the block has numbers (SH-16). A tensor of one axis is taken as the block's bytes in
    order, whatever the block contains; so is a tensor of uint8, unless the block is an array of
    other numbers without gaps.
    """
    layout = _Layout.of(block)
    if layout is None or ((bits or not layout.is_plain) and _is_raw(block, dtype)):
        return None
    if dtype.fields:
        message = _misplaced(layout, dtype, prod(shape))
    else:
        if message := _wrong_type(block, dtype, bits=bits):
            return Fault(message, "SH-11")
        message = _wrong_rows(layout, dtype, shape)
    return Fault(message, "SH-16") if message else None


class _Layout(NamedTuple):
    """The elements of a block that is an array, ``stride`` bytes apart.

    Any other block counts as one element, and has the stride 0.
    """

    element: Type
    stride: int

    @classmethod
    def of(cls, block: Block) -> _Layout | None:
        if block.type is None:
            return None
        members = block.type.members
        if len(members) == 1 and not members[0].offset:
            member = members[0].type
            if isinstance(member, ArrayType) and member.form == "array":
                return cls(member.element, member.stride)
        return cls(block.type, 0)

    @property
    def is_plain(self) -> bool:
        """Whether it is an array of numbers, vectors or matrices without gaps."""
        return _has_no_gaps(self.element, self.stride)

    def has_rows(self, nbytes: int, count: int) -> bool:
        """Whether each of ``count`` rows begins where a number, vector or matrix column begins."""
        if self.stride:
            if nbytes % self.stride == 0:
                return True
            if self.stride % nbytes:
                return False
            count = min(count, self.stride // nbytes)
        elif isinstance(self.element, StructType) and not self.element.stride:
            count = min(count, -(-self.element.nbytes // nbytes))
        return all(_begins(self.element, n * nbytes) for n in range(1, min(count, MAX_PARTS)))

    def padded(self, size: int, itemsize: int, count: int) -> int | None:
        """Return the length that rows must be padded to, in numbers; None if no length fits.

        If possible, a row of this length has ``size`` numbers of the block, and else gaps.
        """
        sizes = range(size + 1, min(size * _MAX_GAP, MAX_PARTS) + 1)
        fitting = [n for n in sizes if self.has_rows(n * itemsize, count)]
        exact = (n for n in fitting if self._numbers(n * itemsize, itemsize, count) == {size})
        return next(exact, next(iter(fitting), None))

    def _numbers(self, nbytes: int, itemsize: int, count: int) -> set[int]:
        """Return the different counts of numbers of the block that are in a row of a tensor."""
        rows = range(max(1, min(count, -(-self.stride // nbytes), MAX_PARTS // nbytes)))
        starts = [range(row * nbytes, (row + 1) * nbytes, itemsize) for row in rows]
        return {sum(self._number_at(at) is not None for at in row) for row in starts}

    def _number_at(self, at: int) -> tuple[int, int] | None:
        return _number_at(self.element, at % self.stride if self.stride else at)

    def holds(self, places: list[int], nbytes: int) -> bool:
        """Whether numbers of ``nbytes`` bytes are all in gaps, or all where the block has such."""
        ends = [(self._number_at(at), self._number_at(at + nbytes - 1)) for at in places]
        if all(end == (None, None) for end in ends):
            return True
        return all(first == (nbytes, 0) and last is not None for first, last in ends)

    def __str__(self) -> str:
        if not isinstance(self.element, StructType):
            return f"elements of {self.stride} bytes"
        fields = ", ".join(f"{each.name} at byte {each.offset}" for each in self.element.members)
        return f"{fields}{f', in {self.stride} bytes' if self.stride else ''}"


def _is_raw(block: Block, dtype: DType) -> bool:
    """Whether elements are raw bytes: uint8, unless the block has numbers of 8 bits."""
    is_bytes = dtype == "u1" and block.scalar_nbytes > 1
    return is_bytes or (dtype.char == "V" and not dtype.fields)


def _wrong_type(block: Block, dtype: DType, *, bits: bool) -> str:
    declared = block.dtype
    sizes = sorted({number.nbytes for number in block.type.scalars}) if block.type else []
    if declared is None or bits:
        if dtype.itemsize in sizes or not sizes:
            return ""
        counts = " or ".join(map(str, sizes))
        return f"got {dtype}, must be numbers of {counts} bytes, or uint8 for raw bytes"
    is_integer = dtype.kind in "iub" and declared.kind in "iu" and dtype.isnative
    # Types that NumPy lacks, such as bfloat16, are bound as their bits.
    is_integer = is_integer or (dtype.isbuiltin == 2 and declared.kind == "u")
    if dtype == declared or (is_integer and dtype.itemsize == declared.itemsize):
        return ""
    message = f"got {dtype}, must be {declared}; tensor.astype() converts it"
    if dtype.itemsize == declared.itemsize or dtype == "u1":
        message += ", tensor.view() reads the same bytes"
    return message


def _wrong_rows(layout: _Layout, dtype: DType, shape: tuple[int, ...]) -> str:
    """Return an error if rows begin where a block has no number; "" also for a single axis."""
    axes = [axis for axis, size in enumerate(shape) if size != 1]
    if len(axes) < 2 or 0 in shape or layout.is_plain:
        return ""
    size, count = shape[axes[-1]], prod(shape[: axes[-1]])
    if layout.has_rows(size * dtype.itemsize, count):
        return ""
    other, longer = "of", layout.padded(size, dtype.itemsize, count)
    if longer:
        other = f"of shape {(*shape[: axes[-1]], longer, *shape[axes[-1] + 1 :])}, of"
    return (
        f"got {dtype} of shape {shape}, must be {other} one axis, or uint8 for raw "
        f"bytes: rows of {size * dtype.itemsize} bytes do not end where the block's vectors or "
        f"structures do ({layout})"
    )


def _misplaced(layout: _Layout, dtype: DType, count: int) -> str:
    """Return an error if fields of records are not where a block has numbers of their sizes."""
    nbytes, (element, stride) = dtype.itemsize, layout
    wrong = "" if layout.has_rows(nbytes, count) else f"records of {nbytes} bytes"
    if not wrong and nbytes == (stride or nbytes):
        wrong = _misnamed(element, dtype)
    records = range(min(count, max(1, stride // nbytes), MAX_PARTS))
    for record in records if not wrong else ():
        for path, starts, size in _fields(dtype):
            places = [record * nbytes + start for start in starts]
            if not layout.holds(places, size):
                wrong = f"{path} at byte {starts[0]}"
                break
    if not wrong:
        return ""
    return f"got {wrong}, must have {layout}, or be uint8 for raw bytes"


def _misnamed(type_: Type, dtype: DType) -> str:
    """Return the first field that is at another place than the member with its name."""
    members = {each.name: each for each in type_.members} if isinstance(type_, StructType) else {}
    for name, (kind, offset, *_) in (dtype.fields or {}).items():
        if member := members.get(name):
            if member.offset != offset:
                return f"{name} at byte {offset}"
            if wrong := _misnamed(member.type, kind):
                return f"{wrong} of {name}"
    return ""


def _fields(dtype: DType, path: str = "", start: int = 0) -> Iterator[tuple[str, list[int], int]]:
    """Yield the path of each field, the first bytes of its numbers, and the bytes of a number."""
    for name, (kind, offset, *_) in (dtype.fields or {}).items():
        field, first = f"{path}.{name}" if path else name, start + offset
        base = kind.base
        starts = range(first, first + kind.itemsize, max(1, base.itemsize))[:MAX_PARTS]
        if base.fields:
            for each in starts:
                yield from _fields(base, field, each)
        elif starts:
            yield field, [*starts], base.itemsize


def _number_at(type_: Type, at: int) -> tuple[int, int] | None:
    """Return the size of the number to which a byte belongs, and the byte's position in it."""
    if isinstance(type_, ScalarType):
        return (type_.nbytes, at) if at < type_.nbytes else None
    if isinstance(type_, StructType):
        inside = (_number_at(m.type, at - m.offset) for m in type_.members if m.offset <= at)
        return next((number for number in inside if number), None)
    if column := _column_of_rows(type_):  # rows of a matrix that is stored by rows
        row, within = divmod(at, column.stride)
        is_inside = row < (column.count or 0) and within < type_.stride * (type_.count or 0)
        return _number_at(column.element, within % type_.stride) if is_inside else None
    number, within = divmod(at, type_.stride)
    if type_.count is not None and number >= type_.count:
        return None
    return _number_at(type_.element, within)


def _begins(type_: Type, at: int) -> bool:
    """Whether a number outside of vectors, a vector, or a matrix's row in memory begins here."""
    if isinstance(type_, StructType):
        return any(_begins(m.type, at - m.offset) for m in type_.members if m.offset <= at)
    if isinstance(type_, ScalarType) or type_.form == "vector":
        return at == 0
    if column := _column_of_rows(type_):
        return at % column.stride == 0 and at // column.stride < (column.count or 0)
    number, within = divmod(at, type_.stride)
    return (type_.count is None or number < type_.count) and _begins(type_.element, within)


def _column_of_rows(type_: ArrayType) -> ArrayType | None:
    """Return the type of the columns of a matrix whose rows are contiguous, else None."""
    column = type_.element
    if type_.form == "matrix" and isinstance(column, ArrayType) and column.stride > type_.stride:
        return column
    return None


def _has_no_gaps(type_: Type, stride: int) -> bool:
    """Whether elements ``stride`` bytes apart are numbers, vectors or matrices without gaps."""
    if isinstance(type_, ScalarType):
        return stride == type_.nbytes
    if isinstance(type_, StructType):
        return False
    if column := _column_of_rows(type_):
        is_whole = column.stride == type_.stride * (type_.count or 0)
        return is_whole and stride == column.stride * (column.count or 0)
    return stride == type_.stride * (type_.count or 0) and _has_no_gaps(type_.element, type_.stride)
