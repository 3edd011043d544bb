"""Functions that read and write elements by arrays of indices, named as in NumPy.

Indices are arrays, lists or tensors of integers; negative ones count from the end. Indices in NumPy
arrays and lists are checked before anything runs. Indices in a tensor (of int32, int64, uint32 or
uint64) are not read back, so they are not checked: as in DirectML, an index that is out of range is
clamped where elements are read (the mode ``"clip"`` of ``numpy.take``, but negative indices still
count from the end), and skipped where elements are written.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from vkops.arguments.values import ArgumentName
from vkops.plan.view import View
from vkops.tensors import index_arrays
from vkops.tensors.array_plan import in_front, put_along, take_along
from vkops.tensors.elements import IndexedView, gather, write_indexed
from vkops.tensors.exchange import numpy_refusals
from vkops.tensors.index_arrays import IndexNumbers, IndexSource
from vkops.tensors.operations import as_tensor
from vkops.tensors.shape_arguments import check_shape, one_axis, refuse_index
from vkops.tensors.tensor import DeviceLike, Tensor, undefined


def take(x: Any, indices: Any, /, axis: int | None = None, *, device: DeviceLike = None) -> Tensor:
    """Copy the elements at some indices of an axis; without one, of the flat array.

    The axes of ``indices``, which may have any number of them, stand for the axis. In the array
    API, ``indices`` has one dimension, and only an ``x`` of one dimension needs no axis. Indices in
    arrays and lists are checked; indices in a tensor that are out of range are clamped.

    Raises:
        InvalidDescError: axis out of range (ARRAY-01), indices in an array or list that are out of
            range, or indices that are no integers (ARRAY-14), or too large a shape (ARRAY-03).
        OutOfDeviceMemoryError: the result does not fit, or more indices than a buffer can hold.

    >>> import vkops
    >>> vkops.take([[1, 2, 3], [4, 5, 6]], [2, -2], axis=1).numpy().tolist()
    [[3, 2], [6, 5]]
    """
    tensor = _on_device("TAKE", x, indices, device)
    if axis is not None:
        axis = one_axis("TAKE", axis, max(1, len(tensor.shape)))
    if axis is None or not tensor.shape:  # in NumPy, a scalar has the axis 0
        tensor, axis = tensor.reshape(-1), 0
    argument = ArgumentName("TAKE", "indices", "ARRAY-14")
    return taken(tensor, checked_indices(tensor, indices, axis, argument), axis, argument)


def taken(tensor: Tensor, indices: IndexSource, axis: int, argument: ArgumentName) -> Tensor:
    """Copy the elements at indices of an axis that ``checked_indices`` returned."""
    numbers = index_arrays.tuples([indices], [tensor.shape[axis]], argument)
    view = IndexedView(in_front(tensor.placed()[1], [axis]), numbers, axis)
    return gather(tensor, view, argument.operator)


def take_along_axis(
    x: Any, indices: Any, /, axis: int | None = -1, *, device: DeviceLike = None
) -> Tensor:
    """Copy one element for each index, which says its place along ``axis``.

    ``indices`` has as many dimensions as ``x``; beside the axis, the two are broadcast together.
    Without an axis (None), ``x`` is flat. Indices in arrays and lists are checked; indices in a
    tensor that are out of range are clamped.

    Raises:
        InvalidDescError: axis out of range (ARRAY-01), indices in an array or list that are out of
            range, indices that are no integers, or shapes that cannot be broadcast (ARRAY-14).
        OutOfDeviceMemoryError: the result does not fit, or more indices than a buffer can hold.

    >>> import vkops
    >>> vkops.take_along_axis([[1, 2, 3], [4, 5, 6]], [[2], [0]], axis=1).numpy().tolist()
    [[3], [4]]
    """
    tensor = _on_device("TAKE_ALONG_AXIS", x, indices, device)
    if axis is None:
        tensor, axis = tensor.reshape(-1), 0
    axis = one_axis("TAKE_ALONG_AXIS", axis, tensor.ndim)
    view, (memory, numbers) = _along("TAKE_ALONG_AXIS", tensor, indices, axis)
    plan = take_along[view, numbers, axis, tensor.dtype.itemsize]
    return tensor._run(plan, [tensor.placed()[0], memory], tensor.dtype)


def put_along_axis(x: Tensor, indices: Any, values: Any, axis: int | None) -> None:
    """Write one element of a tensor for each index, which says its place along ``axis``.

    ``indices`` has as many dimensions as ``x``; beside the axis, the two are broadcast together.
    Without an axis (None), ``x`` is flat. ``values`` are broadcast to the shape of the indices, and
    converted as in an assignment. Where several are written to one element, any of them remains.
    Indices in arrays and lists are checked; indices in a tensor that are out of range are skipped.

    Raises:
        InvalidDescError: axis out of range (ARRAY-01), ``x`` is not a tensor, indices in an array
            or list that are out of range, indices that are no integers, or shapes that cannot be
            broadcast (ARRAY-14), values that cannot be broadcast or converted, or a read-only view
            (ARRAY-10).
        OutOfDeviceMemoryError: no memory to send the values, or more indices than a buffer can
            hold.

    >>> import vkops
    >>> x = vkops.tile(0, (2, 3))
    >>> vkops.put_along_axis(x, [[2], [0]], [[5], [6]], axis=1)
    >>> x.numpy().tolist()
    [[0, 0, 5], [6, 0, 0]]
    """
    name = "PUT_ALONG_AXIS"
    if not isinstance(x, Tensor):
        raise ArgumentName(name, "x", "ARRAY-14").wrong_kind(x, "a Tensor")
    x._check_writable(name)
    target = x.reshape(-1) if axis is None else x
    along = one_axis(name, 0 if axis is None else axis, target.ndim)
    view, numbers = _along(name, target, indices, along)
    shape = numbers.tensor.view.sizes
    source = target._assigned(name, shape, values)
    write_indexed(target, source, put_along, (view, numbers, along), shape)
    if target.placed()[0] is not x.placed()[0]:  # the flat tensor is a copy, not a view
        x[...] = target.reshape(x.shape)


def _on_device(name: str, x: Any, indices: Any, device: DeviceLike) -> Tensor:
    """Return the tensor to read; an array is sent to the device of the indices."""
    if device is None and isinstance(indices, Tensor) and not isinstance(x, Tensor):
        device = indices.device
    return as_tensor(name, x, device)


def checked_indices(tensor: Tensor, value: Any, axis: int, argument: ArgumentName) -> IndexSource:
    """Return indices of an axis, of which those in arrays and lists are in range."""
    indices = index_arrays.as_indices(value, argument, tensor.device)
    index_arrays.check_range(indices, axis, tensor.shape[axis], argument)
    return indices


def _along(name: str, tensor: Tensor, indices: Any, axis: int) -> tuple[View, IndexNumbers]:
    """Return the view of a tensor that indices along an axis select from, and the indices.

    Both are broadcast to one shape, except for the axis of the view.
    """
    argument = ArgumentName(name, "indices", "ARRAY-14")
    positions = checked_indices(tensor, indices, axis, argument)
    if len(positions.shape) != tensor.ndim:
        refuse_index(argument, f"has rank {len(positions.shape)}, must be {tensor.ndim}, that of x")
    before, size, after = tensor.shape[:axis], tensor.shape[axis], tensor.shape[axis + 1 :]
    shape = index_arrays.common_shape([(*before, 1, *after), positions.shape], argument)
    check_shape(name, shape, max(8, tensor.dtype.itemsize))
    view = tensor.placed()[1].broadcast((*shape[:axis], size, *shape[axis + 1 :]))
    numbers = IndexNumbers.of(positions)
    return view, numbers.over(numbers.tensor.view.broadcast(shape))


def insert(
    x: Any, obj: Any, values: Any, /, axis: int | None = None, *, device: DeviceLike = None
) -> Tensor:
    """A copy with values before some indices of an axis; without one, of the flat array.

    As in NumPy, ``obj`` is an index, a slice, or a list or an array of indices, and ``values`` are
    converted and broadcast.

    Raises:
        InvalidDescError: axis out of range (ARRAY-01), indices that NumPy does not accept
            (ARRAY-14), or values that cannot be converted or broadcast (ARRAY-10).

    >>> import vkops
    >>> vkops.insert([[1, 2], [3, 4]], 1, 9, axis=1).tolist()
    [[1, 9, 2], [3, 9, 4]]
    """
    tensor, axis = _flat_or_axis("INSERT", x, axis, device)
    size = tensor.shape[axis]
    if not isinstance(values, Tensor):
        with numpy_refusals("INSERT", "values"):
            values = np.array(values, tensor.dtype)
    values = values.reshape((1,) * (tensor.ndim - values.ndim) + values.shape)
    obj = obj.numpy() if isinstance(obj, Tensor) else obj
    with numpy_refusals("INSERT", "obj", "ARRAY-14"):
        count = np.insert(np.arange(size), obj, 0).size - size
        if not isinstance(obj, slice) and np.ndim(obj) == 0:
            values = np.moveaxis(values, 0, axis)
        count = values.shape[axis] if count == 1 else count
        numbers = np.insert(np.full(size, -1), obj, np.arange(count))
    order = np.argsort(numbers, kind="stable")
    shape = (*tensor.shape[:axis], size + count, *tensor.shape[axis + 1 :])
    result = undefined("INSERT", shape, tensor.dtype, tensor.device)
    for indices, part in ((order[:size], tensor), (order[size:], values)):
        result[(slice(None),) * axis + (indices,)] = part
    return result


def delete(x: Any, obj: Any, /, axis: int | None = None, *, device: DeviceLike = None) -> Tensor:
    """A copy without some indices of an axis, as in ``insert``; without one, of the flat array.

    >>> import vkops
    >>> vkops.delete([1, 2, 3, 4], [0, -1]).tolist()
    [2, 3]
    """
    tensor, axis = _flat_or_axis("DELETE", x, axis, device)
    obj = obj.numpy() if isinstance(obj, Tensor) else obj
    with numpy_refusals("DELETE", "obj", "ARRAY-14"):
        kept = np.delete(np.arange(tensor.shape[axis]), obj)
    return take(tensor, kept, axis)


def _flat_or_axis(name: str, x: Any, axis: Any, device: DeviceLike) -> tuple[Tensor, int]:
    tensor = as_tensor(name, x, device)
    return (tensor.ravel(), 0) if axis is None else (tensor, one_axis(name, axis, tensor.ndim))
