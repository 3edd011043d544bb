"""Arrays in .npy and .npz files, as the command line names them: [NAME:]FILE."""

from __future__ import annotations

import os
import zipfile
from collections.abc import Mapping, Sequence
from math import prod
from pathlib import Path
from typing import IO, Any

import numpy as np
import numpy.typing as npt
import psutil

from vkops.dxdispatch.value_files import read_npy_header
from vkops.errors import ModelError, one_line
from vkops.paths import open_regular
from vkops.runner import console
from vkops.runner.output_files import output_file, plain

Array = npt.NDArray[Any]

MOST_PRINTED = 10_000
"""Values of an output that are printed; a file takes them all."""


def read(text: str, unnamed: Sequence[str], owner: str) -> list[tuple[str, Array]]:
    """The arrays of ``NAME:FILE.npy``, of ``FILE.npy`` for the sole input, or of ``FILE.npz``.

    ``unnamed`` are the inputs that one without a name may be for, ``owner`` is who has them.

    Raises:
        ModelError: it cannot be read, or it does not say for which input it is.
    """
    name, colon, file = text.partition(":")
    if not colon or Path(text).is_file():
        name, file = "", text
    try:
        arrays = _load(file, text)
    except OSError as error:
        raise ModelError(f"{text}: cannot be read: {error.strerror or error}") from error
    except Exception as error:  # NumPy, zipfile and zlib fail in many ways on bad bytes
        if isinstance(error, ModelError):
            raise
        raise ModelError(f"{text}: is no .npy or .npz file of numbers or text") from error
    if isinstance(arrays, list):
        if name:
            raise ModelError(f"{text}: a .npz file names its arrays itself")
        return arrays
    if not name:
        if len(unnamed) != 1:
            raise ModelError(f"{text}: {owner} has {len(unnamed)} inputs; say NAME:{text}")
        name = unnamed[0]
    return [(name, arrays)]


def _load(file: str, text: str) -> Array | list[tuple[str, Array]]:
    """The array of a .npy file, or those of a .npz file by name; never anything pickled."""
    with open_regular(file) as stream:
        if not zipfile.is_zipfile(stream):
            stream.seek(0)
            _check_room(text, [_claimed(stream, os.fstat(stream.fileno()).st_size)])
            stream.seek(0)
            array: Array = np.load(stream, allow_pickle=False)
            return array
        with zipfile.ZipFile(stream) as members:
            _check_room(text, [_member(members, info) for info in members.infolist()])
        stream.seek(0)
        with np.load(stream, allow_pickle=False) as loaded:
            return list(loaded.items())


def _member(members: zipfile.ZipFile, info: zipfile.ZipInfo) -> int:
    with members.open(info) as stream:
        return _claimed(stream, info.file_size)


def _claimed(stream: IO[bytes], size: int) -> int:
    """Bytes of an array, as the header says; ValueError where there cannot be as many."""
    (shape, _, dtype), offset = read_npy_header(stream)
    nbytes = prod(shape) * dtype.itemsize
    if dtype.hasobject or nbytes > size - offset:
        raise ValueError("no such values")
    return nbytes


def _check_room(text: str, sizes: Sequence[int]) -> None:
    """Refuse what does not fit into memory: a small .npz file can hold a lot of zeros."""
    left = psutil.virtual_memory().available
    if sum(sizes) > left:
        raise ModelError(f"{text}: holds {sum(sizes)} bytes, and {left} of memory are left")


def targets(names: Sequence[str], texts: Sequence[str], owner: str) -> dict[Path, str]:
    """The files to write, and the output that goes into each; a .npz file takes all.

    Raises:
        ModelError: one has another ending, or is for no console.
    """
    found: dict[Path, str] = {}
    for text in texts:
        name, colon, file = text.rpartition(":")
        suffix = Path(file).suffix.lower()
        if suffix == ".npz" and not colon:
            found[Path(file)] = ""
            continue
        if suffix != ".npy":
            raise ModelError(f"{text}: must be FILE.npz or NAME:FILE.npy")
        if not colon and len(names) != 1:
            raise ModelError(f"{text}: {owner} has {len(names)} outputs; say NAME:{text}")
        name = name or names[0]
        if name not in names:
            listed = ", ".join(map(repr, names))
            raise ModelError(f"{text}: {owner} has no output {name!r}; it has {listed}")
        found[Path(file)] = name
    return found


def write(targets: Mapping[Path, str], arrays: Mapping[str, Array]) -> None:
    """Write files, each whole or not at all.

    Raises:
        ModelError: one cannot be written.
    """
    for path, name in targets.items():
        if name and name not in arrays:
            raise ModelError(f"output {name!r} is a sequence, which needs a .npz file")
        written = [name] if name else list(arrays)
        written_arrays = {key: plain(arrays[key]) for key in written}
        try:
            with output_file(path) as stream:
                if name:
                    np.save(stream, written_arrays[name], allow_pickle=False)
                else:
                    np.savez(stream, **written_arrays)  # type: ignore[arg-type]  # taken for its options
        except OSError as error:
            raise ModelError(f"{path}: cannot be written: {error.strerror or error}") from error
        console.info(f"{one_line(name) or 'Outputs'} written to '{path}'")


def show(name: str, array: Array) -> None:
    """Print an output in a line."""
    shown = array.reshape(-1)[:MOST_PRINTED]
    rest = prod(array.shape) - len(shown)
    text = ", ".join(console.format_values(shown))
    more = f", and {rest} more (--output FILE.npz takes all)" if rest else ""
    console.info(f"Output '{one_line(name)}' {list(array.shape)}: {text}{more}")
