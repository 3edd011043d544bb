"""Functions that split and join arrays, named as in NumPy and the array API; one dispatch each."""

from __future__ import annotations

from collections.abc import Iterator, Sequence, Sized
from itertools import accumulate, pairwise
from math import prod
from typing import Any

import numpy as np

from vkops.arguments.values import ArgumentName, integer, refuse
from vkops.errors import show
from vkops.gpu.run.streaming import Progress
from vkops.plan.movements import pack
from vkops.plan.size_limits import MAX_DIMENSIONS
from vkops.plan.view import Ints, View
from vkops.tensors import shape_arguments as shapes
from vkops.tensors.array_plan import ArrayPlan, array_plan
from vkops.tensors.eager import entries, join_arrays, joinable, split
from vkops.tensors.exchange import numpy_refusals
from vkops.tensors.operations import TensorOrArray, as_tensor, as_tensors, planned, source_of
from vkops.tensors.shape_arguments import OneOrMore
from vkops.tensors.tensor import DeviceLike, Tensor
from vkops.tensors.view_functions import of_rank

# -- splitting and joining -------------------------------------------------------------------------


def array_split(
    x: Any,
    /,
    indices_or_sections: OneOrMore,
    axis: int = 0,
    *,
    device: DeviceLike = None,
    progress: Progress = None,
) -> list[Tensor]:
    """Cut ``x`` before each of some indices, or into sections, the first ones longer by one.

    As in NumPy, indices may be negative, beyond the end, and in any order.

    Raises:
        InvalidDescError: axis out of range (ARRAY-01), or no section (ARRAY-06).

    >>> import numpy as np, vkops
    >>> [part.numpy().tolist() for part in vkops.array_split(np.arange(5), 2)]
    [[0, 1, 2], [3, 4]]
    """
    axis = integer(axis, ArgumentName("ARRAY_SPLIT", "axis", "ARRAY-01"))
    argument = ArgumentName("ARRAY_SPLIT", "indices_or_sections", "ARRAY-06")
    value = indices_or_sections
    at = shapes.counts(value, argument) if isinstance(value, Sized) else integer(value, argument)
    return _array_split("ARRAY_SPLIT", [source_of(x)], device, progress, at, axis)


def split_at(
    x: Any, /, indices_or_sections: OneOrMore, axis: int = 0, *, device: DeviceLike = None
) -> list[Tensor]:
    """``numpy.split``: cut before each of some indices, or into equal sections."""
    cut = array_split if isinstance(indices_or_sections, Sized) else split
    return cut(x, indices_or_sections, axis, device=device)


@planned
def _array_split(itemsize: int, at: Ints | int, axis: int, source: View) -> ArrayPlan:
    axis = shapes.one_axis("ARRAY_SPLIT", axis, len(source.sizes))
    whole = source.sizes[axis]
    if isinstance(at, int):
        if not 1 <= at <= shapes.MAX_PIECES:
            message = f"got {show(at)}, must be 1 to {shapes.MAX_PIECES}"
            refuse("ARRAY_SPLIT", "indices_or_sections", message, "ARRAY-06")
        size, more = divmod(whole, at)
        at = tuple(accumulate([size + 1] * more + [size] * (at - more)))[:-1]
    edges = pairwise([0, *at, whole])
    ranges = [range(whole)[start:stop] for start, stop in edges]
    parts = [source.narrow(axis, part.start, len(part)) for part in ranges]
    return array_plan(
        itemsize, [source], [part.sizes for part in parts], [[pack(p)] for p in parts]
    )


def hsplit(x: Any, indices_or_sections: OneOrMore, /, *, device: DeviceLike = None) -> list[Tensor]:
    """``numpy.split`` along the second dimension, or along the only one."""
    tensor = as_tensor("HSPLIT", x, device)
    return _cut("HSPLIT", tensor, indices_or_sections, min(1, tensor.ndim - 1), 1)


def vsplit(x: Any, indices_or_sections: OneOrMore, /, *, device: DeviceLike = None) -> list[Tensor]:
    """``numpy.split`` along the first of at least two dimensions."""
    return _cut("VSPLIT", as_tensor("VSPLIT", x, device), indices_or_sections, 0, 2)


