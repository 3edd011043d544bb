"""split, join and slice in NumPy's manner: arrays or tensors in, tensors out.

Arrays that do not fit on the device together with the result are streamed through it; the result
then is on the host, too. ``progress`` is told of the bytes done and to do in all meanwhile.
"""

from __future__ import annotations

import builtins
from collections.abc import Sequence
from itertools import accumulate
from math import prod
from operator import sub
from threading import Lock
from typing import Any, NoReturn

import numpy as np

from vkops.device import Device
from vkops.dml.values import Place, array, integer, integers
from vkops.errors import InvalidDescError
from vkops.gpu.streaming import Progress
from vkops.plan.region import Ints
from vkops.plan.view import View, copy
from vkops.tensor import Movement, Source, Tensor, as_array, movement, remembered, window

MOST_PIECES = 1 << 20

_default: Device | None = None
_default_lock = Lock()


def default_device() -> Device:
    """The device used for NumPy arrays when none is given: opened once, the best adapter."""
    global _default
    with _default_lock:
        if _default is None:
            _default = Device()
        return _default


def split(
    x: Any,
    sizes_or_count: int | Sequence[int],
    axis: int = 0,
    *,
    device: Device | None = None,
    progress: Progress | None = None,
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
    home, (source,) = _sources("SPLIT", [x], device)
    axis = integer(axis, Place("SPLIT", "axis", "SPLIT-02"))
    sizes = _sizes_or_count(sizes_or_count)
    movement = _split(source.shape, source.dtype.itemsize, sizes, axis)
    return movement.run(home, [source], progress)


def join(
    tensors: Sequence[Any],
    axis: int = 0,
    *,
    device: Device | None = None,
    progress: Progress | None = None,
) -> Tensor:
    """Concatenate along ``axis``; a negative axis counts from the end.

    Source: DML_JOIN_OPERATOR_DESC.

    Raises:
        InvalidDescError: nothing to join (JOIN-01), axis out of range (JOIN-02), different dtypes
            (JOIN-03), ranks (JOIN-04) or sizes beside the axis (JOIN-05).
        OutOfDeviceMemoryError: the result does not fit in device memory.

    >>> import numpy as np, vkops
    >>> vkops.join([np.zeros((1, 2), int), np.ones((2, 2), int)]).numpy().tolist()
    [[0, 0], [1, 1], [1, 1]]
    """
    if type(tensors) not in (list, tuple):
        place = Place("JOIN", "tensors", "JOIN-01")
        tensors = array(tensors, place, lambda value, _: value, "arrays or tensors")
    home, parts = _sources("JOIN", tensors, device)
    if not parts:
        _refuse("JOIN", "tensors", "got none, must be at least 1", "JOIN-01")
    axis = integer(axis, Place("JOIN", "axis", "JOIN-02"))
    shapes = tuple([part.shape for part in parts])
    dtypes = tuple([part.dtype for part in parts])
    return _join(shapes, dtypes, axis).run(home, parts, progress)[0]


def slice(
    x: Any,
    offsets: Sequence[int],
    sizes: Sequence[int],
    strides: Sequence[int] | None = None,
    *,
    device: Device | None = None,
    progress: Progress | None = None,
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
    home, (source,) = _sources("SLICE", [x], device)
    starts = _integers(offsets, Place("SLICE", "offsets", "SLICE-01"))
    counts = _integers(sizes, Place("SLICE", "sizes", "SLICE-01"))
    steps = None if strides is None else _integers(strides, Place("SLICE", "strides", "SLICE-01"))
    movement = _slice(source.shape, source.dtype.itemsize, starts, counts, steps)
    if not isinstance(source, Tensor) and all(counts):
        # Of an array, only the box that is read is sent.
        lows, highs = _reach(starts, counts, steps)
        source = source[tuple(map(_span, lows, highs))]
        starts = tuple(map(sub, starts, lows))
        movement = _slice(source.shape, source.dtype.itemsize, starts, counts, steps)
    return movement.run(home, [source], progress)[0]


# -- rules and plans, once for what is asked again -------------------------------------------------


@remembered
def _split(shape: Ints, itemsize: int, sizes_or_count: Ints | int, axis: int) -> Movement:
    axis = _axis("SPLIT", axis, len(shape), "SPLIT-02")
    sizes = _sizes(sizes_or_count, shape[axis])
    source = View.packed(shape)
    parts = [
        source.narrow(axis, start, size)
        for start, size in zip(accumulate(sizes, initial=0), sizes, strict=False)
    ]
    pieces = [(copy(part, View.packed(part.sizes)),) for part in parts]
    return movement(itemsize, [shape], [part.sizes for part in parts], pieces)


@remembered
def _join(shapes: tuple[Ints, ...], dtypes: tuple[np.dtype[Any], ...], axis: int) -> Movement:
    axis = _axis("JOIN", axis, len(shapes[0]), "JOIN-02")
    for i, (shape, dtype) in enumerate(zip(shapes, dtypes, strict=True)):
        if dtype != dtypes[0]:
            message = f"has dtype {dtype}, must be {dtypes[0]}"
            _refuse("JOIN", f"tensors[{i}]", message, "JOIN-03")
        _check_joinable(shapes[0], shape, f"tensors[{i}]", axis)
    total = sum(shape[axis] for shape in shapes)
    joined = (*shapes[0][:axis], total, *shapes[0][axis + 1 :])
    target = View.packed(joined)
    parts = [shape for shape in shapes if prod(shape)]
    starts = accumulate((shape[axis] for shape in parts), initial=0)
    regions = tuple(
        copy(View.packed(shape), target.narrow(axis, start, shape[axis]), input)
        for input, (shape, start) in enumerate(zip(parts, starts, strict=False))
    )
    return movement(dtypes[0].itemsize, parts, [joined], [regions])


@remembered
def _slice(shape: Ints, itemsize: int, starts: Ints, counts: Ints, steps: Ints | None) -> Movement:
    if steps is None:
        steps = (1,) * len(shape)
    for field, values in (("offsets", starts), ("sizes", counts), ("strides", steps)):
        if len(values) != len(shape):
            message = f"got {len(values)} values, must be {len(shape)}, the rank"
            _refuse("SLICE", field, message, "SLICE-01")
    for i, (start, count, step, n) in enumerate(zip(starts, counts, steps, shape, strict=True)):
        if count < 0:
            _refuse("SLICE", f"sizes[{i}]", f"got {count}, must be at least 0", "SLICE-03")
        if step == 0:
            _refuse("SLICE", f"strides[{i}]", "got 0, must be any other integer", "SLICE-04")
        if count == 0:
            continue
        for at in (start, start + (count - 1) * step):
            if not 0 <= at < n:
                message = f"reaches element {at}, must be 0 to {n - 1}"
                _refuse("SLICE", f"offsets[{i}]", message, "SLICE-05")
    return window(shape, itemsize, View.packed(shape).window(starts, counts, steps))


def _reach(starts: Ints, counts: Ints, steps: Ints | None) -> tuple[Ints, Ints]:
    """The lowest and the highest index that is read, for each dimension."""
    lasts = [
        start + (count - 1) * step
        for start, count, step in zip(starts, counts, steps or (1,) * len(starts), strict=True)
    ]
    return tuple(map(min, starts, lasts)), tuple(map(max, starts, lasts))


def _span(low: int, high: int) -> builtins.slice:
    return builtins.slice(low, high + 1)


# -- arguments -------------------------------------------------------------------------------------


def _refuse(name: str, field: str, message: str, rule: str) -> NoReturn:
    raise InvalidDescError(name, field, message, rule)


def _sources(
    name: str, values: Sequence[Any], device: Device | None
) -> tuple[Device, list[Source]]:
    """Tensors as they are, all else as arrays; and the device of the tensors, or for the arrays."""
    if not (device is None or isinstance(device, Device)):
        raise Place(name, "device", "B-02").wrong_kind(device, "a Device or None")
    home = device
    sources: list[Source] = []
    for i, value in enumerate(values):
        if isinstance(value, Tensor):
            home = home or value.device
            if value.device is not home:
                message = f"is on {value.device!r}, must be on {home!r}"
                _refuse(name, f"tensors[{i}]", message, "B-02")
            sources.append(value)
        else:
            sources.append(as_array(value))
    return home or default_device(), sources


def _axis(name: str, axis: int, rank: int, rule: str) -> int:
    if rank == 0:
        _refuse(name, "axis", "the array has no dimensions", rule)
    if not -rank <= axis < rank:
        _refuse(name, "axis", f"got {axis}, must be {-rank} to {rank - 1}", rule)
    return axis % rank


def _sizes_or_count(value: Any) -> Ints | int:
    if hasattr(value, "__len__"):
        return _integers(value, Place("SPLIT", "sizes_or_count", "SPLIT-06"))
    return integer(value, Place("SPLIT", "sizes_or_count", "SPLIT-01"))


def _sizes(sizes_or_count: Ints | int, whole: int) -> Ints:
    field = "sizes_or_count"
    if isinstance(sizes_or_count, int):
        count = sizes_or_count
        if not 1 <= count <= MOST_PIECES:
            _refuse("SPLIT", field, f"got {count}, must be 1 to {MOST_PIECES}", "SPLIT-01")
        if whole % count:
            _refuse("SPLIT", field, f"got {count}, must divide {whole}", "SPLIT-06")
        return (whole // count,) * count
    sizes = sizes_or_count
    if not sizes:
        _refuse("SPLIT", field, "got no sizes, must be at least 1", "SPLIT-01")
    for i, size in enumerate(sizes):
        if size < 0:
            _refuse("SPLIT", f"{field}[{i}]", f"got {size}, must be at least 0", "SPLIT-06")
    if sum(sizes) != whole:
        _refuse("SPLIT", field, f"got a sum of {sum(sizes)}, must be {whole}", "SPLIT-06")
    return sizes


def _integers(values: Any, place: Place) -> Ints:
    # Tuples of integers are taken as they are.
    return integers(tuple(values) if type(values) is list else values, place)


def _check_joinable(first: Ints, other: Ints, field: str, axis: int) -> None:
    if len(other) != len(first):
        _refuse("JOIN", field, f"has rank {len(other)}, must be {len(first)}", "JOIN-04")
    for i, (got, wanted) in enumerate(zip(other, first, strict=True)):
        if i != axis and got != wanted:
            _refuse("JOIN", f"{field}.shape[{i}]", f"got {got}, must be {wanted}", "JOIN-05")
