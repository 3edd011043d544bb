"""Run a prepared model on a device, command by command."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain
from math import prod
from types import NoneType
from typing import TYPE_CHECKING, Any

import numpy as np

import vkops
from vkops import console
from vkops.dml import TensorDataType
from vkops.dxdispatch.data_types import CHUNK_BYTES, Read, chunks, dtype_of
from vkops.dxdispatch.json_model import (
    BindingSource,
    BufferResource,
    Command,
    DmlDispatchable,
    OnnxDispatchable,
    PrintCommand,
    ShaderDispatchable,
    WriteFileCommand,
)
from vkops.dxdispatch.json_reader import quote
from vkops.dxdispatch.model_checks import Bound, BoundDispatch, Prepared, errors_after
from vkops.dxdispatch.onnx_dispatchable import BoundOnnx
from vkops.dxdispatch.shader_dispatchable import BoundShader
from vkops.errors import ModelError, OutOfDeviceMemoryError, show
from vkops.plan.rounding import round_up
from vkops.runner import onnx_execution, printed_values
from vkops.runner.array_files import without_objects
from vkops.runner.dispatch_timing import RunOptions, run_timed
from vkops.system.npy_files import header_bytes
from vkops.system.output_files import write_output

if TYPE_CHECKING:
    from vkops.gpu.run.streaming import Progress
    from vkops.onnx import Session

    AnyBuffer = vkops.Buffer | vkops.HostBuffer
    Binding = tuple[AnyBuffer, int, int]


def run(prepared: Prepared, device: vkops.Device, options: RunOptions | None = None) -> None:
    """Create everything a model names on the device, then run its commands in order.

    Raises:
        VkopsError: in DxDispatch's words, what failed.
    """
    if not isinstance(prepared, Prepared):
        raise ModelError(f"prepared: got {show(prepared)}, must be what prepare returns")
    if not isinstance(options, (RunOptions, NoneType)):
        raise ModelError(f"options: got {show(options)}, must be RunOptions or None")
    Execution(prepared, device, options or RunOptions()).run()


class Execution:
    """Everything that a model names, on a device."""

    def __init__(self, prepared: Prepared, device: vkops.Device, options: RunOptions) -> None:
        self.prepared: Prepared = prepared
        self.options: RunOptions = options
        self._device = device
        self.operators: dict[str, vkops.CompiledOperator] = {}
        self.sessions: dict[str, Session] = {}
        self.shaders: dict[str, vkops.CompiledShader] = {}
        self.deferred: dict[str, Any] = {}  # the values of deferred resources
        self.has_dispatched: bool = False
        every = prepared.model.resources.values()
        resources = [resource for resource in every if isinstance(resource, BufferResource)]
        # All buffers first: what does not fit fails before any value has been made.
        self.buffers: Mapping[str, AnyBuffer] = _allocate(resources, device)
        for resource in resources:
            _upload(resource, self.buffers[resource.name])
        dispatchables = prepared.model.dispatchables.values()
        operators = [d for d in dispatchables if isinstance(d, DmlDispatchable)]
        created = []
        for dispatchable in operators:
            with errors_after(f"ERROR creating dispatchable '{dispatchable.name}'"):
                created.append(device.create_operator(dispatchable.desc))
        for dispatchable, operator in zip(operators, created, strict=True):
            self.operators[dispatchable.name] = self._compile(dispatchable, operator, device)
        for other in dispatchables:
            if isinstance(other, OnnxDispatchable):
                from vkops.onnx import Session

                self.sessions[other.name] = Session(other.model, device)
            elif isinstance(other, ShaderDispatchable):
                with errors_after(f"ERROR creating dispatchable '{other.name}'"):
                    self.shaders[other.name] = device.compile_shader(other.shader)

    def _compile(
        self, dispatchable: DmlDispatchable, operator: vkops.Operator, device: vkops.Device
    ) -> vkops.CompiledOperator:
        name = dispatchable.name
        graph = dispatchable.compile_graph
        console.info("Compiling op using IDMLDevice1::CompileGraph" if graph else "Compile Op")
        start = time.perf_counter()
        with errors_after(f"ERROR while initializing '{name}'"):
            compiled = device.compile_operator(operator, dispatchable.execution_flags)
            if name in self.prepared.initial_inputs:
                compiled.initialize(self._bindings(self.prepared.initial_inputs[name]))
        if self.options.timing_verbosity >= 1:
            elapsed = (time.perf_counter() - start) * 1000
            console.info(f"Initialize '{console.bounded(name)}': {elapsed:.4f} ms")
        return compiled

    def run(self) -> None:
        """Run all commands in order."""
        for index, command in enumerate(self.prepared.commands):
            if not self.options.print_commands:
                self.run_command(command)
                continue
            parsed = command if isinstance(command, Command) else command.command
            console.command_started(index, parsed.text)
            try:
                self.run_command(command)
            except Exception as error:
                console.command_completed(index, console.FAILED, str(error))
                raise
            console.command_completed(index)

    def run_command(self, command: Command | Bound) -> None:
        """Run one command."""
        if isinstance(command, Bound):
            with errors_after("Failed to execute dispatchable"), self.ready(command) as dispatch:
                name = command.command.dispatchable.name
                is_first = not self.has_dispatched
                run_timed(name, self.options, dispatch, self._device, is_first=is_first)
            self.has_dispatched = True
        elif isinstance(command, PrintCommand):
            with errors_after("Failed to print resource"):
                held = self._content(command)
            self._print(command, held)
        elif isinstance(command, WriteFileCommand):
            self._write_file(command)

    @contextmanager
    def ready(self, bound: Bound) -> Iterator[Callable[[Progress], None]]:
        """Bind everything, and yield a function that runs the dispatch."""
        name = bound.command.dispatchable.name
        if isinstance(bound, BoundDispatch):
            yield self.bind(bound).dispatch
        elif isinstance(bound, BoundShader):
            buffers = {point: self._binding(source) for point, source in bound.sources.items()}
            groups: Any = bound.command.groups
            if isinstance(groups, BindingSource):
                groups = self.buffers[groups.resource.name], groups.offset
            run = self.shaders[name].bound(buffers, groups, bound.dispatchable.push_constants)
            yield lambda _: run.dispatch()
        else:
            yield onnx_execution.bind(
                bound,
                self.sessions[name],
                self.buffers,
                self.deferred,
                print_bindings=self.options.print_onnx_bindings,
            )

    def bind(self, bound: BoundDispatch) -> vkops.BoundOperator | vkops.StreamedOperator:
        """Return the operator of a dispatch with its bindings."""
        operator = self.operators[bound.command.dispatchable.name]
        return operator.bind(self._bindings(bound.inputs), self._bindings(bound.outputs))

    def _binding(self, source: BindingSource) -> Binding:
        return self.buffers[source.resource.name], source.offset, source.nbytes

    def _bindings(self, slots: Sequence[BindingSource | None]) -> list[Binding | None]:
        return [None if slot is None else self._binding(slot) for slot in slots]

    def _print(self, command: PrintCommand, held: _Content) -> None:
        """Print a resource in the shape of the first tensor that covers it, or in one line."""
        assert held.dtype is not None
        name = command.resource.name
        label = f"Resource '{console.bounded(name)}'"
        shape = next(_shapes(self.prepared.commands, name, held), (held.count,))
        is_short = len(shape) < 2 and held.count <= printed_values.MAX_SHAPED_VALUES
        if is_short or command.verbose or self.options.flat:
            printed_values.print_flat(
                label, held.dtype, held.count, held.read, verbose=command.verbose
            )
        else:
            text = printed_values.shaped(held.dtype, shape, held.read)
            console.lines(f"{label} {list(shape)}:", text)

    def _write_file(self, command: WriteFileCommand) -> None:
        """Write a file; if it cannot be written, print why and continue."""
        held = self._content(command)
        target, size, header = command.target, held.size, b""
        try:
            if target.suffix.lower() == ".npy":
                assert held.dtype is not None
                shape = held.shape if command.dimensions is None else command.dimensions
                size = prod(shape) * held.dtype.itemsize
                if size > held.size:
                    raise OSError(
                        None, f"dimensions {shape} exceed the {held.size} bytes there are"
                    )
                header = header_bytes(held.dtype, shape)
            write_output(target, chain([header], chunks(held.read, size)))
        except OSError as error:
            reason = error.strerror or str(error)
            console.complain(f"Failed to write resource to file '{target}': {reason}")
        else:
            console.info(
                f"Resource '{console.bounded(command.resource.name)}' written to '{target}'"
            )

    def _content(self, command: PrintCommand | WriteFileCommand) -> _Content:
        resource = command.resource
        if isinstance(resource, BufferResource):
            read = self.buffers[resource.name].read
            if resource.data_type is TensorDataType.UNKNOWN:
                return _Content(None, 0, (), resource.size, read)
            dtype = dtype_of(resource.data_type)
            count = resource.values.nbytes // dtype.itemsize
            return _Content(dtype, count, (resource.size // dtype.itemsize,), resource.size, read)
        if resource.name not in self.deferred:
            raise command.node.error(f"{quote(resource.name)} has no value yet")
        value = np.asarray(self.deferred[resource.name])
        array = np.ascontiguousarray(without_objects(value))
        data = array.reshape(-1).view(np.uint8)
        return _Content(
            array.dtype,
            array.size,
            array.shape,
            data.size,
            lambda offset, nbytes: data[offset : offset + nbytes].tobytes(),
        )


@dataclass(frozen=True)
class _Content:
    """The content of a resource: ``count`` values to print, and the shape in a .npy file."""

    dtype: np.dtype[Any] | None
    count: int
    shape: tuple[int, ...]
    size: int
    read: Read


def _shapes(
    commands: Iterable[Command | Bound], name: str, held: _Content
) -> Iterator[tuple[int, ...]]:
    """Yield the shapes of packed tensors that are the whole content of a resource."""
    if len(held.shape) > 1:
        yield held.shape
    for command in commands:
        tensors: Iterable[tuple[BindingSource | None, tuple[int, ...]]] = ()
        if isinstance(command, BoundDispatch):
            assert isinstance(command.command.dispatchable, DmlDispatchable)
            desc = command.command.dispatchable.desc
            named = zip(
                (*command.outputs, *command.inputs), (*desc.outputs, *desc.inputs), strict=True
            )
            tensors = [
                (source, tensor.sizes)
                for source, (_, tensor) in named
                if tensor.effective_strides == tensor.packed_strides
            ]
        elif isinstance(command, BoundOnnx):
            tensors = [(b.source, b.shape) for b in (*command.outputs, *command.inputs)]
        for source, shape in tensors:
            if source and source.resource.name == name and prod(shape) == held.count:
                yield shape


def _allocate(resources: Sequence[BufferResource], device: vkops.Device) -> Mapping[str, AnyBuffer]:
    """Allocate whole words for all resources: on the device, or else all on the host."""
    message = ""
    for on_device in (True, False):
        allocate = device.buffer if on_device else device.host_buffer
        buffers: dict[str, AnyBuffer] = {}  # those on the device are freed first
        try:
            for resource in resources:
                message = quote(resource.name)
                buffers[resource.name] = allocate(max(4, round_up(resource.size, 4)))
            return buffers
        except OutOfDeviceMemoryError as error:
            message += f": {error}"
    raise OutOfDeviceMemoryError(message)


def _upload(resource: BufferResource, buffer: AnyBuffer) -> None:
    """Fill a buffer with the initial values, then zeros."""
    offset = 0
    for chunk in resource.values.chunks():
        buffer.write(chunk, offset)
        offset += len(chunk)
    for start in range(offset, buffer.nbytes, CHUNK_BYTES):
        buffer.write(bytes(min(CHUNK_BYTES, buffer.nbytes - start)), start)
