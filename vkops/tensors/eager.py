"""split, join and slice with NumPy semantics: arrays or tensors in, tensors out.

Each is one dispatch, which reads views without copying them first. No dispatch is needed if the
result is the elements of NumPy arrays, one array after the other: they are sent into the result.
Arrays that do not fit on the device together with the result are streamed through it. The result is
then on the host, and ``progress`` is called with the number of bytes done and of all bytes.
"""

from __future__ import annotations

import builtins
import itertools
from collections.abc import Sequence, Sized
from typing import Any

import numpy as np

from vkops.arguments.values import ArgumentName, array, integer, refuse
from vkops.errors import show
from vkops.gpu.run.streaming import Progress
from vkops.plan import movements
from vkops.plan.movements import concat, concat_sizes
from vkops.plan.region import Read
from vkops.plan.view import Ints, View
from vkops.tensors import shape_arguments as shapes
from vkops.tensors.array_plan import ArrayPlan, array_plan, copy_view
from vkops.tensors.operations import TensorOrArray, native, planned, source_of
from vkops.tensors.shape_arguments import MAX_PIECES, OneOrMore, counts, in_rank, packed
from vkops.tensors.tensor import DeviceLike, Tensor


def split(
    x: Any,
    sizes_or_count: OneOrMore,
    axis: int = 0,
    *,
    device: DeviceLike = None,
    progress: Progress = None,
) -> list[Tensor]:
    """Cut ``x`` along ``axis`` into pieces of the given sizes, or into equal pieces.

    Sizes add up to ``x.shape[axis]`` and may be 0; a count divides it. A negative axis counts
    from the end. Source: DML_SPLIT_OPERATOR_DESC.

    Raises:
        InvalidDescError: axis out of range (SPLIT-02), sizes that do not add up, or a count that
            does not divide (SPLIT-06), no piece (SPLIT-01), elements that cannot be moved (T-02).
        OutOfDeviceMemoryError: the pieces do not fit in device memory.

    >>> import numpy as np, vkops
    >>> [part.numpy().tolist() for part in vkops.split(np.arange(6), [1, 2, 3])]
    [[0], [1, 2], [3, 4, 5]]
    """
    if type(axis) is not int:
        axis = integer(axis, ArgumentName("SPLIT", "axis", "SPLIT-02"))
    return _split("SPLIT", [source_of(x)], device, progress, _sizes_or_count(sizes_or_count), axis)


def join(
    tensors: Sequence[Any], axis: int = 0, *, device: DeviceLike = None, progress: Progress = None
) -> Tensor:
    """Concatenate along ``axis``; a negative axis counts from the end.

    As in NumPy, the result has the byte order of the host.

    Source: DML_JOIN_OPERATOR_DESC.

    Raises:
        InvalidDescError: nothing to join (JOIN-01), axis out of range (JOIN-02), different dtypes
            (JOIN-03), ranks (JOIN-04) or sizes beside the axis (JOIN-05).
        OutOfDeviceMemoryError: the result does not fit in device memory.

    >>> import numpy as np, vkops
    >>> vkops.join([np.zeros((1, 2), int), np.ones((2, 2), int)]).numpy().tolist()
    [[0, 0], [1, 1], [1, 1]]
    """
    sources, dtypes = joinable("JOIN", tensors)
    axis = integer(axis, ArgumentName("JOIN", "axis", "JOIN-02"))
    return join_arrays("JOIN", sources, device, progress, "JOIN", dtypes, axis)[0]


def slice(
    x: Any,
    offsets: Sequence[int],
    sizes: Sequence[int],
    strides: Sequence[int] | None = None,
    *,
    device: DeviceLike = None,
    progress: Progress = None,
) -> Tensor:
    """Take ``sizes[i]`` elements from ``offsets[i]`` on, ``strides[i]`` apart (default 1).

    As in DML_SLICE_OPERATOR_DESC, sizes count the elements taken. Beyond it, strides may be
    negative (the offset is still the first element taken) and sizes 0.

    Raises:
        InvalidDescError: not one value per dimension (SLICE-01), negative sizes (SLICE-03),
            stride 0 (SLICE-04), or elements outside ``x`` (SLICE-05).
        OutOfDeviceMemoryError: the result does not fit in device memory.

    >>> import numpy as np, vkops
    >>> vkops.slice(np.arange(10), [8], [3], [-2]).numpy().tolist()
    [8, 6, 4]
    """
    starts = counts(offsets, ArgumentName("SLICE", "offsets", "SLICE-01"))
    lengths = counts(sizes, ArgumentName("SLICE", "sizes", "SLICE-01"))
    steps = (
        None if strides is None else counts(strides, ArgumentName("SLICE", "strides", "SLICE-01"))
    )
    source = source_of(x)
    if not isinstance(source, Tensor) and all(lengths):
        _slice[source.itemsize, starts, lengths, steps, packed(source.shape)]  # checks them
        index: tuple[Any, ...] = (*map(_range, starts, lengths, steps or (1,) * len(starts)), ...)
        source = source[index]  # only these are sent: an array, even without dimensions
        starts, steps = (0,) * len(starts), None
    return _slice("SLICE", [source], device, progress, starts, lengths, steps)[0]


# -- rules and plans -------------------------------------------------------------------------------


