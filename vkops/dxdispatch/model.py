"""A DxDispatch model in memory: resources, dispatchables and commands, names resolved."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from vkops.dml import ExecutionFlags, OperatorDesc, TensorDataType
from vkops.dxdispatch.json_reader import Node
from vkops.dxdispatch.values import InitialValues


@dataclass(frozen=True)
class BufferResource:
    """A buffer of ``size`` bytes that starts with ``values`` and ends with zeros."""

    name: str
    size: int
    data_type: TensorDataType
    values: InitialValues


@dataclass(frozen=True)
class BindingSource:
    """Where a tensor's buffer begins: a resource and an offset in bytes."""

    resource: BufferResource
    offset: int
    node: Node


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
class Command:
    """One entry of ``commands``; ``text`` is its JSON on one line."""

    text: str
    node: Node


@dataclass(frozen=True)
class DispatchCommand(Command):
    """Run an operator."""

    dispatchable: DmlDispatchable
    bindings: Bindings


@dataclass(frozen=True)
class PrintCommand(Command):
    """Print the values of a resource."""

    resource: BufferResource
    verbose: bool


@dataclass(frozen=True)
class WriteFileCommand(Command):
    """Write a resource to a file; ``dimensions`` is the shape a .npy file gets."""

    resource: BufferResource
    target: Path
    dimensions: tuple[int, ...] | None


@dataclass(frozen=True)
class Model:
    """A model whose names, types and sizes have been checked; see ``checks`` for the rest."""

    resources: Mapping[str, BufferResource]
    dispatchables: Mapping[str, DmlDispatchable]
    commands: tuple[Command, ...]
    warnings: tuple[str, ...]
