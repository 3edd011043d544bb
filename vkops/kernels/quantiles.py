"""Medians and quantiles: elements of sorted rows, and what lies between two of them."""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt

from vkops.arguments.values import ArgumentName, boolean, refuse
from vkops.elementwise.arithmetic import DType
from vkops.elementwise.formats import kind_of
from vkops.errors import show
from vkops.kernels.functions import averaged, converted, mean, numbers_of, typed_input
from vkops.kernels.nan_functions import counting
from vkops.kernels.sort import sort
from vkops.kernels.standard import where
from vkops.kernels.ufuncs import FUNCTIONS
from vkops.plan.view import Ints
from vkops.tensors.exchange import numpy_refusals
from vkops.tensors.manipulation import concat
from vkops.tensors.selection import take, take_along_axis
from vkops.tensors.shape_arguments import some_axes
from vkops.tensors.tensor import DeviceLike, Tensor

_Floats = npt.NDArray[np.float64]

_DISCRETE: dict[str, Callable[[int, _Floats], Any]] = {
    "lower": lambda n, q: np.floor((n - 1) * q),
    "higher": lambda n, q: np.ceil((n - 1) * q),
    "nearest": lambda n, q: np.around((n - 1) * q),
    "inverted_cdf": lambda n, q: np.ceil(n * q - 1),
    "closest_observation": lambda n, q: _nearest_even(n * q - 1.5),
}
"""The places of quantiles that are elements themselves, by the names of NumPy's methods."""

_CONTINUOUS: dict[str, Callable[[int, _Floats], Any]] = {
    "linear": lambda n, q: (n - 1) * q,
    "midpoint": lambda n, q: 0.5 * (np.floor((n - 1) * q) + np.ceil((n - 1) * q)),
    "averaged_inverted_cdf": lambda n, q: n * q - 1,
    "interpolated_inverted_cdf": lambda n, q: n * q + (0 + q * (1 - 0 - 1)) - 1,
    "hazen": lambda n, q: n * q + (0.5 + q * (1 - 0.5 - 0.5)) - 1,
    "weibull": lambda n, q: n * q + (0 + q * (1 - 0 - 0)) - 1,
    "median_unbiased": lambda n, q: n * q + (1 / 3 + q * (1 - 1 / 3 - 1 / 3)) - 1,
    "normal_unbiased": lambda n, q: n * q + (3 / 8 + q * (1 - 3 / 8 - 3 / 8)) - 1,
}
"""The places of quantiles that may lie between two elements."""


def median(
    x: Any,
    /,
    axis: Any = None,
    *,
    dtype: Any = None,
    keepdims: bool = False,
    device: DeviceLike = None,
) -> Tensor:
    """Return the medians of elements along axes, as ``numpy.median``; NaN if there is one.

    Args:
        x: a tensor or an array.
        axis: an axis or several; all by default.
        dtype: the data type of the medians; by default float64 for integers.
        keepdims: keep the axes as dimensions of size 1.
        device: where it runs; by default the device of the tensor.

    Raises:
        InvalidDescError: an axis that does not exist (ARRAY-02), elements of another type (EW-04),
            too many (EW-07), or a data type that the device lacks (SH-02).

    >>> import numpy as np, vkops
    >>> vkops.kernels.median(np.array([[3, 1, 2], [9, 7, 8]]), axis=1).numpy()
    array([2., 8.])
    """
    tensor, result = typed_input("median", x, dtype, device, averaged)
    rows, shape = _sorted_rows("median", tensor, axis, keepdims)
    half = rows.shape[-1] // 2
    middle = rows[..., max(half - 1, 0) if rows.shape[-1] % 2 == 0 else half : half + 1]
    return _without_nan(rows, mean(middle, -1, dtype=result)).reshape(shape)


