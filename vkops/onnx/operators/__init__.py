"""The ONNX operators that vkops has: how each is lowered, and facts for checks before that."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from vkops.onnx.lowering import LoweredValue
from vkops.onnx.onnx_node import Call, OnnxNode
from vkops.onnx.operators import (
    arithmetic,
    control_flow,
    indexing,
    resize,
    selection,
    shapes_and_axes,
    split_concat,
)
from vkops.onnx.operators.arithmetic import elementwise
from vkops.plan.view import Ints


@dataclass(frozen=True)
class OnnxOperator:
    """An operator: how its nodes are lowered, and facts about them that need no shapes.

    Attributes:
        lower: makes the outputs of a node, in all versions of the operator up to ``newest``.
        newest: the newest version whose meaning is known. A later opset may change the meaning, so
            nodes of a newer version are an error.
        first: the use of the first input: its elements are moved, or they are needed before a node
            is lowered (as those of shapes and axes), or only its shape is used.
        moves: the other inputs whose elements are moved or are indices. All further inputs are
            shapes, axes and the like.
        computes: the inputs whose elements the host computes with.
        if_types: whether it computes with them, for the types of the first input and the output.
        makes: the type of the output, if it is not the type of an input.
        check: raises the error for a node whose attributes are wrong for any inputs.
        stub: returns a shape of the only input with which a node can be lowered, unless one of its
            attributes is wrong; None if there is no such shape.
    """

    lower: Callable[[Call], Iterable[LoweredValue]]
    newest: int
    first: Literal["moved", "needed", "unread"] = "moved"
    moves: str = ""
    computes: str = ""
    if_types: Callable[[Any, Any], bool] = lambda first, output: True
    makes: type | None = None
    check: Callable[[OnnxNode], object] = lambda node: None
    stub: Callable[[OnnxNode], Ints | None] = lambda node: None

    def outputs(self, call: Call) -> Iterable[LoweredValue]:
        """Return the outputs of a node after a check of its attributes."""
        self.check(call.node)
        return self.lower(call)


OPERATORS: Mapping[str, OnnxOperator] = {
    "Add": OnnxOperator(elementwise(np.add), 14, computes="A B"),
    "And": OnnxOperator(elementwise(np.logical_and), 7, computes="A B"),
    "Cast": OnnxOperator(
        arithmetic.cast, 28, computes="input", if_types=operator.ne, stub=lambda _: (1,)
    ),
    "CenterCropPad": OnnxOperator(selection.center_crop_pad, 18),
    "Compress": OnnxOperator(indexing.compress, 28),
    "Concat": OnnxOperator(split_concat.concat, 13),
    "ConcatFromSequence": OnnxOperator(split_concat.concat_from_sequence, 11),
    "Constant": OnnxOperator(arithmetic.constant, 25),
    "ConstantOfShape": OnnxOperator(
        arithmetic.constant_of_shape, 25, first="needed", stub=lambda _: (1,)
    ),
    "DepthToSpace": OnnxOperator(
        shapes_and_axes.depth_to_space, 28, stub=shapes_and_axes.image_stub
    ),
    "Div": OnnxOperator(elementwise(arithmetic.quotient, divides=True), 14, computes="A B"),
    "Dropout": OnnxOperator(shapes_and_axes.dropout, 22),
    "Equal": OnnxOperator(elementwise(np.equal, dtype=bool), 19, computes="A B", makes=bool),
    "Expand": OnnxOperator(selection.expand, 13),
    "EyeLike": OnnxOperator(selection.eye_like, 22, first="unread", stub=lambda _: (1, 1)),
    "Flatten": OnnxOperator(shapes_and_axes.flatten, 25),
    "Gather": OnnxOperator(indexing.gather, 13, moves="indices"),
    "GatherElements": OnnxOperator(indexing.gather_elements, 13, moves="indices"),
    "GatherND": OnnxOperator(indexing.gather_nd, 13, moves="indices"),
    "Greater": OnnxOperator(elementwise(np.greater, dtype=bool), 13, computes="A B", makes=bool),
    "GreaterOrEqual": OnnxOperator(
        elementwise(np.greater_equal, dtype=bool), 16, computes="A B", makes=bool
    ),
    "Identity": OnnxOperator(shapes_and_axes.identity, 25),
    "If": OnnxOperator(control_flow.branch, 25, first="needed"),
    "Less": OnnxOperator(elementwise(np.less, dtype=bool), 13, computes="A B", makes=bool),
    "LessOrEqual": OnnxOperator(
        elementwise(np.less_equal, dtype=bool), 16, computes="A B", makes=bool
    ),
    "Loop": OnnxOperator(control_flow.loop, 25, first="needed", moves="v_initial"),
    "Mod": OnnxOperator(arithmetic.modulo, 28, computes="A B"),
    "Mul": OnnxOperator(elementwise(np.multiply), 14, computes="A B"),
    "Not": OnnxOperator(arithmetic.logical_not, 1, computes="X"),
    "OneHot": OnnxOperator(
        indexing.one_hot, 28, computes="indices", if_types=indexing.needs_conversion, moves="values"
    ),
    "Or": OnnxOperator(elementwise(np.logical_or), 7, computes="A B"),
    "Pad": OnnxOperator(selection.pad, 25, moves="constant_value", check=selection.pad_mode),
    "Range": OnnxOperator(arithmetic.range, 27, computes="start limit delta"),
    "Reshape": OnnxOperator(shapes_and_axes.reshape, 25),
    "Resize": OnnxOperator(resize.resize, 19, check=resize.check_node),
    "ReverseSequence": OnnxOperator(
        indexing.reverse_sequence, 28, moves="sequence_lens", check=indexing.check_sequence_axes
    ),
    "Scatter": OnnxOperator(indexing.scatter_elements, 11, moves="indices updates"),
    "ScatterElements": OnnxOperator(
        indexing.scatter_elements, 18, moves="indices updates", check=indexing.check_reduction
    ),
    "ScatterND": OnnxOperator(
        indexing.scatter_nd, 18, moves="indices updates", check=indexing.check_reduction
    ),
    "SequenceAt": OnnxOperator(split_concat.sequence_at, 11),
    "SequenceConstruct": OnnxOperator(split_concat.sequence_construct, 11, moves="inputs"),
    "SequenceEmpty": OnnxOperator(split_concat.sequence_empty, 11),
    "SequenceErase": OnnxOperator(split_concat.sequence_erase, 11),
    "SequenceInsert": OnnxOperator(split_concat.sequence_insert, 11, moves="tensor"),
    "SequenceLength": OnnxOperator(
        split_concat.sequence_length, 11, first="unread", makes=np.int64
    ),
    "Shape": OnnxOperator(arithmetic.shape, 25, first="unread", makes=np.int64),
    "Size": OnnxOperator(arithmetic.size, 25, first="unread", makes=np.int64),
    "Slice": OnnxOperator(selection.slice, 13),
    "SpaceToDepth": OnnxOperator(
        shapes_and_axes.space_to_depth, 28, stub=shapes_and_axes.image_stub
    ),
    "Split": OnnxOperator(split_concat.split, 18, stub=split_concat.split_stub),
    "SplitToSequence": OnnxOperator(split_concat.split_to_sequence, 24),
    "Squeeze": OnnxOperator(shapes_and_axes.squeeze, 25),
    "Sub": OnnxOperator(elementwise(np.subtract), 14, computes="A B"),
    "TensorScatter": OnnxOperator(
        indexing.tensor_scatter, 24, moves="update write_indices", check=indexing.check_linear
    ),
    "Tile": OnnxOperator(selection.tile, 13),
    "Transpose": OnnxOperator(
        shapes_and_axes.transpose,
        25,
        stub=lambda node: (1,) * len(node.attributes.get("perm", ())) or None,
    ),
    "Trilu": OnnxOperator(selection.trilu, 14),
    "Unsqueeze": OnnxOperator(shapes_and_axes.unsqueeze, 25),
    "Upsample": OnnxOperator(resize.resize, 10, check=resize.check_node),
    "Where": OnnxOperator(indexing.where, 16, computes="condition", moves="X Y"),
    "Xor": OnnxOperator(elementwise(np.logical_xor), 7, computes="A B"),
}
"""The operators that vkops has."""

REFUSED: Mapping[str, str] = {
    "CastLike": "it converts elements to another type",
    "NonZero": "the sizes of its output depend on the elements of its input",
}
"""Operators that could be taken for movements of data, and why vkops does not have them."""
