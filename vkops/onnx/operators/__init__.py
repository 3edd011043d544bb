"""The ONNX operators that vkops has, and the function that lowers each."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

import numpy as np

from vkops.onnx.lowering import LoweredValue
from vkops.onnx.onnx_node import Call
from vkops.onnx.operators import (
    arithmetic,
    constant,
    diagonals,
    indexing,
    resize,
    selection,
    shapes_and_axes,
    split_concat,
)
from vkops.onnx.operators.arithmetic import elementwise

LoweringFunction = Callable[[Call], Iterable[LoweredValue]]
"""A function that makes the outputs of a node from its inputs."""

OPERATORS: Mapping[str, Mapping[int, LoweringFunction]] = {
    "Add": {1: elementwise(np.add)},
    "Cast": {1: arithmetic.cast},
    "CenterCropPad": {18: selection.center_crop_pad},
    "Concat": {1: split_concat.concat},
    "ConcatFromSequence": {11: split_concat.concat_from_sequence},
    "Constant": {1: constant.constant},
    "ConstantOfShape": {9: constant.constant_of_shape},
    "DepthToSpace": {1: shapes_and_axes.depth_to_space},
    "Div": {1: elementwise(arithmetic.quotient, divides=True)},
    "Equal": {1: elementwise(np.equal, dtype=bool)},
    "Expand": {8: selection.expand},
    "EyeLike": {9: diagonals.eye_like},
    "Flatten": {1: shapes_and_axes.flatten},
    "Gather": {1: indexing.gather},
    "GatherElements": {11: indexing.gather_elements},
    "GatherND": {11: indexing.gather_nd},
    "Identity": {1: shapes_and_axes.identity},
    "Mod": {10: arithmetic.modulo},
    "Mul": {1: elementwise(np.multiply)},
    "OneHot": {9: indexing.one_hot},
    "Pad": {1: selection.pad},
    "Range": {11: arithmetic.range},
    "Reshape": {1: shapes_and_axes.reshape},
    "Resize": {10: resize.resize},
    "ReverseSequence": {10: indexing.reverse_sequence},
    "Scatter": {9: indexing.scatter_elements},
    "ScatterElements": {11: indexing.scatter_elements},
    "ScatterND": {11: indexing.scatter_nd},
    "SequenceAt": {11: split_concat.sequence_at},
    "Shape": {1: constant.shape},
    "Size": {1: constant.size},
    "Slice": {1: selection.slice},
    "SpaceToDepth": {1: shapes_and_axes.space_to_depth},
    "Split": {1: split_concat.split},
    "SplitToSequence": {11: split_concat.split_to_sequence},
    "Squeeze": {1: shapes_and_axes.squeeze},
    "Sub": {1: elementwise(np.subtract)},
    "TensorScatter": {24: indexing.tensor_scatter},
    "Tile": {1: selection.tile_along_axis, 6: selection.tile},
    "Transpose": {1: shapes_and_axes.transpose},
    "Trilu": {14: diagonals.trilu},
    "Unsqueeze": {1: shapes_and_axes.unsqueeze},
    "Upsample": {1: resize.resize},
    "Where": {9: arithmetic.where},
}
"""For each operator, its functions by the first version of the operator that each is for."""

REFUSED: Mapping[str, str] = {
    "CastLike": "it converts elements to another type",
    "NonZero": "the sizes of its output depend on the elements of its input",
}
"""Operators that could be taken for movements of data, and why vkops does not have them."""


def lowering_function(operator: str, version: int) -> LoweringFunction:
    """Return the function that lowers a version of an operator."""
    versions = OPERATORS[operator]
    return versions[max(first for first in versions if first <= version)]
