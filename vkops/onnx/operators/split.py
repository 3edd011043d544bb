"""Split and SplitToSequence."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from vkops.onnx.node import MAX_PIECES, Call
from vkops.onnx.trace import Sequence, Tensor
from vkops.plan import movements
from vkops.plan.view import Ints, View

Rule = Callable[[Call, int], Ints]
"""From a call and the size of the axis to the sizes of the parts."""


_NEGATIVE_AXES = 11
"""The version from which an axis may be counted from the end."""


def split(call: Call) -> list[Tensor]:
    """Split 1, 2, 11, 13 and 18, of every type that each lists.

    Of strings the device moves 64-bit handles, and the host puts the strings back in.
    """
    data = call.tensor("input")
    axis = call.axis("axis", data.rank, lowest=0 if call.version < _NEGATIVE_AXES else None)
    sizes = _RULES[call.version](call, data.shape[axis])
    if len(sizes) != call.output_count:
        call.refuse("outputs", f"got {call.output_count}, must be {len(sizes)}, one for each part")
    return list(parts(data, axis, sizes))


def split_to_sequence(call: Call) -> list[Sequence]:
    """SplitToSequence 11 and 24."""
    data = call.tensor("input")
    axis = call.axis("axis", data.rank)
    whole = data.shape[axis]
    given = call.array("split")
    if given is not None and given.ndim:
        sizes = _fitting(call, call.ints("split", most=MAX_PIECES) or (), whole)
    else:
        size = 1 if given is None else int(given)
        if size < 1:
            call.refuse("split", f"got {size}, must be at least 1")
        count = -(-whole // size)
        if count > MAX_PIECES:
            call.refuse("split", f"makes {count} parts, must be {MAX_PIECES} at most")
        sizes = tuple(min(size, whole - start) for start in range(0, whole, size))
    made = list(parts(data, axis, sizes))
    if given is None and not call.attribute("keepdims"):
        kept = (*data.shape[:axis], *data.shape[axis + 1 :])
        made = [part.reshape(kept) for part in made]
    return [Sequence(data.dtype, tuple(made))]


def parts(data: Tensor, axis: int, sizes: Iterable[int]) -> Iterable[Tensor]:
    """Parts of a tensor, one after the other along an axis."""
    shapes = [(*data.shape[:axis], size, *data.shape[axis + 1 :]) for size in sizes]
    regions = movements.split(data.read, map(View.packed, shapes), axis)
    for shape, region in zip(shapes, regions, strict=True):
        yield data if shape == data.shape else data.trace.make(data.dtype, shape, [region])


def _equal(call: Call, whole: int) -> Ints:
    """Lengths as given, or as many equal parts as there are outputs."""
    sizes = call.ints("split", most=MAX_PIECES)
    if sizes is not None:
        return _fitting(call, sizes, whole)
    count = call.output_count
    if whole % count:
        call.refuse("outputs", f"got {count}, must divide {whole}, or 'split' must be given")
    return (whole // count,) * count


def _uneven(call: Call, whole: int) -> Ints:
    """Lengths as given, or parts as long as ``num_outputs`` needs; the last takes what is left."""
    sizes, count = call.ints("split", most=MAX_PIECES), call.integer("num_outputs")
    if (sizes is None) == (count is None):
        both = "both are given" if count is not None else "neither is given"
        call.refuse("'split' and 'num_outputs'", f"{both}, must be one of them")
    if sizes is not None:
        return _fitting(call, sizes, whole)
    assert count is not None
    if count < 1:
        call.refuse("num_outputs", f"got {count}, must be at least 1")
    if count != call.output_count:
        call.refuse("num_outputs", f"got {count}, must be {call.output_count}, the outputs")
    size = -(-whole // count)
    last = whole - size * (count - 1)
    if last < 0:
        call.refuse(
            "num_outputs",
            f"got {count}: {count - 1} parts of {size} exceed the {whole} there are, "
            "so the size of the last one would be negative",
        )
    return (*(size,) * (count - 1), last)


def _fitting(call: Call, sizes: Ints, whole: int) -> Ints:
    for i, size in enumerate(sizes):
        if size < 0:
            call.refuse(f"split[{i}]", f"got {size}, must be at least 0")
    if sum(sizes) != whole:
        call.refuse("split", f"got a sum of {sum(sizes)}, must be {whole}, the size of the axis")
    return sizes


_RULES: dict[int, Rule] = {1: _equal, 2: _equal, 11: _equal, 13: _equal, 18: _uneven}
