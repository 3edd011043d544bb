"""Initial values of resources in every form of DxDispatch: literal, generated or in files.

Also NumPy's counterparts of DirectML's data types, and data in pieces of bounded size.
"""

from __future__ import annotations

import math
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt

from vkops.dml import TensorDataType
from vkops.errors import ModelError
from vkops.models.folders import Folders
from vkops.models.json_reader import Node, quote
from vkops.system import pictures
from vkops.system.files import open_regular
from vkops.system.npy_files import read_header

PIECE_BYTES = 1 << 23
"""Values are generated, read and written in pieces of at most this size."""

ReadBytes = Callable[[int, int], bytes]
"""A function that returns bytes of a resource; its arguments are their offset and number."""

_DATA_TYPES = {
    np.dtype(f"<{data_type.numpy_code}"): data_type
    for data_type in TensorDataType
    if data_type.size_bits >= 8
}

MAX_FORTRAN_BYTES = 1 << 30
"""The maximum size of values stored column by column: all of them are in memory at once."""

PIXELS = (
    TensorDataType.UINT8, TensorDataType.UINT16, TensorDataType.FLOAT16, TensorDataType.FLOAT32
)  # fmt: skip
"""The data types of pixels: integers as in the file, or floats from 0 to 1."""

_TYPE_PREFIX = "DML_TENSOR_DATA_TYPE_"
_NOT_FINITE = {"nan": math.nan, "inf": math.inf, "-inf": -math.inf}


def dtype_of(data_type: TensorDataType) -> np.dtype[Any]:
    """Return the NumPy type of a data type of whole bytes (not of UNKNOWN)."""
    return np.dtype(f"<{data_type.numpy_code}")


def data_type_of(dtype: np.dtype[Any]) -> TensorDataType | None:
    """Return the data type of a NumPy type of either byte order, or None if there is none."""
    return _DATA_TYPES.get(dtype.newbyteorder("<"))


def pieces(read: ReadBytes, size: int, step: int = PIECE_BYTES) -> Iterator[bytes]:
    """Yield the bytes of a resource in pieces."""
    for offset in range(0, size, step):
        yield read(offset, min(step, size - offset))


@dataclass(frozen=True)
class InitialValues:
    """The bytes that a resource starts with; ``pieces`` yields them in pieces of bounded size.

    The values are in row-major order and little-endian. ``shape`` is the shape of the array in a
    file, if there is one.
    """

    nbytes: int
    pieces: Callable[[], Iterator[bytes]] = field(repr=False)
    shape: tuple[int, ...] | None = None


def _literal(data: bytes, shape: tuple[int, ...] | None = None) -> InitialValues:
    """Return the values of a literal in the model, whose text is bounded, or of a picture."""
    return InitialValues(
        len(data), lambda: pieces(lambda at, nbytes: data[at : at + nbytes], len(data)), shape
    )


