"""Dispatches of ONNX models on a device."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

import vkops
from vkops import console
from vkops.dxdispatch.json_model import BufferResource, Shape
from vkops.dxdispatch.json_reader import quote
from vkops.dxdispatch.onnx_dispatchable import BoundOnnx
from vkops.errors import ModelError, OutOfDeviceMemoryError, show
from vkops.plan.size_limits import LimitError, check_shape

if TYPE_CHECKING:
    from vkops.gpu.run.streaming import Progress
    from vkops.onnx import Session
    from vkops.onnx.value_info import ValueInfo


def bind(
    bound: BoundOnnx,
    session: Session,
    buffers: Mapping[str, vkops.Buffer | vkops.HostBuffer],
    deferred: dict[str, Any],
    *,
    print_bindings: bool = False,
) -> Callable[[Progress], None]:
    """Return a function that runs the model, and stores its outputs where they are bound.

    ``deferred`` are the values of deferred resources by name.
    """
    from vkops.tensors.tensor import Tensor

    inputs: dict[str, Any] = {}
    for binding in bound.inputs:
        source, entry = binding.source, binding.entry
        if source is None:
            inputs[entry.name] = default_input(entry, binding.shape)
        elif isinstance(source.resource, BufferResource):
            assert entry.dtype is not None
            buffer = buffers[source.resource.name]
            inputs[entry.name] = Tensor.over(session.device, buffer, binding.shape, entry.dtype)
        elif source.resource.name in deferred:
            inputs[entry.name] = deferred[source.resource.name]
        else:
            raise source.node.error(f"{quote(source.resource.name)} has no value yet")
    results: list[Any] = session.specialize(inputs).results
    outputs = list(zip(bound.outputs, results, strict=True))
    # An output must not be written directly to a buffer that the same run reads or writes.
    used = {id(value.buffer) for value in inputs.values() if isinstance(value, Tensor)}
    targets: dict[int, Tensor] = {}
    copies: dict[int, vkops.Buffer | vkops.HostBuffer] = {}
    for index, (binding, result) in enumerate(outputs):
        source = binding.source
        if source is None or not isinstance(source.resource, BufferResource):
            continue
        binding.check_result(result.shape, result.dtype)
        buffer = buffers[source.resource.name]
        if id(buffer) in used or not result.size:
            copies[index] = buffer
        else:
            targets[index] = Tensor.over(session.device, buffer, result.shape, result.dtype)
            used.add(id(buffer))
    if print_bindings:
        given = [("Input", b, inputs[b.entry.name]) for b in bound.inputs]
        for role, binding, value in (*given, *(("Output", b, result) for b, result in outputs)):
            kind = "explicit" if binding.source else "implicit"
            kind = "deferred" if binding.is_deferred else kind
            print_binding(role, binding.entry.name, value, kind)

    def dispatch(progress: Progress) -> None:
        results = session.run(inputs, progress, targets=targets)
        for index, buffer in copies.items():
            buffer.write(np.ascontiguousarray(results[index]))
        for binding, result in zip(bound.outputs, results, strict=True):
            if binding.source is not None and binding.is_deferred:
                deferred[binding.source.resource.name] = result

    return dispatch


def default_input(entry: ValueInfo, shape: Shape) -> Any:
    """Return the value of an input that is not given: zeros, empty strings, or no tensors.

    Raises:
        ModelError: it is too large for any device, or its type is not known.
        OutOfDeviceMemoryError: the host has no memory for it.
    """
    from vkops.onnx.element_types import STRING

    if entry.kind != "tensor":
        return []
    if entry.dtype is None:
        raise ModelError(f"input {entry.name!r}: its type is not known")
    sizes = tuple(int(size) for size in shape)
    try:
        check_shape(sizes, entry.dtype.itemsize)
        return np.full(shape, "", STRING) if entry.dtype == STRING else np.zeros(shape, entry.dtype)
    except LimitError as error:
        raise ModelError(f"input {entry.name!r}: shape: {error}") from error
    except MemoryError as error:
        message = f"input {entry.name!r} of shape {show(sizes)}: the host has no memory for it"
        raise OutOfDeviceMemoryError(message) from error


def print_binding(role: str, name: str, value: Any, kind: str = "implicit") -> None:
    """Print the lines of ``--print_onnx_bindings`` about a value, if it is a tensor."""
    from onnx import TensorProto

    from vkops.onnx.element_types import elem_type_of

    if not hasattr(value, "shape"):
        return
    data_type = TensorProto.DataType.Name(elem_type_of(value.dtype))
    console.info(f"{role} Tensor '{console.bounded(name)}':")
    console.info(f"  Resource  = {kind} (Vulkan)")
    console.info(f"  Data Type = {data_type}")
    console.info(f"  Shape     = [{','.join(map(str, value.shape))}]")
    console.info("")
