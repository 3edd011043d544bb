"""Functions of NumPy that are short forms of others, with the arguments and errors of these."""

from __future__ import annotations

import builtins
from typing import Any

import numpy as np

from vkops.arguments.values import Place, integer, refuse
from vkops.tensors.creation import zeros_like
from vkops.tensors.exchange import DTypeLike, numpy_refusals
from vkops.tensors.manipulation import concat, split_at
from vkops.tensors.matrices import diag, eye
from vkops.tensors.operations import as_tensor, native
from vkops.tensors.rearrangement import tile
from vkops.tensors.selection import take
from vkops.tensors.shape_arguments import OneOrMore, one_axis, sizes_of
from vkops.tensors.tensor import DeviceLike, Tensor, undefined


def fliplr(x: Any, /, *, device: DeviceLike = None) -> Tensor:
    """``flip(x, 1)``, a view with the columns in reverse order."""
    return as_tensor("FLIPLR", x, device).flip(1)


def flipud(x: Any, /, *, device: DeviceLike = None) -> Tensor:
    """``flip(x, 0)``, a view with the rows in reverse order."""
    return as_tensor("FLIPUD", x, device).flip(0)


def rollaxis(x: Any, axis: int, start: int = 0, /, *, device: DeviceLike = None) -> Tensor:
    """A view with an axis moved to before the axis ``start``, which may be the rank."""
    tensor = as_tensor("ROLLAXIS", x, device)
    axis = one_axis("ROLLAXIS", axis, tensor.ndim)
    end = integer(start, Place("ROLLAXIS", "start", "ARRAY-01"))
    end = end if end == tensor.ndim else one_axis("ROLLAXIS", end, tensor.ndim, "start")
    return tensor.moveaxis(axis, end - (axis < end))


def hsplit(x: Any, indices_or_sections: OneOrMore, /, *, device: DeviceLike = None) -> list[Tensor]:
    """``numpy.split`` along the second dimension, or along the only one."""
    tensor = as_tensor("HSPLIT", x, device)
    return _split("HSPLIT", tensor, indices_or_sections, min(1, tensor.ndim - 1), 1)


def vsplit(x: Any, indices_or_sections: OneOrMore, /, *, device: DeviceLike = None) -> list[Tensor]:
    """``numpy.split`` along the first of at least two dimensions."""
    return _split("VSPLIT", as_tensor("VSPLIT", x, device), indices_or_sections, 0, 2)


def dsplit(x: Any, indices_or_sections: OneOrMore, /, *, device: DeviceLike = None) -> list[Tensor]:
    """``numpy.split`` along the third dimension."""
    return _split("DSPLIT", as_tensor("DSPLIT", x, device), indices_or_sections, 2, 3)


def _split(name: str, x: Tensor, at: OneOrMore, axis: int, rank: int) -> list[Tensor]:
    if x.ndim < rank:
        refuse(name, "x", f"has rank {x.ndim}, must be at least {rank}", "ARRAY-01")
    return split_at(x, at, axis)


def append(x: Any, values: Any, /, axis: int | None = None, *, device: DeviceLike = None) -> Tensor:
    """``concat([x, values], axis)``; without an axis, of the flat arrays."""
    return concat([x, values], axis, device=device)


def insert(
    x: Any, obj: Any, values: Any, /, axis: int | None = None, *, device: DeviceLike = None
) -> Tensor:
    """A copy with values before some indices of an axis; without one, of the flat array.

    As in NumPy, ``obj`` is an index, a slice, or a list or an array of indices, and ``values`` are
    converted and broadcast.

    Raises:
        InvalidDescError: axis out of range (ARRAY-01), indices that NumPy refuses (ARRAY-14), or
            values that cannot be converted or broadcast (ARRAY-10).

    >>> import vkops
    >>> vkops.insert([[1, 2], [3, 4]], 1, 9, axis=1).tolist()
    [[1, 9, 2], [3, 9, 4]]
    """
    tensor, axis = _along("INSERT", x, axis, device)
    size = tensor.shape[axis]
    if not isinstance(values, Tensor):
        with numpy_refusals("INSERT", "values"):
            values = np.array(values, tensor.dtype)
    values = values.reshape((1,) * (tensor.ndim - values.ndim) + values.shape)
    obj = obj.numpy() if isinstance(obj, Tensor) else obj
    with numpy_refusals("INSERT", "obj", "ARRAY-14"):
        count = np.insert(np.arange(size), obj, 0).size - size
        if not isinstance(obj, builtins.slice) and np.ndim(obj) == 0:
            values = np.moveaxis(values, 0, axis)
        count = values.shape[axis] if count == 1 else count
        numbers = np.insert(np.full(size, -1), obj, np.arange(count))
    order = np.argsort(numbers, kind="stable")
    shape = (*tensor.shape[:axis], size + count, *tensor.shape[axis + 1 :])
    result = undefined("INSERT", shape, tensor.dtype, tensor.device)
    for indices, part in ((order[:size], tensor), (order[size:], values)):
        result[(builtins.slice(None),) * axis + (indices,)] = part
    return result


def delete(x: Any, obj: Any, /, axis: int | None = None, *, device: DeviceLike = None) -> Tensor:
    """A copy without some indices of an axis, as in ``insert``; without one, of the flat array.

    >>> import vkops
    >>> vkops.delete([1, 2, 3, 4], [0, -1]).tolist()
    [2, 3]
    """
    tensor, axis = _along("DELETE", x, axis, device)
    obj = obj.numpy() if isinstance(obj, Tensor) else obj
    with numpy_refusals("DELETE", "obj", "ARRAY-14"):
        kept = np.delete(np.arange(tensor.shape[axis]), obj)
    return take(tensor, kept, axis)


def _along(name: str, x: Any, axis: Any, device: DeviceLike) -> tuple[Tensor, int]:
    tensor = as_tensor(name, x, device)
    return (tensor.ravel(), 0) if axis is None else (tensor, one_axis(name, axis, tensor.ndim))


def resize(x: Any, new_shape: OneOrMore, /, *, device: DeviceLike = None) -> Tensor:
    """The elements, row by row, under another shape: repeated as often as needed, or cut off.

    >>> import vkops
    >>> vkops.resize([1, 2, 3], (2, 2)).tolist()
    [[1, 2], [3, 1]]
    """
    tensor = as_tensor("RESIZE", native(x), device)
    shape = sizes_of("RESIZE", new_shape, tensor.itemsize)
    wanted = int(np.prod(shape, dtype=object))
    if not (tensor.size and wanted):
        return zeros_like(tensor, shape=shape)
    return tile(tensor.ravel(), -(-wanted // tensor.size))[:wanted].reshape(shape)


def diagflat(x: Any, /, k: int = 0, *, device: DeviceLike = None) -> Tensor:
    """``diag`` of the flat array."""
    return diag(as_tensor("DIAGFLAT", x, device).ravel(), k)


def identity(n: int, dtype: DTypeLike = None, /, *, device: DeviceLike = None) -> Tensor:
    """``eye(n)``, a square matrix."""
    return eye(n, dtype=dtype, device=device)
