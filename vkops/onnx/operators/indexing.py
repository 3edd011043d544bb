"""Operators whose indices say which elements they copy, or where they write them.

In ONNX, an index that is out of range is an error. vkops raises it for indices that are known
before the model runs or come from an array of the host. Indices that only the device knows are
handled as in DirectML: a gather reads the nearest element inside, and a scatter writes nothing.
"""

from __future__ import annotations

from itertools import islice
from typing import Any

import numpy as np
import numpy.typing as npt

from vkops.onnx.lowering import IndexCheck, LoweredTensor
from vkops.onnx.onnx_node import Call, OnnxNode
from vkops.onnx.operators.arithmetic import broadcast_shape, operand
from vkops.onnx.operators.split_concat import joined
from vkops.plan import indexing
from vkops.plan.graph import SUBMISSION_COST
from vkops.plan.index_runs import IndexRun, choose, runs_of
from vkops.plan.indexing import IndexTensor
from vkops.plan.movements import copy, pack
from vkops.plan.region import MAX_TERMS, Read, Region
from vkops.plan.view import Ints, View

MAX_RUNS = SUBMISSION_COST
"""Runs of indices up to which Gather copies each run, which can be fused with all other copies.

More would cost more than the submission that a gather of an intermediate tensor needs.
"""

INDEX_SIZE = 8
"""Size of an index that is computed before a model runs."""


def gather(call: Call) -> list[LoweredTensor]:
    """Lower Gather."""
    data, indices = call.tensor("data"), call.tensor("indices")
    axis = call.axis("axis", data.rank)
    shape = (*data.shape[:axis], *indices.shape, *data.shape[axis + 1 :])
    known = _check_indices(call, data, range(axis, axis + 1))
    if known is not None and (copies := _copied(call, data, known, axis)) is not None:
        return [copies.reshape(shape)]
    region = indexing.gather(data.read, _index_tensor(indices), View.packed(shape), axis)
    return [call.lowering.make(data.dtype, shape, [region])]


def _copied(
    call: Call, data: LoweredTensor, known: npt.NDArray[Any], axis: int
) -> LoweredTensor | None:
    """Return the elements at known indices along an axis; None if these form too many runs."""
    flat = known.reshape(-1).astype(np.int64)
    flat = np.where(flat < 0, flat + data.shape[axis], flat)
    runs = [*islice(runs_of(flat), MAX_RUNS + 1)]
    if len(runs) > MAX_RUNS:
        return None
    axes = [[IndexRun(0, n, 0, 1)] for n in data.shape]
    axes[axis] = runs
    sizes = (*data.shape[:axis], flat.size, *data.shape[axis + 1 :])
    return call.lowering.make(data.dtype, sizes, choose(data.read, View.packed(sizes), axes))


def gathered(
    call: Call, data: LoweredTensor, known: npt.NDArray[Any], axis: int = 0
) -> LoweredTensor:
    """Return the elements at known indices along an axis; the indices have one dimension."""
    copies = _copied(call, data, known, axis)
    if copies is not None:
        return copies
    indices = call.lowering.computed(known)
    shape = (*data.shape[:axis], known.size, *data.shape[axis + 1 :])
    region = indexing.gather(data.read, _index_tensor(indices), View.packed(shape), axis)
    return call.lowering.make(data.dtype, shape, [region])


def compress(call: Call) -> list[LoweredTensor]:
    """Lower Compress: the elements along an axis for which a condition is true."""
    data, condition = call.tensor("input"), call.array("condition")
    assert condition is not None
    axis = 0
    if call.attribute("axis") is None:
        data = data.reshape((data.size,))
    else:
        axis = call.axis("axis", data.rank)
    call.require(condition.ndim == 1, "condition", f"{condition.ndim} dimensions", 1)
    chosen, size = np.flatnonzero(condition), data.shape[axis]
    if chosen.size and chosen[-1] >= size:
        call.refuse(f"condition[{chosen[-1]}]", f"is true, axis {axis} has size {size}")
    return [gathered(call, data, chosen, axis)]


def where(call: Call) -> list[LoweredTensor]:
    """Lower Where: elements of two tensors, chosen by a condition that is known."""
    condition, x, y = operand(call, "condition"), call.tensor("X"), call.tensor("Y")
    shapes = condition.shape, x.shape, y.shape
    if (shape := broadcast_shape(call, INDEX_SIZE, *shapes)) is None:
        got = "{}, {} and {}".format(*shapes)
        call.refuse("condition, X and Y", f"have shapes {got}, which do not broadcast")
    if condition.all() or not condition.any():
        chosen = x if condition.all() else y
        return [call.lowering.view(chosen, chosen.packed.broadcast(shape))]
    both = joined(call, "X and Y", [part.reshape((part.size,)) for part in (x, y)], 0)
    places = np.arange(both.size, dtype=np.int64)
    parts = places[: x.size].reshape(x.shape), places[x.size :].reshape(y.shape)
    indices = np.broadcast_to(np.where(condition, *parts), shape)
    return [gathered(call, both, indices.reshape(-1)).reshape(shape)]


