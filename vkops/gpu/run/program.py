"""Programs: plans that run in order, on the device, streamed through it, or on the host."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import accumulate
from math import prod
from operator import attrgetter
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from vkops.errors import OutOfDeviceMemoryError, VkopsError, refuse_reentry
from vkops.extent import Extent, slice_extents
from vkops.gpu.adapters.kompute import Native
from vkops.gpu.kernels.choice import VECTOR
from vkops.gpu.kernels.encoding import Tuning
from vkops.gpu.memory.pools import Allocation, Extents
from vkops.gpu.run.buffer import MAX_PACKED_BYTES, Buffer, HostBuffer
from vkops.gpu.run.encoded_plan import EncodedPlan, PlanWork
from vkops.gpu.run.open_device import OpenDevice
from vkops.gpu.run.pending import BackgroundTask, Pending
from vkops.gpu.run.streaming import Progress, stream
from vkops.plan.execute import Bytes, execute_unchecked, packed_bytes
from vkops.plan.graph import Pipeline, Step
from vkops.plan.region import CopyPlan, Output, Region
from vkops.plan.rounding import round_up
from vkops.system.threads import cached_property, new_lock

MAX_HOST_ELEMENTS = 1 << 18
"""Elements that the host copies by indices at once."""

TensorMemory = Extent | npt.NDArray[Any]
"""The memory of a tensor of a program: bytes of a buffer, or an array, which is only read."""

_starting = new_lock()
"""Held while a stream joins the order of streams: it waits only for those that joined before."""

_resource = attrgetter("resource")
_allocation = attrgetter("allocation")


class Program:
    """Plans that run in order: those of an operator, a graph, a function or a model.

    ``reads`` and ``writes`` are the numbers of the tensors that it is bound to, ``indices`` those
    of the tensors that hold indices. Errors of the device call it ``name``.
    """

    def __init__(self, pipeline: Pipeline, name: str = "") -> None:
        self.pipeline = pipeline
        self.name = name
        self.steps: Sequence[Step] = pipeline.steps
        self.reads: Sequence[int] = (*pipeline.inputs, *pipeline.constants)
        self.writes: Sequence[int] = pipeline.outputs
        self.indices: Sequence[int] = sorted(
            {step.reads[n] for step in self.steps for n in step.plan.index_inputs}
        )
        self._encoded: dict[Tuning, Sequence[EncodedPlan]] = {}

    def encoded(self, device: OpenDevice) -> Sequence[EncodedPlan]:
        """Return the plans, encoded for devices of this kind."""
        plans = self._encoded.get(device.tuning)
        if plans is None:
            plans = [EncodedPlan(step.plan, device.tuning) for step in self.steps]
            self._encoded[device.tuning] = plans
        return plans

    def native_steps(self, device: OpenDevice) -> list[Native]:
        """The steps of the native module for tensors in one piece of memory."""
        prepared, tuning = device.vulkan.prepared, device.tuning
        made_for, steps = prepared.get(self, (None, []))
        if made_for is not tuning:
            tensors = [(*step.reads, *step.makes) for step in self.steps]
            is_one = tensors == [(*self.reads, *self.writes)]
            steps = self.encoded(device)[0].steps(device.vulkan) if is_one else []
            prepared[self] = tuning, steps
        return steps

    @cached_property
    def scratch(self) -> tuple[Mapping[int, int], Sequence[int]]:
        """The buffer of each intermediate tensor, by number, and the bytes of each buffer.

        Tensors that are never needed at the same time share a buffer.
        """
        last = {number: i for i, step in enumerate(self.steps) for number in step.reads}
        nbytes = self.pipeline.intermediates
        buffers: dict[int, int] = {}
        sizes: list[int] = []
        free: list[int] = []
        for i, step in enumerate(self.steps):
            for number in filter(nbytes.__contains__, step.makes):
                if not free:
                    free.append(len(sizes))
                    sizes.append(0)
                buffers[number] = free.pop()
                sizes[buffers[number]] = max(sizes[buffers[number]], nbytes[number])
            done = {*step.reads, *step.makes} & nbytes.keys()
            free += [buffers[number] for number in sorted(done) if last.get(number, i) == i]
        return buffers, sizes


class BoundProgram:
    """A program on the memory of its tensors; it can run again and again.

    It keeps the memory alive. Arrays of the host are sent when they are bound, or are read where
    they are.

    Attributes:
        device: the device that runs it.
        tensors: the memory of each tensor of the program, by number.
    """

    def __init__(
        self,
        program: Program,
        device: OpenDevice,
        reads: Iterable[TensorMemory | None],
        writes: Iterable[TensorMemory],
    ) -> None:
        """Bind tensors in the order of ``program.reads`` and ``program.writes``.

        None stands for an input that no step reads.
        """
        self.program = program
        self.device = device
        self.tensors: dict[int, TensorMemory | None] = dict(zip(program.reads, reads, strict=True))
        self.tensors.update(zip(program.writes, writes, strict=True))
        self._kept: list[Buffer] = []
        # The work of the device, and its memory; None if tensors are in host memory and streamed.
        self._work: list[PlanWork] | None = None
        self._memory: tuple[list[Allocation], list[Allocation]] = [], []
        used = [each.resource for each in self.tensors.values() if type(each) is Extent]
        if HostBuffer in map(type, used):
            device.vulkan.refuse_recording("host memory cannot be streamed")
        else:
            self._work = self._bind()
            written = [*map(_resource, map(self.tensors.__getitem__, program.writes)), *self._kept]
            self._memory = [*map(_allocation, used)], [*map(_allocation, written)]

    def _bind(self) -> list[PlanWork]:
        """Return the work of the device, with intermediates allocated and arrays sent."""
        program, device = self.program, self.device
        plans = program.encoded(device)
        places: dict[int, Extents] = {}
        arrays: dict[int, npt.NDArray[Any]] = {}
        for number, memory in self.tensors.items():
            if isinstance(memory, Extent):
                buffer, start, nbytes = memory
                # Buffers may be larger than the plan's tensors; plans take the first bytes.
                places[number] = (
                    slice_extents(buffer.extents, start, nbytes) if start else buffer.extents
                )
            elif memory is not None:
                arrays[number] = memory
        if len(plans) > 1:
            buffers, sizes = program.scratch
            scratch = [Buffer(device, nbytes) for nbytes in sizes]
            places.update((number, scratch[at].extents) for number, at in buffers.items())
            self._kept += scratch
        return self._planned(plans, {**places, **self._send(arrays)} if arrays else places)

    def _planned(
        self, plans: Sequence[EncodedPlan], places: Mapping[int, Extents]
    ) -> list[PlanWork]:
        work: list[PlanWork] = []
        place = places.__getitem__
        for plan, step in zip(plans, self.program.steps, strict=True):
            for number in step.plan.index_inputs if self.program.indices else ():
                extents = places[step.reads[number]]
                # A kernel binds one range of indices, and any element may need any index.
                if len(extents) > 1:
                    nbytes = step.plan.inputs[number]
                    raise self._spread_indices(step.reads[number], extents, nbytes)
            work += plan.bind([*map(place, step.reads)], [*map(place, step.makes)])
        return work

    def _send(self, arrays: Mapping[int, npt.NDArray[Any]]) -> dict[int, Extents]:
        """Copy arrays to the device, row by row; many small ones at once."""
        device = self.device
        sizes = [round_up(array.nbytes, VECTOR) for array in arrays.values()]
        total = sum(sizes)
        if len(arrays) > 1 and total <= min(MAX_PACKED_BYTES, device.pool.max_range):
            packed = Buffer(device, total, constant=True)
            packed.fill_with([*map(_whole_vectors, arrays.values(), sizes)])
            self._kept.append(packed)
            parts = map(packed.extents[0].part, accumulate(sizes, initial=0), sizes)
            return {number: (part,) for number, part in zip(arrays, parts, strict=True)}
        places = {}
        for (number, array), nbytes in zip(arrays.items(), sizes, strict=True):
            buffer = Buffer(device, nbytes, constant=True)
            buffer.fill_with([array])
            self._kept.append(buffer)
            places[number] = buffer.extents
        return places

    def _spread_indices(self, number: int, extents: Extents, nbytes: int) -> VkopsError:
        """Return the error for a tensor of indices that is in several ranges of memory."""
        held = f"a buffer of the device holds {extents[0].nbytes}"
        return OutOfDeviceMemoryError(f"indices of {nbytes} bytes: {held}; use fewer at a time")

    # -- running ----------------------------------------------------------------------------------

    def run(self, progress: Progress = None) -> None:
        """Run the program; if it runs on the device alone, do not wait for it.

        If memory is on the host, data are streamed through the device. Plans with indices are run
        by the host itself, because streaming would have to send all elements that indices could
        select.

        Args:
            progress: called with the bytes of a step that are done and all bytes of it, where data
                are streamed.

        Raises:
            DeviceError: the device is closed.
            OutOfDeviceMemoryError: not even a part of the data fits on the device.
        """
        if self._work is not None:
            self._submit()
            return
        for buffer in self._host_buffers():
            buffer.settle()
        self._stream(progress)

    def _stream(self, progress: Progress = None) -> None:
        """Run the program through the device; nothing else uses the host's memory."""
        bytes_of = {number: _host_bytes(memory) for number, memory in self.tensors.items()}
        on_device = {
            number: memory
            for number, memory in self.tensors.items()
            if number in self.program.writes
            and isinstance(memory, Extent)
            and isinstance(memory.resource, Buffer)
        }
        for number in on_device:
            # Write to a copy, which is stored in the tensor when it is complete.
            bytes_of[number] = bytes_of[number].copy()
        buffers, sizes = self.program.scratch
        scratch = [HostBuffer(nbytes).bytes for nbytes in sizes]
        for step in self.program.steps:
            for number, output in zip(step.makes, step.plan.outputs, strict=True):
                if number in buffers:
                    bytes_of[number] = scratch[buffers[number]][: output.nbytes]
            read, written = ([bytes_of[n] for n in numbers] for numbers in (step.reads, step.makes))
            if step.plan.index_inputs:
                _run_on_host(step.plan, read, written)
            else:
                stream(self.device, step.plan, read, written, progress)
        for number, memory in on_device.items():
            memory.resource.write(bytes_of[number], memory.start)

    @cached_property
    def _operations(self) -> list[Native]:
        """The operations that the device runs, made when they are first submitted."""
        return [each.operation(self.device.vulkan) for each in self._work or ()]

    def _submit(self) -> int:
        return self.device.submit(self._operations, *self._memory, self.program.name)

    def start(self) -> Pending:
        """Begin to run the program; the handle's ``wait`` raises the errors of the device.

        Raises:
            DeviceError: the device is closed.
        """
        if self._work is not None:
            return SubmittedProgram(self.device, self._submit())
        vulkan, buffers = self.device.vulkan, self._host_buffers()
        vulkan.check_usable()
        vulkan.finish_streams()
        refuse_reentry(_starting, "a stream is being started")
        with _starting:
            before = [each.pending for each in buffers if each.pending is not None]
            task = BackgroundTask(self._stream, before)
            try:
                for buffer in buffers:
                    buffer.pending = task
                vulkan.streams.append(task)
                task.start()
            except BaseException:  # an interrupt, or the system has no more threads
                task.abandon()
                raise
        return task

    def _host_buffers(self) -> list[HostBuffer]:
        """The host buffers, without repetition."""
        resources = {memory.resource for memory in self.tensors.values() if type(memory) is Extent}
        return [each for each in resources if isinstance(each, HostBuffer)]


