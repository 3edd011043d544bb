"""The ONNX operators that vkops has, and the function that lowers each."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

import numpy as np

from vkops.onnx.lowering import LoweredValue
from vkops.onnx.onnx_node import Call
from vkops.onnx.operators.arithmetic import cast, elementwise, modulo, quotient, where
from vkops.onnx.operators.constant import constant, constant_of_shape, shape, size
from vkops.onnx.operators.selection import expand, gather, pad, slice, tile, tile_along_axis
from vkops.onnx.operators.shapes_and_axes import (
    depth_to_space,
    flatten,
    identity,
    reshape,
    space_to_depth,
    squeeze,
    transpose,
    unsqueeze,
)
from vkops.onnx.operators.split_concat import (
    concat,
    concat_from_sequence,
    sequence_at,
    split,
    split_to_sequence,
)

LoweringFunction = Callable[[Call], Iterable[LoweredValue]]
"""A function that makes the outputs of a node from its inputs."""

OPERATORS: Mapping[str, Mapping[int, LoweringFunction]] = {
    "Add": {1: elementwise(np.add)},
    "Cast": {1: cast},
    "Concat": {1: concat},
    "ConcatFromSequence": {11: concat_from_sequence},
    "Constant": {1: constant},
    "ConstantOfShape": {9: constant_of_shape},
    "DepthToSpace": {1: depth_to_space},
    "Div": {1: elementwise(quotient, divides=True)},
    "Equal": {1: elementwise(np.equal, dtype=bool)},
    "Expand": {8: expand},
    "Flatten": {1: flatten},
    "Gather": {1: gather},
    "Identity": {1: identity},
    "Mod": {10: modulo},
    "Mul": {1: elementwise(np.multiply)},
    "Pad": {1: pad},
    "Reshape": {1: reshape},
    "SequenceAt": {11: sequence_at},
    "Shape": {1: shape},
    "Size": {1: size},
    "Slice": {1: slice},
    "SpaceToDepth": {1: space_to_depth},
    "Split": {1: split},
    "SplitToSequence": {11: split_to_sequence},
    "Squeeze": {1: squeeze},
    "Sub": {1: elementwise(np.subtract)},
    "Tile": {1: tile_along_axis, 6: tile},
    "Transpose": {1: transpose},
    "Unsqueeze": {1: unsqueeze},
    "Where": {9: where},
}
"""For each operator, its functions by the first version of the operator that each is for."""


def lowering_function(operator: str, version: int) -> LoweringFunction:
    """Return the function that lowers a version of an operator."""
    versions = OPERATORS[operator]
    return versions[max(first for first in versions if first <= version)]