def gather_elements(call: Call) -> list[LoweredTensor]:
    """Lower GatherElements."""
    data, indices = call.tensor("data"), call.tensor("indices")
    axis = _axis_of_elements(call, data, indices)
    target = View.packed(indices.shape)
    region = indexing.gather_elements(data.read, _index_tensor(indices), target, axis)
    return [call.lowering.make(data.dtype, indices.shape, [region])]


def gather_nd(call: Call) -> list[LoweredTensor]:
    """Lower GatherND."""
    data, indices = _data_and_indices(call)
    batch = call.attribute("batch_dims") or 0
    maximum = min(data.rank, indices.rank) - 1
    call.require(0 <= batch <= maximum, "batch_dims", batch, f"0 to {maximum}, below both ranks")
    if indices.shape[:batch] != data.shape[:batch]:
        message = f"got shape {indices.shape}, must begin with {data.shape[:batch]}, as data does"
        call.refuse("indices", message)
    count = _tuple_length(call, data, indices, batch)
    shape = (*indices.shape[:-1], *data.shape[batch + count :])
    region = indexing.gather_nd(data.read, _index_tensor(indices), View.packed(shape), batch)
    return [call.lowering.make(data.dtype, shape, [region])]


def scatter_elements(call: Call) -> list[LoweredTensor]:
    """Lower Scatter and ScatterElements."""
    data, indices = call.tensor("data"), call.tensor("indices")
    updates = _updates(call, indices.shape)
    axis = _axis_of_elements(call, data, indices)
    region = indexing.scatter_elements(updates.read, _index_tensor(indices), data.packed, axis)
    return [_scattered(call, data, region)]


def scatter_nd(call: Call) -> list[LoweredTensor]:
    """Lower ScatterND."""
    data, indices = _data_and_indices(call)
    count = _tuple_length(call, data, indices, 0)
    updates = _updates(call, (*indices.shape[:-1], *data.shape[count:]))
    region = indexing.scatter_nd(updates.read, _index_tensor(indices), data.packed)
    return [_scattered(call, data, region)]


def tensor_scatter(call: Call) -> list[LoweredTensor]:
    """Lower TensorScatter, whose updates begin at an index for each element of the first axis."""
    data, updates = call.tensor("past_cache"), call.tensor("update")
    axis = call.axis("axis", data.rank)
    if not axis:
        call.refuse("axis", f"got {call.attribute('axis')}, must not be the first axis, the batch")
    allowed = f"{data.rank}, as past_cache has"
    call.require(updates.rank == data.rank, "update", f"rank {updates.rank}", allowed)
    count, whole = updates.shape[axis], data.shape[axis]
    fits = updates.shape == (*data.shape[:axis], count, *data.shape[axis + 1 :]) and count <= whole
    allowed = f"{data.shape}, or less along axis {axis}"
    call.require(fits, "update", f"shape {updates.shape}", allowed)
    starts = call.optional("write_indices")
    if not isinstance(starts, LoweredTensor):
        rest = data.packed.narrow(axis, count, whole - count)
        first = data.packed.narrow(axis, 0, count)
        copies = [copy(rest, rest, data.number), copy(updates.packed, first, updates.number)]
        return [call.lowering.make(data.dtype, data.shape, copies)]
    _require_shape(call, "write_indices", starts, data.shape[:1])
    places = {axis: range(whole - count + 1)}
    call.lowering.check(starts, IndexCheck(call.refuse, "write_indices", places))
    each = View((*starts.shape, *[1] * (data.rank - 1)), (1, *[0] * (data.rank - 1)))
    # Negative indices are errors here: as unsigned integers, they are out of range.
    where = _index_tensor(starts, each)._replace(dtype="u8")
    return [_scattered(call, data, indexing.scatter_blocks(updates.read, where, data.packed, axis))]


def reverse_sequence(call: Call) -> list[LoweredTensor]:
    """Lower ReverseSequence."""
    data, lengths = call.tensor("input"), call.tensor("sequence_lens")
    call.require(data.rank >= 2, "input", f"rank {data.rank}", "at least 2")
    batch, time = call.attribute("batch_axis"), call.attribute("time_axis")
    reason = f", a length for each index of axis {batch}"
    _require_shape(call, "sequence_lens", lengths, (data.shape[batch],), reason)
    each = View((1,) * data.rank, (0,) * data.rank)
    each = each.take(batch, 0).insert(batch, data.shape[batch], 1)
    region = indexing.reverse_sequences(data.read, _index_tensor(lengths, each), data.packed, time)
    return [call.lowering.make(data.dtype, data.shape, [region])]


