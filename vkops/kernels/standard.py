"""Functions of the array API that are made of other kernels."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any, NamedTuple, overload

import numpy as np

from vkops.arguments.values import refuse
from vkops.elementwise.arithmetic import DType
from vkops.elementwise.parameters import Parameter
from vkops.errors import InvalidDescTypeError
from vkops.kernels.axis_kernel import InnerKernel, builtin
from vkops.kernels.compaction import nonzero, unique
from vkops.kernels.functions import (
    converted,
    integer_from,
    numbers_of,
    sum,
    summed,
    typed_input,
    var,
)
from vkops.kernels.scan import cumprod, cumsum
from vkops.kernels.table_kernels import common_dtype, kind_of_operand, operand_of
from vkops.kernels.ufuncs import FUNCTIONS
from vkops.plan.view import Ints
from vkops.tensors.creation import full
from vkops.tensors.manipulation import concat
from vkops.tensors.operations import as_tensor
from vkops.tensors.shape_arguments import one_axis
from vkops.tensors.tensor import DeviceLike, Tensor

# -- choosing --------------------------------------------------------------------------------------


@overload
def where(condition: Any, /, *, device: DeviceLike = None) -> tuple[Tensor, ...]: ...


@overload
def where(
    condition: Any, x1: Any, x2: Any, /, *, out: Any = None, device: DeviceLike = None
) -> Tensor: ...


def where(
    condition: Any, x1: Any = None, x2: Any = None, /, *, out: Any = None, device: DeviceLike = None
) -> Any:
    """Return elements of ``x1`` where a condition is true, and else of ``x2``, as ``numpy.where``.

    Args:
        condition: a tensor, an array or a Boolean; numbers are true if they are not 0.
        x1: a tensor, an array or a number, broadcast together with the others.
        x2: another one. The data type of results is the common one. Without both, the result is
            that of ``nonzero``.
        out: a tensor that gets the results.
        device: where it runs; by default the device of the first tensor.

    Raises:
        InvalidDescError: arguments of the wrong kind (EW-03) or shape (EW-06), or data types that
            have none in common (ARITH-01).

    >>> import vkops
    >>> vkops.where(vkops.arange(4) > 1, vkops.arange(4), -1).tolist()
    [-1, -1, 2, 3]
    """
    if x1 is None and x2 is None and out is None:
        return nonzero(condition, device=device)
    condition, x1, x2 = (
        operand_of("where", field, value)
        for field, value in (("condition", condition), ("x1", x1), ("x2", x2))
    )
    kinds = [kind_of_operand(each) for each in (x1, x2)]
    common = out.dtype if isinstance(out, Tensor) else _common("where", kinds)
    if kind_of_operand(condition) not in (bool, np.bool_):
        condition = FUNCTIONS["not_equal"](condition, 0, device=device)
    if all(isinstance(each, (bool, int, float)) for each in (condition, x1, x2)):
        condition = np.asarray(condition)
    values = [_cast(each, common) for each in (x1, x2)]
    result: Tensor = _choosing(common.name)(condition, *values, out=out, device=device)
    return result


def _common(name: str, kinds: Sequence[Any]) -> DType:
    """The data type of operands together (ARITH-01)."""
    try:
        return common_dtype([np.dtype(bool) if kind is bool else kind for kind in kinds])
    except TypeError as error:
        message = f"have no data type in common: {' '.join(str(error).split())}"
        raise InvalidDescTypeError(name, "arguments", message, "ARITH-01") from error


def _cast(x: Any, dtype: DType) -> Any:
    """An operand of another data type: on the device, if it is there. A number stays as it is."""
    if getattr(x, "dtype", dtype) == dtype:
        return x
    return converted(x, dtype) if isinstance(x, Tensor) else x.astype(dtype)


@lru_cache(64)
def _choosing(dtype: str) -> InnerKernel:
    params = [Parameter(dtype, name, wide=True) for name in ("x1", "x2")]
    params = [Parameter("bool", "condition", wide=True), *params]
    result = Parameter(dtype, "result", is_output=True, wide=True)
    return builtin(InnerKernel((*params, result), "result = condition ? x1 : x2", "where", ""))


def diff(
    x: Any,
    /,
    n: int = 1,
    axis: int = -1,
    prepend: Any = None,
    append: Any = None,
    *,
    device: DeviceLike = None,
) -> Tensor:
    """Return the differences of neighbours along an axis, as ``numpy.diff``.

    Args:
        x: a tensor or an array.
        n: how often differences are taken, of those before.
        axis: the axis.
        prepend: elements that are put before those of ``x``: a number, or a tensor or an array
            whose other sizes are those of ``x``.
        append: the same after them.
        device: where it runs; by default the device of the tensor.

    Raises:
        InvalidDescError: a number below 0 (EW-05), an axis that does not exist (ARRAY-01), or
            elements with other sizes (JOIN-05).

    >>> import vkops
    >>> vkops.diff([1, 3, 6, 10], append=0).tolist()
    [2, 3, 4, -10]
    """
    tensor = numbers_of("diff", x, device)
    count = integer_from(0, None, n, "diff", "n")
    along = one_axis("diff", axis, tensor.ndim)
    if not count:
        return tensor  # type: ignore[no-any-return]
    ends = [tensor]
    for place, end in ((0, prepend), (2, append)):
        if end is None:
            continue
        weak = np.asarray(end, tensor.dtype) if isinstance(end, (bool, int, float)) else end
        part = as_tensor("diff", weak, tensor.device)
        if not part.ndim:
            part = part.broadcast_to(_with_size(tensor.shape, along, 1))
        ends.insert(place, part)
    whole = concat(ends, axis=along) if len(ends) > 1 else tensor
    is_bool = whole.dtype.kind == "b"
    for _ in range(min(count, whole.shape[along])):
        whole = FUNCTIONS["not_equal" if is_bool else "subtract"](
            whole[_along(along, 1, None)], whole[_along(along, None, -1)]
        )
    return whole


def _with_size(shape: Ints, axis: int, size: int) -> Ints:
    return (*shape[:axis], size, *shape[axis + 1 :])


def _along(axis: int, start: int | None, stop: int | None) -> tuple[slice, ...]:
    return (*(slice(None),) * axis, slice(start, stop))


def trace(
    x: Any,
    /,
    offset: int = 0,
    axis1: int = 0,
    axis2: int = 1,
    *,
    dtype: Any = None,
    out: Any = None,
    device: DeviceLike = None,
) -> Tensor:
    """Return the sums of diagonals, as ``numpy.trace``.

    Args:
        x: a tensor or an array of two dimensions at least.
        offset: the diagonal: above the main one, or below it if the number is negative.
        axis1: the first axis of matrices.
        axis2: the second one.
        dtype: as for ``sum``.
        out: a tensor that gets the sums.
        device: where it runs; by default the device of the tensor.

    Raises:
        InvalidDescError: an axis that does not exist (ARRAY-01), or as for ``sum``.

    >>> import vkops
    >>> vkops.kernels.trace(vkops.eye(3, dtype="int32"), dtype="int32").item()
    3
    """
    diagonals = numbers_of("trace", x, device).diagonal(offset, axis1, axis2)
    return sum(diagonals, -1, dtype=dtype, out=out)


# -- statistics ------------------------------------------------------------------------------------


def std(
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
    """Return the standard deviations of elements along axes, as ``numpy.std``.

    They are square roots of variances; arguments and errors are those of ``var``.

    >>> import numpy as np, vkops
    >>> vkops.kernels.std(np.array([1.0, 3.0])).item()
    1.0
    """
    options: Any = {"correction": correction, "dtype": dtype, "keepdims": keepdims}
    result = var(x, axis, out=out, device=device, **options)
    return FUNCTIONS["sqrt"](result, out=result)  # type: ignore[no-any-return]


def cumulative_sum(
    x: Any,
    /,
    *,
    axis: int | None = None,
    dtype: Any = None,
    include_initial: bool = False,
    device: DeviceLike = None,
) -> Tensor:
    """Return the sums of the elements up to each one, as ``numpy.cumulative_sum``.

    Arguments and errors are those of ``cumsum``. An array of several dimensions needs an axis; with
    ``include_initial``, the result begins with 0.

    >>> import numpy as np, vkops
    >>> vkops.cumulative_sum(np.arange(4), include_initial=True).tolist()
    [0, 0, 1, 3, 6]
    """
    return _cumulative(cumsum, 0, x, axis, dtype, include_initial, device)


def cumulative_prod(
    x: Any,
    /,
    *,
    axis: int | None = None,
    dtype: Any = None,
    include_initial: bool = False,
    device: DeviceLike = None,
) -> Tensor:
    """Return the products of the elements up to each one, as ``numpy.cumulative_prod``.

    Arguments and errors are those of ``cumulative_sum``; the first number is 1.

    >>> import numpy as np, vkops
    >>> vkops.cumulative_prod(np.arange(1, 5)).tolist()
    [1, 2, 6, 24]
    """
    return _cumulative(cumprod, 1, x, axis, dtype, include_initial, device)


def _cumulative(
    scan: Any, initial: int, x: Any, axis: Any, dtype: Any, include_initial: bool, device: Any
) -> Tensor:
    name = "cumulative_prod" if initial else "cumulative_sum"
    tensor, result_dtype = typed_input(name, x, dtype, device, summed)
    if axis is None and tensor.ndim != 1:
        refuse(name, "axis", f"must be given for {tensor.ndim} dimensions", "ARRAY-01")
    along = one_axis(name, 0 if axis is None else axis, tensor.ndim)
    if not include_initial:
        return scan(tensor, along, dtype=result_dtype)  # type: ignore[no-any-return]
    shape = _with_size(tensor.shape, along, tensor.shape[along] + 1)
    result = full(shape, initial, dtype=result_dtype, device=tensor.device)
    if tensor.size:
        scan(tensor, along, dtype=result_dtype, out=result[_along(along, 1, None)])
    return result


# -- sets ------------------------------------------------------------------------------------------


class UniqueAll(NamedTuple):
    """The results of ``unique_all``: the different elements, and what belongs to each."""

    values: Tensor
    indices: Tensor
    inverse_indices: Tensor
    counts: Tensor


class UniqueCounts(NamedTuple):
    """The results of ``unique_counts``: the different elements, and how often each occurs."""

    values: Tensor
    counts: Tensor


class UniqueInverse(NamedTuple):
    """The results of ``unique_inverse``: the different elements, and the place of each element."""

    values: Tensor
    inverse_indices: Tensor


def unique_all(x: Any, /, *, device: DeviceLike = None) -> UniqueAll:
    """Return the different elements, sorted, with their first indices, inverse and counts.

    As all functions of the array API for sets, it waits until the number of results is known, so it
    cannot be recorded, and each NaN differs from all elements. Errors are those of ``unique``.

    >>> import numpy as np, vkops
    >>> [each.tolist() for each in vkops.unique_all(np.array([3, 1, 3]))]
    [[1, 3], [1, 0], [1, 0, 1], [1, 2]]
    """
    every: Any = {"return_index": True, "return_inverse": True, "return_counts": True}
    return UniqueAll(*unique(x, equal_nan=False, device=device, **every))


def unique_counts(x: Any, /, *, device: DeviceLike = None) -> UniqueCounts:
    """Return the different elements, and how often each occurs; see ``unique_all``."""
    return UniqueCounts(*unique(x, equal_nan=False, return_counts=True, device=device))


def unique_inverse(x: Any, /, *, device: DeviceLike = None) -> UniqueInverse:
    """Return the different elements, and the place of each element in them; see ``unique_all``."""
    return UniqueInverse(*unique(x, equal_nan=False, return_inverse=True, device=device))


def unique_values(x: Any, /, *, device: DeviceLike = None) -> Tensor:
    """Return the different elements; see ``unique_all``."""
    result: Tensor = unique(x, equal_nan=False, device=device)
    return result
