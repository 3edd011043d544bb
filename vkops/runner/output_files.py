"""Files that a run writes: whole or not at all, and in pieces of bounded size."""

from __future__ import annotations

import io
import os
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import numpy as np
import numpy.typing as npt

from vkops.dxdispatch.data_types import CHUNK_BYTES
from vkops.errors import ModelError

Read = Callable[[int, int], bytes]
"""A function that returns bytes of a resource, given their offset and number."""


def chunks(read: Read, size: int, step: int = CHUNK_BYTES) -> Iterator[bytes]:
    """Yield the bytes of a resource in pieces."""
    for offset in range(0, size, step):
        yield read(offset, min(step, size - offset))


def write_output(path: Path, chunks: Iterable[bytes]) -> None:
    """Write a file whole or not at all, and make its folder if it is missing.

    Raises:
        OSError: it cannot be written; an existing file is then unchanged.
    """
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


def npy_header(dtype: np.dtype[Any], shape: tuple[int, ...]) -> bytes:
    """Return the header of a .npy file, format 1.0."""
    stream = io.BytesIO()
    np.lib.format.write_array_header_1_0(
        stream, {"descr": dtype.str, "fortran_order": False, "shape": shape}
    )
    return stream.getvalue()


def without_objects(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return an array that can be written as bytes: strings as characters of fixed width."""
    if not array.dtype.hasobject:
        return array
    nbytes = 4 * max((len(str(text)) for text in array.flat), default=0) * array.size
    import psutil

    available = psutil.virtual_memory().available
    if nbytes > available:
        raise ModelError(
            f"strings as characters of fixed width take {nbytes} bytes, and {available} of memory "
            "are available"
        )
    return array.astype(str)
