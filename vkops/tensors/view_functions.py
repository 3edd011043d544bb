"""Functions that give views, which move no data, named as in NumPy and the array API.

Arrays are sent to ``device``, or to the default device; what they do is said by the methods of
``Tensor`` of the same names.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy.typing as npt

from vkops.arguments.values import Place
from vkops.errors import show
from vkops.tensors.index_arrays import common_shape
from vkops.tensors.operations import as_tensor, as_tensors
from vkops.tensors.shape_arguments import one_axis, refuse
from vkops.tensors.tensor import DeviceLike, Tensor


def broadcast_to(
    x: Any, /, shape: int | Sequence[int], *, device: DeviceLike | None = None
) -> Tensor:
    """A view of ``x`` of another shape, repeating elements; see ``Tensor.broadcast_to``.

    >>> import vkops
    >>> vkops.broadcast_to([1, 2], (2, 2)).numpy().tolist()
    [[1, 2], [1, 2]]
    """
    return as_tensor("BROADCAST_TO", x, device).broadcast_to(shape)


def expand_dims(
    x: Any, /, axis: int | Sequence[int], *, device: DeviceLike | None = None
) -> Tensor:
    """A view of ``x`` with new dimensions of size 1; see ``Tensor.expand_dims``.

    >>> import vkops
    >>> vkops.expand_dims([1, 2], 1).shape
    (2, 1)
    """
    return as_tensor("EXPAND_DIMS", x, device).expand_dims(axis)


def flip(
    x: Any, /, axis: int | Sequence[int] | None = None, *, device: DeviceLike | None = None
) -> Tensor:
    """A view of ``x`` in reverse order along some axes, or all; see ``Tensor.flip``.

    >>> import vkops
    >>> vkops.flip([[1, 2], [3, 4]], 1).numpy().tolist()
    [[2, 1], [4, 3]]
    """
    return as_tensor("FLIP", x, device).flip(axis)


def permute_dims(x: Any, /, axes: Sequence[int], *, device: DeviceLike | None = None) -> Tensor:
    """A view of ``x`` with its dimensions in another order; see ``Tensor.transpose``.

    >>> import vkops
    >>> vkops.permute_dims([[1, 2, 3]], (1, 0)).shape
    (3, 1)
    """
    return as_tensor("TRANSPOSE", x, device).transpose(axes)


def squeeze(
    x: Any, /, axis: int | Sequence[int] | None = None, *, device: DeviceLike | None = None
) -> Tensor:
    """A view of ``x`` without some dimensions of size 1, or all; see ``Tensor.squeeze``.

    >>> import vkops
    >>> vkops.squeeze([[[1, 2]]], 0).shape
    (1, 2)
    """
    return as_tensor("SQUEEZE", x, device).squeeze(axis)


def unstack(x: Any, /, axis: int = 0, *, device: DeviceLike | None = None) -> tuple[Tensor, ...]:
    """Views of ``x`` at each index of an axis, without that axis.

    Raises:
        InvalidDescError: axis out of range (ARRAY-01).

    >>> import vkops
    >>> [part.numpy().tolist() for part in vkops.unstack([[1, 2], [3, 4]], 1)]
    [[1, 3], [2, 4]]
    """
    tensor = as_tensor("UNSTACK", x, device)
    before = (slice(None),) * one_axis("UNSTACK", axis, tensor.ndim)
    indices = ((*before, place) for place in range(tensor.shape[len(before)]))
    return tuple([tensor[index] for index in indices])


def transpose(
    x: Any, /, axes: Sequence[int] | None = None, *, device: DeviceLike | None = None
) -> Tensor:
    """A view of ``x`` with its dimensions in another order, or reversed; see ``Tensor.transpose``.

    >>> import vkops
    >>> vkops.transpose([[1, 2, 3]]).shape
    (3, 1)
    """
    return as_tensor("TRANSPOSE", x, device).transpose(axes)


def matrix_transpose(x: Any, /, *, device: DeviceLike | None = None) -> Tensor:
    """A view of ``x`` with its last two dimensions exchanged; see ``Tensor.mT``.

    >>> import vkops
    >>> vkops.matrix_transpose([[1, 2], [3, 4]]).tolist()
    [[1, 3], [2, 4]]
    """
    return as_tensor("MATRIX_TRANSPOSE", x, device).mT


def moveaxis(
    x: Any,
    source: int | Sequence[int],
    destination: int | Sequence[int],
    /,
    *,
    device: DeviceLike | None = None,
) -> Tensor:
    """A view of ``x`` with some dimensions at other places; see ``Tensor.moveaxis``.

    >>> import vkops
    >>> vkops.moveaxis([[[1, 2, 3]]], -1, 0).shape
    (3, 1, 1)
    """
    return as_tensor("MOVEAXIS", x, device).moveaxis(source, destination)


def swapaxes(x: Any, /, axis1: int, axis2: int, *, device: DeviceLike | None = None) -> Tensor:
    """A view of ``x`` with two dimensions exchanged; see ``Tensor.swapaxes``.

    >>> import vkops
    >>> vkops.swapaxes([[[1, 2, 3]]], 0, 2).shape
    (3, 1, 1)
    """
    return as_tensor("SWAPAXES", x, device).swapaxes(axis1, axis2)


def rot90(
    x: Any, /, k: int = 1, axes: Sequence[int] = (0, 1), *, device: DeviceLike | None = None
) -> Tensor:
    """A view of ``x`` turned ``k`` times by 90 degrees; see ``Tensor.rot90``.

    >>> import vkops
    >>> vkops.rot90([[1, 2], [3, 4]]).tolist()
    [[2, 4], [1, 3]]
    """
    return as_tensor("ROT90", x, device).rot90(k, axes)


def reshape(
    x: Any,
    /,
    shape: int | Sequence[int],
    order: str = "C",
    *,
    copy: bool | None = None,
    device: DeviceLike | None = None,
) -> Tensor:
    """The elements of ``x`` under another shape; a view where possible; see ``Tensor.reshape``.

    >>> import vkops
    >>> vkops.reshape([1, 2, 3, 4], (2, -1)).tolist()
    [[1, 2], [3, 4]]
    """
    return as_tensor("RESHAPE", x, device).reshape(shape, order=order, copy=copy)


def ravel(x: Any, /, order: str = "C", *, device: DeviceLike | None = None) -> Tensor:
    """The elements of ``x`` in one dimension; a view where possible; see ``Tensor.ravel``.

    >>> import vkops
    >>> vkops.ravel([[1, 2], [3, 4]], "F").tolist()
    [1, 3, 2, 4]
    """
    return as_tensor("RAVEL", x, device).ravel(order)


def atleast_1d(*arrays: Any, device: DeviceLike | None = None) -> Any:
    """Views with at least one dimension; of several arrays, a tuple of them.

    >>> import vkops
    >>> vkops.atleast_1d(5).shape
    (1,)
    """
    return _at_least(1, arrays, device)


def atleast_2d(*arrays: Any, device: DeviceLike | None = None) -> Any:
    """Views with at least two dimensions, new ones in front; of several arrays, a tuple of them.

    >>> import vkops
    >>> vkops.atleast_2d([1, 2]).shape
    (1, 2)
    """
    return _at_least(2, arrays, device)


def atleast_3d(*arrays: Any, device: DeviceLike | None = None) -> Any:
    """Views with at least three dimensions; of several arrays, a tuple of them.

    As in NumPy, the new dimensions of an array of one are around its own, of one of two behind.

    >>> import vkops
    >>> vkops.atleast_3d([1, 2]).shape
    (1, 2, 1)
    """
    return _at_least(3, arrays, device)


def _at_least(rank: int, arrays: Sequence[Any], device: DeviceLike | None) -> Any:
    found = tuple([of_rank(x, rank) for x in as_tensors(f"ATLEAST_{rank}D", arrays, device)])
    return found[0] if len(found) == 1 else found


def of_rank(x: Tensor, rank: int) -> Tensor:
    """A view with at least ``rank`` dimensions, as ``atleast_1d`` and the others return it."""
    if x.ndim >= rank:
        return x
    if rank == 3 and x.ndim:
        return x.expand_dims((0, 2) if x.ndim == 1 else 2)
    return x.reshape((1,) * (rank - x.ndim) + x.shape)


def broadcast_arrays(*arrays: Any, device: DeviceLike | None = None) -> list[Tensor]:
    """Read-only views of arrays, repeated to the one shape that all can be broadcast to.

    Raises:
        InvalidDescError: there is no such shape (ARRAY-04).

    >>> import vkops
    >>> [x.tolist() for x in vkops.broadcast_arrays([1, 2], [[3], [4]])]
    [[[1, 2], [1, 2]], [[3, 3], [4, 4]]]
    """
    found = as_tensors("BROADCAST_ARRAYS", arrays, device)
    place = Place("BROADCAST_ARRAYS", "arrays", "ARRAY-04")
    shape = common_shape([x.shape for x in found], place)
    return [x.broadcast_to(shape) for x in found]


def meshgrid(*arrays: Any, indexing: str = "xy", device: DeviceLike | None = None) -> list[Tensor]:
    """Read-only views of arrays of one dimension, each repeated along the dimensions of the others.

    Raises:
        InvalidDescError: more than one dimension (ARRAY-18), or an ``indexing`` other than ``"xy"``
            and ``"ij"`` (ARRAY-15).

    >>> import vkops
    >>> [x.tolist() for x in vkops.meshgrid([1, 2], [3, 4, 5], indexing="ij")]
    [[[1, 1, 1], [2, 2, 2]], [[3, 4, 5], [3, 4, 5]]]
    """
    if not (isinstance(indexing, str) and indexing in ("xy", "ij")):
        refuse("MESHGRID", "indexing", f"got {show(indexing)}, must be 'xy' or 'ij'", "ARRAY-15")
    found = as_tensors("MESHGRID", arrays, device)
    for i, x in enumerate(found):
        if x.ndim > 1:
            refuse("MESHGRID", f"arrays[{i}]", f"has rank {x.ndim}, must be 1", "ARRAY-18")
    axes = list(range(len(found)))
    if indexing == "xy":
        axes[:2] = axes[1::-1]
    shape = tuple([found[axis].size for axis in axes])
    return [
        x.reshape([x.size if i == axis else 1 for i in range(len(found))]).broadcast_to(shape)
        for axis, x in zip(axes, found, strict=True)
    ]


def astype(
    x: Any,
    dtype: npt.DTypeLike,
    /,
    *,
    copy: bool = True,
    device: DeviceLike | None = None,
) -> Tensor:
    """The elements of ``x`` converted by NumPy, on the host; see ``Tensor.astype``.

    >>> import vkops
    >>> vkops.astype([1.5, 2.5], "int8").tolist()
    [1, 2]
    """
    return as_tensor("ASTYPE", x, device).astype(dtype, copy=copy)


def copy(x: Any, /, *, device: DeviceLike | None = None) -> Tensor:
    """The elements of ``x`` in memory of their own, packed; see ``Tensor.copy``.

    >>> import vkops
    >>> vkops.copy([1, 2]).tolist()
    [1, 2]
    """
    return as_tensor("COPY", x, device).copy()
