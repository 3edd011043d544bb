"""What tensors are to NumPy, to DLPack's consumers and to Python's numbers."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import numpy as np
import numpy.typing as npt

from vkops.errors import InvalidDescTypeError

ELEMENT_SIZES = (1, 2, 4, 8, 16)
"""Bytes of the elements that can be moved."""

CPU = (1, 0)
"""DLPack's kDLCPU, its first."""

_EXPORTS_READ_ONLY = np.lib.NumpyVersion(np.__version__) >= "2.1.0"


class Exchange:
    """Protocols that need no more than the elements as a read-only array."""

    __slots__ = ()

    dtype: np.dtype[Any]
    size: int

    @abstractmethod
    def numpy(self) -> npt.NDArray[Any]:
        """The elements as a read-only array."""

    def __array__(
        self, dtype: npt.DTypeLike | None = None, copy: bool | None = None
    ) -> npt.NDArray[Any]:
        array = self.numpy()
        if dtype is not None and np.dtype(dtype) != self.dtype:
            if copy is False:
                raise ValueError(f"a {self.dtype} tensor as {np.dtype(dtype)} needs a copy")
            return array.astype(dtype)
        return array.copy() if copy else array

    # -- DLPack -----------------------------------------------------------------------------------

    def __dlpack__(
        self,
        *,
        stream: None = None,
        max_version: tuple[int, int] | None = None,
        dl_device: tuple[int, int] | None = None,
        copy: bool | None = None,
    ) -> Any:
        """A capsule for consumers: the memory itself where the host sees it, marked read-only.

        A consumer that knows no version of DLPack since 1.0 gets a copy: the mark is unknown to it.

        Raises:
            BufferError: another device, no copy where one is needed, or a dtype unknown to DLPack.
        """
        if stream is not None:
            raise BufferError(f"got stream {stream!r}, must be None: the memory is the host's")
        if dl_device is not None and tuple(dl_device) != CPU:
            raise BufferError(f"got dl_device {dl_device!r}, must be {CPU}, the CPU")
        array = self.numpy()
        marks = _EXPORTS_READ_ONLY and max_version is not None and tuple(max_version) >= (1, 0)
        if marks:
            return array.__dlpack__(max_version=max_version, copy=copy)
        if copy is False:
            raise BufferError("read-only memory needs a copy: DLPack before 1.0 cannot mark it")
        return array.copy().__dlpack__()

    def __dlpack_device__(self) -> tuple[int, int]:
        return CPU

    # -- numbers ----------------------------------------------------------------------------------

    def _number(self) -> Any:
        """The only element.

        Raises:
            InvalidDescTypeError: there are others, or none (ARRAY-07).
        """
        if self.size != 1:
            message = f"has {self.size} elements, must have 1 to be a number"
            raise InvalidDescTypeError("", "tensor", message, "ARRAY-07")
        return self.numpy().reshape(-1)[0]

    def __bool__(self) -> bool:
        return bool(self._number())

    def __int__(self) -> int:
        return int(self._number())

    def __float__(self) -> float:
        return float(self._number())

    def __complex__(self) -> complex:
        return complex(self._number())

    def __index__(self) -> int:
        index: int = self._number().__index__() if self.dtype.kind in "iu" else self._no_index()
        return index

    def _no_index(self) -> int:
        raise TypeError(f"a tensor of {self.dtype} is no index")


def as_array(array: Any) -> npt.NDArray[Any]:
    """Anything that NumPy makes an array of, as one whose elements can be moved (T-02)."""
    try:
        made = np.asarray(array)
    except MemoryError:
        raise
    except Exception as error:  # whatever the object's own methods raise
        raise _refused("array", error) from error
    check_dtype(made.dtype)
    return made


def imported(exporter: Any) -> npt.NDArray[Any]:
    """What an exporter of DLPack holds, as an array over the same memory where NumPy can (T-02)."""
    try:
        made = np.from_dlpack(exporter)
    except MemoryError:
        raise
    except Exception as error:
        raise _refused("x", error) from error
    check_dtype(made.dtype)
    return made


def check_dtype(dtype: np.dtype[Any]) -> None:
    """Refuse elements that cannot be moved as bytes (T-02)."""
    if dtype.hasobject or dtype.itemsize not in ELEMENT_SIZES:
        raise InvalidDescTypeError(
            "",
            "dtype",
            f"got {dtype} ({dtype.itemsize} bytes), must be elements of 1, 2, 4, 8 or 16 bytes "
            "that hold no Python objects",
            "T-02",
        )


def _refused(field: str, error: Exception) -> InvalidDescTypeError:
    reason = " ".join(str(error).split())
    return InvalidDescTypeError("", field, f"NumPy says: {reason}", "T-02")
