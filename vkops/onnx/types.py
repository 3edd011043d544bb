"""ONNX's element types as NumPy knows them, and as ONNX's schemas spell them."""

from __future__ import annotations

from functools import lru_cache
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt
from onnx import SparseTensorProto, TensorProto, helper, numpy_helper

from vkops.errors import ModelError

STRING = np.dtype(object)
"""Strings; the device moves their 64-bit handles."""

HANDLE = np.dtype(np.uint64)

MAX_DENSE_BYTES = 2 << 30
"""Of a sparse tensor that is written out: what a model holds of others at most."""


def dtype_of(elem_type: int) -> np.dtype[Any]:
    """The NumPy type of a ``TensorProto.DataType``.

    Raises:
        ModelError: ONNX has no such type.
    """
    try:
        dtype: np.dtype[Any] = helper.tensor_dtype_to_np_dtype(elem_type)
    except KeyError as error:
        raise ModelError(f"got element type {elem_type}, which ONNX does not have") from error
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


def array_of(tensor: TensorProto) -> npt.NDArray[Any]:
    """The elements of a tensor.

    Raises:
        ModelError: it does not hold what it says.
    """
    try:
        array: npt.NDArray[Any] = numpy_helper.to_array(tensor)
    except UnicodeDecodeError as error:
        raise ModelError(f"is no UTF-8: {error.reason}") from error
    except Exception as error:  # of many kinds, where nobody has checked the model
        raise ModelError(" ".join(str(error).split()) or type(error).__name__) from error
    return array


def dense(sparse: SparseTensorProto) -> npt.NDArray[Any]:
    """A sparse tensor, whose indices count elements or name them axis by axis.

    Raises:
        ModelError: it does not hold what it says, or it is too large.
    """
    values, indices = array_of(sparse.values), array_of(sparse.indices)
    shape = tuple(sparse.dims)
    if min(shape, default=0) < 0 or prod(shape) * values.itemsize > MAX_DENSE_BYTES:
        raise ModelError(f"got dims {shape}, must have {MAX_DENSE_BYTES} bytes at most")
    if indices.shape not in ((values.size,), (values.size, len(shape))):
        raise ModelError(
            f"got indices of shape {indices.shape}, must be ({values.size},) or "
            f"({values.size}, {len(shape)})"
        )
    dense = np.zeros(shape, values.dtype)
    try:
        if indices.ndim == 1:
            dense.reshape(-1)[indices] = values
        else:
            dense[tuple(indices.T)] = values
    except (IndexError, TypeError, ValueError) as error:
        raise ModelError(f"its values and indices do not fit: {error}") from error
    return dense
