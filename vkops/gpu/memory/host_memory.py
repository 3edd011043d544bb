"""The host's memory: the device memory of CPU drivers, and the staging memory of all."""

from __future__ import annotations

import sys

import numpy as np
import numpy.typing as npt
import psutil

from vkops.errors import OutOfDeviceMemoryError
from vkops.system.control_groups import available_in_groups

SPARE = 64 << 20
"""Bytes that stay available to the driver, for its threads and for the code that it compiles."""

_TAKEN_AT_ONCE = 1 << 30
_MIN_PAGE = 4096

_MIN_CHECKED = 1 << 16
"""Bytes from which it is checked that the host has them: Python's objects are not checked either,
and reading what the system reports takes a millisecond."""


def available() -> int:
    """Return the bytes that the host and the control groups still have for this process."""
    if sys.is_finalizing():  # a finalizer asks, and psutil does not work any more
        return sys.maxsize
    memory = psutil.virtual_memory()
    return int(min([memory.available, *available_in_groups(memory.total)])) - SPARE


def require(nbytes: int, reason: str = "the host has no more memory available") -> None:
    """Check that the process may allocate ``nbytes`` bytes more: drivers crash where it may not."""
    try:
        np.empty(nbytes + SPARE, np.uint8)  # address space only, given back at once
    except MemoryError as error:
        raise OutOfDeviceMemoryError(f"{nbytes} bytes: {reason}") from error


def take(nbytes: int) -> npt.NDArray[np.uint8]:
    """Take memory of the host; its content is undefined.

    Operating systems promise more memory than they have, and kill processes that use it. So each
    page is written to at once, after a check that the system still has memory.
    """
    check(nbytes)
    require(nbytes)
    memory = np.empty(nbytes, np.uint8)
    for start in range(0, nbytes, _TAKEN_AT_ONCE):
        piece = memory[start : start + _TAKEN_AT_ONCE]
        if start:  # other processes may have taken some meanwhile
            _check(piece.size, nbytes)
        touch(piece)
    return memory


def touch(memory: npt.NDArray[np.uint8]) -> None:
    """Write to each page of memory, so that the system provides it now."""
    memory[::_MIN_PAGE] = 0


def check(nbytes: int) -> None:
    """Raise an OutOfDeviceMemoryError if the system does not have so many bytes left."""
    if nbytes >= _MIN_CHECKED:
        _check(nbytes, nbytes)


def _check(more: int, nbytes: int) -> None:
    if more > available():
        raise OutOfDeviceMemoryError(
            f"{nbytes} bytes: neither the device nor the host has that much memory available"
        )
