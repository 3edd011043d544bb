"""Functions that roll or repeat elements, named as in NumPy; one dispatch each."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from math import prod
from typing import Any

from vkops.arguments.values import Place
from vkops.gpu.streaming import Progress
from vkops.plan import movements
from vkops.plan.region import Read
from vkops.plan.view import Ints, View
from vkops.tensors.array_plan import ArrayPlan, array_plan, memoized
from vkops.tensors.operations import run, sources
from vkops.tensors.shape_arguments import (
    check_not_negative,
    check_shape,
    one_axis,
    one_or_more,
    refuse,
)
from vkops.tensors.tensor import Device, Tensor


def roll(
    x: Any,
    shift: int | Sequence[int],
    axis: int | Sequence[int] | None = None,
    *,
    device: Device | None = None,
    progress: Progress | None = None,
) -> Tensor:
    """Move elements ``shift`` places on along one or more axes; those past the end come first.

    Without an axis, elements move on from row to row.

    Raises:
        InvalidDescError: axis out of range (ARRAY-01), or not as many shifts as axes (ARRAY-06).

    >>> import numpy as np, vkops
    >>> vkops.roll(np.arange(5), 2).numpy().tolist()
    [3, 4, 0, 1, 2]
    """
    home, found, (view,) = sources("ROLL", [x], device)
    shifts = one_or_more(shift, Place("ROLL", "shift", "ARRAY-06"))
    itemsize = found[0].dtype.itemsize
    if axis is None:
        return run(_roll_flat(view, itemsize, sum(shifts)), home, found, progress)[0]
    given = one_or_more(axis, Place("ROLL", "axis", "ARRAY-01"))
    axes = tuple([one_axis("ROLL", axis, len(view.sizes)) for axis in given])
    if len(shifts) != len(axes) and 1 not in (len(shifts), len(axes)):
        message = f"got {len(shifts)} shifts, must be 1 or {len(axes)}, as many as axes"
        refuse("ROLL", "shift", message, "ARRAY-06")
    count = 0 if 0 in (len(shifts), len(axes)) else max(len(shifts), len(axes))
    by_axis = [0] * len(view.sizes)
    for i in range(count):
        by_axis[axes[i % len(axes)]] += shifts[i % len(shifts)]
    return run(_roll(view, itemsize, tuple(by_axis)), home, found, progress)[0]


@memoized
def _roll(source: View, itemsize: int, shifts: Ints) -> ArrayPlan:
    regions = list(movements.roll(Read(0, source), View.packed(source.sizes), shifts))
    return array_plan(itemsize, [source], [source.sizes], [regions])


@memoized
def _roll_flat(source: View, itemsize: int, shift: int) -> ArrayPlan:
    size = prod(source.sizes)
    shift = shift % size if size else 0
    boxes = [*source.boxes(size - shift, size), *source.boxes(0, size - shift)]
    return array_plan(itemsize, [source], [source.sizes], [movements.pack_all(boxes)])


def tile(
    x: Any,
    reps: int | Sequence[int],
    *,
    device: Device | None = None,
    progress: Progress | None = None,
) -> Tensor:
    """Repeat the whole of ``x`` along each axis; counts without an axis make one in front.

    Raises:
        InvalidDescError: negative counts (ARRAY-06), or too large a shape (ARRAY-03).

    >>> import vkops
    >>> vkops.tile([1, 2], (2, 2)).numpy().tolist()
    [[1, 2, 1, 2], [1, 2, 1, 2]]
    """
    home, found, (view,) = sources("TILE", [x], device)
    place = Place("TILE", "reps", "ARRAY-06")
    times = one_or_more(reps, place)
    check_not_negative(times, place)
    return run(_tile(view, found[0].dtype.itemsize, times), home, found, progress)[0]


@memoized
def _tile(source: View, itemsize: int, times: Ints) -> ArrayPlan:
    rank = max(len(source.sizes), len(times))
    times = (1,) * (rank - len(times)) + times
    source = source.broadcast((1,) * (rank - len(source.sizes)) + source.sizes)
    shape = movements.tile_sizes(source.sizes, times)
    check_shape("TILE", shape, itemsize)
    region = movements.tile(Read(0, source), View.packed(shape), times)
    return array_plan(itemsize, [source], [shape], [[region]])


def repeat(
    x: Any,
    repeats: int | Sequence[int],
    axis: int | None = None,
    *,
    device: Device | None = None,
    progress: Progress | None = None,
) -> Tensor:
    """Repeat each element (axis None: of the flat array), or each index of an axis.

    Args:
        x: an array or tensor.
        repeats: a count for all, or one for each.
        axis: the axis, or None.
        device: the device that arrays are sent to.
        progress: called with the bytes done so far and the bytes in all where data is streamed.

    Raises:
        InvalidDescError: axis out of range (ARRAY-01), negative counts or not one for each
            (ARRAY-06), or too large a shape (ARRAY-03).

    >>> import vkops
    >>> vkops.repeat([1, 2, 3], [2, 0, 1]).numpy().tolist()
    [1, 1, 3]
    """
    home, found, (view,) = sources("REPEAT", [x], device)
    place = Place("REPEAT", "repeats", "ARRAY-06")
    times = one_or_more(repeats, place)
    check_not_negative(times, place)
    if axis is not None:
        view = view if view.sizes else view.insert(0)  # as in NumPy, a scalar has the axis 0
        axis = one_axis("REPEAT", axis, len(view.sizes))
    return run(_repeat(view, found[0].dtype.itemsize, times, axis), home, found, progress)[0]


@memoized
def _repeat(source: View, itemsize: int, times: Ints, axis: int | None) -> ArrayPlan:
    n = prod(source.sizes) if axis is None else source.sizes[axis]
    if len(times) not in (1, n):
        message = f"got {len(times)} counts, must be 1 or {n}, one for each"
        refuse("REPEAT", "repeats", message, "ARRAY-06")
    total = times[0] * n if len(times) == 1 else sum(times)
    shape = (total,) if axis is None else (*source.sizes[:axis], total, *source.sizes[axis + 1 :])
    check_shape("REPEAT", shape, itemsize)
    # Neighbours with the same count are one piece: (count, first, size).
    spans = [(times[0], 0, n)] if len(times) == 1 else list(_spans(times))
    if axis is None:
        boxes = [
            box.insert(len(box.sizes), count)
            for count, first, size in spans
            for box in source.boxes(first, first + size)
        ]
        return array_plan(itemsize, [source], [shape], [movements.pack_all(boxes)])
    target, regions, start = View.packed(shape), [], 0
    for count, first, size in spans:
        part = Read(0, source.narrow(axis, first, size))
        into = target.narrow(axis, start, size * count)
        regions.append(movements.repeat(part, into, axis, count))
        start += size * count
    return array_plan(itemsize, [source], [shape], [regions])


def _spans(times: Ints) -> Iterator[tuple[int, int, int]]:
    first = 0
    for count, equal in groupby(times):
        size = sum(1 for _ in equal)
        yield count, first, size
        first += size