def dsplit(x: Any, indices_or_sections: OneOrMore, /, *, device: DeviceLike = None) -> list[Tensor]:
    """``numpy.split`` along the third dimension."""
    return _cut("DSPLIT", as_tensor("DSPLIT", x, device), indices_or_sections, 2, 3)


def _cut(name: str, x: Tensor, at: OneOrMore, axis: int, rank: int) -> list[Tensor]:
    if x.ndim < rank:
        refuse(name, "x", f"has rank {x.ndim}, must be at least {rank}", "ARRAY-01")
    return split_at(x, at, axis)


def concat(
    arrays: Sequence[Any],
    /,
    axis: int | None = 0,
    *,
    device: DeviceLike = None,
    progress: Progress = None,
) -> Tensor:
    """Join along an axis; None: all elements one after the other.

    Arrays of several data types are converted to the common one, as in NumPy.

    Raises:
        InvalidDescError: as ``join``.

    >>> import vkops
    >>> vkops.concat([[[1, 2]], [[3, 4]]], axis=None).numpy().tolist()
    [1, 2, 3, 4]
    """
    sources, dtypes = _of_common_type("CONCAT", arrays)
    if axis is None:
        return _concat_flat("CONCAT", sources, device, progress, dtypes)[0]
    axis = integer(axis, ArgumentName("CONCAT", "axis", "JOIN-02"))
    return join_arrays("CONCAT", sources, device, progress, "CONCAT", dtypes, axis)[0]


concatenate = concat


def _of_common_type(
    name: str, arrays: Sequence[Any]
) -> tuple[list[TensorOrArray], tuple[np.dtype[Any], ...]]:
    """Return arrays, converted to the data type of NumPy's result, and their data types."""
    sources, dtypes = joinable(name, arrays)
    if len(set(dtypes)) > 1:
        with numpy_refusals(name, "tensors", "JOIN-03"):
            common = np.result_type(*dtypes)
        sources = [source.astype(common, copy=False) for source in sources]
        dtypes = (common,) * len(sources)
    return sources, dtypes


@planned
def _concat_flat(itemsize: int, dtypes: tuple[np.dtype[Any], ...], *views: View) -> ArrayPlan:
    flat = (shapes.packed((prod(view.sizes),)) for view in views)
    key = (itemsize, "CONCAT", dtypes, 0, *flat)
    join_arrays[key]  # checks the dtypes
    views = tuple(view for view in views if view.extent)
    starts = tuple(accumulate((prod(view.sizes) for view in views), initial=0))
    regions = [pack(view, starts[input], input) for input, view in enumerate(views)]
    return array_plan(itemsize, views, [starts[-1:]], [regions])


def append(x: Any, values: Any, /, axis: int | None = None, *, device: DeviceLike = None) -> Tensor:
    """``concat([x, values], axis)``; without an axis, of the flat arrays."""
    return concat([x, values], axis, device=device)


def stack(
    arrays: Sequence[Any], /, axis: int = 0, *, device: DeviceLike = None, progress: Progress = None
) -> Tensor:
    """Join arrays of one shape along a new axis of the result.

    Arrays of several data types are converted to the common one, as in NumPy.

    Raises:
        InvalidDescError: axis out of range (ARRAY-01); else as ``join``.

    >>> import vkops
    >>> vkops.stack([[1, 2], [3, 4]], axis=1).numpy().tolist()
    [[1, 3], [2, 4]]
    """
    sources, dtypes = _of_common_type("STACK", arrays)
    axis = integer(axis, ArgumentName("STACK", "axis", "ARRAY-01"))
    return _stack("STACK", sources, device, progress, dtypes, axis)[0]


@planned
def _stack(itemsize: int, dtypes: tuple[np.dtype[Any], ...], axis: int, *views: View) -> ArrayPlan:
    axis = shapes.one_axis("STACK", axis, len(views[0].sizes) + 1)
    for i, view in enumerate(views):
        if view.sizes != views[0].sizes:
            message = f"got {view.sizes}, must be {views[0].sizes}"
            refuse("STACK", f"tensors[{i}].shape", message, "JOIN-05")
    shapes.check_shape("STACK", (len(views), *views[0].sizes), itemsize)
    key = (itemsize, "STACK", dtypes, axis, *(view.insert(axis) for view in views))
    return join_arrays[key]


