"""A DxDispatch model in memory: resources, dispatchables and commands, with names resolved."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import rapidjson

from vkops.dml import ExecutionFlags, OperatorDesc, TensorDataType
from vkops.dxdispatch.initial_values import InitialValues
from vkops.dxdispatch.json_reader import Node
from vkops.errors import ModelError

if TYPE_CHECKING:
    from vkops.onnx import Model as OnnxModel
    from vkops.onnx.value_info import ValueInfo
    from vkops.shaders import Shader

Shape = tuple[int, ...]


@dataclass(frozen=True)
class BufferResource:
    """A buffer of ``size`` bytes that starts with ``values`` and ends with zeros."""

    name: str
    size: int
    data_type: TensorDataType
    values: InitialValues


@dataclass(frozen=True)
class DeferredResource:
    """An output of an ONNX model, whose type and shape are known when it has run."""

    name: str


Resource = BufferResource | DeferredResource


@dataclass(frozen=True)
class BindingSource:
    """The resource that a tensor or block is bound to, from an offset in bytes on.

    ``shape`` is the shape that the tensor of an ONNX model must have, ``count`` the number of bytes
    that a shader sees (None: all the rest).
    """

    resource: Resource
    offset: int
    node: Node
    shape: Shape | None = None
    count: int | None = None

    @property
    def buffer(self) -> BufferResource:
        """The resource, which is not a deferred one."""
        assert isinstance(self.resource, BufferResource)
        return self.resource

    @property
    def nbytes(self) -> int:
        """Bytes of the buffer that are bound."""
        return max(0, self.buffer.size - self.offset) if self.count is None else self.count


Bindings = Mapping[str, tuple[BindingSource, ...]]
"""Bind points, with one source for each tensor."""


@dataclass(frozen=True)
class DmlDispatchable:
    """A DirectML operator, how to compile it, and the sources of its OWNED_BY_DML inputs."""

    name: str
    desc: OperatorDesc
    compile_graph: bool
    execution_flags: ExecutionFlags
    init_bindings: Bindings
    node: Node  # where the descriptor's fields are


@dataclass(frozen=True)
class Overrides:
    """Sizes of free dimensions, by name and by denotation, and shapes of tensors, by name."""

    names: Mapping[str, int] = field(default_factory=dict)
    denotations: Mapping[str, int] = field(default_factory=dict)
    shapes: Mapping[str, Shape] = field(default_factory=dict)

    def over(self, other: Overrides) -> Overrides:
        """Return both together; where both name the same, these count."""
        return Overrides(
            {**other.names, **self.names},
            {**other.denotations, **self.denotations},
            {**other.shapes, **self.shapes},
        )

    def check(self, model: OnnxModel) -> None:
        """Refuse names of dimensions, denotations and tensors that a model does not have."""
        inputs = model.inputs
        known: dict[str, tuple[Mapping[str, Any], set[Any]]] = {
            "free dimension": (self.names, {s for e in inputs for s in e.shape or ()}),
            "denotation": (self.denotations, {d for e in inputs for d in e.denotations}),
            "tensor": (self.shapes, {e.name for e in (*inputs, *model.outputs)}),
        }
        for kind, (given, names) in known.items():
            for name in (name for name in given if name not in names):
                listed = ", ".join(sorted(repr(n) for n in names if isinstance(n, str) and n))
                raise ModelError(f"no {kind} {name!r} in the ONNX model; it has {listed or 'none'}")

    def shape(self, entry: ValueInfo, bound: Shape | None = None) -> Shape:
        """Return the shape of an input: overridden, bound or declared, with 1 for free sizes."""
        given = self.shapes.get(entry.name, bound)
        if given is not None:
            return given
        denotations = (*entry.denotations, *("",) * len(entry.shape or ()))
        return tuple(
            size
            if isinstance(size, int)
            else self.names.get(size or "", self.denotations.get(denotation, 1))
            for size, denotation in zip(entry.shape or (), denotations, strict=False)
        )


@dataclass(frozen=True)
class OnnxDispatchable:
    """An ONNX model, and the sizes of its free dimensions."""

    name: str
    model: OnnxModel
    overrides: Overrides
    node: Node


@dataclass(frozen=True)
class ShaderDispatchable:
    """A compute shader, and its push constants."""

    name: str
    shader: Shader
    push_constants: tuple[float, ...]
    node: Node


Dispatchable = DmlDispatchable | OnnxDispatchable | ShaderDispatchable


@dataclass(frozen=True)
class Command:
    """One entry of ``commands``."""

    node: Node

    @property
    def text(self) -> str:
        """Its JSON on one line."""
        return str(rapidjson.dumps(self.node.value, ensure_ascii=False))


@dataclass(frozen=True)
class DispatchCommand(Command):
    """Run an operator, a model or a shader; ``groups`` are the workgroups of a shader."""

    dispatchable: Dispatchable
    bindings: Bindings
    groups: tuple[int, int, int] = (1, 1, 1)


@dataclass(frozen=True)
class PrintCommand(Command):
    """Print the values of a resource."""

    resource: Resource
    verbose: bool


@dataclass(frozen=True)
class WriteFileCommand(Command):
    """Write a resource to a file; ``dimensions`` is the shape in a .npy file."""

    resource: Resource
    target: Path
    dimensions: tuple[int, ...] | None


@dataclass(frozen=True)
class Model:
    """A model whose names, types and sizes have been checked; ``prepare`` checks the rest."""

    resources: Mapping[str, Resource]
    dispatchables: Mapping[str, Dispatchable]
    commands: tuple[Command, ...]
    warnings: tuple[str, ...]
