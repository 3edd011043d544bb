"""The array API's functions of data types."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from vkops.arguments.values import refuse
from vkops.errors import CONVERSION_ERRORS, from_builtin, import_late, show
from vkops.tensors.exchange import as_dtype
from vkops.tensors.namespace_info import KINDS
from vkops.tensors.tensor import Tensor


class FloatLimits(NamedTuple):
    """The result of ``finfo``: numbers of Python, and the data type."""

    bits: int
    eps: float
    max: float
    min: float
    smallest_normal: float
    dtype: np.dtype[Any]


class IntegerLimits(NamedTuple):
    """The result of ``iinfo``: numbers of Python, and the data type."""

    bits: int
    max: int
    min: int
    dtype: np.dtype[Any]


def finfo(type: Any, /) -> FloatLimits:  # the array API's name
    """Return the limits of a data type of floats, or of that of an array.

    Raises:
        InvalidDescError: it is none (T-02).

    >>> import vkops
    >>> vkops.finfo(vkops.float32).eps
    1.1920928955078125e-07
    """
    dtype = _dtype_of("FINFO", type)
    try:
        limits: Any = np.finfo(dtype)
    except ValueError as error:
        if "float" not in dtype.name:
            raise from_builtin(error, "FINFO", "type", "T-02", "NumPy says: ") from error
        limits = import_late("ml_dtypes").finfo(dtype)
    eps, largest, least = float(limits.eps), float(limits.max), float(limits.min)
    return FloatLimits(
        limits.bits, eps, largest, least, float(limits.smallest_normal), limits.dtype
    )


def iinfo(type: Any, /) -> IntegerLimits:  # the array API's name
    """Return the limits of a data type of integers, or of that of an array.

    Raises:
        InvalidDescError: it is none (T-02).

    >>> import vkops
    >>> vkops.iinfo(vkops.int8).max
    127
    """
    dtype = _dtype_of("IINFO", type)
    try:
        limits = np.iinfo(dtype)
    except ValueError as error:
        raise from_builtin(error, "IINFO", "type", "T-02", "NumPy says: ") from error
    return IntegerLimits(limits.bits, int(limits.max), int(limits.min), dtype)


def can_cast(from_: Any, to: Any, /) -> bool:
    """Return whether a data type, or that of an array, is converted to another without loss.

    Raises:
        InvalidDescError: it is no data type (T-02).

    >>> import vkops
    >>> vkops.can_cast(vkops.int8, vkops.int16), vkops.can_cast(vkops.asarray(1.5), vkops.int64)
    (True, False)
    """
    return bool(np.can_cast(_dtype_of("CAN_CAST", from_), _dtype_of("CAN_CAST", to)))


def isdtype(dtype: Any, kind: Any) -> bool:
    """Return whether a data type is another one, of a kind of the array API, or one of several.

    Raises:
        InvalidDescError: it is no data type (T-02), or an unknown kind (ARRAY-19).

    >>> import vkops
    >>> vkops.isdtype(vkops.float32, "real floating"), vkops.isdtype(vkops.int8, "bool")
    (True, False)
    """
    given = as_dtype("ISDTYPE", dtype)
    return any(
        given.name in KINDS[each] if isinstance(each, str) and each in KINDS else _is(given, each)
        for each in (kind if isinstance(kind, tuple) else (kind,))
    )


def _is(dtype: np.dtype[Any], kind: Any) -> bool:
    if isinstance(kind, str):
        kinds = ", ".join(map(repr, KINDS))
        refuse("ISDTYPE", "kind", f"got {show(kind)}, must be one of {kinds}", "ARRAY-19")
    return dtype == as_dtype("ISDTYPE", kind)


def result_type(*arrays_and_dtypes: Any) -> np.dtype[Any]:
    """Return the data type of a result of arrays, data types and numbers of Python, as NumPy does.

    Raises:
        InvalidDescError: there is none, or no argument (T-02).

    >>> import vkops
    >>> vkops.result_type(vkops.int8, vkops.asarray([1], vkops.uint8), 5)
    dtype('int16')
    """
    values = [each.dtype if isinstance(each, Tensor) else each for each in arrays_and_dtypes]
    try:
        return np.dtype(np.result_type(*values))
    except CONVERSION_ERRORS as error:
        raise from_builtin(error, "RESULT_TYPE", "arguments", "T-02", "NumPy says: ") from error


def _dtype_of(name: str, value: Any) -> np.dtype[Any]:
    return as_dtype(name, getattr(value, "dtype", value) if not isinstance(value, type) else value)
