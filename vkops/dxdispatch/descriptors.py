"""Operator descriptors from JSON, driven by the field table each descriptor class carries."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np

from vkops.dml import BufferTensorDesc, OperatorDesc, ScaleBias, TensorDataType, TensorFlags
from vkops.dxdispatch.initial_values import read_scalar
from vkops.dxdispatch.json_reader import EnumT, Node
from vkops.errors import InvalidDescError, ModelError


def read_descriptor(node: Node, cls: type[OperatorDesc]) -> OperatorDesc:
    """Build a descriptor from an object whose members carry DirectML's own field names.

    Raises:
        ModelError: a field is missing, of the wrong kind, or not what its count says.
    """
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
        values[field.name] = _READERS[field.kind](child)
        if field.count is not None:
            check_count(node, field.count, field.dml_name)
    try:
        return cls(**values)
    except InvalidDescError as error:
        raise misfit(node, error) from error


def check_count(node: Node, count: str, array: str) -> None:
    """Refuse a count that is given and is not the length of its array."""
    given = node.optional(count)
    if given is None:
        return
    length = len(node.required(array).array())
    if given.uint() != length:
        raise given.error(f"got {given.value}, but {array} has {length}")


def misfit(node: Node, error: InvalidDescError) -> ModelError:
    """Return the error of a descriptor, placed where the JSON has the offending field."""
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
    """Return an error's message with fields by DirectML's names, as models have them."""
    return _FIELD_PATH.sub(lambda path: _dml_names(path[0]), message)


# output_tensor.sizes[2], but no plain word
_FIELD_PATH = re.compile(r"\b[a-z]+(?:_[a-z0-9]+)+(?:\[\d+\])?(?:\.[a-z_]+(?:\[\d+\])?)*")


def _dml_names(path: str) -> str:
    """Turn ``output_tensors[1].sizes`` into ``OutputTensors[1].Sizes``.

    >>> _dml_names("input_tensor.guaranteed_base_offset_alignment")
    'InputTensor.GuaranteedBaseOffsetAlignment'
    """
    return re.sub(r"(?:^|_|(?<=\.))([a-z0-9])", lambda match: match[1].upper(), path)


def read_flags(node: Node, kind: type[EnumT], prefix: str) -> EnumT:
    """Read flags: one name, or an array of names that are or-ed."""
    items = node.items() if isinstance(node.value, list) else [node]
    flags: Any = kind(0)
    for item in items:
        flags |= item.enum(kind, prefix)
    return kind(flags)


def _read_tensor(node: Node) -> BufferTensorDesc:
    """Read a tensor desc, flat or as ``{"Type": "BUFFER", "Desc": {...}}``."""
    kind = node.optional("Type")
    if kind is not None:
        kind.choice("BUFFER", "DML_TENSOR_TYPE_BUFFER")
    body = node.optional("Desc") or node
    strides, flags = body.optional("Strides"), body.optional("Flags")
    total, alignment = (
        body.optional("TotalTensorSizeInBytes"),
        body.optional("GuaranteedBaseOffsetAlignment"),
    )
    data_type = body.required("DataType").enum(TensorDataType, "DML_TENSOR_DATA_TYPE_")
    sizes = _read_uints(body.required("Sizes"))
    check_count(body, "DimensionCount", "Sizes")
    return BufferTensorDesc(
        data_type=data_type,
        sizes=sizes,
        strides=None if strides is None else _read_uints(strides),
        flags=read_flags(flags, TensorFlags, "DML_TENSOR_FLAG_") if flags else TensorFlags.NONE,
        total_tensor_size_in_bytes=total.uint(64) if total else 0,
        guaranteed_base_offset_alignment=alignment.uint() if alignment else 0,
    )


def _read_tensors(node: Node) -> tuple[BufferTensorDesc, ...]:
    return tuple(_read_tensor(item) for item in node.items())


def _read_uints(node: Node) -> tuple[int, ...]:
    return tuple(item.uint() for item in node.items())


def _read_int(node: Node) -> int:
    return node.integer(-(2**31), 2**31 - 1)


def _read_ints(node: Node) -> tuple[int, ...]:
    return tuple(_read_int(item) for item in node.items())


def _read_scale_bias(node: Node) -> ScaleBias:
    scale, bias = (
        float(read_scalar(node.required(name), np.dtype(np.float32))) for name in ("Scale", "Bias")
    )
    return ScaleBias(scale, bias)


_READERS: dict[str, Callable[[Node], Any]] = {
    "tensor": _read_tensor,
    "tensor_array": _read_tensors,
    "uint": Node.uint,
    "int": _read_int,
    "uint_array": _read_uints,
    "int_array": _read_ints,
    "scale_bias": _read_scale_bias,
}
