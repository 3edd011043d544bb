"""Functions named as in NumPy and the array API: arrays or tensors in, tensors out.

``broadcast_to``, ``expand_dims``, ``flip``, ``permute_dims``, ``squeeze`` and ``unstack`` give
views, which move no data; ``array_split``, ``concat`` and ``stack`` make their results with one
dispatch, whatever views they are given. Arrays are sent to ``device``, or the default device.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate, pairwise
from math import prod
from typing import Any

from vkops.arguments.values import Place, integer
from vkops.errors import show
from vkops.gpu.streaming import Progress
from vkops.plan.movements import pack
from vkops.plan.view import Ints, View
from vkops.tensors.array_plan import ArrayPlan, array_plan, memoized
from vkops.tensors.eager import entries, joined
from vkops.tensors.exchange import imported
from vkops.tensors.operations import as_tensor, native, run, sources
from vkops.tensors.shape_arguments import MAX_PIECES, check_shape, counts, one_axis, refuse
from vkops.tensors.tensor import DeviceLike, Tensor

# -- views -----------------------------------------------------------------------------------------


def broadcast_to(x: Any, shape: int | Sequence[int], *, device: DeviceLike | None = None) -> Tensor:
    """A view of ``x`` of another shape, repeating elements; see ``Tensor.broadcast_to``.

    >>> import vkops
    >>> vkops.broadcast_to([1, 2], (2, 2)).numpy().tolist()
    [[1, 2], [1, 2]]
    """
    return as_tensor("BROADCAST_TO", x, device).broadcast_to(shape)


def expand_dims(x: Any, axis: int | Sequence[int], *, device: DeviceLike | None = None) -> Tensor:
    """A view of ``x`` with new dimensions of size 1; see ``Tensor.expand_dims``.

    >>> import vkops
    >>> vkops.expand_dims([1, 2], 1).shape
    (2, 1)
    """
    return as_tensor("EXPAND_DIMS", x, device).expand_dims(axis)


def flip(
    x: Any, axis: int | Sequence[int] | None = None, *, device: DeviceLike | None = None
) -> Tensor:
    """A view of ``x`` in reverse order along some axes, or all; see ``Tensor.flip``.

    >>> import vkops
    >>> vkops.flip([[1, 2], [3, 4]], 1).numpy().tolist()
    [[2, 1], [4, 3]]
    """
    return as_tensor("FLIP", x, device).flip(axis)


def permute_dims(x: Any, axes: Sequence[int], *, device: DeviceLike | None = None) -> Tensor:
    """A view of ``x`` with its dimensions in another order; see ``Tensor.transpose``.

    >>> import vkops
    >>> vkops.permute_dims([[1, 2, 3]], (1, 0)).shape
    (3, 1)
    """
    return as_tensor("TRANSPOSE", x, device).transpose(axes)


def squeeze(
    x: Any, axis: int | Sequence[int] | None = None, *, device: DeviceLike | None = None
) -> Tensor:
    """A view of ``x`` without some dimensions of size 1, or all; see ``Tensor.squeeze``.

    >>> import vkops
    >>> vkops.squeeze([[[1, 2]]], 0).shape
    (1, 2)
    """
    return as_tensor("SQUEEZE", x, device).squeeze(axis)


def unstack(x: Any, axis: int = 0, *, device: DeviceLike | None = None) -> tuple[Tensor, ...]:
    """Views of ``x`` at each index of an axis, without that axis.

    Raises:
        InvalidDescError: axis out of range (ARRAY-01).

    >>> import vkops
    >>> [part.numpy().tolist() for part in vkops.unstack([[1, 2], [3, 4]], 1)]
    [[1, 3], [2, 4]]
    """
    tensor = as_tensor("UNSTACK", x, device)
    before = (slice(None),) * one_axis("UNSTACK", axis, tensor.ndim)
    indices = ((*before, place) for place in range(tensor.shape[len(before)]))
    return tuple([tensor[index] for index in indices])


def from_dlpack(x: Any, *, device: DeviceLike | None = None) -> Tensor:
    """Copy the elements of an exporter of DLPack in host memory, such as a PyTorch tensor.

    The 8- and 16-bit floating-point types that NumPy lacks, such as bfloat16, have the dtypes of
    the package ml_dtypes.

    Raises:
        InvalidDescTypeError: no exporter, or elements or a device that NumPy does not take, or
            elements that need ml_dtypes, which is not installed (T-02).

    >>> import numpy as np, vkops
    >>> vkops.from_dlpack(np.arange(3)).numpy().tolist()
    [0, 1, 2]
    """
    return as_tensor("FROM_DLPACK", imported(x), device)


# -- splitting and joining -------------------------------------------------------------------------


def array_split(
    x: Any,
    indices_or_sections: int | Sequence[int],
    axis: int = 0,
    *,
    device: DeviceLike | None = None,
    progress: Progress | None = None,
) -> list[Tensor]:
    """Cut ``x`` before each of some indices, or into sections, the first ones longer by one.

    As in NumPy, indices may be negative, beyond the end, and in any order.

    Raises:
        InvalidDescError: axis out of range (ARRAY-01), or no section (ARRAY-06).

    >>> import numpy as np, vkops
    >>> [part.numpy().tolist() for part in vkops.array_split(np.arange(5), 2)]
    [[0, 1, 2], [3, 4]]
    """
    home, found, (view,) = sources("ARRAY_SPLIT", [x], device)
    axis = one_axis("ARRAY_SPLIT", axis, len(view.sizes))
    place = Place("ARRAY_SPLIT", "indices_or_sections", "ARRAY-06")
    given = indices_or_sections
    at = counts(given, place) if hasattr(given, "__len__") else integer(given, place)
    return run(_array_split(view, found[0].dtype.itemsize, at, axis), home, found, progress)


@memoized
def _array_split(source: View, itemsize: int, at: Ints | int, axis: int) -> ArrayPlan:
    whole = source.sizes[axis]
    if isinstance(at, int):
        if not 1 <= at <= MAX_PIECES:
            field, message = "indices_or_sections", f"got {show(at)}, must be 1 to {MAX_PIECES}"
            refuse("ARRAY_SPLIT", field, message, "ARRAY-06")
        size, more = divmod(whole, at)
        at = tuple(accumulate([size + 1] * more + [size] * (at - more)))[:-1]
    edges = pairwise([0, *at, whole])
    ranges = [range(whole)[start:stop] for start, stop in edges]
    parts = [source.narrow(axis, part.start, len(part)) for part in ranges]
    return array_plan(
        itemsize, [source], [part.sizes for part in parts], [[pack(p)] for p in parts]
    )


def concat(
    arrays: Sequence[Any],
    axis: int | None = 0,
    *,
    device: DeviceLike | None = None,
    progress: Progress | None = None,
) -> Tensor:
    """Join along an axis; None: all elements one after the other.

    Raises:
        InvalidDescError: as ``join``.

    >>> import vkops
    >>> vkops.concat([[[1, 2]], [[3, 4]]], axis=None).numpy().tolist()
    [1, 2, 3, 4]
    """
    home, found, views = sources("CONCAT", entries("CONCAT", arrays), device)
    found = native(found)
    dtypes = tuple([source.dtype for source in found])
    if axis is None:
        sizes = tuple([(prod(view.sizes),) for view in views])
        joined("CONCAT", tuple(map(View.packed, sizes)), dtypes, 0)  # checks the dtypes
        return run(_concat_flat(views, dtypes[0].itemsize), home, found, progress)[0]
    axis = integer(axis, Place("CONCAT", "axis", "JOIN-02"))
    return run(joined("CONCAT", views, dtypes, axis), home, found, progress)[0]


concatenate = concat


@memoized
def _concat_flat(views: tuple[View, ...], itemsize: int) -> ArrayPlan:
    views = tuple(view for view in views if view.extent)
    starts = tuple(accumulate((prod(view.sizes) for view in views), initial=0))
    regions = [pack(view, starts[input], input) for input, view in enumerate(views)]
    return array_plan(itemsize, views, [starts[-1:]], [regions])


def stack(
    arrays: Sequence[Any],
    axis: int = 0,
    *,
    device: DeviceLike | None = None,
    progress: Progress | None = None,
) -> Tensor:
    """Join arrays of one shape along a new axis of the result.

    Raises:
        InvalidDescError: axis out of range (ARRAY-01); else as ``join``.

    >>> import vkops
    >>> vkops.stack([[1, 2], [3, 4]], axis=1).numpy().tolist()
    [[1, 3], [2, 4]]
    """
    home, found, views = sources("STACK", entries("STACK", arrays), device)
    found = native(found)
    if not views:
        refuse("STACK", "tensors", "got none, must be at least 1", "JOIN-01")
    axis = one_axis("STACK", axis, len(views[0].sizes) + 1)
    for i, view in enumerate(views):
        if view.sizes != views[0].sizes:
            message = f"got {view.sizes}, must be {views[0].sizes}"
            refuse("STACK", f"tensors[{i}].shape", message, "JOIN-05")
    check_shape("STACK", (len(views), *views[0].sizes), found[0].dtype.itemsize)
    grown = tuple([view.insert(axis) for view in views])
    dtypes = tuple([source.dtype for source in found])
    return run(joined("STACK", grown, dtypes, axis), home, found, progress)[0]
