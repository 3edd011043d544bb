"""Slice."""

from __future__ import annotations

import builtins

from vkops.onnx.node import Call
from vkops.onnx.trace import Tensor

_TO_THE_END = (2**31 - 1, 2**63 - 1)
"""What Slice 10 recommends for an end that is not known; ONNX Runtime takes it backwards, too."""


def slice(call: Call) -> list[Tensor]:
    """Slice 1, 10, 11 and 13."""
    data = call.tensor("data")
    starts, ends = call.ints("starts"), call.ints("ends")
    assert starts is not None
    assert ends is not None
    axes = call.axes("axes", data.rank)
    if axes is None:
        axes = tuple(range(min(len(starts), data.rank)))
    steps = call.ints("steps")
    if steps is None:
        steps = (1,) * len(starts)
    for name, values in (("starts", starts), ("ends", ends), ("steps", steps)):
        if len(values) != len(axes):
            call.refuse(name, f"got {len(values)} values, must be {len(axes)}, as many as axes")
    first, sizes, strides = [0] * data.rank, list(data.shape), [1] * data.rank
    for i, (axis, start, end, step) in enumerate(zip(axes, starts, ends, steps, strict=True)):
        if step == 0:
            call.refuse(f"steps[{i}]", "got 0, must be any other integer")
        stop: int | None = end
        if step < 0:
            start = max(start, -data.shape[axis])  # backwards, it cannot be before the first
            stop = None if end in _TO_THE_END else end
        taken = range(*builtins.slice(start, stop, step).indices(data.shape[axis]))
        first[axis], sizes[axis], strides[axis] = taken.start, len(taken), step
    return [data.view(data.packed.window(tuple(first), tuple(sizes), tuple(strides)))]
