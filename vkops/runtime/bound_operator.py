"""Pipelines bound to memory: the one way from a plan to a result.

Compiled operators and graphs, the functions for arrays and ONNX models all run their plans with
``bind_pipeline``.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from vkops.dml.binding_rules import BoundTensor
from vkops.gpu.buffer import Buffer, HostBuffer
from vkops.gpu.dispatch import Dispatch, Program, Programs
from vkops.gpu.executor import Executor
from vkops.gpu.memory import Place
from vkops.gpu.pending import InThread, Pending
from vkops.gpu.streaming import Progress, stream
from vkops.plan.graph import Pipeline, Step


def bind_pipeline(
    executor: Executor,
    pipeline: Pipeline,
    programs: Sequence[Program | Programs],
    bound: Mapping[int, BoundTensor],
    read: Collection[int],
    *,
    on_host: bool,
) -> BoundOperator | StreamedOperator:
    """Bind the tensors of a pipeline, and allocate those between its steps.

    Args:
        executor: what runs it.
        pipeline: the plans.
        programs: each of them, prepared for the executor.
        bound: where each input and output lies, by its number in the pipeline.
        read: which of these are inputs.
        on_host: whether any of this memory is on the host, so that the plans must be streamed.

    Returns:
        What dispatches it.
    """
    if len(pipeline.steps) > 1:
        bound = dict(bound)
        for number, nbytes in pipeline.between.items():
            resource = HostBuffer(nbytes) if on_host else Buffer(executor, nbytes)
            bound[number] = BoundTensor(resource, 0, nbytes, "")
    if on_host:
        return StreamedOperator(executor, pipeline.steps, bound)
    places = {number: _place(tensor) for number, tensor in bound.items()}
    dispatches: list[Dispatch] = []
    for program, step in zip(programs, pipeline.steps, strict=True):
        inputs, outputs = ([places[n] for n in numbers] for numbers in (step.reads, step.makes))
        dispatches += program.bind(inputs, outputs)
    return BoundOperator(executor, dispatches, bound, read)


def _place(bound: BoundTensor) -> Place:
    resource, begin, end, _ = bound
    place: Place = resource.place
    return place if end - begin == resource.nbytes else place.part(begin, end - begin)


class BoundOperator:
    """A compiled operator with its bindings, made by ``CompiledOperator.bind``.

    It keeps the buffers it is bound to alive. Source: IDMLBindingTable.

    Attributes:
        dispatches: what it submits, one after the other.
        bound: where each tensor of the pipeline lies, by its number there.

    >>> import numpy as np
    >>> from vkops import Device, dml
    >>> device = Device()
    >>> desc = dml.BufferTensorDesc(dml.TensorDataType.INT32, [2])
    >>> copy = device.compile_operator(
    ...     device.create_operator(dml.ElementWiseIdentityOperatorDesc(desc, desc))
    ... )
    >>> x, y = device.buffer(8), device.buffer(8)
    >>> bound = copy.bind([x], [y])
    >>> for number in range(3):
    ...     x.write(np.int32([number, number]))
    ...     bound.dispatch()
    >>> np.frombuffer(y.read(), np.int32)
    array([2, 2], dtype=int32)
    """

    def __init__(
        self,
        executor: Executor,
        dispatches: Sequence[Dispatch],
        bound: Mapping[int, BoundTensor],
        read: Collection[int],
    ) -> None:
        self.executor: Executor = executor
        self.dispatches: Sequence[Dispatch] = dispatches
        self.bound: Mapping[int, BoundTensor] = bound
        self._read = read

    def dispatch(self, progress: Progress | None = None) -> None:
        """Run the operator and wait until its outputs are complete.

        Args:
            progress: not told anything: only what is streamed takes so long.

        Raises:
            DeviceError: the device is closed.
        """
        self.executor.run(self.dispatches)

    def start(self) -> Pending:
        """Begin to run the operator; see ``CompiledOperator.dispatch``.

        Raises:
            DeviceError: the device is closed.
        """
        resources = {number: id(tensor.resource) for number, tensor in self.bound.items()}
        reads = frozenset(resources[number] for number in self._read)
        writes = frozenset(resources[number] for number in resources.keys() - self._read)
        return self.executor.submit(self.dispatches, self, reads, writes)


class StreamedOperator:
    """What ``CompiledOperator.bind`` makes where a binding is in host memory.

    >>> from vkops import Device, dml
    >>> device = Device()
    >>> desc = dml.BufferTensorDesc(dml.TensorDataType.INT8, [8])
    >>> copy = device.compile_operator(
    ...     device.create_operator(dml.ElementWiseIdentityOperatorDesc(desc, desc))
    ... )
    >>> x, y = device.buffer(8), device.host_buffer(8)
    >>> x.write(b"streamed")
    >>> copy.bind([x], [y]).dispatch()
    >>> y.read()
    b'streamed'
    """

    def __init__(
        self, executor: Executor, steps: Sequence[Step], bound: Mapping[int, BoundTensor]
    ) -> None:
        self._executor = executor
        self._steps = steps
        self._bound = bound

    def dispatch(self, progress: Progress | None = None) -> None:
        """Run the operator chunk by chunk and wait until its outputs are complete.

        Args:
            progress: told of the bytes that are done, and of those to do in all.

        Raises:
            DeviceError: the device is closed.
            OutOfDeviceMemoryError: not even a chunk fits.
        """
        for resource in self._on_host():
            resource.settle()
        for step in self._steps:
            read = [self._bound[number] for number in step.reads]
            made = [self._bound[number] for number in step.makes]
            sources = [bound.resource.array(bound.begin, bound.end - bound.begin) for bound in read]
            # Outputs on the device are made on the host, and written when they are whole.
            targets = [
                bound.resource.bytes[bound.begin : bound.end]
                if isinstance(bound.resource, HostBuffer)
                else bound.resource.array(bound.begin, bound.end - bound.begin).copy()
                for bound in made
            ]
            stream(self._executor, step.plan, sources, targets, progress)
            for bound, target in zip(made, targets, strict=True):
                if not isinstance(bound.resource, HostBuffer):
                    bound.resource.write(target, bound.begin)

    def start(self) -> Pending:
        """Begin to run the operator, in a thread; see ``CompiledOperator.dispatch``."""
        return self._executor.queue.stream(self.dispatch, self._follow)

    def _follow(self, pending: InThread) -> None:
        """Let whoever uses memory on the host wait for what is streamed from it, or to it."""
        for resource in self._on_host():
            resource.settle()
            resource.pending = pending

    def _on_host(self) -> list[HostBuffer]:
        """Each once, though several tensors may be bound to it."""
        resources = dict.fromkeys(bound.resource for bound in self._bound.values())
        return [resource for resource in resources if isinstance(resource, HostBuffer)]
