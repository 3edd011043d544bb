"""Find faults of a model that no shapes and no elements of its inputs can remove.

These are wrong types, wrong attributes, and nodes that would compute with the elements of graph
inputs. All other faults depend on shapes or elements, and ``Model.lower`` finds them.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import Any

import numpy as np

from vkops.errors import ModelError
from vkops.onnx.element_types import type_text
from vkops.onnx.lowering import LoweredTensor, Lowering, NeedsValueError
from vkops.onnx.onnx_model import Model
from vkops.onnx.onnx_node import Call, Node
from vkops.onnx.operators import lowering_function
from vkops.onnx.operators.arithmetic import MAX_ELEMENTS, depends_on
from vkops.onnx.operators.indexing import (
    check_linear,
    check_reduction,
    check_sequence_axes,
    is_index_type,
)
from vkops.onnx.operators.resize import check_node
from vkops.onnx.operators.selection import pad_modes
from vkops.onnx.value_info import InputType, TensorType, ValueInfo, check_output_type
from vkops.plan.size_limits import MAX_DIMENSIONS, LimitError
from vkops.plan.view import Ints

_INPUT_KINDS = ("", "tensor", "sequence", "optional")
_MOVED = (
    "constant_value",
    "indices",
    "sequence_lens",
    "update",
    "updates",
    "values",
    "write_indices",
)
"""Inputs that are moved, or say what is, beside the first one of a node."""

_CHECKS: Mapping[str, Callable[[Node], object]] = {
    "Pad": lambda node: node.choice("mode", *pad_modes(node.version)),
    "Resize": check_node,
    "ReverseSequence": check_sequence_axes,
    "ScatterElements": check_reduction,
    "ScatterND": check_reduction,
    "TensorScatter": check_linear,
    "Upsample": check_node,
}
"""Checks for faults that do not depend on shapes."""

_COMPUTING = ("Add", "Div", "Equal", "Mod", "Mul", "Range", "Sub", "Where")


@dataclass(frozen=True, slots=True)
class _Known:
    """The facts that are known of a tensor, or of a sequence, without its shape."""

    dtype: np.dtype[Any] | None = None
    kind: str = "tensor"
    origins: int = 0
    """The graph inputs whose elements it may depend on, a bit for each."""
    may_be_list: bool = True
    """Whether it may be a list of at most ``MAX_ELEMENTS`` elements, which shapes can depend on."""

    @property
    def type(self) -> str | None:
        """The type as schemas write it; None where it is not known."""
        return None if self.dtype is None else type_text(self.dtype, self.kind)


def check_statically(model: Model) -> Lowering | None:
    """Refuse a model that cannot run with inputs of the types and sizes that it declares.

    Returns:
        The model lowered for these sizes; None where some sizes are free, or where more depends on
        the elements of inputs.

    Raises:
        ModelError: for the first fault.
    """
    _check_nodes(model)
    input_types = _declared_types(model)
    try:
        return None if input_types is None else model.lower(input_types, {})
    except NeedsValueError:
        return None


def _declared_types(model: Model) -> dict[str, InputType] | None:
    """Return the types and shapes of all required inputs, where the model declares them all."""
    input_types: dict[str, InputType] = {}
    for entry in model.required_inputs:
        sizes = tuple(size for size in entry.shape or () if isinstance(size, int))
        if entry.kind != "tensor" or entry.dtype is None or entry.shape != sizes:
            return None
        input_types[entry.name] = TensorType(entry.dtype, sizes)
    return input_types


def _check_nodes(model: Model) -> None:
    """Check all nodes in order, without shapes."""
    known = {"": _Known(), **{name: _Known(a.dtype) for name, a in model.constants.items()}}
    for number, entry in enumerate(model.inputs):
        if entry.kind not in _INPUT_KINDS:
            message = f"is a {entry.kind}, must be a tensor, sequence or optional"
            raise ModelError(f"input {entry.name!r}: {message}")
        # An input with a default need not be given, and an empty one has no elements.
        has_elements = entry.name not in model.constants and 0 not in (entry.shape or ())
        known[entry.name] = _input(entry, has_elements << number)
    needed = 0  # the graph inputs whose elements are known when a node is lowered, a bit for each
    for node in model.nodes:
        inputs = [known[name] for name in node.inputs]
        node.check_types([value.type for value in inputs])
        if node.operator in _CHECKS:
            _CHECKS[node.operator](node)
        made = _output(node, inputs)
        computing = _computing(node, inputs, made)
        # These depend on the shape of their input only.
        of_shape = node.operator in ("EyeLike", "Shape", "Size")
        arguments = [] if of_shape else [*node.parameters(inputs)]
        moved = 0
        for parameter, value in arguments:
            unknown = value.origins & ~needed
            computes = parameter.name in computing
            if computes and unknown and not _may_be_computed_with(value):
                first = (unknown & -unknown).bit_length() - 1
                node.refuse(parameter.name, depends_on(model.inputs[first].name))
            if computes or not _is_moved(node, parameter.name):
                needed |= unknown
            else:
                moved |= unknown
        made = replace(made, origins=moved & ~needed)
        known.update(dict.fromkeys(filter(None, node.outputs), made))
    for entry in model.outputs:
        check_output_type(entry, known[entry.name].dtype)


def _computing(node: Node, inputs: Sequence[_Known], made: _Known) -> Collection[str]:
    """Return the names of the inputs whose elements a node computes with."""
    first = inputs[0].dtype if inputs else None
    if node.operator in _COMPUTING or (node.operator == "Cast" and made.dtype != first):
        return [parameter.name for parameter in node.schema.inputs]
    if node.operator == "OneHot" and first is not None and not is_index_type(first):
        return ["indices"]
    return ()


def _input(entry: ValueInfo, origins: int) -> _Known:
    if entry.kind == "optional":  # of any kind, or absent
        return _Known(None, origins=origins)
    shape = entry.shape or ()
    size = prod(n for n in shape if isinstance(n, int))
    may_be_list = len(shape) <= 1 and size <= MAX_ELEMENTS
    return _Known(entry.dtype, entry.kind or "tensor", origins, may_be_list)


def _may_be_computed_with(value: _Known) -> bool:
    return value.dtype is None or (value.dtype.kind in "iu" and value.may_be_list)


def _is_moved(node: Node, parameter: str) -> bool:
    """Whether the device reads an input of a node; if not, it is a shape, an axis or the like."""
    if node.operator == "ConstantOfShape":
        return False
    return parameter == node.schema.inputs[0].name or parameter in _MOVED


def _output(node: Node, inputs: Sequence[_Known]) -> _Known:
    """Return what is known of each output of a node.

    Raises:
        ModelError: an attribute is wrong, whatever the input.
    """
    match node.operator:
        case "Identity":
            return inputs[0]
        case "Shape" | "Size":
            return _Known(np.dtype(np.int64))
        case "Equal":
            return _Known(np.dtype(bool))
        case "Where":
            return _Known(inputs[1].dtype)
        case "OneHot":
            return _Known(inputs[2].dtype)
        case "SplitToSequence":
            return _Known(inputs[0].dtype, "sequence")
    arguments = _stub_arguments(node, inputs)
    if arguments is None:
        return _Known(inputs[0].dtype)
    lowering, tensors = arguments
    (made, *_) = lowering_function(node.operator, node.version)(Call(node, lowering, tensors))
    return _Known(made.dtype if made else None)


def _stub_arguments(
    node: Node, inputs: Sequence[_Known]
) -> tuple[Lowering, list[LoweredTensor]] | None:
    """Return inputs with which a node can be lowered unless one of its attributes is wrong.

    None where the node has more inputs than one, or the type of that one is not known.
    """
    lowering = Lowering()
    if node.operator == "Constant":
        return lowering, []
    shape = _stub_shape(node)
    if shape is None or any(node.inputs[1:]) or inputs[0].dtype is None:
        return None
    try:
        return lowering, [lowering.full(np.zeros(1, inputs[0].dtype), shape)]
    except LimitError:  # such attributes fit empty tensors only
        return None


def _stub_shape(node: Node) -> Ints | None:
    attributes = node.attributes
    match node.operator:
        case "Cast" | "ConstantOfShape":
            return (1,)
        case "EyeLike":
            return (1, 1)
        case "DepthToSpace" | "SpaceToDepth":
            side = max(1, attributes["blocksize"])
            return (1, side * side, side, side)
        case "Split":
            axis, lengths = attributes.get("axis", 0), attributes.get("split")
            rank = axis + 1 if axis >= 0 else -axis
            whole = len(node.outputs) if lengths is None else max(0, sum(lengths))
            return (whole,) * rank if rank <= MAX_DIMENSIONS else None
        case "Transpose" if attributes.get("perm"):
            return (1,) * len(attributes["perm"])
    return None
