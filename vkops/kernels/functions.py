"""NumPy's reductions, with the same bits on every device."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache, wraps
from inspect import signature
from typing import Any, Concatenate, ParamSpec, TypeAlias

import numpy as np

from vkops.arguments.values import ArgumentName, integer, number, refuse
from vkops.elementwise.arithmetic import DType, divided, is_nan, to_half
from vkops.elementwise.formats import EXTENSION_FLOATS, GLSL_TYPES, KINDS, kind_of
from vkops.elementwise.kernel import ElementwiseKernel
from vkops.elementwise.parameters import Symbol
from vkops.errors import show
from vkops.kernels.axis_kernel import builtin
from vkops.kernels.reduction import ReductionKernel
from vkops.tensors.creation import empty
from vkops.tensors.exchange import as_dtype
from vkops.tensors.operations import as_tensor
from vkops.tensors.tensor import Device, DeviceLike, Tensor

_CONVERTED = builtin(ElementwiseKernel("S x", "T y", "y = T(x)", "converted"))
_COMPUTED = tuple(name for name in GLSL_TYPES if not name.startswith("float8"))
"""The data types of kernels that compute; smaller floats are stored and converted."""

NEEDED = {"int64": "shaderInt64", "uint64": "shaderInt64", "float64": "shaderFloat64"}
"""The features that data types need which are not in all devices' shaders."""

Arguments = ParamSpec("Arguments")
Default: TypeAlias = Callable[[DType], DType]
Reduction: TypeAlias = Callable[..., Tensor]
Maker: TypeAlias = Callable[[DType, DType], Reduction]


# -- data types ------------------------------------------------------------------------------------


def summed(dtype: DType) -> DType:
    """The data type of a sum: integers have 64 bits at least."""
    wide = {"b": np.int64, "i": np.int64, "u": np.uint64}.get(dtype.kind)
    return np.dtype(wide) if wide else dtype


def indices(_: DType) -> DType:
    """The data type of indices and numbers of elements."""
    return np.dtype(np.int64)


def averaged(dtype: DType) -> DType:
    """The data type of a mean: float64 for integers."""
    return dtype if kind_of(dtype) == "f" else np.dtype(np.float64)


def widened(dtype: DType) -> DType:
    """The data type in which elements are reduced: float32 for smaller floats, as in NumPy."""
    return np.dtype(np.float32) if dtype.itemsize < 4 and kind_of(dtype) == "f" else dtype


def numbers_of(name: str, x: Any, device: DeviceLike) -> Any:
    """An array as a tensor of a data type that kernels take (EW-04); a symbol as it is."""
    if isinstance(x, Symbol):
        return x
    tensor = as_tensor(name, x, device)
    if tensor.dtype.name not in _COMPUTED or not tensor.dtype.isnative:
        message = f"has data type {tensor.dtype}, must be one of {', '.join(_COMPUTED)}"
        refuse(name, "x", message, "EW-04")
    return tensor


def correction_of(name: str, correction: object) -> float:
    """Return what the divisor of a variance has less than elements; an integer if it is whole."""
    less = number(correction, ArgumentName(name, "correction", "EW-05"))
    return int(less) if float(less).is_integer() else less


def typed_input(
    name: str, x: Any, dtype: Any, device: DeviceLike, default: Default = indices
) -> tuple[Tensor, DType]:
    """An array as a tensor, and the data type of its results, which the device has (SH-02)."""
    tensor = numbers_of(name, x, device)
    result_dtype = default(tensor.dtype) if dtype is None else as_dtype(name, dtype)
    kinds = "f" if default is averaged else "iuf"
    allowed = [each for each in _COMPUTED if KINDS[each] in kinds]
    require_dtype(name, result_dtype, allowed, tensor.device)
    return tensor, result_dtype


def integer_from(low: int, high: int | None, value: object, name: str, field: str) -> int:
    """An integer that is at least ``low`` and, unless that is None, at most ``high`` (EW-05)."""
    number = integer(value, ArgumentName(name, field, "EW-05"))
    if number < low or (high is not None and number > high):
        allowed = f"at least {low}" if high is None else f"{low} to {high}"
        refuse(name, field, f"got {show(number)}, must be {allowed}", "EW-05")
    return number