def hstack(arrays: Sequence[Any], /, *, device: DeviceLike = None) -> Tensor:
    """Join arrays along their second dimension; those of one dimension along it.

    Raises:
        InvalidDescError: as ``join``.

    >>> import vkops
    >>> vkops.hstack([[1], [2, 3]]).tolist()
    [1, 2, 3]
    """
    parts = _parts("HSTACK", arrays, 1, device)
    return concat(parts, 0 if parts and parts[0].ndim == 1 else 1)


def vstack(arrays: Sequence[Any], /, *, device: DeviceLike = None) -> Tensor:
    """Join arrays along their first dimension; those of one dimension are rows.

    Raises:
        InvalidDescError: as ``join``.

    >>> import vkops
    >>> vkops.vstack([[1, 2], [3, 4]]).tolist()
    [[1, 2], [3, 4]]
    """
    return concat(_parts("VSTACK", arrays, 2, device), 0)


def dstack(arrays: Sequence[Any], /, *, device: DeviceLike = None) -> Tensor:
    """Join arrays along their third dimension, which those of one or two have after ``atleast_3d``.

    Raises:
        InvalidDescError: as ``join``.

    >>> import vkops
    >>> vkops.dstack([[1, 2], [3, 4]]).tolist()
    [[[1, 3], [2, 4]]]
    """
    return concat(_parts("DSTACK", arrays, 3, device), 2)


def column_stack(arrays: Sequence[Any], /, *, device: DeviceLike = None) -> Tensor:
    """Join arrays along their second dimension; those of one dimension are columns.

    Raises:
        InvalidDescError: as ``join``.

    >>> import vkops
    >>> vkops.column_stack([[1, 2], [3, 4]]).tolist()
    [[1, 3], [2, 4]]
    """
    parts = as_tensors("COLUMN_STACK", entries("COLUMN_STACK", arrays), device)
    return concat([of_rank(x, 2).T if x.ndim < 2 else x for x in parts], 1)


def _parts(name: str, arrays: Any, rank: int, device: DeviceLike) -> list[Tensor]:
    return [of_rank(x, rank) for x in as_tensors(name, entries(name, arrays), device)]


def block(arrays: Any, /, *, device: DeviceLike = None) -> Tensor:
    """Join the arrays in nested lists: the innermost along the last dimension, and so on outwards.

    Arrays with too few dimensions get new ones in front. Each list is one dispatch.

    Raises:
        InvalidDescError: no lists of one depth, or empty ones (ARRAY-18); else as ``join``.

    >>> import vkops
    >>> vkops.block([[1, 2], [3, 4]]).tolist()
    [[1, 2], [3, 4]]
    """
    leaves = list(_leaves(arrays, 0))
    depth = leaves[0][0]
    if any(other != depth for other, _ in leaves):
        refuse("BLOCK", "arrays", "has lists of different depths, must be of one", "ARRAY-18")
    parts = as_tensors("BLOCK", [leaf for _, leaf in leaves], device)
    rank = max(depth, *(part.ndim for part in parts))
    in_order = iter(part.reshape((1,) * (rank - part.ndim) + part.shape) for part in parts)

    def joined_lists(item: Any, axis: int) -> Tensor:
        if not axis:
            return next(in_order)
        return concat([joined_lists(each, axis + 1) for each in item], axis)

    return joined_lists(arrays, -depth) if depth else parts[0].copy()


def _leaves(item: Any, depth: int) -> Iterator[tuple[int, Any]]:
    """Yield the arrays in nested lists, each with the depth at which it is nested."""
    if not isinstance(item, list):
        yield depth, item
        return
    if not item or depth == MAX_DIMENSIONS:
        message = f"must be lists of at least one array, nested {MAX_DIMENSIONS} times at most"
        refuse("BLOCK", "arrays", message, "ARRAY-18")
    for each in item:
        yield from _leaves(each, depth + 1)
