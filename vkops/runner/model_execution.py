"""Run a prepared model on a device, command by command."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
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
from vkops.models.data_types import Read, chunks, dtype_of
from vkops.models.json_reader import quote
from vkops.models.model import (
    Bound,
    Command,
    Execution,
    Prepared,
    PrintCommand,
    RunOptions,
    WriteFileCommand,
)
from vkops.models.resources import errors_after
from vkops.runner import printed_values
from vkops.runner.array_files import without_objects
from vkops.runner.dispatch_timing import run_timed
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
    run = DeviceRun(prepared, device, options or RunOptions())
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


class DeviceRun(Execution):
    """A model on a device, whose commands print and write what they are asked to."""

    has_dispatched: bool = False

    def run_command(self, command: Command) -> None:
        """Run one command."""
        if isinstance(command, Bound):
            with errors_after("Failed to execute dispatchable"):
                self.run_dispatch(command)
        elif isinstance(command, PrintCommand):
            with errors_after("Failed to print resource"):
                held = self._content(command)
            self._print(command, held)
        elif isinstance(command, WriteFileCommand):
            self._write_file(command)

    def run_dispatch(self, bound: Bound) -> None:
        """Run a dispatch in a loop, and print how long it takes."""
        from vkops.gpu.run.profile_recorder import called_by

        dispatch, is_first = self.ready(bound), not self.has_dispatched
        name, tensors = bound.dispatchable.name, (*bound.inputs, *bound.outputs)
        named = [f"{each.name}: {each.source.resource.name}" for each in tensors if each.source]
        with called_by(f"dispatch '{console.bounded(name)}'", *named):
            run_timed(name, self.options, dispatch, self.device, is_first=is_first)
        self.has_dispatched = True

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
        for bound in self.prepared.dispatches:
            for tensor in (*bound.outputs, *bound.inputs):
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
            parts: Iterable[bytes] = chain([header], chunks(held.read, size))
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
        resource = command.resource
        if not resource.is_deferred:
            read = self.buffers[resource.name].read
            if resource.data_type is TensorDataType.UNKNOWN:
                return _Content(None, 0, (), resource.size, read)
            dtype = dtype_of(resource.data_type)
            count = resource.values.nbytes // dtype.itemsize
            return _Content(dtype, count, (resource.size // dtype.itemsize,), resource.size, read)
        if resource.name not in self.deferred:
            raise command.node.error(f"{quote(resource.name)} has no value yet")
        array = np.ascontiguousarray(without_objects(np.asarray(self.deferred[resource.name])))
        data = array.reshape(-1).view(np.uint8)
        return _Content(
            array.dtype,
            array.size,
            array.shape,
            data.size,
            lambda offset, nbytes: data[offset : offset + nbytes].tobytes(),
        )


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
    read: Read
