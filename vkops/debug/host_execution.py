"""Models on arrays: the interpreter runs kernels and shaders instead of a device."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from vkops import shaders
from vkops.debug.shader_check import Case, Report, check_end
from vkops.dml import OperatorDesc
from vkops.errors import OutOfDeviceMemoryError
from vkops.extent import Extent
from vkops.gpu.copies.rule import SHADERS
from vkops.gpu.kernels.choice import VECTOR
from vkops.gpu.kernels.encoding import GPU, Tuning
from vkops.gpu.run.encoded_plan import Dispatch, EncodedPlan
from vkops.models.descriptors import with_dml_names
from vkops.models.initial_values import dtype_of
from vkops.models.model import CheckedDispatch, Execution, OutputArray, Prepared
from vkops.models.onnx import OnnxFile, output_arrays
from vkops.models.shader import GROUPS_NBYTES
from vkops.models.target import Target, allocate
from vkops.plan.execute import packed_bytes
from vkops.plan.graph import Step
from vkops.plan.rounding import round_up
from vkops.plan.view import Ints, packed_strides
from vkops.shaders.shader import Shader
from vkops.system.threads import cached_property

if TYPE_CHECKING:
    from vkops.interpreter.observer import Observer
    from vkops.models.target import Bind, OnnxRun, Run
    from vkops.onnx import Model
    from vkops.onnx.lowering import Lowering

Bytes = npt.NDArray[np.uint8]


@dataclass(eq=False)
class HostHeap:
    """An array that stands for a heap of a device."""

    data: Bytes

    @classmethod
    def of(cls, nbytes: int) -> HostHeap:
        """Return zeros, rounded up to whole vectors: kernels may read the rest of the last one."""
        try:
            return cls(np.zeros(round_up(max(nbytes, 1), VECTOR), np.uint8))
        except (MemoryError, ValueError) as error:
            message = f"{nbytes} bytes: the host has no more memory available"
            raise OutOfDeviceMemoryError(message) from error

    @property
    def nbytes(self) -> int:
        """The size in bytes."""
        return self.data.size

    def read(self, offset: int, nbytes: int) -> bytes:
        """Return bytes from an offset on."""
        return self.data[offset : offset + nbytes].tobytes()

    def write(self, data: bytes | npt.NDArray[Any], offset: int = 0) -> None:
        """Replace bytes from an offset on."""
        source = np.frombuffer(data, np.uint8)
        self.data[offset : offset + source.size] = source

    @classmethod
    def holding(cls, array: npt.NDArray[Any]) -> Extent:
        """Return an extent of a new heap with the elements of an array."""
        data = packed_bytes(array)
        heap = cls.of(data.size)
        heap.data[: data.size] = data
        return Extent(heap, 0, data.size)


@dataclass(frozen=True)
class ShaderRun:
    """A dispatch of a shader; ``arrays`` are the bindings of its blocks, and get the results.

    Arrays of blocks have bytes. Arrays of images have texels, and may be in a pair with a sampler.
    """

    shader: Shader
    arrays: Mapping[str, Any]
    groups: Sequence[int]
    push: Any = ()

    @cached_property
    def case(self) -> Case:
        """The shader with its arrays, as a ``Case``."""
        return Case.of(self.shader, self.arrays, self.groups, push=self.push)

    def runs(self) -> Iterator[tuple[None, ShaderRun]]:
        """Yield this run, as ``PlanRun.runs`` yields kernels."""
        yield None, self

    def run(self) -> None:
        """Run the shader, and store the results."""
        _, memory = self.case.run()
        check_end(self.case.findings)
        self._store(self.case.results(memory))

    def check(self, observers: Sequence[Observer] = ()) -> Report:
        """Check the shader as ``Case.check`` does, and store the results."""
        report = self.case.check(observers)
        self._store(report.buffers)
        return report

    def _store(self, results: Mapping[str, npt.NDArray[Any]]) -> None:
        for slot, array in self.shader.elements(self.arrays):
            if slot.is_written:
                data = results[slot.name].reshape(-1).view(np.uint8)
                array.reshape(-1).view(np.uint8)[: data.size] = data


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
    """Return a kernel of vkops, compiled from its folder of sources with source lines."""
    spirv = shaders.VARIANTS[name].compile(debug=True)
    return shaders.load(shaders.for_records(spirv, aligned=aligned), name=name)


class PlanOutput(NamedTuple):
    """A tensor of a plan that is an output; its strides count elements."""

    number: int
    sizes: Ints
    strides: Ints
    dtype: np.dtype[Any]


@dataclass(frozen=True)
class PlanRun:
    """Plans that run one after the other on numbered tensors; ``names`` are the tensors' names.

    ``strings`` are the strings that handles in tensors of strings refer to.
    """

    steps: Sequence[Step]
    tensors: dict[int, Extent]
    names: Mapping[int, str]
    outputs: Mapping[str, PlanOutput]
    tuning: Tuning
    strings: Sequence[str] = ()

    def results(self) -> Iterator[tuple[str, PlanOutput, npt.NDArray[Any]]]:
        """Yield the outputs, each as a flat array that includes the memory between its elements."""
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
        """Yield the runs of kernels in order; each must be run before the next one is requested."""
        for step in self.steps:
            for number, output in zip(step.makes, step.plan.outputs, strict=True):
                scratch = Extent(HostHeap.of(output.nbytes), 0, output.nbytes)
                self.tensors.setdefault(number, scratch)
            read, written = (
                [(self.tensors[n],) for n in each] for each in (step.reads, step.makes)
            )
            in_place = {r.resource for (r,) in read for (m,) in written if r.overlaps(m)}
            for dispatch in EncodedPlan(step.plan, self.tuning).bind(read, written):
                assert isinstance(dispatch, Dispatch)  # with this tuning there are no copies
                # For a constant, a kernel reads the start of any heap, and ignores the value. If it
                # also writes this heap, the read would be reported as a data race.
                heaps: Sequence[Any] = dispatch.sources
                sources: Any = tuple(h if h in in_place else HostHeap(h.data.copy()) for h in heaps)
                yield step, kernel_run(replace(dispatch, sources=sources))


def execute(work: PlanRun | ShaderRun) -> None:
    """Run a dispatch."""
    for _, run in work.runs():
        run.run()


class HostTarget:
    """A target of arrays, on which the interpreter runs dispatches; ``execute`` runs a dispatch."""

    def __init__(self, tuning: Tuning = GPU) -> None:
        self.tuning: Tuning = replace(tuning, copies=SHADERS)
        self.execute: Callable[[PlanRun | ShaderRun], object] = execute

    def buffers(self, sizes: Mapping[str, int]) -> Mapping[str, HostHeap]:
        return allocate(sizes, HostHeap.of)

    def tensor(self, buffer: HostHeap, shape: Ints, dtype: np.dtype[Any]) -> npt.NDArray[Any]:
        view: npt.NDArray[Any] = np.ndarray(shape, dtype, buffer.data.data)
        return view

    def sampler(self, **settings: Any) -> Mapping[str, Any]:
        return settings

    def create_operator(self, desc: OperatorDesc) -> OperatorDesc:
        return desc

    def compile_operator(
        self, desc: OperatorDesc, _: object, owned: Sequence[_Binding | None]
    ) -> Bind:
        initialized = [
            each and (HostHeap.holding(each[0].data[each[1] :])[0], 0, 0) for each in owned
        ]

        def bind(inputs: Sequence[Any], outputs: Sequence[Any]) -> Run:
            bound = [own or each for own, each in zip(initialized, inputs, strict=True)]
            return self._run(_operator_plans(desc, bound, outputs, self.tuning))

        return bind

    def compile_shader(self, _: Shader, load: Callable[..., Shader]) -> Bind:
        return functools.partial(self._bound_shader, load(debug=True))

    def compile_onnx(self, model: Model) -> Callable[[Mapping[str, Any]], OnnxRun]:
        return functools.partial(self._bound_onnx, model)

    def _run(self, work: PlanRun | ShaderRun) -> Run:
        return lambda _: self.execute(work)

    def _bound_shader(
        self, shader: Shader, buffers: Mapping[str, Any], groups: Any, push: Any
    ) -> Run:
        views = dict[_Binding, Bytes]()  # equal bytes must get the same array

        def array(bound: Any) -> Any:
            if isinstance(bound, list):
                return [array(each) for each in bound]
            if not isinstance(bound, tuple) or not isinstance(bound[0], HostHeap):
                return bound
            heap, start, n = bound
            return views.setdefault(bound, heap.data[start : start + n])

        arrays = {name: array(bound) for name, bound in buffers.items()}
        if isinstance(groups[0], HostHeap):
            heap, start = groups
            groups = np.frombuffer(heap.read(start, GROUPS_NBYTES), np.uint32).tolist()
        return self._run(ShaderRun(shader, arrays, groups, push))

    def _bound_onnx(self, model: Model, inputs: Mapping[str, Any]) -> OnnxRun:
        from vkops.onnx.onnx_session import lowered

        lowering = lowered(model, inputs)

        def run(_: object, targets: Mapping[int, npt.NDArray[Any]]) -> list[Any]:
            plans = _onnx_plans(model, lowering, inputs, self.tuning)
            self.execute(plans)
            results = {name: array.reshape(out.sizes) for name, out, array in plans.results()}
            for index, target in targets.items():
                target[...] = results[model.outputs[index].name]
            return [results.get(entry.name) for entry in model.outputs]

        return lowering.outputs, run


_Binding = tuple[HostHeap, int, int]


def _operator_plans(
    desc: OperatorDesc, inputs: Sequence[Any], outputs: Sequence[Any], tuning: Tuning
) -> PlanRun:
    pipeline = desc.pipeline
    tensors: dict[int, Extent] = {}
    names: dict[int, str] = {}
    results: dict[str, PlanOutput] = {}
    numbers = (*pipeline.inputs, *pipeline.outputs)
    named = zip(numbers, (*desc.inputs, *desc.outputs), (*inputs, *outputs), strict=True)
    for number, (path, tensor), (heap, start, _) in named:
        name = names[number] = with_dml_names(path)
        tensors[number] = Extent(heap, start, tensor.total_tensor_size_in_bytes)
        if number in pipeline.outputs:
            form = tensor.sizes, tensor.effective_strides
            results[name] = PlanOutput(number, *form, dtype_of(tensor.data_type))
    for number, constant in pipeline.constants.items():
        names[number] = "a constant"
        tensors[number] = HostHeap.holding(constant.array())
    return PlanRun(pipeline.steps, tensors, names, results, tuning)


def _onnx_plans(
    model: Model, lowering: Lowering, inputs: Mapping[str, Any], tuning: Tuning
) -> PlanRun:
    """Return the plans of an ONNX model, on copies of the inputs."""
    from vkops.onnx.element_types import STRING
    from vkops.onnx.lowering import LoweredTensor, string_handles, tensors_of

    numbers = dict.fromkeys(t.number for value in lowering.outputs for t in tensors_of(value))
    tensors = {number: HostHeap.holding(array) for number, array in lowering.constants.items()}
    names = dict.fromkeys(tensors, "a constant")
    strings = [*lowering.strings]
    for number, (name, item) in lowering.inputs.items():
        array = inputs[name] if item is None else inputs[name][item]
        array = string_handles(array, strings) if array.dtype == STRING else array
        tensors[number] = HostHeap.holding(array)
        names[number] = name if item is None else f"{name}[{item}]"
    outputs = {
        entry.name: PlanOutput(out.number, out.shape, packed_strides(out.shape), out.dtype)
        for entry, out in zip(model.outputs, lowering.outputs, strict=True)
        if isinstance(out, LoweredTensor)
    }
    steps = tuple(lowering.graph.lower([*numbers]))
    return PlanRun(steps, tensors, names, outputs, tuning, strings)


Subject = Case | Prepared | OnnxFile
"""A shader with all its arguments, or a model."""


class ModelDispatch(NamedTuple):
    """A dispatch of a model: its name, which is empty for a lone ONNX file, and how to run it.

    The outputs that ``run`` returns are read when they are iterated over.
    """

    name: str
    run: Callable[[], Iterator[OutputArray]]
    samplers: Mapping[str, Sequence[Mapping[str, Any]]]


def dispatches(model: Prepared | OnnxFile, target: Target) -> list[ModelDispatch]:
    """Return the dispatches of a model on a target; they must run in this order."""
    if isinstance(model, OnnxFile):
        file = model

        def run_file() -> Iterator[OutputArray]:
            _, run = target.compile_onnx(file.model)(file.inputs)
            return output_arrays(file.model, run(None, {}))

        return [ModelDispatch("", run_file, {})]
    execution = Execution(model, target)

    def run(dispatch: CheckedDispatch) -> Iterator[OutputArray]:
        execution.bind(dispatch)(None)
        return dispatch.dispatchable.outputs(dispatch, execution)

    return [
        ModelDispatch(
            f"dispatch {number}, '{dispatch.dispatchable.name}'",
            functools.partial(run, dispatch),
            getattr(dispatch.dispatchable, "samplers", {}),  # only shaders have samplers
        )
        for number, dispatch in enumerate(model.dispatches, 1)
    ]


def run_all(subject: Subject, run: Callable[[str, Case | ShaderRun], object]) -> None:
    """Run all dispatches of a shader or a model by a function, which also gets their names."""
    if isinstance(subject, Case):
        run("", subject)
        return
    target = HostTarget()
    for dispatch in dispatches(subject, target):
        prefix = dispatch.name and f"{dispatch.name}, "

        def execute(work: PlanRun | ShaderRun, prefix: str = prefix) -> None:
            for _, each in work.runs():
                run(f"{prefix}{each.shader.name}: ", each)

        target.execute = execute
        dispatch.run()
