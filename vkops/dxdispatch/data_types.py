"""NumPy's counterparts of DirectML's data types."""

from __future__ import annotations

from typing import Any

import numpy as np

from vkops.dml import TensorDataType

CHUNK_BYTES = 1 << 23
"""Values are made, read and written in pieces of at most this size."""

_DTYPES: dict[TensorDataType, np.dtype[Any]] = {
    data_type: np.dtype(data_type.name.lower()).newbyteorder("<")
    for data_type in TensorDataType
    if data_type.size_bits >= 8
}
_DATA_TYPES = {dtype: data_type for data_type, dtype in _DTYPES.items()}


def dtype_of(data_type: TensorDataType) -> np.dtype[Any]:
    """Return the NumPy type of a data type of whole bytes (not of UNKNOWN)."""
    return _DTYPES[data_type]


def data_type_of(dtype: np.dtype[Any]) -> TensorDataType | None:
    """Return the data type of a NumPy type of either byte order, or None if there is none."""
    return _DATA_TYPES.get(dtype.newbyteorder("<"))
