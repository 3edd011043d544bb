"""The NumPy side of DirectML's data types."""

from __future__ import annotations

from typing import Any

import numpy as np

from vkops.dml import TensorDataType

CHUNK_BYTES = 1 << 23  # what is made, read or printed at a time

_DTYPES: dict[TensorDataType, np.dtype[Any]] = {
    TensorDataType.FLOAT64: np.dtype("<f8"),
    TensorDataType.FLOAT32: np.dtype("<f4"),
    TensorDataType.FLOAT16: np.dtype("<f2"),
    TensorDataType.INT64: np.dtype("<i8"),
    TensorDataType.INT32: np.dtype("<i4"),
    TensorDataType.INT16: np.dtype("<i2"),
    TensorDataType.INT8: np.dtype("i1"),
    TensorDataType.UINT64: np.dtype("<u8"),
    TensorDataType.UINT32: np.dtype("<u4"),
    TensorDataType.UINT16: np.dtype("<u2"),
    TensorDataType.UINT8: np.dtype("u1"),
}
_DATA_TYPES = {dtype: data_type for data_type, dtype in _DTYPES.items()}


def dtype_of(data_type: TensorDataType) -> np.dtype[Any]:
    """Return the NumPy type of a data type of whole bytes (not of UNKNOWN)."""
    return _DTYPES[data_type]


def data_type_of(dtype: np.dtype[Any]) -> TensorDataType | None:
    """Return the data type of a NumPy type of either byte order, or None if there is none."""
    return _DATA_TYPES.get(dtype.newbyteorder("<"))


def is_floating(dtype: np.dtype[Any]) -> bool:
    """Say whether values of this type are floating-point numbers."""
    return dtype.kind == "f"
