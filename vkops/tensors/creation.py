"""Functions that make tensors, named as in NumPy and the array API, with NumPy's default dtypes.

Constants are written by the device, with one dispatch; ``arange`` and ``linspace`` are computed by
NumPy on the host. What does not fit on the device stays on the host.
"""

from __future__ import annotations

from math import ceil
from typing import Any

import numpy as np

from vkops.arguments.values import ArgumentName, integer, refuse
from vkops.errors import InvalidDescBufferError, show
from vkops.gpu.memory import host_memory
from vkops.plan import movements
from vkops.plan.region import Fill
from vkops.plan.view import Ints, View
from vkops.tensors import cuda_exchange
from vkops.tensors.array_plan import ArrayPlan, array_plan, memoized
from vkops.tensors.exchange import DTypeLike, as_array, as_dtype, imported, numpy_refusals
from vkops.tensors.operations import as_tensor, chosen_device
from vkops.tensors.shape_arguments import OneOrMore, check_shape, may_copy, sizes_of
from vkops.tensors.tensor import Device, DeviceLike, Tensor, default_device, undefined

_ALWAYS_COPIED = "got False, must be True or None: the elements are copied to the device"

# -- from other objects ----------------------------------------------------------------------------


def asarray(
    obj: Any, /, dtype: DTypeLike = None, *, device: DeviceLike = None, copy: bool | None = None
) -> Tensor:
    """A tensor of an array, a number, nested sequences of numbers or an exporter of DLPack.

    A tensor with the dtype and the device that are asked for is returned itself, unless ``copy`` is
    True. Conversions to another dtype are NumPy's, on the host.

    Raises:
        InvalidDescError: elements that cannot be moved (T-02) or converted (ARRAY-10), or a copy is
            needed, but refused (ARRAY-16).
        OutOfDeviceMemoryError: it does not fit.

    >>> import vkops
    >>> vkops.asarray([[1, 2], [3, 4]], "int8").shape
    (2, 2)
    """
    home = chosen_device("ASARRAY", device)
    kind = None if dtype is None else as_dtype("ASARRAY", dtype)
    copying = may_copy("ASARRAY", copy)
    if isinstance(obj, Tensor) and kind in (None, obj.dtype) and home in (None, obj.device):
        return obj.copy() if copying else obj
    if copying is False:
        refuse("ASARRAY", "copy", _ALWAYS_COPIED, "ARRAY-16")
    if isinstance(obj, Tensor):
        home, obj = home or obj.device, obj.numpy()
    if kind is not None:
        with numpy_refusals("ASARRAY", "obj"):
            obj = np.asarray(as_array(obj) if hasattr(obj, "__dlpack__") else obj, kind)
    return as_tensor("ASARRAY", obj, home)


def array(
    obj: Any,
    /,
    dtype: DTypeLike = None,
    *,
    copy: bool | None = True,
    ndmin: int = 0,
    device: DeviceLike = None,
) -> Tensor:
    """The counterpart of ``numpy.array``: ``asarray``, which copies a tensor unless told not to.

    The result has at least ``ndmin`` dimensions: those of size 1 that it needs come first.

    Raises:
        InvalidDescError: as ``asarray``, or too many dimensions (ARRAY-03).
        OutOfDeviceMemoryError: it does not fit.

    >>> import numpy as np, vkops
    >>> np.array([1, 2], ndmin=2, like=vkops.zeros(0)).tolist()
    [[1, 2]]
    """
    tensor = asarray(obj, dtype, copy=copy, device=device)
    missing = integer(ndmin, ArgumentName("ARRAY", "ndmin", "ARRAY-06")) - tensor.ndim
    ones = (1,) * min(missing, 1000)  # reshape raises an error for more
    return tensor.reshape(ones + tensor.shape) if ones else tensor


def from_dlpack(x: Any, /, *, device: DeviceLike = None, copy: bool | None = None) -> Tensor:
    """Copy the elements of an exporter of DLPack, such as a PyTorch tensor.

    A tensor of vkops is returned itself, unless a copy is asked for.

    Memory of CUDA on the same GPU is copied on the GPU, to a tensor that CUDA also sees. The copy
    waits, on the GPU, for the work of CUDA that writes the elements. If that is not possible, an
    exporter on another device is asked for a copy in host memory.

    The 8- and 16-bit floating-point types that NumPy lacks, such as bfloat16, have the dtypes of
    the package ml_dtypes.

    Raises:
        InvalidDescTypeError: no exporter, or elements or a device that NumPy does not take, or
            elements that need ml_dtypes, which is not installed (T-02).
        InvalidDescBufferError: ``copy`` is False: the elements are always copied (ARRAY-16).

    >>> import numpy as np, vkops
    >>> vkops.from_dlpack(np.arange(3)).numpy().tolist()
    [0, 1, 2]
    """
    copying = may_copy("FROM_DLPACK", copy)
    if isinstance(x, Tensor):
        x.placed()  # which raises an error if it was released
        return asarray(x, device=device, copy=copying)
    if copying is False:
        raise InvalidDescBufferError("FROM_DLPACK", "copy", _ALWAYS_COPIED, "ARRAY-16")
    home = chosen_device("FROM_DLPACK", device) or default_device()
    copied: Tensor | None = cuda_exchange.copied(home, x)
    return as_tensor("FROM_DLPACK", imported(x), home) if copied is None else copied


