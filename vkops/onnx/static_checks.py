"""Checks that find faults of a model which it has for all shapes and elements of its inputs.

These are wrong types, wrong attributes, and nodes that would compute with the elements of graph
inputs. All other faults depend on shapes or elements, and ``Model.lower`` finds them.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from math import prod
from typing import Any

import numpy as np

from vkops.errors import ModelError
from vkops.onnx.element_types import type_text
from vkops.onnx.lowering import LoweredSequence, LoweredTensor, Lowering, NeedsValueError
from vkops.onnx.onnx_model import Model
from vkops.onnx.onnx_node import Call, OnnxNode
from vkops.onnx.operators import OPERATORS
from vkops.onnx.operators.arithmetic import MAX_ELEMENTS, depends_on
from vkops.onnx.value_info import InputType, ValueInfo, check_output_type, type_at
from vkops.plan.size_limits import LimitError

_INPUT_KINDS = ("", "tensor", "sequence", "optional")


@dataclass(frozen=True, slots=True)
class _Facts:
    """Facts about a tensor or a sequence that do not depend on its shape."""

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
    """Check that a model can run with inputs of the types and sizes that it declares.

    Returns:
        The model lowered for these sizes; None if some sizes are free, or if lowering depends on
        the elements of inputs.

    Raises:
        ModelError: the first fault.
    """
    _check_nodes(model)
    input_types: dict[str, InputType] = {}
    for entry in model.required_inputs:
        sizes = tuple(size for size in entry.shape or () if isinstance(size, int))
        if entry.kind != "tensor" or entry.dtype is None or entry.shape != sizes:
            return None
        input_types[entry.name] = type_at(entry, sizes)
    try:
        return model.lower(input_types, {})
    except NeedsValueError:
        return None


def _check_nodes(model: Model) -> None:
    known = {"": _Facts(), **{name: _Facts(a.dtype) for name, a in model.constants.items()}}
    for number, entry in enumerate(model.inputs):
        if entry.kind not in _INPUT_KINDS:
            message = f"got a {entry.kind}, must be a tensor, sequence or optional"
            raise ModelError(f"input {entry.name!r}: {message}")
        # An input with a default need not be given, and an empty one has no elements.
        has_elements = entry.name not in model.constants and 0 not in (entry.shape or ())
        known[entry.name] = _input(entry, has_elements << number)
    needed = 0  # the graph inputs whose elements are known when a node is lowered, a bit for each
    for node in model.nodes:
        inputs = [known[name] for name in node.inputs]
        node.check_types([value.type for value in inputs])
        operator = OPERATORS[node.operator]
        operator.check(node)
        facts = _output(node, inputs)
        types = inputs[0].dtype if inputs else None, facts.dtype
        computing = operator.computes.split() if operator.if_types(*types) else ()
        movable = operator.moves.split()
        if operator.first == "moved":
            movable += [parameter.name for parameter in node.schema.inputs[:1]]
        moved = 0
        for parameter, value in () if operator.first == "unread" else node.parameters(inputs):
            unknown = value.origins & ~needed
            computes = parameter.name in computing
            may_be_shape = value.dtype is None or (value.dtype.kind in "iu" and value.may_be_list)
            if computes and unknown and not may_be_shape:
                first = (unknown & -unknown).bit_length() - 1
                node.refuse(parameter.name, depends_on(model.inputs[first].name))
            if computes or parameter.name not in movable:
                needed |= unknown
            else:
                moved |= unknown
        facts = replace(facts, origins=moved & ~needed)
        first_type = node.schema.outputs[0].type_str
        for i, name in enumerate(node.outputs):
            parameter = node.schema.outputs[min(i, len(node.schema.outputs) - 1)]
            known[name] = facts if parameter.type_str == first_type else _Facts()
        known[""] = _Facts()
    for entry in model.outputs:
        check_output_type(entry, known[entry.name].dtype)


def _input(entry: ValueInfo, origins: int) -> _Facts:
    if entry.kind == "optional":  # of any kind, or absent
        return _Facts(None, origins=origins)
    shape = entry.shape or ()
    size = prod(n for n in shape if isinstance(n, int))
    may_be_list = len(shape) <= 1 and size <= MAX_ELEMENTS
    return _Facts(entry.dtype, entry.kind or "tensor", origins, may_be_list)


def _output(node: OnnxNode, inputs: Sequence[_Facts]) -> _Facts:
    """Return the facts about each output of a node."""
    operator, output = OPERATORS[node.operator], node.schema.outputs[0]
    if not output.is_homogeneous:  # those of If and Loop have types of their own
        return _Facts()
    lowering, shape = Lowering(), operator.stub(node)
    tensors: list[LoweredTensor] | None = None if node.inputs else []
    if shape is not None and not any(node.inputs[1:]) and inputs[0].dtype is not None:
        with suppress(LimitError):  # such attributes fit empty tensors only
            tensors = [lowering.full(np.zeros(1, inputs[0].dtype), shape)]
    if tensors is not None:  # lowering the node raises an error exactly if an attribute is wrong
        (first, *_) = operator.outputs(Call(node, lowering, tensors))
        kind = "sequence" if isinstance(first, LoweredSequence) else "tensor"
        return _Facts(first.dtype if first else None, kind)
    if operator.makes is not None:
        return _Facts(np.dtype(operator.makes))
    # Its type is the type of inputs with the same type parameter, or of a sequence's tensors.
    alike = (value for p, value in node.parameters(inputs) if p.type_str == output.type_str)
    source = next(alike, inputs[0])
    if node.operator == "Identity":
        return source
    is_sequence = all(text.startswith("seq") for text in output.types)
    return _Facts(source.dtype, "sequence" if is_sequence else "tensor")
