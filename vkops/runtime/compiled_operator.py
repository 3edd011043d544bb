"""Operators and graphs that are ready to run, and the checks of their bindings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, overload

from vkops.dml import GraphDesc, OperatorDesc, TensorFlags
from vkops.dml.binding_rules import bind_tensor, check_elements, check_hazards
from vkops.dml.tensor_desc import BufferTensorDesc
from vkops.errors import BindingError, VkopsError, show
from vkops.extent import Extent
from vkops.gpu.memory.pools import Extents
from vkops.gpu.run.buffer import BindableMemory, Buffer, HostBuffer
from vkops.gpu.run.open_device import OpenDevice
from vkops.gpu.run.pending import Pending
from vkops.gpu.run.program import BoundProgram, Program
from vkops.gpu.run.streaming import Progress
from vkops.plan.graph import Pipeline
from vkops.plan.indexing import OutOfRange
from vkops.plan.region import CopyPlan, Progression
from vkops.runtime.bindings import Binding, extent_of


class BoundOperator(BoundProgram):
    """A compiled operator with its bindings, made by ``CompiledOperator.bind``.

    It keeps the buffers it is bound to alive. If a binding is in host memory, data are streamed
    through the device. Source: IDMLBindingTable.

    >>> import numpy as np
    >>> from vkops import Device, dml
    >>> device = Device()
    >>> desc = dml.BufferTensorDesc(dml.TensorDataType.INT32, [2])
    >>> copy = device.compile_operator(
    ...     device.create_operator(dml.ElementWiseIdentityOperatorDesc(desc, desc))
    ... )
    >>> x, y = device.buffer(8), device.host_buffer(8)
    >>> bound = copy.bind([x], [y])
    >>> for number in range(3):
    ...     x.write(np.int32([number, number]))
    ...     bound.dispatch()
    >>> np.frombuffer(y.read(), np.int32)
    array([2, 2], dtype=int32)
    """

    def __init__(
        self,
        operator: CompiledOperator,
        device: OpenDevice,
        reads: Sequence[Extent | None],
        writes: Sequence[Extent],
    ) -> None:
        self.operator: CompiledOperator = operator
        super().__init__(operator.program, device, reads, writes)

    def _spread_indices(self, number: int, extents: Extents, nbytes: int) -> VkopsError:
        message = f"indices are spread over {len(extents)} buffers of the device, must be in 1"
        path = self.operator.paths.get(number, "")
        return BindingError(self.operator.name, path, message, "B-23")

    def __repr__(self) -> str:
        return f"<vkops.BoundOperator of {self.operator!r}>"

    def dispatch(self, progress: Progress = None) -> None:
        """Run the operator; see ``CompiledOperator.dispatch``."""
        self.run(progress)


StreamedOperator = BoundOperator
"""The class of operators with a binding in host memory, for programs that name it."""


@dataclass(frozen=True, slots=True)
class BindingProperties:
    """Bytes of memory needed besides inputs and outputs. Source: DML_BINDING_PROPERTIES.

    vkops allocates both itself.
    """

    temporary_resource_size: int
    persistent_resource_size: int


class CompiledOperator:
    """An operator or a graph ready to run, made by ``Device``. Source: IDMLCompiledOperator.

    Attributes:
        name: DirectML's name of the operator, or ``"GRAPH"``.
        plan: the copy plan of the operator; of a graph, the last step of its pipeline.
        pipeline: the steps to run; nearly always the plan alone.
        paths: the path of the field of each input and output, by its number in the pipeline.

    >>> import numpy as np
    >>> from vkops import Device, dml
    >>> device = Device()
    >>> desc = dml.BufferTensorDesc(dml.TensorDataType.INT32, [5])
    >>> reverse = device.compile_operator(
    ...     device.create_operator(dml.Slice1OperatorDesc(desc, desc, [0], [5], [-1]))
    ... )
    >>> x, y = device.tensor(np.arange(5, dtype=np.int32)), device.buffer(20)
    >>> pending = reverse.dispatch([x], [y], wait=False)
    >>> pending.wait()
    >>> np.frombuffer(y.read(), np.int32)
    array([4, 3, 2, 1, 0], dtype=int32)
    """

    def __init__(
        self, device: OpenDevice, desc: OperatorDesc | GraphDesc, indices: OutOfRange = "vkops"
    ) -> None:
        device.check_usable()
        self.name: str = desc.operator
        self.pipeline: Pipeline = desc.lower_to_pipeline(indices)
        self.plan: CopyPlan = self.pipeline.plan
        self._device = device
        self.program: Program = Program(self.pipeline, self.name)
        self.program.encoded(device)
        self._inputs, self._outputs = desc.inputs, desc.outputs
        self._owned = {
            number: tensor
            for number, (_, tensor) in enumerate(self._inputs)
            if tensor is not None and TensorFlags.OWNED_BY_DML in tensor.flags
        }
        self._paths = [path for path, _ in (*self._inputs, *self._outputs)]
        numbers = *self.program.pipeline.inputs, *self.program.writes
        self.paths: Mapping[int, str] = dict(zip(numbers, self._paths, strict=True))
        self._in_place = desc.runs_in_place
        self._constants = [_stored(device, c) for c in self.pipeline.constants.values()]
        self._persistent: dict[int, BindableMemory] = {}

    def __repr__(self) -> str:
        counts = f"inputs: {len(self._inputs)}, outputs: {len(self._outputs)}"
        return f"<vkops.CompiledOperator {self.name} ({counts}) on {self._device.info.label}>"

    @property
    def binding_properties(self) -> BindingProperties:
        """Sizes of the temporary and persistent resources that DirectML's callers must bind."""
        owned = sum(tensor.total_tensor_size_in_bytes for tensor in self._owned.values())
        owned += sum(constant.nbytes for constant in self.pipeline.constants.values())
        return BindingProperties(sum(self.pipeline.intermediates.values()), owned)

    def initialize(self, inputs: Sequence[Binding]) -> None:
        """Copy the inputs that are OWNED_BY_DML; they are not bound again at execution.

        Only operators with such inputs need it. Source: IDMLOperatorInitializer.

        Args:
            inputs: one entry per input; None for those that are not owned (B-03). An entry for an
                input of a graph that nothing reads is ignored.

        Raises:
            BindingError: B-01 to B-06, B-24, or initialised before (B-18).
        """
        self._check_count("inputs", inputs, self._inputs)
        sources: dict[int, Extent] = {}
        for number, ((path, tensor), binding) in enumerate(zip(self._inputs, inputs, strict=True)):
            if number in self._owned:
                sources[number] = self._bind(path, self._owned[number], binding)
            elif binding is not None and tensor is not None:
                message = "is bound at initialisation, must be None: it is not OWNED_BY_DML"
                raise BindingError(self.name, path, message, "B-03")
        persistent = {
            number: resource.clone(start, nbytes)
            for number, (resource, start, nbytes) in sources.items()
        }
        self._device.make_ready()
        with self._device.vulkan.lock:
            if self._persistent:
                raise BindingError(
                    self.name, "", "was initialised already, can be initialised once only", "B-18"
                )
            self._persistent = persistent

    @overload
    def dispatch(
        self, inputs: Sequence[Binding], outputs: Sequence[Binding], *, wait: Literal[True] = True
    ) -> None: ...

    @overload
    def dispatch(
        self, inputs: Sequence[Binding], outputs: Sequence[Binding], *, wait: Literal[False]
    ) -> Pending: ...

    def dispatch(
        self, inputs: Sequence[Binding], outputs: Sequence[Binding], *, wait: bool = True
    ) -> Pending | None:
        """Run the operator, which the device executes while the host continues.

        Reading its outputs waits for them. With a binding in host memory, data are streamed, and
        the call returns when they are complete, unless ``wait`` is False.

        Args:
            inputs: per input tensor a buffer, tensor or (buffer, offset, bytes); None for those
                that are OWNED_BY_DML. An entry for an input of a graph that nothing reads is
                ignored.
            outputs: per output tensor a buffer, tensor or (buffer, offset, bytes).
            wait: False to get a handle, and to stream in a thread.

        Returns:
            None, or a handle whose ``wait()`` also raises the errors of the device.

        Raises:
            BindingError: a binding breaks one of B-01 to B-09, T-17, B-18 or B-21 to B-24; nothing
                was run.
            DeviceError: the device is closed.
        """
        bound = self.bind(inputs, outputs)
        if not wait:
            return bound.start()
        bound.run()
        return None

    def bind(self, inputs: Sequence[Binding], outputs: Sequence[Binding]) -> BoundOperator:
        """Check bindings once, to dispatch with them many times.

        Source: IDMLBindingTable. Arguments and errors are those of ``dispatch``.
        """
        self._check_count("inputs", inputs, self._inputs)
        self._check_count("outputs", outputs, self._outputs)
        read: list[Extent | None] = []
        for number, ((path, tensor), binding) in enumerate(zip(self._inputs, inputs, strict=True)):
            if tensor is None:  # an input of a graph that nothing reads
                read.append(None)
            elif number in self._owned:
                read.append(self._initialized(number, path, binding))
            else:
                read.append(self._bind(path, tensor, binding))
        written = [
            self._bind(path, tensor, binding, written=True)
            for (path, tensor), binding in zip(self._outputs, outputs, strict=True)
        ]
        placed = [(path, e) for path, e in zip(self._paths, (*read, *written), strict=True) if e]
        count = len(placed) - len(written)
        check_hazards(self.name, placed[:count], placed[count:], in_place=self._in_place)
        for path, extent in placed if self.program.indices else ():
            if isinstance(extent.resource, HostBuffer):
                message = "is in host memory, must be in device memory: the operator reads indices"
                raise BindingError(self.name, path, message, "B-22")
        return BoundOperator(self, self._device, [*read, *self._constants], written)

    # -- bindings ---------------------------------------------------------------------------------

    def _check_count(
        self, field: str, bindings: Sequence[Binding], tensors: Sequence[object]
    ) -> None:
        if type(bindings) is list and len(bindings) == len(tensors):  # the usual case: fast
            return
        if not isinstance(bindings, Sequence) or isinstance(bindings, (str, bytes)):
            message = f"got {show(bindings)}, must be a list of bindings"
        elif len(bindings) != len(tensors):
            message = f"got {len(bindings)} bindings, must be {len(tensors)}"
        else:
            return
        raise BindingError(self.name, field, message, "B-01")

    def _initialized(self, number: int, path: str, binding: Binding) -> Extent:
        if binding is not None:
            message = "is bound at execution, must be None: it is OWNED_BY_DML"
            raise BindingError(self.name, path, message, "T-17")
        if number not in self._persistent:
            message = "is OWNED_BY_DML and not initialised; call initialize first"
            raise BindingError(self.name, path, message, "B-18")
        owned = self._persistent[number]
        return Extent(owned, 0, owned.nbytes)

    def _bind(
        self, path: str, tensor: BufferTensorDesc, binding: Binding, *, written: bool = False
    ) -> Extent:
        """Check a binding; return the bytes of its buffer that the tensor uses."""
        if hasattr(binding, "placed"):  # a tensor: a part of one, a tuple, is bytes of any type
            check_elements(self.name, path, tensor, binding.dtype)
        buffer, offset, nbytes = extent_of(self._device, self.name, path, binding, written=written)
        return bind_tensor(self.name, path, tensor, buffer, buffer.nbytes, offset, nbytes)


def _stored(device: OpenDevice, constant: Progression) -> Extent:
    """Allocate and fill the memory of a constant of a plan."""
    buffer = Buffer(device, constant.nbytes)
    buffer.fill_with([constant.array()])
    return Extent(buffer, 0, constant.nbytes)
