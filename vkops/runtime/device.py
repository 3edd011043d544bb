"""Devices that create and compile operators, graphs and shaders."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, overload

from vkops.arguments.values import ArgumentName, integer, member
from vkops.dml import ExecutionFlags, Expression, FeatureLevel, Graph, GraphDesc, OperatorDesc
from vkops.dml.feature_queries import (
    FeatureData,
    FeatureDataFeatureLevels,
    FeatureDataTensorDataTypeSupport,
    FeatureQuery,
    FeatureQueryFeatureLevels,
    FeatureQueryTensorDataTypeSupport,
    check_feature_support,
)
from vkops.dml.levels import alternative_operators
from vkops.errors import InvalidDescError, OutOfDeviceMemoryError, show
from vkops.gpu.adapters.adapter import Mode, check_arguments, choose
from vkops.gpu.adapters.layer_messages import is_wanted
from vkops.gpu.run.buffer import Buffer, HostBuffer
from vkops.gpu.run.open_device import OpenDevice, open_vulkan_device
from vkops.gpu.run.pending import Pending
from vkops.gpu.run.shared_memory import check_device
from vkops.gpu.run.timestamps import Measurement
from vkops.plan.indexing import OutOfRange
from vkops.plan.size_limits import MAX_TENSOR_BYTES
from vkops.runtime.compiled_operator import BoundOperator, CompiledOperator, StreamedOperator
from vkops.runtime.compiled_shader import CompiledShader
from vkops.runtime.image import Image, create
from vkops.runtime.sampler import Sampler
from vkops.shaders import Number, Shader, load
from vkops.shaders.sources import Include

if TYPE_CHECKING:
    from typing_extensions import Self

__all__ = [
    "BoundOperator",
    "Buffer",
    "CompiledOperator",
    "CompiledShader",
    "HostBuffer",
    "Operator",
    "OperatorDevice",
    "Pending",
    "StreamedOperator",
]


class OperatorDevice(OpenDevice):
    """The part of ``vkops.Device`` that compiles operators, graphs and shaders."""

    def __init__(
        self,
        adapter: str | int | None = None,
        feature_level: FeatureLevel | str | int | None = None,
        *,
        debug: bool = False,
        alternative_levels: Sequence[str] = (),
        staged: bool = False,
        shared: bool = False,
        expect: str | None = None,
        printf: bool | None = None,
        indices: OutOfRange = "vkops",
    ) -> None:
        self.feature_level: FeatureLevel = (
            FeatureLevel.LATEST if feature_level is None else FeatureLevel.of(feature_level)
        )
        self.alternative_levels: tuple[str, ...] = alternative_operators(alternative_levels)
        flags = {"debug": debug, "staged": staged, "shared": shared, "printf": printf or False}
        check_arguments(adapter, expect, indices, **flags)
        self.indices: OutOfRange = indices
        mode: Mode = "printf" if is_wanted(printf) else "debug" if debug else ""
        vulkan = open_vulkan_device(choose(adapter, expect, mode), mode)
        super().__init__(vulkan, staged=staged, shared=shared)
        if shared:
            check_device(self)

    @property
    def name(self) -> str:
        """The adapter's name."""
        return self.info.name

    def __repr__(self) -> str:
        return f"<vkops.Device {self.info.label} at feature level {self.feature_level}>"

    def shares_memory_with(self, other: OperatorDevice) -> bool:
        """Whether tensors of the two can be used together: whether they are of one adapter.

        Not if only one of them was opened with Vulkan's validation layer.

        Raises:
            DeviceError: one of them is closed.
            InvalidDescTypeError: the other is not a device (B-02).
        """
        if not isinstance(other, OperatorDevice):
            raise ArgumentName("", "other", "B-02").wrong_kind(other, "a Device")
        for device in (self, other):
            device.check_usable()
        return self.vulkan is other.vulkan

    def measure_dispatches(self) -> Callable[..., float | None]:
        """Have the device measure the sum of all that it executes, until it is told to stop.

        Several measurements at a time do not disturb each other, nor do profiles.
        ``vkops.profile`` measures each operation of a block. Recorded programs are recorded anew
        each time while the device measures.

        Returns:
            A function that waits for all that was submitted, and returns the milliseconds that the
            device took for it since the last call; None if that was nothing, or the device has no
            timestamps. With ``stop=True``, it ends the measurement.

        Raises:
            DeviceError: the device is closed.
        """
        self.check_usable()
        return Measurement(self.vulkan).take

    # -- operators --------------------------------------------------------------------------------

    @overload
    def check_feature_support(
        self, query: FeatureQueryTensorDataTypeSupport
    ) -> FeatureDataTensorDataTypeSupport: ...

    @overload
    def check_feature_support(
        self, query: FeatureQueryFeatureLevels
    ) -> FeatureDataFeatureLevels: ...

    def check_feature_support(self, query: FeatureQuery) -> FeatureData:
        """Answer a feature query. Source: IDMLDevice::CheckFeatureSupport.

        Raises:
            InvalidDescTypeError: the query is of no known kind (DEV-07).
            FeatureLevelError: none of the requested levels is supported (DEV-06).
        """
        return check_feature_support(query, self.feature_level)

    def create_operator(self, desc: OperatorDesc) -> Operator:
        """Validate a descriptor at this device's feature level.

        Source: IDMLDevice::CreateOperator.

        Raises:
            InvalidDescError: the descriptor breaks a rule.
            FeatureLevelError: it needs a higher feature level.
        """
        if not isinstance(desc, OperatorDesc):
            raise ArgumentName("", "desc", "T-18").wrong_kind(desc, "an operator descriptor")
        desc.validate(self.feature_level, self.alternative_levels)
        return Operator(self, desc)

    def compile_operator(
        self, operator: Operator, flags: ExecutionFlags = ExecutionFlags.NONE
    ) -> CompiledOperator:
        """Make an operator ready to run. Source: IDMLDevice::CompileOperator.

        All of DirectML's flags are accepted; none changes how data is moved.

        Raises:
            InvalidDescTypeError: unknown flags (DEV-10), or another device's operator.
            DeviceError: the device is closed.
        """
        if not isinstance(operator, Operator) or operator.device is not self:
            raise ArgumentName("", "operator", "T-18").wrong_kind(
                operator, f"an operator of {self!r}"
            )
        member(ExecutionFlags, flags, ArgumentName(operator.desc.operator, "flags", "DEV-10"))
        return CompiledOperator(self, operator.desc, self.indices)

    def compile_graph(
        self,
        graph: Graph | GraphDesc | Sequence[Expression],
        flags: ExecutionFlags = ExecutionFlags.NONE,
    ) -> CompiledOperator:
        """Make a graph ready to run, as one operator. Source: IDMLDevice1::CompileGraph.

        Args:
            graph: a graph, or the expressions that are its outputs, as dml::Graph::Compile takes
                them.
            flags: DirectML's flags, which are accepted; none changes how data is moved.

        Raises:
            InvalidDescError: the graph, or one of its operators, breaks a rule.
            FeatureLevelError: an operator, or graphs themselves, need a higher feature level.
            InvalidDescTypeError: unknown flags (DEV-10), no graph, or expressions of several
                graphs (G-03).
            DeviceError: the device is closed.

        >>> import numpy as np
        >>> from vkops import Device, dml
        >>> graph = dml.Graph()
        >>> x = graph.input(dml.BufferTensorDesc(dml.TensorDataType.INT32, [6]))
        >>> left, right = graph.split(x, 0, [2, 4])
        >>> _ = graph.output(graph.join([right, left], 0))
        >>> device = Device()
        >>> rotate = device.compile_graph(graph)
        >>> y = device.buffer(24)
        >>> rotate.dispatch([device.tensor(np.arange(6, dtype=np.int32))], [y])
        >>> np.frombuffer(y.read(), np.int32)
        array([2, 3, 4, 5, 0, 1], dtype=int32)
        """
        desc: object = graph
        if isinstance(graph, Graph):
            desc = graph.desc()
        elif isinstance(graph, (list, tuple)) and graph and isinstance(graph[0], Expression):
            desc = graph[0].graph.desc(graph)
        if not isinstance(desc, GraphDesc):
            argument = ArgumentName("GRAPH", "graph", "T-18")
            raise argument.wrong_kind(graph, "a Graph, a GraphDesc, or a list of expressions")
        member(ExecutionFlags, flags, ArgumentName(desc.operator, "flags", "DEV-10"))
        desc.validate(self.feature_level, self.alternative_levels)
        return CompiledOperator(self, desc, self.indices)

    def compile_shader(
        self,
        source: str | Path | bytes | Shader,
        *,
        language: str | None = None,
        entry: str = "main",
        constants: Mapping[str | int, Number] = {},
        defines: Mapping[str, str | int] = {},
        include: Include = (),
        include_dirs: Sequence[Path] = (),
        debug: bool = False,
        name: str = "<source>",
        allow_paths: bool = False,
    ) -> CompiledShader:
        """Make a user-defined compute shader ready to run.

        Args:
            source: a text, the path of a GLSL, .hlsl, .slang or .spv file, SPIR-V, or a loaded
                ``Shader``.
            language: ``"glsl"``, ``"hlsl"``, ``"slang"`` or ``"spirv"``; by default that of the
                file's suffix, and GLSL for text.
            entry: the entry point; that of GLSL is ``"main"``.
            constants: values of specialization constants, by name or id.
            defines: macros, for GLSL.
            include: a folder of included files, several, or a mapping of their names to texts; the
                source's own folder is searched first.
            include_dirs: another name of ``include``, for folders.
            debug: keep source lines in the SPIR-V.
            name: its name in errors, if it is not read from a file.
            allow_paths: whether it may include files outside of these folders.

        Raises:
            ShaderCompileError: it is wrong, or a tool is missing.
            InvalidDescError: the device cannot run it (SH-01 to SH-03, SH-08), or a constant is not
                one of its own, or comes after the shader was loaded (SH-10).
            DeviceError: the device is closed.
        """
        if not isinstance(source, Shader):
            source = load(
                source,
                language=language,
                entry=entry,
                constants=constants,
                defines=defines,
                include=include or include_dirs,
                debug=debug,
                name=name,
                allow_paths=allow_paths,
            )
        elif constants or defines or include or include_dirs or debug:
            message = "a loaded shader takes no constants, defines, include or debug any more"
            raise InvalidDescError(source.name, "source", message, "SH-10")
        return CompiledShader(self, source)

    # -- memory -----------------------------------------------------------------------------------

    def buffer(self, nbytes: int) -> Buffer:
        """Allocate device memory; its initial content is undefined.

        Raises:
            InvalidDescError: not an integer of at least 1 (T-04).
            OutOfDeviceMemoryError: it does not fit; nothing was allocated.
        """
        return Buffer(self, _nbytes(nbytes))

    def image(
        self,
        array: Any,
        dtype: Any = None,
        *,
        dims: int = 2,
        layers: bool = False,
        channels: int | None = None,
        format: str | None = None,
        mips: int = 1,
        samples: bool = False,
    ) -> Image:
        """Make an image of an array or a tensor, or one of zeros.

        Args:
            array: its elements, rows first, or its shape. There is an axis for each dimension, in
                front of these one of layers and behind them one of samples if it has them, and a
                last one of channels or none.
            dtype: the data type of an image of zeros, by default float32 or that of ``format``.
            dims: its dimensions: 1, 2 or 3.
            layers: whether the first axis is that of layers, which have 1 or 2 dimensions each.
            channels: how many there are, 1 to 4, if the shape has no such axis. Three are four on
                the device, the last of which are opaque: 1, or the largest integer.
            format: a name of GLSL, such as ``"rgba8"``, or ``"rgba8_srgb"``. Without it, the
                declaration in each shader decides whether integers of 8 and 16 bits are normalised.
            mips: the number of levels; ``Image.generate_mips`` computes all but the first one.
            samples: whether texels have several samples, 2, 4, 8, 16, 32 or 64, which are an axis
                behind the width. The device needs ``"shaderStorageImageMultisample"`` for them.

        Raises:
            InvalidDescError: a wrong argument (IMG-01 to IMG-04).
            OutOfDeviceMemoryError: it does not fit; nothing was allocated.

        >>> import numpy as np
        >>> from vkops import Device
        >>> Device().image(np.zeros((480, 640, 3), np.uint8))  # doctest: +ELLIPSIS
        <vkops.Image of 480 x 640 x 3 uint8 on ...>
        """
        return create(self, array, dtype, dims, layers, channels, format, mips, samples)

    def sampler(
        self, filter: str = "linear", address: str = "clamp", *, normalized: bool = True
    ) -> Sampler:
        """Make a sampler, which shaders read textures with.

        Args:
            filter: ``"linear"`` between texels, and levels, or ``"nearest"``.
            address: what is outside of a texture: ``"clamp"`` is the last texel, ``"repeat"`` the
                texture again, ``"mirror"`` its mirror image, ``"border"`` zeros.
            normalized: whether coordinates are from 0 to 1; if not, they are texels.

        Raises:
            InvalidDescError: a wrong argument (IMG-07).
        """
        return Sampler(self, filter, address, normalized)

    def host_buffer(self, nbytes: int) -> HostBuffer:
        """Allocate host memory, to be bound where a buffer does not fit.

        Operators bound to it stream their data through the device. Arguments and errors are those
        of ``buffer``.
        """
        return HostBuffer(_nbytes(nbytes))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()


@dataclass(frozen=True, slots=True)
class Operator:
    """A validated descriptor on a device. Source: IDMLOperator."""

    device: OperatorDevice
    desc: OperatorDesc


def _nbytes(nbytes: Any) -> int:
    size = integer(nbytes, ArgumentName("", "nbytes", "T-04"))
    if size < 1:
        raise InvalidDescError("", "nbytes", f"got {show(size)}, must be at least 1", "T-04")
    if size > MAX_TENSOR_BYTES:
        raise OutOfDeviceMemoryError(f"{show(size)} bytes: no device has so much memory")
    return size
