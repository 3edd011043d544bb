"""Conversion of other objects to arrays whose elements can be moved, and export by DLPack."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from contextlib import contextmanager
from ctypes import POINTER, c_char_p, c_int32, c_uint8, c_void_p, cast, py_object, pythonapi
from typing import Any, NoReturn, TypeAlias

import numpy as np
import numpy.typing as npt

from vkops.arguments.values import Place, integer
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
"""A value for ``numpy.dtype``; None if no dtype is chosen."""

CPU = (1, 0)
"""DLPack's device of host memory: kDLCPU, number 0."""

CUDA = 2
"""DLPack's kDLCUDA, of memory of CUDA's devices."""

_KNOWS_DLPACK_1 = np.lib.NumpyVersion(np.__version__) >= "2.1.0"


@contextmanager
def numpy_refusals(name: str, field: str = "value", rule: str = "ARRAY-10") -> Iterator[None]:
    """Raise the errors of NumPy's conversions as those of vkops."""
    try:
        yield
    except VkopsError:  # a list holds a tensor that was released
        raise
    except MemoryError as error:
        message = f"{name} {field}: the host has no more memory available"
        raise OutOfDeviceMemoryError(message) from error
    except (*CONVERSION_ERRORS, np.ma.MaskError) as error:
        raise from_builtin(error, name, field, rule, "NumPy says: ") from error


def as_array(array: Any) -> npt.NDArray[Any]:
    """Convert to a NumPy array whose elements can be moved (T-02).

    Elements that NumPy has no type for, such as PyTorch's bfloat16, come by DLPack, and so do those
    of objects that have no other protocol, or of other devices.
    """
    try:
        elements = np.asarray(array)
    except MemoryError as error:
        raise OutOfDeviceMemoryError("array: the host has no memory for it") from error
    except CONVERSION_ERRORS as error:
        elements = _exported_elements(array, error)
    if elements.dtype.hasobject and hasattr(array, "__dlpack__"):  # it has nothing else
        return imported(array)
    check_dtype(elements.dtype)
    access(elements)
    return elements


def imported(exporter: Any, stream: int | None = None) -> npt.NDArray[Any]:
    """Import from DLPack, as an array over the same memory where NumPy can (T-02).

    Elements of types that NumPy lacks have those of ml_dtypes; those of another device are copied
    to the host by the exporter, if it can. With a stream of CUDA, they stay where they are, and are
    ready in that stream: the array has CUDA's addresses, and the host must not read it.
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
    """The elements of an exporter that NumPy does not convert otherwise: of ml_dtypes, or a GPU."""
    relabeled = Relabeled(array)
    try:
        elements = _on_host(relabeled)
    except DeviceError:
        raise
    except CONVERSION_ERRORS:
        raise _refused("array", error) from error
    return relabeled.restored(elements)


def as_dtype(name: str, dtype: Any) -> np.dtype[Any]:
    """NumPy's type, of elements that can be moved (T-02)."""
    try:
        kind: np.dtype[Any] = np.dtype(dtype)
    except CONVERSION_ERRORS as error:
        raise from_builtin(error, name, "dtype", "T-02", "NumPy says: ") from error
    check_dtype(kind)
    return kind


def check_dtype(dtype: np.dtype[Any]) -> None:
    """Refuse elements that cannot be moved as bytes (T-02)."""
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
    """The capsule of DLPack that ``Tensor.__dlpack__`` returns, of an array that may be a copy."""
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
    """The capsule of an array for consumers that know DLPack up to a version (ARRAY-11).

    Those that know 1.0 get it with ``options``.
    """
    known = {"max_version": max_version, **options} if _has_flags(max_version) else {}
    try:
        return exported(array, **known)
    except MemoryError:
        raise
    except CONVERSION_ERRORS as error:  # a dtype that DLPack does not have
        raise from_builtin(error, "__dlpack__", "dtype", "ARRAY-11") from error


def _has_flags(max_version: Any) -> bool:
    """Whether NumPy and a consumer know DLPack 1.0, which marks memory as read-only."""
    version = None if max_version is None else pair("max_version", max_version)
    return _KNOWS_DLPACK_1 and version is not None and version >= (1, 0)


def refuse_export(field: str, message: str) -> NoReturn:
    """Refuse an argument of ``__dlpack__`` (ARRAY-11)."""
    raise InvalidDescBufferError("__dlpack__", field, message, "ARRAY-11")


def pair(field: str, value: Any) -> tuple[int, int]:
    """An argument of ``__dlpack__`` that is two integers (ARRAY-11)."""
    place = Place("__dlpack__", field, "ARRAY-11")
    if not isinstance(value, tuple) or len(value) != 2:
        raise place.wrong_kind(value, "a tuple of two integers")
    first, second = value
    return integer(first, place), integer(second, place)


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
"""DLPack's type code and bits of an element, and the name in ml_dtypes."""

_DEVICE = {b"dltensor": 8, b"dltensor_versioned": 40}
"""Byte offset of the device in the structure that a capsule holds, by the capsule's name."""

_CODE = {name: offset + 12 for name, offset in _DEVICE.items()}
"""The same of the type code: between them is the number of dimensions."""

_UINT = 1
"""DLPack's kDLUInt."""

_capsule_name = pythonapi["PyCapsule_GetName"]
_capsule_name.restype, _capsule_name.argtypes = c_char_p, [py_object]
_capsule_pointer = pythonapi["PyCapsule_GetPointer"]
_capsule_pointer.restype, _capsule_pointer.argtypes = c_void_p, [py_object, c_char_p]


class Relabeled:
    """An exporter that labels elements of types that NumPy lacks as unsigned integers.

    Each capsule belongs to its consumer: changing the type in it does not affect the exporter. With
    a stream of CUDA, it labels memory of CUDA as that of the host.

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
        """NumPy's import of this exporter, with the elements' own type, of ml_dtypes (T-02)."""
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
    return _member(capsule, _CODE, c_uint8 * 4)


def label_device(capsule: Any, device: tuple[int, int]) -> None:
    """Say in a capsule that its memory is that of a device; do nothing if it is no capsule."""
    member = _member(capsule, _DEVICE, c_int32 * 2)
    if member is not None:
        member[:] = device


def _member(capsule: Any, offsets: dict[bytes, int], kind: Any) -> Any:
    """A member of the structure in a capsule; None if this is not a capsule of a tensor."""
    name = _capsule_name(capsule) if type(capsule).__name__ == "PyCapsule" else None
    if name not in offsets:
        return None
    return cast(_capsule_pointer(capsule, name) + offsets[name], POINTER(kind)).contents
