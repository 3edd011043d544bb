"""ONNX models: dispatchables of a DxDispatch model, or files that are run alone."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from math import prod
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np

from vkops.errors import MissingPackageError, ModelError, OutOfDeviceMemoryError, show
from vkops.models.initial_values import data_type_of
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
    SOURCE_FIELDS,
    Bindings,
    BindingSource,
    Resources,
    Shape,
    read_bindings,
    wrong_count,
)
from vkops.plan.size_limits import LimitError, check_shape

if TYPE_CHECKING:
    from vkops.gpu.run.streaming import Progress
    from vkops.models.target import Run
    from vkops.onnx import Model
    from vkops.onnx.free_dimensions import Overrides
    from vkops.onnx.value_info import InputType, ValueInfo


class OnnxFile(NamedTuple):
    """An ONNX file that is run alone: the sizes of its free dimensions, and its inputs."""

    name: str
    model: Model
    overrides: Overrides
    inputs: Mapping[str, Any] = MappingProxyType({})

    @classmethod
    def read(cls, path: Path, overrides: Overrides | None, *, allow_paths: bool) -> OnnxFile:
        """Read a file; its model must have the dimensions and inputs that the overrides name."""
        model = read_model(path, allow_paths=allow_paths)
        from vkops.onnx.free_dimensions import Overrides

        overrides = overrides or Overrides()
        overrides.check(model)
        return cls(path.stem, model, overrides)


@dataclass(frozen=True)
class OnnxDispatchable(Dispatchable):
    """An ONNX model, and the sizes of its free dimensions."""

    types: ClassVar[Sequence[str]] = ("onnx",)
    kind: ClassVar[str] = "an ONNX model"

    model: Model
    overrides: Overrides

    @classmethod
    def read(cls, name: str, node: Node, context: ReadContext) -> OnnxDispatchable:
        source = node.required("sourcePath")
        path = context.folders.find(source)
        names, denotations = (
            {key: size.uint() for key, size in (sizes.members() if sizes else ())}
            for sizes in (
                node.optional(f"freeDimension{kind}Overrides") for kind in ("Name", "Denotation")
            )
        )
        node.known("type", "Type", "sessionOptionsConfigEntries")
        for ignored in ("graphOptimizationLevel", "loggingLevel"):  # options of ONNX Runtime only
            node.optional_uint(ignored)
        try:
            model = read_model(path, allow_paths=context.folders.allow_paths)
            from vkops.onnx.free_dimensions import Overrides

            overrides = Overrides(names, denotations)
            overrides.check(model)
        except (MissingPackageError, ModelError) as error:
            raise source.error(str(error)) from error
        others = context.overrides
        return cls(name, node, model, others.over(overrides) if others else overrides)

    def read_bindings(self, node: Node, resources: Resources) -> Bindings:
        entries = (*self.model.inputs, *self.model.outputs)
        points = {e.name: (None if e.dtype is None else data_type_of(e.dtype),) for e in entries}

        def source(node: Node) -> BindingSource:
            if not isinstance(node.value, dict):
                return BindingSource(resources.named(node), 0, node)
            node.known(*SOURCE_FIELDS)
            resource = resources.named(node.required("name"))
            for member in ("elementOffset", "counter", "format"):
                value = node.optional(member)
                if value is not None and value.value != 0:
                    raise value.error(f"'{member}' is not for tensors of ONNX models")
            shape = node.optional("shape")
            return BindingSource(resource, 0, node, None if shape is None else shape.uints())

        return read_bindings(node, self.name, points, source)

    def check_bindings(self, command: DispatchCommand) -> CheckedDispatch:
        from vkops.onnx.lowering import LoweredTensor, NeedsValueError

        model, bindings = self.model, command.bindings
        inputs = tuple(
            self._tensor(entry, bindings)
            for entry in model.inputs
            if entry.name in bindings or entry.name not in model.constants
        )
        outputs = tuple(self._tensor(entry, bindings) for entry in model.outputs)
        for tensor in inputs:
            _check_size(tensor, tensor.shape, tensor.desc.dtype)
        if not any(tensor.source and tensor.source.resource.is_deferred for tensor in inputs):
            with suppress(NeedsValueError):  # checked later, when the elements are known
                lowered = model.lower(types_of(inputs), {}).outputs
                for tensor, result in zip(outputs, lowered, strict=True):
                    if isinstance(result, LoweredTensor):
                        _check_result(tensor, result.shape, result.dtype)
        return CheckedDispatch(command.node, self, inputs, outputs)

    def _tensor(self, entry: ValueInfo, bindings: Bindings) -> TensorBinding:
        sources = bindings.get(entry.name, ())
        if len(sources) > 1:
            raise wrong_count(sources[1].node, entry.name, 1, sources)
        source = sources[0] if sources else None
        if source is not None and entry.kind != "tensor":
            raise source.node.error(f"'{entry.name}' is a {entry.kind}, which cannot be bound")
        shape = self.overrides.shape(entry, None if source is None else source.shape)
        return TensorBinding(entry.name, entry, source, shape)

    def compile(self, execution: Execution) -> Any:
        return execution.target.compile_onnx(self.model)

    def bind(self, dispatch: CheckedDispatch, execution: Execution) -> Run:
        deferred, tensor_of = execution.deferred, execution.target.tensor
        inputs: dict[str, Any] = {}
        for tensor in dispatch.inputs:
            source, entry = tensor.source, tensor.desc
            if source is None:
                inputs[entry.name] = default_input(entry, tensor.shape)
            elif not source.resource.is_deferred:
                buffer = execution.buffers[source.resource.name]
                inputs[entry.name] = tensor_of(buffer, tensor.shape, entry.dtype)
            elif source.resource.name in deferred:
                inputs[entry.name] = deferred[source.resource.name]
            else:
                raise source.node.error(f"{quote(source.resource.name)} has no value yet")
        results, run_session = execution.compiled[self.name](inputs)
        targets: dict[int, Any] = {}
        for index, (tensor, result) in enumerate(zip(dispatch.outputs, results, strict=True)):
            source = tensor.source
            if source is not None and not source.resource.is_deferred:
                _check_result(tensor, result.shape, result.dtype)
                buffer = execution.buffers[source.resource.name]
                targets[index] = tensor_of(buffer, result.shape, result.dtype)
        execution.seen(dispatch, inputs, results)

        def run(progress: Progress) -> None:
            values = execution.results[self.name] = run_session(progress, targets)
            for tensor, value in zip(dispatch.outputs, values, strict=True):
                if tensor.source is not None and tensor.source.resource.is_deferred:
                    deferred[tensor.source.resource.name] = value

        return run

    def outputs(self, dispatch: CheckedDispatch, execution: Execution) -> Iterator[OutputArray]:
        return output_arrays(self.model, execution.results[self.name])


def output_arrays(model: Model, values: Sequence[Any]) -> Iterator[OutputArray]:
    """Yield the outputs of a model that are tensors."""
    for entry, value in zip(model.outputs, values, strict=True):
        if value is not None and not isinstance(value, list):
            yield OutputArray(entry.name, np.ascontiguousarray(value).reshape(-1))


def read_model(path: Path, *, allow_paths: bool = False) -> Model:
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


def _check_result(tensor: TensorBinding, shape: Shape, dtype: np.dtype[Any]) -> None:
    """Check the shape and type of an output against the binding's."""
    source = tensor.source
    if source is not None and source.shape not in (None, shape):
        raise source.node.error(f"got shape {source.shape}, must be {shape}, which the model makes")
    _check_size(tensor, shape, dtype)


