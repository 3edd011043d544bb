"""NumPy's format of arrays in files, .npy, which is read without executing anything."""

from __future__ import annotations

import io
from typing import IO, Any, NamedTuple

import numpy as np
import numpy.lib.format as npy
import numpy.typing as npt

from vkops.system.threads import filtered

MAGIC: bytes = npy.MAGIC_PREFIX
"""The first bytes of a .npy file."""

MAX_HEADER_BYTES = 1 << 16
"""Bytes of the header of a .npy file; NumPy itself reads 10,000."""


class Header(NamedTuple):
    """The header of a file: the array's shape, order and type, and the header's size in bytes."""

    shape: tuple[int, ...]
    is_fortran: bool
    dtype: np.dtype[Any]
    nbytes: int


def read_header(stream: IO[bytes]) -> Header:
    """Read the header of a .npy file; ValueError if it is not of format 1.0 or 2.0, or too long."""
    header = io.BytesIO(stream.read(MAX_HEADER_BYTES))
    readers = {(1, 0): npy.read_array_header_1_0, (2, 0): npy.read_array_header_2_0}
    try:
        with filtered("ignore", Warning):
            shape, is_fortran, dtype = readers[npy.read_magic(header)](header)
    except Exception as error:  # NumPy's header reader fails in many ways on bad bytes
        raise ValueError(str(error)) from error
    if any(n < 0 for n in shape):
        raise ValueError(f"shape {shape}")
    return Header(shape, is_fortran, dtype, header.tell())


def read_array(stream: IO[bytes]) -> npt.NDArray[Any]:
    """Return the array of a .npy file in the byte order of this machine."""
    array: npt.NDArray[Any] = npy.read_array(stream, allow_pickle=False)
    if not array.dtype.isnative:
        array = array.byteswap(inplace=True).view(array.dtype.newbyteorder())
    return array


def header_bytes(dtype: np.dtype[Any], shape: tuple[int, ...]) -> bytes:
    """Return the header of a .npy file, format 1.0."""
    stream = io.BytesIO()
    description = {"descr": dtype.str, "fortran_order": False, "shape": shape}
    npy.write_array_header_1_0(stream, description)
    return stream.getvalue()


def write_array(stream: IO[bytes], array: npt.NDArray[Any]) -> None:
    """Write an array without Python objects as a .npy file."""
    npy.write_array(stream, array, allow_pickle=False)
