"""ONNX dispatchables: read from a model's JSON, and bound to resources."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from vkops.dml import TensorDataType
from vkops.dxdispatch.data_types import data_type_of
from vkops.dxdispatch.folders import Folders
from vkops.dxdispatch.json_model import (
    BindingSource,
    DeferredResource,
    DispatchCommand,
    OnnxDispatchable,
)
from vkops.dxdispatch.json_reader import Node, quote
from vkops.dxdispatch.onnx_overrides import Overrides, Shape, form_of
from vkops.errors import MissingPackageError, ModelError

if TYPE_CHECKING:
    from vkops.onnx import Model
    from vkops.onnx.forms import Declared, TensorForm


def read_onnx(path: Path, *, allow_paths: bool = False) -> Model:
    """Read an ONNX model, if there is something to read it with.

    ``allow_paths`` is ``Model``'s.

    Raises:
        ModelError: it cannot be read or run.
        MissingPackageError: the onnx package is missing.
    """
    try:
        from vkops.onnx import Model
    except MissingPackageError as error:
        raise MissingPackageError(f"{path}: {error}", name=error.name) from error
    return Model(path, allow_paths=allow_paths)


# -- from JSON -------------------------------------------------------------------------------------


def read_dispatchable(
    name: str, node: Node, folders: Folders, overrides: Overrides
) -> OnnxDispatchable:
    """Read a dispatchable of type ``onnx``; the command line's overrides go before its own."""
    source = node.required("sourcePath")
    path = folders.find(source)
    own = Overrides(
        _sizes(node.optional("freeDimensionNameOverrides")),
        _sizes(node.optional("freeDimensionDenotationOverrides")),
    )
    node.known("type", "Type", "sessionOptionsConfigEntries")
    for member in ("graphOptimizationLevel", "loggingLevel"):  # ONNX Runtime's own
        ignored = node.optional(member)
        if ignored is not None:
            ignored.uint()
    try:
        model = read_onnx(path, allow_paths=folders.allow_paths)
        own.check(model)
    except (MissingPackageError, ModelError) as error:
        raise source.error(str(error)) from error
    return OnnxDispatchable(name, model, overrides.over(own), node)


def _sizes(node: Node | None) -> dict[str, int]:
    return {} if node is None else {name: size.uint() for name, size in node.members()}


def bind_points(dispatchable: OnnxDispatchable) -> dict[str, TensorDataType | None]:
    """The names of a model's inputs and outputs, with their data types where DirectML has them."""
    model = dispatchable.model
    return {
        entry.name: None if entry.dtype is None else data_type_of(entry.dtype)
        for entry in (*model.inputs, *model.outputs)
    }


def read_shape(node: Node) -> Shape | None:
    """The ``shape`` of a binding; what only shaders have is refused."""
    for member in ("elementOffset", "counter", "format"):
        found = node.optional(member)
        if found is not None and found.value != 0:
            raise found.error(f"'{member}' is not for tensors of ONNX models")
    shape = node.optional("shape")
    return None if shape is None else tuple(item.uint() for item in shape.items())


# -- bindings --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Bound:
    """A tensor of a model and the resource it is bound to, if any."""

    entry: Declared
    source: BindingSource | None
    shape: Shape


@dataclass(frozen=True)
class BoundOnnx:
    """A dispatch of a model with all that is known of its tensors."""

    command: DispatchCommand
    dispatchable: OnnxDispatchable
    inputs: tuple[Bound, ...]
    outputs: tuple[Bound, ...]


def bind(command: DispatchCommand, dispatchable: OnnxDispatchable) -> BoundOnnx:
    """Check the bindings of a dispatch, and the nodes of the model at the shapes they give.

    Raises:
        ModelError: what would fail.
    """
    model = dispatchable.model
    given = [entry for entry in model.inputs if _is_given(entry, command, dispatchable)]
    inputs = tuple(_bound(entry, command, dispatchable) for entry in given)
    outputs = tuple(_bound(entry, command, dispatchable) for entry in model.outputs)
    for bound in inputs:
        _check_room(bound, bound.shape, bound.entry.dtype)
    bound_dispatch = BoundOnnx(command, dispatchable, inputs, outputs)
    for bound, form in zip(outputs, _results(bound_dispatch), strict=False):
        check_result(bound, form.shape, form.dtype)
    return bound_dispatch


def _is_given(entry: Declared, command: DispatchCommand, dispatchable: OnnxDispatchable) -> bool:
    """Whether an input is bound, or has nothing else to start from."""
    return entry.name in command.bindings or entry.name not in dispatchable.model.constants


def _bound(entry: Declared, command: DispatchCommand, dispatchable: OnnxDispatchable) -> Bound:
    sources = command.bindings.get(entry.name, ())
    if len(sources) > 1:
        raise sources[1].node.error(
            f"Bind point '{entry.name}' requires 1 resources, but {len(sources)} were bound. [B-01]"
        )
    source = sources[0] if sources else None
    if source is not None and entry.kind != "tensor":
        raise source.node.error(f"'{entry.name}' is a {entry.kind}, which cannot be bound")
    shape = dispatchable.overrides.shape(entry, None if source is None else source.shape)
    return Bound(entry, source, shape)


def check_result(bound: Bound, shape: Shape, dtype: np.dtype[Any]) -> None:
    """Check an output against what it is bound to."""
    source = bound.source
    if source is None:
        return
    if source.shape is not None and source.shape != shape:
        raise source.node.error(f"has shape {source.shape}, the model makes {shape}")
    _check_room(bound, shape, dtype)


def _check_room(bound: Bound, shape: Shape, dtype: np.dtype[Any] | None) -> None:
    source, name = bound.source, bound.entry.name
    if source is None or isinstance(source.resource, DeferredResource):
        return
    if dtype is None or data_type_of(dtype) is None:
        raise source.node.error(f"'{name}' holds {dtype}, which is no tensor data type")
    needed = prod(shape) * dtype.itemsize
    if needed > source.resource.size:
        raise source.node.error(
            f"'{name}' of shape {shape} needs {needed} bytes, "
            f"{quote(source.resource.name)} has {source.resource.size}"
        )


def _results(bound: BoundOnnx) -> list[TensorForm]:
    """What the outputs will be; nothing where that depends on what the inputs hold."""
    from vkops.onnx.forms import TensorForm
    from vkops.onnx.trace import NeedsValueError, Tensor

    for tensor in bound.inputs:
        if tensor.source is not None and isinstance(tensor.source.resource, DeferredResource):
            return []
    forms = {tensor.entry.name: form_of(tensor.entry, tensor.shape) for tensor in bound.inputs}
    try:
        outputs = bound.dispatchable.model.lower(forms, {}).outputs
    except NeedsValueError:
        return []
    return [TensorForm(o.dtype, o.shape) for o in outputs if isinstance(o, Tensor)]
