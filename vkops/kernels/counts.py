"""Numbers of elements between others: integer atomics count, which are exact in any order."""

from __future__ import annotations

from functools import lru_cache
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt

from vkops.arguments.values import ArgumentName, refuse
from vkops.elementwise.arithmetic import is_nan
from vkops.elementwise.kernel import ElementwiseKernel
from vkops.elementwise.parameters import parse
from vkops.elementwise.source import GROUP
from vkops.errors import VkopsError, show
from vkops.kernels.axis_kernel import InnerKernel, builtin
from vkops.kernels.functions import (
    comparable,
    converted,
    indices,
    integer_from,
    numbers_of,
    typed_input,
)
from vkops.kernels.functions import max as max_of
from vkops.kernels.functions import min as min_of
from vkops.kernels.scattering import scatter_add
from vkops.plan.rounding import ceil_div
from vkops.plan.view import Ints
from vkops.tensors.creation import empty, zeros
from vkops.tensors.exchange import numpy_refusals
from vkops.tensors.operations import as_tensor
from vkops.tensors.selection import checked_indices, taken
from vkops.tensors.tensor import DeviceLike, Tensor

_SHARED, _LENGTH, _COPIES = 1024, 64, 4
"""The numbers that a workgroup of a GPU has in shared memory; the elements of each invocation; and
how many numbers there are for what is counted."""

_MAIN = (
    f"""shared int _counts[{_SHARED}];
uint _copies, _copy;
void main() {{
    {GROUP}
    const uint _lane = gl_LocalInvocationID.x, _lanes = gl_WorkGroupSize.x;
    _copies = clamp({_SHARED} / uint(_value_size), 1, {_COPIES});
    _copy = _lane % _copies;
    for (uint _k = _lane; _k < _value_size * _copies; _k += _lanes) _counts[_k] = 0;
    barrier();
    const uint _first = _group * _lanes * {_LENGTH};
    for (uint _i = _first + _lane; _i < min(_n, _first + _lanes * {_LENGTH}); _i += _lanes) {{""",
    """    }
    barrier();
    for (uint _k = _lane; _k < _value_size; _k += _lanes) {
        int _sum = 0;
        for (uint _c = 0; _c < _copies; ++_c) _sum += _counts[_k * _copies + _c];
        if (_sum != 0) atomicAdd(table[_k], _sum);
    }
}""",
)
"""Neighbours have counts of their own, if there is room: so fewer of them wait for one another."""


_PLACES = builtin(
    ElementwiseKernel(
        "T x, int32 size",
        "int32 y",
        "const int k = int(x); y = T(k) == x && k >= 0 && k < size ? k : size",
        "bincount",
    )
)
"""The integers from 0 to below a size, and that size for all others."""


def _floats(_: object) -> np.dtype[Any]:
    return np.dtype(np.float64)


def _is_shared(table: Tensor) -> bool:
    """Whether workgroups count in shared memory: on GPUs, where many would wait for one number."""
    return table.size <= _SHARED and not table.device.tuning.is_cpu


def _invocations(shape: Ints, _: object) -> int:
    return ceil_div(prod(shape), _LENGTH)


@lru_cache(64)
def _counting(
    name: str, inputs: str, operation: str, shared: bool, preamble: str = ""
) -> InnerKernel:
    """A kernel whose operation ends with the index of what it counts in a table of a size."""
    count = "_counts[index * _copies + _copy]" if shared else "table[index]"
    operation = f"{operation}\nif (index >= 0 && index < size) atomicAdd({count}, 1);"
    params = parse(name, f"{inputs}, int32 size", "raw int32 table", raw_outputs=True)
    more: dict[str, Any] = {"invocations": _invocations, "main": _MAIN}
    return builtin(InnerKernel(params, operation, name, preamble, **more if shared else {}))


