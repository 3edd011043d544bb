"""Operators that repeat elements: Expand and Tile."""

from __future__ import annotations

from vkops.onnx.node import Call
from vkops.onnx.trace import Tensor
from vkops.plan import movements
from vkops.plan.view import Ints, View


def expand(call: Call) -> list[Tensor]:
    """Expand 8 and 13."""
    data = call.tensor("input")
    wanted = call.ints("shape") or ()
    for i, size in enumerate(wanted):
        if size < -1:
            call.refuse(f"shape[{i}]", f"got {size}, must be at least 0, or -1 for the input's")
    wanted = tuple(abs(size) for size in wanted)  # -1 as ONNX Runtime has it: it changes nothing
    rank = max(data.rank, len(wanted))
    own, other = ((1,) * (rank - len(sizes)) + tuple(sizes) for sizes in (data.shape, wanted))
    if any(a != b and 1 not in (a, b) for a, b in zip(own, other, strict=True)):
        call.refuse("shape", f"got {list(wanted)}, which does not broadcast with {data.shape}")
    sizes = tuple(b if a == 1 else a for a, b in zip(own, other, strict=True))
    return [data.view(data.packed.broadcast(sizes))]


def tile(call: Call) -> list[Tensor]:
    """Tile 6 and 13."""
    data = call.tensor("input")
    repeats = call.ints("repeats") or ()
    if len(repeats) != data.rank:
        call.refuse("repeats", f"got {len(repeats)} values, must be {data.rank}, the rank")
    return [_repeated(call, "repeats", data, repeats)]


def tile_along_axis(call: Call) -> list[Tensor]:
    """Tile 1."""
    data = call.tensor("input")
    axis = call.axis("axis", data.rank)
    times = call.integer("tiles")
    assert times is not None
    return [_repeated(call, "tiles", data, (*(1,) * axis, times, *(1,) * (data.rank - axis - 1)))]


def _repeated(call: Call, name: str, data: Tensor, times: Ints) -> Tensor:
    """As many copies of a tensor along each axis."""
    for i, count in enumerate(times):
        if count < 0:
            call.refuse(f"{name}[{i}]", f"got {count}, must be at least 0")
    shape = movements.tile_sizes(data.shape, times)
    region = movements.tile(data.read, View.packed(shape), times)
    return call.trace.make(data.dtype, shape, [region])
