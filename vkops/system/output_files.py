"""Files that are written whole or not at all."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

LOCK_S = 30.0
"""Seconds after which a lock counts as left behind by a process that ended."""


@contextmanager
def exclusively(path: Path) -> Iterator[None]:
    """In this block, keep other processes that call this function from changing a file.

    A hidden file beside it is the lock; OSError if it cannot be made.
    """
    path = Path(os.path.realpath(path))
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.exists() and not path.is_file():
        raise OSError(None, "not a regular file", str(path))
    lock = path.with_name(f".vkops-{path.name.lstrip('.')}.lock")
    end = time.monotonic() + LOCK_S
    while True:
        try:
            os.close(os.open(lock, os.O_CREAT | os.O_EXCL))
            break
        except FileExistsError:
            if time.monotonic() > end:
                break
            time.sleep(0.01)
    try:
        yield
    finally:
        with suppress(OSError):  # another process took it for one that was left behind
            lock.unlink()


def write_output(path: Path, chunks: Iterable[bytes]) -> None:
    """Write a file, and its folder, whole or not at all; OSError if it cannot be written."""
    with output_file(path) as stream:
        for chunk in chunks:
            stream.write(chunk)


@contextmanager
def output_file(path: Path) -> Iterator[IO[bytes]]:
    """Yield a stream whose content replaces the file at the end, as for ``write_output``."""
    path = Path(os.path.realpath(path))
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.exists() and not path.is_file():
        raise OSError(None, "not a regular file", str(path))
    part = path.with_name(f".vkops-{os.getpid()}-{time.time_ns()}.part")
    try:
        with open(part, "xb") as stream:
            yield stream
        part.replace(path)
    except BaseException:
        part.unlink(missing_ok=True)
        raise
