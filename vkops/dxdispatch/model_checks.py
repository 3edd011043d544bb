"""The checks that come after reading: descriptors at a feature level, bindings, printing.

They run in the order in which DxDispatch would meet the faults, and in its words, but before
anything has been created, dispatched or written.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from vkops.dml import (
    BufferTensorDesc,
    FeatureLevel,
    TensorDataType,
    TensorFlags,
)
from vkops.dml.binding import BoundTensor, bind, check_hazards
from vkops.dml.operator_desc import NamedTensor
from vkops.dxdispatch import onnx_dispatchable, shader_dispatchable
from vkops.dxdispatch.descriptors import misfit, with_dml_names
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
from vkops.errors import BindingError, InvalidDescError, ModelError, show

Slots = tuple[BindingSource | None, ...]  # one per tensor, in the order of the struct


@dataclass(frozen=True)
class BoundDispatch:
    """A dispatch command with one source per tensor; None where nothing is to be bound."""

    command: DispatchCommand
    inputs: Slots
    outputs: Slots


Bound = BoundDispatch | BoundOnnx | BoundShader


@dataclass(frozen=True)
class Prepared:
    """A model that can run: what to initialise, and the commands with their bindings."""

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
            reason = misfit(dispatchable.node, error)
            raise ModelError(
                f"ERROR creating dispatchable '{dispatchable.name}': {reason}"
            ) from error
    initial_inputs = {}
    for dispatchable in operators:
        try:
            slots = _initial_inputs(dispatchable)
        except ModelError as error:
            raise ModelError(f"ERROR while initializing '{dispatchable.name}': {error}") from error
        if any(slots):
            initial_inputs[dispatchable.name] = slots
    return Prepared(model, initial_inputs, tuple(map(_prepare_command, model.commands)))


def _prepare_command(command: Command) -> Command | Bound:
    if isinstance(command, DispatchCommand):
        dispatchable = command.dispatchable
        try:
            if isinstance(dispatchable, DmlDispatchable):
                return _bind(command, dispatchable)
            if isinstance(dispatchable, ShaderDispatchable):
                return shader_dispatchable.bind(command, dispatchable)
            return onnx_dispatchable.bind(command, dispatchable)
        except ModelError as error:
            raise ModelError(f"ERROR while binding resources: {error}") from error
    if isinstance(command, PrintCommand):
        resource = command.resource
        unknown = TensorDataType.UNKNOWN
        if isinstance(resource, BufferResource) and resource.data_type is unknown:
            wrong = command.node.error(f"{quote(resource.name)} has no data type")
            raise ModelError(f"Failed to print resource: {wrong}")
    return command


def _initial_inputs(dispatchable: DmlDispatchable) -> Slots:
    """Return the sources of OWNED_BY_DML inputs (T-17), checked; the others stay unbound."""
    bindings, place = dispatchable.init_bindings, dispatchable.node
    slots = _slots(dispatchable, "input", bindings, place, _owned, "initialization")
    _bound(slots, dispatchable.desc.inputs)
    return slots


def _bind(command: DispatchCommand, dispatchable: DmlDispatchable) -> BoundDispatch:
    bindings, place = command.bindings, command.node["bindings"]
    inputs = _slots(dispatchable, "input", bindings, place, _not_owned, "execution")
    outputs = _slots(dispatchable, "output", bindings, place, _not_owned, "execution")
    _check_hazards(dispatchable, inputs, outputs)
    return BoundDispatch(command, inputs, outputs)


def _owned(tensor: BufferTensorDesc) -> bool:
    return TensorFlags.OWNED_BY_DML in tensor.flags


def _not_owned(tensor: BufferTensorDesc) -> bool:
    return not _owned(tensor)


def _slots(
    dispatchable: DmlDispatchable,
    role: str,
    bindings: Bindings,
    place: Node,
    wanted: Callable[[BufferTensorDesc], bool],
    phase: str,
) -> Slots:
    """Return the source of every tensor of a role that is wanted in this phase.

    A bind point none of whose tensors is wanted must be left out; one with both kinds (a JOIN
    of which one input is OWNED_BY_DML) names a source for each, and each phase takes its own.
    """
    slots: list[BindingSource | None] = []
    for spec in type(dispatchable.desc).FIELDS:
        value = getattr(dispatchable.desc, spec.name)
        if spec.role != role or value is None:
            continue
        tensors: Sequence[BufferTensorDesc] = value if isinstance(value, tuple) else (value,)
        sources = bindings.get(spec.dml_name)
        takes = [wanted(tensor) for tensor in tensors]
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
        if not any(takes):
            raise sources[0].node.error(
                f"{spec.dml_name} is {'' if wanted is _not_owned else 'not '}OWNED_BY_DML and "
                f"must not be bound at {phase} [{'T-17' if wanted is _not_owned else 'B-03'}]"
            )
        slots += [source if take else None for source, take in zip(sources, takes, strict=True)]
    return tuple(slots)


def _check_range(source: BindingSource, path: str, tensor: BufferTensorDesc) -> BoundTensor:
    """Check offset and size of one binding; it reaches to the end of the resource."""
    resource = source.resource
    assert isinstance(resource, BufferResource)
    rest = max(0, resource.size - source.offset)
    try:
        return bind("", path, tensor, resource.name, resource.size, source.offset, rest)
    except BindingError as error:
        raise _at(source, error) from error


def _check_hazards(dispatchable: DmlDispatchable, inputs: Slots, outputs: Slots) -> None:
    """Refuse outputs that overlap each other (B-07) or an input (B-09)."""
    desc = dispatchable.desc
    read, written = _bound(inputs, desc.inputs), _bound(outputs, desc.outputs)
    try:
        check_hazards("", read, written, in_place=desc.runs_in_place)
    except BindingError as error:
        paths = [path for path, _ in desc.outputs]
        source = outputs[paths.index(error.field)]
        assert source is not None
        raise _at(source, error) from error


def _bound(slots: Slots, tensors: tuple[NamedTensor, ...]) -> list[BoundTensor]:
    return [
        _check_range(source, path, tensor)
        for source, (path, tensor) in zip(slots, tensors, strict=True)
        if source is not None
    ]


def _at(source: BindingSource, error: BindingError) -> ModelError:
    """Return the error with its place in the model, and fields by DirectML's names."""
    message = with_dml_names(error.message)
    return source.node.error(f"{quote(source.resource.name)}: {message} [{error.rule}]")
