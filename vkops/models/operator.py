"""DirectML operators."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import TYPE_CHECKING, Any

import numpy as np

from vkops import dml
from vkops.dml.binding_rules import Placed, bind_tensor, check_hazards
from vkops.errors import BindingError, InvalidDescError, ModelError
from vkops.models.descriptors import descriptor_error, read_descriptor, read_flags, with_dml_names
from vkops.models.initial_values import dtype_of
from vkops.models.json_reader import Node, quote
from vkops.models.model import (
    CheckedDispatch,
    Dispatchable,
    DispatchCommand,
    Execution,
    OutputArray,
    ReadContext,
    TensorBinding,
)
from vkops.models.resources import (
    Bindings,
    BindingSource,
    Resources,
    errors_after,
    read_bindings,
    wrong_count,
)

if TYPE_CHECKING:
    from vkops.models.target import Run

_Tensors = tuple[TensorBinding, ...]

_OTHER_NAMES = {"SCATTER_ELEMENTS": "SCATTER"}
"""Names of DML_OPERATOR_TYPE that have the same value as another."""

_NEAR_MOVEMENT = {
    "CAST": "it converts values, and vkops moves data",
    "NONZERO_COORDINATES": "how much it writes depends on the data",
    "FOLD": "it adds elements, and vkops moves data",
}
"""Reasons why operators that resemble data-movement operators are not available."""


@dataclass(frozen=True)
class DmlDispatchable(Dispatchable):
    """A DirectML operator, and the sources of its OWNED_BY_DML inputs."""

    desc: dml.OperatorDesc
    compile_graph: bool = False
    execution_flags: dml.ExecutionFlags = dml.ExecutionFlags.NONE
    init_bindings: Bindings = field(default_factory=dict)

    @classmethod
    def read(cls, name: str, node: Node, context: ReadContext) -> DmlDispatchable:
        """Read an operator by its name, which may begin with DML_OPERATOR_."""
        operator = _operator(node.required("type", "Type"))
        fields = node.optional("desc", "Desc") or node
        compile_type = node.optional("dmlCompileType")
        flags, bindings = node.optional("executionFlags"), node.optional("bindings")
        dispatchable = cls(
            name,
            fields,
            read_descriptor(fields, operator),
            compile_type is not None
            and compile_type.choice("DmlCompileOp", "DmlCompileGraph") == "DmlCompileGraph",
            read_flags(flags, dml.ExecutionFlags, "DML_EXECUTION_FLAG_"),
        )
        if bindings is None:
            return dispatchable
        return replace(
            dispatchable, init_bindings=dispatchable.read_bindings(bindings, context.resources)
        )

    def read_bindings(self, node: Node, resources: Resources) -> Bindings:
        points = {}
        for spec in self.desc.FIELDS:
            if spec.role != "attribute":
                tensors = getattr(self.desc, spec.name)
                tensors = tensors if isinstance(tensors, tuple) else (tensors,)
                points[spec.dml_name] = tuple(t and t.data_type for t in tensors)
        return read_bindings(node, self.desc.operator, points, resources.source)

    def check_level(self, level: dml.FeatureLevel) -> None:
        try:
            self.desc.validate(level)
        except InvalidDescError as error:
            reason = descriptor_error(self.node, error)
            raise ModelError(f"ERROR creating dispatchable '{self.name}': {reason}") from error

    def check_initialization(self) -> None:
        with errors_after(f"ERROR while initializing '{self.name}'"):
            _placed(self.owned)

    @property
    def owned(self) -> _Tensors:
        """The inputs; only those that are OWNED_BY_DML have a source."""
        return self._tensors("input", self.init_bindings, self.node, owned=True)

    def check_bindings(self, command: DispatchCommand) -> CheckedDispatch:
        """Check offsets and sizes, and that no output overlaps another tensor."""
        place = command.node["bindings"]
        inputs, outputs = (
            self._tensors(role, command.bindings, place, owned=False)
            for role in ("input", "output")
        )
        read, written = _placed(inputs), _placed(outputs)
        try:
            check_hazards("", read, written, in_place=self.desc.runs_in_place)
        except BindingError as error:
            source = next(tensor.source for tensor in outputs if tensor.name == error.field)
            assert source is not None
            raise _binding_error(source, error) from error
        return CheckedDispatch(command.node, self, inputs, outputs)

    def _tensors(self, role: str, bindings: Bindings, place: Node, *, owned: bool) -> _Tensors:
        """Return the tensors of a role, with the sources of those that are bound in this phase.

        OWNED_BY_DML tensors are bound at initialization, the others at execution. A bind point must
        be left out if all its tensors are bound in the other phase. A bind point with tensors of
        both phases, such as the inputs of a JOIN of which one is OWNED_BY_DML, names a source for
        each tensor; each phase uses its own.
        """
        phase = "initialization" if owned else "execution"
        items: list[TensorBinding] = []
        named = iter(self.desc.inputs if role == "input" else self.desc.outputs)
        for spec in self.desc.FIELDS:
            value = getattr(self.desc, spec.name)
            if spec.role != role:
                continue
            # An optional tensor can be left out.
            count = len(value) if isinstance(value, tuple) else int(value is not None)
            tensors = [*islice(named, count)]
            sources = bindings.get(spec.dml_name)
            takes = [
                (dml.TensorFlags.OWNED_BY_DML in tensor.flags) == owned for _, tensor in tensors
            ]
            if sources is None and any(takes):
                raise place.error(
                    f"Nothing bound for required tensor '{spec.dml_name}' at {phase}. [B-02]"
                )
            if sources is not None and len(sources) != count:
                raise wrong_count(place, spec.dml_name, count, sources)
            if sources and not any(takes):
                raise sources[0].node.error(
                    f"{spec.dml_name} is {'not ' if owned else ''}OWNED_BY_DML and "
                    f"must not be bound at {phase} [{'B-03' if owned else 'T-17'}]"
                )
            for (path, tensor), source, is_own in zip(
                tensors, sources or [None] * count, takes, strict=True
            ):
                shape = tensor.sizes if tensor.effective_strides == tensor.packed_strides else None
                items.append(TensorBinding(path, tensor, source if is_own else None, shape))
        return tuple(items)

    def compile(self, execution: Execution) -> Any:
        target = execution.target
        with errors_after(f"ERROR creating dispatchable '{self.name}'"):
            created = target.create_operator(self.desc)
        with execution.compiling(self), errors_after(f"ERROR while initializing '{self.name}'"):
            owned = [*map(execution.binding, self.owned)]
            return target.compile_operator(created, self.execution_flags, owned)

    def bind(self, dispatch: CheckedDispatch, execution: Execution) -> Run:
        inputs, outputs = (
            [*map(execution.binding, tensors)] for tensors in (dispatch.inputs, dispatch.outputs)
        )
        return execution.compiled[self.name](inputs, outputs)  # type: ignore[no-any-return]

    def outputs(self, dispatch: CheckedDispatch, execution: Execution) -> Iterator[OutputArray]:
        for tensor in dispatch.outputs:
            desc, (buffer, offset, _) = tensor.desc, execution.binding(tensor)
            data = buffer.read(offset, desc.total_tensor_size_in_bytes)
            dtype = dtype_of(desc.data_type)
            array = np.frombuffer(data, dtype, len(data) // dtype.itemsize)
            yield OutputArray(with_dml_names(tensor.name), array)

    @property
    def kind(self) -> str:  # type: ignore[override]
        """The operator's name."""
        return self.desc.operator

    @property
    def lowest_level(self) -> dml.FeatureLevel:
        return self.desc.minimum_feature_level()


