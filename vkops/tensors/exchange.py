"""Conversion of other objects to arrays whose elements can be moved, and export by DLPack."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from contextlib import contextmanager
from ctypes import POINTER, c_char_p, c_int32, c_uint8, c_void_p, cast, py_object, pythonapi
from typing import Any, NoReturn, TypeAlias

import numpy as np
import numpy.typing as npt

from vkops.arguments.values import ArgumentName, integer
from vkops.errors import (
    CONVERSION_ERRORS,
    DeviceError,
    InvalidDescBufferError,
    InvalidDescTypeError,
    OutOfDeviceMemoryError,
    VkopsError,
    from_builtin,
    show,
)
from vkops.gpu.memory.pinned import access
from vkops.plan.validation import ELEMENT_SIZES
from vkops.tensors.shape_arguments import may_copy

DTypeLike: TypeAlias = npt.DTypeLike | None
"""A value for ``numpy.dtype``, or None if no dtype is chosen."""

CPU = (1, 0)
"""DLPack's device of host memory: kDLCPU, number 0."""

CUDA = 2
"""DLPack's kDLCUDA: memory of CUDA's devices."""

_KNOWS_DLPACK_1 = np.lib.NumpyVersion(np.__version__) >= "2.1.0"


@contextmanager
def numpy_refusals(name: str, field: str = "value", rule: str = "ARRAY-10") -> Iterator[None]:
    """Convert the errors of NumPy's conversions to those of vkops."""
    try:
        yield
    except VkopsError:  # for example, a list contains a tensor that was released
        raise
    except MemoryError as error:
        message = f"{name} {field}: the host has no more memory available"
        raise OutOfDeviceMemoryError(message) from error
    except (*CONVERSION_ERRORS, np.ma.MaskError) as error:
        raise from_builtin(error, name, field, rule, "NumPy says: ") from error


def as_array(array: Any) -> npt.NDArray[Any]:
    """Convert to a NumPy array whose elements can be moved (T-02).

    DLPack is used for element types that NumPy does not have, such as PyTorch's bfloat16, for
    objects without another protocol, and for objects on other devices.
    """
    try:
        elements = np.asarray(array)
    except MemoryError as error:
        raise OutOfDeviceMemoryError("array: the host has no memory for it") from error
    except CONVERSION_ERRORS as error:
        elements = _exported_elements(array, error)
    if elements.dtype.hasobject and hasattr(array, "__dlpack__"):  # DLPack is its only protocol
        return imported(array)
    check_dtype(elements.dtype)
    access(elements)
    return elements


def imported(exporter: Any, stream: int | None = None) -> npt.NDArray[Any]:
    """Import from DLPack, as an array over the same memory where NumPy can (T-02).

    Element types that NumPy does not have become those of ml_dtypes. An exporter on another device
    is asked to copy its elements to the host. With ``stream``, a stream of CUDA, the elements stay
    on the GPU, and are ready in that stream: the array has CUDA's addresses, and the host must not
    read it.
    """
    relabeled = Relabeled(exporter, stream)
    try:
        elements = _on_host(relabeled)
    except DeviceError:
        raise
    except MemoryError as error:
        raise OutOfDeviceMemoryError("x: the host has no memory for it") from error
    except CONVERSION_ERRORS as error:
        raise _refused("x", error) from error
    elements = relabeled.restored(elements)
    check_dtype(elements.dtype)
    return elements


def _on_host(relabeled: Relabeled) -> npt.NDArray[Any]:
    # Exporters of other devices may copy to the host if they are asked to.
    is_elsewhere = _KNOWS_DLPACK_1 and relabeled.__dlpack_device__()[0] != CPU[0]
    options: Any = {"device": "cpu"} if is_elsewhere else {}
    return np.from_dlpack(relabeled, **options)


