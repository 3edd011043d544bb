"""Functions on the diagonals of matrices, named as in NumPy.

``diag`` of a matrix returns a view, which moves no data; the others make their results with one
dispatch. Diagonal ``k`` has the elements whose column is their row plus ``k``.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from vkops.arguments.values import ArgumentName, integer, refuse
from vkops.gpu.run.streaming import Progress
from vkops.plan.diagonals import fill_diagonals, on_diagonal
from vkops.plan.region import Fill, Read
from vkops.plan.view import Ints, View
from vkops.tensors.array_plan import ArrayPlan, array_plan, memoized
from vkops.tensors.exchange import DTypeLike, as_dtype, numpy_refusals
from vkops.tensors.operations import as_tensor, chosen_device, native, planned, source_of
from vkops.tensors.shape_arguments import check_not_negative, check_shape
from vkops.tensors.tensor import DeviceLike, Tensor, default_device


def diag(x: Any, /, k: int = 0, *, device: DeviceLike = None, progress: Progress = None) -> Tensor:
    """A matrix with ``x`` on diagonal ``k`` and 0 elsewhere; of a matrix, a view of the diagonal.

    Raises:
        InvalidDescError: ``x`` has neither one dimension nor two (ARRAY-13), or too large a shape
            (ARRAY-03).

    >>> import vkops
    >>> vkops.diag([1, 2]).numpy().tolist()
    [[1, 0], [0, 2]]
    """
    source = source_of(x)
    if source.ndim == 2:
        return as_tensor("DIAG", source, device).diagonal(k)
    k = integer(k, ArgumentName("DIAG", "k", "ARRAY-13"))
    return _diag("DIAG", [source], device, progress, k)[0]


@planned
def _diag(itemsize: int, k: int, source: View) -> ArrayPlan:
    rank = len(source.sizes)
    if rank != 1:
        refuse("DIAG", "x", f"has rank {rank}, must be 1 or 2", "ARRAY-13")
    side = source.sizes[0] + abs(k)
    check_shape("DIAG", (side, side), itemsize)
    target = View.packed((side, side))
    regions = list(on_diagonal(Read(0, source), target, k, Fill(bytes(itemsize))))
    return array_plan(itemsize, [source], [target.sizes], [regions])


def tril(x: Any, /, k: int = 0, *, device: DeviceLike = None, progress: Progress = None) -> Tensor:
    """A copy of ``x`` with 0 above diagonal ``k`` of the matrices in its last two dimensions.

    As in NumPy, the result has the byte order of the host.

    Raises:
        InvalidDescError: ``x`` has fewer than two dimensions (ARRAY-13).

    >>> import vkops
    >>> vkops.tril([[1, 2], [3, 4]]).numpy().tolist()
    [[1, 0], [3, 4]]
    """
    k = integer(k, ArgumentName("TRIL", "k", "ARRAY-13"))
    return _triangle("TRIL", [native(x)], device, progress, "TRIL", k)[0]


def triu(x: Any, /, k: int = 0, *, device: DeviceLike = None, progress: Progress = None) -> Tensor:
    """A copy of ``x`` with 0 below diagonal ``k`` of the matrices in its last two dimensions.

    As in NumPy, the result has the byte order of the host.

    Raises:
        InvalidDescError: ``x`` has fewer than two dimensions (ARRAY-13).

    >>> import vkops
    >>> vkops.triu([[1, 2], [3, 4]], 1).numpy().tolist()
    [[0, 2], [0, 0]]
    """
    k = integer(k, ArgumentName("TRIU", "k", "ARRAY-13"))
    return _triangle("TRIU", [native(x)], device, progress, "TRIU", k)[0]


@planned
def _triangle(itemsize: int, name: str, k: int, source: View) -> ArrayPlan:
    if len(source.sizes) < 2:
        refuse(name, "x", f"has rank {len(source.sizes)}, must be at least 2", "ARRAY-13")
    first, last = -source.sizes[-2], source.sizes[-1]  # all diagonals
    begin, end = (min(k + 1, last), last) if name == "TRIL" else (first, max(first, k))
    target, zero = View.packed(source.sizes), Fill(bytes(itemsize))
    regions = list(fill_diagonals(Read(0, source), target, begin, end, zero))
    return array_plan(itemsize, [source], [source.sizes], [regions])


def eye(
    n_rows: int,
    n_cols: int | None = None,
    /,
    k: int = 0,
    dtype: DTypeLike = None,
    *,
    device: DeviceLike = None,
) -> Tensor:
    """A matrix with 1 on diagonal ``k``, else 0; square, if no number of columns is given.

    Raises:
        InvalidDescError: negative (ARRAY-06) or too large a shape (ARRAY-03), or a dtype whose
            elements cannot be moved (T-02).

    >>> import vkops
    >>> vkops.eye(2, 3, k=1, dtype="int8").numpy().tolist()
    [[0, 1, 0], [0, 0, 1]]
    """
    home = chosen_device("EYE", device) or default_device()
    rows = integer(n_rows, ArgumentName("EYE", "n_rows", "ARRAY-06"))
    columns = rows if n_cols is None else integer(n_cols, ArgumentName("EYE", "n_cols", "ARRAY-06"))
    check_not_negative((rows, columns), ArgumentName("EYE", "shape", "ARRAY-06"))
    k = integer(k, ArgumentName("EYE", "k", "ARRAY-13"))
    kind = as_dtype("EYE", dtype)
    with numpy_refusals("EYE", "dtype", "T-02"):
        one = np.eye(1, dtype=kind)
    check_shape("EYE", (rows, columns), one.itemsize)
    return Tensor.make(_eye[(rows, columns), one.tobytes(), k], home, [], [one.dtype])[0]


@memoized
def _eye(shape: Ints, one: bytes, k: int) -> ArrayPlan:
    regions = list(fill_diagonals(Fill(bytes(len(one))), View.packed(shape), k, k + 1, Fill(one)))
    return array_plan(len(one), [], [shape], [regions])


def diagflat(x: Any, /, k: int = 0, *, device: DeviceLike = None) -> Tensor:
    """``diag`` of the flat array."""
    return diag(as_tensor("DIAGFLAT", x, device).ravel(), k)


def identity(n: int, dtype: DTypeLike = None, /, *, device: DeviceLike = None) -> Tensor:
    """``eye(n)``, a square matrix."""
    return eye(n, dtype=dtype, device=device)
