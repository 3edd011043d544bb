"""Functions that call a method of ``Tensor``, or return views, named as in NumPy and the array API.

Arrays are sent to ``device``, or to the default device.
"""

from __future__ import annotations

from collections.abc import Sequence
from inspect import cleandoc
from typing import Any

import numpy.typing as npt

from vkops.arguments.values import ArgumentName, integer, refuse
from vkops.errors import show
from vkops.tensors.index_arrays import common_shape
from vkops.tensors.operations import as_tensor, as_tensors
from vkops.tensors.shape_arguments import OneOrMore, one_axis
from vkops.tensors.tensor import DeviceLike, Tensor

# -- methods ---------------------------------------------------------------------------------------


def astype(
    x: Any, dtype: npt.DTypeLike, /, *, copy: bool = True, device: DeviceLike = None
) -> Tensor:
    return as_tensor("ASTYPE", x, device).astype(dtype, copy=copy)


def broadcast_to(x: Any, /, shape: OneOrMore, *, device: DeviceLike = None) -> Tensor:
    return as_tensor("BROADCAST_TO", x, device).broadcast_to(shape)


def copy(x: Any, /, *, device: DeviceLike = None) -> Tensor:
    return as_tensor("COPY", x, device).copy()


def diagonal(
    x: Any, /, offset: int = 0, axis1: int = 0, axis2: int = 1, *, device: DeviceLike = None
) -> Tensor:
    return as_tensor("DIAGONAL", x, device).diagonal(offset, axis1, axis2)


def expand_dims(x: Any, /, axis: OneOrMore, *, device: DeviceLike = None) -> Tensor:
    return as_tensor("EXPAND_DIMS", x, device).expand_dims(axis)


def flip(x: Any, /, axis: OneOrMore | None = None, *, device: DeviceLike = None) -> Tensor:
    return as_tensor("FLIP", x, device).flip(axis)


def moveaxis(
    x: Any, source: OneOrMore, destination: OneOrMore, /, *, device: DeviceLike = None
) -> Tensor:
    return as_tensor("MOVEAXIS", x, device).moveaxis(source, destination)


def permute_dims(x: Any, /, axes: Sequence[int], *, device: DeviceLike = None) -> Tensor:
    return as_tensor("TRANSPOSE", x, device).transpose(axes)


def ravel(x: Any, /, order: str = "C", *, device: DeviceLike = None) -> Tensor:
    return as_tensor("RAVEL", x, device).ravel(order)


def reshape(
    x: Any,
    /,
    shape: OneOrMore,
    order: str = "C",
    *,
    copy: bool | None = None,
    device: DeviceLike = None,
) -> Tensor:
    return as_tensor("RESHAPE", x, device).reshape(shape, order=order, copy=copy)


def rot90(
    x: Any, /, k: int = 1, axes: Sequence[int] = (0, 1), *, device: DeviceLike = None
) -> Tensor:
    return as_tensor("ROT90", x, device).rot90(k, axes)


def squeeze(x: Any, /, axis: OneOrMore | None = None, *, device: DeviceLike = None) -> Tensor:
    return as_tensor("SQUEEZE", x, device).squeeze(axis)


def swapaxes(x: Any, /, axis1: int, axis2: int, *, device: DeviceLike = None) -> Tensor:
    return as_tensor("SWAPAXES", x, device).swapaxes(axis1, axis2)


def transpose(x: Any, /, axes: Sequence[int] | None = None, *, device: DeviceLike = None) -> Tensor:
    return as_tensor("TRANSPOSE", x, device).transpose(axes)


def _document(function: Any) -> None:
    """Give a function the docstring of its method."""
    name = "transpose" if function is permute_dims else function.__name__
    summary, _, details = cleandoc(getattr(Tensor, name).__doc__).partition("\n\n")
    about = (
        f"``Tensor.{name}`` of ``x``, a tensor or an array, which is sent to ``device``, or to the "
        "default device."
    )
    function.__doc__ = f"{summary}\n\n{about}\n\n{details}".rstrip()


METHOD_FUNCTIONS = (
    astype, broadcast_to, copy, diagonal, expand_dims, flip, moveaxis, permute_dims, ravel, reshape,
    rot90, squeeze, swapaxes, transpose,
)  # fmt: skip
"""The functions that only call a method; they have its docstring."""

for _function in METHOD_FUNCTIONS:
    _document(_function)


# -- other views -----------------------------------------------------------------------------------