def converted(x: Tensor, dtype: DType) -> Tensor:
    """Numbers as numbers of another data type."""
    result: Tensor = _CONVERTED(x, out=empty(x.shape, dtype=dtype, device=x.device))
    return result


def comparable(x: Tensor) -> Tensor:
    """Numbers in a data type that GLSL has in memory, with the same order."""
    is_extension = x.dtype.name in EXTENSION_FLOATS
    return converted(x, np.dtype(np.float32)) if is_extension else x


def require_dtype(name: str, result_dtype: DType, allowed: Sequence[str], device: Device) -> None:
    """Refuse a data type of results that a kernel (EW-04) or a device (SH-02) does not have."""
    if result_dtype.name not in allowed:
        refuse(name, "dtype", f"got {result_dtype}, must be {', '.join(allowed)}", "EW-04")
    needed = NEEDED.get(result_dtype.name)
    if needed and needed not in device.features:
        lacking = f"which {device.info.label} does not have: give another dtype="
        refuse(name, "dtype", f"is {result_dtype}, which needs {needed}, {lacking}", "SH-02")


# -- reductions ------------------------------------------------------------------------------------


def typed_reduction(
    make: Maker,
    default: Default,
    x: Any,
    /,
    axis: Any = None,
    *,
    dtype: Any = None,
    keepdims: bool = False,
    out: Any = None,
    device: DeviceLike = None,
) -> Tensor:
    """Run the kernel for the data type of an array, and for one of results that can be chosen."""
    tensor, result_dtype = typed_input(make.__name__, x, dtype, device, default)
    return make(tensor.dtype, result_dtype)(tensor, axis=axis, keepdims=keepdims, out=out)


def plain_reduction(
    make: Maker,
    default: Default,
    x: Any,
    /,
    axis: Any = None,
    *,
    keepdims: bool = False,
    out: Any = None,
    device: DeviceLike = None,
) -> Tensor:
    """Run the kernel for the data type of an array, and for that of results."""
    tensor = numbers_of(make.__name__, x, device)
    return make(tensor.dtype, default(tensor.dtype))(tensor, axis=axis, keepdims=keepdims, out=out)


def reduction_function(
    call: Callable[Concatenate[Maker, Default, Arguments], Tensor], default: Default
) -> Callable[[Maker], Callable[Arguments, Tensor]]:
    """Decorate a function that makes a kernel for the data types of elements and of results.

    It becomes a function of arrays that runs this kernel: by ``call``, whose further arguments it
    has. The ``default`` is that of the data type of results.
    """

    def decorate(make: Maker) -> Callable[Arguments, Tensor]:
        kernel_for = lru_cache(64)(make)
        shown = signature(call)
        shown = shown.replace(parameters=[*shown.parameters.values()][2:])

        @wraps(make)
        def function(*args: Arguments.args, **options: Arguments.kwargs) -> Tensor:
            try:
                return call(kernel_for, default, *args, **options)
            except TypeError:
                try:
                    shown.bind(*args, **options)
                except TypeError as error:
                    raise TypeError(f"{make.__name__}(): {error}") from None
                raise

        vars(function)["__signature__"] = shown  # for help() and Sphinx
        function.__annotations__ = {  # whose names the module of the function knows, too
            name: call.__annotations__[name] for name in (*shown.parameters, "return")
        }
        return function

    return decorate


@reduction_function(typed_reduction, summed)
def sum(dtype: DType, result_dtype: DType) -> Reduction:  # noqa: D417  # of the function of arrays
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
    return folded("sum", dtype, result_dtype, "a + b", "0")


@reduction_function(typed_reduction, summed)
def prod(dtype: DType, result_dtype: DType) -> Reduction:
    """Return the products of elements along axes, as ``numpy.prod``.

    Arguments and errors are those of ``sum``.

    >>> import numpy as np, vkops
    >>> vkops.kernels.prod(np.arange(1, 6)).item()
    120
    """
    return folded("prod", dtype, result_dtype, "a * b", "1")


