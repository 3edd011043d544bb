"""Sums that are added to elements chosen by indices."""

from __future__ import annotations

from typing import Any

import numpy as np

from vkops.arguments.values import ArgumentName, refuse
from vkops.elementwise.kernel import ElementwiseKernel
from vkops.kernels.axis_kernel import builtin
from vkops.kernels.functions import converted, numbers_of
from vkops.kernels.scan import ScanKernel
from vkops.kernels.sort import argsort
from vkops.kernels.ufuncs import FUNCTIONS
from vkops.tensors.operations import as_tensor
from vkops.tensors.selection import take
from vkops.tensors.shape_arguments import broadcast_shapes
from vkops.tensors.tensor import Tensor

_WRAPPED = builtin(
    ElementwiseKernel("T x, int32 count", "int32 y", "y = int(x) < 0 ? int(x) + count : int(x)")
)
_BOUNDS = builtin(
    ElementwiseKernel(
        "raw int32 x, int32 count",
        "bool first, int32 last",
        """first = i == 0 || x[i - 1] != x[i];
        last = i == n - 1 || x[i + 1] != x[i] ? x[i] : count;""",
        "scatter_add",
    )
)
"""Where runs of equal indices begin; and the index at their ends, elsewhere one out of range."""

_SUMS = builtin(
    ScanKernel(
        "T x, bool first",
        "T y",
        "x",
        "across_seg_boundary ? b : a + b",
        "y = item",
        name="scatter_add",
        is_segment_start_expr="first",
    )
)


def scatter_add(x: Tensor, indices: Any, values: Any, /) -> None:
    """Add values to the elements of a tensor at indices of its first axis, as ``numpy.add.at``.

    The values of one index are added up first, in the order of C, and then to its element: floats
    are rounded otherwise than by NumPy, and have the same bits on every device. It does not wait.

    Args:
        x: the tensor, which is changed.
        indices: integers from -n to n - 1, where n is the size of the first axis: a tensor, an
            array, a list or an integer. Those of tensors are not checked: elements that do not
            exist are skipped.
        values: a tensor, an array or a number, broadcast to the shape of ``x[indices]``.

    Raises:
        InvalidDescError: an argument of another kind (EW-03), data type (EW-04) or shape (EW-06),
            or an index that is out of range (ARRAY-09).

    >>> import vkops
    >>> x = vkops.zeros(3, "int32")
    >>> vkops.kernels.scatter_add(x, [0, 2, 0], [1, 2, 3])
    >>> x.tolist()
    [4, 0, 2]
    """
    name = "scatter_add"
    if not isinstance(x, Tensor):
        raise ArgumentName(name, "x", "EW-03").wrong_kind(x, "a tensor to write to")
    if not x.ndim:
        refuse(name, "x", "has no dimensions, must have one", "EW-06")
    home, count = x.device, x.shape[0]
    if not isinstance(indices, Tensor):
        array = np.asarray(indices)
        if array.dtype.kind not in "iu" and array.size:
            refuse(name, "indices", f"has data type {array.dtype}, must be integers", "EW-04")
        array = array.astype(np.int64)
        if array.size and not (-count <= array.min() and array.max() < count):
            message = f"has {array.min()} to {array.max()}, must be {-count} to {count - 1}"
            refuse(name, "indices", message, "ARRAY-09")
        indices = as_tensor(name, array.astype(np.int32), home)
    elif indices.dtype.kind not in "iu":
        refuse(name, "indices", f"has data type {indices.dtype}, must be integers", "EW-04")
    shape = indices.shape + x.shape[1:]
    if np.isscalar(values):
        values = np.asarray(values, x.dtype)
    elif isinstance(values, (list, tuple, np.ndarray)):
        values = np.asarray(values)
        if values.dtype.kind in "iu":  # here, as not every device has integers of 64 bits
            values = values.astype(x.dtype)
    added = numbers_of(name, values, home)
    added = added if added.dtype == x.dtype else converted(added, x.dtype)
    if broadcast_shapes([added.shape, shape]) != shape:
        refuse(name, "values", f"has shape {added.shape}, must be broadcast to {shape}", "EW-06")
    if not indices.size or not x.size:
        return
    rows = added.broadcast_to(shape).reshape((indices.size, *x.shape[1:]))
    places = _WRAPPED(indices.reshape(-1), count)
    order = argsort(places, dtype="int32")
    places, rows = take(places, order), take(rows, order, axis=0)
    first, last = _BOUNDS(places, count, size=places.shape)
    sums = _SUMS(rows, first.reshape((-1,) + (1,) * (x.ndim - 1)), axis=0)
    x[last] = FUNCTIONS["add"](take(x, places, axis=0), sums)
