"""Functions that methods of ``Tensor`` call to select, write and print elements."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from vkops.arguments.basic_index import ErrorFormats, basic_index
from vkops.arguments.values import ArgumentName
from vkops.errors import CONVERSION_ERRORS, from_builtin, import_late
from vkops.gpu.kernels.choice import MAX_DIMS
from vkops.gpu.run.buffer import Buffer, HostBuffer, send
from vkops.plan.execute import packed_bytes
from vkops.plan.region import MAX_TERMS
from vkops.plan.size_limits import MAX_DIMENSIONS
from vkops.plan.view import Ints, View
from vkops.tensors.array_plan import (
    assignment,
    gathering,
    in_front,
    memoized,
    take_indices,
)
from vkops.tensors.device_array import A, DeviceArray, strided
from vkops.tensors.index_arrays import IndexNumbers, IndexSource, as_indices, check_range, tuples
from vkops.tensors.shape_arguments import check_shape, packed, refuse_index

# -- selecting -------------------------------------------------------------------------------------

INDEX = ArgumentName("", "index", "ARRAY-09")
_TEXTS = ErrorFormats(  # NumPy's
    ellipses="an index can only have a single ellipsis ('...')",
    too_many="too many indices for array: array is {rank}-dimensional, but {count} were indexed",
    outside="index {index} is out of bounds for axis {axis} with size {size}",
    zero_step="slice step cannot be zero",
)


class _Array(NamedTuple):
    """An array in an index, as indices of an axis; ``booleans``: the length of a Boolean one."""

    indices: IndexSource
    booleans: int | None = None
    is_new: bool = False
    """Whether it selects along a new axis of size 1, as a Boolean without dimensions does."""


class IndexedView(NamedTuple):
    """The elements that arrays of indices select.

    The last axis of ``numbers`` has an index for each of the first axes of ``view``. Its other axes
    become axes of the result, at ``axis``. Around them are the remaining axes of ``view``.
    """

    view: View
    numbers: IndexNumbers
    axis: int

    @property
    def shape(self) -> Ints:
        """The shape of the result."""
        *shared, count = self.numbers.tensor.view.sizes
        rest = self.view.sizes[count:]
        return (*rest[: self.axis], *shared, *rest[self.axis :])


def select(tensor: DeviceArray, index: Any) -> View | IndexedView:
    """Return the view that a basic index selects, or the indexed view of an index with arrays."""
    items = index if isinstance(index, tuple) else (index,)
    parts = [part for item in items for part in _parts(tensor, item)]
    arrays = {i: part for i, part in enumerate(parts) if isinstance(part, _Array)}
    basic = tuple([
        part if i not in arrays else None if arrays[i].is_new else slice(None)
        for i, part in enumerate(parts)
    ])  # fmt: skip
    view = _basic(tensor, basic)
    if not arrays:
        return view
    if len(arrays) > MAX_TERMS:
        refuse_index(INDEX, f"has {len(arrays)} arrays, must be {MAX_TERMS} at most")
    axes = [_axis(basic, i, len(view.sizes)) for i in arrays]
    for axis, (indices, booleans, _) in zip(axes, arrays.values(), strict=True):
        size = view.sizes[axis]
        if booleans not in (None, 0, size):  # as in NumPy, 0 Booleans fit any axis
            message = f"has Booleans for {booleans} indices of axis {axis} of size {size}"
            refuse_index(INDEX, message)
        check_range(indices, axis, size, INDEX)
    per_axis = [part.indices for part in arrays.values()]
    numbers = tuples(per_axis, [view.sizes[axis] for axis in axes], INDEX)
    # If there are arrays, NumPy treats integers as arrays, too.
    advanced = [i for i, part in enumerate(parts) if isinstance(part, (_Array, int))]
    adjacent = advanced[-1] - advanced[0] < len(advanced)
    return IndexedView(in_front(view, axes), numbers, axes[0] if adjacent else 0)


def gather(tensor: A, selected: IndexedView, name: str = "") -> A:
    """Copy the elements of an indexed view."""
    view, (memory, numbers), axis = selected
    check_shape(name, selected.shape, tensor.dtype.itemsize)
    plan = take_indices[view, numbers, selected.shape, axis, tensor.dtype.itemsize]
    return tensor._run(plan, [tensor.placed()[0], memory], tensor.dtype)


def _parts(tensor: DeviceArray, part: Any) -> Sequence[Any]:
    """Return a part of an index unchanged, or as arrays that each select along one axis."""
    if part is None or part is ... or isinstance(part, slice):
        return (part,)
    if isinstance(part, (int, np.integer)) and not isinstance(part, bool):
        return (int(part),)
    indices = as_indices(part, INDEX, tensor.device, masks=True)
    if indices.dtype == bool:
        if not indices.shape:
            return (_Array(np.zeros(int(bool(indices)), np.int64), is_new=True),)
        if isinstance(indices, np.ndarray):
            return list(map(_Array, indices.nonzero(), indices.shape))
        places = import_late("vkops.kernels").nonzero(indices, dtype="int32")
        return list(map(_Array, places, indices.shape))
    if isinstance(indices, np.ndarray) and not indices.ndim:
        return (int(indices),)
    return (_Array(indices),)


def _basic(tensor: DeviceArray, parts: Sequence[Any]) -> View:
    _, view = tensor.placed()
    try:
        chosen = basic_index(tensor.shape, parts, _TEXTS)
        rank = sum(not isinstance(part, int) for part in chosen)
        if rank > MAX_DIMENSIONS:
            limit = f"number of dimensions must be within [0, {MAX_DIMENSIONS}]"
            raise IndexError(f"{limit}, indexing result would have {rank}")
    except CONVERSION_ERRORS as error:
        raise from_builtin(error, "", "index", "ARRAY-09", "NumPy says: ") from error
    return view.select(chosen)


def _axis(parts: Sequence[Any], number: int, rank: int) -> int:
    """Return the axis of a view with ``rank`` axes that a slice of a basic index yields."""
    before, after = (
        sum(not isinstance(part, int) for part in side) for side in (parts[:number], parts[number:])
    )
    return rank - after if any(part is ... for part in parts[:number]) else before


# -- writing ---------------------------------------------------------------------------------------


def begin_to_write(target: DeviceArray, source: DeviceArray | npt.NDArray[Any]) -> int:
    """Write as ``write`` does; return the submission that reads a pinned array, or 0."""
    base, view = target.placed()
    buffer = base.buffer
    is_whole = view.is_contiguous and source.shape == target.shape and target.size > 0
    if isinstance(source, np.ndarray) and isinstance(buffer, Buffer) and is_whole:
        number = send(buffer, view.offset * target.dtype.itemsize, packed_bytes(source))
        if number is not None:
            return number
    write(target, source)
    return 0


def write(target: DeviceArray, source: DeviceArray | npt.NDArray[Any]) -> None:
    """Write an array on the host if the memory is visible to it; write tensors on the device."""
    base, view = target.placed()
    buffer = base.buffer
    if not target.size or buffer is None:
        return
    itemsize = target.dtype.itemsize
    by_host = isinstance(source, np.ndarray) or isinstance(buffer, HostBuffer)
    memory = buffer.visible if by_host else None
    if memory is not None:
        visible = strided(memory, target.dtype, view)
        array = np.asarray(source)
        if np.may_share_memory(visible, array):  # NumPy copies some overlapping views incorrectly
            array = array.copy()
        buffer.settle()
        np.copyto(visible, array)
        buffer.flush()
        return
    if isinstance(source, np.ndarray) and view.is_contiguous and source.shape == target.shape:
        buffer.write(packed_bytes(source), view.offset * itemsize)
        return
    origin, read = _readable(source, target.shape, buffer)
    if len(view.sizes) > MAX_DIMS:  # in the order of the target's memory, these have fewer parts
        axes = range(len(view.sizes))
        backwards = tuple([axis for axis in axes if view.strides[axis] < 0])
        order = tuple(sorted(axes, key=lambda axis: -abs(view.strides[axis])))
        view, read = (each.flip(backwards).permute(order) for each in (view, read))
        if gathered := gathering(read, itemsize):
            plan, places = gathered
            origin, read = target._run(plan, [origin, places], target.dtype), packed(read.sizes)
    base._write_plan(assignment[read, view, base.nbytes, itemsize], [origin])


def write_indexed(
    target: DeviceArray,
    source: DeviceArray | npt.NDArray[Any],
    plans: memoized,
    selected: tuple[View, IndexNumbers, int],
    shape: Ints,
) -> None:
    """Write a source of this shape to selected elements, by one of the plans of ``array_plan``."""
    base, _ = target.placed()
    if 0 in shape:
        return
    origin, read = _readable(source, shape, base.buffer)
    view, (memory, numbers), axis = selected
    if not isinstance(memory, np.ndarray) and memory.buffer is base.buffer:
        memory = memory.copy()
    plan = plans[read, view, numbers, axis, base.nbytes, target.dtype.itemsize]
    base._write_plan(plan, [origin, memory])


def write_where(target: Any, mask: DeviceArray, source: Any) -> None:
    """Write a scalar where a mask of the tensor's shape is true, without waiting."""
    bits = f"uint{8 * target.dtype.itemsize}"
    target, source = target.view(bits), source.view(bits)
    import_late("vkops.kernels").where(mask, source, target, out=target)


