"""The dispatches of models, as shaders on arrays that the interpreter can run."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from vkops import shaders
from vkops.debug.shader_check import Case, Report, check_end
from vkops.dxdispatch.data_types import dtype_of
from vkops.dxdispatch.descriptors import with_dml_names
from vkops.dxdispatch.json_model import BindingSource, BufferResource, DmlDispatchable
from vkops.dxdispatch.json_reader import quote
from vkops.dxdispatch.model_checks import Bound, BoundDispatch, Prepared
from vkops.dxdispatch.onnx_dispatchable import BoundOnnx, OnnxBinding
from vkops.dxdispatch.shader_dispatchable import GROUPS_NBYTES, BoundShader
from vkops.errors import OutOfDeviceMemoryError
from vkops.extent import Extent
from vkops.gpu.copies import SHADERS
from vkops.gpu.kernels.choice import VECTOR
from vkops.gpu.kernels.encoding import GPU, Tuning
from vkops.gpu.run.encoded_plan import Dispatch, EncodedPlan
from vkops.plan.execute import packed_bytes
from vkops.plan.graph import Step
from vkops.plan.rounding import round_up
from vkops.plan.view import Ints, packed_strides
from vkops.runner.onnx_execution import default_input
from vkops.shaders.shader import Shader

if TYPE_CHECKING:
    from vkops.onnx import Model

    Subject = Case | Prepared | tuple[Model, Mapping[str, Any]]

Bytes = npt.NDArray[np.uint8]


@dataclass(eq=False)
class HostHeap:
    """Memory that stands for a heap of a device."""

    data: Bytes

    @classmethod
    def of(cls, nbytes: int) -> HostHeap:
        """Return zeros: whole vectors, as kernels may read the rest of the last one.

        Raises:
            OutOfDeviceMemoryError: the host has no memory for it.
        """
        try:
            return cls(np.zeros(round_up(max(nbytes, 1), VECTOR), np.uint8))
        except (MemoryError, ValueError) as error:
            message = f"{nbytes} bytes: the host has no more memory available"
            raise OutOfDeviceMemoryError(message) from error

    @classmethod
    def holding(cls, array: npt.NDArray[Any]) -> Extent:
        """Return memory with the elements of an array."""
        data = packed_bytes(array)
        heap = cls.of(data.size)
        heap.data[: data.size] = data
        return Extent(heap, 0, data.size)


@dataclass(frozen=True)
class ShaderRun:
    """A dispatch of a shader; ``arrays`` are what its blocks are bound to, and get the results."""

    shader: Shader
    arrays: Mapping[str, Bytes]
    groups: Sequence[int]
    push: Any = ()

    @functools.cached_property
    def case(self) -> Case:
        """The shader with its arrays, as the interpreter runs it."""
        return Case.of(self.shader, self.arrays, self.groups, push=self.push)

    def run(self) -> None:
        """Run it, and store the results."""
        _, memory = self.case.run()
        check_end(self.case.findings)
        self._store(self.case.results(memory))

    def check(self) -> Report:
        """Check it, and store the results."""
        report = self.case.check()
        self._store(report.buffers)
        return report

    def _store(self, results: Mapping[str, npt.NDArray[Any]]) -> None:
        for point, array in results.items():
            block = self.shader.block(point)
            if block is not None and not block.readonly:
                data = array.view(np.uint8)
                self.arrays[point][: data.size] = data


def kernel_run(dispatch: Dispatch) -> ShaderRun:
    """Return the run of a kernel that is bound to ``HostHeap`` objects."""
    table = dispatch.table
    shader = _kernel(table.kernel.name, table.aligned, shaders.source_dir())
    words = table.words(dispatch.starts).view(np.uint8)
    heaps: list[Any] = [HostHeap(words), *dispatch.heaps]
    arrays = {block.point: heaps[block.binding].data for block in shader.blocks}
    return ShaderRun(shader, arrays, table.groups)


@functools.cache
def _kernel(name: str, aligned: bool, folder: Path) -> Shader:
    """Return a kernel of vkops from its folder of sources, with its source lines."""
    spirv = shaders.VARIANTS[name].compile(debug=True)
    return shaders.load(shaders.for_records(spirv, aligned=aligned), name=name)


class PlanOutput(NamedTuple):
    """A tensor of a plan that is an output; strides count elements."""

    number: int
    sizes: Ints
    strides: Ints
    dtype: np.dtype[Any]


@dataclass(frozen=True)
class PlanRun:
    """Plans that run one after the other on tensors by number, which have ``names``.

    ``strings`` are those that handles in tensors of strings stand for.
    """

    steps: Sequence[Step]
    tensors: dict[int, Extent]
    names: Mapping[int, str]
    outputs: Mapping[str, PlanOutput]
    tuning: Tuning
    strings: Sequence[str] = ()

    def results(self) -> Iterator[tuple[str, PlanOutput, npt.NDArray[Any]]]:
        """Yield the outputs, each as a flat array with the elements between its own."""
        for name, output in self.outputs.items():
            heap, start, nbytes = self.tensors[output.number]
            whole = nbytes // output.dtype.itemsize * output.dtype.itemsize
            data = heap.data[start : start + whole]
            if output.dtype.hasobject:
                handles = data.view(np.uint64)
                yield name, output, np.array([self.strings[n] for n in handles], output.dtype)
            else:
                yield name, output, data.view(output.dtype)

    def runs(self) -> Iterator[tuple[Step, ShaderRun]]:
        """Yield the runs of kernels in their order; each must be run before the next."""
        for step in self.steps:
            for number, output in zip(step.makes, step.plan.outputs, strict=True):
                scratch = Extent(HostHeap.of(output.nbytes), 0, output.nbytes)
                self.tensors.setdefault(number, scratch)
            read, made = ([(self.tensors[n],) for n in each] for each in (step.reads, step.makes))
            in_place = {r.resource for (r,) in read for (m,) in made if r.overlaps(m)}
            for dispatch in EncodedPlan(step.plan, self.tuning).bind(read, made):
                assert isinstance(dispatch, Dispatch)  # the tuning has no copies
                # For a constant, a kernel reads the start of any heap, and does not use the value:
                # in a heap that it writes, that would be a data race.
                heaps: Sequence[Any] = dispatch.sources
                sources: Any = tuple(h if h in in_place else HostHeap(h.data.copy()) for h in heaps)
                yield step, kernel_run(replace(dispatch, sources=sources))


class HostModel:
    """A DxDispatch model whose resources are arrays of bytes, ``heaps``."""

    def __init__(self, prepared: Prepared, tuning: Tuning = GPU) -> None:
        self.tuning: Tuning = replace(tuning, copies=SHADERS)
        self.dispatches: list[Bound] = [c for c in prepared.commands if isinstance(c, Bound)]
        self.heaps: dict[str, HostHeap] = {}
        for resource in prepared.model.resources.values():
            if isinstance(resource, BufferResource):
                heap = self.heaps[resource.name] = HostHeap.of(resource.size)
                start = 0
                for chunk in resource.values.chunks():
                    data = np.frombuffer(chunk, np.uint8)
                    heap.data[start : start + data.size] = data
                    start += data.size
        self._owned = {
            name: [None if source is None else self._copy(source) for source in slots]
            for name, slots in prepared.initial_inputs.items()
        }
        self._deferred: dict[str, Any] = {}
        self._parts: dict[tuple[str, int, int], Bytes] = {}

    def _copy(self, source: BindingSource) -> HostHeap:
        data = self.heaps[source.resource.name].data[source.offset :]
        heap: HostHeap = HostHeap.holding(data).resource
        return heap

    def plans(self, bound: Bound) -> PlanRun | None:
        """Return the plans of an operator or of an ONNX model on its tensors; None for a shader.

        Raises:
            ModelError: an ONNX model cannot run with its inputs.
        """
        if isinstance(bound, BoundOnnx):
            given = {binding.entry.name: self._onnx_input(binding) for binding in bound.inputs}
            return onnx_plans(bound.dispatchable.model, given, self.tuning)
        return self._operator_plans(bound) if isinstance(bound, BoundDispatch) else None

    def _operator_plans(self, bound: BoundDispatch) -> PlanRun:
        dispatchable = bound.command.dispatchable
        assert isinstance(dispatchable, DmlDispatchable)
        desc, pipeline = dispatchable.desc, dispatchable.desc.pipeline
        owned = self._owned.get(dispatchable.name, [None] * len(bound.inputs))
        sources = *bound.inputs, *bound.outputs
        given = zip(sources, (*owned, *[None] * len(bound.outputs)), strict=True)
        numbers = (*pipeline.inputs, *pipeline.outputs)
        named = (*desc.inputs, *desc.outputs)
        tensors: dict[int, Extent] = {}
        names: dict[int, str] = {}
        outputs: dict[str, PlanOutput] = {}
        for number, (path, tensor), (source, heap) in zip(numbers, named, given, strict=True):
            if tensor is None:
                continue
            place = (heap, 0)
            if source is not None:
                place = self.heaps[source.resource.name], source.offset
            name = names[number] = with_dml_names(path)
            tensors[number] = Extent(*place, tensor.total_tensor_size_in_bytes)
            if number in pipeline.outputs:
                dtype = dtype_of(tensor.data_type)
                form = tensor.sizes, tensor.effective_strides
                outputs[name] = PlanOutput(number, *form, dtype)
        for number, constant in pipeline.constants.items():
            names[number] = "a constant"
            tensors[number] = HostHeap.holding(constant.array())
        return PlanRun(pipeline.steps, tensors, names, outputs, self.tuning)

    def _onnx_input(self, binding: OnnxBinding) -> Any:
        source, entry = binding.source, binding.entry
        if source is None:
            return default_input(entry, binding.shape)
        name = source.resource.name
        if isinstance(source.resource, BufferResource):
            assert entry.dtype is not None
            nbytes = prod(binding.shape) * entry.dtype.itemsize
            return self.heaps[name].data[:nbytes].view(entry.dtype).reshape(binding.shape)
        if name not in self._deferred:
            raise source.node.error(f"{quote(name)} has no value yet")
        return self._deferred[name]

    def _store(self, bound: BoundOnnx, plans: PlanRun) -> None:
        """Store the outputs of an ONNX model in the resources that they are bound to."""
        sources = {binding.entry.name: binding for binding in bound.outputs}
        for name, output, array in plans.results():
            binding = sources[name]
            if binding.source is None:
                continue
            binding.check_result(output.sizes, output.dtype)
            resource = binding.source.resource
            if isinstance(resource, BufferResource):
                self.heaps[resource.name].data[: array.nbytes] = array.view(np.uint8)
            else:
                self._deferred[resource.name] = array.reshape(output.sizes)

    def _shader_run(self, bound: BoundShader) -> ShaderRun:
        """Return the run of a shader of the model's own."""
        arrays = {point: self._part(source) for point, source in bound.sources.items()}
        groups: Any = bound.command.groups
        if isinstance(groups, BindingSource):
            data = self.heaps[groups.resource.name].data[groups.offset :]
            groups = data[:GROUPS_NBYTES].view(np.uint32).tolist()
        dispatchable = bound.dispatchable
        return ShaderRun(dispatchable.load(), arrays, groups, dispatchable.push_constants)

    def _part(self, source: BindingSource) -> Bytes:
        """Return the bytes that are bound: the same array for the same bytes."""
        key = source.resource.name, source.offset, source.nbytes
        data = self.heaps[key[0]].data[source.offset : source.offset + source.nbytes]
        return self._parts.setdefault(key, data)

    def runs(self, command: Bound, plans: PlanRun | None = None) -> Iterator[ShaderRun]:
        """Yield what a command runs on the device, in order; each must be run before the next.

        ``plans`` are those of the command, if they are made already.
        """
        if isinstance(command, BoundShader):
            yield self._shader_run(command)
            return
        plans = plans or self.plans(command)
        assert plans is not None
        for _, run in plans.runs():
            yield run
        if isinstance(command, BoundOnnx):
            self._store(command, plans)


