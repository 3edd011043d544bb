"""Each rule that a node, a model or an input can break, and the text of the error."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper, parser
from onnx_models import evaluate, info, model, node_model, run

from vkops.errors import ModelError
from vkops.onnx import Model
from vkops.onnx.model_file import read
from vkops.onnx.onnx_model import unsupported_nodes
from vkops.onnx.onnx_node import Node, schema_of
from vkops.onnx.operators import OPERATORS
from vkops.onnx.value_info import TensorType

X = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
ROW = np.arange(5, dtype=np.float32)
SCALAR = np.array(3, np.float32)
IMAGE = np.zeros((1, 6, 3, 4), np.float32)


def ints(*values):
    return np.array(values, np.int64)


def floats(*values):
    return np.array(values, np.float32)


FLOATS = "tensor(double), tensor(float), tensor(float16)"
PLAIN = (
    "tensor(bool), tensor(complex128), tensor(complex64), tensor(double), tensor(float), "
    "tensor(float16), tensor(int16), tensor(int32), tensor(int64), tensor(int8), tensor(string), "
    "tensor(uint16), tensor(uint32), tensor(uint64), tensor(uint8)"
)


def tensor(*values, dtype=np.float32):
    return numpy_helper.from_array(np.array(values, dtype))


# Operator and version, inputs, attributes (and opset, outputs), and what the error says after the
# node's label.
CASES = [
    # Split
    ("Split-1", [X], {"opset": 1, "outputs": 2, "axis": -1}, "axis: got -1, must be 0 to 2"),
    ("Split-2", [X], {"opset": 2, "outputs": 2, "axis": 3}, "axis: got 3, must be 0 to 2"),
    ("Split-11", [X], {"opset": 11, "outputs": 2, "axis": -4}, "axis: got -4, must be -3 to 2"),
    ("Split-13", [SCALAR], {"opset": 13}, "axis: got 0, the input has no axes"),
    ("Split-18", [X], {"axis": 3, "num_outputs": 1}, "axis: got 3, must be -3 to 2"),
    ("Split-1", [X], {"opset": 1, "outputs": 5, "axis": 1}, "outputs: got 5, must divide 3, or 'split' must be given"),
    ("Split-2", [ROW], {"opset": 2, "outputs": 2}, "outputs: got 2, must divide 5, or 'split' must be given"),
    ("Split-11", [ROW], {"opset": 11, "outputs": 3}, "outputs: got 3, must divide 5, or 'split' must be given"),
    ("Split-13", [ROW], {"opset": 13, "outputs": 4}, "outputs: got 4, must divide 5, or 'split' must be given"),
    ("Split-2", [ROW], {"opset": 2, "outputs": 2, "split": [2, 2]}, "split: got a sum of 4, must be 5, the size of the axis"),
    ("Split-11", [ROW], {"opset": 11, "outputs": 2, "split": [6, -1]}, "split[1]: got -1, must be at least 0"),
    ("Split-13", [ROW, ints(3, 3)], {"opset": 13, "outputs": 2}, "split: got a sum of 6, must be 5, the size of the axis"),
    ("Split-18", [ROW, ints(-2, 7)], {"outputs": 2}, "split[0]: got -2, must be at least 0"),
    ("Split-13", [ROW, ints(2, 2, 1)], {"opset": 13, "outputs": 2}, "outputs: got 2, must be 3, one for each part"),
    ("Split-18", [ROW, ints(2, 3)], {"outputs": 3}, "outputs: got 3, must be 2, one for each part"),
    ("Split-1", [ROW, floats(2, 3)], {"opset": 1, "outputs": 2, "split": [2, 3]}, "split: is given as an attribute and as an input, must be one of them"),
    ("Split-1", [ROW, floats(2.5, 2.5)], {"opset": 1, "outputs": 2}, "split[0]: got 2.5, must be an integer"),
    ("Split-1", [ROW, floats(np.nan, 5)], {"opset": 1, "outputs": 2}, "split[0]: got nan, must be an integer"),
    ("Split-1", [ROW, floats(5, np.inf)], {"opset": 1, "outputs": 2}, "split[1]: got inf, must be an integer"),
    ("Split-13", [ROW, ints(5).reshape(1, 1)], {"opset": 13}, "split: has 2 dimensions, must have 1"),
    ("Split-18", [ROW, ints(2, 3)], {"outputs": 2, "num_outputs": 2}, "'split' and 'num_outputs': both are given, must be one of them"),
    ("Split-18", [ROW], {"outputs": 2}, "'split' and 'num_outputs': neither is given, must be one of them"),
    ("Split-18", [ROW], {"num_outputs": 0}, "num_outputs: got 0, must be at least 1"),
    ("Split-18", [ROW], {"outputs": 2, "num_outputs": 3}, "num_outputs: got 3, must be 2, the outputs"),
    ("Split-18", [ROW], {"outputs": 4, "num_outputs": 4}, "num_outputs: got 4: 3 parts of size 2 exceed 5, the size of the axis, so the size of the last one would be negative"),
    ("SplitToSequence-11", [X], {"axis": 3}, "axis: got 3, must be -3 to 2"),
    ("SplitToSequence-11", [ROW, np.array(0, np.int64)], {}, "split: got 0, must be at least 1"),
    ("SplitToSequence-11", [ROW, np.array(-1, np.int32)], {}, "split: got -1, must be at least 1"),
    ("SplitToSequence-11", [ROW, ints(2, 2)], {}, "split: got a sum of 4, must be 5, the size of the axis"),
    ("SplitToSequence-11", [ROW, ints(6, -1)], {}, "split[1]: got -1, must be at least 0"),
    # Concat
    ("Concat-4", [X, X], {"opset": 4, "axis": 3}, "axis: got 3, must be -3 to 2"),
    ("Concat-13", [SCALAR, SCALAR], {"axis": 0}, "axis: got 0, the input has no axes"),
    ("Concat-13", [X, X[0]], {"axis": 0}, "inputs[1]: has rank 2, must be 3"),
    ("Concat-13", [X, X, X[:, :2]], {"axis": 0}, "inputs[2]: has 2 for axis 1, must be 3"),
    ("Concat-13", [X, None], {"axis": 0}, "inputs[1]: is missing"),
    ("Concat-13", [X, ints(1)], {"axis": 0}, "inputs: has type tensor(int64), must be tensor(float) as the first one"),
    ("ConcatFromSequence-11", [[X, X]], {"axis": 3}, "axis: got 3, must be -3 to 2"),
    ("ConcatFromSequence-11", [[X, X]], {"axis": 4, "new_axis": 1}, "axis: got 4, must be -4 to 3"),
    ("ConcatFromSequence-11", [[X, X[:1]]], {"axis": 0, "new_axis": 1}, "input_sequence[1]: has 1 for axis 1, must be 2"),
    ("ConcatFromSequence-11", [[X, X[0]]], {"axis": 0}, "input_sequence[1]: has rank 2, must be 3"),
    ("SequenceAt-11", [[X, X], ints(2)[0]], {}, "position: got 2, must be -2 to 1"),
    ("SequenceAt-11", [[X], ints(0, 1)], {}, "position: got 2 values, must be 1"),
    # Slice
    ("Slice-1", [X], {"opset": 1, "starts": [0, 0], "ends": [1, 1], "axes": [0]}, "starts: got 2 values, must be 1, as many as axes"),
    ("Slice-1", [X], {"opset": 1, "starts": [0], "ends": [1, 1]}, "ends: got 2 values, must be 1, as many as axes"),
    ("Slice-1", [ROW], {"opset": 1, "starts": [0, 0], "ends": [1, 1]}, "starts: got 2 values, must be 1, as many as axes"),
    ("Slice-10", [X, ints(0), ints(1), ints(3)], {"opset": 10}, "axes[0]: got 3, must be -3 to 2"),
    ("Slice-11", [X, ints(0, 0), ints(1, 1), ints(1, -2)], {"opset": 11}, "axes: got [1, -2], must be different axes"),
    ("Slice-13", [X, ints(0), ints(1), ints(0), ints(0)], {}, "steps[0]: got 0, must be any other integer"),
    ("Slice-13", [X, ints(0), ints(1), ints(0), ints(1, 1)], {}, "steps: got 2 values, must be 1, as many as axes"),
    ("Slice-13", [SCALAR, ints(0), ints(1), ints(0)], {}, "axes[0]: got 0, the input has no axes"),
    # CenterCropPad
    ("CenterCropPad-18", [X, ints(1, 1)], {}, "shape: got 2 values, must be 3, as many as axes"),
    ("CenterCropPad-18", [X, ints(1)], {"axes": [0, 1]}, "shape: got 1 values, must be 2, as many as axes"),
    ("CenterCropPad-18", [ROW, ints(-1)], {}, "shape[0]: got -1, must be at least 0"),
    ("CenterCropPad-18", [X, ints(1)], {"axes": [3]}, "axes[0]: got 3, must be -3 to 2"),
    ("CenterCropPad-18", [X, ints(1, 1)], {"axes": [0, -3]}, "axes: got [0, -3], must be different axes"),
    # Pad
    ("Pad-1", [ROW], {"opset": 1, "paddings": [1]}, "paddings: got 1 values, must be 2, two for each axis"),
    ("Pad-2", [X], {"opset": 2, "pads": [1, 1]}, "pads: got 2 values, must be 6, two for each axis"),
    ("Pad-2", [ROW], {"opset": 2, "pads": [1, 1], "mode": "wrap"}, "mode: got 'wrap', must be 'constant', 'reflect', 'edge'"),
    ("Pad-13", [ROW, ints(1, 1)], {"opset": 13, "mode": "wrap"}, "mode: got 'wrap', must be 'constant', 'reflect', 'edge'"),
    ("Pad-18", [ROW, ints(1, 1)], {"mode": "wrap"}, "mode: got 'wrap', must be 'constant', 'reflect', 'edge'"),
    ("Pad-19", [ROW, ints(1, 1)], {"opset": 19, "mode": "mirror"}, "mode: got 'mirror', must be 'constant', 'reflect', 'edge', 'wrap'"),
    ("Pad-13", [ROW, ints(-4, -2)], {"opset": 13}, "pads: remove 6 from axis 0, which has size 5"),
    ("Pad-18", [X, ints(1, 1), None, ints(3)], {}, "axes[0]: got 3, must be -3 to 2"),
    ("Pad-18", [X, ints(1, 1, 1, 1), None, ints(0, -3)], {}, "axes: got [0, -3], must be different axes"),
    ("Pad-18", [X, ints(1, 1), None, ints(0, 1)], {}, "pads: got 2 values, must be 4, two for each axis"),
    ("Pad-18", [ROW, ints(1, 1), floats(1, 2)], {}, "constant_value: has 2 elements, must be 1"),
    ("Pad-18", [ROW, ints(1, 1), ints(1)], {}, "constant_value: has type tensor(int64), must be tensor(float) as the first one"),
    ("Pad-18", [X[:, :0], ints(0, 1, 0, 0, 1, 0)], {"mode": "edge"}, "pads: axis 1 is empty, there is nothing to pad it with (edge)"),
    ("Pad-18", [ROW, ints(-5, 2)], {"mode": "reflect"}, "pads: axis 0 is empty, there is nothing to pad it with (reflect)"),
    ("Pad-18", [ROW, ints(2**40, 0)], {"mode": "reflect"}, "pads: moves 274877906945 pieces, must be 65536 at most"),
    ("Mod-13", [ints(3), ints(0)], {}, "B: an integer is divided by 0"),
    ("Where-16", [np.array([True, False]), ints(1, 2, 3), ints(1)], {}, "condition, X and Y: have shapes (2,), (3,) and (1,), which do not broadcast"),
    # shapes
    ("Reshape-1", [X], {"opset": 1}, "shape: is missing"),
    ("Reshape-1", [X], {"opset": 1, "shape": [5, -1]}, "shape: got [5, -1], which leaves no size for -1 of 24 elements"),
    ("Reshape-5", [X, ints(-2, 12)], {"opset": 5}, "shape[0]: got -2, must be at least -1"),
    ("Reshape-13", [X, ints(-1, -1)], {"opset": 13}, "shape: got [-1, -1], must have one -1 at most"),
    ("Reshape-14", [X, ints(2, 3, 4, 0)], {}, "shape[3]: got 0, but the input has rank 3"),
    ("Reshape-14", [X, ints(5, 5)], {}, "shape: got [5, 5], 25 elements, must be 24 ((2, 3, 4))"),
    ("Reshape-14", [X, ints(0, 2)], {"allowzero": 1}, "shape: got [0, 2], 0 elements, must be 24 ((2, 3, 4))"),
    ("Reshape-14", [X[:0], ints(0, -1)], {"allowzero": 1}, "shape: got [0, -1], must not have both -1 and 0 (allowzero)"),
    ("Reshape-14", [X[:0], ints(0, -1)], {}, "shape: got [0, -1], which leaves no size for -1 of 0 elements"),
    ("Reshape-14", [X, ints(24).reshape(1, 1)], {}, "shape: has 2 dimensions, must have 1"),
    ("Flatten-1", [X], {"opset": 1, "axis": -1}, "axis: got -1, must be 0 to 3"),
    ("Flatten-9", [X], {"opset": 9, "axis": 4}, "axis: got 4, must be 0 to 3"),
    ("Flatten-11", [X], {"opset": 11, "axis": -4}, "axis: got -4, must be -3 to 3"),
    ("Flatten-13", [SCALAR], {}, "axis: got 1, must be 0 to 0"),
    ("Squeeze-1", [X], {"opset": 1, "axes": [1]}, "axes: axis 1 has size 3, must be 1"),
    ("Squeeze-11", [X[:1]], {"opset": 11, "axes": [-4]}, "axes[0]: got -4, must be -3 to 2"),
    ("Squeeze-13", [X[:1], ints(0, -3)], {}, "axes: got [0, -3], must be different axes"),
    ("Unsqueeze-1", [X], {"opset": 1, "axes": [4]}, "axes[0]: got 4, must be -4 to 3"),
    ("Unsqueeze-11", [X], {"opset": 11, "axes": [0, -5]}, "axes: got [0, -5], must be different axes"),
    ("Unsqueeze-13", [X, ints(0, 5)], {}, "axes[1]: got 5, must be -5 to 4"),
    ("Transpose-1", [X], {"opset": 1, "perm": [0, 1]}, "perm: got 2 axes, must be 3, the rank"),
    ("Transpose-13", [X], {"perm": [0, 1, 1]}, "perm: got [0, 1, 1], must be different axes"),
    ("Transpose-13", [X], {"perm": [0, 1, 3]}, "perm[2]: got 3, must be 0 to 2"),
    # what repeats and chooses
    ("Gather-1", [X, ints(0)], {"opset": 1, "axis": 3}, "axis: got 3, must be -3 to 2"),
    ("Gather-13", [X, ints(0, 3, -5)], {"axis": 1}, "indices[1]: got 3, must be -3 to 2 for axis 1"),
    ("Gather-13", [X[:0], ints(0)], {}, "indices: has shape (1,), must be empty: axis 0 has size 0"),
    ("Gather-13", [SCALAR, ints(0)], {}, "axis: got 0, the input has no axes"),
    ("Gather-13", [X, floats(0)], {}, "indices: has type tensor(float), must be tensor(int32), tensor(int64)"),
    ("GatherElements-13", [SCALAR, ints(0)], {}, "axis: got 0, the input has no axes"),
    ("GatherElements-13", [X, ints(0)], {}, "indices: has rank 1, must be 3, as data has"),
    ("GatherElements-11", [X, ints(*[0] * 27).reshape(3, 3, 3)], {"opset": 11, "axis": 1}, "indices: has size 3 for axis 0, must be 2 at most"),
    ("GatherElements-13", [X[..., :0], ints(0).reshape(1, 1, 1)], {"axis": 2}, "indices: has shape (1, 1, 1), must be empty: axis 2 has size 0"),
    ("GatherElements-13", [ROW, np.array([5], np.int32)], {}, "indices[0]: got 5, must be -5 to 4 for axis 0"),
    ("GatherND-13", [X, ints(0, 1)], {"batch_dims": 1}, "batch_dims: got 1, must be 0 to 0, below both ranks"),
    ("GatherND-12", [X, ints(0, 1)], {"opset": 12, "batch_dims": -1}, "batch_dims: got -1, must be 0 to 0, below both ranks"),
    ("GatherND-13", [SCALAR, ints(0)], {}, "data: has rank 0, must be at least 1"),
    ("GatherND-13", [X, ints(0, 1, 2).reshape(3, 1)], {"batch_dims": 1}, "indices: has shape (3, 1), must begin with (2,), as data does"),
    ("GatherND-11", [X, ints(0, 1, 2, 3)], {"opset": 11}, "indices: has tuples of 4 numbers, must be 1 to 3"),
    ("GatherND-13", [X, ints(0, 1, 2, 0, 1, 2).reshape(2, 3)], {"batch_dims": 1}, "indices: has tuples of 3 numbers, must be 1 to 2"),
    ("GatherND-13", [X, ints()], {}, "indices: has tuples of 0 numbers, must be 1 to 3"),
    ("GatherND-13", [np.zeros((1,) * 9), ints(*[0] * 9)], {}, "indices: has tuples of 9 numbers, must be 1 to 8"),
    ("GatherND-13", [X, ints(0, -4)], {}, "indices[1]: got -4, must be -3 to 2 for axis 1"),
    ("GatherND-13", [X, ints(3, 0, 0, 4).reshape(2, 2, 1)], {"batch_dims": 1}, "indices[0, 0, 0]: got 3, must be -3 to 2 for axis 1"),
    ("GatherND-13", [X[:, :0], ints(0, 0)], {}, "indices: has shape (2,), must be empty: axis 1 has size 0"),
    ("Scatter-9", [ROW, ints(5), floats(1)], {"opset": 9}, "indices[0]: got 5, must be -5 to 4 for axis 0"),
    ("ScatterElements-18", [ROW, ints(1), floats(1, 2)], {}, "updates: has shape (2,), must be (1,)"),
    ("ScatterElements-11", [X, ints(1), floats(1)], {"opset": 11}, "indices: has rank 1, must be 3, as data has"),
    ("ScatterElements-18", [X, ints(*[0] * 5).reshape(1, 1, 5), X[:1, :1, [0] * 5]], {}, "indices: has size 5 for axis 2, must be 4 at most"),
    ("ScatterElements-18", [ROW, ints(-6), floats(1)], {}, "indices[0]: got -6, must be -5 to 4 for axis 0"),
    ("ScatterElements-18", [ROW, ints(1), floats(1)], {"reduction": "add"}, "reduction: got 'add', must be 'none': vkops moves data, it does not compute"),
    ("ScatterElements-18", [ROW, ints(1), ints(1)], {}, "updates: has type tensor(int64), must be tensor(float) as the first one"),
    ("ScatterND-18", [ROW, ints(1), SCALAR], {"reduction": "max"}, "reduction: got 'max', must be 'none': vkops moves data, it does not compute"),
    ("ScatterND-16", [ROW, ints(1), floats(1)], {"opset": 16}, "updates: has shape (1,), must be ()"),
    ("ScatterND-11", [ROW, ints(1, 0), SCALAR], {"opset": 11}, "indices: has tuples of 2 numbers, must be 1 to 1"),
    ("ScatterND-18", [SCALAR, ints(1), SCALAR], {}, "data: has rank 0, must be at least 1"),
    ("ScatterND-18", [ROW, SCALAR.astype(np.int64), SCALAR], {}, "indices: has rank 0, must be at least 1"),
    ("ScatterND-18", [X, ints(1, 3), X[0, 0]], {}, "indices[1]: got 3, must be -3 to 2 for axis 1"),
    ("TensorScatter-24", [X, X], {"opset": 24, "axis": -3}, "axis: got -3, must not be the first axis, the batch"),
    ("TensorScatter-24", [X, X], {"opset": 24, "axis": 3}, "axis: got 3, must be -3 to 2"),
    ("TensorScatter-24", [X, X], {"opset": 24, "mode": "circular"}, "mode: got 'circular', must be 'linear': vkops does not write around the end of an axis"),
    ("TensorScatter-24", [X[:, :2], X], {"opset": 24}, "update: has shape (2, 3, 4), must be (2, 2, 4), or less along axis 1"),
    ("TensorScatter-24", [X, X[:1]], {"opset": 24}, "update: has shape (1, 3, 4), must be (2, 3, 4), or less along axis 1"),
    ("TensorScatter-24", [X, SCALAR], {"opset": 24}, "update: has rank 0, must be 3, as past_cache has"),
    ("TensorScatter-24", [X, X, ints(0)], {"opset": 24}, "write_indices: has shape (1,), must be (2,)"),
    ("ReverseSequence-10", [ROW, ints(1)], {}, "input: has rank 1, must be at least 2"),
    ("ReverseSequence-10", [X, ints(1, 1)], {}, "sequence_lens: has shape (2,), must be (3,), a length for each index of axis 1"),
    ("ReverseSequence-10", [X, ints(1, 1, 1)], {"time_axis": 2}, "batch_axis and time_axis: got 1 and 2, must be 0 and 1, or 1 and 0"),
    ("ReverseSequence-10", [X, ints(1, 1, 1)], {"time_axis": 1}, "batch_axis and time_axis: got 1 and 1, must be 0 and 1, or 1 and 0"),
    ("OneHot-11", [ints(1), ints(2, 3), floats(0, 1)], {}, "depth: has 2 elements, must be 1"),
    ("OneHot-11", [ints(1), ints(-1), floats(0, 1)], {}, "depth: got -1, must be 0 to 9223372036854775807"),
    ("OneHot-11", [ints(1), floats(np.nan), floats(0, 1)], {}, "depth: got nan, must be 0 to 9223372036854775807"),
    ("OneHot-11", [ints(1), ints(2**62), floats(0, 1)], {}, "shape: got (1, 4611686018427387904), must have 9223372036854775807 bytes at most"),
    ("OneHot-9", [ints(1), ints(2), floats(0, 1, 2)], {"opset": 9}, "values: has shape (3,), must be (2,)"),
    ("OneHot-11", [ints(1), ints(2), floats(0, 1)], {"axis": 2}, "axis: got 2, must be -2 to 1"),
    ("Expand-8", [X, ints(5)], {"opset": 8}, "shape: got [5], which does not broadcast with (2, 3, 4)"),
    ("Expand-13", [ROW, ints(2, -2)], {}, "shape[1]: got -2, must be at least 0, or -1 for the input's"),
    ("Tile-1", [ROW, floats(-1), floats(0)], {"opset": 1}, "tiles[0]: got -1, must be at least 0"),
    ("Tile-1", [ROW, floats(2), floats(1)], {"opset": 1}, "axis: got 1, must be -1 to 0"),
    ("Tile-1", [ROW, floats(2, 2), floats(0)], {"opset": 1}, "tiles: got 2 values, must be 1"),
    ("Tile-1", [ROW, floats(1.5), floats(0)], {"opset": 1}, "tiles[0]: got 1.5, must be an integer"),
    ("Tile-6", [X, ints(1, 2)], {"opset": 6}, "repeats: got 2 values, must be 3, the rank"),
    ("Tile-13", [ROW, ints(-2)], {}, "repeats[0]: got -2, must be at least 0"),
    ("DepthToSpace-1", [X], {"opset": 1, "blocksize": 1}, "input: has rank 3, must be 4 (N, C, H, W)"),
    ("DepthToSpace-11", [IMAGE], {"opset": 11, "blocksize": 2}, "input: has depth 6, must be divisible by 4 (blocksize 2, squared)"),
    ("DepthToSpace-13", [IMAGE], {"blocksize": 1, "mode": "RCD"}, "mode: got 'RCD', must be 'DCR', 'CRD'"),
    ("DepthToSpace-13", [IMAGE], {"blocksize": 0}, "blocksize: got 0, must be at least 1"),
    ("SpaceToDepth-1", [IMAGE], {"opset": 1, "blocksize": 2}, "input: has height 3, must be divisible by 2, the blocksize"),
    ("SpaceToDepth-13", [IMAGE], {"blocksize": 3}, "input: has width 4, must be divisible by 3, the blocksize"),
    ("SpaceToDepth-13", [IMAGE], {"blocksize": -1}, "blocksize: got -1, must be at least 1"),
    ("EyeLike-9", [X], {"opset": 9}, "input: has rank 3, must be 2"),
    ("EyeLike-22", [X[0]], {"opset": 22, "dtype": 99}, "dtype: got 99, which is not a data type"),
    ("EyeLike-9", [X[0]], {"opset": 9, "dtype": 8}, "dtype: got tensor(string), must be tensor(bool), tensor(double), tensor(float), tensor(float16), tensor(int16), tensor(int32), tensor(int64), tensor(int8), tensor(uint16), tensor(uint32), tensor(uint64), tensor(uint8)"),
    ("Trilu-14", [ROW], {}, "input: has rank 1, must be at least 2"),
    ("Trilu-14", [X, ints(1, 2)], {}, "k: got 2 values, must be 1"),
    ("Range-11", [ints(0, 1), ints(2), ints(1)], {}, "start: has 2 elements, must be 1"),
    ("Range-11", [ints(0), ints(2), ints(0)], {}, "delta: got 0, which gives no number of elements from 0 to 2"),
    ("Range-11", [floats(0), floats(np.nan), floats(1)], {}, "delta: got 1.0, which gives no number of elements from 0.0 to nan"),
    ("Range-11", [ints(0), ints(2**40), ints(1)], {}, "limit: gives 1099511627776 elements of 8 bytes, must have 268435456 bytes at most"),
    ("Range-27", [np.zeros((), np.float16)] * 3, {"opset": 27, "stash_type": 10}, "stash_type: got 10, must be 1 (float)"),
    # what is known beforehand
    ("ConstantOfShape-9", [ints(2, -1)], {"opset": 9}, "input[1]: got -1, must be at least 0"),
    ("ConstantOfShape-9", [ints(2)], {"value": tensor(1, 2)}, "value: has 2 elements, must be 1"),
    ("Constant-12", [], {"opset": 12}, "attributes: got none, must be one of value, sparse_value, value_float, value_floats, value_int, value_ints, value_string, value_strings"),
    ("Constant-12", [], {"opset": 12, "value_int": 1, "value_float": 1.0}, "attributes: got value_float, value_int, must be one of value, sparse_value, value_float, value_floats, value_int, value_ints, value_string, value_strings"),
    # arithmetic
    ("Add-1", [X, ROW[:4]], {"opset": 1}, "B: has shape (4,), must be (2, 3, 4) without 'broadcast'"),
    ("Sub-6", [X, X[:1]], {"opset": 6}, "B: has shape (1, 3, 4), must be (2, 3, 4) without 'broadcast'"),
    ("Mul-6", [X, ROW[:4]], {"opset": 6, "broadcast": 1, "axis": 3}, "axis: got 3, must be -3 to 2"),
    ("Div-6", [X, X[0]], {"opset": 6, "broadcast": 1, "axis": 2}, "axis: got 2, which leaves no room for 2 dimensions"),
    ("Add-7", [X, ROW], {"opset": 7}, "B: has shape (5,), which does not broadcast with (2, 3, 4)"),
    ("Div-14", [ints(1, 2), ints(1, 0)], {}, "B: an integer is divided by 0"),
    ("Mul-14", [ints(1), floats(1)], {}, "B: has type tensor(float), must be tensor(int64) as the first one"),
    ("Cast-1", [ROW], {"opset": 1, "to": "FLOAT33"}, "to: got 'FLOAT33', which is not a data type"),
    ("Cast-13", [ROW], {"opset": 13, "to": 99}, "to: got 99, which is not a data type"),
    ("Cast-13", [ROW], {"opset": 13, "to": TensorProto.STRING}, "to: vkops does not compute with strings"),
    ("Cast-13", [np.array(["1"], object)], {"opset": 13, "to": TensorProto.FLOAT}, "to: vkops does not compute with strings"),
    # types that a version does not list
    ("Split-1", [ints(1, 2)], {"opset": 1, "outputs": 2}, "input: has type tensor(int64), must be " + FLOATS),
    ("Concat-1", [ints(1, 2)], {"opset": 1, "axis": 0}, "inputs: has type tensor(int64), must be " + FLOATS),
    ("Pad-2", [ints(1, 2)], {"opset": 2, "pads": [0, 0]}, "data: has type tensor(int64), must be " + FLOATS),
    ("Tile-1", [ints(1, 2), ints(1), ints(0)], {"opset": 1}, "input: has type tensor(int64), must be " + FLOATS),
    ("Tile-6", [ROW, np.array([1], np.int32)], {"opset": 6}, "repeats: has type tensor(int32), must be tensor(int64)"),
    ("Add-7", [np.array([1], np.int8), np.array([1], np.int8)], {"opset": 7}, "A: has type tensor(int8), must be tensor(double), tensor(float), tensor(float16), tensor(int32), tensor(int64), tensor(uint32), tensor(uint64)"),
    ("Split-18", [np.array([1], ml_dtypes.int4)], {"num_outputs": 1}, "input: has type tensor(int4), must be tensor(bfloat16), " + PLAIN),
    ("Concat-11", [np.array([1], ml_dtypes.bfloat16)], {"opset": 11, "axis": 0}, "inputs: has type tensor(bfloat16), must be " + PLAIN),
    ("Identity-13", [[X]], {"opset": 13}, "input: has type seq(tensor(float)), must be tensor(bfloat16), " + PLAIN),
]  # fmt: skip


@pytest.mark.parametrize(("operator", "inputs", "more", "message"), CASES)
def test_arguments_that_break_a_rule(operator, inputs, more, message):
    with pytest.raises(ModelError) as caught:
        run(operator.partition("-")[0], *inputs, **more)
    assert str(caught.value) == f"node 0, which makes 'o0' ({operator}): {message}"


def test_pieces_of_a_node_are_counted():
    with pytest.raises(ModelError) as caught:
        run("Pad", np.zeros((2,) * 11, np.float32), ints(*[1] * 22), mode="edge")
    assert str(caught.value) == (
        "node 0, which makes 'o0' (Pad-18): pads: moves 177147 pieces, must be 65536 at most"
    )


@pytest.mark.parametrize(
    ("operator", "inputs", "more", "message"),
    [
        ("ConcatFromSequence", ["s"], {"axis": 0},
         "input_sequence: is empty, must have at least one tensor"),
        ("SequenceAt", ["s", "zero"], {}, "position: got 0, but the sequence is empty"),
    ],
)  # fmt: skip
def test_sequences_without_tensors(operator, inputs, more, message):
    nodes = [
        helper.make_node("SplitToSequence", ["x"], ["s"]),
        helper.make_node(operator, inputs, ["y"], name="last", **more),
    ]
    zero = numpy_helper.from_array(np.array(0, np.int64), "zero")
    with pytest.raises(ModelError) as caught:
        evaluate(model(nodes, [info("x", ROW[:0])], ["y"], initializer=[zero]), {"x": ROW[:0]})
    assert str(caught.value) == f"node 'last' ({operator}-11): {message}"


@pytest.mark.parametrize(
    ("operator", "inputs", "name"),
    [
        ("Add", [X, X], "A"),
        ("Div", [ROW, ROW], "A"),
        ("Mul", [ints(*range(1025))] * 2, "A"),
        ("Cast", [X], "input"),
    ],
)
def test_elements_of_inputs_are_not_computed_with(operator, inputs, name):
    more = {"to": TensorProto.INT32} if operator == "Cast" else {}
    proto, values = node_model(operator, *inputs, **more)
    forms = {key: TensorType(value.dtype, value.shape) for key, value in values.items()}
    with pytest.raises(ModelError) as caught:
        Model(proto).lower(forms, {})
    version = 13 if operator == "Cast" else 14
    assert str(caught.value) == (
        f"node 0, which makes 'o0' ({operator}-{version}): {name}: depends on graph input 'i0'; "
        "vkops moves data, and computes only with constants, shapes, and short lists of integers"
    )


# -- nodes -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("operator", "opset", "counts", "attributes", "message"),
    [
        ("Split", 18, (1, 1), {"parts": 1},
         "parts: is not an attribute of this version; it has axis, num_outputs"),
        ("Split", 13, (1, 1), {"num_outputs": 1},
         "num_outputs: is not an attribute of this version; it has axis"),
        ("Shape", 1, (1, 1), {"start": 1}, "start: is not an attribute of this version; it has none"),
        ("Split", 18, (1, 1), {"num_outputs": 2.0},
         "num_outputs: got an attribute of type FLOAT, must be INT"),
        ("Pad", 2, (1, 1), {"pads": "1"}, "pads: got an attribute of type STRING, must be INTS"),
        ("Concat", 13, (2, 1), {}, "axis: is missing"),
        ("Tile", 1, (2, 1), {}, "inputs: got 2, must be 3"),
        ("Transpose", 13, (2, 1), {}, "inputs: got 2, must be 1"),
        ("Concat", 13, (0, 1), {"axis": 0}, "inputs: got 0, must be at least 1"),
        ("Pad", 18, (1, 1), {}, "inputs: got 1, must be 2 to 4"),
        ("Transpose", 13, (1, 2), {}, "outputs: got 2, must be 1"),
    ],
)  # fmt: skip
def test_nodes_are_as_their_schema_says(operator, opset, counts, attributes, message):
    inputs, outputs = (
        [f"{kind}{i}" for i in range(n)] for kind, n in zip("xy", counts, strict=True)
    )
    schema = schema_of(operator, opset)
    node = helper.make_node(operator, inputs, outputs, **attributes)
    with pytest.raises(ModelError) as caught:
        Node(node, 3, schema)
    label = f"node 3, which makes 'y0' ({operator}-{schema.since_version})"
    assert str(caught.value) == f"{label}: {message}"
    with pytest.raises(ModelError, match=r"^the model breaks ONNX's rules: "):
        Model(model([node], [info(name, X) for name in inputs], outputs, opset))


def test_nodes_that_make_nothing_are_named_by_their_place():
    with pytest.raises(ModelError) as caught:
        Node(helper.make_node("Split", ["x"], []), 2, schema_of("Split", 18))
    assert str(caught.value) == "node 2 (Split-18): outputs: got 0, must be at least 1"


# -- models ----------------------------------------------------------------------------------------


def test_models_of_too_new_an_opset():
    newest = onnx.defs.onnx_opset_version()
    with pytest.raises(ModelError) as caught:
        Model(model([], [info("x", X)], ["x"], opset=999))
    assert str(caught.value) == (
        f"the model needs opset 999, the installed onnx {onnx.__version__} knows those up to {newest}"
    )


def test_all_nodes_that_are_not_supported_are_listed():
    nodes = [
        helper.make_node("Relu", ["x"], ["a"]),
        helper.make_node("Identity", ["a"], ["b"]),
        helper.make_node("Split", ["b"], ["c"], name="own", domain="com.example"),
        helper.make_node("Expand", ["c", "x"], ["y"]),
    ]
    proto = model(nodes, [info("x", X)], ["y"], opset=7)
    found = unsupported_nodes(read(proto, check=False))
    assert [(node.label, node.reason) for node in found] == [
        ("node 0, which makes 'a' (Relu)", "vkops does not have this operator"),
        ("node 'own' (com.example.Split)", "vkops does not have this operator"),
        ("node 3, which makes 'y' (Expand)", "opset 7 does not have this operator"),
    ]
    with pytest.raises(ModelError) as caught:
        Model(proto, check=False)
    assert str(caught.value) == (
        "node 0, which makes 'a' (Relu): vkops does not have this operator, nor 2 more nodes; it "
        f"has {', '.join(OPERATORS)}"
    )


def test_the_reason_why_an_operator_is_refused():
    proto = model([helper.make_node("NonZero", ["x"], ["y"])], [info("x", X)], ["y"])
    (found,) = unsupported_nodes(read(proto, check=False))
    assert found.reason == (
        "vkops does not have this operator (the sizes of its output depend on the elements of its "
        "input)"
    )


@pytest.mark.parametrize(
    "nodes",
    [
        [helper.make_node("Identity", ["q"], ["y"])],
        [helper.make_node("Identity", ["y"], ["y"])],
        [helper.make_node("Identity", ["x"], ["y"])] * 2,
        [helper.make_node("Identity", ["x"], ["z"])],
        [helper.make_node("Identity", [""], ["y"])],
        [helper.make_node("Concat", ["x", "x"], ["y"])],
    ],
)
def test_graphs_that_break_the_rules_of_onnx(nodes):
    with pytest.raises(ModelError, match=r"^the model breaks ONNX's rules: "):
        Model(model(nodes, [info("x", X)], ["y"]))


WHOLE = model(
    [helper.make_node("Identity", ["x"], ["y"])], [info("x", X)], ["y"]
).SerializeToString()


@pytest.mark.parametrize(
    "data", [b"\x08", b"\xff\xff", b"hello", b"{}", WHOLE[:-1], WHOLE[:9], b""]
)
def test_files_that_are_not_models(data, tmp_path):
    path = tmp_path / "m.onnx"
    path.write_bytes(data)
    message = r"not an ONNX model$" if data else r"not an ONNX model: it has no IR version$"
    for source in (data, path, str(path)):
        with pytest.raises(ModelError, match=message):
            Model(source)


def test_files_that_cannot_be_read(tmp_path):
    with pytest.raises(ModelError, match=r"No such file or directory$"):
        Model(tmp_path / "missing.onnx")
    with pytest.raises(ModelError, match=r"Is a directory$"):
        Model(tmp_path)
    with pytest.raises(ModelError, match=r"null (byte|character)"):
        Model("a\0b.onnx")


def test_files_whose_data_lies_elsewhere(tmp_path):
    path = tmp_path / "m.onnx"
    proto = model([], [], ["c"], initializer=[numpy_helper.from_array(X, "c")])
    onnx.save(proto, path, save_as_external_data=True, location="m.data", size_threshold=0)
    assert Model(path).constants["c"].tolist() == X.tolist()
    (tmp_path / "m.data").unlink()
    with pytest.raises(ModelError, match=r"m\.data"):
        Model(path)


def test_strings_that_are_not_utf_8():
    constant = numpy_helper.from_array(np.array(["a"], object), "c")
    constant.string_data[0] = b"\xff"
    with pytest.raises(ModelError, match="c"):
        Model(model([], [], ["c"], initializer=[constant]))
    node = helper.make_node("Constant", [], ["c"], name="c", value_string=b"\xff")
    with pytest.raises(ModelError, match=r"node 'c' \(Constant-13\): value_string: is not UTF-8"):
        evaluate(model([node], [], ["c"]), {})


def test_outputs_of_another_type_than_declared():
    proto = parser.parse_model(
        """<ir_version: 8, opset_import: ["" : 13]>
        g (float[2] x) => (int64[2] y) { y = Identity (x) }"""
    )
    with pytest.raises(ModelError) as caught:
        evaluate(proto, {"x": np.float32([1, 2])})
    assert str(caught.value) == (
        "output 'y': is declared tensor(int64), its node makes tensor(float)"
    )
