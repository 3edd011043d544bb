"""The ONNX operators that vkops has: how each is lowered, and what is known of it before."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from vkops.onnx.lowering import LoweredValue
from vkops.onnx.onnx_node import Call, Node
from vkops.onnx.operators import (
    arithmetic,
    indexing,
    resize,
    selection,
    shapes_and_axes,
    split_concat,
)
from vkops.onnx.operators.arithmetic import elementwise
from vkops.plan.view import Ints


@dataclass(frozen=True)
class Operator:
    """An operator: how its nodes are lowered, and what is known of them without any shape.

    Attributes:
        lower: makes the outputs of a node, in all versions of the operator.
        first: the elements of the first input are moved, or needed before a node is lowered as
            those of shapes and axes are, or only its shape counts.
        moves: the other inputs whose elements are moved, or say which are. All further inputs are
            shapes, axes and the like.
        computes: the inputs whose elements are computed with on the host.
        if_types: whether they are, given the types of the first input and of the output.
        makes: the type of the output, where it is not that of an input.
        check: refuses a node whose attributes are wrong, whatever its inputs are.
        stub: the shape of an only input with which a node can be lowered unless one of its
            attributes is wrong; None where there is no such shape.
    """

    lower: Callable[[Call], Iterable[LoweredValue]]
    first: Literal["moved", "needed", "unread"] = "moved"
    moves: str = ""
    computes: str = ""
    if_types: Callable[[Any, Any], bool] = lambda first, output: True
    makes: type | None = None
    check: Callable[[Node], object] = lambda node: None
    stub: Callable[[Node], Ints | None] = lambda node: None

    def outputs(self, call: Call) -> Iterable[LoweredValue]:
        """Make the outputs of a node, whose attributes are checked."""
        self.check(call.node)
        return self.lower(call)


OPERATORS: Mapping[str, Operator] = {
    "Add": Operator(elementwise(np.add), computes="A B"),
    "Cast": Operator(arithmetic.cast, computes="input", if_types=operator.ne, stub=lambda _: (1,)),
    "CenterCropPad": Operator(selection.center_crop_pad),
    "Concat": Operator(split_concat.concat),
    "ConcatFromSequence": Operator(split_concat.concat_from_sequence),
    "Constant": Operator(arithmetic.constant),
    "ConstantOfShape": Operator(arithmetic.constant_of_shape, first="needed", stub=lambda _: (1,)),
    "DepthToSpace": Operator(shapes_and_axes.depth_to_space, stub=shapes_and_axes.image_stub),
    "Div": Operator(elementwise(arithmetic.quotient, divides=True), computes="A B"),
    "Equal": Operator(elementwise(np.equal, dtype=bool), computes="A B", makes=bool),
    "Expand": Operator(selection.expand),
    "EyeLike": Operator(selection.eye_like, first="unread", stub=lambda _: (1, 1)),
    "Flatten": Operator(shapes_and_axes.flatten),
    "Gather": Operator(indexing.gather, moves="indices"),
    "GatherElements": Operator(indexing.gather_elements, moves="indices"),
    "GatherND": Operator(indexing.gather_nd, moves="indices"),
    "Identity": Operator(shapes_and_axes.identity),
    "Mod": Operator(arithmetic.modulo, computes="A B"),
    "Mul": Operator(elementwise(np.multiply), computes="A B"),
    "OneHot": Operator(
        indexing.one_hot,
        computes="indices",
        if_types=indexing.needs_conversion,
        moves="values",
    ),
    "Pad": Operator(selection.pad, moves="constant_value", check=selection.pad_mode),
    "Range": Operator(arithmetic.range, computes="start limit delta"),
    "Reshape": Operator(shapes_and_axes.reshape),
    "Resize": Operator(resize.resize, check=resize.check_node),
    "ReverseSequence": Operator(
        indexing.reverse_sequence, moves="sequence_lens", check=indexing.check_sequence_axes
    ),
    "Scatter": Operator(indexing.scatter_elements, moves="indices updates"),
    "ScatterElements": Operator(
        indexing.scatter_elements, moves="indices updates", check=indexing.check_reduction
    ),
    "ScatterND": Operator(
        indexing.scatter_nd, moves="indices updates", check=indexing.check_reduction
    ),
    "SequenceAt": Operator(split_concat.sequence_at),
    "Shape": Operator(arithmetic.shape, first="unread", makes=np.int64),
    "Size": Operator(arithmetic.size, first="unread", makes=np.int64),
    "Slice": Operator(selection.slice),
    "SpaceToDepth": Operator(shapes_and_axes.space_to_depth, stub=shapes_and_axes.image_stub),
    "Split": Operator(split_concat.split, stub=split_concat.split_stub),
    "SplitToSequence": Operator(split_concat.split_to_sequence),
    "Squeeze": Operator(shapes_and_axes.squeeze),
    "Sub": Operator(elementwise(np.subtract), computes="A B"),
    "TensorScatter": Operator(
        indexing.tensor_scatter, moves="update write_indices", check=indexing.check_linear
    ),
    "Tile": Operator(selection.tile),
    "Transpose": Operator(
        shapes_and_axes.transpose,
        stub=lambda node: (1,) * len(node.attributes.get("perm", ())) or None,
    ),
    "Trilu": Operator(selection.trilu),
    "Unsqueeze": Operator(shapes_and_axes.unsqueeze),
    "Upsample": Operator(resize.resize, check=resize.check_node),
    "Where": Operator(arithmetic.where, computes="condition X Y"),
}
"""The operators that vkops has."""

REFUSED: Mapping[str, str] = {
    "CastLike": "it converts elements to another type",
    "NonZero": "the sizes of its output depend on the elements of its input",
}
"""Operators that could be taken for movements of data, and why vkops does not have them."""
