"""Elements that NumPy lacks a type for, exchanged by DLPack with the types of ml_dtypes."""

from __future__ import annotations

import importlib
from ctypes import POINTER, c_char_p, c_uint8, c_void_p, cast, py_object, pythonapi
from typing import Any

import numpy.typing as npt

from vkops.errors import InvalidDescTypeError

EXTENSION_TYPES = {
    (4, 16): "bfloat16",
    (7, 8): "float8_e3m4",
    (8, 8): "float8_e4m3",
    (9, 8): "float8_e4m3b11fnuz",
    (10, 8): "float8_e4m3fn",
    (11, 8): "float8_e4m3fnuz",
    (12, 8): "float8_e5m2",
    (13, 8): "float8_e5m2fnuz",
    (14, 8): "float8_e8m0fnu",
}
"""DLPack's type code and bits of an element, and the name in ml_dtypes."""

_CODE = {b"dltensor": 20, b"dltensor_versioned": 52}
"""Byte offset of the type code in the structure that a capsule holds, by the capsule's name."""

_UINT = 1
"""DLPack's kDLUInt."""

_name = pythonapi["PyCapsule_GetName"]
_name.restype, _name.argtypes = c_char_p, [py_object]
_pointer = pythonapi["PyCapsule_GetPointer"]
_pointer.restype, _pointer.argtypes = c_void_p, [py_object, c_char_p]


class Relabeled:
    """An exporter that labels elements of types that NumPy lacks as unsigned integers.

    Each capsule belongs to its consumer: changing the type in it does not affect the exporter.

    Attributes:
        name: the type's name in ml_dtypes, once exported; "" if it needed no label.
    """

    def __init__(self, exporter: Any) -> None:
        self.name: str = ""
        self._exporter = exporter

    def __dlpack__(self, **options: Any) -> Any:
        capsule = self._exporter.__dlpack__(**options)
        found = element_type(capsule)
        if found is not None and (found[2], found[3]) == (1, 0):  # one lane
            self.name = EXTENSION_TYPES.get((found[0], found[1]), "")
            if self.name:
                found[0] = _UINT
        return capsule

    def __dlpack_device__(self) -> Any:
        return self._exporter.__dlpack_device__()

    def restored(self, array: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """NumPy's import of this exporter, with the elements' own type.

        Raises:
            InvalidDescTypeError: that needs ml_dtypes, which is not installed (T-02).
        """
        if not self.name:
            return array
        try:
            dtype = getattr(importlib.import_module("ml_dtypes"), self.name)
        except (ImportError, AttributeError) as error:
            message = f"holds {self.name}, which needs the package ml_dtypes"
            raise InvalidDescTypeError("", "x", message, "T-02") from error
        return array.view(dtype)


def exported(array: npt.NDArray[Any], **options: Any) -> Any:
    """A capsule of an array, whose elements have the type of DLPack that has their name."""
    codes = [code for code, name in EXTENSION_TYPES.items() if name == array.dtype.name]
    if not codes:
        return array.__dlpack__(**options)
    ((code, bits),) = codes
    capsule = array.view(f"u{bits // 8}").__dlpack__(**options)
    element_type(capsule)[0] = code
    return capsule


def element_type(capsule: Any) -> Any:
    """The bytes of an element's type (code, bits, lanes), which can be changed.

    None if this is not a capsule of a tensor.
    """
    name = _name(capsule) if type(capsule).__name__ == "PyCapsule" else None
    if name not in _CODE:
        return None
    return cast(_pointer(capsule, name) + _CODE[name], POINTER(c_uint8 * 4)).contents
