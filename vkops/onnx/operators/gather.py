"""Gather, by indices that are known before anything runs."""

from __future__ import annotations

import numpy as np

from vkops.onnx.node import Call
from vkops.onnx.operators.chosen import chosen
from vkops.onnx.trace import Tensor
from vkops.plan.movements import Run, runs_of


def gather(call: Call) -> list[Tensor]:
    """Gather 1, 11 and 13."""
    data = call.tensor("data")
    axis = call.axis("axis", data.rank)
    indices = call.array("indices")
    assert indices is not None
    whole = data.shape[axis]
    wrong = (indices < -whole) | (indices >= whole)
    if wrong.any():
        got = indices[wrong].reshape(-1)[0]
        allowed = f"must be {-whole} to {whole - 1}" if whole else "the axis is empty"
        call.refuse("indices", f"got {got}, {allowed}")
    flat = indices.astype(np.int64).reshape(-1)
    flat[flat < 0] += whole
    runs = [[Run(0, n, 0, 1)] for n in data.shape]
    runs[axis] = runs_of(flat)
    made = chosen(call, "indices", data, runs)
    return [made.reshape((*data.shape[:axis], *indices.shape, *data.shape[axis + 1 :]))]
