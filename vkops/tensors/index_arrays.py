"""Arrays of indices that callers pass: their checks, and the memory that the device reads."""

from __future__ import annotations

from collections.abc import Sequence, Sized
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from vkops.arguments.values import ArgumentName
from vkops.errors import import_late, show
from vkops.plan.indexing import IndexTensor
from vkops.plan.view import Ints, View
from vkops.runtime.device import OperatorDevice
from vkops.tensors.array_plan import stack_indices
from vkops.tensors.device_array import DeviceArray, check_device
from vkops.tensors.exchange import numpy_refusals
from vkops.tensors.shape_arguments import broadcast_shapes, check_shape, packed, refuse_index

IndexSource: TypeAlias = "DeviceArray | npt.NDArray[Any]"
"""Indices in a tensor, which are not read back, or in an array on the host."""

_TYPES = ("int32", "int64", "uint32", "uint64")
"""The data types of indices that the device reads."""

MAX_ENTRIES = 1 << 20
"""The maximum number of entries in a list of indices."""


class IndexNumbers(NamedTuple):
    """Indices as a plan reads them: its second input, a tensor or an array, and the view of it."""

    memory: Any
    tensor: IndexTensor

    @classmethod
    def of(cls, indices: IndexSource) -> IndexNumbers:
        """Return all indices of a tensor or an array."""
        memory: Any = indices
        if isinstance(indices, np.ndarray):
            view = packed(indices.shape)
        else:
            memory, view = indices.placed()
        return cls(memory, IndexTensor(1, indices.dtype.str[1:], view))

    def over(self, view: View) -> IndexNumbers:
        """Return indices in the same memory, through another view."""
        return IndexNumbers(self.memory, self.tensor._replace(view=view))


def as_indices(
    value: Any, argument: ArgumentName, device: OperatorDevice, *, masks: bool = False
) -> IndexSource:
    """Return a tensor that the device can read, or an array; ``masks`` allows Booleans."""
    if isinstance(value, DeviceArray) and masks and value.dtype.kind == "b":
        check_device(argument.operator, argument.field, value, device)
        return value
    if isinstance(value, DeviceArray):
        if value.dtype.name not in _TYPES or not value.dtype.isnative:
            message = f"is a tensor of {value.dtype}, must be of {', '.join(_TYPES)}"
            refuse_index(argument, message)
        check_device(argument.operator, argument.field, value, device)
        return value
    with numpy_refusals(argument.operator, argument.field, argument.rule):
        is_sequence = isinstance(value, Sized) and not hasattr(value, "__array__")
        if is_sequence and len(value) > MAX_ENTRIES:  # such as a range
            message = f"has {len(value)} entries, must be an array or have {MAX_ENTRIES} at most"
            refuse_index(argument, message)
        array = np.asarray(value)
    if not array.size and not isinstance(value, np.ndarray):
        array = array.astype(np.int64)  # NumPy converts an empty list to floats
    if masks and array.dtype == bool:
        return array
    if array.dtype.kind not in "iu":
        allowed = "integers, slices, ..., None and arrays of integers or Booleans"
        refuse_index(argument, f"got {show(value)}, must be {allowed if masks else 'integers'}")
    known = array.dtype.name in _TYPES
    return array.astype(array.dtype.newbyteorder("=") if known else np.int64, copy=False)


def check_range(indices: IndexSource, axis: int, size: int, argument: ArgumentName) -> None:
    """Raise an error for indices on the host that are out of range, or any if the axis is empty."""
    if isinstance(indices, np.ndarray) and indices.size:
        minimum, maximum = int(indices.min()), int(indices.max())
        if minimum < -size or maximum >= size:
            outside = maximum if maximum >= size else minimum
            refuse_index(argument, f"got {outside}, which is outside of axis {axis} of size {size}")
    elif indices.size and not size:
        refuse_index(argument, f"has {indices.size} indices of axis {axis}, which is empty")


def _wide(array: IndexSource) -> IndexSource:
    """Return the indices as signed integers of 64 bits."""
    if isinstance(array, np.ndarray):
        return array.astype(np.int64)
    converted: IndexSource = import_late("vkops.kernels.functions").converted(
        array, np.dtype(np.int64)
    )
    return converted


def common_shape(shapes: Sequence[Ints], argument: ArgumentName) -> Ints:
    """Return the shape that arrays of some shapes are broadcast to, or raise an error."""
    shape = broadcast_shapes(shapes)
    if shape is None:
        refuse_index(argument, f"shapes {show(shapes)} cannot be broadcast together")
    return shape


def tuples(
    arrays: Sequence[IndexSource], sizes: Sequence[int], argument: ArgumentName
) -> IndexNumbers:
    """Return tuples with one index of each array; the arrays are broadcast together.

    ``sizes`` are the sizes of the axes that the arrays select from. The last axis of the result
    numbers the arrays. If one of several arrays is a tensor, the device packs the tuples.
    """
    shape = common_shape([array.shape for array in arrays], argument)
    check_shape(argument.operator, (*shape, len(arrays)), 8)
    if len(arrays) == 1:
        numbers = IndexNumbers.of(arrays[0])
        return numbers.over(numbers.tensor.view.insert(len(shape)))
    tensors = [array for array in arrays if not isinstance(array, np.ndarray)]
    types = {tensor.dtype for tensor in tensors} or {np.dtype(np.int32)}
    if len(types) > 1 and "shaderInt64" in tensors[0].device.features:
        arrays = [_wide(array) for array in arrays]
        tensors = [array for array in arrays if not isinstance(array, np.ndarray)]
        types = {np.dtype(np.int64)}
    fits = max(sizes) - 1 <= min(np.iinfo(dtype).max for dtype in types)
    if not tensors:
        dtype = types.pop() if fits else np.dtype(np.int64)
        with numpy_refusals(argument.operator, argument.field, argument.rule):
            whole = np.empty((*shape, len(arrays)), dtype)
            for number, array in enumerate(arrays):
                whole[..., number] = array
        return IndexNumbers.of(whole)
    if len(types) > 1 or not (fits or len(tensors) == len(arrays)):
        names = ", ".join(str(array.dtype) for array in arrays)
        refuse_index(argument, f"has arrays of {names}, which must be of one data type in tensors")
    (dtype,) = types
    parts = [
        IndexNumbers.of(
            np.where(array < 0, array + size, array).astype(dtype)  # the type may be unsigned
            if isinstance(array, np.ndarray)
            else array
        )
        for array, size in zip(arrays, sizes, strict=True)
    ]
    views = tuple([part.tensor.view.broadcast(shape) for part in parts])
    plan = stack_indices[views, dtype.itemsize]
    return IndexNumbers.of(tensors[0]._run(plan, [part.memory for part in parts], dtype))
