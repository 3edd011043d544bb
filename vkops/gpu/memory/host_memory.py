"""The host's memory: the device memory of CPU drivers, and the staging memory of all drivers."""

from __future__ import annotations

import mmap
import os
import sys
from contextlib import suppress

import numpy as np
import numpy.typing as npt
import psutil

from vkops.errors import DeviceError, OutOfDeviceMemoryError
from vkops.system.control_groups import available_in_groups

SPARE = 64 << 20
"""Bytes that stay available to the driver, for its threads and for the code that it compiles."""

_TAKEN_AT_ONCE = 1 << 30
_MIN_PAGE = 4096
_LARGE_PAGE = 2 << 20
_NO_MORE = "the host has no more memory available"

_DRIVER_FILE = "/memfd:allocation fd"
"""The name of a file of Mesa 25's CPU driver, which keeps device memory in an unnamed file."""

_MIN_CHECKED = 1 << 16
"""Bytes from which it is checked that the host has them: Python's objects are not checked either,
and reading what the system reports takes a millisecond."""


def available() -> int:
    """Return the bytes that the host and the control groups still have for this process."""
    if sys.is_finalizing():  # a finalizer asks, and psutil does not work any more
        return sys.maxsize
    try:
        memory = psutil.virtual_memory()
    except OSError as error:  # no file can be opened, for example
        why = f"{error.strerror}: {error.filename}"
        raise DeviceError(f"the memory that the host has is unknown ({why})") from error
    except MemoryError as error:  # of Python itself
        raise OutOfDeviceMemoryError(_NO_MORE) from error
    return int(min([memory.available, *available_in_groups(memory.total)])) - SPARE


def require(nbytes: int, reason: str = _NO_MORE) -> None:
    """Check that the process may allocate ``nbytes`` more bytes: drivers crash if it may not."""
    try:
        np.empty(nbytes + SPARE, np.uint8)  # address space only, given back at once
    except MemoryError as error:
        raise OutOfDeviceMemoryError(f"{nbytes} bytes: {reason}") from error


def require_in_file(nbytes: int, held: int) -> None:
    """Check that the file with a driver's memory may grow from ``held`` bytes by ``nbytes``.

    A driver does not notice that the size of files is limited (``ulimit -f``): accesses beyond the
    limit would end the process with SIGBUS.
    """
    if _has_driver_file() and _file_size(nbytes, held) > _max_file():
        raise _file_refusal(nbytes, held)


def check_in_file(memory: npt.NDArray[np.uint8], held: int) -> None:
    """Check that memory is not beyond the end of the driver's file: gaps make the file larger."""
    if not _has_driver_file():
        return
    ends = os.pipe()
    try:
        # The kernel reads the memory: write() returns an error where an access of our own would
        # end the process with SIGBUS.
        os.write(ends[1], memory[-1:].data)
    except OSError as error:
        raise _file_refusal(memory.size, held) from error
    finally:
        for end in ends:
            os.close(end)


def _has_driver_file() -> bool:
    """Whether the memory of a driver is in a file whose size is limited."""
    if _max_file() == sys.maxsize:
        return False
    try:
        numbers = os.listdir("/proc/self/fd")
    except OSError:
        return True  # unknown: assume the worse
    for number in numbers:
        with suppress(OSError):
            if os.readlink(f"/proc/self/fd/{number}").startswith(_DRIVER_FILE):
                return True
    return False


def _max_file() -> int:
    """Return the size of the largest file that this process may write."""
    if sys.platform != "linux":
        return sys.maxsize
    try:
        import resource
    except ImportError:
        return sys.maxsize
    limit = resource.getrlimit(resource.RLIMIT_FSIZE)[0]
    return sys.maxsize if limit == resource.RLIM_INFINITY else limit


def _file_size(nbytes: int, held: int) -> int:
    return _MIN_PAGE + held + nbytes  # the first page is not used


def _file_refusal(nbytes: int, held: int) -> OutOfDeviceMemoryError:
    return OutOfDeviceMemoryError(
        f"{nbytes} bytes: the driver's memory is a file, which would have "
        f"{_file_size(nbytes, held)} bytes, and a limit of this process (ulimit -f) allows "
        f"{_max_file()}"
    )


def take(nbytes: int) -> npt.NDArray[np.uint8]:
    """Take memory of the host; its content is undefined.

    Operating systems promise more memory than they have, and kill processes that use what was
    promised. Therefore this writes to each page at once, after checks that memory is available.
    """
    memory = promised(nbytes)
    for start in range(0, nbytes, _TAKEN_AT_ONCE):
        piece = memory[start : start + _TAKEN_AT_ONCE]
        if start:  # other processes may have taken memory since the last check
            _check(piece.size, nbytes)
        touch(piece)
    return memory


def promised(nbytes: int) -> npt.NDArray[np.uint8]:
    """Take memory as ``take`` does, but let the caller write to its pages, at once."""
    check_available(nbytes)
    require(nbytes)
    return np.empty(nbytes, np.uint8)


def large_pages(nbytes: int) -> npt.NDArray[np.uint8] | None:
    """Take memory of the host in large pages, and its end in small ones; None except on Linux.

    It begins with a page, and ends with one if ``nbytes`` are whole pages.
    """
    if sys.platform != "linux":
        return None
    try:
        # Systems before Linux 6.7 do not align it to large pages.
        mapped = mmap.mmap(-1, nbytes + _LARGE_PAGE, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    except OSError as error:
        raise OutOfDeviceMemoryError(f"{nbytes} bytes: {_NO_MORE}") from error
    whole = np.frombuffer(mapped, np.uint8)
    start = -whole.__array_interface__["data"][0] % _LARGE_PAGE
    # Not for a page at the end: the system would provide all of it.
    if large := nbytes // _LARGE_PAGE * _LARGE_PAGE:
        with suppress(OSError):  # a kernel without large pages
            mapped.madvise(mmap.MADV_HUGEPAGE, start, large)
    memory = whole[start : start + nbytes]
    touch(memory)
    return memory


def touch(memory: npt.NDArray[np.uint8]) -> None:
    """Write to each page of memory, so that the system provides it now."""
    memory[::_MIN_PAGE] = 0


def check_available(nbytes: int) -> None:
    """Raise an OutOfDeviceMemoryError if fewer than ``nbytes`` bytes are available."""
    if nbytes >= _MIN_CHECKED:
        _check(nbytes, nbytes)


def _check(more: int, nbytes: int) -> None:
    if more > available():
        raise OutOfDeviceMemoryError(
            f"{nbytes} bytes: neither the device nor the host has that much memory available"
        )
