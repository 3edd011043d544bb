"""Arrays in files, as the command line names them: [NAME:]FILE, a .npy, .npz, .png or .jpg file."""

from __future__ import annotations

import os
import zipfile
from collections.abc import Mapping, Sequence
from math import prod
from pathlib import Path
from typing import IO, Any

import numpy.typing as npt

from vkops import console
from vkops.errors import ModelError, one_line
from vkops.runner import printed_values
from vkops.system import pictures
from vkops.system.files import named_file, open_regular
from vkops.system.npy_files import MAGIC, read_array, read_header, write_array
from vkops.system.output_files import output_file

Array = npt.NDArray[Any]

_KINDS = "?biufcSUV"
"""Booleans, numbers and text; V is every type that files know only the size of, as bfloat16."""

_MAX_MEMBER_BYTES = 0xFFFF  # of a name in a .npz file

MAX_FLAT_VALUES = 10_000
"""Values of an output that are printed in one line; a file takes them all."""


def read(text: str, unnamed: Sequence[str], owner: str) -> list[tuple[str, Array]]:
    """Return the names and arrays of ``NAME:FILE.npy``, ``FILE.npz`` or ``FILE.png``.

    The arrays hold numbers or text in the byte order of this machine, or void elements.
    ``unnamed`` are the inputs that an array without a name may be for, ``owner`` is who has them.
    """
    name, file = ("", text) if Path(text).is_file() else named_file(text)
    if not name and "=" in file and not Path(file).is_file():
        name, _, file = file.partition("=")
    try:
        arrays = _load(file, text)
    except OSError as error:
        raise ModelError(f"{text}: cannot be read: {error.strerror or error}") from error
    except ModelError:
        raise
    except pictures.PictureError as error:
        raise ModelError(f"{text}: {error}") from error
    except Exception as error:  # NumPy, zipfile and zlib fail in many ways on bad bytes
        raise ModelError(f"{text}: is not a .npy or .npz file of numbers or text") from error
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
    """Return the array of a .npy file, or names and arrays of a .npz file; nothing is unpickled."""
    with open_regular(file) as stream:
        if Path(file).suffix.lower() in pictures.SUFFIXES:
            return pictures.read(stream)
        # The last bytes of an array can look like those of an archive.
        is_array = stream.read(len(MAGIC)) == MAGIC
        if is_array or not zipfile.is_zipfile(stream):
            stream.seek(0)
            nbytes = _claimed_bytes(stream, os.fstat(stream.fileno()).st_size)
            _check_memory(f"{text}: holds {nbytes} bytes", nbytes)
            stream.seek(0)
            return read_array(stream)
        with zipfile.ZipFile(stream) as archive:
            nbytes = 0
            for info in archive.infolist():
                with archive.open(info) as member:
                    nbytes += _claimed_bytes(member, info.file_size)
            _check_memory(f"{text}: holds {nbytes} bytes", nbytes)
            # np.load would confuse the members "x.npy" and "x.npy.npy".
            arrays = []
            for info in archive.infolist():
                with archive.open(info) as member:
                    arrays.append((info.filename.removesuffix(".npy"), read_array(member)))
            return arrays


def _claimed_bytes(stream: IO[bytes], size: int) -> int:
    """Return the bytes of an array by its header; ValueError if it cannot be read."""
    shape, _, dtype, offset = read_header(stream)
    nbytes = prod(shape) * dtype.itemsize
    if dtype.kind not in _KINDS or dtype.fields or dtype.subdtype or nbytes > size - offset:
        raise ValueError("no such values")
    return nbytes


def _check_memory(what: str, nbytes: int) -> None:
    """Refuse arrays that do not fit into memory: a small .npz file can hold a lot of zeros."""
    import psutil

    available = int(psutil.virtual_memory().available)
    if nbytes > available:
        raise ModelError(f"{what}, and {available} of memory are available")


