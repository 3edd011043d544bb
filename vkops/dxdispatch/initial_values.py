"""Initial values of resources, in every form DxDispatch knows, made piece by piece."""

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
from vkops.dxdispatch.data_types import CHUNK_BYTES, dtype_of, is_floating
from vkops.dxdispatch.folders import Folders
from vkops.dxdispatch.json_reader import Node
from vkops.dxdispatch.value_files import npy_values, raw_values

_TYPE_PREFIX = "DML_TENSOR_DATA_TYPE_"
_WORDS = {"nan": math.nan, "inf": math.inf, "-inf": -math.inf}


class InitialValues(Protocol):
    """What a resource holds at first: its bytes, made on demand."""

    @property
    def nbytes(self) -> int:
        """Size in bytes."""

    def chunks(self) -> Iterator[bytes]:
        """Yield the bytes in order, in pieces of bounded size."""


@dataclass(frozen=True)
class Literal:
    """Values written out in the model."""

    data: bytes

    @property
    def nbytes(self) -> int:
        """Size in bytes."""
        return len(self.data)

    def chunks(self) -> Iterator[bytes]:
        """Yield all of them at once: they came from a text of bounded size."""
        yield self.data


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
        for n in _pieces(self.count, int(self.value.nbytes)):
            yield np.full(n, self.value).tobytes()


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
        for n in _pieces(self.count, first.itemsize):
            steps = np.full(n, self.delta)
            steps[:1] = first
            with np.errstate(all="ignore"):
                values = np.add.accumulate(steps, dtype=steps.dtype)
                first = values[-1:] + self.delta
            yield values.tobytes()


def read_values(resource: Node, folders: Folders) -> tuple[TensorDataType, InitialValues]:
    """Read ``initialValues`` and ``initialValuesDataType`` of a resource.

    Args:
        resource: the resource object.
        folders: where ``sourcePath`` is looked for.

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
                    "a list of typed values goes without 'initialValuesDataType', "
                    f"got {data_type.name}"
                )
            return data_type, _read_list(node)
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
    if forms == ["value"]:
        return data_type, Constant(read_scalar(node.required("value"), dtype), count)
    start = read_scalar(node.required("valueStart"), dtype)
    return data_type, Sequence(start, read_scalar(node.required("valueDelta"), dtype), count)


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
    if not is_floating(dtype):
        info = np.iinfo(dtype)
        low, high = int(info.min), int(info.max)
        if set(map(type, values)) != {int} or min(values) < low or max(values) > high:
            for item in _each(node):
                item.integer(low, high)
        return np.array(values, dtype)
    plain = set(map(type, values)) <= {int, float}
    if not plain or not all(abs(value) < math.inf for value in values):
        values = [read_float(item) for item in _each(node)]
    try:
        with np.errstate(over="ignore"):
            array = np.array(values, np.float64).astype(dtype)
    except OverflowError:
        array = np.array([math.inf], dtype)
    if np.isinf(array).any():
        for item in _each(node):
            read_scalar(item, dtype)
    return array


def read_scalar(node: Node, dtype: np.dtype[Any]) -> Any:
    """Read one number of a NumPy type, checked against its range."""
    if not is_floating(dtype):
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
    if isinstance(value, str) and value.lower() in _WORDS:
        return _WORDS[value.lower()]
    if type(value) is float and math.isfinite(value):
        return value
    if type(value) is int:
        if abs(value) <= sys.float_info.max:
            return float(value)
        raise node.wrong("numbers that a double can hold")
    raise node.wrong('a number, "nan", "inf" or "-inf"')


def _each(node: Node) -> Iterator[Node]:
    """Yield the elements of an array one by one: there may be millions."""
    return map(node.item, range(len(node.array())))


def _known(data_type: TensorDataType, node: Node) -> TensorDataType:
    if data_type is TensorDataType.UNKNOWN:
        raise node.error("needs 'initialValuesDataType'")
    return data_type


def _read_list(node: Node) -> Literal:
    """Values of various types, packed back to back."""
    packed = bytearray()
    for item in node.items():
        item.known("name")
        type_node = item.required("type")
        data_type = read_value_type(type_node)
        if data_type in (TensorDataType.UNKNOWN, TensorDataType.FLOAT16):
            raise type_node.error(f"{data_type.name} is not offered in a list of typed values")
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
    _known(data_type, node)
    return data_type, raw_values(node, path)


def _pieces(count: int, itemsize: int) -> Iterator[int]:
    step = CHUNK_BYTES // itemsize
    for done in range(0, count, step):
        yield min(step, count - done)
