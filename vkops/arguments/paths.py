"""Safe access to untrusted paths: confined to a folder, and opened without waiting.

``scripts/kp_wheel.py`` runs this module by itself, so it needs nothing but the standard library.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

_CHUNK = 1 << 20


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


def open_regular(
    path: str | os.PathLike[str],
    *,
    follow: bool = True,
    own: bool = False,
    dir_fd: int | None = None,
) -> BinaryIO:
    """Open a regular file for reading without waiting: pipes and devices are refused.

    ``follow=False`` refuses a symbolic link, too: for what ``below`` has resolved. ``own`` refuses
    a file of another user. ``path`` is relative to the folder that ``dir_fd`` is open on.

    Raises:
        OSError: it cannot be read, or is something else.
        ValueError: the name is none that a file can have.
    """
    flags = os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | (0 if follow else os.O_NOFOLLOW)
    stream = open(os.open(path, flags, dir_fd=dir_fd), "rb")  # noqa: SIM115  # the caller closes it
    found = os.fstat(stream.fileno())
    if stat.S_ISREG(found.st_mode) and not (own and found.st_uid != os.geteuid()):
        return stream
    stream.close()
    if stat.S_ISDIR(found.st_mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), os.fspath(path))
    if stat.S_ISREG(found.st_mode):
        raise PermissionError(errno.EPERM, "belongs to another user", os.fspath(path))
    raise OSError(errno.EINVAL, "not a regular file", os.fspath(path))


def read_regular(
    path: str | os.PathLike[str],
    max_bytes: int,
    *,
    follow: bool = True,
    own: bool = False,
    dir_fd: int | None = None,
) -> bytes:
    """Read a regular file of at most ``max_bytes`` bytes; more are not read.

    The other arguments are those of ``open_regular``.

    Raises:
        OSError: as ``open_regular``, or it is longer.
        ValueError: the name is none that a file can have.
    """
    with open_regular(path, follow=follow, own=own, dir_fd=dir_fd) as stream:
        size = os.fstat(stream.fileno()).st_size
        if size <= max_bytes:
            data = stream.read(size)
            # Files in /proc report a size of 0. A read allocates all the bytes that it asks for.
            while len(data) <= max_bytes and (more := stream.read(_CHUNK)):
                data += more
            if len(data) <= max_bytes:
                return data
    raise OSError(errno.EFBIG, f"longer than {max_bytes} bytes", os.fspath(path))


@contextmanager
def private_folder(path: str | os.PathLike[str], *, create: bool = False) -> Iterator[int]:
    """Open a folder that only this user can change; yields its descriptor, for ``dir_fd``.

    ``create`` makes it where it is missing, and the folders above it, with mode 0700.

    Raises:
        OSError: it is missing, not a folder (nor may it be a symbolic link), belongs to another
            user, or others may write to it.
    """
    if create:
        _make_private(os.path.abspath(path))
    flags = os.O_RDONLY | os.O_CLOEXEC | os.O_DIRECTORY | os.O_NOFOLLOW
    folder = os.open(path, flags)
    try:
        found = os.fstat(folder)
        if found.st_uid != os.geteuid():
            raise PermissionError(errno.EPERM, "it belongs to another user", os.fspath(path))
        if found.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
            raise PermissionError(errno.EPERM, "other users may write to it", os.fspath(path))
        yield folder
    finally:
        os.close(folder)


def _make_private(path: str) -> None:
    try:
        with suppress(FileExistsError):
            os.mkdir(path, 0o700)
    except FileNotFoundError:
        _make_private(os.path.dirname(path))
        with suppress(FileExistsError):
            os.mkdir(path, 0o700)


def write_private(folder: int, name: str, data: bytes) -> None:
    """Write a file of mode 0600 into a ``private_folder``, completely or not at all.

    Raises:
        OSError: it cannot be written; an existing file is then as before.
    """
    part = f".{os.urandom(16).hex()}.part"
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    with open(os.open(part, flags, 0o600, dir_fd=folder), "wb") as stream:
        try:
            stream.write(data)
            stream.flush()
            os.replace(part, name, src_dir_fd=folder, dst_dir_fd=folder)
        except BaseException:
            os.unlink(part, dir_fd=folder)
            raise
