"""ONNX models at given input shapes: how each node is executed, and the plans."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from copy import copy

from vkops.explain.explanation import NodeInfo, Section, TensorInfo, count, movements, number_list
from vkops.onnx import Model, ValueInfo
from vkops.onnx.element_types import moved_dtype
from vkops.onnx.lowering import LoweredTensor, LoweredValue, Lowering, NeedsValueError, tensors_of
from vkops.onnx.value_info import InputType, TensorType
from vkops.plan.view import packed_strides

MAX_SHOWN = 8
"""Shapes of a node's outputs, or elements of a constant, that are shown."""


def section(
    name: str, model: Model, types: Mapping[str, InputType], deferred: Sequence[str] = ()
) -> Section:
    """Explain a model at shapes of its inputs, some ``deferred``; ModelError if a node is wrong."""
    kind = f"ONNX model, opset {model.opset}"
    if deferred:
        why = f"Input {', '.join(deferred)}, whose shape is known only when it has been computed"
        return Section(name, kind, (("No plan yet", why),), ())
    shapes = [
        f"{key} [{number_list(type_.shape)}]"
        for key, type_ in types.items()
        if isinstance(type_, TensorType)
    ]
    details = [("Nodes", str(len(model.nodes))), ("Shapes", "; ".join(shapes) or "no inputs")]
    # The same model with all tensors as outputs, which tells how each node is executed.
    keys = [key for node in model.nodes for key in node.outputs if key]
    open_model = copy(model)
    open_model.outputs = (*model.outputs, *(ValueInfo(key, "tensor", None, None) for key in keys))
    try:
        lowering = open_model.lower(types, {})
    except NeedsValueError as needed:
        why = f"Shapes depend on what input {needed.name!r} holds"
        nodes = tuple(NodeInfo(node.label, node.outputs, "") for node in model.nodes)
        return Section(name, kind, (*details, ("No plan yet", why)), (), nodes)
    outputs = lowering.outputs[: len(model.outputs)]
    values: dict[str, LoweredValue] = dict(
        zip(keys, lowering.outputs[len(model.outputs) :], strict=True)
    )
    named = _named(lowering, zip((entry.name for entry in model.outputs), outputs, strict=True))
    numbers = [tensor.number for value in outputs for tensor in tensors_of(value)]
    steps = lowering.graph.lower(numbers)
    constants = [tensor for tensor in named.values() if tensor.note]
    if constants:
        details.append(("Constants", f"{count(len(constants), 'tensor')}, sent to the device once"))
    for entry, value in zip(model.outputs, outputs, strict=True):
        for tensor in tensors_of(value):
            if lowering.graph.is_leaf(tensor.number):
                origin = lowering.inputs.get(tensor.number, ("a constant", None))[0]
                details.append((f"Output {entry.name}", f"is {origin}, nothing is copied"))
    return Section(
        name=name,
        kind=kind,
        details=tuple(details),
        tensors=tuple(named[number] for number in sorted(named)),
        nodes=tuple(_nodes(model, lowering, values)),
        movements=tuple(movements(steps, named)),
    )


def _named(
    lowering: Lowering, outputs: Iterable[tuple[str, LoweredValue]]
) -> dict[int, TensorInfo]:
    """The inputs, constants and outputs of a model, by their numbers."""
    rows = {
        number: _tensor(key if item is None else f"{key}[{item}]", lowering[number])
        for number, (key, item) in lowering.inputs.items()
    }
    for name, value in outputs:
        for i, tensor in enumerate(tensors_of(value)):
            label = name if tensor is value else f"{name}[{i}]"
            rows.setdefault(tensor.number, _tensor(label, tensor))
    read = {number for output in list(rows) for number in lowering.graph.reachable([output])}
    for number in sorted(read & lowering.constants.keys() - rows.keys()):
        rows[number] = _tensor(f"constant {number}", lowering[number], "known on the host")
    return rows


def _tensor(name: str, tensor: LoweredTensor, note: str = "") -> TensorInfo:
    size = moved_dtype(tensor.dtype).itemsize
    strides = packed_strides(tensor.shape)
    return TensorInfo(name, tensor.type, tensor.shape, strides, size, tensor.size * size, note)


def _nodes(
    model: Model, lowering: Lowering, values: Mapping[str, LoweredValue]
) -> Iterator[NodeInfo]:
    held = {name: {tensor.number for tensor in tensors_of(value)} for name, value in values.items()}
    for number, (name, _) in lowering.inputs.items():
        held.setdefault(name, set()).add(number)
    outside = {number for number in lowering.inputs if lowering[number].size}
    for node in model.nodes:
        names = [name for name in node.outputs if name]
        tensors = [tensor for name in names for tensor in tensors_of(values[name])]
        read = {number for name in node.inputs for number in held.get(name, ())}
        if not any(outside.intersection(lowering.graph.reachable([t.number])) for t in tensors):
            result = "known on the host" + "".join(_elements(lowering, t) for t in tensors[:1])
        elif all(tensor.number in read for tensor in tensors):
            result = "nothing to move"
        else:
            result = "copied"
        makes = tuple(f"{name} {_shape(values[name])}" for name in names)
        yield NodeInfo(node.label, makes, result)


def _shape(value: LoweredValue) -> str:
    shapes = [f"[{number_list(tensor.shape)}]" for tensor in tensors_of(value)]
    more = f", and {len(shapes) - MAX_SHOWN} more" if len(shapes) > MAX_SHOWN else ""
    return ", ".join(shapes[:MAX_SHOWN]) + more


def _elements(lowering: Lowering, tensor: LoweredTensor) -> str:
    if not 0 < tensor.size <= MAX_SHOWN:
        return ""
    return ": " + ", ".join(map(str, lowering.values(tensor).ravel().tolist()))
