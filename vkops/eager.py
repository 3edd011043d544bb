"""split, join and slice in NumPy's manner: arrays or tensors in, tensors out."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from threading import Lock
from typing import Any, NoReturn

from vkops.device import Device
from vkops.dml.values import Place, array, integer, integers
from vkops.errors import InvalidDescError
from vkops.plan.region import Ints
from vkops.plan.view import View, copy
from vkops.tensor import Movement, Tensor, remembered, window

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
    x: Any, sizes_or_count: int | Sequence[int], axis: int = 0, *, device: Device | None = None
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
    (tensor,) = _tensors("SPLIT", [x], device)
    axis = _axis("SPLIT", axis, tensor.ndim, "SPLIT-02")
    sizes = _sizes(sizes_or_count, tensor.shape[axis])
    return _split(tensor.shape, tensor.dtype.itemsize, sizes, axis).run(tensor.device, [tensor])


def join(tensors: Sequence[Any], axis: int = 0, *, device: Device | None = None) -> Tensor:
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
    place = Place("JOIN", "tensors", "JOIN-01")
    whole = _tensors("JOIN", array(tensors, place, _as_is, "arrays or tensors"), device)
    if not whole:
        _refuse("JOIN", "tensors", "got none, must be at least 1", "JOIN-01")
    first = whole[0]
    axis = _axis("JOIN", axis, first.ndim, "JOIN-02")
    for i, tensor in enumerate(whole[1:], 1):
        _check_joinable(first, tensor, f"tensors[{i}]", axis)
    # What has no elements adds nothing; if nothing has any, one stands for all.
    parts = [tensor for tensor in whole if tensor.size] or [first]
    shapes = tuple(tensor.shape for tensor in parts)
    total = sum(tensor.shape[axis] for tensor in whole)
    return _join(shapes, first.dtype.itemsize, axis, total).run(first.device, parts)[0]


def slice(
    x: Any,
    offsets: Sequence[int],
    sizes: Sequence[int],
    strides: Sequence[int] | None = None,
    *,
    device: Device | None = None,
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
    (tensor,) = _tensors("SLICE", [x], device)
    starts = _per_dimension("offsets", offsets, tensor.ndim)
    counts = _per_dimension("sizes", sizes, tensor.ndim)
    steps = (
        (1,) * tensor.ndim if strides is None else _per_dimension("strides", strides, tensor.ndim)
    )
    for i, (start, count, step, n) in enumerate(
        zip(starts, counts, steps, tensor.shape, strict=True)
    ):
        if count < 0:
            _refuse("SLICE", f"sizes[{i}]", f"got {count}, must be at least 0", "SLICE-03")
        if step == 0:
            _refuse("SLICE", f"strides[{i}]", "got 0, must be any other integer", "SLICE-04")
        if count == 0:
            continue
        for at in (start, start + (count - 1) * step):
            if not 0 <= at < n:
                _refuse(
                    "SLICE",
                    f"offsets[{i}]",
                    f"reaches element {at}, must be 0 to {n - 1}",
                    "SLICE-05",
                )
    view = View.packed(tensor.shape).window(starts, counts, steps)
    return window(tensor.shape, tensor.dtype.itemsize, view).run(tensor.device, [tensor])[0]


# -- plans -----------------------------------------------------------------------------------------


@remembered
def _split(shape: Ints, itemsize: int, sizes: Ints, axis: int) -> Movement:
    source = View.packed(shape)
    parts = [
        source.narrow(axis, start, size)
        for start, size in zip(accumulate(sizes, initial=0), sizes, strict=False)
    ]
    pieces = [(copy(part, View.packed(part.sizes)),) for part in parts]
    return Movement(itemsize, [shape], [part.sizes for part in parts], pieces)


@remembered
def _join(shapes: tuple[Ints, ...], itemsize: int, axis: int, total: int) -> Movement:
    joined = (*shapes[0][:axis], total, *shapes[0][axis + 1 :])
    target = View.packed(joined)
    starts = accumulate((shape[axis] for shape in shapes), initial=0)
    regions = tuple(
        copy(View.packed(shape), target.narrow(axis, start, shape[axis]), input)
        for input, (shape, start) in enumerate(zip(shapes, starts, strict=False))
    )
    return Movement(itemsize, shapes, [joined], [regions])


# -- arguments -------------------------------------------------------------------------------------


def _refuse(name: str, field: str, message: str, rule: str) -> NoReturn:
    raise InvalidDescError(name, field, message, rule)


def _as_is(value: object, _: Place) -> object:
    return value


def _tensors(name: str, values: Sequence[Any], device: Device | None) -> list[Tensor]:
    """All values as tensors of one device; arrays go where the tensors are."""
    found = [value for value in values if isinstance(value, Tensor)]
    if not (device is None or isinstance(device, Device)):
        raise Place(name, "device", "B-02").wrong_kind(device, "a Device or None")
    home = device or (found[0].device if found else default_device())
    for i, value in enumerate(values):
        if isinstance(value, Tensor) and value.device is not home:
            _refuse(name, f"tensors[{i}]", f"is on {value.device!r}, must be on {home!r}", "B-02")
    return [value if isinstance(value, Tensor) else home.tensor(value) for value in values]


def _axis(name: str, axis: Any, rank: int, rule: str) -> int:
    value = integer(axis, Place(name, "axis", rule))
    if rank == 0:
        _refuse(name, "axis", "the array has no dimensions", rule)
    if not -rank <= value < rank:
        _refuse(name, "axis", f"got {value}, must be {-rank} to {rank - 1}", rule)
    return value % rank


def _sizes(sizes_or_count: Any, whole: int) -> Ints:
    field = "sizes_or_count"
    if not hasattr(sizes_or_count, "__len__"):
        count = integer(sizes_or_count, Place("SPLIT", field, "SPLIT-01"))
        if not 1 <= count <= MOST_PIECES:
            _refuse("SPLIT", field, f"got {count}, must be 1 to {MOST_PIECES}", "SPLIT-01")
        if whole % count:
            _refuse("SPLIT", field, f"got {count}, must divide {whole}", "SPLIT-06")
        return (whole // count,) * count
    sizes = integers(sizes_or_count, Place("SPLIT", field, "SPLIT-06"))
    if not sizes:
        _refuse("SPLIT", field, "got no sizes, must be at least 1", "SPLIT-01")
    for i, size in enumerate(sizes):
        if size < 0:
            _refuse("SPLIT", f"{field}[{i}]", f"got {size}, must be at least 0", "SPLIT-06")
    if sum(sizes) != whole:
        _refuse("SPLIT", field, f"got a sum of {sum(sizes)}, must be {whole}", "SPLIT-06")
    return sizes


def _per_dimension(field: str, values: Any, rank: int) -> Ints:
    result = integers(values, Place("SLICE", field, "SLICE-01"))
    if len(result) != rank:
        message = f"got {len(result)} values, must be {rank}, the rank"
        _refuse("SLICE", field, message, "SLICE-01")
    return result


def _check_joinable(first: Tensor, other: Tensor, field: str, axis: int) -> None:
    if other.dtype != first.dtype:
        _refuse("JOIN", field, f"has dtype {other.dtype}, must be {first.dtype}", "JOIN-03")
    if other.ndim != first.ndim:
        _refuse("JOIN", field, f"has rank {other.ndim}, must be {first.ndim}", "JOIN-04")
    for i, (got, wanted) in enumerate(zip(other.shape, first.shape, strict=True)):
        if i != axis and got != wanted:
            _refuse("JOIN", f"{field}.shape[{i}]", f"got {got}, must be {wanted}", "JOIN-05")