def has_masked_writes(target: DeviceArray, mask: Any) -> bool:
    """Whether ``write_where`` can write to a tensor with this mask on its device."""
    itemsize = target.dtype.itemsize
    return (
        isinstance(mask, DeviceArray)
        and mask.dtype == bool
        and mask.shape == target.shape
        and target.size > 0
        and (itemsize < 8 or (itemsize == 8 and "shaderInt64" in target.device.features))
    )


def _readable(
    source: DeviceArray | npt.NDArray[Any], shape: Ints, target: Buffer | HostBuffer | None
) -> tuple[Any, View]:
    """Return a source's memory, or that of a copy if it is the target's, and a broadcast view."""
    origin: Any = source
    read = packed(source.shape)
    if not isinstance(source, np.ndarray):
        is_target = source.placed()[0]._buffer is target
        origin, read = (source.copy() if is_target else source).placed()
    return origin, read.with_rank(len(shape)).broadcast(shape)


# -- printing --------------------------------------------------------------------------------------

MAX_SHOWN = 10_000
"""The number of elements that are read for an abbreviated text of a tensor."""

_NAME = "vkops.Tensor("


def describe(tensor: DeviceArray) -> str:
    """Return the text, with as many elements as NumPy's print options allow; only these are read.

    Instead of the elements, the text has ``...`` if they cannot be read now, as in a signal
    handler, or if NumPy cannot print them: dates without a unit, and text that is not initialized.
    """
    options = np.get_printoptions()
    is_short = tensor.size <= options["threshold"]
    edge = tensor.size if is_short else options["edgeitems"]
    try:
        values = _values(tensor, edge, 0 if not is_short else tensor.size)
    except CONVERSION_ERRORS:  # also a DeviceError
        values = "..."
    details = [f"dtype={tensor.dtype}", f"device={tensor.device.info.label})"]
    if not (tensor.size and is_short) or values == "...":
        details.insert(0, f"shape={tensor.shape}")
    end = ", ".join(details)
    width = len(_NAME + values) - values.rfind("\n") - 1 + len(end)
    between = " " if width < options["linewidth"] else "\n" + " " * len(_NAME)
    return f"{_NAME}{values},{between}{end}"


def _values(tensor: DeviceArray, edge: int, threshold: int) -> str:
    """Return the text of the values, with only ``edge`` values at each end of longer axes."""
    maximum = 2 * edge + 1  # NumPy leaves out the one in the middle
    long = [axis for axis, size in enumerate(tensor.shape) if size > maximum]
    if len(long) > MAX_TERMS or (
        long and prod(min(size, maximum) for size in tensor.shape) > MAX_SHOWN
    ):
        return "..."
    array = _ends(tensor, long, edge)
    return np.array2string(
        array, separator=", ", prefix=_NAME, threshold=threshold, edgeitems=edge, suffix=","
    )


def _ends(tensor: DeviceArray, long: list[int], edge: int) -> npt.NDArray[Any]:
    """Return the elements at both ends of long axes and one between, by one dispatch."""
    if not long:
        return tensor.numpy()
    places = [np.r_[: edge + 1, tensor.shape[axis] - edge : tensor.shape[axis]] for axis in long]
    numbers = tuples(np.ix_(*places), [tensor.shape[axis] for axis in long], INDEX)
    gathered = gather(tensor, IndexedView(in_front(tensor.placed()[1], long), numbers, 0))
    return np.moveaxis(gathered.numpy(), range(len(long)), long)
