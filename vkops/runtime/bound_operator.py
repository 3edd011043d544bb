"""Pipelines bound to memory: on the device they are dispatched, else streamed through it."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from vkops.dml.binding_rules import BoundTensor
from vkops.errors import BindingError
from vkops.gpu.run.buffer import Buffer, HostBuffer
from vkops.gpu.run.dispatch import PreparedPlan, Work
from vkops.gpu.run.executor import Executor
from vkops.gpu.run.pending import BackgroundTask, Pending
from vkops.gpu.run.streaming import Progress, stream
from vkops.plan.graph import Pipeline, Step


def bind_pipeline(
    executor: Executor,
    pipeline: Pipeline,
    prepared: Sequence[PreparedPlan],
    bound: Mapping[int, BoundTensor],
    read: Collection[int],
    indices: Collection[int],
    operator: str,
) -> BoundOperator | StreamedOperator:
    """Bind the tensors of a pipeline, and allocate its intermediates.

    Args:
        executor: the executor that runs it.
        pipeline: the plans to run.
        prepared: each of the plans, prepared for the executor.
        bound: the memory of each input and output, by its number in the pipeline.
        read: the numbers of the inputs.
        indices: the numbers of the tensors that hold indices, intermediates among them.
        operator: its name, for errors.

    Returns:
        The bound pipeline; one that is streamed in chunks if any memory is on the host.

    Raises:
        BindingError: indices are read, and memory is on the host (B-22), or the indices are not in
            one buffer of the device (B-23).
    """
    on_host = [tensor.path for tensor in bound.values() if isinstance(tensor.resource, HostBuffer)]
    if on_host and indices:
        message = "is in host memory, must be in device memory: the operator reads indices"
        raise BindingError(operator, on_host[0], message, "B-22")
    if len(pipeline.steps) > 1:
        bound = dict(bound)
        for number, nbytes in pipeline.intermediates.items():
            resource = HostBuffer(nbytes) if on_host else Buffer(executor, nbytes)
            bound[number] = BoundTensor(resource, 0, nbytes, "")
    if on_host:
        return StreamedOperator(executor, pipeline.steps, bound)
    allocations = {
        number: tensor.resource.part(tensor.begin, tensor.nbytes)
        for number, tensor in bound.items()
    }
    for number in indices:
        count = len(allocations[number].ranges)
        if count > 1:
            message = f"indices are spread over {count} buffers of the device, must be in 1"
            raise BindingError(operator, bound[number].path, message, "B-23")
    dispatches: list[Work] = []
    for plan, step in zip(prepared, pipeline.steps, strict=True):
        inputs, outputs = (
            [allocations[n] for n in numbers] for numbers in (step.reads, step.makes)
        )
        dispatches += plan.bind(inputs, outputs)
    return BoundOperator(executor, dispatches, bound, read)


class BoundOperator:
    """A compiled operator with its bindings, made by ``CompiledOperator.bind``.

    It keeps the buffers it is bound to alive. Source: IDMLBindingTable.

    Attributes:
        dispatches: the dispatches that it submits, in order.
        bound: the memory of each tensor of the pipeline, by its number there.

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
        dispatches: Sequence[Work],
        bound: Mapping[int, BoundTensor],
        read: Collection[int],
    ) -> None:
        self.executor: Executor = executor
        self.dispatches: Sequence[Work] = dispatches
        self.bound: Mapping[int, BoundTensor] = bound
        self._read = read

    def dispatch(self, progress: Progress | None = None) -> None:
        """Run the operator and wait until its outputs are complete.

        Args:
            progress: never called; only streamed operators report progress.

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
    """A compiled operator of which a binding is in host memory, made by ``CompiledOperator.bind``.

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
            progress: called with the bytes done so far and the bytes in all.

        Raises:
            DeviceError: the device is closed.
            OutOfDeviceMemoryError: not even a chunk fits.
        """
        for resource in self._on_host():
            resource.settle()
        for step in self._steps:
            read = [self._bound[number] for number in step.reads]
            made = [self._bound[number] for number in step.makes]
            sources = [bound.resource.array(bound.begin, bound.nbytes) for bound in read]
            # Outputs on the device are made on the host, and written when they are complete.
            targets = [
                bound.resource.bytes[bound.begin : bound.end]
                if isinstance(bound.resource, HostBuffer)
                else bound.resource.array(bound.begin, bound.nbytes).copy()
                for bound in made
            ]
            stream(self._executor, step.plan, sources, targets, progress)
            for bound, target in zip(made, targets, strict=True):
                if not isinstance(bound.resource, HostBuffer):
                    bound.resource.write(target, bound.begin)

    def start(self) -> Pending:
        """Begin to run the operator, in a thread; see ``CompiledOperator.dispatch``."""
        return self._executor.queue.stream(self.dispatch, self._follow)

    def _follow(self, pending: BackgroundTask) -> None:
        """Make later uses of the host memory wait for this stream."""
        for resource in self._on_host():
            resource.settle()
            resource.pending = pending

    def _on_host(self) -> list[HostBuffer]:
        """The host buffers, without repetition, in an order that all operators share.

        So streams of several devices, each of which waits for the buffers one after the other,
        never wait for one another.
        """
        resources = {bound.resource for bound in self._bound.values()}
        on_host = [resource for resource in resources if isinstance(resource, HostBuffer)]
        return sorted(on_host, key=id)
