"""ONNX's element types as NumPy knows them, and as ONNX's schemas spell them."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt
from onnx import TensorProto, helper, numpy_helper

from vkops.errors import ModelError

STRING = np.dtype(object)
"""Strings; the device moves their 64-bit handles."""

HANDLE = np.dtype(np.uint64)


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
        raise ModelError(f"is not UTF-8: {error.reason}") from error
    except Exception as error:  # of many kinds, where nobody has checked the model
        raise ModelError(" ".join(str(error).split()) or type(error).__name__) from error
    return array
