"""Numbers as the bytes of push constants and of uniform blocks."""

from __future__ import annotations

import struct
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

from vkops.errors import InvalidDescError, InvalidDescTypeError, did_you_mean, show
from vkops.shaders.layout import ArrayType, Scalar, ScalarType, StructType, Type, leaves

Number = int | float

Values = Sequence[Number] | Mapping[str, Any] | bytes | bytearray | memoryview
"""Or a NumPy array or structured scalar."""

_RULE = "SH-09"
_SHOWN_NAMES = 16
_LARGEST = {16: 65504.0, 32: 3.4028234663852886e38, 64: sys.float_info.max}
"""The largest float, by its number of bits."""

_KINDS = "numbers, a mapping of names to values, a structured NumPy scalar, or bytes"


def pack(shader: str, field: str, layout: StructType | None, value: Any) -> bytes:
    """Return values as bytes, each number at its offset.

    Args:
        shader: the name of the shader in errors.
        field: the name of the argument in errors.
        layout: the struct that the shader declares; None is an empty one.
        value: all numbers in the order of their declaration, matrices by columns; a mapping of
            the names of members to numbers, sequences (also nested ones, indexed as in the
            shader) and mappings; a structured NumPy scalar with these names; or all bytes.

    Raises:
        InvalidDescError: names are missing or unknown, or a value does not fit (SH-09).
    """
    layout = layout or StructType((), 0)
    if (packer := layout.packer) is not None:
        try:  # the fast way; if it fails, the code below finds out what is wrong
            if type(value) in (list, tuple):
                return packer.pack(*value)
            if type(value) is dict and value.keys() == layout.numbered.keys():
                return packer.pack(*map(value.__getitem__, layout.numbered))
        except (struct.error, OverflowError, TypeError, ValueError):
            pass
    if isinstance(value, (bytes, bytearray, memoryview)):
        data = bytes(value)
        if len(data) != layout.nbytes:
            message = f"got {len(data)} bytes, must be {layout.nbytes}"
            raise InvalidDescError(shader, field, message, _RULE)
        return data
    packing = _Packing(shader, bytearray(layout.nbytes))
    packing.fill(field, layout, 0, value)
    return bytes(packing.packed)


@dataclass(frozen=True)
class _Packing:
    """Bytes that are being filled."""

    shader: str
    packed: bytearray

    def fill(self, path: str, layout: Type, offset: int, value: Any) -> None:
        """Write a value of a type at an offset."""
        if isinstance(layout, ScalarType):
            self._write(path, Scalar("", layout, offset), value)
            return
        named = _named(value)
        if named is not None and isinstance(layout, StructType):
            self._members(path, layout, offset, named)
            return
        if isinstance(layout, StructType) and [each.name for each in layout.members] == ["data"]:
            # Slang of 2025 wraps each matrix and array in such a struct.
            self.fill(path, layout.members[0].type, offset + layout.members[0].offset, value)
            return
        items = None if isinstance(value, Mapping) else _items(value)
        if items is None:
            kinds = "a sequence" if isinstance(layout, ArrayType) else _KINDS
            message = f"got {show(value)}, must be {kinds}"
            raise InvalidDescTypeError(self.shader, path, message, _RULE)
        if isinstance(layout, ArrayType) and (
            # Each item is an element of the array; otherwise, items are all numbers in order.
            isinstance(layout.element, ScalarType)
            or any(_named(item) is not None or _items(item) is not None for item in items)
        ):
            if len(items) != layout.count:
                message = f"got {len(items)} values, must be {layout.count}"
                raise InvalidDescError(self.shader, path, message, _RULE)
            for number, item in enumerate(items):
                at = offset + number * layout.stride
                self.fill(f"{path}[{number}]", layout.element, at, item)
            return
        if len(items) != layout.numbers:
            listed = list(islice(leaves(layout), _SHOWN_NAMES))
            names = ", ".join(f"{leaf.type} {leaf.name}" for leaf in listed) or "none"
            more = ", ..." if layout.numbers > _SHOWN_NAMES else ""
            message = f"got {len(items)} numbers, must be {layout.numbers}: {names}{more}"
            raise InvalidDescError(self.shader, path, message, _RULE)
        for leaf, item in zip(leaves(layout, "", offset), items, strict=True):
            dot = "" if leaf.name.startswith("[") else "."
            self._write(f"{path}{dot}{leaf.name}", leaf, item)

    def _members(
        self, path: str, layout: StructType, offset: int, value: Mapping[str, Any]
    ) -> None:
        names = [member.name for member in layout.members if member.type.numbers]
        extra = [show(name) for name in value if name not in names]
        missing = [name for name in names if name not in value]
        if extra or missing:
            got = f"got {'' if extra else 'no value for '}"
            wrong, members = (", ".join(n[:_SHOWN_NAMES]) for n in (extra or missing, names))
            message = f"{got}{wrong}; the members are {members or 'none'}"
            message += did_you_mean(next((n for n in value if n not in names), None), missing)
            raise InvalidDescError(self.shader, path, message, _RULE)
        for member in layout.members:
            if member.name in value:
                at = offset + member.offset
                self.fill(f"{path}.{member.name}", member.type, at, value[member.name])

    def _write(self, path: str, leaf: Scalar, value: Any) -> None:
        number = fitting(self.shader, path, leaf.type, value, _RULE)
        struct.pack_into(leaf.type.format, self.packed, leaf.location, number)


def _named(value: Any) -> Mapping[str, Any] | None:
    """Return the values of a mapping or a structured NumPy scalar by name."""
    if isinstance(value, Mapping):
        return value
    names = getattr(getattr(value, "dtype", None), "names", None)
    if names and getattr(value, "shape", None) == ():
        value = value[()]
        return {name: value[name] for name in names}
    return None


def _items(value: Any) -> Sequence[Any] | None:
    """Return the items of a sequence; None if it is something else."""
    if isinstance(value, (bytes, bytearray, memoryview)):
        return None
    try:
        return [value[number] for number in range(len(value))]
    except (TypeError, LookupError):
        return None


def fitting(name: str, field: str, type_: ScalarType, number: Any, rule: str) -> Number:
    """Convert a number to a scalar type."""
    value: Number
    try:
        if type_.kind == "float":
            value = struct.unpack(type_.format, struct.pack(type_.format, float(number)))[0]
            fits = not isinstance(number, (str, bytes, bytearray))
        else:
            value = int(number)
            in_range = type_.wrapped(value) if type_.kind != "bool" else int(bool(value))
            fits = value == number and value == in_range
    except (TypeError, ValueError, OverflowError):  # out of range, or not a number
        fits = False
    if not fits:
        message = f"got {show(number)}, must be {type_}"
        if type_.kind != "bool" and isinstance(number, (int, float)):
            bits = 8 * type_.nbytes
            low = -_LARGEST[bits] if type_.kind == "float" else min(0, type_.wrapped(1 << bits - 1))
            high = -low if type_.kind == "float" else low + (1 << bits) - 1
            message += f", from {low} to {high}"
        raise InvalidDescError(name, field, message, rule)
    return value
