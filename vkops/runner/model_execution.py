"""Run a prepared model on a device, command by command."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from math import prod
from types import NoneType
from typing import TYPE_CHECKING, Any

import numpy as np

from vkops.dml import TensorDataType
from vkops.dxdispatch.data_types import CHUNK_BYTES, dtype_of
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
from vkops.dxdispatch.model_checks import Bound, BoundDispatch, Prepared
from vkops.dxdispatch.shader_dispatchable import BoundShader
from vkops.errors import ModelError, OutOfDeviceMemoryError, VkopsError, one_line, printable, show
from vkops.runner import console, dispatch_timing, output_files
from vkops.runner.dispatch_timing import RunOptions
from vkops.runner.onnx_execution import OnnxRun

if TYPE_CHECKING:
    from vkops.device import (
        BoundOperator,
        Buffer,
        CompiledOperator,
        CompiledShader,
        Device,
        HostBuffer,
        Operator,
        StreamedOperator,
    )
    from vkops.onnx import Session

    Binding = tuple[Buffer | HostBuffer, int, int] | None
    Progress = Callable[[int, int], None]


def run(prepared: Prepared, device: Device, options: RunOptions | None = None) -> None:
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

    def __init__(self, prepared: Prepared, device: Device, options: RunOptions) -> None:
        self.prepared: Prepared = prepared
        self.options: RunOptions = options
        every = prepared.model.resources.values()
        resources = [resource for resource in every if isinstance(resource, BufferResource)]
        # All buffers first: what does not fit fails before any value has been made.
        self.buffers: Mapping[str, Buffer | HostBuffer] = _on_device_or_host(resources, device)
        for resource in resources:
            _upload(resource, self.buffers[resource.name])
        dispatchables = prepared.model.dispatchables.values()
        operators = [d for d in dispatchables if isinstance(d, DmlDispatchable)]
        created = {d.name: _create(d, device) for d in operators}
        self.operators: Mapping[str, CompiledOperator] = {
            d.name: self._compile(d, created[d.name], device) for d in operators
        }
        self.sessions: Mapping[str, Session] = {
            d.name: _session(d, device) for d in dispatchables if isinstance(d, OnnxDispatchable)
        }
        self.shaders: Mapping[str, CompiledShader] = {
            d.name: _compiled(d, device) for d in dispatchables if isinstance(d, ShaderDispatchable)
        }
        self.deferred: dict[str, Any] = {}  # what became of outputs, by resource

    def run(self) -> None:
        """Run all commands in order."""
        for index, command in enumerate(self.prepared.commands):
            parsed = command if isinstance(command, Command) else command.command
            if self.options.print_commands:
                console.info(console.command_started(index, parsed.text))
            try:
                self.run_command(command)
            except Exception as error:
                if self.options.print_commands:
                    message = one_line(str(error))
                    console.info(console.command_completed(index, console.FAILED, message))
                raise
            if self.options.print_commands:
                console.info(console.command_completed(index))

    def _compile(
        self, dispatchable: DmlDispatchable, operator: Operator, device: Device
    ) -> CompiledOperator:
        """Compile and initialise an operator."""
        name = dispatchable.name
        graph = dispatchable.compile_graph
        console.info("Compiling op using IDMLDevice1::CompileGraph" if graph else "Compile Op")
        start = time.perf_counter()
        try:
            compiled = device.compile_operator(operator, dispatchable.execution_flags)
            if name in self.prepared.initial_inputs:
                compiled.initialize(self._bindings(self.prepared.initial_inputs[name]))
        except VkopsError as error:
            raise ModelError(f"ERROR while initializing '{name}': {error}") from error
        if self.options.timing_verbosity >= 1:
            elapsed = (time.perf_counter() - start) * 1000
            console.info(f"Initialize '{one_line(printable(name))}': {elapsed:.4f} ms")
        return compiled

    def run_command(self, command: Command | Bound) -> None:
        """Run one command."""
        if isinstance(command, Bound):
            self._dispatch(command)
        elif isinstance(command, PrintCommand):
            try:
                held = self._content(command)
            except ModelError as error:
                raise ModelError(f"Failed to print resource: {error}") from error
            assert held.dtype is not None
            console.print_values(
                command.resource.name, held.dtype, held.count, held.read, verbose=command.verbose
            )
        elif isinstance(command, WriteFileCommand):
            self._write_file(command)

    def _dispatch(self, bound: Bound) -> None:
        name = bound.command.dispatchable.name
        options = self.options
        try:
            with self._ready(bound) as dispatch, console.progress(name) as report:
                samples = dispatch_timing.measure(name, options, partial(dispatch, report))
        except VkopsError as error:
            raise ModelError(f"Failed to execute dispatchable: {error}") from error
        for line in dispatch_timing.report(
            name, samples, options.warmup_samples, options.timing_verbosity
        ):
            console.info(line)

    @contextmanager
    def _ready(self, bound: Bound) -> Iterator[Callable[[Progress], None]]:
        """What runs a dispatch, with everything bound."""
        name = bound.command.dispatchable.name
        if isinstance(bound, BoundDispatch):
            yield self.bind(bound).dispatch
        elif isinstance(bound, BoundShader):
            sources = bound.sources.items()
            buffers = {
                point: (self.buffers[s.resource.name], s.offset, s.nbytes) for point, s in sources
            }
            pushed = bound.dispatchable.push_constants
            with self.shaders[name].bound(buffers, bound.command.groups, pushed) as run:
                yield lambda _: run.dispatch()
        else:
            model = OnnxRun(bound, self.sessions[name], self.buffers, self.deferred)
            if self.options.print_onnx_bindings:
                for line in model.binding_lines():
                    console.info(line)
            yield model.dispatch

    def bind(self, bound: BoundDispatch) -> BoundOperator | StreamedOperator:
        """An operator with the bindings of a dispatch."""
        operator = self.operators[bound.command.dispatchable.name]
        return operator.bind(self._bindings(bound.inputs), self._bindings(bound.outputs))

    def _write_file(self, command: WriteFileCommand) -> None:
        """Write a file; that it cannot be written is said, and the run goes on."""
        held = self._content(command)
        shape = held.shape if command.dimensions is None else command.dimensions
        try:
            if command.target.suffix.lower() != ".npy":
                output_files.write_raw(command.target, held.size, held.read)
            else:
                assert held.dtype is not None
                if prod(shape) * held.dtype.itemsize > held.size:
                    raise OSError(
                        None, f"dimensions {shape} exceed the {held.size} bytes there are"
                    )
                output_files.write_npy(command.target, held.dtype, shape, held.read)
        except OSError as error:
            reason = error.strerror or str(error)
            console.complain(f"Failed to write resource to file '{command.target}': {reason}")
        else:
            name = one_line(printable(command.resource.name))
            console.info(f"Resource '{name}' written to '{command.target}'")

    def _content(self, command: PrintCommand | WriteFileCommand) -> _Content:
        """What is in a resource now."""
        resource = command.resource
        if isinstance(resource, BufferResource):
            buffer, dtype = self.buffers[resource.name], None
            count = whole = 0
            if resource.data_type is not TensorDataType.UNKNOWN:
                dtype = dtype_of(resource.data_type)
                count = resource.values.nbytes // dtype.itemsize
                whole = resource.size // dtype.itemsize
            return _Content(dtype, count, (whole,), resource.size, buffer.read)
        if resource.name not in self.deferred:
            raise command.node.error(f"{quote(resource.name)} has no value yet")
        array = np.ascontiguousarray(output_files.plain(np.asarray(self.deferred[resource.name])))
        data = array.reshape(-1).view(np.uint8)
        return _Content(
            array.dtype,
            array.size,
            array.shape,
            data.size,
            lambda offset, nbytes: data[offset : offset + nbytes].tobytes(),
        )

    def _bindings(self, slots: Sequence[BindingSource | None]) -> list[Binding]:
        """Bind each source from its offset to the end of its resource."""
        return [
            None
            if slot is None or not isinstance(slot.resource, BufferResource)
            else (self.buffers[slot.resource.name], slot.offset, slot.nbytes)
            for slot in slots
        ]


@dataclass(frozen=True)
class _Content:
    """What a resource holds: ``count`` values to print, and what a file of it has."""

    dtype: np.dtype[Any] | None
    count: int
    shape: tuple[int, ...]
    size: int
    read: output_files.Read


def _session(dispatchable: OnnxDispatchable, device: Device) -> Session:
    from vkops.onnx import Session

    return Session(dispatchable.model, device)


def _compiled(dispatchable: ShaderDispatchable, device: Device) -> CompiledShader:
    try:
        return device.compile_shader(dispatchable.shader)
    except VkopsError as error:
        raise ModelError(f"ERROR creating dispatchable '{dispatchable.name}': {error}") from error


def _create(dispatchable: DmlDispatchable, device: Device) -> Operator:
    try:
        return device.create_operator(dispatchable.desc)
    except VkopsError as error:
        raise ModelError(f"ERROR creating dispatchable '{dispatchable.name}': {error}") from error


def _on_device_or_host(
    resources: Sequence[BufferResource], device: Device
) -> Mapping[str, Buffer | HostBuffer]:
    try:
        return _allocate(resources, device.buffer)
    except OutOfDeviceMemoryError:
        pass  # the error holds the buffers that were made: they must go first
    return _allocate(resources, device.host_buffer)


def _allocate(
    resources: Iterable[BufferResource], allocate: Callable[[int], Buffer | HostBuffer]
) -> dict[str, Buffer | HostBuffer]:
    """Memory for all resources, on the device or on the host."""
    made = {}
    for resource in resources:
        try:
            made[resource.name] = allocate(max(4, -(-resource.size // 4) * 4))
        except OutOfDeviceMemoryError as error:
            raise OutOfDeviceMemoryError(f"{quote(resource.name)}: {error}") from error
    return made


def _upload(resource: BufferResource, buffer: Buffer | HostBuffer) -> None:
    """Fill a buffer: the initial values, then zeros."""
    offset = 0
    for chunk in resource.values.chunks():
        buffer.write(chunk, offset)
        offset += len(chunk)
    zeros = bytes(min(CHUNK_BYTES, buffer.nbytes - offset))
    while offset < buffer.nbytes:
        piece = zeros[: buffer.nbytes - offset]
        buffer.write(piece, offset)
        offset += len(piece)
