"""Pad."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from vkops.onnx.node import MAX_PIECES, Call
from vkops.onnx.operators.runs import Run, chosen
from vkops.onnx.trace import Piece, Tensor
from vkops.onnx.types import STRING
from vkops.plan.limits import MAX_DIMENSIONS
from vkops.plan.view import View

_PADS = {1: "paddings"}
"""What the numbers are called: ``pads`` but for Pad 1."""

_FIRST_WITH_WRAP = 19


def modes(version: int) -> tuple[str, ...]:
    """The modes that a version of Pad has, the default first."""
    plain = ("constant", "reflect", "edge")
    return plain if version < _FIRST_WITH_WRAP else (*plain, "wrap")


def pad(call: Call) -> list[Tensor]:
    """Pad 1 to 25, in all modes; negative numbers cut off."""
    data = call.tensor("data")
    mode = call.choice("mode", *modes(call.version))
    name = _PADS.get(call.version, "pads")
    pairs = _pairs(call, name, data.rank)
    sizes = tuple(n + sum(pair) for n, pair in zip(data.shape, pairs, strict=True))
    for axis, size in enumerate(sizes):
        if size < 0:
            message = f"take {-sum(pairs[axis])} from axis {axis}, which has {data.shape[axis]}"
            call.refuse(name, message)
    target = View.packed(sizes)
    if mode == "constant":
        return [call.trace.make(data.dtype, sizes, _framed(call, data, target, pairs))]
    if 0 in sizes:
        return [call.trace.make(data.dtype, sizes, ())]
    runs = []
    for axis, (size, (before, after)) in enumerate(zip(data.shape, pairs, strict=True)):
        first, end = max(0, -before), size - max(0, -after)
        if end <= first:
            call.refuse(name, f"axis {axis} is empty, there is nothing to pad it with ({mode})")
        added = max(0, before), max(0, after)
        period = _PERIODS[mode](end - first)
        if sum(added) > MAX_PIECES * period:
            message = f"axis {axis} would be repeated more than {MAX_PIECES} times ({mode})"
            call.refuse(name, message)
        runs.append([run.moved(first) for run in _EXTENDED[mode](end - first, *added)])
    return [call.trace.make(data.dtype, sizes, chosen(call, name, data, runs, target))]


def _pairs(call: Call, name: str, rank: int) -> list[tuple[int, int]]:
    """What is added to each axis, before and after."""
    given = call.ints(name, most=2 * MAX_DIMENSIONS) or ()
    axes = call.axes("axes", rank)
    if axes is None:
        axes = tuple(range(rank))
    if len(given) != 2 * len(axes):
        call.refuse(name, f"got {len(given)} values, must be {2 * len(axes)}, two for each axis")
    pairs = [(0, 0)] * rank
    for axis, before, after in zip(axes, given, given[len(axes) :], strict=False):
        pairs[axis] = before, after
    return pairs


def _edge(size: int, before: int, after: int) -> Iterator[Run]:
    yield Run(0, before, 0, 0)
    yield Run(before, size, 0, 1)
    yield Run(before + size, after, size - 1, 0)


def _wrap(size: int, before: int, after: int) -> Iterator[Run]:
    """The axis again and again, in both directions."""
    position, end = -before, size + after
    while position < end:
        start = position % size
        count = min(size - start, end - position)
        yield Run(position + before, count, start, 1)
        position += count


def _reflect(size: int, before: int, after: int) -> Iterator[Run]:
    """The axis there and back again, its ends not repeated."""
    if size == 1:
        yield Run(0, before + 1 + after, 0, 0)
        return
    turn = size - 1
    position, end = -before, size + after
    while position < end:
        done = position % turn
        count = min(turn - done, end - position)
        forwards = position // turn % 2 == 0
        start, step = (done, 1) if forwards else (turn - done, -1)
        yield Run(position + before, count, start, step)
        position += count


_EXTENDED = {"edge": _edge, "wrap": _wrap, "reflect": _reflect}
"""An axis of some size with so much added before and after, by mode."""

_PERIODS: dict[str, Callable[[int], int]] = {
    "edge": lambda size: 2**63,
    "wrap": lambda size: size,
    "reflect": lambda size: max(1, size - 1) if size > 1 else 2**63,
}
"""What one run can add at most, by mode."""


def _framed(
    call: Call, data: Tensor, target: View, pairs: list[tuple[int, int]]
) -> Iterator[Piece]:
    """What is kept of the input, and a frame around it: two bars for each axis."""
    value = _value(call, data)
    sizes = target.sizes
    added = (max(0, before) for before, _ in pairs)
    starts = tuple(map(min, sizes, added))
    skipped = tuple(max(0, -before) for before, _ in pairs)
    ends = [size - max(0, after) for size, (_, after) in zip(sizes, pairs, strict=True)]
    kept = tuple(max(0, end - start) for start, end in zip(starts, ends, strict=True))
    steps = (1,) * len(kept)
    yield target.window(starts, kept, steps), data, data.packed.window(skipped, kept, steps)
    rest = target
    for axis, (start, size) in enumerate(zip(starts, kept, strict=True)):
        end = start + size
        for bar in (rest.narrow(axis, 0, start), rest.narrow(axis, end, rest.sizes[axis] - end)):
            yield bar, value, View(bar.sizes, (0,) * len(bar.sizes))
        rest = rest.narrow(axis, start, size)


def _value(call: Call, data: Tensor) -> Tensor:
    """One element: the attribute, the input, or the type's zero."""
    given = call.attribute("value")
    if given is not None:
        return call.trace.constant(np.array(given).astype(data.dtype))
    value = call.optional("constant_value")
    if isinstance(value, Tensor):
        if value.size != 1:
            call.refuse("constant_value", f"has {value.size} elements, must be 1")
        return value
    zero = np.array("", STRING) if data.dtype == STRING else np.zeros((), data.dtype)
    return call.trace.constant(zero)
