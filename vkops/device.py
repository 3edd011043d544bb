"""DirectML's object model: Device, Operator, CompiledOperator and their bindings."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import TYPE_CHECKING, Any

from vkops.dml import ExecutionFlags, FeatureLevel, OperatorDesc, TensorFlags
from vkops.dml.binding import BoundTensor, bind, check_hazards
from vkops.dml.features import FeatureData, FeatureQuery, check_feature_support
from vkops.dml.rules import NamedTensor
from vkops.dml.tensor_desc import BufferTensorDesc
from vkops.dml.values import Place, integer, member, show
from vkops.errors import BindingError, InvalidDescError, InvalidDescTypeError
from vkops.gpu import adapter
from vkops.gpu.adapter import DeviceInfo, devices
from vkops.gpu.buffer import Buffer
from vkops.gpu.executor import Dispatch, Executor
from vkops.gpu.memory import MemoryReport, Range

if TYPE_CHECKING:
    from vkops.tensor import Tensor

__all__ = [
    "Binding",
    "BindingProperties",
    "BoundOperator",
    "Buffer",
    "CompiledOperator",
    "Device",
    "DeviceInfo",
    "Operator",
    "devices",
]

Binding = Any
"""None, a Buffer, a Tensor, or (buffer or tensor, byte offset, bytes)."""


class Device:
    """A Vulkan device that creates, compiles and runs DirectML operators.

    Source: IDMLDevice. Validation is capped at ``feature_level`` (DEV-03; default: the newest),
    where DirectML treats the level as a minimum.

    Args:
        adapter: index, or part of an adapter's name; default: a GPU before a CPU driver.
        feature_level: ``FeatureLevel`` or its name, such as ``"5_0"``.
        debug: load the Khronos validation layer (DML_CREATE_DEVICE_FLAG_DEBUG).
        alternative_levels: operators, such as ``"JOIN"``, for which the rows that other sources
            give apply (JOIN-09).
        staged: move data through staging buffers even where the host sees device memory, as
            discrete GPUs must.

    Raises:
        DeviceError: no such adapter, driver, loader or layer.
        InvalidDescError: unknown feature level (DEV-04).

    >>> import numpy as np
    >>> from vkops import dml
    >>> device = Device()
    >>> whole = dml.BufferTensorDesc(dml.TensorDataType.FLOAT32, (6, 2))
    >>> half = dml.BufferTensorDesc(dml.TensorDataType.FLOAT32, (3, 2))
    >>> desc = dml.SplitOperatorDesc(whole, (half, half), axis=0)
    >>> split = device.compile_operator(device.create_operator(desc))
    >>> x = device.tensor(np.arange(12, dtype=np.float32))
    >>> parts = [device.buffer(24), device.buffer(24)]
    >>> split.dispatch([x], parts)
    >>> np.frombuffer(parts[1].read(), np.float32)
    array([ 6.,  7.,  8.,  9., 10., 11.], dtype=float32)
    """

    def __init__(
        self,
        adapter: str | int | None = None,
        feature_level: FeatureLevel | str | int | None = None,
        *,
        debug: bool = False,
        alternative_levels: Collection[str] = (),
        staged: bool = False,
    ) -> None:
        self.feature_level = (
            FeatureLevel.LATEST if feature_level is None else FeatureLevel.of(feature_level)
        )
        self.alternative_levels = tuple(alternative_levels)
        self.executor = _open(adapter, debug=debug, staged=staged)

    @property
    def info(self) -> DeviceInfo:
        """The adapter's description."""
        return self.executor.info

    @property
    def name(self) -> str:
        """The adapter's name."""
        return self.info.name

    def __repr__(self) -> str:
        return f"<vkops.Device {self.name!r} at feature level {self.feature_level}>"

    # -- operators --------------------------------------------------------------------------------

    def check_feature_support(self, query: FeatureQuery) -> FeatureData:
        """Answer a feature query (DEV-05 to DEV-07). Source: IDMLDevice::CheckFeatureSupport."""
        return check_feature_support(query, self.feature_level)

    def create_operator(self, desc: OperatorDesc) -> Operator:
        """Validate a descriptor at this device's feature level.

        Source: IDMLDevice::CreateOperator.

        Raises:
            InvalidDescError: the descriptor breaks a rule.
            FeatureLevelError: it needs a higher feature level.
        """
        if not isinstance(desc, OperatorDesc):
            raise InvalidDescTypeError(
                "",
                "desc",
                f"got {show(desc)}, must be an operator descriptor",
                "T-18",
            )
        desc.validate(self.feature_level, self.alternative_levels)
        return Operator(self, desc)

    def compile_operator(
        self, operator: Operator, flags: ExecutionFlags = ExecutionFlags.NONE
    ) -> CompiledOperator:
        """Make an operator ready to run. Source: IDMLDevice::CompileOperator.

        All of DirectML's flags are accepted; none changes how data is moved.

        Raises:
            InvalidDescTypeError: unknown flags (DEV-10), or another device's operator.
        """
        if not isinstance(operator, Operator) or operator.device is not self:
            raise InvalidDescTypeError(
                "", "operator", f"got {show(operator)}, must be an operator of {self!r}", "T-18"
            )
        member(ExecutionFlags, flags, Place(operator.desc.operator, "flags", "DEV-10"))
        return CompiledOperator(self.executor, operator.desc)

    # -- memory -----------------------------------------------------------------------------------

    def buffer(self, nbytes: int) -> Buffer:
        """Allocate device memory; its first content is undefined.

        Raises:
            InvalidDescError: not an integer of at least 1 (T-04).
            OutOfDeviceMemoryError: it does not fit; nothing was allocated.
        """
        size = integer(nbytes, Place("", "nbytes", "T-04"))
        if size < 1:
            raise InvalidDescError("", "nbytes", f"got {size}, must be at least 1", "T-04")
        return Buffer(self.executor, size)

    def tensor(self, array: Any) -> Tensor:
        """Copy an array to the device.

        Raises:
            InvalidDescTypeError: its elements are not of 1, 2, 4, 8 or 16 bytes (T-02).
            OutOfDeviceMemoryError: it does not fit.
        """
        from vkops.tensor import Tensor

        return Tensor.from_array(self, array)

    def memory_report(self) -> MemoryReport:
        """Bytes reserved from the driver, bytes in use, and number of heaps."""
        with self.executor.lock:
            return self.executor.memory.report()

    def close(self) -> None:
        """Give back the device; what still refers to its memory keeps that memory."""
        self.executor.close()

    def __enter__(self) -> Device:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


