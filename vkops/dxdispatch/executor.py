"""Run a prepared model on a device, command by command."""

from __future__ import annotations

import time
from array import array
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from vkops.dxdispatch import output, timing
from vkops.dxdispatch.checks import BoundDispatch, Prepared
from vkops.dxdispatch.json_reader import quote
from vkops.dxdispatch.model import (
    BindingSource,
    BufferResource,
    Command,
    DmlDispatchable,
    PrintCommand,
    WriteFileCommand,
)
from vkops.dxdispatch.types import CHUNK_BYTES
from vkops.errors import ModelError, OutOfDeviceMemoryError, VkopsError

if TYPE_CHECKING:
    from vkops.device import Buffer, CompiledOperator, Device, HostBuffer, Operator

    Binding = tuple[Buffer | HostBuffer, int, int] | None


@dataclass(frozen=True)
class RunOptions:
    """How often to dispatch, and what to tell; the names are those of the command line."""

    dispatch_iterations: int = 1
    dispatch_repeat: int = 1
    milliseconds_to_run: int | None = None
    dispatch_interval: int = 0
    warmup_samples: int = 1
    timing_verbosity: int = 0
    print_commands: bool = False


def run(prepared: Prepared, device: Device, options: RunOptions | None = None) -> None:
    """Create everything a model names on the device, then run its commands in order.

    Raises:
        VkopsError: in DxDispatch's words, what failed.
    """
    _Executor(prepared, device, options or RunOptions()).run()


class _Executor:
    def __init__(self, prepared: Prepared, device: Device, options: RunOptions) -> None:
        self.prepared = prepared
        self.options = options
        resources = prepared.model.resources.values()
        # All buffers first: what does not fit fails before any value has been made.
        try:
            self.buffers = _allocate(resources, device.buffer)
        except OutOfDeviceMemoryError:
            self.buffers = _allocate(resources, device.host_buffer)
        for resource in resources:
            _upload(resource, self.buffers[resource.name])
        dispatchables = prepared.model.dispatchables.values()
        operators = {d.name: _create(d, device) for d in dispatchables}
        self.operators = {
            d.name: self._compile(d, operators[d.name], device) for d in dispatchables
        }

    def run(self) -> None:
        for index, command in enumerate(self.prepared.commands):
            parsed = command.command if isinstance(command, BoundDispatch) else command
            if self.options.print_commands:
                output.info(output.command_started(index, parsed.text))
            try:
                self._run_command(command)
            except Exception as error:
                if self.options.print_commands:
                    message = " ".join(str(error).splitlines())
                    output.info(output.command_completed(index, output.FAILED, message))
                raise
            if self.options.print_commands:
                output.info(output.command_completed(index))

    def _compile(
        self, dispatchable: DmlDispatchable, operator: Operator, device: Device
    ) -> CompiledOperator:
        """Compile and initialise an operator."""
        name = dispatchable.name
        graph = dispatchable.compile_graph
        output.info("Compiling op using IDMLDevice1::CompileGraph" if graph else "Compile Op")
        start = time.perf_counter()
        try:
            compiled = device.compile_operator(operator, dispatchable.execution_flags)
            if name in self.prepared.initial_inputs:
                compiled.initialize(self._bindings(self.prepared.initial_inputs[name]))
        except VkopsError as error:
            raise ModelError(f"ERROR while initializing '{name}': {error}") from error
        if self.options.timing_verbosity >= 1:
            elapsed = (time.perf_counter() - start) * 1000
            output.info(f"Initialize '{name}': {elapsed:.4f} ms")
        return compiled

    def _run_command(self, command: Command | BoundDispatch) -> None:
        if isinstance(command, BoundDispatch):
            self._dispatch(command)
        elif isinstance(command, PrintCommand):
            read = self._reader(command.resource)
            output.print_resource(command.resource, read, command.verbose)
        elif isinstance(command, WriteFileCommand):
            self._write_file(command)

    def _dispatch(self, bound: BoundDispatch) -> None:
        name = bound.command.dispatchable.name
        inputs, outputs = self._bindings(bound.inputs), self._bindings(bound.outputs)
        try:
            operator = self.operators[name].bind(inputs, outputs)
            with output.progress(name) as report:
                samples = self._time(partial(operator.dispatch, report))
        except VkopsError as error:
            raise ModelError(f"Failed to execute dispatchable: {error}") from error
        if samples:
            for line in timing.report(
                name, samples, self.options.warmup_samples, self.options.timing_verbosity
            ):
                output.info(line)

    def _time(self, dispatch: Callable[[], None]) -> array[float]:
        """Dispatch in a loop; return the milliseconds one dispatch took, per iteration."""
        options = self.options
        limit = options.milliseconds_to_run
        samples = array("d")
        loop_start = time.perf_counter()
        while limit is not None or len(samples) < options.dispatch_iterations:
            start = time.perf_counter()
            for _ in range(options.dispatch_repeat):
                dispatch()
            elapsed = (time.perf_counter() - start) * 1000
            samples.append(elapsed / max(1, options.dispatch_repeat))
            pause = max(0.0, options.dispatch_interval - elapsed)
            if limit is not None and (time.perf_counter() - loop_start) * 1000 + pause > limit:
                break
            if pause:
                time.sleep(pause / 1000)
        return samples

    def _write_file(self, command: WriteFileCommand) -> None:
        """Write a file; that it cannot be written is said, and the run goes on."""
        try:
            output.write_resource(command, self._reader(command.resource))
        except OSError as error:
            reason = error.strerror or str(error)
            output.complain(f"Failed to write resource to file '{command.target}': {reason}")
        else:
            output.info(f"Resource '{command.resource.name}' written to '{command.target}'")

    def _reader(self, resource: BufferResource) -> output.Read:
        buffer = self.buffers[resource.name]
        return lambda offset, nbytes: buffer.read(offset, nbytes)

    def _bindings(self, slots: Sequence[BindingSource | None]) -> list[Binding]:
        """Bind each source from its offset to the end of its resource."""
        return [
            None
            if slot is None
            else (self.buffers[slot.resource.name], slot.offset, slot.resource.size - slot.offset)
            for slot in slots
        ]


def _create(dispatchable: DmlDispatchable, device: Device) -> Operator:
    try:
        return device.create_operator(dispatchable.desc)
    except VkopsError as error:
        raise ModelError(f"ERROR creating dispatchable '{dispatchable.name}': {error}") from error


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
