"""The parts of a model, the interface of dispatchables, and the execution of models."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy.typing as npt
import rapidjson

from vkops.dml import FeatureLevel
from vkops.models.folders import Folders
from vkops.models.initial_values import PIECE_BYTES
from vkops.models.json_reader import Node
from vkops.models.resources import Bindings, BindingSource, Resource, Resources
from vkops.models.target import Target
from vkops.plan.rounding import round_up

if TYPE_CHECKING:
    from typing_extensions import Self

    from vkops.models.target import Run
    from vkops.onnx.free_dimensions import Overrides
    from vkops.shaders.module import Block

Groups = tuple[int, int, int] | BindingSource
"""The numbers of workgroups of a shader, or the resource that holds them."""


@dataclass(frozen=True)
class Command:
    """One entry of ``commands``."""

    node: Node

    @property
    def text(self) -> str:
        """The JSON of the command on one line."""
        return str(rapidjson.dumps(self.node.value, ensure_ascii=False))


@dataclass(frozen=True)
class DispatchCommand(Command):
    """Run a dispatchable."""

    dispatchable: Dispatchable
    bindings: Bindings
    groups: Groups = (1, 1, 1)


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
class TensorBinding:
    """A tensor or a block of a dispatchable, and the resource that it is bound to, if there is one.

    ``desc`` is the dispatchable's description of it. ``shape`` is the shape of the tensor if its
    elements are packed, and None otherwise.
    """

    name: str
    desc: Any
    source: BindingSource | None
    shape: Any = None


@dataclass(frozen=True)
class CheckedDispatch(Command):
    """A dispatch whose bindings are checked; a block that a shader writes is in both tuples."""

    dispatchable: Dispatchable
    inputs: tuple[TensorBinding, ...]
    outputs: tuple[TensorBinding, ...]
    groups: Groups = (1, 1, 1)


class OutputArray(NamedTuple):
    """The content of an output: a flat array, including the memory between the elements.

    The content of a block is its bytes.
    """

    name: str
    array: npt.NDArray[Any]
    block: Block | None = None


class ReadContext(NamedTuple):
    """The folders, resources and overrides that a dispatchable may use when it is read."""

    folders: Folders
    resources: Resources
    overrides: Overrides | None


@dataclass(frozen=True)
class Dispatchable(ABC):
    """Something that a model can run; ``node`` has its fields.

    The methods are called in this order; ``model_reader`` lists the classes.
    """

    types: ClassVar[Sequence[str]] = ()
    """The values of ``type`` in a model, in lower case."""

    kind: ClassVar[str]
    """The name of the kind in the table of ``vkops check``."""

    name: str
    node: Node

    @property
    def lowest_level(self) -> FeatureLevel | None:
        """The lowest feature level that it requires, or None."""
        return None

    @classmethod
    @abstractmethod
    def read(cls, name: str, node: Node, context: ReadContext) -> Self:
        """Read an entry of ``dispatchables``; ModelError if something is wrong with it."""

    @abstractmethod
    def read_bindings(self, node: Node, resources: Resources) -> Bindings:
        """Read the bindings of a dispatch."""

    def check_level(self, level: FeatureLevel) -> None:  # noqa: B027
        """Check the rules that depend on the feature level; ModelError if the level is too low."""

    def check_initialization(self) -> None:  # noqa: B027
        """Check the bindings of the initialization of an operator."""

    @abstractmethod
    def check_bindings(self, command: DispatchCommand) -> CheckedDispatch:
        """Check the bindings of a dispatch as far as possible without a device."""

    @abstractmethod
    def compile(self, execution: Execution) -> Any:
        """Compile it on the target of an execution; the result is stored in ``compiled``."""

    @abstractmethod
    def bind(self, dispatch: CheckedDispatch, execution: Execution) -> Run:
        """Bind a dispatch to the memory of an execution; return a function that runs it."""

    @abstractmethod
    def outputs(self, dispatch: CheckedDispatch, execution: Execution) -> Iterator[OutputArray]:
        """Yield the content of the outputs of a dispatch, after it has run."""


@dataclass(frozen=True)
class Model:
    """A model whose names, types and sizes have been checked; ``prepare`` checks the rest."""

    resources: Resources
    dispatchables: Mapping[str, Dispatchable]
    commands: tuple[Command, ...] = ()
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True)
class Prepared:
    """A model that can run, and its commands with their bindings."""

    model: Model
    commands: tuple[Command, ...]

    @property
    def dispatches(self) -> list[CheckedDispatch]:
        """The dispatches among the commands."""
        return [command for command in self.commands if isinstance(command, CheckedDispatch)]


class Execution:
    """The buffers and compiled dispatchables of a model on a target.

    Attributes:
        target: creates buffers, and compiles operators and shaders.
        compiling: returns the context manager in which an operator is compiled.
        seen: a function that is called for each dispatch of an ONNX model, with the dispatch, its
            inputs by name, and the types and shapes of its outputs.
        buffers: the memory of each resource that is not deferred.
        deferred: the values of deferred resources that have one already.
        compiled: the result of ``compile`` of each dispatchable.
        results: the outputs of the last run of each ONNX model.
    """

    def __init__(
        self,
        prepared: Prepared,
        target: Target,
        compiling: Callable[[Any], AbstractContextManager[object]] = nullcontext,
        seen: Callable[[CheckedDispatch, Mapping[str, Any], Sequence[Any]], None] = lambda *_: None,
    ) -> None:
        self.target: Target = target
        self.compiling: Callable[[Any], AbstractContextManager[object]] = compiling
        self.seen: Callable[[CheckedDispatch, Mapping[str, Any], Sequence[Any]], None] = seen
        self.deferred: dict[str, Any] = {}
        self.results: dict[str, list[Any]] = {}
        self.compiled: dict[str, Any] = {}
        resources = prepared.model.resources.buffers
        # All buffers first: if they do not fit, this fails before any value has been generated.
        sizes = {each.name: max(4, round_up(each.size, 4)) for each in resources}
        self.buffers: Mapping[str, Any] = target.buffers(sizes)
        for resource in resources:
            _upload(resource, self.buffers[resource.name])
        for dispatchable in prepared.model.dispatchables.values():
            self.compiled[dispatchable.name] = dispatchable.compile(self)

    def texels(self, block: TensorBinding) -> Any:
        """Return the tensor that a shader sees as an image or as a texel buffer."""
        source = block.source
        assert source is not None
        assert source.dtype is not None
        assert source.shape is not None
        buffer, itemsize = self.buffers[source.resource.name], source.dtype.itemsize
        whole = self.target.tensor(buffer, (buffer.nbytes // itemsize,), source.dtype)
        start = source.offset // itemsize
        return whole[start : start + source.nbytes // itemsize].reshape(source.shape)

    def bind(self, dispatch: CheckedDispatch) -> Run:
        """Bind a dispatch to the memory of this execution, and return a function that runs it."""
        return dispatch.dispatchable.bind(dispatch, self)

    def binding(self, tensor: TensorBinding) -> Any:
        """Return the buffer, the offset and the number of bytes that a tensor is bound to."""
        source = tensor.source
        return source and (self.buffers[source.resource.name], source.offset, source.nbytes)


def _upload(resource: Resource, buffer: Any) -> None:
    """Fill a buffer with the initial values, then zeros."""
    offset = 0
    for piece in resource.values.pieces():
        buffer.write(piece, offset)
        offset += len(piece)
    for start in range(offset, buffer.nbytes, PIECE_BYTES):
        buffer.write(bytes(min(PIECE_BYTES, buffer.nbytes - start)), start)
