"""Initial values of resources, in every form DxDispatch has, made piece by piece."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from vkops.dml import TensorDataType
from vkops.dxdispatch.data_types import CHUNK_BYTES, dtype_of
from vkops.dxdispatch.folders import Folders
from vkops.dxdispatch.json_reader import Node
from vkops.dxdispatch.value_files import npy_values, raw_values

_TYPE_PREFIX = "DML_TENSOR_DATA_TYPE_"
_NOT_FINITE = {"nan": math.nan, "inf": math.inf, "-inf": -math.inf}


class InitialValues(Protocol):
    """The bytes that a resource begins with, made on demand."""

    @property
    def nbytes(self) -> int:
        """Size in bytes."""

    def chunks(self) -> Iterator[bytes]:
        """Yield the bytes in order, in pieces of bounded size."""


@dataclass(frozen=True)
class Literal:
    """Values written out in the model, whose text has a bounded size."""

    data: bytes

    @property
    def nbytes(self) -> int:
        """Size in bytes."""
        return len(self.data)

    def chunks(self) -> Iterator[bytes]:
        """Yield all bytes at once."""
        yield self.data


@dataclass(frozen=True)
class Sequence:
    """``start``, ``start + delta``, ... by repeated addition in the values' own type."""

    start: Any  # NumPy scalars of one type
    delta: Any
    count: int

    @property
    def nbytes(self) -> int:
        """Size in bytes."""
        return self.count * int(self.start.nbytes)

    def chunks(self) -> Iterator[bytes]:
        """Yield running sums; integers wrap and rounding errors add up, as in the native loop."""
        first = np.array([self.start])
        step = CHUNK_BYTES // first.itemsize
        for done in range(0, self.count, step):
            terms = np.full(min(step, self.count - done), self.delta)
            terms[:1] = first
            with np.errstate(all="ignore"):
                values = np.add.accumulate(terms, dtype=terms.dtype)
                first = values[-1:] + self.delta
            yield values.tobytes()


@dataclass(frozen=True)
class Constant:
    """One value, ``count`` times."""

    value: Any  # NumPy scalar
    count: int

    @property
    def nbytes(self) -> int:
        """Size in bytes."""
        return self.count * int(self.value.nbytes)

    def chunks(self) -> Iterator[bytes]:
        """Yield the value again and again."""
        step = CHUNK_BYTES // int(self.value.nbytes)
        for done in range(0, self.count, step):
            yield np.full(min(step, self.count - done), self.value).tobytes()


def read_values(resource: Node, folders: Folders) -> tuple[TensorDataType, InitialValues]:
    """Read ``initialValues`` and ``initialValuesDataType`` of a resource.

    Raises:
        ModelError: for values that do not fit their type, and files that cannot be used.
    """
    type_node = resource.optional("initialValuesDataType")
    data_type = read_value_type(type_node) if type_node else TensorDataType.UNKNOWN
    node = resource.required("initialValues")
    if isinstance(node.value, list):
        if node.value and isinstance(node.value[0], dict):
            if data_type is not TensorDataType.UNKNOWN:
                raise node.error(
                    "a list of typed values must not have 'initialValuesDataType', "
                    f"got {data_type.name}"
                )
            return data_type, _read_typed_list(node)
        return data_type, Literal(read_array(node, _known(data_type, node)).tobytes())
    if not isinstance(node.value, dict):
        raise node.wrong('an array, an object or "deferred"')
    node.known("valueCount", "valueDelta")
    forms = [name for name in ("value", "valueStart", "sourcePath") if node.optional(name)]
    if len(forms) != 1:
        raise node.error(
            "needs one of 'value', 'valueStart' and 'sourcePath', got "
            + (" and ".join(map(repr, forms)) or "none")
        )
    if forms == ["sourcePath"]:
        return _read_file(node.required("sourcePath"), data_type, folders)
    dtype = dtype_of(_known(data_type, node))
    count = node.required("valueCount").integer(1, 2**64 - 1)
    first = read_scalar(node.required(forms[0]), dtype)
    if forms == ["value"]:
        return data_type, Constant(first, count)
    return data_type, Sequence(first, read_scalar(node.required("valueDelta"), dtype), count)


def read_value_type(node: Node) -> TensorDataType:
    """Read a data type that initial values can have."""
    data_type = node.enum(TensorDataType, _TYPE_PREFIX)
    if data_type is not TensorDataType.UNKNOWN and data_type.size_bits < 8:
        raise node.wrong("types of whole bytes")
    return data_type


def read_array(node: Node, data_type: TensorDataType) -> npt.NDArray[Any]:
    """Read an array of numbers of one type, each checked against its range."""
    dtype = dtype_of(data_type)
    values = node.array()
    if not values:
        raise node.error("got an empty array, allowed one value or more")
    kinds = set(map(type, values))
    if dtype.kind != "f":
        info = np.iinfo(dtype)
        if kinds != {int} or min(values) < info.min or max(values) > info.max:
            for item in node.items():
                read_scalar(item, dtype)
        return np.array(values, dtype)
    if not kinds <= {int, float} or not all(abs(value) < math.inf for value in values):
        values = [read_float(item) for item in node.items()]
    try:
        with np.errstate(over="ignore"):
            array = np.array(values, np.float64).astype(dtype)
    except OverflowError:
        array = np.array([math.inf], dtype)
    if np.isinf(array).any():
        for item in node.items():
            read_scalar(item, dtype)
    return array


def read_scalar(node: Node, dtype: np.dtype[Any]) -> Any:
    """Read one number of a NumPy type, checked against its range."""
    if dtype.kind != "f":
        info = np.iinfo(dtype)
        return dtype.type(node.integer(int(info.min), int(info.max)))
    wide = read_float(node)
    with np.errstate(over="ignore"):
        value = dtype.type(wide)
    if np.isinf(value) and not math.isinf(wide):
        largest = float(np.finfo(dtype).max)
        raise node.wrong(f"{-largest:g} to {largest:g}")
    return value


def read_float(node: Node) -> float:
    """Read a number, or one of the strings "nan", "inf" and "-inf" in any case."""
    value = node.value
    if isinstance(value, str) and value.lower() in _NOT_FINITE:
        return _NOT_FINITE[value.lower()]
    if type(value) is float and math.isfinite(value):
        return value
    if type(value) is int:
        if abs(value) <= sys.float_info.max:
            return float(value)
        raise node.wrong("numbers that a double can hold")
    raise node.wrong('a number, "nan", "inf" or "-inf"')


def _known(data_type: TensorDataType, node: Node) -> TensorDataType:
    if data_type is TensorDataType.UNKNOWN:
        raise node.error("needs 'initialValuesDataType'")
    return data_type


def _read_typed_list(node: Node) -> Literal:
    """Read values of various types, packed without padding."""
    packed = bytearray()
    for item in node.items():
        item.known("name")
        type_node = item.required("type")
        data_type = read_value_type(type_node)
        if data_type in (TensorDataType.UNKNOWN, TensorDataType.FLOAT16):
            raise type_node.error(f"{data_type.name} is not available in a list of typed values")
        packed += read_scalar(item.required("value"), dtype_of(data_type)).tobytes()
    return Literal(bytes(packed))


def _read_file(
    node: Node, data_type: TensorDataType, folders: Folders
) -> tuple[TensorDataType, InitialValues]:
    suffix = Path(node.string()).suffix.lower()
    if suffix in (".jpg", ".jpeg", ".png"):
        raise node.error("images are not available; store the values in a .npy file")
    path = folders.find(node)
    if suffix == ".npy":
        return npy_values(node, path, data_type)
    return _known(data_type, node), raw_values(node, path)