# -- of a shape ------------------------------------------------------------------------------------


def empty(shape: OneOrMore, dtype: DTypeLike = None, *, device: DeviceLike = None) -> Tensor:
    """A tensor whose elements are undefined: whatever the memory holds.

    Raises:
        InvalidDescError: a negative size (ARRAY-06), too large a shape (ARRAY-03), or a dtype whose
            elements cannot be moved (T-02).
        OutOfDeviceMemoryError: it does not fit.

    >>> import vkops
    >>> vkops.empty((2, 3), "int8").shape
    (2, 3)
    """
    return undefined("EMPTY", shape, dtype, chosen_device("EMPTY", device))


def zeros(shape: OneOrMore, dtype: DTypeLike = None, *, device: DeviceLike = None) -> Tensor:
    """A tensor of zeros; arguments and errors are those of ``empty``.

    >>> import vkops
    >>> vkops.zeros(3).tolist()
    [0.0, 0.0, 0.0]
    """
    kind = as_dtype("ZEROS", dtype)
    return _full("ZEROS", shape, kind, device, np.zeros((), kind))


def ones(shape: OneOrMore, dtype: DTypeLike = None, *, device: DeviceLike = None) -> Tensor:
    """A tensor of ones; arguments and errors are those of ``empty``.

    >>> import vkops
    >>> vkops.ones(2, bool).tolist()
    [True, True]
    """
    return _full("ONES", shape, as_dtype("ONES", dtype), device, 1)


def full(
    shape: OneOrMore, fill_value: Any, dtype: DTypeLike = None, *, device: DeviceLike = None
) -> Tensor:
    """A tensor whose elements are one scalar; its dtype is the scalar's, unless another is given.

    Raises:
        InvalidDescError: as for ``empty``, or a value that is not a scalar or cannot be converted
            (ARRAY-10).
        OutOfDeviceMemoryError: it does not fit.

    >>> import vkops
    >>> vkops.full((1, 3), 7).tolist()
    [[7, 7, 7]]
    """
    kind = None if dtype is None else as_dtype("FULL", dtype)
    return _full("FULL", shape, kind, device, fill_value)


# -- like another ----------------------------------------------------------------------------------


def empty_like(
    x: Any, /, dtype: DTypeLike = None, *, shape: OneOrMore | None = None, device: DeviceLike = None
) -> Tensor:
    """As ``empty``, with the shape, the dtype and the device of ``x`` where none are given.

    >>> import vkops
    >>> vkops.empty_like([[1, 2]], "int8").shape
    (1, 2)
    """
    return undefined("EMPTY_LIKE", *_like("EMPTY_LIKE", x, shape, dtype, device))


def zeros_like(
    x: Any, /, dtype: DTypeLike = None, *, shape: OneOrMore | None = None, device: DeviceLike = None
) -> Tensor:
    """As ``zeros``, with the shape, the dtype and the device of ``x`` where none are given.

    >>> import vkops
    >>> vkops.zeros_like([1, 2]).tolist()
    [0, 0]
    """
    sizes, kind, home = _like("ZEROS_LIKE", x, shape, dtype, device)
    return _full("ZEROS_LIKE", sizes, kind, home, np.zeros((), kind))


def ones_like(
    x: Any, /, dtype: DTypeLike = None, *, shape: OneOrMore | None = None, device: DeviceLike = None
) -> Tensor:
    """As ``ones``, with the shape, the dtype and the device of ``x`` where none are given.

    >>> import vkops
    >>> vkops.ones_like([1, 2], shape=3).tolist()
    [1, 1, 1]
    """
    return _full("ONES_LIKE", *_like("ONES_LIKE", x, shape, dtype, device), 1)


def full_like(
    x: Any,
    /,
    fill_value: Any,
    dtype: DTypeLike = None,
    *,
    shape: OneOrMore | None = None,
    device: DeviceLike = None,
) -> Tensor:
    """As ``full``, with the shape, the dtype and the device of ``x`` where none are given.

    >>> import vkops
    >>> vkops.full_like([1.5, 2], 3).tolist()
    [3.0, 3.0]
    """
    return _full("FULL_LIKE", *_like("FULL_LIKE", x, shape, dtype, device), fill_value)


