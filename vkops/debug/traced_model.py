"""A DxDispatch model, run up to the dispatch whose output an element is followed in."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import takewhile

from vkops.compiled_operator import BoundOperator
from vkops.debug.trace import Element, Stage, trace
from vkops.device import Device
from vkops.dml.tensor_desc import BufferTensorDesc
from vkops.dxdispatch.descriptors import with_dml_names
from vkops.dxdispatch.json_model import DmlDispatchable
from vkops.dxdispatch.model_checks import BoundDispatch, Prepared
from vkops.errors import ModelError
from vkops.runner.dispatch_timing import RunOptions
from vkops.runner.model_execution import Execution


def trace_model(
    prepared: Prepared, device: Device, dispatch: int, output: str, index: tuple[int, ...]
) -> Iterator[Stage]:
    """Run a model up to a dispatch, and follow an element of one of its outputs.

    Args:
        prepared: the model.
        device: where to run it.
        dispatch: the number of the dispatch, counted from 1 among those of operators.
        output: the tensor's name, such as ``OutputTensors[1]``; ``""`` is the only one.
        index: of the element, one number for each dimension.

    Raises:
        VkopsError: there is no such dispatch, tensor or element, or what running it raises.
    """
    found = [command for command in prepared.commands if isinstance(command, BoundDispatch)]
    if not 1 <= dispatch <= len(found):
        raise ModelError(f"--dispatch: got {dispatch}, the model has {len(found)} of operators")
    bound = found[dispatch - 1]
    element = _element(bound, output, index)
    execution = Execution(prepared, device, RunOptions())
    for command in takewhile(lambda command: command is not bound, prepared.commands):
        execution.run_command(command)
    operator = execution.bind(bound)
    if not isinstance(operator, BoundOperator):
        raise ModelError("the model does not fit on the device: what is streamed has no trace")
    compiled = execution.operators[bound.command.dispatchable.name]
    for stage in trace(compiled, operator, element):
        in_source = stage.name == "Source"  # no other has names of tensors
        yield Stage(stage.name, *map(with_dml_names, stage[1:])) if in_source else stage


def _element(bound: BoundDispatch, output: str, index: tuple[int, ...]) -> Element:
    dispatchable = bound.command.dispatchable
    assert isinstance(dispatchable, DmlDispatchable)
    tensors: dict[str, tuple[int, BufferTensorDesc]] = {
        with_dml_names(path): (number, tensor)
        for number, (path, tensor) in enumerate(dispatchable.desc.outputs)
        if tensor is not None
    }
    name = output or next(iter(tensors))
    if name not in tensors or (not output and len(tensors) > 1):
        raise ModelError(
            f"--output: got {output or 'nothing'}, {dispatchable.name} has {', '.join(tensors)}"
        )
    number, tensor = tensors[name]
    inside = len(index) == len(tensor.sizes) and all(
        0 <= i < size for i, size in zip(index, tensor.sizes, strict=True)
    )
    if not inside:
        raise ModelError(f"element {index} is none of {name}, whose sizes are {tensor.sizes}")
    elements = sum(i * stride for i, stride in zip(index, tensor.effective_strides, strict=True))
    size = tensor.data_type.element_size
    return Element(number, elements * size, size)
