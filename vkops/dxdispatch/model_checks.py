"""The checks that follow reading: descriptors at a feature level, bindings, printing.

They find faults in the order and report them in the words of DxDispatch, but before anything has
been created, dispatched or written.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from vkops.dml import BufferTensorDesc, FeatureLevel, TensorDataType, TensorFlags
from vkops.dml.binding_rules import Placed, bind, check_hazards
from vkops.dml.operator_desc import NamedTensor
from vkops.dxdispatch import onnx_dispatchable, shader_dispatchable
from vkops.dxdispatch.descriptors import descriptor_error, with_dml_names
from vkops.dxdispatch.json_model import (
    Bindings,
    BindingSource,
    BufferResource,
    Command,
    DispatchCommand,
    DmlDispatchable,
    Model,
    PrintCommand,
    ShaderDispatchable,
)
from vkops.dxdispatch.json_reader import Node, quote
from vkops.dxdispatch.onnx_dispatchable import BoundOnnx
from vkops.dxdispatch.shader_dispatchable import BoundShader
from vkops.errors import BindingError, InvalidDescError, ModelError, VkopsError, show

Slots = tuple[BindingSource | None, ...]
"""One source for each tensor, in the order of the struct; None if nothing is bound to it."""


@dataclass(frozen=True)
class BoundDispatch:
    """A dispatch of an operator, with the sources of its tensors."""

    command: DispatchCommand
    inputs: Slots
    outputs: Slots


Bound = BoundDispatch | BoundOnnx | BoundShader


@dataclass(frozen=True)
class Prepared:
    """A model that can run: the inputs to initialise with, and the commands with their bindings."""

    model: Model
    initial_inputs: dict[str, Slots]  # of dispatchables with OWNED_BY_DML inputs
    commands: tuple[Command | Bound, ...]


def prepare(model: Model, feature_level: FeatureLevel) -> Prepared:
    """Check all that can be checked without a device.

    Raises:
        ModelError: in DxDispatch's words, what would fail and where.
    """
    if not isinstance(model, Model):
        raise ModelError(f"model: got {show(model)}, must be what load_model returns")
    operators = [d for d in model.dispatchables.values() if isinstance(d, DmlDispatchable)]
    for dispatchable in operators:
        try:
            dispatchable.desc.validate(feature_level)
        except InvalidDescError as error:
            reason = descriptor_error(dispatchable.node, error)
            raise ModelError(
                f"ERROR creating dispatchable '{dispatchable.name}': {reason}"
            ) from error
    initial_inputs = {}
    for dispatchable in operators:
        bindings, place = dispatchable.init_bindings, dispatchable.node
        with errors_after(f"ERROR while initializing '{dispatchable.name}'"):
            slots = _slots(dispatchable, "input", bindings, place, owned=True)
            _bound(slots, dispatchable.desc.inputs)
        if any(slots):
            initial_inputs[dispatchable.name] = slots
    return Prepared(model, initial_inputs, tuple(map(_prepare_command, model.commands)))


@contextmanager
def errors_after(prefix: str) -> Iterator[None]:
    """Turn errors of vkops into ModelErrors whose text begins with ``prefix``."""
    try:
        yield
    except VkopsError as error:
        raise ModelError(f"{prefix}: {error}") from error


def _prepare_command(command: Command) -> Command | Bound:
    if isinstance(command, DispatchCommand):
        dispatchable = command.dispatchable
        with errors_after("ERROR while binding resources"):
            if isinstance(dispatchable, DmlDispatchable):
                return _bind(command, dispatchable)
            if isinstance(dispatchable, ShaderDispatchable):
                return shader_dispatchable.bind(command, dispatchable)
            return onnx_dispatchable.bind(command, dispatchable)
    if isinstance(command, PrintCommand):
        resource, unknown = command.resource, TensorDataType.UNKNOWN
        if isinstance(resource, BufferResource) and resource.data_type is unknown:
            wrong = command.node.error(f"{quote(resource.name)} has no data type")
            raise ModelError(f"Failed to print resource: {wrong}")
    return command


def _bind(command: DispatchCommand, dispatchable: DmlDispatchable) -> BoundDispatch:
    desc, place = dispatchable.desc, command.node["bindings"]
    inputs, outputs = (
        _slots(dispatchable, role, command.bindings, place, owned=False)
        for role in ("input", "output")
    )
    read, written = _bound(inputs, desc.inputs), _bound(outputs, desc.outputs)
    try:
        check_hazards("", read, written, in_place=desc.runs_in_place)
    except BindingError as error:
        source = outputs[[path for path, _ in desc.outputs].index(error.field)]
        assert source is not None
        raise _binding_error(source, error) from error
    return BoundDispatch(command, inputs, outputs)


def _slots(
    dispatchable: DmlDispatchable, role: str, bindings: Bindings, place: Node, *, owned: bool
) -> Slots:
    """Return the sources of the tensors of a role that are bound in one phase.

    OWNED_BY_DML tensors are bound at initialization, the others at execution. A bind point that
    has tensors of the other phase only must be left out; one with both kinds (a JOIN of which one
    input is OWNED_BY_DML) names a source for each tensor, and each phase takes its own.
    """
    phase = "initialization" if owned else "execution"
    slots: list[BindingSource | None] = []
    for spec in type(dispatchable.desc).FIELDS:
        value = getattr(dispatchable.desc, spec.name)
        if spec.role != role:
            continue
        tensors: tuple[BufferTensorDesc, ...] = value if isinstance(value, tuple) else (value,)
        if value is None:  # an optional tensor that is left out
            tensors = ()
        sources = bindings.get(spec.dml_name)
        takes = [(TensorFlags.OWNED_BY_DML in tensor.flags) == owned for tensor in tensors]
        if sources is None:
            if any(takes):
                raise place.error(
                    f"Nothing bound for required tensor '{spec.dml_name}' at {phase}. [B-02]"
                )
            slots += [None] * len(tensors)
            continue
        if len(sources) != len(tensors):
            raise place.error(
                f"Bind point '{spec.dml_name}' requires {len(tensors)} resources, "
                f"but {len(sources)} were bound. [B-01]"
            )
        if sources and not any(takes):
            raise sources[0].node.error(
                f"{spec.dml_name} is {'not ' if owned else ''}OWNED_BY_DML and "
                f"must not be bound at {phase} [{'B-03' if owned else 'T-17'}]"
            )
        slots += [source if take else None for source, take in zip(sources, takes, strict=True)]
    return tuple(slots)


def _bound(slots: Slots, tensors: tuple[NamedTensor, ...]) -> list[Placed]:
    """Return the bound tensors, with offsets and sizes checked."""
    bound = []
    for source, (path, tensor) in zip(slots, tensors, strict=True):
        if source is None:
            continue
        buffer = source.buffer
        rest = max(0, buffer.size - source.offset)
        try:
            extent = bind("", path, tensor, buffer.name, buffer.size, source.offset, rest)
        except BindingError as error:
            raise _binding_error(source, error) from error
        bound.append((path, extent))
    return bound


def _binding_error(source: BindingSource, error: BindingError) -> ModelError:
    """Return the error with its place in the model, and DirectML's names of fields."""
    message = with_dml_names(error.message)
    return source.node.error(f"{quote(source.resource.name)}: {message} [{error.rule}]")
