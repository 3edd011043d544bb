"""Run a prepared model on a device, command by command."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain
from math import prod
from types import NoneType
from typing import Any

import numpy as np
import numpy.typing as npt

import vkops
from vkops import console
from vkops.dml import TensorDataType
from vkops.errors import ModelError, show
from vkops.models.initial_values import ReadBytes, dtype_of, pieces
from vkops.models.json_reader import quote
from vkops.models.model import (
    CheckedDispatch,
    Command,
    Execution,
    Prepared,
    PrintCommand,
    WriteFileCommand,
)
from vkops.models.operator import DmlDispatchable
from vkops.models.resources import errors_after
from vkops.models.target import DeviceTarget
from vkops.runner import printed_values
from vkops.runner.array_files import without_objects
from vkops.runner.dispatch_timing import RunOptions, run_timed
from vkops.system import pictures
from vkops.system.npy_files import header_bytes
from vkops.system.output_files import write_output


def run(prepared: Prepared, device: vkops.Device, options: RunOptions | None = None) -> None:
    """Create everything a model names on the device, then run its commands in order.

    Raises:
        VkopsError: in DxDispatch's words, what failed.
    """
    if not isinstance(prepared, Prepared):
        raise ModelError(f"prepared: got {show(prepared)}, must be what prepare returns")
    if not isinstance(options, (RunOptions, NoneType)):
        raise ModelError(f"options: got {show(options)}, must be RunOptions or None")
    run = _ModelRun(prepared, device, options or RunOptions())
    for index, command in enumerate(prepared.commands):
        if not run.options.print_commands:
            run.run_command(command)
            continue
        console.command_started(index, command.text)
        try:
            run.run_command(command)
        except Exception as error:
            console.command_completed(index, console.FAILED, str(error))
            raise
        console.command_completed(index)


class _ModelRun:
    """A model on a device, whose commands print and write what they are asked to."""

    def __init__(self, prepared: Prepared, device: vkops.Device, options: RunOptions) -> None:
        self.options: RunOptions = options
        self._prepared = prepared
        self._device = device
        self._has_dispatched = False
        self._execution = Execution(prepared, DeviceTarget(device), self._compiling, self._seen)

    @contextmanager
    def _compiling(self, operator: DmlDispatchable) -> Iterator[None]:
        """Print that an operator is compiled, and how long it takes with its initialization."""
        graph = operator.compile_graph
        console.info("Compiling op using IDMLDevice1::CompileGraph" if graph else "Compile Op")
        start = time.perf_counter()
        yield
        if self.options.timing_verbosity >= 1:
            elapsed = (time.perf_counter() - start) * 1000
            console.info(f"Initialize '{console.bounded(operator.name)}': {elapsed:.4f} ms")

    def _seen(
        self, dispatch: CheckedDispatch, inputs: Mapping[str, Any], outputs: Sequence[Any]
    ) -> None:
        if self.options.print_onnx_bindings:
            tensors = {each.name: each.source for each in (*dispatch.inputs, *dispatch.outputs)}
            deferred = {n: s.resource.is_deferred for n, s in tensors.items() if s}
            names = [each.name for each in dispatch.outputs]
            print_onnx_bindings(inputs.items(), zip(names, outputs, strict=True), deferred)

    def run_command(self, command: Command) -> None:
        """Run one command."""
        if isinstance(command, CheckedDispatch):
            with errors_after("Failed to execute dispatchable"):
                self._dispatch(command)
        elif isinstance(command, PrintCommand):
            with errors_after("Failed to print resource"):
                held = self._content(command)
            self._print(command, held)
        elif isinstance(command, WriteFileCommand):
            self._write_file(command)

    def _dispatch(self, dispatch: CheckedDispatch) -> None:
        run, tensors = self._execution.bind(dispatch), (*dispatch.inputs, *dispatch.outputs)
        name, is_first = dispatch.dispatchable.name, not self._has_dispatched
        named = [f"{each.name}: {each.source.resource.name}" for each in tensors if each.source]
        run_timed(name, self.options, run, self._device, named, is_first=is_first)
        self._has_dispatched = True

    def _print(self, command: PrintCommand, held: _Content) -> None:
        """Print a resource in the shape of the first tensor that covers it, or in one line."""
        assert held.dtype is not None
        name = command.resource.name
        label = f"Resource '{console.bounded(name)}'"
        shape = next(self._shapes(name, held), (held.count,))
        is_short = len(shape) < 2 and held.count <= printed_values.MAX_SHAPED_VALUES
        if is_short or command.verbose or self.options.flat:
            printed_values.print_flat(
                label, held.dtype, held.count, held.read, verbose=command.verbose
            )
        else:
            text = printed_values.shaped(held.dtype, shape, held.read)
            console.lines(f"{label} {list(shape)}:", text)

    def _shapes(self, name: str, held: _Content) -> Iterator[tuple[int, ...]]:
        """Yield the shapes of packed tensors that are the whole content of a resource."""
        if len(held.shape) > 1:
            yield held.shape
        for dispatch in self._prepared.dispatches:
            for tensor in (*dispatch.outputs, *dispatch.inputs):
                is_bound = tensor.source is not None and tensor.source.resource.name == name
                if is_bound and tensor.shape is not None and prod(tensor.shape) == held.count:
                    yield tensor.shape

    def _write_file(self, command: WriteFileCommand) -> None:
        """Write a file; if it cannot be written, print why and continue."""
        held = self._content(command)
        target, size, header = command.target, held.size, b""
        try:
            suffix = target.suffix.lower()
            if suffix == ".npy" or suffix in pictures.SUFFIXES:
                assert held.dtype is not None
                shape = held.shape if command.dimensions is None else command.dimensions
                if suffix != ".npy" and command.dimensions is None:
                    shape = next(self._shapes(command.resource.name, held), shape)
                size = prod(shape) * held.dtype.itemsize
                if size > held.size:
                    raise OSError(
                        None, f"dimensions {shape} exceed the {held.size} bytes there are"
                    )
                header = header_bytes(held.dtype, shape)
            parts: Iterable[bytes] = chain([header], pieces(held.read, size))
            if suffix in pictures.SUFFIXES:
                parts = [_picture(held, shape, suffix)]
            write_output(target, parts)
        except OSError as error:
            reason = error.strerror or str(error)
            console.complain(f"Failed to write resource to file '{target}': {reason}")
        else:
            console.info(
                f"Resource '{console.bounded(command.resource.name)}' written to '{target}'"
            )

    def _content(self, command: PrintCommand | WriteFileCommand) -> _Content:
        resource, deferred = command.resource, self._execution.deferred
        if not resource.is_deferred:
            read = self._execution.buffers[resource.name].read
            if resource.data_type is TensorDataType.UNKNOWN:
                return _Content(None, 0, (), resource.size, read)
            dtype = dtype_of(resource.data_type)
            count = resource.values.nbytes // dtype.itemsize
            return _Content(dtype, count, (resource.size // dtype.itemsize,), resource.size, read)
        if resource.name not in deferred:
            raise command.node.error(f"{quote(resource.name)} has no value yet")
        value = np.asarray(deferred[resource.name])
        array = np.ascontiguousarray(without_objects(value))
        data = array.reshape(-1).view(np.uint8)
        return _Content(
            array.dtype,
            array.size,
            array.shape,
            data.size,
            lambda offset, nbytes: data[offset : offset + nbytes].tobytes(),
        )


def print_onnx_bindings(
    inputs: Iterable[tuple[str, Any]],
    outputs: Iterable[tuple[str, Any]],
    deferred: Mapping[str, bool],
) -> None:
    """Print the tensors of an ONNX model; ``deferred`` has those that are bound to resources."""
    from onnx import TensorProto

    from vkops.onnx.element_types import elem_type_of

    for role, tensors in (("Input", inputs), ("Output", outputs)):
        for name, value in tensors:
            if not hasattr(value, "shape"):
                continue
            kind = {None: "implicit", True: "deferred", False: "explicit"}[deferred.get(name)]
            console.info(f"{role} Tensor '{console.bounded(name)}':")
            console.info(f"  Resource  = {kind} (Vulkan)")
            console.info(f"  Data Type = {TensorProto.DataType.Name(elem_type_of(value.dtype))}")
            console.info(f"  Shape     = [{','.join(map(str, value.shape))}]")
            console.info("")


def _picture(held: _Content, shape: tuple[int, ...], suffix: str) -> bytes:
    """Return the file of a picture: rows of pixels, or DxDispatch's NCHW of floats."""
    assert held.dtype is not None
    read = held.read(0, prod(shape) * held.dtype.itemsize)
    pixels: npt.NDArray[Any] = np.frombuffer(read, held.dtype).reshape(shape)
    if pixels.ndim == 4 and shape[0] == 1:
        pixels = np.moveaxis(pixels[0], 0, -1)
    try:
        return pictures.encoded(pixels, suffix)
    except pictures.PictureError as error:
        raise OSError(None, str(error)) from error


@dataclass(frozen=True)
class _Content:
    """The content of a resource: ``count`` values to print, and the shape in a .npy file."""

    dtype: np.dtype[Any] | None
    count: int
    shape: tuple[int, ...]
    size: int
    read: ReadBytes
