"""Descriptors of operators as bytes of DirectML's C structures, wrong ones too.

A ``Raw`` descriptor has the fields of one of vkops with values that vkops's classes may refuse:
numbers of any size, tensors that are None, arrays that are None.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from vkops import dml

NUMBERS = {
    "ELEMENT_WISE_IDENTITY": 1,
    "SLICE": 60,
    "SPLIT": 62,
    "JOIN": 63,
    "PADDING": 64,
    "UPSAMPLE_2D": 66,
    "GATHER": 67,
    "SPACE_TO_DEPTH": 68,
    "DEPTH_TO_SPACE": 69,
    "TILE": 70,
    "DIAGONAL_MATRIX": 93,
    "SCATTER": 94,
    "ONE_HOT": 95,
    "RESAMPLE": 96,
    "FILL_VALUE_CONSTANT": 103,
    "FILL_VALUE_SEQUENCE": 104,
    "REVERSE_SUBSEQUENCES": 106,
    "GATHER_ELEMENTS": 107,
    "GATHER_ND": 108,
    "SCATTER_ND": 109,
    "SLICE1": 111,
    "DEPTH_TO_SPACE1": 113,
    "SPACE_TO_DEPTH1": 114,
    "RESAMPLE1": 116,
    "SLICE_GRAD": 135,
    "GATHER_ND1": 140,
    "PADDING1": 155,
    "RESAMPLE2": 161,
    "DIAGONAL_MATRIX1": 163,
    "RESAMPLE3": 175,
    "UNFOLD": 177,
}
"""DML_OPERATOR_TYPE."""

SPARE = 12  # entries behind each array, which DirectML reads if a count is too large


@dataclass(frozen=True)
class RawTensor:
    """A DML_BUFFER_TENSOR_DESC with any content."""

    data_type: int
    sizes: tuple[int, ...]
    strides: tuple[int, ...] | None = None
    flags: int = 0
    total: int = 0
    alignment: int = 0

    @classmethod
    def of(cls, tensor: dml.BufferTensorDesc) -> RawTensor:
        """The same tensor."""
        return cls(
            int(tensor.data_type),
            tensor.sizes,
            tensor.strides,
            int(tensor.flags),
            tensor.total_tensor_size_in_bytes,
            tensor.guaranteed_base_offset_alignment,
        )


@dataclass(frozen=True)
class Raw:
    """An operator and its fields, with any content."""

    operator: str
    fields: Mapping[str, Any]

    @classmethod
    def of(cls, desc: dml.OperatorDesc) -> Raw:
        """The same descriptor."""
        values = {field.name: getattr(desc, field.name) for field in desc.FIELDS}
        for name, value in values.items():
            if isinstance(value, dml.BufferTensorDesc):
                values[name] = RawTensor.of(value)
            elif isinstance(value, tuple):
                tensors = isinstance(next(iter(value), None), dml.BufferTensorDesc)
                values[name] = tuple(map(RawTensor.of, value)) if tensors else value
        return cls(desc.operator, values)

    def with_fields(self, **fields: Any) -> Raw:
        """This one with other values of some fields."""
        return replace(self, fields={**self.fields, **fields})

    def desc(self) -> dml.OperatorDesc:
        """The descriptor of vkops; raises InvalidDescError if its classes refuse it.

        Raises:
            NotImplementedError: a total size is 0, which means the minimum here.
        """
        values = {
            name: tuple(map(_tensor, value)) if _has_tensors(value) else _tensor(value)
            for name, value in self.fields.items()
        }
        return dml.OPERATORS[self.operator](**values)


def _has_tensors(value: Any) -> bool:
    return isinstance(value, tuple) and any(isinstance(each, RawTensor) for each in value)


def _tensor(value: Any) -> Any:
    if not isinstance(value, RawTensor):
        return value
    if value.total == 0:
        raise NotImplementedError(value)
    total, alignment = value.total, value.alignment
    return dml.BufferTensorDesc(
        value.data_type, value.sizes, value.strides, value.flags, total, alignment
    )


class Packed:
    """The bytes of a structure and of what it points to, and the places of the pointers.

    Raises:
        NotImplementedError: DirectML's structure cannot hold a value.
    """

    def __init__(self, raw: Raw) -> None:
        fields = dml.OPERATORS[raw.operator].FIELDS
        self.number = NUMBERS[raw.operator]
        self.data = bytearray(sum(map(_size, fields)) + 8 * len(fields) + 64)
        self.relocations: list[tuple[int, int]] = []
        at, counts = 0, {}
        for field in fields:
            value = raw.fields[field.name]
            if field.count:
                length = 0 if value is None else len(value)
                if field.count not in counts:
                    at += -at % 4
                    self._write(at, "I", length)
                    at += 4
                if counts.setdefault(field.count, length) != length:
                    raise NotImplementedError(raw)
            align = 4 if field.kind.name == "size_2d" else _size(field)
            at += -at % align
            self._field(at, field, value, raw.fields)
            at += _size(field)
        self.data += bytes(-len(self.data) % 8)

    def _field(self, at: int, field: Any, value: Any, fields: Mapping[str, Any]) -> None:
        kind = field.kind.name
        if kind == "scalar":
            self.data[at : at + 8] = _scalar(fields[field.data_type], value)
        elif kind == "size_2d":
            self._write(at, "II", _word(value.width), _word(value.height))
        elif kind == "float":
            self._write(at, "f", value)
        elif kind in ("uint", "int", "enum", "bool"):
            least, end = {"int": (-(2**31), 2**31), "bool": (0, 2)}.get(kind, (0, 2**32))
            if not least <= value < end:
                raise NotImplementedError(value)
            self._write(at, "I", _word(value))
        elif value is None:
            return  # a null pointer
        elif kind == "tensor":
            self._point(at, self._tensors([value]))
        elif kind == "tensor_array":
            self._point(at, self._tensors(value))
        elif kind == "scale_bias":
            self._point(at, self._add(struct.pack("<ff", value.scale, value.bias)))
        elif kind == "float_array":
            numbers = [*value, *[1.0] * SPARE]
            self._point(at, self._add(struct.pack(f"<{len(numbers)}f", *numbers)))
        else:
            self._point(at, self._words(value))

    def _write(self, at: int, code: str, *values: Any) -> None:
        struct.pack_into("<" + code, self.data, at, *values)

    def _add(self, data: bytes) -> int:
        self.data += bytes(-len(self.data) % 8)
        at = len(self.data)
        self.data += data
        return at

    def _point(self, at: int, target: int) -> None:
        self.relocations.append((at, target))

    def _words(self, values: Any) -> int:
        words = [*map(_word, values), *[1] * SPARE]
        return self._add(struct.pack(f"<{len(words)}I", *words))

    def _tensors(self, tensors: Any) -> int:
        """Add an array of DML_TENSOR_DESC."""
        array = self._add(bytes(16 * len(tensors) + 64))
        for i, tensor in enumerate(tensors):
            if tensor is None:
                continue  # a tensor of the type INVALID
            if not 0 <= tensor.total < 2**64:
                raise NotImplementedError(tensor)
            numbers = (_word(tensor.data_type), _word(tensor.flags), len(tensor.sizes))
            sized = tensor.total, _word(tensor.alignment)
            desc = self._add(struct.pack("<III4xQQQI4x", *numbers, 0, 0, *sized))
            self._write(array + 16 * i, "I", 1)
            self._point(array + 16 * i + 8, desc)
            self._point(desc + 16, self._words(tensor.sizes))
            if tensor.strides is not None:
                self._point(desc + 24, self._words(tensor.strides))
        return array

    def bytes(self) -> bytes:
        """The operator of a case, as ask.c reads it."""
        head = struct.pack("<IIII", self.number, len(self.relocations), len(self.data), 0)
        places = b"".join(struct.pack("<II", *each) for each in self.relocations)
        return head + places + bytes(self.data)


def _word(value: int) -> int:
    return int(value) % 2**32


def _size(field: Any) -> int:
    return 4 if field.kind.name in ("uint", "int", "enum", "float", "bool") else 8


def _scalar(data_type: int, value: Any) -> bytes:
    """A DML_SCALAR_UNION; a negative number has the bits of an unsigned one.

    Raises:
        NotImplementedError: DirectML's union cannot hold the value.
    """
    try:
        kind = dml.TensorDataType(data_type)
        bits = kind.size_bits
    except ValueError:
        return bytes(8)
    code = {"FLOAT16": "<e", "FLOAT32": "<f", "FLOAT64": "<d"}.get(kind.name)
    try:
        if code:
            return struct.pack(code, value).ljust(8, b"\0")
        if int(value) == value and -(2 ** (bits - 1)) <= value < 2**bits:
            return (int(value) % 2**bits).to_bytes(8, "little")
    except (OverflowError, ValueError, struct.error):
        pass  # too large, or not a number
    raise NotImplementedError(value)