def searchsorted(
    a: Any,
    v: Any,
    /,
    side: str = "left",
    sorter: Any = None,
    *,
    dtype: Any = None,
    device: DeviceLike = None,
) -> Tensor:
    """Return where elements ``v`` would be in the sorted array ``a``, as ``numpy.searchsorted``.

    Args:
        a: a sorted tensor or array of one dimension.
        v: a tensor, an array, a list of numbers, or a number. Elements of another data type than
            those of ``a`` are compared in the common one.
        side: ``"left"``, before equal elements, or ``"right"``.
        sorter: the indices that sort ``a``, such as those of ``argsort``, if it is not sorted.
        dtype: the data type of the indices, by default int64.
        device: where it runs; by default the device of ``a``.

    Raises:
        InvalidDescError: an argument of another kind (EW-03), data type (EW-04), value (EW-05) or
            shape (EW-06), a ``sorter`` without indices of ``a`` (ARRAY-14), or a data type that the
            device lacks (SH-02).

    >>> import numpy as np, vkops
    >>> vkops.kernels.searchsorted(np.array([1, 3, 3, 5]), np.array([3, 9]), "right").numpy()
    array([3, 4])
    """
    table, result_dtype = typed_input("searchsorted", a, dtype, device)
    if table.ndim != 1:
        refuse("searchsorted", "a", f"has shape {table.shape}, must have one dimension", "EW-06")
    if not isinstance(side, str) or side not in ("left", "right"):
        refuse("searchsorted", "side", f"got {show(side)}, must be 'left' or 'right'", "EW-05")
    if isinstance(v, (list, tuple)):
        with numpy_refusals("searchsorted", "v", "EW-05"):
            array, uncast = np.asarray(v, table.dtype), np.asarray(v)
        if table.dtype.kind in "iu" and (array != uncast).any():
            refuse("searchsorted", "v", f"got {show(v)}, must be {table.dtype}", "EW-05")
        v = array
    if isinstance(v, np.ndarray):
        v = as_tensor("searchsorted", v, table.device)
    if sorter is not None:
        argument = ArgumentName("searchsorted", "sorter", "ARRAY-14")
        sorter = checked_indices(table, sorter, 0, argument)
        if sorter.shape != table.shape:
            message = f"has shape {sorter.shape}, must be {table.shape}, that of a"
            refuse("searchsorted", "sorter", message, "EW-06")
        table = taken(table, sorter, 0, argument)
    if isinstance(v, Tensor):
        v = numbers_of("searchsorted", v, table.device)
        common = np.result_type(v.dtype, table.dtype)
        v, table = (
            comparable(each if each.dtype == common else converted(each, common))
            for each in (v, table)
        )
    shape = v.shape if isinstance(v, Tensor) else ()  # the kernel checks numbers
    if not table.size:
        return zeros(shape, result_dtype, device=table.device)
    out = empty(shape, dtype=result_dtype, device=table.device)
    _searching(table.dtype, side, result_dtype)(v, table, table.size, out=out)
    return out


def bincount(
    x: Any,
    /,
    weights: Any = None,
    minlength: int = 0,
    *,
    size: Any = None,
    dtype: Any = None,
    device: DeviceLike = None,
) -> Tensor:
    """Return how often each integer from 0 on occurs, as ``numpy.bincount``.

    With ``size``, that many numbers are returned, and other integers are not counted. Without it,
    the call waits until the largest integer is known. With ``weights`` of the shape of ``x``, the
    results are sums of these, which are added up as by ``scatter_add``; their data type is float64
    by default. Other arguments are those of ``nonzero``.

    >>> import numpy as np, vkops
    >>> vkops.kernels.bincount(np.array([3, 1, 3], np.int32)).numpy()
    array([0, 1, 0, 2])
    """
    default = indices if weights is None else _floats
    tensor, result_dtype = typed_input("bincount", x, dtype, device, default)
    if weights is not None:
        weights = numbers_of("bincount", weights, tensor.device)
        if weights.shape != tensor.shape:
            message = f"has shape {weights.shape}, must be {tensor.shape}"
            refuse("bincount", "weights", message, "EW-06")
    least = integer_from(0, None, minlength, "bincount", "minlength")
    if tensor.dtype.kind not in "iu":
        refuse("bincount", "x", f"has data type {tensor.dtype}, must be integers", "EW-04")
    if size is None:
        tensor.device.vulkan.refuse_recording("the largest element is unknown: give size=")
        if tensor.size and (smallest := min_of(tensor).item()) < 0:
            refuse("bincount", "x", f"has {smallest}, must be at least 0", "EW-05")
        size = max(least, max_of(tensor).item() + 1 if tensor.size else 0)
    size = integer_from(0, None, size, "bincount", "size")
    if weights is not None:
        sums = zeros(size, result_dtype, device=tensor.device)
        if size and tensor.size:
            scatter_add(sums, _PLACES(tensor.reshape(-1), size), weights.reshape(-1))
        return sums
    table = zeros(size, "int32", device=tensor.device)
    if table.size:
        find = "const int index = T(int(x)) == x ? int(x) : -1;"
        _counting("bincount", "T x", find, _is_shared(table))(tensor, table.size, out=table)
    return converted(table, result_dtype)


