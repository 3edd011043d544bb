"""Pad."""

from __future__ import annotations

import numpy as np

from vkops.onnx.node import MAX_PIECES, Call
from vkops.onnx.operators.chosen import chosen
from vkops.onnx.trace import Tensor
from vkops.onnx.types import STRING
from vkops.plan import movements
from vkops.plan.limits import MAX_DIMENSIONS
from vkops.plan.region import Read
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
    if mode == "constant":
        starts, ends = zip(*pairs, strict=True) if pairs else ((), ())
        regions = movements.pad(data.read, View.packed(sizes), starts, ends, _value(call, data))
        return [call.trace.make(data.dtype, sizes, regions)]
    if 0 in sizes:
        return [call.trace.make(data.dtype, sizes, ())]
    axes = []
    for axis, (size, (before, after)) in enumerate(zip(data.shape, pairs, strict=True)):
        first, end = max(0, -before), size - max(0, -after)
        if end <= first:
            call.refuse(name, f"axis {axis} is empty, there is nothing to pad it with ({mode})")
        before, after = max(0, before), max(0, after)
        if movements.pad_repeats(mode, end - first, before + after) > MAX_PIECES:
            message = f"axis {axis} would be repeated more than {MAX_PIECES} times ({mode})"
            call.refuse(name, message)
        runs = movements.pad_runs(mode, end - first, before, after)
        axes.append([run._replace(start=run.start + first) for run in runs])
    return [chosen(call, name, data, axes)]


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


def _value(call: Call, data: Tensor) -> Read:
    """One element: the attribute, the input, or the type's zero."""
    given = call.attribute("value")
    if given is not None:
        return call.trace.constant(np.array(given).astype(data.dtype)).read
    value = call.optional("constant_value")
    if isinstance(value, Tensor):
        if value.size != 1:
            call.refuse("constant_value", f"has {value.size} elements, must be 1")
        return value.read
    zero = np.array("", STRING) if data.dtype == STRING else np.zeros((), data.dtype)
    return call.trace.constant(zero).read
