"""Dispatches of ONNX models on a device."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

import vkops
from vkops.dxdispatch.json_model import BufferResource, Shape
from vkops.dxdispatch.json_reader import quote
from vkops.dxdispatch.onnx_dispatchable import BoundOnnx, OnnxBinding
from vkops.errors import ModelError, OutOfDeviceMemoryError, show
from vkops.plan.size_limits import LimitError, check_shape
from vkops.runner import console

if TYPE_CHECKING:
    from vkops.onnx import Session
    from vkops.onnx.value_info import ValueInfo


class OnnxRun:
    """A bound dispatch on a device. ``deferred`` are the values of deferred resources by name."""

    def __init__(
        self,
        bound: BoundOnnx,
        session: Session,
        buffers: Mapping[str, vkops.Buffer | vkops.HostBuffer],
        deferred: dict[str, Any],
    ) -> None:
        from vkops.tensors.tensor import Tensor

        self._bound = bound
        self._session = session
        self._deferred = deferred
        self._inputs: dict[str, Any] = {}
        for binding in bound.inputs:
            source, entry = binding.source, binding.entry
            if source is None:
                self._inputs[entry.name] = default_input(entry, binding.shape)
            elif isinstance(source.resource, BufferResource):
                assert entry.dtype is not None
                buffer = buffers[source.resource.name]
                self._inputs[entry.name] = Tensor.over(
                    session.device, buffer, binding.shape, entry.dtype
                )
            elif source.resource.name in deferred:
                self._inputs[entry.name] = deferred[source.resource.name]
            else:
                raise source.node.error(f"{quote(source.resource.name)} has no value yet")
        # An output must not be written directly to a buffer that the same run reads or writes.
        used = {id(value.buffer) for value in self._inputs.values() if isinstance(value, Tensor)}
        self._targets: dict[int, Tensor] = {}
        self._copies: dict[int, vkops.Buffer | vkops.HostBuffer] = {}
        for index, (binding, result) in enumerate(self._results()):
            source = binding.source
            if source is None or not isinstance(source.resource, BufferResource):
                continue
            binding.check_result(result.shape, result.dtype)
            buffer = buffers[source.resource.name]
            if id(buffer) in used or not result.size:
                self._copies[index] = buffer
            else:
                self._targets[index] = Tensor.over(
                    session.device, buffer, result.shape, result.dtype
                )
                used.add(id(buffer))

    def dispatch(self, progress: Callable[[int, int], None] | None = None) -> None:
        """Run the model, and store its outputs where they are bound."""
        results = self._session.run(self._inputs, progress, targets=self._targets)
        for index, buffer in self._copies.items():
            buffer.write(np.ascontiguousarray(results[index]))
        for binding, result in zip(self._bound.outputs, results, strict=True):
            if binding.source is not None and binding.is_deferred:
                self._deferred[binding.source.resource.name] = result

    def print_bindings(self) -> None:
        """Print what each input and output is bound to."""
        inputs = [(b, self._inputs[b.entry.name]) for b in self._bound.inputs]
        for role, bindings in (("Input", inputs), ("Output", self._results())):
            for binding, value in bindings:
                kind = "explicit" if binding.source else "implicit"
                print_binding(
                    role, binding.entry.name, value, "deferred" if binding.is_deferred else kind
                )

    def _results(self) -> list[tuple[OnnxBinding, Any]]:
        """Return the outputs with the tensors that the model makes of them."""
        results = self._session.specialize(self._inputs).results
        return list(zip(self._bound.outputs, results, strict=True))


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