def runs_of(subject: Subject) -> Iterator[tuple[str, Case | ShaderRun]]:
    """Yield all dispatches of a shader or a model with their names; each must be run or checked."""
    if isinstance(subject, Case):
        yield "", subject
    elif isinstance(subject, Prepared):
        host = HostModel(subject)
        for number, command in enumerate(host.dispatches, 1):
            for run in host.runs(command):
                name = command.command.dispatchable.name
                yield f"dispatch {number}, '{name}', {run.shader.name}: ", run
    else:
        for _, run in onnx_plans(*subject).runs():
            yield f"{run.shader.name}: ", run


def onnx_plans(model: Model, inputs: Mapping[str, Any], tuning: Tuning = GPU) -> PlanRun:
    """Return the plans of an ONNX model on arrays.

    Raises:
        ModelError: the model cannot run with these inputs.
    """
    from vkops.onnx.element_types import STRING
    from vkops.onnx.lowering import LoweredTensor, string_handles, tensors_of
    from vkops.onnx.onnx_session import lowered

    lowering = lowered(model, inputs)
    wanted = dict.fromkeys(t.number for value in lowering.outputs for t in tensors_of(value))
    tensors = {number: HostHeap.holding(array) for number, array in lowering.constants.items()}
    names = dict.fromkeys(tensors, "a constant")
    strings = [*lowering.strings]
    for number, (name, item) in lowering.inputs.items():
        array = inputs[name] if item is None else inputs[name][item]
        array = string_handles(array, strings) if array.dtype == STRING else array
        tensors[number] = HostHeap.holding(array)
        names[number] = name if item is None else f"{name}[{item}]"
    outputs = {
        entry.name: PlanOutput(made.number, made.shape, packed_strides(made.shape), made.dtype)
        for entry, made in zip(model.outputs, lowering.outputs, strict=True)
        if isinstance(made, LoweredTensor)
    }
    steps = tuple(lowering.graph.lower([*wanted]))
    return PlanRun(steps, tensors, names, outputs, replace(tuning, copies=SHADERS), strings)
