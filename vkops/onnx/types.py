"""ONNX's element types as NumPy knows them, and as ONNX's schemas spell them."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
from onnx import SparseTensorProto, TensorProto, helper, numpy_helper

STRING = np.dtype(object)
"""Strings; the device moves their 64-bit handles."""

HANDLE = np.dtype(np.uint64)


def dtype_of(elem_type: int) -> np.dtype[Any]:
    """The NumPy type of a ``TensorProto.DataType``."""
    dtype: np.dtype[Any] = helper.tensor_dtype_to_np_dtype(elem_type)
    return np.dtype(dtype)


@lru_cache(maxsize=256)
def elem_type_of(dtype: np.dtype[Any]) -> int:
    """The ``TensorProto.DataType`` of a NumPy type; UNDEFINED where there is none."""
    if dtype == STRING or dtype.kind in "US":
        return int(TensorProto.STRING)
    try:
        return int(helper.np_dtype_to_tensor_dtype(dtype.newbyteorder("=")))
    except (ValueError, TypeError):
        return int(TensorProto.UNDEFINED)


@lru_cache(maxsize=256)
def type_text(dtype: np.dtype[Any]) -> str:
    """A tensor type as schemas spell it.

    >>> type_text(np.dtype(np.float32))
    'tensor(float)'
    """
    elem_type = elem_type_of(dtype)
    if elem_type == TensorProto.UNDEFINED:
        return f"tensor({dtype})"
    return f"tensor({TensorProto.DataType.Name(elem_type).lower()})"


def moved_dtype(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """What the device moves for elements of a type."""
    return HANDLE if dtype == STRING else dtype


def dense(sparse: SparseTensorProto) -> np.ndarray[Any, Any]:
    """A sparse tensor, whose indices count elements or name them axis by axis."""
    values = numpy_helper.to_array(sparse.values)
    indices = numpy_helper.to_array(sparse.indices)
    dense = np.zeros(tuple(sparse.dims), values.dtype)
    if indices.ndim == 1:
        dense.reshape(-1)[indices] = values
    else:
        dense[tuple(indices.T)] = values
    return dense
