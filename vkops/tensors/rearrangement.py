"""Functions that roll, repeat, pad or resize, named as in NumPy; one dispatch each."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby, islice
from math import prod
from operator import ne
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from vkops.arguments.values import ArgumentName, refuse
from vkops.errors import show
from vkops.gpu.run.streaming import Progress
from vkops.plan import index_runs, movements
from vkops.plan.region import Fill, Read
from vkops.plan.size_limits import MAX_PIECES
from vkops.plan.view import Ints, View
from vkops.tensors import shape_arguments as shapes
from vkops.tensors.array_plan import ArrayPlan, array_plan
from vkops.tensors.creation import zeros_like
from vkops.tensors.exchange import numpy_refusals
from vkops.tensors.operations import as_tensor, native, planned, source_of
from vkops.tensors.selection import take
from vkops.tensors.shape_arguments import OneOrMore
from vkops.tensors.tensor import DeviceLike, Tensor

MAX_ROLLED_AXES = 8
"""The number of axes that ``roll`` shifts at once, with at most 256 copies."""

MAX_REPEATED_PIECES = 256
"""The number of pieces that ``repeat`` copies; more are gathered by indices."""


def roll(
    x: Any,
    /,
    shift: OneOrMore,
    axis: OneOrMore | None = None,
    *,
    device: DeviceLike = None,
    progress: Progress = None,
) -> Tensor:
    """Move elements ``shift`` places on along one or more axes; those past the end come first.

    Without an axis, elements move on from row to row.

    Raises:
        InvalidDescError: axis out of range (ARRAY-01), or not as many shifts as axes (ARRAY-06).

    >>> import numpy as np, vkops
    >>> vkops.roll(np.arange(5), 2).numpy().tolist()
    [3, 4, 0, 1, 2]
    """
    shifts = shapes.one_or_more(shift, ArgumentName("ROLL", "shift", "ARRAY-06"))
    source = source_of(x)
    if axis is None:
        return _roll("ROLL", [source], device, progress, (sum(shifts),), False)[0]
    rank = source.ndim
    numbers = shapes.one_or_more(axis, ArgumentName("ROLL", "axis", "ARRAY-01"))
    axes = [shapes.one_axis("ROLL", number, rank) for number in numbers]
    if len(shifts) != len(axes) and 1 not in (len(shifts), len(axes)):
        message = f"got {len(shifts)} shifts, must be 1 or {len(axes)}, as many as axes"
        refuse("ROLL", "shift", message, "ARRAY-06")
    by_axis = [0] * rank
    for n in range(len(axes) if len(shifts) == 1 else len(shifts)):
        by_axis[axes[n % len(axes)]] += shifts[n % len(shifts)]
    shifted = [n for n, each in enumerate(by_axis) if each]
    # Each shifted axis doubles the number of copies: many axes are shifted in several steps.
    for start in range(0, max(1, len(shifted)), MAX_ROLLED_AXES):
        chosen = shifted[start : start + MAX_ROLLED_AXES]
        now = tuple([each if n in chosen else 0 for n, each in enumerate(by_axis)])
        source = result = _roll("ROLL", [source], device, progress, now, True)[0]
    return result


@planned
def _roll(itemsize: int, shifts: Ints, by_axis: bool, source: View) -> ArrayPlan:
    """Return the plan that rolls each axis, or the flat array by one shift."""
    shape = source.sizes
    if by_axis:
        regions = list(index_runs.roll(Read(0, source), View.packed(shape), shifts))
        return array_plan(itemsize, [source], [shape], [regions])
    size = prod(shape)
    shift = shifts[0] % size if size else 0
    boxes = [*source.boxes(size - shift, size), *source.boxes(0, size - shift)]
    return array_plan(itemsize, [source], [shape], [movements.pack_all(boxes)])


def tile(
    x: Any, repetitions: OneOrMore, /, *, device: DeviceLike = None, progress: Progress = None
) -> Tensor:
    """Repeat the whole of ``x`` along each axis; counts without an axis make one in front.

    Raises:
        InvalidDescError: negative counts (ARRAY-06), or too large a shape (ARRAY-03).

    >>> import vkops
    >>> vkops.tile([1, 2], (2, 2)).numpy().tolist()
    [[1, 2, 1, 2], [1, 2, 1, 2]]
    """
    argument = ArgumentName("TILE", "repetitions", "ARRAY-06")
    times = shapes.one_or_more(repetitions, argument)
    shapes.check_not_negative(times, argument)
    return _tile("TILE", [source_of(x)], device, progress, times)[0]


@planned
def _tile(itemsize: int, times: Ints, source: View) -> ArrayPlan:
    rank = max(len(source.sizes), len(times))
    times = (1,) * (rank - len(times)) + times
    source = source.with_rank(rank)
    shape = movements.tile_sizes(source.sizes, times)
    shapes.check_shape("TILE", shape, itemsize)
    region = movements.tile(Read(0, source), View.packed(shape), times)
    return array_plan(itemsize, [source], [shape], [[region]])


def resize(x: Any, new_shape: OneOrMore, /, *, device: DeviceLike = None) -> Tensor:
    """The elements, row by row, under another shape: repeated as often as needed, or cut off.

    As in NumPy, the result has the byte order of the host, unless it or ``x`` has no elements.

    >>> import vkops
    >>> vkops.resize([1, 2, 3], (2, 2)).tolist()
    [[1, 2], [3, 1]]
    """
    tensor = as_tensor("RESIZE", x, device)
    shape = shapes.sizes_of("RESIZE", new_shape, tensor.itemsize)
    count = int(np.prod(shape, dtype=object))
    if not (tensor.size and count):
        return zeros_like(tensor, shape=shape)
    return tile(native(tensor).ravel(), -(-count // tensor.size))[:count].reshape(shape)


def repeat(
    x: Any,
    repeats: OneOrMore,
    /,
    axis: int | None = None,
    *,
    device: DeviceLike = None,
    progress: Progress = None,
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
    argument = ArgumentName("REPEAT", "repeats", "ARRAY-06")
    times = shapes.one_or_more(repeats, argument)
    shapes.check_not_negative(times, argument)
    source = source_of(x)
    if axis is not None:
        axis = shapes.one_axis("REPEAT", axis, max(1, source.ndim))
        if not source.ndim:  # in NumPy, a scalar has the axis 0
            source = source.reshape(1)
    size = source.size if axis is None else source.shape[axis]
    if len(times) not in (1, size):
        message = f"got {len(times)} counts, must be 1 or {size}, one for each"
        refuse("REPEAT", "repeats", message, "ARRAY-06")
    if sum(map(ne, times, islice(times, 1, None))) >= MAX_REPEATED_PIECES:
        shape = _with_size(source.shape, axis, sum(times))
        shapes.check_shape("REPEAT", shape, source.dtype.itemsize)
        with numpy_refusals("REPEAT", "repeats"):
            indices = np.repeat(np.arange(size), times)
        return take(source, indices, axis, device=device)
    # Neighbours with the same count form one piece.
    pieces = tuple([(count, len([*equal])) for count, equal in groupby(times)])
    if len(times) == 1:
        pieces = ((times[0], size),)
    return _repeat("REPEAT", [source], device, progress, pieces, axis)[0]


def _with_size(shape: Ints, axis: int | None, size: int) -> Ints:
    """Return the shape with another size of an axis; for None, the shape of a flat array."""
    return (size,) if axis is None else (*shape[:axis], size, *shape[axis + 1 :])


@planned
def _repeat(
    itemsize: int, pieces: Sequence[tuple[int, int]], axis: int | None, source: View
) -> ArrayPlan:
    """Return the plan that repeats consecutive pieces, each of which is (count, size)."""
    shape = _with_size(source.sizes, axis, sum([count * size for count, size in pieces]))
    shapes.check_shape("REPEAT", shape, itemsize)
    target, boxes, regions, first, start = View.packed(shape), [], [], 0, 0
    for count, size in pieces:
        end = first + size
        if axis is None:
            boxes += [box.insert(len(box.sizes), count) for box in source.boxes(first, end)]
        else:
            part = Read(0, source.narrow(axis, first, size))
            into = target.narrow(axis, start, size * count)
            regions.append(movements.repeat(part, into, axis, count))
        first, start = end, start + size * count
    regions += movements.pack_all(boxes)
    return array_plan(itemsize, [source], [shape], [regions])


# -- padding ---------------------------------------------------------------------------------------

_Constants: TypeAlias = "tuple[tuple[Fill, Fill], ...]"

_MODES = ("constant", "edge", "reflect", "symmetric", "wrap")
"""The modes of ``pad``; index_runs.py has the same names for the modes that copy elements."""


def pad(
    x: Any,
    /,
    pad_width: Any,
    mode: str = "constant",
    *,
    constant_values: Any = 0,
    reflect_type: str = "even",
    device: DeviceLike = None,
    progress: Progress = None,
) -> Tensor:
    """Put elements before and after those of each axis, as NumPy does.

    Args:
        x: an array or tensor.
        pad_width: how many: a number for all sides, ``(before, after)`` for all axes, or such a
            pair for each axis.
        mode: ``"constant"``; ``"edge"`` repeats the first and the last element; ``"reflect"`` and
            ``"symmetric"`` mirror the array, without and with its ends; ``"wrap"`` repeats it.
            NumPy's modes that compute are not supported.
        constant_values: the values of the mode ``"constant"``, in the same form as ``pad_width``,
            converted to the dtype of ``x``; the other modes ignore them.
        reflect_type: ``"even"``; NumPy's other type computes, and is not supported.
        device: the device that arrays are sent to.
        progress: called with the bytes done so far and the bytes in all where data is streamed.

    Raises:
        InvalidDescError: another mode, or an empty axis that it cannot pad (ARRAY-12), negative
            widths or a wrong number of them (ARRAY-06), values that cannot be converted (ARRAY-10),
            or too large a shape (ARRAY-03).

    >>> import vkops
    >>> vkops.pad([1, 2, 3], (2, 1), "reflect").numpy().tolist()
    [3, 2, 1, 2, 3, 2]
    >>> vkops.pad([[5]], ((1, 0), (0, 2)), constant_values=7).numpy().tolist()
    [[7, 7, 7], [5, 7, 7]]
    """
    for field, value, allowed in (
        ("mode", mode, _MODES),
        ("reflect_type", reflect_type, ("even",)),
    ):
        if not (isinstance(value, str) and value in allowed):
            message = f"got {show(value)}, must be {', '.join(map(repr, allowed))}: "
            message += "vkops only moves data"
            refuse("PAD", field, message, "ARRAY-12")
    source = source_of(x)
    rank = source.ndim
    widths = _pairs("pad_width", pad_width, rank, "ARRAY-06")
    if widths.dtype.kind not in "iu":
        raise ArgumentName("PAD", "pad_width", "ARRAY-06").wrong_kind(pad_width, "integers")
    lowest = widths.min()
    if lowest < 0:
        refuse("PAD", "pad_width", f"got {lowest}, must be at least 0", "ARRAY-06")
    starts, ends = (tuple(widths[:rank, side].tolist()) for side in (0, 1))
    if mode != "constant":
        return _pad("PAD", [source], device, progress, starts, ends, mode)[0]
    constants = _pairs("constant_values", constant_values, rank, "ARRAY-10", source.dtype)
    # Slices, because the scalars of an array have the host's byte order.
    values = tuple(
        [(Fill(pair[:1].tobytes()), Fill(pair[1:].tobytes())) for pair in constants[:rank]]
    )
    return _pad("PAD", [source], device, progress, starts, ends, values)[0]


def _pairs(
    field: str, value: Any, rank: int, rule: str, dtype: np.dtype[Any] | None = None
) -> npt.NDArray[Any]:
    """Return an array of pairs: one number for all sides, or two numbers for each axis.

    The value is broadcast to shape (max(1, rank), 2).
    """
    with numpy_refusals("PAD", field, rule), np.errstate(invalid="raise"):
        array = np.broadcast_to(np.asarray(value), (max(1, rank), 2))
        return array if dtype is None else array.astype(dtype)


@planned
def _pad(
    itemsize: int, starts: Ints, ends: Ints, values: _Constants | str, source: View
) -> ArrayPlan:
    """Return the plan of a padding with constants, or in the mode that ``values`` names."""
    shape = tuple(map(sum, zip(starts, source.sizes, ends, strict=True)))
    shapes.check_shape("PAD", shape, itemsize)
    origin, target = Read(0, source), View.packed(shape)
    if not isinstance(values, str):
        regions = movements.pad(origin, target, starts, ends, values)
        return array_plan(itemsize, [source], [shape], [list(regions)])
    for axis, (old, new) in enumerate(zip(source.sizes, shape, strict=True)):
        if new and not old:
            message = f"axis {axis} is empty, there is nothing to pad it with ({values})"
            refuse("PAD", "pad_width", message, "ARRAY-12")
    if 0 in shape:
        return array_plan(itemsize, [source], [shape], [[]])
    count = index_runs.pad_count(source.sizes, starts, ends, values)
    if count > MAX_PIECES:
        message = f"makes {count} regions of copies, must be {MAX_PIECES} at most"
        refuse("PAD", "pad_width", message, "ARRAY-12")
    regions = index_runs.pad_with_copies(origin, target, starts, ends, values)
    return array_plan(itemsize, [source], [shape], [list(regions)])