def nanmedian(
    x: Any,
    /,
    axis: Any = None,
    *,
    dtype: Any = None,
    keepdims: bool = False,
    device: DeviceLike = None,
) -> Tensor:
    """Return the medians of the elements along axes that are not NaN, as ``numpy.nanmedian``.

    Arguments and errors are those of ``median``. It is NaN where all elements are.

    >>> import numpy as np, vkops
    >>> vkops.kernels.nanmedian(np.array([[3, np.nan, 2], [9, 7, 8]]), axis=1).numpy()
    array([2.5, 8. ])
    """
    tensor, result = typed_input("nanmedian", x, dtype, device, averaged)
    if kind_of(tensor.dtype) != "f":
        return median(tensor, axis, dtype=result, keepdims=keepdims)
    rows, shape = _sorted_rows("nanmedian", tensor, axis, keepdims)
    count = counting(rows.dtype)(rows, axis=-1, keepdims=True)
    places = concat(((count - 1) // 2, count // 2), -1)  # those of NaN are behind the others
    middle = take_along_axis(rows, places, -1)
    is_one = FUNCTIONS["equal"](places[..., 0], places[..., 1])
    lower, between = converted(middle[..., 0], result), mean(middle, -1, dtype=result)
    return where(is_one, lower, between).reshape(shape)


def quantile(
    x: Any,
    q: Any,
    /,
    axis: Any = None,
    *,
    method: str = "linear",
    dtype: Any = None,
    keepdims: bool = False,
    device: DeviceLike = None,
) -> Tensor:
    """Return quantiles of elements along axes, as ``numpy.quantile``; NaN if there is a NaN.

    Args:
        x: a tensor or an array.
        q: a number from 0 to 1, or an array of these on the host, whose dimensions are the first
            ones of the result.
        axis: an axis or several; all by default.
        method: one of NumPy's, such as ``"linear"``, ``"lower"`` or ``"nearest"``.
        dtype: the data type of the quantiles; by default that of the elements, or float64 for
            integers between which a quantile may lie.
        keepdims: keep the axes as dimensions of size 1.
        device: where it runs; by default the device of the tensor.

    Raises:
        InvalidDescError: wrong numbers or an unknown method (EW-05), no elements (EW-06), or as for
            ``median``.

    >>> import numpy as np, vkops
    >>> vkops.kernels.quantile(np.array([3, 1, 2, 9]), [0.5, 1]).numpy()
    array([2.5, 9. ])
    """
    numbers = _numbers("quantile", q, 1)
    return _quantiles("quantile", x, numbers, axis, method, dtype, keepdims, device)


def percentile(
    x: Any,
    q: Any,
    /,
    axis: Any = None,
    *,
    method: str = "linear",
    dtype: Any = None,
    keepdims: bool = False,
    device: DeviceLike = None,
) -> Tensor:
    """Return percentiles of elements along axes, as ``numpy.percentile``.

    Arguments and errors are those of ``quantile``; the numbers are from 0 to 100.

    >>> import numpy as np, vkops
    >>> vkops.kernels.percentile(np.array([3, 1, 2, 9]), 50, method="lower").item()
    2
    """
    numbers = _numbers("percentile", q, 100)
    return _quantiles("percentile", x, numbers / 100, axis, method, dtype, keepdims, device)


def _numbers(name: str, q: Any, most: int) -> _Floats:
    with numpy_refusals(name, "q", "EW-05"):
        numbers = np.asarray(q, np.float64)
    if not ((numbers >= 0) & (numbers <= most)).all():
        refuse(name, "q", f"got {show(q)}, must be 0 to {most}", "EW-05")
    return numbers


def _quantiles(
    name: str, x: Any, q: _Floats, axis: Any, method: Any, dtype: Any, keepdims: Any, device: Any
) -> Tensor:
    is_discrete = isinstance(method, str) and method in _DISCRETE
    if not is_discrete and not (isinstance(method, str) and method in _CONTINUOUS):
        methods = ", ".join([*_CONTINUOUS, *_DISCRETE])
        refuse(name, "method", f"got {show(method)}, must be one of {methods}", "EW-05")
    tensor = numbers_of(name, x, device)
    result = tensor.dtype
    if dtype is not None or not is_discrete:
        tensor, result = typed_input(name, tensor, dtype, None, averaged)
    rows, shape = _sorted_rows(name, tensor, axis, keepdims)
    count = rows.shape[-1]
    flat = q.reshape(-1)
    if is_discrete:
        places = np.clip(_DISCRETE[method](count, flat), 0, count - 1)
        found = _taken(rows, places, result)
    else:
        places = _CONTINUOUS[method](count, flat)
        lower = np.clip(np.floor(places), 0, count - 1)
        upper = np.clip(np.floor(places) + 1, 0, count - 1)
        weights = np.where((places < 0) | (places >= count - 1), 0, places - np.floor(places))
        if method == "midpoint":
            weights = np.where(places % 1 == 0, 0.0, 0.5)
        elif method == "averaged_inverted_cdf":
            weights = np.where(places % 1 == 0, 0.5, 1.0)
        found = _between(rows, lower, upper, weights, result)
    found = _without_nan(rows, found, is_last=True)
    return found.moveaxis(-1, 0).reshape((*q.shape, *shape))


def _sorted_rows(name: str, tensor: Tensor, axis: Any, keepdims: Any) -> tuple[Tensor, Ints]:
    """The elements of each result, sorted along the last axis, and the shape of the results."""
    keeps = boolean(keepdims, ArgumentName(name, "keepdims", "EW-05"))
    rank = tensor.ndim
    axes = sorted(range(rank) if axis is None else some_axes(name, axis, rank))
    kept = [i for i in range(rank) if i not in axes]
    shape = tuple([tensor.shape[i] for i in kept])
    count = prod([tensor.shape[i] for i in axes])
    rows = tensor.transpose((*kept, *axes)).reshape((*shape, count))
    if not count:
        refuse(name, "x", f"has shape {tensor.shape}: there are no elements", "EW-06")
    ends = tuple(1 if i in axes else n for i, n in enumerate(tensor.shape))
    return sort(rows, -1), ends if keeps else shape


def _nearest_even(places: _Floats) -> Any:
    """Places rounded to the nearest odd number that is not above them by more than a half."""
    whole = np.floor(places)
    return np.where((places == whole) & (whole % 2 == 1), whole, whole + 1)


def _taken(rows: Tensor, places: Any, dtype: DType) -> Tensor:
    values = take(rows, places.astype(np.int32), axis=-1)
    return values if values.dtype == dtype else converted(values, dtype)


def _between(rows: Tensor, lower: Any, upper: Any, weights: Any, dtype: DType) -> Tensor:
    """Numbers between two elements of each row, rounded as NumPy rounds them."""
    first, last = (_taken(rows, each, dtype) for each in (lower, upper))
    add, subtract, multiply = (FUNCTIONS[name] for name in ("add", "subtract", "multiply"))
    gap = subtract(last, first)
    up = add(first, multiply(gap, weights.astype(dtype)))
    down = subtract(last, multiply(gap, (1 - weights).astype(dtype)))
    return where(weights >= 0.5, down, up)


def _without_nan(rows: Tensor, results: Tensor, *, is_last: bool = False) -> Tensor:
    """Results that are NaN where there is a NaN in a row, of which it is the last element."""
    if kind_of(rows.dtype) != "f":
        return results
    ends = rows[..., -1:] if is_last else rows[..., -1]
    ends = ends if ends.dtype == results.dtype else converted(ends, results.dtype)
    return where(FUNCTIONS["isnan"](ends), ends, results)