def unstack(x: Any, /, axis: int = 0, *, device: DeviceLike = None) -> tuple[Tensor, ...]:
    """Views of ``x`` at each index of an axis, without that axis.

    Raises:
        InvalidDescError: axis out of range (ARRAY-01).

    >>> import vkops
    >>> [part.numpy().tolist() for part in vkops.unstack([[1, 2], [3, 4]], 1)]
    [[1, 3], [2, 4]]
    """
    tensor = as_tensor("UNSTACK", x, device)
    return tuple(tensor.moveaxis(one_axis("UNSTACK", axis, tensor.ndim), 0))


def matrix_transpose(x: Any, /, *, device: DeviceLike = None) -> Tensor:
    """A view of ``x`` with its last two dimensions exchanged; see ``Tensor.mT``.

    >>> import vkops
    >>> vkops.matrix_transpose([[1, 2], [3, 4]]).tolist()
    [[1, 3], [2, 4]]
    """
    return as_tensor("MATRIX_TRANSPOSE", x, device).mT


def atleast_1d(*arrays: Any, device: DeviceLike = None) -> Any:
    """Views with at least one dimension; of several arrays, a tuple of them.

    >>> import vkops
    >>> vkops.atleast_1d(5).shape
    (1,)
    """
    return _at_least(1, arrays, device)


def atleast_2d(*arrays: Any, device: DeviceLike = None) -> Any:
    """Views with at least two dimensions, new ones in front; of several arrays, a tuple of them.

    >>> import vkops
    >>> vkops.atleast_2d([1, 2]).shape
    (1, 2)
    """
    return _at_least(2, arrays, device)


def atleast_3d(*arrays: Any, device: DeviceLike = None) -> Any:
    """Views with at least three dimensions; of several arrays, a tuple of them.

    As in NumPy, an array of shape (n,) gets the shape (1, n, 1), and (m, n) becomes (m, n, 1).

    >>> import vkops
    >>> vkops.atleast_3d([1, 2]).shape
    (1, 2, 1)
    """
    return _at_least(3, arrays, device)


def _at_least(rank: int, arrays: Sequence[Any], device: DeviceLike) -> Any:
    tensors = tuple([of_rank(x, rank) for x in as_tensors(f"ATLEAST_{rank}D", arrays, device)])
    return tensors[0] if len(tensors) == 1 else tensors


def of_rank(x: Tensor, rank: int) -> Tensor:
    """Return a view with at least ``rank`` dimensions, as ``atleast_1d`` and the others do."""
    if x.ndim >= rank:
        return x
    if rank == 3 and x.ndim:
        return x.expand_dims((0, 2) if x.ndim == 1 else 2)
    return x.reshape((1,) * (rank - x.ndim) + x.shape)


def broadcast_arrays(*arrays: Any, device: DeviceLike = None) -> list[Tensor]:
    """Read-only views of arrays, repeated to the one shape that all can be broadcast to.

    Raises:
        InvalidDescError: there is no such shape (ARRAY-04).

    >>> import vkops
    >>> [x.tolist() for x in vkops.broadcast_arrays([1, 2], [[3], [4]])]
    [[[1, 2], [1, 2]], [[3, 3], [4, 4]]]
    """
    tensors = as_tensors("BROADCAST_ARRAYS", arrays, device)
    argument = ArgumentName("BROADCAST_ARRAYS", "arrays", "ARRAY-04")
    shape = common_shape([x.shape for x in tensors], argument)
    return [x.broadcast_to(shape) for x in tensors]


def meshgrid(*arrays: Any, indexing: str = "xy", device: DeviceLike = None) -> list[Tensor]:
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
    tensors = as_tensors("MESHGRID", arrays, device)
    for i, x in enumerate(tensors):
        if x.ndim > 1:
            refuse("MESHGRID", f"arrays[{i}]", f"has rank {x.ndim}, must be 1", "ARRAY-18")
    axes = list(range(len(tensors)))
    if indexing == "xy":
        axes[:2] = axes[1::-1]
    shape = tuple([tensors[axis].size for axis in axes])
    return [
        x.reshape([x.size if i == axis else 1 for i in range(len(tensors))]).broadcast_to(shape)
        for axis, x in zip(axes, tensors, strict=True)
    ]


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
    end = integer(start, ArgumentName("ROLLAXIS", "start", "ARRAY-01"))
    end = end if end == tensor.ndim else one_axis("ROLLAXIS", end, tensor.ndim, "start")
    return tensor.moveaxis(axis, end - (axis < end))
