"""A DxDispatch model in memory: resources, dispatchables and commands, with names resolved."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import rapidjson

from vkops.dml import ExecutionFlags, OperatorDesc, TensorDataType
from vkops.dxdispatch.initial_values import InitialValues
from vkops.dxdispatch.json_reader import Node

if TYPE_CHECKING:
    from vkops.onnx import Model as OnnxModel
    from vkops.onnx.free_dimensions import Overrides
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
class OnnxDispatchable:
    """An ONNX model, and the sizes of its free dimensions."""

    name: str
    model: OnnxModel
    overrides: Overrides
    node: Node


@dataclass(frozen=True)
class ShaderDispatchable:
    """A compute shader, and its push constants; ``load`` loads it again, with source lines."""

    name: str
    shader: Shader
    push_constants: tuple[float, ...]
    node: Node
    load: Callable[[], Shader]


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
    """Run an operator, a model or a shader.

    ``groups`` are the numbers of workgroups of a shader, or the resource that holds them.
    """

    dispatchable: Dispatchable
    bindings: Bindings
    groups: tuple[int, int, int] | BindingSource = (1, 1, 1)


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
