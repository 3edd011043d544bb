"""The data of a model's tensors: checked against types and dims, and read once, when needed."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from math import prod
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import numpy as np
import numpy.typing as npt
from onnx import ModelProto, SparseTensorProto, TensorProto, helper, numpy_helper

from vkops.errors import ModelError
from vkops.onnx.element_types import STRING, dtype_of
from vkops.plan.rounding import ceil_div
from vkops.plan.size_limits import LimitError, check_shape
from vkops.system.files import below, open_regular

MAX_MODEL_BYTES = (2 << 30) - 1
"""Size of a model with all its external data: the most that a Protocol Buffers message can hold."""

MAX_DENSE_BYTES = 2 << 30
"""Size of all sparse tensors of a model as dense ones."""

_MIN_DETACHED_BYTES = 1 << 12
"""Size from which data are kept apart from the model."""

_MAX_DIGITS = 19

_PACKED_BITS = {
    number: int(re.findall(r"\d", name)[0])
    for name, number in TensorProto.DataType.items()
    if re.match(r"U?(INT|FLOAT)[246](?!\d)", name)
}
"""Bits of an element of the types that are stored without gaps, such as INT4 and FLOAT6E2M3."""


class Detached(NamedTuple):
    """Data that were taken out of a tensor: its shape, and a function that reads the data."""

    shape: tuple[int, ...]
    read: Callable[[], bytes]


def detach_data(
    proto: ModelProto, folder: Path | None, *, allow_paths: bool
) -> tuple[ModelProto, list[Detached]]:
    """Take the data out of large tensors, and out of tensors whose data are in other files.

    This reads no other files, except for parts of sparse tensors, which ONNX's checker needs. A
    tensor whose data are taken out becomes a scalar with one entry in ``external_data``: the index
    of the data in the returned list.

    Args:
        proto: the model, which is changed.
        folder: the folder of its file; None if it was not read from a file.
        allow_paths: whether locations may lead out of the folder.

    Raises:
        ModelError: a tensor does not have as many bytes or values as its type and dims say, or a
            location is outside of the folder or is not a file.
    """
    detached: list[Detached] = []
    available, taken = MAX_MODEL_BYTES - proto.ByteSize(), 0
    for tensor, is_sparse in _tensors(proto):
        is_external = tensor.data_location == TensorProto.EXTERNAL
        read: Callable[[], bytes] | None = None
        try:
            shape, nbytes = _checked_dims(tensor)
            if is_external:
                read = _external_reader(tensor, nbytes, folder, allow_paths)
                available -= nbytes
                if available < 0:
                    raise ModelError(f"the model has more than {MAX_MODEL_BYTES} bytes with it")
                tensor.ClearField("data_location")
                if is_sparse or not nbytes:
                    tensor.raw_data, read = read() if nbytes else b"", None
            elif not tensor.HasField("raw_data"):
                _check_count(tensor, prod(shape))
            elif len(tensor.raw_data) != nbytes:
                raise ModelError(f"raw_data: got {len(tensor.raw_data)} bytes, must be {nbytes}")
            elif nbytes >= _MIN_DETACHED_BYTES and not is_sparse:
                read = partial(bytes, tensor.raw_data)
                taken += nbytes
        except ModelError as error:
            role = "external data of tensor" if is_external else "tensor"
            raise ModelError(f"{role} {tensor.name!r}: {error}") from error
        del tensor.external_data[:]
        if read is not None:
            del tensor.dims[:]
            tensor.raw_data = bytes(_checked_dims(tensor)[1])
            tensor.external_data.add(key="data", value=str(len(detached)))
            detached.append(Detached(shape, read))
    if taken >= _MIN_DETACHED_BYTES:  # a message keeps the memory of data that are taken out of it
        proto = ModelProto.FromString(proto.SerializeToString())
    return proto, detached


class TensorReader:
    """Reads the elements of a model's tensors, whose data ``detach_data`` has checked."""

    def __init__(self, detached: Sequence[Detached] = ()) -> None:
        self._detached = detached
        self._available = MAX_DENSE_BYTES

    def read(self, tensor: TensorProto | SparseTensorProto) -> npt.NDArray[Any]:
        """Return the elements of a tensor, dense or sparse. To be called once for each tensor."""
        if isinstance(tensor, SparseTensorProto):
            return self._read_sparse(tensor)
        if not tensor.external_data:
            return _array(tensor)
        shape, read = self._detached[int(tensor.external_data[0].value)]
        if tensor.data_type in _PACKED_BITS:
            return _array(TensorProto(data_type=tensor.data_type, dims=shape, raw_data=read()))
        dtype = dtype_of(tensor.data_type)
        array: npt.NDArray[Any] = np.frombuffer(read(), dtype.newbyteorder("<"))
        return array.astype(dtype, copy=False).reshape(shape)

    def _read_sparse(self, sparse: SparseTensorProto) -> npt.NDArray[Any]:
        """Read a sparse tensor, whose indices count elements or name them axis by axis."""
        values, indices = self.read(sparse.values), self.read(sparse.indices)
        shape = tuple(sparse.dims)
        nbytes = prod(filter(None, shape)) * values.itemsize
        if min(shape, default=0) < 0 or nbytes > self._available:
            raise ModelError(
                f"got dims {shape}, must have {self._available} bytes at most (all sparse tensors "
                f"together: {MAX_DENSE_BYTES})"
            )
        if indices.shape not in ((values.size,), (values.size, len(shape))):
            raise ModelError(
                f"got indices of shape {indices.shape}, must be ({values.size},) or "
                f"({values.size}, {len(shape)})"
            )
        self._available -= nbytes
        limits = (prod(shape),) if indices.ndim == 1 else shape
        if indices.dtype.kind not in "iu" or np.any((indices < 0) | (indices >= limits)):
            allowed = ", ".join(f"0 to {limit - 1}" for limit in limits)
            raise ModelError(f"its values and indices do not fit: indices must be {allowed}")
        dense = np.zeros(shape, values.dtype)
        if dense.dtype == STRING:
            dense.fill("")
        try:
            if indices.ndim == 1:
                dense.reshape(-1)[indices] = values
            else:
                dense[tuple(indices.T)] = values
        except ValueError as error:
            raise ModelError(f"its values and indices do not fit: {error}") from error
        return dense