@planned
def _split(itemsize: int, sizes_or_count: Ints | int, axis: int, source: View) -> ArrayPlan:
    axis = in_rank("SPLIT", axis, len(source.sizes), "SPLIT-02")
    sizes = _sizes(sizes_or_count, source.sizes[axis])
    shapes = [(*source.sizes[:axis], size, *source.sizes[axis + 1 :]) for size in sizes]
    regions = movements.split(Read(0, source), map(View.packed, shapes), axis)
    return array_plan(itemsize, [source], shapes, [[region] for region in regions])


@planned
def join_arrays(
    itemsize: int, name: str, dtypes: tuple[np.dtype[Any], ...], axis: int, *views: View
) -> ArrayPlan:
    """Return the plan that concatenates views of its inputs (JOIN-02 to JOIN-05)."""
    first = views[0].sizes
    axis = in_rank(name, axis, len(first), "JOIN-02")
    for i, (view, dtype) in enumerate(zip(views, dtypes, strict=True)):
        if dtype != dtypes[0]:
            message = f"has dtype {dtype}, must be {dtypes[0]}; astype converts it"
            refuse(name, f"tensors[{i}]", message, "JOIN-03")
        sizes = view.sizes
        if len(sizes) != len(first):
            refuse(name, f"tensors[{i}]", f"has rank {len(sizes)}, must be {len(first)}", "JOIN-04")
        for other, (got, expected) in enumerate(zip(sizes, first, strict=True)):
            if other != axis and got != expected:
                message = f"got {got}, must be {expected}"
                refuse(name, f"tensors[{i}].shape[{other}]", message, "JOIN-05")
    whole = concat_sizes([view.sizes for view in views], axis)
    parts = [view for view in views if view.extent]
    regions = concat(itertools.starmap(Read, enumerate(parts)), View.packed(whole), axis)
    return array_plan(itemsize, parts, [whole], [regions])


@planned
def _slice(itemsize: int, starts: Ints, sizes: Ints, steps: Ints | None, view: View) -> ArrayPlan:
    shape = view.sizes
    if steps is None:
        steps = (1,) * len(shape)
    for field, values in (("offsets", starts), ("sizes", sizes), ("strides", steps)):
        if len(values) != len(shape):
            message = f"got {len(values)} values, must be {len(shape)}, the rank"
            refuse("SLICE", field, message, "SLICE-01")
    for i, (start, count, step, n) in enumerate(zip(starts, sizes, steps, shape, strict=True)):
        if count < 0:
            refuse("SLICE", f"sizes[{i}]", f"got {show(count)}, must be at least 0", "SLICE-03")
        if step == 0:
            refuse("SLICE", f"strides[{i}]", "got 0, must not be 0", "SLICE-04")
        if count == 0:
            continue
        for at in (start, start + (count - 1) * step):
            if not 0 <= at < n:
                message = f"reaches element {show(at)}, must be 0 to {n - 1}"
                refuse("SLICE", f"offsets[{i}]", message, "SLICE-05")
    return copy_view(view.window(starts, sizes, steps), itemsize)


def _range(start: int, count: int, step: int) -> builtins.slice:
    end = start + count * step
    return builtins.slice(start, None if end < 0 else end, step)


# -- arguments -------------------------------------------------------------------------------------


def joinable(name: str, tensors: Any) -> tuple[list[TensorOrArray], tuple[np.dtype[Any], ...]]:
    """Return the arrays or tensors to concatenate, at least one, and their data types (JOIN-01)."""
    sources = [*map(native, entries(name, tensors))]
    if not sources:
        refuse(name, "tensors", "got none, must be at least 1", "JOIN-01")
    return sources, tuple([source.dtype for source in sources])


def entries(name: str, tensors: Any) -> Sequence[Any]:
    """Return the arrays or tensors to concatenate as a sequence (JOIN-01)."""
    if type(tensors) in (list, tuple):
        return tensors  # type: ignore[no-any-return]
    argument = ArgumentName(name, "tensors", "JOIN-01")
    return array(tensors, argument, lambda value, _: value, "arrays or tensors")


def _sizes_or_count(value: Any) -> Ints | int:
    if type(value) is int:
        return value
    if isinstance(value, Sized):
        return counts(value, ArgumentName("SPLIT", "sizes_or_count", "SPLIT-06"))
    return integer(value, ArgumentName("SPLIT", "sizes_or_count", "SPLIT-01"))


def _sizes(sizes_or_count: Ints | int, whole: int) -> Ints:
    field = "sizes_or_count"
    if isinstance(sizes_or_count, int):
        count = sizes_or_count
        if not 1 <= count <= MAX_PIECES:
            refuse("SPLIT", field, f"got {show(count)}, must be 1 to {MAX_PIECES}", "SPLIT-01")
        if whole % count:
            refuse("SPLIT", field, f"got {count}, must divide {whole}", "SPLIT-06")
        return (whole // count,) * count
    sizes = sizes_or_count
    if not sizes:
        refuse("SPLIT", field, "got no sizes, must be at least 1", "SPLIT-01")
    shapes.check_not_negative(sizes, ArgumentName("SPLIT", field, "SPLIT-06"))
    if sum(sizes) != whole:
        refuse("SPLIT", field, f"got a sum of {show(sum(sizes))}, must be {whole}", "SPLIT-06")
    return sizes
