"""Safe access to untrusted paths: confined to a folder, and opened without waiting.

``scripts/kp_wheel.py`` runs this module by itself, so it needs nothing but the standard library.
"""

from __future__ import annotations

import errno
import importlib
import io
import ntpath
import os
import re
import stat
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import ModuleType
from typing import BinaryIO

_CHUNK = 1 << 20

# Flags that not every system has, or 0. Python itself opens files that children do not inherit.
_NO_WAITING: int = getattr(os, "O_NONBLOCK", 0)
_NO_LINKS: int = getattr(os, "O_NOFOLLOW", 0)
_BYTES: int = getattr(os, "O_BINARY", 0)

_WINDOWS_DEVICE = re.compile(r"(?:CON|PRN|AUX|NUL|CONIN\$|CONOUT\$|(?:COM|LPT)[0-9¹²³]) *(?:\..*)?")
_WINDOWS_SPECIAL = re.compile(r'[\x00-\x1f"*:<>?|]')
_WINDOWS_NAMED_FILE = re.compile(r"(?:(.*?):)??((?:[A-Za-z]:[\\/](?![\\/]))?[^:]*)", re.DOTALL)


def below(
    folder: Path, name: str | os.PathLike[str], *, paths: ModuleType = os.path
) -> Path | None:
    """Return ``folder / name`` with symbolic links resolved; None if that is outside the folder.

    ``paths`` is ``os.path`` of the system to which the names belong; ``ntpath`` is Windows'.

    Raises:
        ValueError: no file can have this name. On Windows, this includes names of devices (NUL) and
            of streams of files (``x.bin:stream``).

    >>> below(Path("models"), "data/../x.bin").as_posix()
    'models/x.bin'
    >>> below(Path("models"), "../x.bin")
    """
    if paths is ntpath:
        _check_windows_name(os.fspath(name))
    root = paths.realpath(folder)
    path = paths.join(root, name)
    drive = paths.splitdrive(path)[0]
    # Return before ``realpath`` if the name is on another server or device, which that would ask
    # for the file.
    if drive[1:2] != ":" and paths.normcase(drive) != paths.normcase(paths.splitdrive(root)[0]):
        return None
    real = paths.realpath(path)
    return folder / paths.relpath(real, root) if _is_inside(real, root, paths) else None


def _is_inside(path: str, root: str, paths: ModuleType) -> bool:
    """Whether a path leads into the folder ``root``; both are resolved."""
    path, root = paths.normcase(path), paths.normcase(root)
    same_drive: bool = paths.splitdrive(path)[0] == paths.splitdrive(root)[0]
    return same_drive and paths.commonpath((root, path)) == root


def _check_windows_name(name: str) -> None:
    for part in re.split(r"[\\/]", ntpath.splitdrive(name)[1]):
        is_folder = part in (".", "..")
        if not is_folder and (
            part.endswith((".", " "))
            or _WINDOWS_SPECIAL.search(part)
            or _WINDOWS_DEVICE.fullmatch(part.upper())
        ):
            raise ValueError(f"{part!r} is reserved by Windows")


def named_file(text: str, *, paths: ModuleType = os.path) -> tuple[str, str]:
    r"""Split ``[NAME:]FILE`` at the last colon that is not part of a drive; no name is "".

    >>> named_file("x:data.npy"), named_file("data.npy")
    (('x', 'data.npy'), ('', 'data.npy'))
    >>> named_file(r"x:C:\data.npy", paths=ntpath)
    ('x', 'C:\\data.npy')
    """
    if paths is ntpath:
        match = _WINDOWS_NAMED_FILE.fullmatch(text)
        assert match is not None
        return match[1] or "", match[2]
    name, _, file = text.rpartition(":")
    return name, file


def open_regular(
    path: str | os.PathLike[str],
    *,
    follow: bool = True,
    own: bool = False,
    dir_fd: int | None = None,
) -> BinaryIO:
    """Open a regular file for reading, without waiting as for a pipe or a device.

    ``follow=False`` does not allow symbolic links either: use it for paths that ``below`` has
    resolved. ``own`` does not allow files of other users, if the system knows users. ``path`` is
    relative to the folder of the descriptor ``dir_fd``, if there is one.

    Raises:
        OSError: it cannot be read, or is not such a file.
        ValueError: no file can have this name.
    """
    before = None
    if not (_NO_WAITING and _NO_LINKS):  # without these flags, look at the file before opening it
        before = os.stat(path, follow_symlinks=follow)
        _check_regular(before, path)
    flags = os.O_RDONLY | _BYTES | _NO_WAITING | (0 if follow else _NO_LINKS)
    # The caller closes it. Not the builtin ``open``, which is gone while Python exits.
    stream = io.open(os.open(path, flags, dir_fd=dir_fd), "rb")  # noqa: SIM115, UP020
    try:
        status = os.fstat(stream.fileno())
        _check_regular(status, path)
        if before is not None and not os.path.samestat(before, status):
            raise OSError(errno.EINVAL, "replaced while it was opened", os.fspath(path))
        if own and not _is_own(status):
            raise PermissionError(errno.EPERM, "belongs to another user", os.fspath(path))
    except BaseException:
        stream.close()
        raise
    return stream