def histogram(
    x: Any, bins: Any = 10, range: Any = None, *, dtype: Any = None, device: DeviceLike = None
) -> tuple[Tensor, npt.NDArray[Any]]:
    """Return the numbers of elements in bins, and the edges of these, as ``numpy.histogram``.

    Without edges and a range, the call waits until the smallest and the largest element are known.

    >>> import numpy as np, vkops
    >>> counts, edges = vkops.kernels.histogram(np.array([1, 2, 2, 4], np.float32), 3)
    >>> counts.tolist(), edges.tolist()
    ([1, 2, 1], [1.0, 2.0, 3.0, 4.0])
    """
    tensor, result_dtype = typed_input("histogram", x, dtype, device)
    if tensor.dtype.kind == "b":
        tensor = tensor.view("uint8")
    tensor = comparable(tensor)
    some = np.empty(0, tensor.dtype)
    try:
        requested = np.asarray(bins)
        if not requested.size:
            raise ValueError("must have an edge")
        if requested.dtype.kind in "US":
            raise ValueError(f"got {show(bins)}, must be a number of bins, or their edges")
        if range is None and requested.ndim == 0 and tensor.size:
            tensor.device.vulkan.refuse_recording("the range is unknown: give range=")
            some = np.array([each(tensor).item() for each in (min_of, max_of)], tensor.dtype)
        edges = np.histogram_bin_edges(some, requested, range)
        bounds = _bounds(edges, tensor.dtype)
    except VkopsError:
        raise
    except (TypeError, ValueError) as error:
        refuse("histogram", "bins", str(error), "EW-05")
    except (OverflowError, MemoryError, IndexError):
        refuse("histogram", "bins", "has a number that is too large", "EW-05")
    table = zeros(len(edges) - 1, "int32", device=tensor.device)
    if tensor.size and bounds.size and table.size:
        even = _even(bounds) if requested.ndim == 0 else ()
        kernel = _searching(tensor.dtype, "right", None, _is_shared(table), bool(even))
        kernel(tensor, bounds, bounds.size, *even, table.size, out=table)
    return converted(table, result_dtype), edges


def _even(bounds: npt.NDArray[Any]) -> tuple[float, float]:
    """The first of bounds, and how many there are for each unit, as numbers of float32."""
    with np.errstate(all="ignore"):
        first, last = bounds[[0, -1]].astype(np.float32)
        return float(first), float(np.float32(bounds.size - 1) / (last - first))


def _bounds(edges: npt.NDArray[Any], dtype: np.dtype[Any]) -> npt.NDArray[Any]:
    """The least numbers of a data type that are not below edges, and above the last of these.

    NaN is above infinity.
    """
    if dtype.kind in "iu":
        limits = np.iinfo(dtype)
        rounded = [*np.ceil(edges[:-1]).tolist(), np.floor(edges[-1]).item()]
        whole = [int(max(min(each, limits.max + 1), limits.min - 1)) for each in rounded]
        whole[-1] += 1
        return np.array([max(each, limits.min) for each in whole if each <= limits.max], dtype)
    with np.errstate(over="ignore"):
        near = edges.astype(dtype)
    up = np.where(near < edges, np.nextafter(near, np.inf, dtype=dtype), near)
    if near[-1] <= edges[-1]:
        up[-1] = np.nan if np.isposinf(near[-1]) else np.nextafter(near[-1], np.inf, dtype=dtype)
    return up


@lru_cache(64)
def _searching(
    dtype: np.dtype[Any],
    side: str,
    result_dtype: np.dtype[Any] | None,
    shared: bool = False,
    is_even: bool = False,
) -> InnerKernel:
    """A kernel that returns the places of elements in an array, or else counts them in a table.

    If elements of the array are evenly apart, the search begins where a place should be.
    """
    element = "v" if result_dtype else "x"
    left, right = ("a[middle]", element) if side == "left" else (element, "a[middle]")
    if dtype.kind == "b":
        left, right = f"int({left})", f"int({right})"
    less = f"{left} < {right}"
    if dtype.kind == "f":
        less += f" || (is_nan({right}) && !is_nan({left}))"
    guess, after = (less.replace("[middle]", f"[{place}]") for place in ("guess", "low"))
    guessed = f"""const float place = (float(x) - first) * scale;
const int guess = place >= 0.0 && place < float(count - 1) ? int(place) : 0;
if ({guess}) high = guess;
else {{ low = guess + 1; if (low < count && ({after})) high = low; }}
"""
    operation = f"""int low = 0, high = count;
while (low < high) {{
    const int middle = low + (high - low) / 2;
    if ({less if side == "left" else f"!({less})"}) low = middle + 1;
    else high = middle;
}}
"""
    inputs = f"{dtype} {element}, raw {dtype} a, int32 count"
    if not result_dtype:
        if is_even:
            inputs += ", float32 first, float32 scale"
            operation = operation.replace("while", f"{guessed}while", 1)
        operation += "const int index = low - 1;"
        return _counting("histogram", inputs, operation, shared, is_nan(dtype))
    params = parse("searchsorted", inputs, "T y")
    texts = f"{operation}y = T(low)", "searchsorted", is_nan(dtype)
    return builtin(InnerKernel(params, *texts))
