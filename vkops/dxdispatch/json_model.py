"""A DxDispatch model in memory: resources, dispatchables and commands, names resolved."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from vkops.dml import ExecutionFlags, OperatorDesc, TensorDataType
from vkops.dxdispatch.initial_values import InitialValues
from vkops.dxdispatch.json_reader import Node

if TYPE_CHECKING:
    from vkops.dxdispatch.onnx_overrides import Overrides
    from vkops.onnx import Model as OnnxModel
    from vkops.shaders import Shader


@dataclass(frozen=True)
class BufferResource:
    """A buffer of ``size`` bytes that starts with ``values`` and ends with zeros."""

    name: str
    size: int
    data_type: TensorDataType
    values: InitialValues


@dataclass(frozen=True)
class DeferredResource:
    """What becomes of an output of an ONNX model: nothing is known of it before."""

    name: str


Resource = BufferResource | DeferredResource


@dataclass(frozen=True)
class BindingSource:
    """Where a tensor's buffer begins: a resource and an offset in bytes.

    ``shape`` is what the tensor of an ONNX model is to have, ``count`` the bytes that a shader is
    to see (None: all the rest).
    """

    resource: Resource
    offset: int
    node: Node
    shape: tuple[int, ...] | None = None
    count: int | None = None

    @property
    def nbytes(self) -> int:
        """Bytes of the resource, which is no deferred one, that are bound."""
        assert isinstance(self.resource, BufferResource)
        return max(0, self.resource.size - self.offset) if self.count is None else self.count


Bindings = Mapping[str, tuple[BindingSource, ...]]  # bind point name -> one source per tensor


@dataclass(frozen=True)
class DmlDispatchable:
    """A DirectML operator, how to compile it, and what its OWNED_BY_DML inputs start from."""

    name: str
    desc: OperatorDesc
    compile_graph: bool
    execution_flags: ExecutionFlags
    init_bindings: Bindings
    node: Node  # where the descriptor's fields are


@dataclass(frozen=True)
class OnnxDispatchable:
    """An ONNX model, and the sizes of what is free in its inputs."""

    name: str
    model: OnnxModel
    overrides: Overrides
    node: Node


@dataclass(frozen=True)
class ShaderDispatchable:
    """A compute shader, and the numbers it is pushed."""

    name: str
    shader: Shader
    push_constants: tuple[float, ...]
    node: Node


Dispatchable = DmlDispatchable | OnnxDispatchable | ShaderDispatchable


@dataclass(frozen=True)
class Command:
    """One entry of ``commands``; ``text`` is its JSON on one line."""

    text: str
    node: Node


@dataclass(frozen=True)
class DispatchCommand(Command):
    """Run an operator, a model or a shader; ``groups`` counts the workgroups of a shader."""

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
    """Write a resource to a file; ``dimensions`` is the shape a .npy file gets."""

    resource: Resource
    target: Path
    dimensions: tuple[int, ...] | None


@dataclass(frozen=True)
class Model:
    """A model whose names, types and sizes have been checked; see ``checks`` for the rest."""

    resources: Mapping[str, Resource]
    dispatchables: Mapping[str, Dispatchable]
    commands: tuple[Command, ...]
    warnings: tuple[str, ...]