def _check_regular(status: os.stat_result, path: str | os.PathLike[str]) -> None:
    if stat.S_ISREG(status.st_mode):
        return
    if stat.S_ISDIR(status.st_mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), os.fspath(path))
    if stat.S_ISLNK(status.st_mode):
        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), os.fspath(path))
    raise OSError(errno.EINVAL, "not a regular file", os.fspath(path))


def _is_own(status: os.stat_result) -> bool:
    """Whether a file belongs to this user, as far as the system knows."""
    return not hasattr(os, "geteuid") or status.st_uid == os.geteuid()


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
        OSError: as for ``open_regular``, or the file is longer.
        ValueError: no file can have this name.
    """
    with open_regular(path, follow=follow, own=own, dir_fd=dir_fd) as stream:
        size = os.fstat(stream.fileno()).st_size
        if size <= max_bytes:
            data = stream.read(size)
            # Files in /proc report a size of 0, so read on until the end; but in chunks, as a
            # single read of ``max_bytes`` would allocate that much at once.
            while len(data) <= max_bytes and (more := stream.read(_CHUNK)):
                data += more
            if len(data) <= max_bytes:
                return data
    raise OSError(errno.EFBIG, f"longer than {max_bytes} bytes", os.fspath(path))


def account_home() -> Path:
    """Return this user's home directory from the list of users, because HOME can name another.

    If the system has no such list, or this user is not in it, return that of HOME.
    """
    if sys.platform != "win32" and hasattr(os, "getuid"):
        with suppress(ImportError, KeyError):
            return Path(importlib.import_module("pwd").getpwuid(os.getuid()).pw_dir)
    return Path("~").expanduser()


class PrivateFolder:
    """A folder that only this user can change; made by ``private_folder``.

    ``descriptor`` is open on the folder, so that it cannot be replaced while it is used. On systems
    that cannot open folders, it is None, and files are found by their paths.
    """

    def __init__(self, path: str, descriptor: int | None) -> None:
        self._path = path
        self._descriptor = descriptor

    def read(self, name: str, max_bytes: int) -> bytes:
        """Read a regular file of this user; OSError if it is longer, or cannot be read."""
        return read_regular(
            self._at(name), max_bytes, follow=False, own=True, dir_fd=self._descriptor
        )

    def write(self, name: str, data: bytes) -> None:
        """Write a file of mode 0600, whole or not at all; OSError if it cannot be written."""
        folder = self._descriptor
        part = self._at(f".{os.urandom(16).hex()}.part")
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | _BYTES | _NO_LINKS
        stream = open(os.open(part, flags, 0o600, dir_fd=folder), "wb")  # noqa: SIM115
        try:
            with stream:
                stream.write(data)
            # After closing it: Windows does not rename open files.
            os.replace(part, self._at(name), src_dir_fd=folder, dst_dir_fd=folder)
        except BaseException:
            os.unlink(part, dir_fd=folder)
            raise

    def remove_oldest(self, count: int) -> None:
        """Remove all files but the ``count`` that were written last; OSError if one remains."""
        folder = self._descriptor

        def written(name: str) -> int:
            return os.stat(self._at(name), dir_fd=folder, follow_symlinks=False).st_mtime_ns

        names = os.listdir(self._path if folder is None else folder)
        for name in sorted(names, key=written)[:-count]:
            os.unlink(self._at(name), dir_fd=folder)

    def _at(self, name: str) -> str:
        return name if self._descriptor is not None else os.path.join(self._path, name)


@contextmanager
def private_folder(
    path: str | os.PathLike[str], *, create: bool = False
) -> Iterator[PrivateFolder]:
    """Open a folder that only this user can change.

    On Windows, functions of POSIX do not tell who can change a folder. There it must be inside the
    user's own folder, which Windows protects from other users. ``create`` makes a missing folder,
    and the folders above it, with mode 0700.

    Raises:
        OSError: it is missing, not a folder (nor may it be a symbolic link), belongs to another
            user, or others may write to it.
    """
    if create:
        _make_private(os.path.abspath(path))
    if sys.platform == "win32" or not hasattr(os, "geteuid"):
        if not stat.S_ISDIR(os.lstat(path).st_mode):
            raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), os.fspath(path))
        home = os.path.realpath(os.path.expanduser("~"))
        if not _is_inside(os.path.realpath(path), home, os.path):
            raise PermissionError(errno.EPERM, "it is not in your own folder", os.fspath(path))
        yield PrivateFolder(os.fspath(path), None)
        return
    folder = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        status = os.fstat(folder)
        if not _is_own(status):
            raise PermissionError(errno.EPERM, "it belongs to another user", os.fspath(path))
        if status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
            raise PermissionError(errno.EPERM, "other users may write to it", os.fspath(path))
        yield PrivateFolder(os.fspath(path), folder)
    finally:
        os.close(folder)


def _make_private(path: str) -> None:
    if not os.path.isdir(parent := os.path.dirname(path)):
        _make_private(parent)
    with suppress(FileExistsError):
        os.mkdir(path, 0o700)