def _open(which: str | int | None, *, debug: bool, staged: bool) -> Executor:
    info = adapter.select(which)
    if debug:
        adapter.enable_validation()
    return Executor(info, staged=staged)


@dataclass(frozen=True, slots=True)
class Operator:
    """A validated descriptor on a device. Source: IDMLOperator."""

    device: Device
    desc: OperatorDesc


@dataclass(frozen=True, slots=True)
class BindingProperties:
    """What a dispatch needs besides inputs and outputs, in bytes. Source: DML_BINDING_PROPERTIES.

    Both are looked after by vkops itself.
    """

    temporary_resource_size: int
    persistent_resource_size: int


class CompiledOperator:
    """An operator ready to run, made by ``Device``. Source: IDMLCompiledOperator.

    ``plan`` is what it moves, as lowered from the descriptor.
    """

    def __init__(self, executor: Executor, desc: OperatorDesc) -> None:
        self.name = desc.operator
        self.plan = desc.lower()
        self._executor = executor
        self._work = executor.prepare(self.plan)
        self._inputs, self._outputs = desc.inputs, desc.outputs
        self._in_place = desc.runs_in_place
        self._persistent: dict[int, Buffer] = {}

    @property
    def binding_properties(self) -> BindingProperties:
        """Sizes of the resources that DirectML would ask the caller to bind."""
        owned = sum(t.total_tensor_size_in_bytes for _, t in self._inputs if _is_owned(t))
        return BindingProperties(0, owned)

    def initialize(self, inputs: Sequence[Binding]) -> None:
        """Take over the inputs that are OWNED_BY_DML; they are copied now and bound never again.

        Only operators with such inputs need it. Source: IDMLOperatorInitializer.

        Args:
            inputs: one entry per input; None for those that are not owned (B-03).

        Raises:
            BindingError: B-01 to B-06, or initialised before (B-18).
        """
        self._check_count("inputs", inputs, self._inputs)
        if self._persistent:
            raise BindingError(self.name, "", "initialised before, must be once", "B-18")
        sources = {}
        for number, ((path, tensor), binding) in enumerate(zip(self._inputs, inputs, strict=True)):
            if _is_owned(tensor):
                sources[number] = _range(self._bind(path, tensor, binding))
            elif binding is not None:
                message = "bound at initialisation, must be None: it is not OWNED_BY_DML"
                raise BindingError(self.name, path, message, "B-03")
        taken = {
            number: Buffer(self._executor, source.nbytes) for number, source in sources.items()
        }
        for number, source in sources.items():
            taken[number].copy_from(source)
        self._persistent = taken

    def dispatch(self, inputs: Sequence[Binding], outputs: Sequence[Binding]) -> None:
        """Run the operator and wait until its outputs are complete.

        Args:
            inputs: per input tensor a buffer, tensor or (buffer, offset, bytes); None for those
                that are OWNED_BY_DML.
            outputs: likewise, per output tensor.

        Raises:
            BindingError: a binding breaks one of B-01 to B-09, T-17 or B-18; nothing was run.
            DeviceError: the device is closed.
        """
        self.bind(inputs, outputs).dispatch()

    def bind(self, inputs: Sequence[Binding], outputs: Sequence[Binding]) -> BoundOperator:
        """Check bindings once, to dispatch with them again and again.

        Source: IDMLBindingTable. Arguments and errors are those of ``dispatch``.
        """
        self._check_count("inputs", inputs, self._inputs)
        self._check_count("outputs", outputs, self._outputs)
        read = [
            self._owned(number, path, binding)
            if _is_owned(tensor)
            else self._bind(path, tensor, binding)
            for number, ((path, tensor), binding) in enumerate(
                zip(self._inputs, inputs, strict=True)
            )
        ]
        written = [
            self._bind(path, tensor, binding)
            for (path, tensor), binding in zip(self._outputs, outputs, strict=True)
        ]
        check_hazards(self.name, read, written, in_place=self._in_place)
        ranges = list(map(_range, read)), list(map(_range, written))
        keep = (*(b.resource for b in read), *(b.resource for b in written))
        return BoundOperator(self._executor, self._executor.bind(self._work, *ranges), keep)

    # -- bindings ---------------------------------------------------------------------------------

    def _check_count(
        self, what: str, bindings: Sequence[Binding], tensors: Sequence[NamedTensor]
    ) -> None:
        if not isinstance(bindings, Sequence) or isinstance(bindings, (str, bytes)):
            raise BindingError(
                self.name, what, f"got {show(bindings)}, must be a list of bindings", "B-01"
            )
        if len(bindings) != len(tensors):
            raise BindingError(
                self.name, what, f"got {len(bindings)} bindings, must be {len(tensors)}", "B-01"
            )

    def _owned(self, number: int, path: str, binding: Binding) -> BoundTensor:
        if binding is not None:
            message = "bound at execution, must be None: it is OWNED_BY_DML"
            raise BindingError(self.name, path, message, "T-17")
        if number not in self._persistent:
            message = "is OWNED_BY_DML and not initialised; call initialize first"
            raise BindingError(self.name, path, message, "B-18")
        owned = self._persistent[number]
        return BoundTensor(owned, 0, owned.nbytes, path)

    def _bind(self, path: str, tensor: BufferTensorDesc, binding: Binding) -> BoundTensor:
        """Check a binding, and say which bytes of its buffer the tensor takes."""
        target, offset, nbytes = binding, 0, None
        if isinstance(binding, tuple) and len(binding) == 3:
            target, offset, nbytes = binding
        buffer = getattr(target, "buffer", target)
        if not isinstance(buffer, Buffer) or not buffer.is_on(self._executor):
            message = (
                f"got {show(binding)}, must be a buffer or tensor of "
                f"{self._executor.info.name!r}, or (buffer, offset, bytes)"
            )
            raise BindingError(self.name, path, message, "B-02")
        if nbytes is None:
            nbytes = buffer.nbytes - offset
        if not _is_count(offset) or not _is_count(nbytes):
            message = f"got offset {show(offset)} and {show(nbytes)} bytes, must be integers from 0"
            raise BindingError(self.name, path, message, "B-04")
        return bind(self.name, path, tensor, buffer, buffer.nbytes, offset, nbytes)


class BoundOperator:
    """A compiled operator with its bindings, made by ``CompiledOperator.bind``.

    It keeps the buffers it is bound to alive.
    """

    def __init__(
        self, executor: Executor, dispatches: list[Dispatch], buffers: tuple[Buffer, ...]
    ) -> None:
        self._executor = executor
        self._dispatches = dispatches
        self._buffers = buffers

    def dispatch(self) -> None:
        """Run the operator and wait until its outputs are complete.

        Raises:
            DeviceError: the device is closed.
        """
        self._executor.run(self._dispatches)


def _is_owned(tensor: BufferTensorDesc) -> bool:
    return TensorFlags.OWNED_BY_DML in tensor.flags


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _range(bound: BoundTensor) -> Range:
    place = bound.resource.range
    return Range(place.heap, place.offset + bound.begin, bound.end - bound.begin)