class SubmittedProgram(NamedTuple):
    """A submission that the device executes while the host continues."""

    device: OpenDevice
    number: int

    def wait(self) -> None:
        """Wait until the results are complete; see ``Pending``."""
        self.device.wait(self.number)


def _host_bytes(memory: TensorMemory | None) -> Bytes:
    """Return the bytes of memory on the host; those of a device are copied."""
    if not isinstance(memory, Extent):
        return np.empty(0, np.uint8) if memory is None else packed_bytes(memory)
    resource, start, nbytes = memory
    if isinstance(resource, HostBuffer):
        return resource.bytes[start : start + nbytes]
    content: Bytes = resource.peek(start, nbytes)
    return content


def _whole_vectors(array: npt.NDArray[Any], nbytes: int) -> Bytes:
    """Return the bytes of an array in row-major order, padded with zeros to ``nbytes``."""
    packed = packed_bytes(array)
    return packed if packed.size == nbytes else np.pad(packed, (0, nbytes - packed.size))


# -- indices on the host ---------------------------------------------------------------------------


def _run_on_host(plan: CopyPlan, sources: Sequence[Bytes], targets: Sequence[Bytes]) -> None:
    """Run a plan with indices by NumPy, a part of the elements at a time, to save memory."""
    # A source may share memory with a target, as in ``x[indices] = x[...]``: copy it first.
    sources = [
        source.copy() if any(np.may_share_memory(source, target) for target in targets) else source
        for source in sources
    ]
    for output, target in zip(plan.outputs, targets, strict=True):
        for region in sorted(output.regions, key=lambda region: region.kind == "scatter"):
            for part in _parts(region):
                part_plan = replace(plan, outputs=(Output(output.nbytes, (part,)),))
                execute_unchecked(part_plan, sources, [target])


def _parts(region: Region) -> Iterator[Region]:
    """Divide a region into parts of few elements: NumPy needs some 64 bytes for each element."""
    size = max(region.sizes, default=1)
    if prod(region.sizes) <= MAX_HOST_ELEMENTS:
        yield region
        return
    axis = region.sizes.index(size)
    for start, count in ((0, size // 2), (size // 2, size - size // 2)):
        yield from _parts(region.map(lambda view: view.narrow(axis, start, count)))  # noqa: B023
