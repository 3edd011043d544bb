"""Tensors that a model keeps in other files: ONNX's external data."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from onnx import ModelProto, TensorProto

from vkops.errors import ModelError
from vkops.paths import below, open_regular

MAX_MODEL_BYTES = (2 << 30) - 1
"""Of a model with all its external data: what a Protocol Buffers message can hold."""

_DIGITS = 19


def load_external_data(
    proto: ModelProto, folder: Path | None, room: int, *, allow_paths: bool
) -> None:
    """Put external data into the tensors that it belongs to.

    Args:
        proto: the model, which is changed.
        folder: where its file is; None if it comes from none.
        room: how many bytes there may be.
        allow_paths: whether locations may lead out of the folder.

    Raises:
        ModelError: a location is outside of the folder or no file, or does not have the bytes.
    """
    for tensor in _external(proto):
        try:
            data = _read(tensor, folder, room, allow_paths)
        except ModelError as error:
            raise ModelError(f"external data of tensor {tensor.name!r}: {error}") from error
        room -= len(data)
        tensor.raw_data = data
        tensor.data_location = TensorProto.DEFAULT
        del tensor.external_data[:]


def _read(tensor: TensorProto, folder: Path | None, room: int, allow_paths: bool) -> bytes:
    found = {entry.key: entry.value for entry in tensor.external_data}
    location = found.get("location", "")
    if folder is None:
        raise ModelError(f"{location!r} is a file, and the model comes from none")
    try:
        path = below(folder, location)
    except ValueError as error:
        raise ModelError(f"{location!r} is no file name") from error
    if path is None and not allow_paths:
        raise ModelError(
            f"{location!r} is outside of the folder {str(folder)!r}, which a model may leave only "
            "with --allow_paths"
        )
    offset = _count(found, "offset", 0)
    try:
        with open_regular(folder / location if path is None else path, follow=path is None) as file:
            end = os.fstat(file.fileno()).st_size
            length = _count(found, "length", max(0, end - offset))
            if offset + length > end:
                raise ModelError(
                    f"bytes {offset} to {offset + length} of {location!r}, which has {end}"
                )
            if length > room:
                raise ModelError(f"the model has more than {MAX_MODEL_BYTES} bytes with it")
            file.seek(offset)
            return file.read(length)
    except OSError as error:
        raise ModelError(f"{location!r} cannot be read: {error.strerror}") from error


def _count(found: dict[str, str], key: str, default: int) -> int:
    text = found.get(key, str(default))
    if not (text.isascii() and text.isdecimal() and len(text) <= _DIGITS):
        raise ModelError(f"{key}: got {text[: 2 * _DIGITS]!r}, must be an integer of at least 0")
    return int(text)


def _external(message: Any) -> Iterator[TensorProto]:
    """Every tensor, wherever it is, whose data are elsewhere."""
    if isinstance(message, TensorProto):
        if message.data_location == TensorProto.EXTERNAL:
            yield message
        return
    for field, value in message.ListFields():
        if field.message_type is not None:
            for item in [value] if hasattr(value, "ListFields") else value:
                yield from _external(item)
