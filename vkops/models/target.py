"""The targets that models run on: devices, and arrays (``vkops.debug.host_execution``)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

import vkops
from vkops.dml import ExecutionFlags, OperatorDesc
from vkops.errors import OutOfDeviceMemoryError
from vkops.models.json_reader import quote
from vkops.models.resources import Shape

if TYPE_CHECKING:
    from vkops.gpu.run.streaming import Progress
    from vkops.onnx import Model
    from vkops.onnx.lowering import LoweredValue
    from vkops.shaders import Shader

    Run = Callable[[Progress], object]
    """A dispatch with its bindings."""

    Bind = Callable[..., Run]
    """The compiled dispatchable, which takes the bindings."""

    OnnxRun = tuple[Sequence[LoweredValue], Callable[[Progress, Mapping[int, Any]], list[Any]]]
    """The outputs of a model for some inputs, and what makes them, or writes them to targets."""


class Target(Protocol):
    """Creates buffers and the tensors on them, and compiles operators, shaders and ONNX models.

    An operator is initialized with the bindings of its ``owned`` inputs. ``load`` can load a shader
    with its source lines.
    """

    def buffers(self, sizes: Mapping[str, int]) -> Mapping[str, Any]: ...
    def tensor(self, buffer: Any, shape: Shape, dtype: np.dtype[Any]) -> Any: ...
    def sampler(self, **settings: Any) -> Any: ...
    def create_operator(self, desc: OperatorDesc) -> Any: ...
    def compile_operator(
        self, operator: Any, flags: ExecutionFlags, owned: Sequence[Any]
    ) -> Bind: ...
    def compile_shader(self, shader: Shader, load: Callable[..., Shader]) -> Bind: ...
    def compile_onnx(self, model: Model) -> Callable[[Mapping[str, Any]], OnnxRun]: ...


class DeviceTarget:
    """The target of models that run on a device."""

    def __init__(self, device: vkops.Device) -> None:
        self.device: vkops.Device = device

    def buffers(self, sizes: Mapping[str, int]) -> Mapping[str, Any]:
        return allocate(sizes, self.device.buffer, lambda nbytes: self.device.host_buffer(nbytes))

    def tensor(self, buffer: Any, shape: Shape, dtype: np.dtype[Any]) -> vkops.Tensor:
        return vkops.Tensor.over(self.device, buffer, shape, dtype)

    def sampler(self, **settings: Any) -> Any:
        return self.device.sampler(**settings)

    def create_operator(self, desc: OperatorDesc) -> Any:
        return self.device.create_operator(desc)

    def compile_operator(self, operator: Any, flags: ExecutionFlags, owned: Sequence[Any]) -> Bind:
        compiled = self.device.compile_operator(operator, flags)
        if any(owned):
            compiled.initialize(owned)
        return lambda inputs, outputs: compiled.bind(inputs, outputs).dispatch

    def compile_shader(self, shader: Shader, load: Callable[..., Shader]) -> Bind:
        compiled = self.device.compile_shader(shader)

        def bind(buffers: Mapping[str, Any], groups: Any, push: Any) -> Run:
            run = compiled.bound(buffers, groups, push)
            return lambda _: run.dispatch()

        return bind

    def compile_onnx(self, model: Model) -> Callable[[Mapping[str, Any]], OnnxRun]:
        from vkops.onnx import Session

        session = Session(model, self.device)

        def bind(inputs: Mapping[str, Any]) -> OnnxRun:
            first = session.specialize(inputs)

            def run(progress: Progress, targets: Mapping[int, Any]) -> list[Any]:
                specialization = session.specialize(inputs) if first.reads_elements else first
                return specialization.run(session.constants, inputs, progress, targets)

            return first.results, run

        return bind


def allocate(sizes: Mapping[str, int], *allocators: Callable[[int], Any]) -> Mapping[str, Any]:
    """Allocate all buffers with the first of the functions that has enough memory for all."""
    message = ""
    for allocator in allocators:
        buffers: dict[str, Any] = {}  # buffers of the function before are freed first
        try:
            for name, nbytes in sizes.items():
                message = quote(name)
                buffers[name] = allocator(nbytes)
            return buffers
        except OutOfDeviceMemoryError as error:
            message += f": {error}"
    raise OutOfDeviceMemoryError(message)
