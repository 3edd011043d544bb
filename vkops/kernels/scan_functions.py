"""NumPy's functions that follow from scans, with the same bits on every device."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np

from vkops.kernels.arithmetic import to_half
from vkops.kernels.functions import summed, typed_input, widened
from vkops.kernels.scan import ScanKernel
from vkops.tensors.tensor import DeviceLike, Tensor


def cumsum(
    x: Any,
    /,
    axis: Any = None,
    *,
    dtype: Any = None,
    out: Any = None,
    device: DeviceLike = None,
) -> Tensor:
    """Return the sums of the elements up to each one along an axis, as ``numpy.cumsum``.

    Args:
        x: a tensor or an array.
        axis: the axis; by default, the elements of all axes are summed in C order.
        dtype: the data type of the sums; by default int64 and uint64 for smaller integers.
        out: a tensor that gets the sums.
        device: where it runs; by default the device of the tensor.

    Raises:
        InvalidDescError: see ``ScanKernel``; or the device lacks the data type (SH-02).

    >>> import numpy as np, vkops
    >>> vkops.kernels.cumsum(np.arange(6).reshape(2, 3), axis=1).numpy()
    array([[ 0,  1,  3],
           [ 3,  7, 12]])
    """
    return _accumulated("cumsum", x, axis, dtype, out, device, "a + b")


def cumprod(
    x: Any,
    /,
    axis: Any = None,
    *,
    dtype: Any = None,
    out: Any = None,
    device: DeviceLike = None,
) -> Tensor:
    """Return the products of the elements up to each one along an axis, as ``numpy.cumprod``.

    Arguments and errors are those of ``cumsum``.

    >>> import numpy as np, vkops
    >>> vkops.kernels.cumprod(np.arange(1, 6)).numpy()
    array([  1,   2,   6,  24, 120])
    """
    return _accumulated("cumprod", x, axis, dtype, out, device, "a * b")


# -- kernels ---------------------------------------------------------------------------------------


def _accumulated(
    name: str, x: Any, axis: Any, dtype: Any, out: Any, device: DeviceLike, scanned: str
) -> Tensor:
    tensor, wanted = typed_input(name, x, dtype, summed, device)
    kernel = _accumulating(name, tensor.dtype, wanted, scanned)
    result: Tensor = kernel(tensor, axis=axis, out=out)
    return result


@lru_cache(64)
def _accumulating(
    name: str, dtype: np.dtype[Any], wanted: np.dtype[Any], scanned: str
) -> ScanKernel:
    is_half = wanted == np.float16
    texts = f"{dtype} x", f"{wanted} y", "x", scanned, f"y = {'to_half' * is_half}(item)"
    return ScanKernel(*texts, None, name, widened(wanted).name, None, to_half * is_half)
