"""NumPy's reductions, with the same bits on every device."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from vkops.arguments.values import Place, integer, refuse
from vkops.elementwise.parameters import GLSL_TYPES, Symbol
from vkops.kernels.arithmetic import divided, is_nan, to_half
from vkops.kernels.reduction import ReductionKernel
from vkops.tensors.exchange import as_dtype
from vkops.tensors.operations import as_tensor
from vkops.tensors.tensor import Device, DeviceLike, Tensor

_NEEDED = {"int64": "shaderInt64", "uint64": "shaderInt64", "float64": "shaderFloat64"}


def sum(  # NumPy's name
    x: Any,
    /,
    axis: Any = None,
    *,
    dtype: Any = None,
    keepdims: bool = False,
    out: Any = None,
    device: DeviceLike = None,
) -> Tensor:
    """Return the sums of elements along axes, as ``numpy.sum``.

    Args:
        x: a tensor or an array.
        axis: an axis or several; all by default.
        dtype: the data type of the sums; by default int64 and uint64 for smaller integers.
        keepdims: keep the axes as dimensions of size 1.
        out: a tensor that gets the sums.
        device: where it runs; by default the device of the tensor.

    Raises:
        InvalidDescError: see ``ReductionKernel``; or the device lacks the data type (SH-02).

    >>> import numpy as np, vkops
    >>> vkops.kernels.sum(np.arange(6).reshape(2, 3), axis=0).numpy()
    array([3, 5, 7])
    """
    tensor, wanted = typed_input("sum", x, dtype, summed, device)
    kernel = _folded("sum", tensor.dtype, wanted, "a + b", "0")
    return _reduced(kernel, tensor, axis=axis, keepdims=keepdims, out=out)


def prod(
    x: Any,
    /,
    axis: Any = None,
    *,
    dtype: Any = None,
    keepdims: bool = False,
    out: Any = None,
    device: DeviceLike = None,
) -> Tensor:
    """Return the products of elements along axes, as ``numpy.prod``.

    Arguments and errors are those of ``sum``.

    >>> import numpy as np, vkops
    >>> vkops.kernels.prod(np.arange(1, 6)).item()
    120
    """
    tensor, wanted = typed_input("prod", x, dtype, summed, device)
    kernel = _folded("prod", tensor.dtype, wanted, "a * b", "1")
    return _reduced(kernel, tensor, axis=axis, keepdims=keepdims, out=out)


def mean(
    x: Any,
    /,
    axis: Any = None,
    *,
    dtype: Any = None,
    keepdims: bool = False,
    out: Any = None,
    device: DeviceLike = None,
) -> Tensor:
    """Return the means of elements along axes, as ``numpy.mean``: rounded quotients of the sums.

    Arguments and errors are those of ``sum``; the data type is float64 for integers.

    >>> import numpy as np, vkops
    >>> vkops.kernels.mean(np.arange(4)).item()
    1.5
    """
    tensor, wanted = typed_input("mean", x, dtype, _averaged, device)
    kernel = _averaging("mean", tensor.dtype, wanted, None)
    return _reduced(kernel, tensor, axis=axis, keepdims=keepdims, out=out)


def var(
    x: Any,
    /,
    axis: Any = None,
    *,
    correction: int = 0,
    dtype: Any = None,
    keepdims: bool = False,
    out: Any = None,
    device: DeviceLike = None,
) -> Tensor:
    """Return the variances of elements along axes, as ``numpy.var``.

    Arguments and errors are those of ``mean``. The sums of squared differences from the mean are
    divided by the number of elements less ``correction``, an integer.

    >>> import numpy as np, vkops
    >>> vkops.kernels.var(np.arange(4), correction=1).item()
    1.6666666666666667
    """
    less = integer(correction, Place("var", "correction", "EW-05"))
    tensor, wanted = typed_input("var", x, dtype, _averaged, device)
    middle = mean(tensor, axis, dtype=widened(wanted), keepdims=True)
    kernel = _averaging("var", tensor.dtype, wanted, less)
    return _reduced(kernel, tensor, middle, axis=axis, keepdims=keepdims, out=out)


def min(  # NumPy's name
    x: Any,
    /,
    axis: Any = None,
    *,
    keepdims: bool = False,
    out: Any = None,
    device: DeviceLike = None,
) -> Tensor:
    """Return the smallest elements along axes, as ``numpy.min``; NaN if there is one.

    Arguments and errors are those of ``sum``, without ``dtype``.

    >>> import numpy as np, vkops
    >>> vkops.kernels.min(np.array([[3, 1], [2, 5]]), axis=1).numpy()
    array([1, 2])
    """
    tensor = numbers_of("min", x, device)
    kernel = _extreme("min", tensor.dtype, "<")
    return _reduced(kernel, tensor, axis=axis, keepdims=keepdims, out=out)


def max(  # NumPy's name
    x: Any,
    /,
    axis: Any = None,
    *,
    keepdims: bool = False,
    out: Any = None,
    device: DeviceLike = None,
) -> Tensor:
    """Return the largest elements along axes, as ``numpy.max``; NaN if there is one.

    Arguments and errors are those of ``sum``, without ``dtype``.

    >>> import numpy as np, vkops
    >>> vkops.kernels.max(np.array([[3, 1], [2, 5]]), axis=1).numpy()
    array([3, 5])
    """
    tensor = numbers_of("max", x, device)
    kernel = _extreme("max", tensor.dtype, ">")
    return _reduced(kernel, tensor, axis=axis, keepdims=keepdims, out=out)


def argmin(
    x: Any,
    /,
    axis: Any = None,
    *,
    dtype: Any = None,
    keepdims: bool = False,
    out: Any = None,
    device: DeviceLike = None,
) -> Tensor:
    """Return the indices of the first smallest elements along an axis, as ``numpy.argmin``.

    Arguments and errors are those of ``sum``, of int64. The axis is one, or None.

    >>> import numpy as np, vkops
    >>> vkops.kernels.argmin(np.array([3, 1, 5, 1])).item()
    1
    """
    return _index_of("argmin", min, x, axis, dtype, keepdims, out, device)


def argmax(
    x: Any,
    /,
    axis: Any = None,
    *,
    dtype: Any = None,
    keepdims: bool = False,
    out: Any = None,
    device: DeviceLike = None,
) -> Tensor:
    """Return the indices of the first largest elements along an axis, as ``numpy.argmax``.

    Arguments and errors are those of ``sum``, of int64. The axis is one, or None.

    >>> import numpy as np, vkops
    >>> vkops.kernels.argmax(np.array([3, 1, 5, 1])).item()
    2
    """
    return _index_of("argmax", max, x, axis, dtype, keepdims, out, device)


def any(  # NumPy's name
    x: Any,
    /,
    axis: Any = None,
    *,
    keepdims: bool = False,
    out: Any = None,
    device: DeviceLike = None,
) -> Tensor:
    """Return whether any element is not zero along axes, as ``numpy.any``.

    Arguments and errors are those of ``sum``, without ``dtype``.

    >>> import numpy as np, vkops
    >>> vkops.kernels.any(np.array([0.0, 2.0])).item()
    True
    """
    tensor = numbers_of("any", x, device)
    kernel = _tested("any", tensor.dtype, np.dtype(bool), "a || b", "false")
    return _reduced(kernel, tensor, axis=axis, keepdims=keepdims, out=out)


def all(  # NumPy's name
    x: Any,
    /,
    axis: Any = None,
    *,
    keepdims: bool = False,
    out: Any = None,
    device: DeviceLike = None,
) -> Tensor:
    """Return whether all elements are not zero along axes, as ``numpy.all``.

    Arguments and errors are those of ``sum``, without ``dtype``.

    >>> import numpy as np, vkops
    >>> vkops.kernels.all(np.array([0.0, 2.0])).item()
    False
    """
    tensor = numbers_of("all", x, device)
    kernel = _tested("all", tensor.dtype, np.dtype(bool), "a && b", "true")
    return _reduced(kernel, tensor, axis=axis, keepdims=keepdims, out=out)


def count_nonzero(
    x: Any,
    /,
    axis: Any = None,
    *,
    dtype: Any = None,
    keepdims: bool = False,
    out: Any = None,
    device: DeviceLike = None,
) -> Tensor:
    """Return the numbers of elements along axes that are not zero, as ``numpy.count_nonzero``.

    Arguments and errors are those of ``sum``; the data type is int64.

    >>> import numpy as np, vkops
    >>> vkops.kernels.count_nonzero(np.array([0, 7, 0, 3])).item()
    2
    """
    tensor, wanted = typed_input("count_nonzero", x, dtype, lambda _: np.dtype(np.int64), device)
    kernel = _tested("count_nonzero", tensor.dtype, wanted, "a + b", "0")
    return _reduced(kernel, tensor, axis=axis, keepdims=keepdims, out=out)


# -- kernels and data types ------------------------------------------------------------------------


def _reduced(kernel: ReductionKernel, *tensors: Tensor, **options: Any) -> Tensor:
    found: Tensor = kernel(*tensors, **options)
    return found


def summed(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """The data type of a sum: integers have 64 bits at least."""
    wide = {"b": np.int64, "i": np.int64, "u": np.uint64}.get(dtype.kind)
    return np.dtype(wide) if wide else dtype


def _averaged(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """The data type of a mean."""
    return dtype if dtype.kind == "f" else np.dtype(np.float64)


def widened(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """The data type in which elements are reduced: sums of float16 are float32, as in NumPy."""
    return np.dtype(np.float32) if dtype == np.float16 else dtype


def numbers_of(name: str, x: Any, device: DeviceLike) -> Any:
    """An array as a tensor of a data type that kernels take (EW-04); a symbol as it is."""
    if isinstance(x, Symbol):
        return x
    tensor = as_tensor(name, x, device)
    if tensor.dtype not in map(np.dtype, GLSL_TYPES):
        message = f"has data type {tensor.dtype}, must be one of {', '.join(GLSL_TYPES)}"
        refuse(name, "x", message, "EW-04")
    return tensor


def typed_input(
    name: str,
    x: Any,
    dtype: Any,
    default: Callable[[np.dtype[Any]], np.dtype[Any]],
    device: DeviceLike,
) -> tuple[Tensor, np.dtype[Any]]:
    """An array as a tensor, and the data type of its results, which the device has (SH-02)."""
    tensor = numbers_of(name, x, device)
    wanted = default(tensor.dtype) if dtype is None else as_dtype(name, dtype)
    allowed = [each for each in GLSL_TYPES if default is not _averaged or "float" in each]
    require_dtype(name, wanted, allowed, tensor.device)
    return tensor, wanted


def require_dtype(name: str, wanted: np.dtype[Any], allowed: Sequence[str], device: Device) -> None:
    """Refuse a data type of results that a kernel (EW-04) or a device (SH-02) does not have."""
    if wanted.name not in allowed:
        refuse(name, "dtype", f"got {wanted}, must be {', '.join(allowed)}", "EW-04")
    needed = _NEEDED.get(wanted.name)
    if needed and needed not in device.features:
        lacking = f"which {device.info.label} does not have: give another dtype="
        refuse(name, "dtype", f"is {wanted}, which needs {needed}, {lacking}", "SH-02")


@lru_cache(64)
def _folded(
    name: str, dtype: np.dtype[Any], wanted: np.dtype[Any], reduced: str, identity: str
) -> ReductionKernel:
    wide = widened(wanted).name
    is_half = wanted == np.float16
    texts = f"{dtype} x", f"{wanted} y", "x", reduced, "y = to_half(a)" if is_half else "y = a"
    return ReductionKernel(*texts, identity, name, wide, to_half * is_half)


@lru_cache(64)
def _tested(
    name: str, dtype: np.dtype[Any], wanted: np.dtype[Any], reduced: str, identity: str
) -> ReductionKernel:
    mapped = "x" if dtype.kind == "b" else f"!(x == {GLSL_TYPES[dtype.name]}(0))"
    return ReductionKernel(f"{dtype} x", f"{wanted} y", mapped, reduced, "y = a", identity, name)


@lru_cache(64)
def _extreme(name: str, dtype: np.dtype[Any], comparison: str) -> ReductionKernel:
    values = ("int(a)", "int(b)") if dtype.kind == "b" else ("a", "b")
    reduced = f"{values[0]} {comparison} {values[1]} {'|| is_nan(a) ' * (dtype.kind == 'f')}? a : b"
    texts = f"{dtype} x", f"{dtype} y", "x", reduced, "y = a", None, name, None
    return ReductionKernel(*texts, is_nan(dtype))


@lru_cache(64)
def _averaging(
    name: str, dtype: np.dtype[Any], wanted: np.dtype[Any], correction: int | None
) -> ReductionKernel:
    """A kernel of means or, with a correction, of variances, whose second input are the means."""
    wide = widened(wanted)
    element = GLSL_TYPES[wide.name]
    inputs, mapped = f"{dtype} x", "x"
    if correction is not None:
        inputs, mapped = f"{dtype} x, {wide} m", f"({element}(x) - m) * ({element}(x) - m)"
    quotient = f"divided(a, uint(max(n - ({correction or 0}), 0)))"
    ends = f"y = to_half({quotient})" if wanted == np.float16 else f"y = {quotient}"
    preamble = divided(wide) + to_half * (wanted == np.float16)
    return ReductionKernel(
        inputs, f"{wanted} y", mapped, "a + b", ends, "0", name, wide.name, preamble
    )


@lru_cache(64)
def _indexed(name: str, dtype: np.dtype[Any], wanted: np.dtype[Any]) -> ReductionKernel:
    same = "x == extreme || (is_nan(x) && is_nan(extreme))" if dtype.kind == "f" else "x == extreme"
    texts = f"{same} ? i : n", "min(a, b)", f"y = {GLSL_TYPES[wanted.name]}(a)", None, name, "int32"
    return ReductionKernel(f"{dtype} x, {dtype} extreme", f"{wanted} y", *texts, is_nan(dtype))


def _index_of(
    name: str,
    extreme: Callable[..., Tensor],
    x: Any,
    axis: Any,
    dtype: Any,
    keepdims: bool,
    out: Any,
    device: DeviceLike,
) -> Tensor:
    tensor, wanted = typed_input(name, x, dtype, lambda _: np.dtype(np.int64), device)
    if axis is not None:
        axis = integer(axis, Place(name, "axis", "ARRAY-01"))
    found = extreme(tensor, axis, keepdims=True)
    kernel = _indexed(name, tensor.dtype, wanted)
    return _reduced(kernel, tensor, found, axis=axis, keepdims=keepdims, out=out)
