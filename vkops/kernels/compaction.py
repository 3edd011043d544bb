"""Elements that are chosen on the device, whose number is known only when it has computed them."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np

from vkops.arguments.values import refuse
from vkops.elementwise.arithmetic import is_nan
from vkops.elementwise.formats import GLSL_TYPES, kind_of
from vkops.elementwise.kernel import ElementwiseKernel
from vkops.kernels.axis_kernel import builtin
from vkops.kernels.functions import (
    comparable,
    converted,
    count_nonzero,
    integer_from,
    numbers_of,
    typed_input,
)
from vkops.kernels.scan import ScanKernel
from vkops.kernels.sort import sorted_places
from vkops.tensors.creation import empty, zeros
from vkops.tensors.operations import as_tensor
from vkops.tensors.selection import take
from vkops.tensors.shape_arguments import one_axis
from vkops.tensors.tensor import DeviceLike, Tensor

_COORDINATES = builtin(
    ElementwiseKernel("int32 x, int32 inner, int32 size", "T y", "y = T(x / inner % size)")
)
_COUNTS = builtin(
    ElementwiseKernel(
        "raw int32 x, int32 size, int32 total",
        "T y",
        """const int next = i + 1 < size ? x[i + 1] : 0;
y = T(i > 0 && x[i] == 0 ? 0 : (next == 0 ? total : next) - x[i])""",
    )
)
_ORDERED = "int32 x, int32 place", "raw T y", "x", "a + b", "y[place] = T(item - 1)"
_INVERSE = builtin(ScanKernel(*_ORDERED, 0, "unique", "int32"))


def nonzero(
    x: Any, /, *, size: Any = None, dtype: Any = None, device: DeviceLike = None
) -> tuple[Tensor, ...]:
    """Return the indices of the elements that are not zero, along each axis, as ``numpy.nonzero``.

    Args:
        x: a tensor or an array.
        size: the number of indices that are returned; the rest is 0. Without it, the call waits
            until their number is known, which a program that is recorded cannot.
        dtype: the data type of the indices, by default int64.
        device: where it runs; by default the device of the tensor.

    Raises:
        InvalidDescError: see ``ScanKernel``; or the device lacks the data type (SH-02).
        DeviceError: a program is recorded, and there is no ``size``.

    >>> import numpy as np, vkops
    >>> [each.tolist() for each in vkops.kernels.nonzero(np.array([[0, 7], [3, 0]], np.int32))]
    [[0, 1], [1, 0]]
    """
    tensor, result_dtype = typed_input("nonzero", x, dtype, device)
    if not tensor.ndim:
        refuse("nonzero", "x", "has no dimensions, must have one at least", "EW-06")
    places, inner, coordinates = _places("nonzero", tensor, size), tensor.size, []
    for n in tensor.shape:
        inner //= max(n, 1)
        out = empty(places.shape, dtype=result_dtype, device=tensor.device)
        coordinates.append(_COORDINATES(places, max(inner, 1), max(n, 1), out=out))
    return tuple(coordinates)


def compress(
    condition: Any, x: Any, /, axis: Any = None, *, size: Any = None, device: DeviceLike = None
) -> Tensor:
    """Return the elements along an axis where a condition is true, as ``numpy.compress``.

    Arguments and errors are those of ``nonzero``. The rest of ``size`` are elements of index 0.

    >>> import numpy as np, vkops
    >>> vkops.kernels.compress([True, False, True], np.array([3, 4, 5])).numpy()
    array([3, 5])
    """
    tensor = as_tensor("compress", x, device)
    mask = numbers_of("compress", condition, tensor.device)
    if axis is None:
        tensor, axis = tensor.reshape(-1), 0
    positive_axis = one_axis("compress", axis, tensor.ndim)
    if mask.size > tensor.shape[positive_axis]:
        message = f"has {mask.size} elements, must have {tensor.shape[positive_axis]} at most"
        refuse("compress", "condition", message, "EW-06")
    return take(tensor, _places("compress", mask.reshape(-1), size), positive_axis)


def unique(
    x: Any,
    /,
    *,
    return_index: bool = False,
    return_inverse: bool = False,
    return_counts: bool = False,
    equal_nan: bool = True,
    size: Any = None,
    dtype: Any = None,
    device: DeviceLike = None,
) -> Any:
    """Return the sorted elements without duplicates, as ``numpy.unique``.

    Arguments and errors are those of ``nonzero``, and ``dtype`` is that of indices and counts. The
    rest of ``size`` is the smallest element. Without ``equal_nan``, each NaN differs from all.

    >>> import numpy as np, vkops
    >>> values, counts = vkops.kernels.unique(np.array([3, 1, 3]), return_counts=True)
    >>> values.tolist(), counts.tolist()
    ([1, 3], [1, 2])
    """
    result_dtype: Any = np.dtype(np.int32)
    tensor = numbers_of("unique", x, device)
    if return_index or return_inverse or return_counts:
        tensor, result_dtype = typed_input("unique", tensor, dtype, None)
    home, flat = tensor.device, tensor.reshape(-1)
    values, order = sorted_places("unique", flat, 0, False, np.dtype(np.int32))
    compared = comparable(values)
    first = _changing(compared.dtype, equal_nan)(compared, compared)
    more = None if size is None else integer_from(0, None, size, "unique", "size") + 1
    firsts = _places("unique", first, more)
    chosen = firsts if size is None else firsts[:size]
    results = [take(values, chosen)]
    if return_index:
        results.append(converted(take(order, chosen), result_dtype))
    if return_inverse:
        inverse = _INVERSE(first, order, out=empty(flat.size, dtype=result_dtype, device=home))
        results.append(inverse.reshape(tensor.shape))
    if return_counts:
        counts = empty(chosen.size, dtype=result_dtype, device=home)
        results.append(_COUNTS(firsts, firsts.size, flat.size, out=counts))
    return tuple(results) if len(results) > 1 else results[0]


def _places(name: str, tensor: Tensor, size: Any) -> Tensor:
    """The indices in C order of the elements that are not zero."""
    if size is None:
        tensor.device.vulkan.refuse_recording("the number of elements is unknown: give size=")
        count = int(count_nonzero(tensor, dtype="int32").item())
    else:
        count = integer_from(0, None, size, name, "size")
    result = zeros(count, "int32", device=tensor.device)
    if count and tensor.size:
        _compacting(name, tensor.dtype)(tensor, count, out=result)
    return result


@lru_cache(64)
def _compacting(name: str, dtype: np.dtype[Any]) -> ScanKernel:
    test = "x" if kind_of(dtype) == "b" else f"!(x == {GLSL_TYPES[dtype.name]}(0))"
    statement = "if (item != prev_item && item <= size) y[prev_item] = i"
    texts = f"{dtype} x, int32 size", "raw int32 y", f"{test} ? 1 : 0", "a + b", statement
    return builtin(ScanKernel(*texts, 0, name))


@lru_cache(64)
def _changing(dtype: np.dtype[Any], equal_nan: bool) -> ElementwiseKernel:
    """A kernel that finds the elements that differ from those before them."""
    same = {
        "b": "x == (s[i - 1] != 0)",
        "f": "x == s[i - 1]" + " || (is_nan(x) && is_nan(s[i - 1]))" * equal_nan,
    }.get(dtype.kind, "x == s[i - 1]")
    operation = f"y = i == 0 || !({same}) ? 1 : 0"
    params = f"{dtype} x, raw {dtype} s", "int32 y"
    return builtin(ElementwiseKernel(*params, operation, "unique", is_nan(dtype)))
