"""Functions that call a method of ``Tensor``, named as in NumPy and the array API.

Their docstrings are made of those of the methods, at the end of this module.
"""

from __future__ import annotations

from collections.abc import Sequence
from inspect import cleandoc
from typing import Any

import numpy.typing as npt

from vkops.tensors.operations import as_tensor
from vkops.tensors.shape_arguments import OneOrMore
from vkops.tensors.tensor import DeviceLike, Tensor


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


for _function in (
    astype, broadcast_to, copy, diagonal, expand_dims, flip, moveaxis, permute_dims, ravel, reshape,
    rot90, squeeze, swapaxes, transpose,
):  # fmt: skip
    _document(_function)
