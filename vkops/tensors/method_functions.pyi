# The functions that call a method of Tensor: type checkers read this file, and so does
# method_functions.py, which makes each function of its signature here.

from collections.abc import Sequence
from typing import Any

import numpy.typing as npt

from vkops.tensors.device import DeviceLike
from vkops.tensors.tensor import Tensor

def astype(
    x: Any, dtype: npt.DTypeLike, /, *, copy: bool = True, device: DeviceLike | None = None
) -> Tensor: ...
def broadcast_to(
    x: Any, /, shape: int | Sequence[int], *, device: DeviceLike | None = None
) -> Tensor: ...
def copy(x: Any, /, *, device: DeviceLike | None = None) -> Tensor: ...
def diagonal(
    x: Any, /, offset: int = 0, axis1: int = 0, axis2: int = 1, *, device: DeviceLike | None = None
) -> Tensor: ...
def expand_dims(
    x: Any, /, axis: int | Sequence[int], *, device: DeviceLike | None = None
) -> Tensor: ...
def flip(
    x: Any, /, axis: int | Sequence[int] | None = None, *, device: DeviceLike | None = None
) -> Tensor: ...
def moveaxis(
    x: Any,
    source: int | Sequence[int],
    destination: int | Sequence[int],
    /,
    *,
    device: DeviceLike | None = None,
) -> Tensor: ...
def permute_dims(x: Any, /, axes: Sequence[int], *, device: DeviceLike | None = None) -> Tensor: ...
def ravel(x: Any, /, order: str = "C", *, device: DeviceLike | None = None) -> Tensor: ...
def reshape(
    x: Any,
    /,
    shape: int | Sequence[int],
    order: str = "C",
    *,
    copy: bool | None = None,
    device: DeviceLike | None = None,
) -> Tensor: ...
def rot90(
    x: Any, /, k: int = 1, axes: Sequence[int] = (0, 1), *, device: DeviceLike | None = None
) -> Tensor: ...
def squeeze(
    x: Any, /, axis: int | Sequence[int] | None = None, *, device: DeviceLike | None = None
) -> Tensor: ...
def swapaxes(x: Any, /, axis1: int, axis2: int, *, device: DeviceLike | None = None) -> Tensor: ...
def transpose(
    x: Any, /, axes: Sequence[int] | None = None, *, device: DeviceLike | None = None
) -> Tensor: ...
