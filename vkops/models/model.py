"""The parts of a model, the methods of each kind of dispatchable, and the execution of both."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np
import numpy.typing as npt
import rapidjson

import vkops
from vkops import console
from vkops.dml import FeatureLevel
from vkops.errors import OutOfDeviceMemoryError
from vkops.models.data_types import CHUNK_BYTES
from vkops.models.folders import Folders
from vkops.models.json_reader import Node, quote
from vkops.models.resources import Bindings, BindingSource, Resource, Resources, Shape
from vkops.plan.rounding import round_up

if TYPE_CHECKING:
    from typing_extensions import Self

    from vkops.gpu.run.streaming import Progress
    from vkops.models.explanation import Section
    from vkops.onnx import Model as OnnxModel
    from vkops.onnx.free_dimensions import Overrides
    from vkops.shaders import Shader
    from vkops.shaders.module import Block

Groups = tuple[int, int, int] | BindingSource
"""The numbers of workgroups of a shader, or the resource that holds them."""


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
class BoundTensor:
    """A tensor or a block as its dispatchable describes it, and what it is bound to, if anything.

    ``shape`` is that of the tensor if its elements are packed.
    """

    name: str
    desc: Any
    source: BindingSource | None
    shape: Any = None


@dataclass(frozen=True)
class Bound(Command):
    """A dispatch whose bindings are checked; a block that a shader writes is in both tuples."""

    dispatchable: Dispatchable
    inputs: tuple[BoundTensor, ...]
    outputs: tuple[BoundTensor, ...]
    groups: Groups = (1, 1, 1)

    @property
    def is_alone(self) -> bool:
        """Whether it is not in a model, but runs a file."""
        return self.node.value is None


class OutputArray(NamedTuple):
    """The content of an output: a flat array, with the elements between its own.

    That of a block is its bytes.
    """

    name: str
    array: npt.NDArray[Any]
    block: Block | None = None


class ReadContext(NamedTuple):
    """All that a dispatchable may name or depend on when it is read."""

    folders: Folders
    resources: Resources
    overrides: Overrides | None


@dataclass(frozen=True)
class Dispatchable(ABC):
    """Something that a model can run. ``node`` is where its fields are.

    The methods are called in this order; ``model_reader`` lists the classes.
    """

    types: ClassVar[Sequence[str]] = ()
    """The values of ``type`` in a model, in lower case."""

    kind: ClassVar[str]
    """The name of the kind, in the table of ``vkops check``."""

    name: str
    node: Node

    @property
    def lowest_level(self) -> FeatureLevel | None:
        """The lowest feature level that it needs, if there is one."""
        return None

    @classmethod
    @abstractmethod
    def read(cls, name: str, node: Node, context: ReadContext) -> Self:
        """Read an entry of ``dispatchables``; ModelError if something is wrong with it."""

    @abstractmethod
    def read_bindings(self, node: Node, resources: Resources) -> Bindings:
        """Read the bindings of a dispatch."""

    def check(self, level: FeatureLevel) -> None:  # noqa: B027
        """Check what depends on the feature level; ModelError if it is too low."""

    def check_initialization(self) -> None:  # noqa: B027
        """Check what is bound when the dispatchable is initialized."""

    @abstractmethod
    def bind(self, command: DispatchCommand) -> Bound:
        """Check the bindings of a dispatch as far as possible without a device."""

    @abstractmethod
    def compile(self, execution: Execution) -> Any:
        """Return what runs it on the device of an execution, which stores it in ``compiled``."""

    @abstractmethod
    def ready(self, bound: Bound, execution: Execution) -> Callable[[Progress], object]:
        """Bind a dispatch to the memory of an execution; return a function that runs it."""

    @abstractmethod
    def outputs(self, bound: Bound, execution: Execution) -> Iterator[OutputArray]:
        """Yield what the outputs of a dispatch hold, after it has run."""

    @abstractmethod
    def sections(self, dispatches: Sequence[Bound], level: FeatureLevel) -> Iterator[Section]:
        """Explain it, with its dispatches in the model."""


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
    def dispatches(self) -> list[Bound]:
        """The dispatches among the commands."""
        return [command for command in self.commands if isinstance(command, Bound)]


@dataclass(frozen=True)
class RunOptions:
    """Numbers of dispatches, and what to print; the names are those of the command line."""

    dispatch_iterations: int = 1
    dispatch_repeat: int = 1
    milliseconds_to_run: int | None = None
    dispatch_interval: int = 0
    warmup_samples: int = 1
    timing_verbosity: int = 0
    max_gpu_time_measurements: int = 8192
    print_commands: bool = False
    print_onnx_bindings: bool = False
    flat: bool = False
    around_dispatch: Callable[[str], AbstractContextManager[object]] = nullcontext
    """Makes the context of each dispatch command from the dispatchable's name."""