def _operator(node: Node) -> type[dml.OperatorDesc]:
    """Return the class of the operator with the name in ``type``."""
    available = ", ".join(sorted(dml.OPERATORS))
    if node.string().lower() == "dmlserializedgraph":
        raise node.error(f"DML graphs are not available, only DirectML operators: {available}")
    name = node.string().removeprefix("DML_OPERATOR_")
    if name in _NEAR_MOVEMENT:
        raise node.error(f"operator {name} is not available: {_NEAR_MOVEMENT[name]}")
    operator = dml.OPERATORS.get(_OTHER_NAMES.get(name, name))
    if operator is None:
        message = f"operator {quote(node.string())} is not available; available: {available}"
        raise node.error(message)
    return operator


def _placed(tensors: _Tensors) -> list[Placed]:
    """Return the bound tensors and their bytes, after checking offsets and sizes."""
    placed = []
    for tensor in tensors:
        source = tensor.source
        if source is None:
            continue
        name, size = source.resource.name, source.resource.size
        try:
            rest = max(0, size - source.offset)
            extent = bind_tensor("", tensor.name, tensor.desc, name, size, source.offset, rest)
        except BindingError as error:
            raise _binding_error(source, error) from error
        placed.append((tensor.name, extent))
    return placed


def _binding_error(source: BindingSource, error: BindingError) -> ModelError:
    """Return the error with its path in the model, and DirectML's names of fields."""
    message = with_dml_names(error.message)
    return source.node.error(f"{quote(source.resource.name)}: {message} [{error.rule}]")