def targets(names: Sequence[str], texts: Sequence[str], owner: str) -> dict[Path, str]:
    """Return the files to write, with the output that each takes; "" for all, in a .npz file."""
    files: dict[Path, str] = {}
    for text in texts:
        name, file = named_file(text)
        suffix = Path(file).suffix.lower()
        if Path(file) in files:
            raise ModelError(f"{text}: another output is written to that file")
        if suffix == ".npz" and file == text:
            files[Path(file)] = ""
            continue
        if suffix != ".npy" and suffix not in pictures.SUFFIXES:
            raise ModelError(f"{text}: must be FILE.npz, NAME:FILE.npy or NAME:FILE.png")
        if file == text and len(names) != 1:
            raise ModelError(f"{text}: {owner} has {len(names)} outputs; say NAME:{text}")
        name = name or names[0]
        if name not in names:
            listed = ", ".join(map(repr, names))
            raise ModelError(f"{text}: {owner} has no output {name!r}; it has {listed}")
        files[Path(file)] = name
    return files


def write_or_print(targets: Mapping[Path, str], arrays: Mapping[str, Array], *, flat: bool) -> None:
    """Write arrays to files, each whole or not at all; print them if there are no files."""
    if not targets:
        for name, array in arrays.items():
            _print(name, array, flat=flat)
    for path, name in targets.items():
        if name and name not in arrays:
            raise ModelError(f"output {name!r} is a sequence, which needs a .npz file")
        chosen = {key: without_objects(arrays[key]) for key in ([name] if name else arrays)}
        suffix = path.suffix.lower()
        try:
            picture = (
                name and suffix in pictures.SUFFIXES and pictures.encoded(chosen[name], suffix)
            )
            with output_file(path) as stream:
                if picture:
                    stream.write(picture)
                elif name:
                    write_array(stream, chosen[name])
                else:
                    _write_npz(path, stream, chosen)
        except pictures.PictureError as error:
            raise ModelError(f"{path}: {error}") from error
        except OSError as error:
            raise ModelError(f"{path}: cannot be written: {error.strerror or error}") from error
        console.info(f"{one_line(name) or 'Outputs'} written to '{path}'")


def _write_npz(path: Path, stream: IO[bytes], arrays: Mapping[str, Array]) -> None:
    """Write a .npz file whatever the names are; np.savez has parameters of its own."""
    members = [f"{name}.npy" for name in arrays]
    with zipfile.ZipFile(stream, "w") as archive:
        for name, member in zip(arrays, members, strict=True):
            info = zipfile.ZipInfo(member)
            # ZipInfo changes some names, and np.load prefers members to arrays of the same name.
            is_kept = info.filename == member and name not in members
            if not is_kept or len(member.encode()) > _MAX_MEMBER_BYTES:
                raise ModelError(f"{path}: a .npz file cannot hold an output named {name!r}")
            with archive.open(info, "w", force_zip64=True) as file:
                write_array(file, arrays[name])


def without_objects(array: Array) -> Array:
    """Return an array that can be written as bytes: strings as characters of fixed width."""
    if not array.dtype.hasobject:
        return array
    nbytes = 4 * max((len(str(text)) for text in array.flat), default=0) * array.size
    _check_memory(f"strings as characters of fixed width take {nbytes} bytes", nbytes)
    return array.astype(str)


def _print(name: str, array: Array, *, flat: bool) -> None:
    label = f"Output '{one_line(name)}' {list(array.shape)}:"
    is_short = array.ndim < 2 and array.size <= printed_values.MAX_SHAPED_VALUES
    if not (flat or is_short):
        console.lines(label, printed_values.text_of(array))
        return
    shown = array.reshape(-1)[:MAX_FLAT_VALUES]
    rest = prod(array.shape) - len(shown)
    text = ", ".join(printed_values.format_values(shown))
    more = f", and {rest} more (--output FILE.npz takes all)" if rest else ""
    console.info(f"{label} {text}{more}")
