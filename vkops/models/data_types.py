"""NumPy's counterparts of DirectML's data types, and data in pieces of bounded size."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from vkops.dml import TensorDataType

CHUNK_BYTES = 1 << 23
"""Values are made, read and written in pieces of at most this size."""

Read = Callable[[int, int], bytes]
"""A function that returns bytes of a resource, given their offset and number."""

_DATA_TYPES = {
    np.dtype(f"<{data_type.numpy_code}"): data_type
    for data_type in TensorDataType
    if data_type.size_bits >= 8
}


def dtype_of(data_type: TensorDataType) -> np.dtype[Any]:
    """Return the NumPy type of a data type of whole bytes (not of UNKNOWN)."""
    return np.dtype(f"<{data_type.numpy_code}")


def data_type_of(dtype: np.dtype[Any]) -> TensorDataType | None:
    """Return the data type of a NumPy type of either byte order, or None if there is none."""
    return _DATA_TYPES.get(dtype.newbyteorder("<"))


def chunks(read: Read, size: int, step: int = CHUNK_BYTES) -> Iterator[bytes]:
    """Yield the bytes of a resource in pieces."""
    for offset in range(0, size, step):
        yield read(offset, min(step, size - offset))
