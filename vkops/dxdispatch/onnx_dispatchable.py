"""ONNX dispatchables: read from a model's JSON, and bound to resources."""

from __future__ import annotations

from contextlib import suppress
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
    Shape,
)
from vkops.dxdispatch.json_reader import Node, quote
from vkops.errors import MissingPackageError, ModelError

if TYPE_CHECKING:
    from vkops.onnx import Model
    from vkops.onnx.free_dimensions import Overrides
    from vkops.onnx.value_info import InputType, ValueInfo


def read_onnx(path: Path, *, allow_paths: bool = False) -> Model:
    """Read an ONNX model; ``allow_paths`` is ``Model``'s.

    Raises:
        ModelError: it cannot be read or run.
        MissingPackageError: the onnx package is missing.
    """
    try:
        from vkops.onnx import Model
    except MissingPackageError as error:
        raise MissingPackageError(f"{path}: {error}", name=error.name) from error
    return Model(path, allow_paths=allow_paths)


def read_dispatchable(
    name: str, node: Node, folders: Folders, overrides: Overrides | None
) -> OnnxDispatchable:
    """Read a dispatchable of type ``onnx``; ``overrides`` count before its own."""
    source = node.required("sourcePath")
    path = folders.find(source)
    names, denotations = (
        {key: size.uint() for key, size in (sizes.members() if sizes else ())}
        for sizes in (
            node.optional(f"freeDimension{kind}Overrides") for kind in ("Name", "Denotation")
        )
    )
    node.known("type", "Type", "sessionOptionsConfigEntries")
    for ignored in ("graphOptimizationLevel", "loggingLevel"):  # ONNX Runtime's own
        node.optional_uint(ignored)
    try:
        model = read_onnx(path, allow_paths=folders.allow_paths)
        from vkops.onnx.free_dimensions import Overrides

        own = Overrides(names, denotations)
        own.check(model)
    except (MissingPackageError, ModelError) as error:
        raise source.error(str(error)) from error
    return OnnxDispatchable(name, model, overrides.over(own) if overrides else own, node)


def bind_points(dispatchable: OnnxDispatchable) -> dict[str, tuple[TensorDataType | None, ...]]:
    """Return the names of a model's inputs and outputs, with their data types if DirectML's."""
    entries = (*dispatchable.model.inputs, *dispatchable.model.outputs)
    return {e.name: (None if e.dtype is None else data_type_of(e.dtype),) for e in entries}


@dataclass(frozen=True)
class OnnxBinding:
    """A tensor of a model, its shape, and the resource it is bound to, if any."""

    entry: ValueInfo
    source: BindingSource | None
    shape: Shape

    @property
    def is_deferred(self) -> bool:
        """Whether it is bound to a deferred resource."""
        return self.source is not None and isinstance(self.source.resource, DeferredResource)

    def check_result(self, shape: Shape, dtype: np.dtype[Any]) -> None:
        """Check the shape and type of an output against what it is bound to."""
        if self.source is None:
            return
        if self.source.shape is not None and self.source.shape != shape:
            raise self.source.node.error(
                f"got shape {self.source.shape}, must be {shape}, which the model makes"
            )
        self.check_size(shape, dtype)

    def check_size(self, shape: Shape, dtype: np.dtype[Any] | None) -> None:
        """Check that a tensor has a data type of DirectML, and fits into its resource."""
        if self.source is None or self.is_deferred:
            return
        node, resource = self.source.node, self.source.buffer
        if dtype is None or data_type_of(dtype) is None:
            raise node.error(f"'{self.entry.name}' holds {dtype}, which is not a tensor data type")
        needed = prod(shape) * dtype.itemsize
        if needed > resource.size:
            raise node.error(
                f"'{self.entry.name}' of shape {shape} needs {needed} bytes, "
                f"{quote(resource.name)} has {resource.size}"
            )


@dataclass(frozen=True)
class BoundOnnx:
    """A dispatch of a model, with the bindings of its tensors."""

    command: DispatchCommand
    dispatchable: OnnxDispatchable
    inputs: tuple[OnnxBinding, ...]
    outputs: tuple[OnnxBinding, ...]


def bind(command: DispatchCommand, dispatchable: OnnxDispatchable) -> BoundOnnx:
    """Check the bindings of a dispatch, and the model's nodes at the shapes of its inputs."""
    from vkops.onnx.lowering import LoweredTensor, NeedsValueError

    model = dispatchable.model
    inputs = tuple(
        _binding(entry, command, dispatchable)
        for entry in model.inputs
        if entry.name in command.bindings or entry.name not in model.constants
    )
    outputs = tuple(_binding(entry, command, dispatchable) for entry in model.outputs)
    for binding in inputs:
        binding.check_size(binding.shape, binding.entry.dtype)
    forms = {b.entry.name: form_of(b.entry, b.shape) for b in inputs}
    if not any(binding.is_deferred for binding in inputs):
        with suppress(NeedsValueError):  # they are then checked when the elements are known
            for binding, made in zip(outputs, model.lower(forms, {}).outputs, strict=True):
                if isinstance(made, LoweredTensor):
                    binding.check_result(made.shape, made.dtype)
    return BoundOnnx(command, dispatchable, inputs, outputs)


def _binding(
    entry: ValueInfo, command: DispatchCommand, dispatchable: OnnxDispatchable
) -> OnnxBinding:
    sources = command.bindings.get(entry.name, ())
    if len(sources) > 1:
        raise sources[1].node.error(
            f"Bind point '{entry.name}' requires 1 resources, but {len(sources)} were bound. [B-01]"
        )
    source = sources[0] if sources else None
    if source is not None and entry.kind != "tensor":
        raise source.node.error(f"'{entry.name}' is a {entry.kind}, which cannot be bound")
    shape = dispatchable.overrides.shape(entry, None if source is None else source.shape)
    return OnnxBinding(entry, source, shape)


def form_of(entry: ValueInfo, shape: Shape) -> InputType:
    """Return the form of an input that a model is specialized to; sequences are empty."""
    from vkops.onnx.value_info import SequenceType, TensorType

    dtype = entry.dtype or np.dtype(np.float32)
    return TensorType(dtype, shape) if entry.kind == "tensor" else SequenceType(dtype, ())
