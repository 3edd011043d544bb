"""Initial values in files beside a model: .npy files, and raw bytes."""

from __future__ import annotations

import io
import math
import os
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np
import numpy.typing as npt

from vkops.dml import TensorDataType
from vkops.dxdispatch.data_types import CHUNK_BYTES, data_type_of
from vkops.dxdispatch.json_reader import Node, quote
from vkops.errors import ModelError
from vkops.paths import open_regular

MAX_HEADER_BYTES = 1 << 16
"""Bytes of the header of a .npy file; NumPy itself reads 10,000."""

MAX_FORTRAN_BYTES = 1 << 30
"""Bytes of values stored column by column, which are in memory all at once."""


@dataclass(frozen=True)
class FileValues:
    """``nbytes`` bytes of a file from ``offset`` on, values of ``dtype`` if it is known."""

    path: Path
    offset: int
    nbytes: int
    dtype: np.dtype[Any] | None = None
    fortran_shape: tuple[int, ...] | None = None

    def chunks(self) -> Iterator[bytes]:
        """Yield the values in row-major order and little-endian bytes.

        Raises:
            ModelError: the file has changed since the model was read.
        """
        dtype = self.dtype or np.dtype(np.uint8)
        try:
            with open_regular(self.path, follow=False) as stream:
                stream.seek(self.offset)
                if self.fortran_shape is not None:
                    columns = np.frombuffer(self._read(stream, self.nbytes), dtype)
                    values = columns.reshape(self.fortran_shape, order="F").flat
                    step = CHUNK_BYTES // dtype.itemsize
                    for start in range(0, columns.size, step):
                        yield _little_endian(values[start : start + step])
                    return
                for start in range(0, self.nbytes, CHUNK_BYTES):
                    data = self._read(stream, min(CHUNK_BYTES, self.nbytes - start))
                    yield _little_endian(np.frombuffer(data, dtype))
        except OSError as error:
            raise ModelError(f"{self.path}: cannot be read: {error.strerror}") from error

    def _read(self, stream: IO[bytes], nbytes: int) -> bytes:
        data = stream.read(nbytes)
        if len(data) != nbytes:
            raise ModelError(f"{self.path}: became shorter while it was read")
        return data


def _little_endian(values: npt.NDArray[Any]) -> bytes:
    return values.astype(values.dtype.newbyteorder("<"), copy=False).tobytes()


def raw_values(node: Node, path: Path) -> FileValues:
    """Return all bytes of a file as initial values."""
    try:
        with open_regular(path, follow=False) as stream:
            nbytes = os.fstat(stream.fileno()).st_size
    except OSError as error:
        raise node.error(f"cannot be read: {error.strerror}") from error
    if nbytes == 0:
        raise node.error(f"{quote(path.name)} is empty")
    return FileValues(path, 0, nbytes)


def npy_values(node: Node, path: Path, wanted: TensorDataType) -> tuple[TensorDataType, FileValues]:
    """Return the array of a .npy file, which must have the type ``wanted`` unless it is UNKNOWN."""
    name = quote(path.name)
    try:
        with open_regular(path, follow=False) as stream:
            (shape, fortran, dtype), offset = read_npy_header(stream)
            available = os.fstat(stream.fileno()).st_size - offset
    except OSError as error:
        raise node.error(f"cannot be read: {error.strerror}") from error
    except ValueError as error:
        raise node.error(f"{name} is not a .npy file of format 1.0 or 2.0") from error
    data_type = data_type_of(dtype)
    if data_type is None:
        raise node.error(f"{name} holds {dtype.str}, which is not a tensor data type")
    if wanted not in (data_type, TensorDataType.UNKNOWN):
        raise node.error(
            f"{name} holds {data_type.name}, 'initialValuesDataType' says {wanted.name}"
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
            f"{name} has {nbytes} bytes column by column, allowed {MAX_FORTRAN_BYTES}; "
            "keep its values row by row"
        )
    return data_type, FileValues(path, offset, nbytes, dtype, shape if fortran else None)


def read_npy_header(stream: IO[bytes]) -> tuple[tuple[tuple[int, ...], bool, np.dtype[Any]], int]:
    """Return the shape, Fortran order and type of a .npy file's array, and the header's size.

    Raises:
        ValueError: the header is not of format 1.0 or 2.0, or too long.
    """
    header = io.BytesIO(stream.read(MAX_HEADER_BYTES))
    readers = {
        (1, 0): np.lib.format.read_array_header_1_0,
        (2, 0): np.lib.format.read_array_header_2_0,
    }
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = readers[np.lib.format.read_magic(header)](header)
    except Exception as error:  # NumPy's header reader fails in many ways on bad bytes
        raise ValueError(str(error)) from error
    if any(n < 0 for n in found[0]):
        raise ValueError(f"shape {found[0]}")
    return found, header.tell()
