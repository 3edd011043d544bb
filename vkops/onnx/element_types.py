"""ONNX's element types, and the NumPy types that stand for them."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
from onnx import TensorProto, helper

from vkops.errors import ModelError

STRING = np.dtype(object)
"""The type of arrays of strings. The device moves 64-bit handles that stand for the strings."""

HANDLE = np.dtype(np.uint64)

_KIND_TEXTS = {"tensor": "{}", "sequence": "seq({})", "optional": "optional({})"}


def dtype_of(elem_type: int) -> np.dtype[Any]:
    """Return the NumPy type of a ``TensorProto.DataType``."""
    try:
        dtype: np.dtype[Any] = helper.tensor_dtype_to_np_dtype(elem_type)
    except KeyError as error:
        raise ModelError(f"got element type {elem_type}, which ONNX does not have") from error
    return np.dtype(dtype)


@lru_cache(maxsize=256)
def elem_type_of(dtype: np.dtype[Any]) -> int:
    """Return the ``TensorProto.DataType`` of a NumPy type; UNDEFINED if there is none."""
    if dtype == STRING or dtype.kind in "US":
        return int(TensorProto.STRING)
    try:
        return int(helper.np_dtype_to_tensor_dtype(dtype.newbyteorder("=")))
    except (ValueError, TypeError):
        return int(TensorProto.UNDEFINED)


@lru_cache(maxsize=256)
def type_text(dtype: np.dtype[Any], kind: str = "tensor") -> str:
    """Return a type as ONNX's schemas write it."""
    elem_type = elem_type_of(dtype)
    is_known = elem_type != TensorProto.UNDEFINED
    name = TensorProto.DataType.Name(elem_type).lower() if is_known else dtype
    return _KIND_TEXTS[kind].format(f"tensor({name})")


def moved_dtype(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """Return the type of the elements that the device moves: handles for strings."""
    return HANDLE if dtype == STRING else dtype