def _exported_elements(array: Any, error: Exception) -> npt.NDArray[Any]:
    """Return elements that NumPy cannot convert: those of a type of ml_dtypes, or of a GPU."""
    relabeled = Relabeled(array)
    try:
        elements = _on_host(relabeled)
    except DeviceError:
        raise
    except CONVERSION_ERRORS:
        raise _refused("array", error) from error
    return relabeled.restored(elements)


def as_dtype(name: str, dtype: Any) -> np.dtype[Any]:
    """Return the NumPy type; its elements can be moved (T-02)."""
    try:
        kind: np.dtype[Any] = np.dtype(dtype)
    except CONVERSION_ERRORS as error:
        raise from_builtin(error, name, "dtype", "T-02", "NumPy says: ") from error
    check_dtype(kind)
    return kind


def check_dtype(dtype: np.dtype[Any]) -> None:
    """Raise an error for elements that cannot be moved as bytes (T-02)."""
    if dtype.hasobject or dtype.subdtype or dtype.itemsize not in ELEMENT_SIZES:
        message = f"got {dtype} ({dtype.itemsize} bytes), must be elements of 1, 2, 4, 8 or 16 "
        message += "bytes that hold no Python objects and have no shape"
        raise InvalidDescTypeError("", "dtype", message, "T-02")


def _refused(field: str, error: Exception) -> InvalidDescTypeError:
    reason = " ".join(str(error).split())
    return InvalidDescTypeError("", field, f"NumPy says: {reason}", "T-02")


# -- export ----------------------------------------------------------------------------------------


def export(
    array: npt.NDArray[Any], copied: bool, stream: Any, max_version: Any, dl_device: Any, copy: Any
) -> Any:
    """Return the DLPack capsule of an array for ``Tensor.__dlpack__``.

    ``copied`` says whether the array is already a copy of the elements.
    """
    if stream is not None:
        refuse_export("stream", f"got {show(stream)}, must be None: it is the host's memory")
    if dl_device is not None and dl_device != CPU:
        refuse_export("dl_device", f"got {show(dl_device)}, must be {CPU}, the CPU")
    copy = may_copy("__dlpack__", copy)
    has_flags = _has_flags(max_version)
    if copy is False:
        negative = min(array.strides, default=0) < 0
        if copied or negative or not has_flags:
            reason = "the memory cannot be shown without a copy"
            if not has_flags:
                reason = "DLPack before 1.0 cannot mark memory as read-only"
            refuse_export("copy", f"got False, must be True or None: {reason}")
    try:
        return capsule_of(array if has_flags else array.copy(), max_version, copy=copy is not False)
    except MemoryError as error:
        raise OutOfDeviceMemoryError("__dlpack__: the host has no memory for a copy") from error


def capsule_of(array: npt.NDArray[Any], max_version: Any, **options: Any) -> Any:
    """Return a capsule of an array, for a consumer of a version of DLPack (ARRAY-11).

    Consumers of DLPack 1.0 or later get it with ``options``.
    """
    known = {"max_version": max_version, **options} if _has_flags(max_version) else {}
    try:
        return exported(array, **known)
    except MemoryError:
        raise
    except CONVERSION_ERRORS as error:  # a dtype that DLPack does not have
        raise from_builtin(error, "__dlpack__", "dtype", "ARRAY-11") from error


def _has_flags(max_version: Any) -> bool:
    """Whether NumPy and the consumer support DLPack 1.0, which marks memory as read-only."""
    version = None if max_version is None else pair("max_version", max_version)
    return _KNOWS_DLPACK_1 and version is not None and version >= (1, 0)


def refuse_export(field: str, message: str) -> NoReturn:
    """Raise an error for an argument of ``__dlpack__`` (ARRAY-11)."""
    raise InvalidDescBufferError("__dlpack__", field, message, "ARRAY-11")


def pair(field: str, value: Any) -> tuple[int, int]:
    """Return an argument of ``__dlpack__`` that is two integers (ARRAY-11)."""
    argument = ArgumentName("__dlpack__", field, "ARRAY-11")
    if not isinstance(value, tuple) or len(value) != 2:
        raise argument.wrong_kind(value, "a tuple of two integers")
    first, second = value
    return integer(first, argument), integer(second, argument)


