"""Pad."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from vkops.onnx.node import Call
from vkops.onnx.operators.runs import chosen, runs_of
from vkops.onnx.trace import Piece, Tensor
from vkops.onnx.types import STRING
from vkops.plan.view import View

_PADS = {1: "paddings"}
"""What the numbers are called: ``pads`` but for Pad 1."""

_MODES = dict.fromkeys((1, 2, 11, 13, 18), ("constant", "reflect", "edge"))
"""Modes; from Pad 19 on there is ``wrap``, too."""


def pad(call: Call) -> list[Tensor]:
    """Pad 1 to 25, in all modes; negative numbers cut off."""
    data = call.tensor("data")
    mode = call.choice("mode", *_MODES.get(call.version, ("constant", "reflect", "edge", "wrap")))
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
        kept = np.arange(max(0, -before), size - max(0, -after))
        added = (max(0, before), max(0, after))
        if not kept.size and any(added):
            call.refuse(name, f"axis {axis} is empty, there is nothing to pad it with ({mode})")
        runs.append(runs_of(np.pad(kept, added, mode=mode)) if any(added) else runs_of(kept))  # type: ignore[call-overload]
    return [call.trace.make(data.dtype, sizes, chosen(call, name, data, runs, target))]


def _pairs(call: Call, name: str, rank: int) -> list[tuple[int, int]]:
    """What is added to each axis, before and after."""
    given = call.ints(name) or ()
    axes = call.axes("axes", rank)
    if axes is None:
        axes = tuple(range(rank))
    if len(given) != 2 * len(axes):
        call.refuse(name, f"got {len(given)} values, must be {2 * len(axes)}, two for each axis")
    pairs = [(0, 0)] * rank
    for axis, before, after in zip(axes, given, given[len(axes) :], strict=False):
        pairs[axis] = before, after
    return pairs


def _framed(
    call: Call, data: Tensor, target: View, pairs: list[tuple[int, int]]
) -> Iterator[Piece]:
    """What is kept of the input, and a frame around it: two bars for each axis."""
    value = _value(call, data)
    starts = tuple(max(0, before) for before, _ in pairs)
    skipped = tuple(max(0, -before) for before, _ in pairs)
    ends = [size - max(0, after) for size, (_, after) in zip(target.sizes, pairs, strict=True)]
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
