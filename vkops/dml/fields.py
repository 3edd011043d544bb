"""Declaration of the fields of operator descriptors, and conversion of their values."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import IntEnum
from typing import Any, Literal

from vkops.arguments.values import (
    Place,
    array,
    boolean,
    float32,
    floats32,
    integer,
    integers,
    member,
    number,
)
from vkops.dml.structs import ScaleBias, Size2D
from vkops.dml.tensor_desc import UINT32_MAX, BufferTensorDesc

Kind = Literal[
    "tensor",
    "tensor_array",
    "uint",
    "int",
    "uint_array",
    "int_array",
    "bool",
    "float",  # DirectML's FLOAT: a number of 32 bits
    "float_array",
    "scalar",  # DML_SCALAR_UNION: a number of a data type that another field names
    "enum",
    "scale_bias",
    "size_2d",
]
Role = Literal["input", "output", "attribute"]


@dataclass(frozen=True)
class Field:
    """One field of an operator descriptor.

    Attributes:
        name: name in Python; dml_name is DirectML's.
        kind: kind of its values.
        role: tensors are bound in the order of the table, attributes are fixed at creation.
        rule: the rule that a value of the wrong kind, or out of 32 bits, breaks.
        optional: whether None is allowed.
        count: DirectML's field for the length of this array; Python needs none.
        enum: the enumeration that values of the kind enum belong to.
        data_type: the field that names the data type of this scalar.
        holds_indices: whether this tensor has a data type of its own, because it holds indices.
    """

    name: str
    dml_name: str
    kind: Kind
    role: Role
    rule: str
    optional: bool = False
    count: str | None = None
    enum: type[IntEnum] | None = None
    data_type: str | None = None
    holds_indices: bool = False

    def convert(self, operator: str, value: object) -> Any:
        """Convert a value to the type of the field's kind.

        Raises:
            InvalidDescTypeError: it is of another kind.
            InvalidDescOverflowError: it is a float, or an array of them, and too large for 32 bits.
        """
        if value is None and self.optional:
            return None
        place = Place(operator, self.name, self.rule)
        if self.enum is not None:
            return member(self.enum, value, place)
        return _CONVERSIONS[self.kind](value, place)


Metadata = Mapping[str, Any]
"""Metadata of a dataclass field; ``field_of`` makes a Field of it."""


def tensor(role: Role, rule: str = "T-18", *, optional: bool = False) -> Metadata:
    """Declare a tensor."""
    return {"kind": "tensor", "role": role, "rule": rule, "optional": optional}


def indices() -> Metadata:
    """Declare an input tensor of indices, whose data type is not that of the other tensors."""
    return {**tensor("input"), "holds_indices": True}


def tensors(role: Role, rule: str, count: str) -> Metadata:
    """Declare an array of tensors whose length is DirectML's field ``count``."""
    return {"kind": "tensor_array", "role": role, "rule": rule, "count": count}


def attribute(
    kind: Kind, rule: str, count: str | None = None, *, optional: bool = False
) -> Metadata:
    """Declare an attribute."""
    return {"kind": kind, "role": "attribute", "rule": rule, "count": count, "optional": optional}


def per_dimension(kind: Kind, rule: str) -> Metadata:
    """Declare an array of attributes with one entry for each dimension."""
    return attribute(kind, rule, "DimensionCount")


def enumeration(enum: type[IntEnum], rule: str) -> Metadata:
    """Declare an attribute that is a member of an enumeration."""
    return {"kind": "enum", "role": "attribute", "rule": rule, "enum": enum}


def scalar(rule: str, data_type: str) -> Metadata:
    """Declare a number of the data type that the field ``data_type`` names."""
    return {"kind": "scalar", "role": "attribute", "rule": rule, "data_type": data_type}


def field_of(name: str, metadata: Metadata) -> Field:
    """Make a Field of a declaration.

    >>> field_of("input_tensors", tensors("input", "JOIN-01", "InputCount")).dml_name
    'InputTensors'
    """
    return Field(name=name, dml_name=name.title().replace("_", ""), **metadata)


BOUNDS: Mapping[str, tuple[int, int]] = {
    "uint_array": (0, UINT32_MAX),
    "int_array": (-(2**31), 2**31 - 1),
    "int": (-(2**31), 2**31 - 1),
}
"""The least and the greatest value, or entry of an array, by kind."""


def _tensor(value: object, place: Place) -> BufferTensorDesc:
    if isinstance(value, BufferTensorDesc):
        return value
    # None stands for a null pointer; anything else is a tensor of another type than BUFFER.
    rule = place.rule if value is None else "T-01"
    raise place._replace(rule=rule).wrong_kind(value, "a BufferTensorDesc")


def _tensors(value: object, place: Place) -> tuple[BufferTensorDesc, ...]:
    return array(value, place, _tensor, "BufferTensorDesc")


def _instance(kind: type, expected: str) -> Callable[[object, Place], Any]:
    def checked(value: object, place: Place) -> object:
        if isinstance(value, kind):
            return value
        raise place.wrong_kind(value, expected)

    return checked


_CONVERSIONS: Mapping[Kind, Callable[[object, Place], Any]] = {
    "tensor": _tensor,
    "tensor_array": _tensors,
    "uint": integer,
    "int": integer,
    "uint_array": integers,
    "int_array": integers,
    "bool": boolean,
    "float": float32,
    "float_array": floats32,
    "scalar": number,
    "scale_bias": _instance(ScaleBias, "a ScaleBias or None"),
    "size_2d": _instance(Size2D, "a Size2D"),
}
