"""Operator descriptors from JSON, read by the field table of each descriptor class."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from vkops import dml
from vkops.dml.fields import Kind
from vkops.errors import InvalidDescError, ModelError
from vkops.models.initial_values import read_float, read_scalar
from vkops.models.json_reader import EnumT, Node

# A path such as output_tensor.sizes[2], not a plain word.
_FIELD_PATH = re.compile(r"\b[a-z]+(?:_[a-z0-9]+)+(?:\[\d+\])?(?:\.[a-z_]+(?:\[\d+\])?)*")


def read_descriptor(node: Node, cls: type[dml.OperatorDesc]) -> dml.OperatorDesc:
    """Build a descriptor from an object whose members carry DirectML's own field names."""
    values: dict[str, Any] = {}
    for field in cls.FIELDS:
        child = node.optional(field.dml_name)
        if field.count is not None:
            node.known(field.count)
        if field.optional and (child is None or child.value is None):
            values[field.name] = None
            continue
        if child is None:
            raise node.error(f"'{field.dml_name}' is missing, {cls.operator} needs it")
        values[field.name] = _read_field(child, field, values)
        if field.count is not None:
            _check_count(node, field.count, field.dml_name)
    try:
        return cls(**values)
    except InvalidDescError as error:
        raise descriptor_error(node, error) from error


def _read_field(node: Node, field: dml.Field, others: Mapping[str, Any]) -> Any:
    """Read a field; ``others`` are the fields before it in DirectML's struct."""
    if field.enum is not None:  # the names of PaddingMode begin with DML_PADDING_MODE_ in DirectML
        words = re.findall("[A-Z][a-z]*", field.enum.__name__)
        return node.enum(field.enum, "_".join(["DML", *words, ""]).upper())
    if field.data_type is not None:
        return _read_scalar_union(node, others[field.data_type])
    if field.kind.entry is not None:
        return tuple(map(_READERS[field.kind.entry], node.items()))
    return _READERS[field.kind](node)


def _check_count(node: Node, count: str, array: str) -> None:
    count_node = node.optional(count)
    length = len(node.required(array).array())
    if count_node is not None and count_node.uint() != length:
        raise count_node.error(f"got {count_node.value}, but {array} has {length}")


def descriptor_error(node: Node, error: InvalidDescError) -> ModelError:
    """Return the error of a descriptor at the place in the JSON that has the wrong field."""
    place = node
    for name, index in re.findall(r"(\w+)|\[(\d+)\]", _dml_names(error.field)):
        if index:
            if not isinstance(place.value, list) or int(index) >= len(place.value):
                break
            place = place.item(int(index))
            continue
        if isinstance(place.value, dict) and name not in place.value and "Desc" in place.value:
            place = place["Desc"]
        if not isinstance(place.value, dict) or name not in place.value:
            break
        place = place[name]
    message = with_dml_names(error.message)
    return place.error(f"{error.operator}: {message} [{error.rule}]".removeprefix(": "))


def with_dml_names(message: str) -> str:
    """Return a message with Python's names of fields replaced by DirectML's, which models use."""
    return _FIELD_PATH.sub(lambda path: _dml_names(path[0]), message)


def _dml_names(path: str) -> str:
    """Turn ``output_tensors[1].sizes`` into ``OutputTensors[1].Sizes``.

    >>> _dml_names("input_tensor.guaranteed_base_offset_alignment")
    'InputTensor.GuaranteedBaseOffsetAlignment'
    """
    return re.sub(r"(?:^|_|(?<=\.))([a-z0-9])", lambda match: match[1].upper(), path)


def read_flags(node: Node | None, kind: type[EnumT], prefix: str) -> EnumT:
    """Read flags: one name, or an array of names that are combined; none if it is missing."""
    flags: Any = kind(0)
    for item in node.one_or_more() if node else ():
        flags |= item.enum(kind, prefix)
    return kind(flags)


def _read_tensor(node: Node) -> dml.BufferTensorDesc:
    """Read a tensor desc, either flat or as ``{"Type": "BUFFER", "Desc": {...}}``."""
    kind = node.optional("Type")
    if kind is not None:
        kind.choice("BUFFER", "DML_TENSOR_TYPE_BUFFER")
    body = node.optional("Desc") or node
    body.known("DimensionCount")
    strides, flags = body.optional("Strides"), body.optional("Flags")
    data_type = body.required("DataType").enum(dml.TensorDataType, "DML_TENSOR_DATA_TYPE_")
    sizes = body.required("Sizes").uints()
    _check_count(body, "DimensionCount", "Sizes")
    return dml.BufferTensorDesc(
        data_type=data_type,
        sizes=sizes,
        strides=None if strides is None else strides.uints(),
        flags=read_flags(flags, dml.TensorFlags, "DML_TENSOR_FLAG_"),
        total_tensor_size_in_bytes=body.optional_uint("TotalTensorSizeInBytes", 64),
        guaranteed_base_offset_alignment=body.optional_uint("GuaranteedBaseOffsetAlignment"),
    )


def _read_float32(node: Node) -> float:
    return float(read_scalar(node, np.dtype(np.float32)))


def _read_scalar_union(node: Node, data_type: dml.TensorDataType) -> float:
    """Read a number, or an object whose member is the number: ``{"Float32": 0.5}``.

    FLOAT16 has no member of its own: ``{"UInt16": 14336}`` has its bits.
    """
    if isinstance(node.value, dict):
        if data_type is dml.TensorDataType.FLOAT16:
            return float(np.uint16(node.required("UInt16").uint(16)).view(np.float16))
        node = node.required(data_type.name.title().replace("Uint", "UInt"))
    return node.value if type(node.value) is int else read_float(node)


_READERS: dict[Kind, Callable[[Node], Any]] = {
    dml.fields.TENSOR: _read_tensor,
    dml.fields.UINT: Node.uint,
    dml.fields.INT: lambda node: node.integer(-(2**31), 2**31 - 1),
    dml.fields.BOOL: Node.boolean,
    dml.fields.FLOAT: _read_float32,
    dml.fields.SCALE_BIAS: lambda node: dml.ScaleBias(
        *(_read_float32(node.required(name)) for name in ("Scale", "Bias"))
    ),
    dml.fields.SIZE_2D: lambda node: dml.Size2D(
        *(node.required(name).uint() for name in ("Width", "Height"))
    ),
}
"""The functions that read a value of each kind, or an entry if the kind is an array."""