class Execution:
    """Everything that a model names, on a device.

    ``vkops.debug.host_execution`` has the same on arrays.

    Attributes:
        device: what creates buffers, operators and shaders.
        options: what is printed.
        buffers: the memory of each resource that is not deferred.
        deferred: the values of deferred resources, as soon as they have one.
        compiled: what each dispatchable has compiled.
        results: the outputs of each ONNX model when it ran last.
    """

    def __init__(self, prepared: Prepared, device: Any, options: RunOptions | None = None) -> None:
        self.device: Any = device
        self.options: RunOptions = options or RunOptions()
        self.prepared: Prepared = prepared
        self.deferred: dict[str, Any] = {}
        self.results: dict[str, list[Any]] = {}
        self.compiled: dict[str, Any] = {}
        resources = prepared.model.resources.buffers
        # All buffers first: what does not fit fails before any value has been made.
        self.buffers: Mapping[str, Any] = self._allocate(resources)
        for resource in resources:
            _upload(resource, self.buffers[resource.name])
        for dispatchable in prepared.model.dispatchables.values():
            self.compiled[dispatchable.name] = dispatchable.compile(self)

    def _allocate(self, resources: Sequence[Resource]) -> Mapping[str, Any]:
        """Allocate whole words for all resources: on the device, or else all on the host."""
        message = ""
        for on_device in (True, False):
            allocate = self.device.buffer if on_device else self.device.host_buffer
            buffers: dict[str, Any] = {}  # those on the device are freed first
            try:
                for resource in resources:
                    message = quote(resource.name)
                    buffers[resource.name] = allocate(max(4, round_up(resource.size, 4)))
                return buffers
            except OutOfDeviceMemoryError as error:
                message += f": {error}"
        raise OutOfDeviceMemoryError(message)

    def info(self, text: str) -> None:
        """Print a line about what is compiled."""
        console.info(text)

    def session(self, model: OnnxModel) -> Any:
        """Return a session of an ONNX model on the device."""
        from vkops.onnx import Session

        return Session(model, self.device)

    def tensor(self, buffer: Any, shape: Shape, dtype: np.dtype[Any]) -> Any:
        """Return a tensor over a buffer."""
        return vkops.Tensor.over(self.device, buffer, shape, dtype)

    def shader(self, shader: Shader, load: Callable[..., Shader]) -> Any:
        """Compile a shader, which ``load`` can load with its source lines."""
        return self.device.compile_shader(shader)

    def texels(self, block: BoundTensor) -> Any:
        """Return the tensor that a shader sees as an image or as texels."""
        source = block.source
        assert source is not None
        assert source.dtype is not None
        assert source.shape is not None
        buffer, itemsize = self.buffers[source.resource.name], source.dtype.itemsize
        whole = self.tensor(buffer, (buffer.nbytes // itemsize,), source.dtype)
        start = source.offset // itemsize
        return whole[start : start + source.nbytes // itemsize].reshape(source.shape)

    def ready(self, bound: Bound) -> Callable[[Progress], object]:
        """Bind everything, and return a function that runs the dispatch."""
        return bound.dispatchable.ready(bound, self)

    def binding(self, tensor: BoundTensor) -> Any:
        """Return the buffer, the offset and the number of bytes that a tensor is bound to."""
        source = tensor.source
        return source and (self.buffers[source.resource.name], source.offset, source.nbytes)


def _upload(resource: Resource, buffer: Any) -> None:
    """Fill a buffer with the initial values, then zeros."""
    offset = 0
    for chunk in resource.values.chunks():
        buffer.write(chunk, offset)
        offset += len(chunk)
    for start in range(offset, buffer.nbytes, CHUNK_BYTES):
        buffer.write(bytes(min(CHUNK_BYTES, buffer.nbytes - start)), start)