# -- types that NumPy lacks -----------------------------------------------------------------------

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
"""Names in ml_dtypes, by DLPack's type code and number of bits."""

_DEVICE = {b"dltensor": 8, b"dltensor_versioned": 40}
"""The byte offset of the device in a capsule's structure, by the capsule's name."""

_CODE = {name: offset + 12 for name, offset in _DEVICE.items()}
"""The byte offset of the type code; the number of dimensions is between the device and it."""

_UINT = 1
"""DLPack's kDLUInt."""

_capsule_name = pythonapi["PyCapsule_GetName"]
_capsule_name.restype, _capsule_name.argtypes = c_char_p, [py_object]
_capsule_pointer = pythonapi["PyCapsule_GetPointer"]
_capsule_pointer.restype, _capsule_pointer.argtypes = c_void_p, [py_object, c_char_p]


class Relabeled:
    """An exporter that labels elements of types that NumPy lacks as unsigned integers.

    Each capsule belongs to its consumer, so changing the type in a capsule does not affect the
    exporter. With a stream of CUDA, it labels memory of CUDA as host memory.

    Attributes:
        name: the type's name in ml_dtypes, once exported; "" if it needed no label.
    """

    def __init__(self, exporter: Any, stream: int | None = None) -> None:
        self.name: str = ""
        self._exporter = exporter
        self._stream = stream

    def __dlpack__(self, **options: Any) -> Any:
        if self._stream is None:
            capsule = self._exporter.__dlpack__(**options)
        else:
            capsule = self._exporter.__dlpack__(stream=self._stream, **options)
            label_device(capsule, CPU)
        kind = element_type(capsule)
        if kind is not None and (kind[2], kind[3]) == (1, 0):  # one lane
            self.name = EXTENSION_TYPES.get((kind[0], kind[1]), "")
            if self.name:
                kind[0] = _UINT
        return capsule

    def __dlpack_device__(self) -> Any:
        return self._exporter.__dlpack_device__() if self._stream is None else CPU

    def restored(self, array: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Return NumPy's import of this exporter with the element type of ml_dtypes (T-02)."""
        if not self.name:
            return array
        try:
            dtype = getattr(importlib.import_module("ml_dtypes"), self.name)
        except (ImportError, AttributeError) as error:
            message = f"holds {self.name}, which needs the package ml_dtypes"
            raise InvalidDescTypeError("", "x", message, "T-02") from error
        return array.view(dtype)


def exported(array: npt.NDArray[Any], **options: Any) -> Any:
    """Return a capsule of an array, with the DLPack type that has the name of the array's dtype."""
    codes = [code for code, name in EXTENSION_TYPES.items() if name == array.dtype.name]
    if not codes:
        return array.__dlpack__(**options)
    ((code, bits),) = codes
    capsule = array.view(f"u{bits // 8}").__dlpack__(**options)
    element_type(capsule)[0] = code
    return capsule


def element_type(capsule: Any) -> Any:
    """Return the bytes of an element's type (code, bits, lanes), which can be changed.

    Return None if this is not a capsule of a tensor.
    """
    return _member(capsule, _CODE, c_uint8 * 4)


def label_device(capsule: Any, device: tuple[int, int]) -> None:
    """Write a device into a capsule; do nothing if this is not a capsule of a tensor."""
    member = _member(capsule, _DEVICE, c_int32 * 2)
    if member is not None:
        member[:] = device


def _member(capsule: Any, offsets: dict[bytes, int], kind: Any) -> Any:
    """Return a member of the structure in a capsule; None if this is not a capsule of a tensor."""
    name = _capsule_name(capsule) if type(capsule).__name__ == "PyCapsule" else None
    if name not in offsets:
        return None
    return cast(_capsule_pointer(capsule, name) + offsets[name], POINTER(kind)).contents
