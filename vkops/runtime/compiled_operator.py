"""Operators and graphs that are ready to run, and the checks of their bindings."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, overload

from vkops.dml import GraphDesc, OperatorDesc, TensorFlags
from vkops.dml.binding_rules import BoundTensor, bind, check_hazards
from vkops.dml.tensor_desc import BufferTensorDesc
from vkops.errors import BindingError, show
from vkops.gpu.run.buffer import Buffer, Resource
from vkops.gpu.run.executor import Executor
from vkops.gpu.run.pending import Pending
from vkops.plan.graph import Pipeline
from vkops.plan.region import CopyPlan, Progression
from vkops.runtime.bindings import Binding, resolve
from vkops.runtime.bound_operator import BoundOperator, StreamedOperator, bind_pipeline


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

    def __init__(self, executor: Executor, desc: OperatorDesc | GraphDesc) -> None:
        executor.check_open()
        self.name: str = desc.operator
        self.pipeline: Pipeline = desc.pipeline
        self.plan: CopyPlan = self.pipeline.plan
        self._executor = executor
        self._prepared = [executor.prepare(step.plan) for step in self.pipeline.steps]
        self._indices = sorted(
            {step.reads[n] for step in self.pipeline.steps for n in step.plan.index_inputs}
        )
        self._inputs, self._outputs = desc.inputs, desc.outputs
        self._owned = {
            number: tensor
            for number, (_, tensor) in enumerate(self._inputs)
            if tensor is not None and TensorFlags.OWNED_BY_DML in tensor.flags
        }
        self._in_place = desc.runs_in_place
        self._constants = {
            number: _stored(executor, constant)
            for number, constant in self.pipeline.constants.items()
        }
        self._persistent: dict[int, Resource] = {}

    @property
    def binding_properties(self) -> BindingProperties:
        """Sizes of the resources that DirectML would ask the caller to bind."""
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
            BindingError: B-01 to B-06, or initialised before (B-18).
        """
        self._check_count("inputs", inputs, self._inputs)
        sources: dict[int, BoundTensor] = {}
        for number, ((path, tensor), binding) in enumerate(zip(self._inputs, inputs, strict=True)):
            if number in self._owned:
                sources[number] = self._bind(path, self._owned[number], binding)
            elif binding is not None and tensor is not None:
                message = "is bound at initialisation, must be None: it is not OWNED_BY_DML"
                raise BindingError(self.name, path, message, "B-03")
        persistent = {
            number: source.resource.clone(source.begin, source.nbytes)
            for number, source in sources.items()
        }
        self._executor.exclusive(lambda: self._keep(persistent))

    def _keep(self, persistent: dict[int, Resource]) -> None:
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
        """Run the operator and wait until its outputs are complete, or do not wait.

        Without waiting, the device works while the host continues; two submissions can be pending.
        Reading the memory, or running an operator that needs the results, waits for them.

        Args:
            inputs: per input tensor a buffer, tensor or (buffer, offset, bytes); None for those
                that are OWNED_BY_DML. An entry for an input of a graph that nothing reads is
                ignored.
            outputs: per output tensor a buffer, tensor or (buffer, offset, bytes).
            wait: whether to wait.

        Returns:
            None, or a handle whose ``wait()`` also raises the errors of the device.

        Raises:
            BindingError: a binding breaks one of B-01 to B-09, T-17, B-18 or B-21 to B-23; nothing
                was run.
            DeviceError: the device is closed.
        """
        bound = self.bind(inputs, outputs)
        if wait:
            return bound.dispatch()
        return bound.start()

    def bind(
        self, inputs: Sequence[Binding], outputs: Sequence[Binding]
    ) -> BoundOperator | StreamedOperator:
        """Check bindings once, to dispatch with them many times.

        Source: IDMLBindingTable. Arguments and errors are those of ``dispatch``.
        """
        self._check_count("inputs", inputs, self._inputs)
        self._check_count("outputs", outputs, self._outputs)
        read = {
            self.pipeline.inputs[number]: self._initialized(number, path, binding)
            if number in self._owned
            else self._bind(path, tensor, binding)
            for number, ((path, tensor), binding) in enumerate(
                zip(self._inputs, inputs, strict=True)
            )
            if tensor is not None  # an input of a graph that nothing reads
        }
        written = {
            number: self._bind(path, tensor, binding, written=True)
            for number, (path, tensor), binding in zip(
                self.pipeline.outputs, self._outputs, outputs, strict=True
            )
        }
        check_hazards(self.name, [*read.values()], [*written.values()], in_place=self._in_place)
        bound = {**read, **written, **self._constants}
        return bind_pipeline(
            self._executor,
            self.pipeline,
            self._prepared,
            bound,
            read.keys() | self._constants.keys(),
            self._indices,
            self.name,
        )

    # -- bindings ---------------------------------------------------------------------------------

    def _check_count(
        self, field: str, bindings: Sequence[Binding], tensors: Sequence[object]
    ) -> None:
        if not isinstance(bindings, Sequence) or isinstance(bindings, (str, bytes)):
            message = f"got {show(bindings)}, must be a list of bindings"
        elif len(bindings) != len(tensors):
            message = f"got {len(bindings)} bindings, must be {len(tensors)}"
        else:
            return
        raise BindingError(self.name, field, message, "B-01")

    def _initialized(self, number: int, path: str, binding: Binding) -> BoundTensor:
        if binding is not None:
            message = "is bound at execution, must be None: it is OWNED_BY_DML"
            raise BindingError(self.name, path, message, "T-17")
        if number not in self._persistent:
            message = "is OWNED_BY_DML and not initialised; call initialize first"
            raise BindingError(self.name, path, message, "B-18")
        owned = self._persistent[number]
        return BoundTensor(owned, 0, owned.nbytes, path)

    def _bind(
        self, path: str, tensor: BufferTensorDesc, binding: Binding, *, written: bool = False
    ) -> BoundTensor:
        """Check a binding; return the bytes of its buffer that the tensor uses."""
        buffer, offset, nbytes = resolve(self._executor, self.name, path, binding, written=written)
        return bind(self.name, path, tensor, buffer, buffer.nbytes, offset, nbytes)


def _stored(executor: Executor, constant: Progression) -> BoundTensor:
    """Allocate and fill the memory of a constant of a plan."""
    buffer = Buffer(executor, constant.nbytes)
    buffer.write(constant.array())
    return BoundTensor(buffer, 0, constant.nbytes, "")
