"""The dispatches of models as shaders with arrays: the interpreter can run them."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from vkops import shaders
from vkops.debug.shader_check import Case, Report
from vkops.dxdispatch.descriptors import with_dml_names
from vkops.dxdispatch.json_model import BindingSource, BufferResource, DmlDispatchable
from vkops.dxdispatch.model_checks import Bound, BoundDispatch, Prepared
from vkops.dxdispatch.shader_dispatchable import GROUPS_NBYTES, BoundShader
from vkops.errors import ModelError
from vkops.extent import Extent
from vkops.gpu.copies import SHADERS
from vkops.gpu.kernels.choice import VECTOR
from vkops.gpu.kernels.encoding import GPU, Tuning
from vkops.gpu.run.encoded_plan import Dispatch, EncodedPlan
from vkops.plan.execute import packed_bytes
from vkops.plan.graph import Step
from vkops.plan.rounding import round_up
from vkops.shaders.shader import Shader

if TYPE_CHECKING:
    from vkops.onnx import Model
    from vkops.onnx.lowering import LoweredValue

Bytes = npt.NDArray[np.uint8]


@dataclass(eq=False)
class HostHeap:
    """Memory that stands for a heap of a device."""

    data: Bytes

    @classmethod
    def of(cls, nbytes: int) -> HostHeap:
        """Return zeros: whole vectors, as kernels may read the rest of the last one."""
        return cls(np.zeros(round_up(max(nbytes, 1), VECTOR), np.uint8))


@dataclass(frozen=True)
class ShaderRun:
    """A dispatch of a shader; ``arrays`` are what its blocks are bound to, and get the results."""

    shader: Shader
    arrays: Mapping[str, Bytes]
    groups: Sequence[int]
    push: Any = ()

    @functools.cached_property
    def case(self) -> Case:
        """What the interpreter runs."""
        return Case.of(self.shader, self.arrays, self.groups, push=self.push)

    def run(self) -> None:
        """Run it, and store the results."""
        _, memory = self.case.run()
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
    shader = _kernel(dispatch.kernel.name, shaders.source_dir())
    heaps: list[Any] = [HostHeap(dispatch.words.view(np.uint8)), *dispatch.heaps]
    arrays = {block.point: heaps[block.binding].data for block in shader.blocks}
    return ShaderRun(shader, arrays, dispatch.groups)


@functools.cache
def _kernel(name: str, folder: Path) -> Shader:
    """Return a kernel of vkops from its folder of sources, with its source lines."""
    return shaders.load(shaders.VARIANTS[name].compile(debug=True), name=name)


@dataclass(frozen=True)
class PlanRun:
    """Plans that run one after the other on tensors by number, which have ``names``."""

    steps: Sequence[Step]
    tensors: dict[int, Extent]
    names: Mapping[int, str]
    tuning: Tuning

    def runs(self) -> Iterator[tuple[Step, ShaderRun]]:
        """Yield the runs of kernels in their order; each must be run before the next."""
        for step in self.steps:
            for number, output in zip(step.makes, step.plan.outputs, strict=True):
                scratch = Extent(HostHeap.of(output.nbytes), 0, output.nbytes)
                self.tensors.setdefault(number, scratch)
            read, made = ([(self.tensors[n],) for n in each] for each in (step.reads, step.makes))
            for dispatch in EncodedPlan(step.plan, self.tuning).bind(read, made):
                assert isinstance(dispatch, Dispatch)  # the tuning has no copies
                yield step, kernel_run(dispatch)


class HostModel:
    """A DxDispatch model whose resources are arrays of bytes, ``heaps``."""

    def __init__(self, prepared: Prepared, tuning: Tuning = GPU) -> None:
        self.tuning = replace(tuning, copies=SHADERS)
        self.dispatches = [each for each in prepared.commands if isinstance(each, Bound)]
        self.heaps: dict[str, HostHeap] = {}
        for resource in prepared.model.resources.values():
            if isinstance(resource, BufferResource):
                heap = self.heaps[resource.name] = HostHeap.of(resource.size)
                data = b"".join(map(bytes, resource.values.chunks()))
                heap.data[: len(data)] = np.frombuffer(data, np.uint8)
        self._owned = {
            name: [None if source is None else self._copy(source) for source in slots]
            for name, slots in prepared.initial_inputs.items()
        }
        self._parts: dict[tuple[str, int, int], Bytes] = {}

    def _copy(self, source: BindingSource) -> HostHeap:
        data = self.heaps[source.resource.name].data[source.offset :]
        heap = HostHeap.of(data.size)
        heap.data[: data.size] = data
        return heap

    def plan_run(self, bound: BoundDispatch) -> PlanRun:
        """Return the plans of an operator on its tensors."""
        dispatchable = bound.command.dispatchable
        assert isinstance(dispatchable, DmlDispatchable)
        desc, pipeline = dispatchable.desc, dispatchable.desc.pipeline
        owned = self._owned.get(dispatchable.name, [None] * len(bound.inputs))
        named = (*desc.inputs, *desc.outputs)
        numbers = (*pipeline.inputs, *pipeline.outputs)
        places = [(source, None) for source in bound.outputs]
        tensors, names = {}, {}
        for number, (path, tensor), (source, heap) in zip(
            numbers, named, [*zip(bound.inputs, owned, strict=True), *places], strict=True
        ):
            start = 0
            if source is not None:
                heap, start = self.heaps[source.resource.name], source.offset
            if tensor is not None:
                tensors[number] = Extent(heap, start, tensor.total_tensor_size_in_bytes)
                names[number] = with_dml_names(path)
        for number, constant in pipeline.constants.items():
            heap = HostHeap.of(constant.nbytes)
            heap.data[: constant.nbytes] = constant.array().view(np.uint8)
            tensors[number], names[number] = Extent(heap, 0, constant.nbytes), "a constant"
        return PlanRun(pipeline.steps, tensors, names, self.tuning)

    def shader_run(self, bound: BoundShader) -> ShaderRun:
        """Return the run of a shader of the model's own."""
        arrays = {point: self._part(source) for point, source in bound.sources.items()}
        groups: Any = bound.command.groups
        if isinstance(groups, BindingSource):
            data = self.heaps[groups.resource.name].data[groups.offset :]
            groups = data[:GROUPS_NBYTES].view(np.uint32).tolist()
        dispatchable = bound.dispatchable
        return ShaderRun(dispatchable.shader, arrays, groups, dispatchable.push_constants)

    def _part(self, source: BindingSource) -> Bytes:
        """Return the bytes that are bound: the same array for the same bytes."""
        key = source.resource.name, source.offset, source.nbytes
        data = self.heaps[key[0]].data[source.offset : source.offset + source.nbytes]
        return self._parts.setdefault(key, data)

    def runs(self, command: Bound) -> Iterator[ShaderRun]:
        """Yield what a command runs on the device, in order; each must be run before the next.

        Raises:
            ModelError: it dispatches an ONNX model.
        """
        if isinstance(command, BoundDispatch):
            for _, run in self.plan_run(command).runs():
                yield run
        elif isinstance(command, BoundShader):
            yield self.shader_run(command)
        else:
            name = command.dispatchable.name
            raise ModelError(f"'{name}' is an ONNX model, which must be checked as a .onnx file")