def one_hot(call: Call) -> list[LoweredTensor]:
    """Lower OneHot: ``values[0]`` everywhere, then ``values[1]`` where the indices say."""
    indices, values = call.tensor("indices"), call.tensor("values")
    array = call.array("depth")
    assert array is not None
    call.require_single("depth", array)
    depth = array.item()  # a fraction is dropped
    call.require(0 <= depth < 2**63, "depth", depth, f"0 to {2**63 - 1}")
    depth = int(depth)
    _require_shape(call, "values", values, (2,))
    axis = call.in_rank("axis", call.attribute("axis"), indices.rank + 1)
    if needs_conversion(indices.dtype):
        with np.errstate(all="ignore"):
            numbers = operand(call, "indices").astype(np.int64)
        indices = call.lowering.computed(numbers)
    shape = (*indices.shape[:axis], depth, *indices.shape[axis:])
    if not depth:
        return [call.lowering.make(values.dtype, shape, ())]
    where = _index_tensor(indices, indices.packed.insert(axis))
    # Before version 11, negative indices do not count from the end. As unsigned integers, they are
    # out of range.
    if call.version < 11:
        where = where._replace(dtype=f"u{indices.dtype.itemsize}")
    off, on = (Read(values.number, View((), (), place)) for place in (0, 1))
    regions = indexing.one_hot(off, on, where, View.packed(shape), axis)
    return [call.lowering.make(values.dtype, shape, regions)]


# -- checks ----------------------------------------------------------------------------------------


def check_reduction(node: OnnxNode) -> None:
    """Raise the error for a node with a reduction, which computes with elements."""
    node.choice("reduction", "none", reason=": vkops moves data, it does not compute")


def check_linear(node: OnnxNode) -> None:
    """Raise the error for a node in circular mode: its blocks continue at the start of the axis."""
    node.choice("mode", "linear", reason=": vkops does not write around the end of an axis")


def check_sequence_axes(node: OnnxNode) -> None:
    """Raise the error for axes that are wrong for all shapes."""
    batch, time = node.attributes["batch_axis"], node.attributes["time_axis"]
    got, allowed = f"{batch} and {time}", "0 and 1, or 1 and 0"
    node.require({batch, time} == {0, 1}, "batch_axis and time_axis", got, allowed)


def needs_conversion(dtype: np.dtype[Any] | None, _: object = None) -> bool:
    """Whether the device cannot read indices of a type; False if the type is unknown."""
    return dtype is not None and (dtype.kind not in "iu" or dtype.itemsize < 4)


def _axis_of_elements(call: Call, data: LoweredTensor, indices: LoweredTensor) -> int:
    """Return the axis that has an index for each element; check the indices."""
    axis = call.axis("axis", data.rank)
    allowed = f"{data.rank}, as data has"
    call.require(indices.rank == data.rank, "indices", f"rank {indices.rank}", allowed)
    for other, (size, maximum) in enumerate(zip(indices.shape, data.shape, strict=True)):
        got, allowed = f"size {size} for axis {other}", f"{maximum} at most"
        call.require(other == axis or size <= maximum, "indices", got, allowed)
    _check_indices(call, data, range(axis, axis + 1))
    return axis


def _data_and_indices(call: Call) -> tuple[LoweredTensor, LoweredTensor]:
    """Return the inputs of an operator whose indices are tuples."""
    data, indices = call.tensor("data"), call.tensor("indices")
    for name, tensor in (("data", data), ("indices", indices)):
        call.require(tensor.rank > 0, name, "rank 0", "at least 1")
    return data, indices


def _tuple_length(call: Call, data: LoweredTensor, indices: LoweredTensor, batch: int) -> int:
    """Return how many axes the tuples of indices are for; check the indices."""
    count, maximum = indices.shape[-1], min(data.rank - batch, MAX_TERMS)
    call.require(1 <= count <= maximum, "indices", f"tuples of {count} numbers", f"1 to {maximum}")
    _check_indices(call, data, range(batch, batch + count))
    return count


def _updates(call: Call, shape: Ints) -> LoweredTensor:
    updates = call.tensor("updates")
    _require_shape(call, "updates", updates, shape)
    return updates


def _require_shape(
    call: Call, name: str, tensor: LoweredTensor, shape: Ints, reason: str = ""
) -> None:
    call.require(tensor.shape == shape, name, f"shape {tensor.shape}", f"{shape}{reason}")


# -- indices ---------------------------------------------------------------------------------------


def _scattered(call: Call, data: LoweredTensor, region: Region) -> LoweredTensor:
    """Return a copy of a tensor that a region writes to."""
    return call.lowering.make(data.dtype, data.shape, [pack(data.packed, 0, data.number), region])


def _index_tensor(indices: LoweredTensor, view: View | None = None) -> IndexTensor:
    """Return indices as the regions of the graph read them."""
    dtype = f"{indices.dtype.kind}{indices.dtype.itemsize}"
    return IndexTensor(indices.number, dtype, indices.packed if view is None else view)


def _check_indices(call: Call, data: LoweredTensor, axes: range) -> npt.NDArray[Any] | None:
    """Check indices of an axis, or tuples of indices of several; return them if they are known."""
    indices = call.tensor("indices")
    for axis in axes:
        if indices.size and not data.shape[axis]:
            message = f"got shape {indices.shape}, must be empty: axis {axis} has size 0"
            call.refuse("indices", message)
    allowed = {axis: range(-data.shape[axis], data.shape[axis]) for axis in axes}
    return call.lowering.check(indices, IndexCheck(call.refuse, "indices", allowed))
