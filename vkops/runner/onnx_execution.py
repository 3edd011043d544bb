"""Dispatches of ONNX models on a device."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from vkops.dxdispatch.json_model import BufferResource, DeferredResource
from vkops.dxdispatch.json_reader import quote
from vkops.dxdispatch.onnx_dispatchable import Bound, BoundOnnx, check_result
from vkops.dxdispatch.onnx_overrides import Shape
from vkops.errors import ModelError

if TYPE_CHECKING:
    from vkops.device import Buffer, HostBuffer
    from vkops.onnx import Session
    from vkops.onnx.forms import Declared


class OnnxRun:
    """A bound dispatch on a device."""

    def __init__(
        self,
        bound: BoundOnnx,
        session: Session,
        buffers: Mapping[str, Buffer | HostBuffer],
        deferred: dict[str, Any],
    ) -> None:
        from vkops.tensors.tensor import Tensor

        self._bound = bound
        self._session = session
        self._deferred = deferred
        self._given: dict[str, Any] = {}
        for tensor in bound.inputs:
            source, entry = tensor.source, tensor.entry
            if source is None:
                self._given[entry.name] = nothing(entry, tensor.shape)
            elif isinstance(source.resource, BufferResource):
                assert entry.dtype is not None
                buffer = buffers[source.resource.name]
                self._given[entry.name] = Tensor.over(
                    session.device, buffer, tensor.shape, entry.dtype
                )
            elif source.resource.name in deferred:
                self._given[entry.name] = deferred[source.resource.name]
            else:
                raise source.node.error(f"{quote(source.resource.name)} has no value yet")
        # What is read must not be written meanwhile.
        read = {id(value.buffer) for value in self._given.values() if isinstance(value, Tensor)}
        self._targets: dict[int, Tensor] = {}
        self._copies: dict[int, Buffer | HostBuffer] = {}
        for place, (tensor, result) in enumerate(self._results()):
            source = tensor.source
            if source is None or not isinstance(source.resource, BufferResource):
                continue
            check_result(tensor, result.shape, result.dtype)
            buffer = buffers[source.resource.name]
            if id(buffer) in read or not result.size:
                self._copies[place] = buffer
            else:
                self._targets[place] = Tensor.over(
                    session.device, buffer, result.shape, result.dtype
                )
                read.add(id(buffer))

    def dispatch(self, progress: Callable[[int, int], None] | None = None) -> None:
        """Run the model, and put its outputs where they are bound."""
        results = self._session.run(self._given, progress, targets=self._targets)
        for place, buffer in self._copies.items():
            buffer.write(np.ascontiguousarray(results[place]))
        for tensor, result in zip(self._bound.outputs, results, strict=True):
            if tensor.source is not None and isinstance(tensor.source.resource, DeferredResource):
                self._deferred[tensor.source.resource.name] = result

    def binding_lines(self) -> Iterator[str]:
        """Yield what is bound where."""
        for tensor in self._bound.inputs:
            value = self._given[tensor.entry.name]
            if tensor.entry.kind == "tensor":
                yield from binding_lines(
                    "Input", tensor.entry.name, _where(tensor), value.dtype, value.shape
                )
        for tensor, result in self._results():
            if tensor.entry.kind == "tensor":
                yield from binding_lines(
                    "Output", tensor.entry.name, _where(tensor), result.dtype, result.shape
                )

    def _results(self) -> list[tuple[Bound, Any]]:
        """The outputs and what the model makes of them."""
        results = self._session.specialize(self._given).results
        return list(zip(self._bound.outputs, results, strict=True))


def _where(tensor: Bound) -> str:
    if tensor.source is None:
        return "implicit (Vulkan)"
    is_deferred = isinstance(tensor.source.resource, DeferredResource)
    return "deferred (Vulkan)" if is_deferred else "explicit (Vulkan)"


def nothing(entry: Declared, shape: Shape) -> Any:
    """What an input that nobody gives holds: zeros, empty strings, or no tensors at all."""
    from vkops.onnx.types import STRING

    if entry.kind != "tensor":
        return []
    if entry.dtype is None:
        raise ModelError(f"input {entry.name!r}: its type is not known")
    return np.full(shape, "", STRING) if entry.dtype == STRING else np.zeros(shape, entry.dtype)


def binding_lines(role: str, name: str, resource: str, dtype: Any, shape: Any) -> Iterator[str]:
    """Yield the lines of ``--print_onnx_bindings`` about a tensor, and an empty one."""
    from onnx import TensorProto

    from vkops.onnx.types import elem_type_of

    sizes = ",".join(map(str, shape))
    yield f"{role} Tensor '{name}':"
    yield f"  Resource  = {resource}"
    yield f"  Data Type = {TensorProto.DataType.Name(elem_type_of(dtype))}"
    yield f"  Shape     = [{sizes}]"
    yield ""
