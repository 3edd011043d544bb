"""Faults of a model that no shapes and no elements of its inputs can mend.

These are types, attributes by themselves, and operators that would have to compute with what the
inputs hold. All other faults depend on shapes or elements, and ``Model.lower`` finds them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import Any

import numpy as np

from vkops.errors import ModelError
from vkops.onnx.forms import Declared, Form, TensorForm, refuse_output
from vkops.onnx.model import Lowering, Model
from vkops.onnx.node import Call, Node
from vkops.onnx.operators import lowering_of
from vkops.onnx.operators.arithmetic import MAX_ELEMENTS, depends_on
from vkops.onnx.operators.pad import modes
from vkops.onnx.trace import NeedsValueError, Trace, Value
from vkops.onnx.types import STRING, type_text
from vkops.plan.limits import LimitError

_KINDS = ("", "tensor", "sequence", "optional")
_COMPUTED = ("Add", "Div", "Equal", "Mod", "Mul", "Sub", "Where")
_MAX_RANK = 64


@dataclass(frozen=True, slots=True)
class _Known:
    """What is known of a tensor, or of a sequence of tensors, without any shape."""

    dtype: np.dtype[Any] | None = None
    is_sequence: bool = False
    origins: int = 0
    """The graph inputs whose elements it may hold, a bit for each."""
    is_list: bool = True
    """Whether it may be a short list, as far as its rank and size are known."""

    @property
    def type(self) -> str | None:
        """The type as schemas spell it; None where it is not known."""
        if self.dtype is None:
            return None
        text = type_text(self.dtype)
        return f"seq({text})" if self.is_sequence else text


def check_feasible(model: Model) -> Lowering | None:
    """Refuse a model that cannot run with inputs of the types and sizes that it declares.

    Returns:
        The model lowered for these sizes; None where some are free, or where more depends on what
        inputs hold.

    Raises:
        ModelError: for the first fault.
    """
    _check_nodes(model)
    forms = fixed_forms(model)
    try:
        return None if forms is None else model.lower(forms, {})
    except NeedsValueError:
        return None


def _check_nodes(model: Model) -> None:
    """Refuse a model that cannot run, whatever the shapes and elements of its inputs are.

    Raises:
        ModelError: for the first fault.
    """
    check = _Check(model.inputs)
    tensors = {"": _Known(), **{name: _Known(a.dtype) for name, a in model.constants.items()}}
    for number, entry in enumerate(model.inputs):
        if entry.kind not in _KINDS:
            message = f"is a {entry.kind}, must be a tensor, sequence or optional"
            raise ModelError(f"input {entry.name!r}: {message}")
        # An input with a default need not be given, and one without elements has none to read.
        is_read = entry.name not in model.constants and 0 not in (entry.shape or ())
        tensors[entry.name] = _entered(entry, is_read << number)
    for node in model.nodes:
        made = check.results(node, [tensors[name] for name in node.inputs])
        tensors.update(dict.fromkeys(filter(None, node.outputs), made))
    for entry in model.outputs:
        made = tensors[entry.name]
        if made.dtype is not None and entry.dtype not in (None, made.dtype):
            refuse_output(entry, made.dtype)


def fixed_forms(model: Model) -> dict[str, Form] | None:
    """The forms of all required inputs, where the model declares their types and sizes."""
    forms: dict[str, Form] = {}
    for entry in model.required_inputs:
        sizes = [size for size in entry.shape or () if isinstance(size, int)]
        if entry.kind != "tensor" or entry.dtype is None or entry.shape != tuple(sizes):
            return None
        forms[entry.name] = TensorForm(entry.dtype, tuple(sizes))
    return forms


def _entered(entry: Declared, origins: int) -> _Known:
    if entry.kind == "optional":  # which may be of any kind, and absent
        return _Known(None, origins=origins)
    shape = entry.shape or ()
    size = prod(n for n in shape if isinstance(n, int))
    is_list = len(shape) <= 1 and size <= MAX_ELEMENTS
    return _Known(entry.dtype, entry.kind == "sequence", origins, is_list)


class _Check:
    """Nodes in order, and the inputs whose elements are known by the time that each is lowered."""

    def __init__(self, inputs: Sequence[Declared]) -> None:
        self._inputs = inputs
        self._fixed = 0  # they count as part of the shape, a bit for each

    def results(self, node: Node, inputs: Sequence[_Known]) -> _Known:
        """What is known of each output of a node."""
        node.bound_types([known.type for known in inputs])
        if node.operator == "Pad":
            node.choice("mode", *modes(node.version))
        if node.operator == "Identity":
            return inputs[0]
        made = _of_stub(node, inputs) or _result(node, inputs)
        if node.operator in ("Shape", "Size"):
            return made
        if node.operator in _COMPUTED or (
            node.operator == "Cast" and made.dtype != inputs[0].dtype
        ):
            for parameter, known in node.parameters(inputs):
                self._compute(node, parameter.name, known)
            return made
        first = node.schema.inputs[0].name if inputs else ""
        origins = 0
        for parameter, known in node.parameters(inputs):
            is_moved = parameter.name in (first, "constant_value")
            if is_moved and node.operator != "ConstantOfShape":
                origins |= known.origins
            else:  # a shape, an axis or the like
                self._fixed |= known.origins
        return replace(made, origins=origins & ~self._fixed)

    def _compute(self, node: Node, parameter: str, known: _Known) -> None:
        """Refuse an operand that is neither known before the model runs nor a list of integers."""
        unknown = known.origins & ~self._fixed
        if not unknown:
            return
        if known.dtype is not None and not (known.dtype.kind in "iu" and known.is_list):
            first = (unknown & -unknown).bit_length() - 1
            node.refuse(parameter, depends_on(self._inputs[first].name))
        self._fixed |= unknown


def _result(node: Node, inputs: Sequence[_Known]) -> _Known:
    """The type of each output, as it follows from those of the inputs."""
    match node.operator:
        case "Shape" | "Size":
            return _Known(np.dtype(np.int64))
        case "Equal":
            return _Known(np.dtype(bool))
        case "Where":
            return _Known(inputs[1].dtype)
        case "SplitToSequence":
            return _Known(inputs[0].dtype, is_sequence=True)
    return _Known(inputs[0].dtype)


# -- attributes ------------------------------------------------------------------------------------


def _of_stub(node: Node, inputs: Sequence[_Known]) -> _Known | None:
    """The type of a node's outputs, lowered with inputs that only its attributes can be wrong for.

    None where there are no such inputs.
    """
    make = _STUBS.get(node.operator)
    if make is None or any(node.inputs[1:]) or (inputs and inputs[0].dtype is None):
        return None
    trace = Trace()
    try:
        stub = make(node, trace, *(known.dtype for known in inputs[:1]))
    except LimitError:  # only tensors of no elements fit such attributes
        return None
    if stub is None:
        return None
    (made, *_) = lowering_of(node.operator, node.version)(Call(node, trace, stub))
    return None if made is None else _Known(made.dtype)


def _constant(node: Node, trace: Trace) -> list[Value]:
    return []


def _constant_of_shape(node: Node, trace: Trace, dtype: Any) -> list[Value]:
    return [trace.constant(np.ones(1, np.int64))]


def _cast(node: Node, trace: Trace, dtype: Any) -> list[Value]:
    return [trace.constant(np.array([""], dtype) if dtype == STRING else np.zeros(1, dtype))]


def _blocks(node: Node, trace: Trace, dtype: Any) -> list[Value]:
    side = max(1, node.attributes["blocksize"])
    return [trace.input("", dtype, (1, side * side, side, side))]


def _transpose(node: Node, trace: Trace, dtype: Any) -> list[Value] | None:
    rank = len(node.attributes.get("perm", ()))
    return [trace.input("", dtype, (1,) * rank)] if 0 < rank <= _MAX_RANK else None


def _split(node: Node, trace: Trace, dtype: Any) -> list[Value] | None:
    axis = node.attributes.get("axis", 0)
    rank = axis + 1 if axis >= 0 else -axis
    lengths = node.attributes.get("split")
    whole = len(node.outputs) if lengths is None else max(0, sum(lengths))
    return [trace.input("", dtype, (whole,) * rank)] if rank <= _MAX_RANK else None


_STUBS: Mapping[str, Callable[..., list[Value] | None]] = {
    "Cast": _cast,
    "Constant": _constant,
    "ConstantOfShape": _constant_of_shape,
    "DepthToSpace": _blocks,
    "SpaceToDepth": _blocks,
    "Split": _split,
    "Transpose": _transpose,
}