def runs_of(host: HostModel) -> Iterator[tuple[str, ShaderRun]]:
    """Yield all dispatches of a model with their names."""
    for number, command in enumerate(host.dispatches, 1):
        for run in host.runs(command):
            name = command.command.dispatchable.name
            yield f"dispatch {number}, '{name}', {run.shader.name}", run


def onnx_run(
    model: Model, inputs: Mapping[str, Any], tuning: Tuning = GPU
) -> tuple[PlanRun, list[LoweredValue]]:
    """Return the plans of an ONNX model on arrays, and its outputs."""
    from vkops.onnx.lowering import string_handles, tensors_of
    from vkops.onnx.onnx_session import lowered

    lowering = lowered(model, inputs)
    wanted = dict.fromkeys(t.number for value in lowering.outputs for t in tensors_of(value))
    arrays = dict(lowering.constants)
    names = dict.fromkeys(arrays, "a constant")
    strings = [*lowering.strings]
    for number, (name, item) in lowering.inputs.items():
        array = inputs[name] if item is None else inputs[name][item]
        arrays[number] = string_handles(array, strings) if array.dtype == object else array
        names[number] = name if item is None else f"{name}[{item}]"
    tensors = {}
    for number, array in arrays.items():
        data = packed_bytes(array)
        heap = HostHeap.of(data.size)
        heap.data[: data.size] = data
        tensors[number] = Extent(heap, 0, data.size)
    steps = tuple(lowering.graph.lower([*wanted]))
    return PlanRun(steps, tensors, names, replace(tuning, copies=SHADERS)), lowering.outputs
