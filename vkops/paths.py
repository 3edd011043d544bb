"""Paths that strangers choose: kept inside a folder, and opened without waiting."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path
from typing import BinaryIO


def below(folder: Path, name: str | os.PathLike[str]) -> Path | None:
    """``folder / name`` with symbolic links resolved; None where that is outside of the folder.

    Raises:
        ValueError: the name is none that a file can have.

    >>> below(Path("models"), "data/../x.bin")
    PosixPath('models/x.bin')
    >>> below(Path("models"), "../x.bin")
    """
    root = os.path.realpath(folder)
    real = os.path.realpath(os.path.join(root, name))
    if os.path.commonpath((root, real)) != root:
        return None
    return folder / os.path.relpath(real, root)


def open_regular(path: str | os.PathLike[str], *, follow: bool = True) -> BinaryIO:
    """Open a regular file for reading, at once: a pipe nobody writes to is refused, not awaited.

    ``follow=False`` refuses a symbolic link, too: for what ``below`` has resolved.

    Raises:
        OSError: it cannot be read, or is something else.
        ValueError: the name is none that a file can have.
    """
    flags = os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | (0 if follow else os.O_NOFOLLOW)
    stream = open(os.open(path, flags), "rb")  # noqa: SIM115  # whoever asked closes it
    mode = os.fstat(stream.fileno()).st_mode
    if not stat.S_ISREG(mode):
        stream.close()
        if stat.S_ISDIR(mode):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), os.fspath(path))
        raise OSError(errno.EINVAL, "not a regular file", os.fspath(path))
    return stream


def read_regular(path: str | os.PathLike[str], most: int, *, follow: bool = True) -> bytes:
    """All of a regular file of at most so many bytes; more are not read.

    Raises:
        OSError: as ``open_regular``, or it is longer.
        ValueError: the name is none that a file can have.
    """
    with open_regular(path, follow=follow) as stream:
        if os.fstat(stream.fileno()).st_size <= most:
            data = stream.read(most + 1)  # /proc has files that say they are empty
            if len(data) <= most:
                return data
    raise OSError(errno.EFBIG, f"longer than {most} bytes", os.fspath(path))
