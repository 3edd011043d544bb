"""Operators whose indices say which elements they copy, or where they write them.

ONNX calls an index that is out of range an error. One that is known before the model runs is
refused; one that is not is handled as DirectML does: by reading the nearest element inside, and by
not writing anything.
"""

from __future__ import annotations

from itertools import islice

import numpy as np
import numpy.typing as npt

from vkops.onnx.lowering import LoweredTensor
from vkops.onnx.onnx_node import Call
from vkops.plan import indexing, movements
from vkops.plan.graph import SUBMISSION_COST
from vkops.plan.indexing import IndexTensor
from vkops.plan.movements import Run
from vkops.plan.view import View

MAX_RUNS = SUBMISSION_COST
"""Runs of indices up to which Gather copies each run, which can be fused with all other copies.

More would cost more than the submission that a gather of an intermediate tensor needs.
"""


def gather(call: Call) -> list[LoweredTensor]:
    """Gather 1, 11 and 13."""
    data, indices = call.tensor("data"), call.tensor("indices")
    axis = call.axis("axis", data.rank)
    shape = (*data.shape[:axis], *indices.shape, *data.shape[axis + 1 :])
    known = _known_indices(call, data, range(axis, axis + 1))
    if known is not None:
        flat = np.where(known < 0, known + data.shape[axis], known)[:, 0]
        runs = [*islice(movements.runs_of(flat), MAX_RUNS + 1)]
        if len(runs) <= MAX_RUNS:
            axes = [[Run(0, n, 0, 1)] for n in data.shape]
            axes[axis] = runs
            sizes = (*data.shape[:axis], flat.size, *data.shape[axis + 1 :])
            regions = movements.choose(data.read, View.packed(sizes), axes)
            return [call.lowering.make(data.dtype, sizes, regions).reshape(shape)]
    region = indexing.gather(data.read, index_tensor(indices), View.packed(shape), axis)
    return [call.lowering.make(data.dtype, shape, [region])]


def index_tensor(indices: LoweredTensor, view: View | None = None) -> IndexTensor:
    """Return indices as the regions of the graph read them."""
    dtype = f"{indices.dtype.kind}{indices.dtype.itemsize}"
    return IndexTensor(indices.number, dtype, indices.packed if view is None else view)


def _known_indices(call: Call, data: LoweredTensor, axes: range) -> npt.NDArray[np.int64] | None:
    """Return tuples of indices of some axes if they are known, and check them.

    None: they depend on a graph input.
    """
    indices = call.tensor("indices")
    for axis in axes:
        if indices.size and not data.shape[axis]:
            message = f"has shape {indices.shape}, must be empty: axis {axis} has size 0"
            call.refuse("indices", message)
    if not call.lowering.is_known(indices):
        return None
    tuples = call.lowering.values(indices).reshape(-1, len(axes)).astype(np.int64)
    sizes = np.array(data.shape[axes.start : axes.stop], np.int64)
    wrong = (tuples < -sizes) | (tuples >= sizes)
    if wrong.any():
        place = int(wrong.argmax())
        axis = axes[place % len(axes)]
        allowed = f"must be {-data.shape[axis]} to {data.shape[axis] - 1} for axis {axis}"
        call.refuse("indices", f"got {tuples.reshape(-1)[place]}, {allowed}")
    return tuples