def _check_size(tensor: TensorBinding, shape: Shape, dtype: np.dtype[Any] | None) -> None:
    """Check that a tensor has a data type of DirectML, and fits into its resource."""
    source = tensor.source
    if source is None or source.resource.is_deferred:
        return
    if dtype is None or data_type_of(dtype) is None:
        raise source.node.error(f"'{tensor.name}' holds {dtype}, which is not a tensor data type")
    needed = prod(shape) * dtype.itemsize
    if needed > source.resource.size:
        raise source.node.error(
            f"'{tensor.name}' of shape {shape} needs {needed} bytes, "
            f"{quote(source.resource.name)} has {source.resource.size}"
        )


def types_of(inputs: Sequence[TensorBinding]) -> dict[str, InputType]:
    """Return the types of inputs that a model is specialized for; sequences are empty."""
    from vkops.onnx.value_info import type_at

    return {tensor.name: type_at(tensor.desc, tensor.shape) for tensor in inputs}


def default_input(entry: ValueInfo, shape: Shape) -> Any:
    """Return the value of an input that is missing: zeros, empty strings, or no tensors.

    Raises:
        ModelError: it is too large for any device, or its type is not known.
        OutOfDeviceMemoryError: the host has no memory for it.
    """
    from vkops.onnx.element_types import STRING

    if entry.kind != "tensor":
        return []
    if entry.dtype is None:
        raise ModelError(f"input {entry.name!r}: its type is not known")
    sizes = tuple(int(size) for size in shape)
    try:
        check_shape(sizes, entry.dtype.itemsize)
        return np.full(shape, "", STRING) if entry.dtype == STRING else np.zeros(shape, entry.dtype)
    except LimitError as error:
        raise ModelError(f"input {entry.name!r}: shape: {error}") from error
    except MemoryError as error:
        message = f"input {entry.name!r} of shape {show(sizes)}: the host has no memory for it"
        raise OutOfDeviceMemoryError(message) from error