# -- sequences of numbers --------------------------------------------------------------------------


def arange(
    start: Any,
    /,
    stop: Any = None,
    step: Any = 1,
    dtype: DTypeLike = None,
    *,
    device: DeviceLike = None,
) -> Tensor:
    """The numbers from ``start`` (or 0) to before ``stop``, as ``numpy.arange`` returns them.

    Raises:
        InvalidDescError: arguments that NumPy does not accept (ARRAY-10), or a dtype whose elements
            cannot be moved (T-02).
        OutOfDeviceMemoryError: neither the device nor the host has memory for it.

    >>> import vkops
    >>> vkops.arange(2, 7, 2).tolist()
    [2, 4, 6]
    """
    kind = None if dtype is None else as_dtype("ARANGE", dtype)
    ends: Any = [start] if stop is None else [start, stop]
    with numpy_refusals("ARANGE", "step"):
        if kind is not None and kind.kind in "mM":  # dates may be given as text
            ends = np.array(ends, kind)
        span = ends[0] if stop is None else ends[1] - ends[0]
        if isinstance(span, np.timedelta64) and not isinstance(step, np.timedelta64):
            step = np.array(step, span.dtype)[()]  # NumPy 2.5 deprecates times without a unit
        if not step:
            raise ValueError("a step of zero")
        _check_host_memory("ARANGE", ceil(span / step), kind)
        elements = np.arange(start, stop, step, dtype=kind)
    return as_tensor("ARANGE", as_array(elements), device)


def linspace(
    start: Any,
    stop: Any,
    /,
    num: int = 50,
    *,
    dtype: DTypeLike = None,
    device: DeviceLike = None,
    endpoint: bool = True,
) -> Tensor:
    """``num`` numbers at equal distances, as ``numpy.linspace`` returns them for two numbers.

    Raises:
        InvalidDescError: a negative number (ARRAY-06), arguments that are arrays, or that NumPy
            does not accept (ARRAY-10), or a dtype whose elements cannot be moved (T-02).
        OutOfDeviceMemoryError: neither the device nor the host has memory for it.

    >>> import vkops
    >>> vkops.linspace(0, 1, 3).tolist()
    [0.0, 0.5, 1.0]
    """
    kind = None if dtype is None else as_dtype("LINSPACE", dtype)
    count = integer(num, ArgumentName("LINSPACE", "num", "ARRAY-06"))
    if count < 0:
        refuse("LINSPACE", "num", f"got {show(count)}, must be at least 0", "ARRAY-06")
    with numpy_refusals("LINSPACE", "start"):
        for field, value in (("start", start), ("stop", stop)):
            if np.ndim(value):
                raise ArgumentName("LINSPACE", field, "ARRAY-10").wrong_kind(value, "a number")
        _check_host_memory("LINSPACE", count, kind)
        elements = np.linspace(start, stop, count, endpoint=endpoint, dtype=kind)
    return as_tensor("LINSPACE", elements, device)


# -- arguments and plans ---------------------------------------------------------------------------


def _like(
    name: str, x: Any, shape: Any, dtype: Any, device: DeviceLike
) -> tuple[Any, np.dtype[Any], Device | None]:
    """Return the shape, dtype and device of a result that is like ``x``."""
    home = chosen_device(name, device)
    like = x if isinstance(x, Tensor) else as_array(x)
    if home is None and isinstance(like, Tensor):
        home = like.device
    kind = like.dtype if dtype is None else as_dtype(name, dtype)
    return like.shape if shape is None else shape, kind, home


def _full(name: str, shape: Any, dtype: Any, device: DeviceLike, value: Any) -> Tensor:
    """Return a tensor filled with a scalar, which is converted as ``numpy.full`` does."""
    with numpy_refusals(name, "fill_value"):
        if np.ndim(value):
            raise ArgumentName(name, "fill_value", "ARRAY-10").wrong_kind(value, "a scalar")
        element = np.full((), as_array(value) if dtype is None else value, dtype)
    home = chosen_device(name, device)
    plan = _fill[sizes_of(name, shape, element.itemsize), element.tobytes()]
    return Tensor.make(plan, home or default_device(), [], [element.dtype])[0]


@memoized
def _fill(shape: Ints, value: bytes) -> ArrayPlan:
    return array_plan(len(value), [], [shape], [[movements.fill(Fill(value), View.packed(shape))]])


def _check_host_memory(name: str, count: int, dtype: np.dtype[Any] | None) -> None:
    """Raise an error for an array that needs more than all memory of the host (ARRAY-03)."""
    itemsize = 16 if dtype is None else dtype.itemsize
    check_shape(name, (max(0, count),), itemsize)
    host_memory.check_available(max(0, count) * itemsize)