@reduction_function(typed_reduction, averaged)
def mean(dtype: DType, result_dtype: DType) -> Reduction:
    """Return the means of elements along axes, as ``numpy.mean``: rounded quotients of the sums.

    Arguments and errors are those of ``sum``; the data type is float64 for integers.

    >>> import numpy as np, vkops
    >>> vkops.kernels.mean(np.arange(4)).item()
    1.5
    """
    return _averaging("mean", dtype, result_dtype, None)


def var(
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
    """Return the variances of elements along axes, as ``numpy.var``.

    Arguments and errors are those of ``mean``. The sums of squared differences from the mean are
    divided by the number of elements less ``correction``.

    >>> import numpy as np, vkops
    >>> vkops.kernels.var(np.arange(4), correction=1).item()
    1.6666666666666667
    """
    less = correction_of("var", correction)
    tensor, result_dtype = typed_input("var", x, dtype, device, averaged)
    middle = mean(tensor, axis, dtype=widened(result_dtype), keepdims=True)
    kernel = _averaging("var", tensor.dtype, result_dtype, less)
    return kernel(tensor, middle, axis=axis, keepdims=keepdims, out=out)


@reduction_function(plain_reduction, lambda dtype: dtype)
def min(dtype: DType, result_dtype: DType) -> Reduction:  # NumPy's name
    """Return the smallest elements along axes, as ``numpy.min``; NaN if there is one.

    Arguments and errors are those of ``sum``, without ``dtype``.

    >>> import numpy as np, vkops
    >>> vkops.kernels.min(np.array([[3, 1], [2, 5]]), axis=1).numpy()
    array([1, 2])
    """
    return extreme("min", dtype, "<")


@reduction_function(plain_reduction, lambda dtype: dtype)
def max(dtype: DType, result_dtype: DType) -> Reduction:  # NumPy's name
    """Return the largest elements along axes, as ``numpy.max``; NaN if there is one.

    Arguments and errors are those of ``sum``, without ``dtype``.

    >>> import numpy as np, vkops
    >>> vkops.kernels.max(np.array([[3, 1], [2, 5]]), axis=1).numpy()
    array([3, 5])
    """
    return extreme("max", dtype, ">")


@reduction_function(typed_reduction, indices)
def argmin(dtype: DType, result_dtype: DType) -> Reduction:
    """Return the indices of the first smallest elements along an axis, as ``numpy.argmin``.

    Arguments and errors are those of ``sum``, of int64. The axis is one, or None.

    >>> import numpy as np, vkops
    >>> vkops.kernels.argmin(np.array([3, 1, 5, 1])).item()
    1
    """
    return index_of("argmin", dtype, result_dtype, "<")


@reduction_function(typed_reduction, indices)
def argmax(dtype: DType, result_dtype: DType) -> Reduction:
    """Return the indices of the first largest elements along an axis, as ``numpy.argmax``.

    Arguments and errors are those of ``sum``, of int64. The axis is one, or None.

    >>> import numpy as np, vkops
    >>> vkops.kernels.argmax(np.array([3, 1, 5, 1])).item()
    2
    """
    return index_of("argmax", dtype, result_dtype, ">")


@reduction_function(plain_reduction, lambda _: np.dtype(bool))
def any(dtype: DType, result_dtype: DType) -> Reduction:  # NumPy's name
    """Return whether any element is not zero along axes, as ``numpy.any``.

    Arguments and errors are those of ``sum``, without ``dtype``.

    >>> import numpy as np, vkops
    >>> vkops.kernels.any(np.array([0.0, 2.0])).item()
    True
    """
    return _tested("any", dtype, result_dtype, "a || b", "false")


@reduction_function(plain_reduction, lambda _: np.dtype(bool))
def all(dtype: DType, result_dtype: DType) -> Reduction:  # NumPy's name
    """Return whether all elements are not zero along axes, as ``numpy.all``.

    Arguments and errors are those of ``sum``, without ``dtype``.

    >>> import numpy as np, vkops
    >>> vkops.kernels.all(np.array([0.0, 2.0])).item()
    False
    """
    return _tested("all", dtype, result_dtype, "a && b", "true")


@reduction_function(typed_reduction, indices)
def count_nonzero(dtype: DType, result_dtype: DType) -> Reduction:
    """Return the numbers of elements along axes that are not zero, as ``numpy.count_nonzero``.

    Arguments and errors are those of ``sum``; the data type is int64.

    >>> import numpy as np, vkops
    >>> vkops.kernels.count_nonzero(np.array([0, 7, 0, 3])).item()
    2
    """
    return _tested("count_nonzero", dtype, result_dtype, "a + b", "0")


# -- kernels ---------------------------------------------------------------------------------------


def folded(
    name: str, dtype: DType, result: DType, reduced: str, identity: str, mapped: str = "x"
) -> Reduction:
    """A kernel of sums or products; ``mapped`` can call ``is_nan``."""
    is_half, preamble = result == np.float16, is_nan(dtype) * (mapped != "x")
    texts = f"{dtype} x", f"{result} y", mapped, reduced, f"y = {'to_half' * is_half}(a)", identity
    return builtin(
        ReductionKernel(*texts, name, widened(result).name, preamble + to_half * is_half)
    )


def _tested(name: str, dtype: DType, result: DType, reduced: str, identity: str) -> Reduction:
    mapped = "x" if kind_of(dtype) == "b" else f"!(x == {GLSL_TYPES[dtype.name]}(0))"
    texts = f"{dtype} x", f"{result} y", mapped, reduced, "y = a", identity, name
    return builtin(ReductionKernel(*texts))


def extreme(name: str, dtype: DType, comparison: str, *, of_numbers: bool = False) -> Reduction:
    """A kernel of minima or maxima: NaN if there is one, or only if there is nothing else."""
    kind = kind_of(dtype)
    values = ("int(a)", "int(b)") if kind == "b" else ("a", "b")
    chosen = "b" if of_numbers else "a"
    reduced = (
        f"{values[0]} {comparison} {values[1]} {f'|| is_nan({chosen}) ' * (kind == 'f')}? a : b"
    )
    texts = f"{dtype} x", f"{dtype} y", "x", reduced, "y = a", None, name, None
    return builtin(ReductionKernel(*texts, is_nan(dtype)))


@lru_cache(64)
def _averaging(name: str, dtype: DType, result: DType, correction: float | None) -> Reduction:
    """A kernel of means or, with a correction, of variances, whose second input are the means."""
    wide, is_half = widened(result), result == np.float16
    inputs, mapped = f"{dtype} x", "x"
    if correction is not None:
        element = GLSL_TYPES[wide.name]
        inputs, mapped = f"{dtype} x, {wide} m", f"({element}(x) - m) * ({element}(x) - m)"
    quotient = f"divided(a, uint(max(n - ({correction or 0}), 0)))"
    if isinstance(correction, float):
        element = GLSL_TYPES[wide.name]
        quotient = f"a / max({element}(n) - {element}({correction!r}), {element}(0))"
    texts = inputs, f"{result} y", mapped, "a + b", f"y = {'to_half' * is_half}({quotient})", "0"
    return builtin(ReductionKernel(*texts, name, wide.name, divided(wide) + to_half * is_half))


def index_of(
    name: str, dtype: DType, result: DType, comparison: str, *, of_numbers: bool = False
) -> Reduction:
    """A kernel of the first indices of extremes; -1 where there is none but NaN."""
    same = "x == extreme"
    if kind_of(dtype) == "f" and not of_numbers:
        same += " || (is_nan(x) && is_nan(extreme))"
    found = "a == n ? -1 : a" if of_numbers else "a"
    texts = f"{same} ? i : n", "min(a, b)", f"y = {GLSL_TYPES[result.name]}({found})"
    inputs = f"{dtype} x, {dtype} extreme"
    extremes = extreme(name, dtype, comparison, of_numbers=of_numbers)
    kernel: Reduction = builtin(
        ReductionKernel(inputs, f"{result} y", *texts, None, name, "int32", is_nan(dtype))
    )

    def run(tensor: Tensor, axis: Any, **options: Any) -> Tensor:
        if axis is not None:
            axis = integer(axis, ArgumentName(name, "axis", "ARRAY-01"))
        return kernel(tensor, extremes(tensor, axis=axis, keepdims=True), axis=axis, **options)

    return run
