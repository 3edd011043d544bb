"""NumPy's reductions of the elements that are not NaN, with the same bits on every device."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np

from vkops.elementwise.arithmetic import DType, divided, is_nan, to_half
from vkops.elementwise.formats import GLSL_TYPES, kind_of
from vkops.elementwise.kernel import ElementwiseKernel
from vkops.kernels.axis_kernel import builtin
from vkops.kernels.functions import (
    Reduction,
    averaged,
    correction_of,
    extreme,
    folded,
    index_of,
    indices,
    mean,
    plain_reduction,
    reduction_function,
    summed,
    typed_input,
    typed_reduction,
    var,
    widened,
)
from vkops.kernels.reduction import ReductionKernel
from vkops.kernels.scan import accumulating
from vkops.kernels.ufuncs import FUNCTIONS
from vkops.tensors.tensor import DeviceLike, Tensor


def _but_nan(dtype: DType, instead: int, value: str = "x") -> str:
    """The GLSL of an element, or of a value that follows from it, or else of a number for NaN."""
    return f"is_nan(x) ? {instead} : {value}" if kind_of(dtype) == "f" else value


@reduction_function(typed_reduction, summed)
def nansum(dtype: DType, result_dtype: DType) -> Reduction:
    """Return the sums of the elements along axes that are not NaN, as ``numpy.nansum``.

    Arguments and errors are those of ``sum``.

    >>> import numpy as np, vkops
    >>> vkops.kernels.nansum(np.array([1, np.nan, 2])).item()
    3.0
    """
    mapped = _but_nan(dtype, 0, _wide_element(dtype, result_dtype))
    return folded("nansum", dtype, result_dtype, "a + b", "0", mapped)


@reduction_function(typed_reduction, summed)
def nanprod(dtype: DType, result_dtype: DType) -> Reduction:
    """Return the products of the elements along axes that are not NaN, as ``numpy.nanprod``.

    Arguments and errors are those of ``sum``.

    >>> import numpy as np, vkops
    >>> vkops.kernels.nanprod(np.array([3, np.nan, 2])).item()
    6.0
    """
    mapped = _but_nan(dtype, 1, _wide_element(dtype, result_dtype))
    return folded("nanprod", dtype, result_dtype, "a * b", "1", mapped)


@reduction_function(plain_reduction, lambda dtype: dtype)
def nanmin(dtype: DType, result_dtype: DType) -> Reduction:
    """Return the smallest elements along axes that are not NaN, as ``numpy.nanmin``.

    Arguments and errors are those of ``min``. It is NaN where all elements are.

    >>> import numpy as np, vkops
    >>> vkops.kernels.nanmin(np.array([3, np.nan, 2])).item()
    2.0
    """
    return extreme("nanmin", dtype, "<", of_numbers=True)


@reduction_function(plain_reduction, lambda dtype: dtype)
def nanmax(dtype: DType, result_dtype: DType) -> Reduction:
    """Return the largest elements along axes that are not NaN, as ``numpy.nanmax``.

    Arguments and errors are those of ``max``. It is NaN where all elements are.

    >>> import numpy as np, vkops
    >>> vkops.kernels.nanmax(np.array([3, np.nan, 2])).item()
    3.0
    """
    return extreme("nanmax", dtype, ">", of_numbers=True)


@reduction_function(typed_reduction, indices)
def nanargmin(dtype: DType, result_dtype: DType) -> Reduction:
    """Return the indices of the first smallest elements but NaN, as ``numpy.nanargmin``.

    Arguments and errors are those of ``argmin``. Where all elements are NaN, the index is -1, as in
    CuPy: NumPy raises an error, for which the device would have to be waited for.

    >>> import numpy as np, vkops
    >>> vkops.kernels.nanargmin(np.array([3, np.nan, 2])).item()
    2
    """
    return index_of("nanargmin", dtype, result_dtype, "<", of_numbers=True)


@reduction_function(typed_reduction, indices)
def nanargmax(dtype: DType, result_dtype: DType) -> Reduction:
    """Return the indices of the first largest elements but NaN, as ``numpy.nanargmax``.

    Arguments and errors are those of ``nanargmin``.

    >>> import numpy as np, vkops
    >>> vkops.kernels.nanargmax(np.array([3, np.nan, 2])).item()
    0
    """
    return index_of("nanargmax", dtype, result_dtype, ">", of_numbers=True)


def nanmean(
    x: Any,
    /,
    axis: Any = None,
    *,
    dtype: Any = None,
    keepdims: bool = False,
    out: Any = None,
    device: DeviceLike = None,
) -> Tensor:
    """Return the means of the elements along axes that are not NaN, as ``numpy.nanmean``.

    Arguments and errors are those of ``mean``. It is NaN where all elements are.

    >>> import numpy as np, vkops
    >>> vkops.kernels.nanmean(np.array([3, np.nan, 2])).item()
    2.5
    """
    tensor, result = typed_input("nanmean", x, dtype, device, averaged)
    if kind_of(tensor.dtype) != "f":
        return mean(tensor, axis, dtype=result, keepdims=keepdims, out=out)
    options: Any = {"axis": axis, "keepdims": keepdims}
    total = nansum(tensor, dtype=widened(result), **options)
    return _divide("nanmean", total, _count(tensor, options), 0, result, out)


def nanvar(
    x: Any,
    /,
    axis: Any = None,
    *,
    correction: float = 0.0,
    dtype: Any = None,
    keepdims: bool = False,
    out: Any = None,
    device: DeviceLike = None,
) -> Tensor:
    """Return the variances of the elements along axes that are not NaN, as ``numpy.nanvar``.

    Arguments and errors are those of ``var``. It is NaN where there are not more elements than
    ``correction``.

    >>> import numpy as np, vkops
    >>> vkops.kernels.nanvar(np.array([3, np.nan, 2])).item()
    0.25
    """
    less = correction_of("nanvar", correction)
    tensor, result = typed_input("nanvar", x, dtype, device, averaged)
    if kind_of(tensor.dtype) != "f":
        return var(tensor, axis, correction=less, dtype=result, keepdims=keepdims, out=out)
    options: Any = {"axis": axis, "keepdims": keepdims}
    middle = nanmean(tensor, axis, dtype=widened(result), keepdims=True)
    squares = _squares(tensor.dtype, widened(result))(tensor, middle, **options)
    return _divide("nanvar", squares, _count(tensor, options), less, result, out)


def nanstd(
    x: Any,
    /,
    axis: Any = None,
    *,
    correction: float = 0.0,
    dtype: Any = None,
    keepdims: bool = False,
    out: Any = None,
    device: DeviceLike = None,
) -> Tensor:
    """Return the standard deviations of the elements but NaN along axes, as ``numpy.nanstd``.

    They are square roots of variances; arguments and errors are those of ``nanvar``.

    >>> import numpy as np, vkops
    >>> vkops.kernels.nanstd(np.array([3, np.nan, 2])).item()
    0.5
    """
    options: Any = {"correction": correction, "dtype": dtype, "keepdims": keepdims}
    result = nanvar(x, axis, out=out, device=device, **options)
    return FUNCTIONS["sqrt"](result, out=result)  # type: ignore[no-any-return]


def nancumsum(
    x: Any, /, axis: Any = None, *, dtype: Any = None, out: Any = None, device: DeviceLike = None
) -> Tensor:
    """Return the sums of the elements up to each one that are not NaN, as ``numpy.nancumsum``.

    Arguments and errors are those of ``cumsum``.

    >>> import numpy as np, vkops
    >>> vkops.kernels.nancumsum(np.array([1, np.nan, 2])).numpy()
    array([1., 1., 3.])
    """
    tensor, result = typed_input("nancumsum", x, dtype, device, summed)
    item = _but_nan(tensor.dtype, 0, _wide_element(tensor.dtype, result))
    return accumulating("nancumsum", tensor.dtype, result, "a + b", item)(
        tensor, axis=axis, out=out
    )


def nancumprod(
    x: Any, /, axis: Any = None, *, dtype: Any = None, out: Any = None, device: DeviceLike = None
) -> Tensor:
    """Return the products of the elements up to each one but NaN, as ``numpy.nancumprod``.

    Arguments and errors are those of ``cumsum``.

    >>> import numpy as np, vkops
    >>> vkops.kernels.nancumprod(np.array([3, np.nan, 2])).numpy()
    array([3., 3., 6.])
    """
    tensor, result = typed_input("nancumprod", x, dtype, device, summed)
    item = _but_nan(tensor.dtype, 1, _wide_element(tensor.dtype, result))
    kernel = accumulating("nancumprod", tensor.dtype, result, "a * b", item)
    return kernel(tensor, axis=axis, out=out)


# -- kernels ---------------------------------------------------------------------------------------


def _wide_element(dtype: DType, result: DType) -> str:
    """The GLSL of an element in the data type in which elements are reduced."""
    return f"{GLSL_TYPES[widened(result).name]}(x)" if kind_of(dtype) == "f" else "x"


def _count(tensor: Tensor, options: Any) -> Tensor:
    return counting(tensor.dtype)(tensor, **options)  # type: ignore[no-any-return]


@lru_cache(64)
def counting(dtype: DType) -> ReductionKernel:
    """The numbers of elements that are not NaN."""
    texts = f"{dtype} x", "int32 y", "is_nan(x) ? 0 : 1", "a + b", "y = a", "0", "counted", None
    return builtin(ReductionKernel(*texts, is_nan(dtype)))


@lru_cache(64)
def _squares(dtype: DType, wide: DType) -> ReductionKernel:
    element = GLSL_TYPES[wide.name]
    mapped = _but_nan(dtype, 0, f"({element}(x) - m) * ({element}(x) - m)")
    texts = f"{dtype} x, {wide} m", f"{wide} y", mapped, "a + b", "y = a", "0", "nanvar", None
    return builtin(ReductionKernel(*texts, is_nan(dtype)))


def _divide(
    name: str, total: Tensor, count: Tensor, less: float, result: DType, out: Any
) -> Tensor:
    """Sums divided by the numbers of elements less a correction; NaN where that is 0 or below."""
    kernel = _dividing(name, total.dtype, less, result)
    return kernel(total, count, out=out)  # type: ignore[no-any-return]


@lru_cache(64)
def _dividing(name: str, wide: DType, less: float, result: DType) -> ElementwiseKernel:
    element, is_half = GLSL_TYPES[wide.name], result == np.float16
    quotient = f"divided(a, uint(count - {less}))"
    if isinstance(less, float):
        quotient = f"a / ({element}(count) - {element}({less!r}))"
    quotient = f"count > {less} ? {quotient} : divided({element}(0), 0u)"
    operation = f"y = {'to_half' * is_half}({quotient})"
    texts = f"{wide} a, int32 count", f"{result} y", operation, name
    return builtin(ElementwiseKernel(*texts, divided(wide) + to_half * is_half))