def _constant(value: Any, count: int) -> InitialValues:
    def read(_: int, nbytes: int) -> bytes:
        return np.full(nbytes // value.nbytes, value).tobytes()

    size = count * int(value.nbytes)
    return InitialValues(size, lambda: pieces(read, size, PIECE_BYTES))


def _sequence(start: Any, delta: Any, count: int) -> InitialValues:
    """Return ``start``, ``start + delta``, ... by repeated addition of NumPy scalars of one type.

    Integers wrap and rounding errors accumulate, as in DxDispatch's loop.
    """

    def pieces() -> Iterator[bytes]:
        first, step = np.array([start]), PIECE_BYTES // start.nbytes
        for done in range(0, count, step):
            terms = np.full(min(step, count - done), delta)
            terms[:1] = first
            with np.errstate(all="ignore"):
                values = np.add.accumulate(terms, dtype=terms.dtype)
                first = values[-1:] + delta
            yield values.tobytes()

    return InitialValues(count * int(start.nbytes), pieces)


def read_values(resource: Node, folders: Folders) -> tuple[TensorDataType, InitialValues]:
    """Read ``initialValues`` and ``initialValuesDataType`` of a resource."""
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
        return data_type, _literal(read_array(node, _known(data_type, node)).tobytes())
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
        source = node.required("sourcePath")
        path, suffix = folders.find(source), Path(source.string()).suffix.lower()
        if suffix in pictures.SUFFIXES:
            return _picture_values(source, path, data_type, resource.optional("resampleSize"))
        if suffix == ".npy":
            return _npy_values(source, path, data_type)
        return _known(data_type, source), raw_values(source, path)
    dtype = dtype_of(_known(data_type, node))
    count = node.required("valueCount").integer(1, 2**64 - 1)
    first = read_scalar(node.required(forms[0]), dtype)
    if forms == ["value"]:
        return data_type, _constant(first, count)
    return data_type, _sequence(first, read_scalar(node.required("valueDelta"), dtype), count)


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
        raise node.error("got an empty array, must be one value or more")
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


def _read_typed_list(node: Node) -> InitialValues:
    """Read values of various types, packed without padding."""
    packed = bytearray()
    for item in node.items():
        item.known("name")
        type_node = item.required("type")
        data_type = read_value_type(type_node)
        if data_type in (TensorDataType.UNKNOWN, TensorDataType.FLOAT16):
            raise type_node.error(f"{data_type.name} is not available in a list of typed values")
        packed += read_scalar(item.required("value"), dtype_of(data_type)).tobytes()
    return _literal(bytes(packed))


# -- files -----------------------------------------------------------------------------------------


@contextmanager
def _opened(node: Node, path: Path) -> Iterator[BinaryIO]:
    try:
        with open_regular(path, follow=False) as stream:
            yield stream
    except OSError as error:
        raise node.error(f"cannot be read: {error.strerror}") from error


def _picture_values(
    node: Node, path: Path, declared: TensorDataType, size: Node | None
) -> tuple[TensorDataType, InitialValues]:
    """Return the pixels of a picture: row by row, or in DxDispatch's layout if they are floats.

    DxDispatch's layout is NCHW, with values from 0 to 1.
    """
    with _opened(node, path) as stream:
        try:
            pixels = pictures.read(stream)
        except pictures.PictureError as error:
            raise node.error(f"{quote(path.name)} {error}") from error
    if declared in PIXELS[2:]:
        planes = np.moveaxis(np.atleast_3d(pixels), -1, 0)[None]
        pixels = (planes / np.iinfo(pixels.dtype).max).astype(dtype_of(declared))
    data_type = data_type_of(pixels.dtype)
    assert data_type is not None
    if declared not in (data_type, TensorDataType.UNKNOWN):
        message = f"{quote(path.name)} holds {data_type.name}, 'initialValuesDataType' says"
        raise node.error(f"{message} {declared.name}; FLOAT32 and FLOAT16 are from 0 to 1")
    if size is not None and size.uints() != pixels.shape:
        raise size.error(f"got {size.value}, must be {[*pixels.shape]}: nothing is resampled")
    return data_type, _literal(np.ascontiguousarray(pixels).tobytes(), pixels.shape)


def raw_values(node: Node, path: Path) -> InitialValues:
    """Return all bytes of a file as initial values."""
    with _opened(node, path) as stream:
        nbytes = os.fstat(stream.fileno()).st_size
    if nbytes == 0:
        raise node.error(f"{quote(path.name)} is empty")
    return _file_values(path, 0, nbytes)


def _npy_values(
    node: Node, path: Path, declared: TensorDataType
) -> tuple[TensorDataType, InitialValues]:
    """Return the array of a .npy file, which must have the declared type, unless it is UNKNOWN."""
    name = quote(path.name)
    with _opened(node, path) as stream:
        try:
            shape, fortran, dtype, offset = read_header(stream)
        except ValueError as error:
            raise node.error(f"{name} is not a .npy file of format 1.0 or 2.0") from error
        available = os.fstat(stream.fileno()).st_size - offset
    data_type = data_type_of(dtype)
    if data_type is None:
        raise node.error(f"{name} holds {dtype.str}, which is not a tensor data type")
    if declared not in (data_type, TensorDataType.UNKNOWN):
        raise node.error(
            f"{name} holds {data_type.name}, 'initialValuesDataType' says {declared.name}"
        )
    nbytes = math.prod(shape) * dtype.itemsize
    if nbytes == 0:
        raise node.error(f"{name} holds no values")
    if nbytes > available:
        raise node.error(
            f"{name} holds {available} bytes of values, its shape {shape} needs {nbytes}"
        )
    if fortran and nbytes > MAX_FORTRAN_BYTES:
        raise node.error(
            f"{name} has {nbytes} bytes column by column, must be {MAX_FORTRAN_BYTES} at most; "
            "keep its values row by row"
        )
    values = _file_values(path, offset, nbytes, dtype, shape if fortran else None)
    return data_type, replace(values, shape=shape)


def _file_values(
    path: Path,
    offset: int,
    nbytes: int,
    dtype: np.dtype[Any] | None = None,
    fortran_shape: tuple[int, ...] | None = None,
) -> InitialValues:
    """Return values from an offset of a file on; with ``fortran_shape``, stored by columns."""
    dtype = dtype or np.dtype(np.uint8)
    little, count = dtype.newbyteorder("<"), PIECE_BYTES // dtype.itemsize
    step = PIECE_BYTES if fortran_shape is None else nbytes

    def pieces() -> Iterator[bytes]:
        try:
            with open_regular(path, follow=False) as stream:
                stream.seek(offset)
                for start in range(0, nbytes, step):
                    size = min(step, nbytes - start)
                    data = stream.read(size)
                    if len(data) != size:
                        raise ModelError(f"{path}: became shorter while it was read")
                    values: Any = np.frombuffer(data, dtype)
                    if fortran_shape is not None:
                        values = values.reshape(fortran_shape, order="F").flat
                    for first in range(0, len(values), count):
                        yield values[first : first + count].astype(little, copy=False).tobytes()
        except OSError as error:
            raise ModelError(f"{path}: cannot be read: {error.strerror}") from error

    return InitialValues(nbytes, pieces)