def _array(tensor: TensorProto) -> npt.NDArray[Any]:
    try:
        array: npt.NDArray[Any] = numpy_helper.to_array(tensor)
    except UnicodeDecodeError as error:
        raise ModelError(f"is not UTF-8: {error.reason}") from error
    except Exception as error:  # of many kinds, where the model was not checked
        raise ModelError(" ".join(str(error).split()) or type(error).__name__) from error
    return array


def _tensors(message: Any, *, is_sparse: bool = False) -> Iterator[tuple[TensorProto, bool]]:
    """Yield every tensor of a message at any depth, and whether it is part of a sparse tensor."""
    if isinstance(message, TensorProto):
        yield message, is_sparse
        return
    is_sparse = isinstance(message, SparseTensorProto)
    for field, value in message.ListFields():
        if field.message_type is not None:
            for item in [value] if hasattr(value, "ListFields") else value:
                yield from _tensors(item, is_sparse=is_sparse)


def _checked_dims(tensor: TensorProto) -> tuple[tuple[int, ...], int]:
    """Return the dims of a tensor, and its size in bytes as raw data."""
    shape = tuple(tensor.dims)
    dtype = dtype_of(tensor.data_type)
    if min(shape, default=0) < 0:
        raise ModelError(f"dims: got {list(shape)}, must be at least 0")
    try:
        check_shape(shape, dtype.itemsize)
    except LimitError as error:
        raise ModelError(f"dims: {error}") from error
    return shape, ceil_div(prod(shape) * _PACKED_BITS.get(tensor.data_type, 8 * dtype.itemsize), 8)


def _check_count(tensor: TensorProto, size: int) -> None:
    """Check that a tensor has as many values as elements."""
    field = helper.tensor_dtype_to_field(tensor.data_type)
    values_per_item = 8 // _PACKED_BITS.get(tensor.data_type, 8)
    expected = ceil_div(size, values_per_item) * (1 + (dtype_of(tensor.data_type).kind == "c"))
    got = len(getattr(tensor, field))
    if got != expected:
        raise ModelError(f"{field}: got {got} values, must be {expected}")


# -- external data ---------------------------------------------------------------------------------


def _external_reader(
    tensor: TensorProto, nbytes: int, folder: Path | None, allow_paths: bool
) -> Callable[[], bytes]:
    """Check that a file has the data of a tensor; return a function that reads them."""
    entries = {entry.key: entry.value for entry in tensor.external_data}
    location = entries.get("location", "")
    if folder is None:
        raise ModelError(f"{location!r} is a file, and the model was not read from a file")
    if dtype_of(tensor.data_type) == STRING:
        raise ModelError("strings cannot be in another file")
    try:
        path = below(folder, location)
    except ValueError as error:
        raise ModelError(f"{location!r} is not a file name") from error
    if path is None and not allow_paths:
        raise ModelError(
            f"{location!r} is outside of the folder {str(folder)!r}, which a model may leave only "
            "with --allow_paths"
        )
    offset = _number(entries, "offset", 0)
    opened = partial(_opened, location, path or folder / location, path is None)
    with opened() as file:
        end = os.fstat(file.fileno()).st_size
    length = _number(entries, "length", max(0, end - offset))
    if offset + length > end:
        raise ModelError(f"bytes {offset} to {offset + length} of {location!r}, which has {end}")
    if length != nbytes:
        raise ModelError(
            f"got {length} bytes of {location!r}, must be {nbytes}, as its type and dims say"
        )

    def read() -> bytes:
        with opened() as file:
            file.seek(offset)
            data = file.read(nbytes)
        if len(data) < nbytes:
            raise ModelError(f"{location!r} cannot be read: it is shorter than before")
        return data

    return read


@contextmanager
def _opened(location: str, path: Path, follow: bool) -> Iterator[BinaryIO]:
    try:
        with open_regular(path, follow=follow) as file:
            yield file
    except OSError as error:
        raise ModelError(f"{location!r} cannot be read: {error.strerror}") from error


def _number(entries: Mapping[str, str], key: str, default: int) -> int:
    text = entries.get(key, str(default))
    if not (text.isascii() and text.isdecimal() and len(text) <= _MAX_DIGITS):
        raise ModelError(
            f"{key}: got {text[: 2 * _MAX_DIGITS]!r}, must be an integer of at least 0"
        )
    return int(text)
