"""Results of a driver and of the interpreter: the first element that differs, and its store."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from vkops.debug.interpreter.findings import Finding
from vkops.debug.model_dispatches import HostModel, onnx_run
from vkops.debug.model_trace import (
    Element,
    ModelTrace,
    trace_model,
    trace_plan,
    trace_shader,
)
from vkops.debug.shader_check import Case, as_numbers, first_difference
from vkops.dxdispatch.data_types import dtype_of
from vkops.dxdispatch.descriptors import with_dml_names
from vkops.dxdispatch.json_model import DmlDispatchable
from vkops.dxdispatch.model_checks import Bound, BoundDispatch, Prepared
from vkops.dxdispatch.shader_dispatchable import BoundShader
from vkops.plan.rounding import round_up
from vkops.runner.dispatch_timing import RunOptions
from vkops.runner.model_execution import Execution

if TYPE_CHECKING:
    import vkops
    from vkops.debug.model_trace import Subject
    from vkops.onnx import Model

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class Difference:
    """The first element that differs: what it is, its way, and the faults that were found."""

    what: str
    trace: ModelTrace
    findings: Sequence[Finding]
    device: str

    @property
    def verdict(self) -> str:
        """What is probably at fault."""
        if self.trace.differs:
            return self.trace.verdict
        if self.findings:
            return "The shader is at fault: the interpreter found faults, which are above"
        return f"The interpreter found no fault: the driver of '{self.device}' is probably at fault"

    def text(self, rows: int) -> str:
        """Describe it, with so many lines of the shader at most."""
        return "\n".join([self.what, self.trace.text(rows), *map(str, self.findings)])


def compare(subject: Subject, device: vkops.Device) -> Difference | None:
    """Run a shader or a model in the interpreter and on a device; None if all is the same.

    Raises:
        VkopsError: what running it raises.
    """
    if isinstance(subject, Case):
        return _compare_shader(subject, device)
    if isinstance(subject, Prepared):
        return _compare_model(subject, device)
    return _compare_onnx(*subject, device)


def _compare_shader(case: Case, device: vkops.Device) -> Difference | None:
    report, outcome = case.check(), _on_device(case, device)
    for point, wanted in report.buffers.items():
        block = case.shader.block(point)
        assert block is not None
        found = as_numbers(block, outcome[block.place])
        at = first_difference(wanted, found)
        if at is not None:
            element = Element(point, at * wanted.itemsize, wanted.itemsize)
            text = _text(point, wanted, found, at, device)
            return Difference(text, trace_shader(case, element), report.findings, device.name)
    return None


def _on_device(case: Case, device: vkops.Device) -> dict[tuple[int, int], Array]:
    """Run a shader on a device, and return the bytes of each binding."""
    compiled = device.compile_shader(case.shader)
    bound: dict[str, Any] = {}
    for place, memory in case.memory().items():
        data = memory.contents()
        buffer = device.buffer(round_up(data.size, 4))
        buffer.write(np.pad(data, (0, buffer.nbytes - data.size)))
        bound[case.shader.places[place][0].point] = buffer, 0, data.size
    compiled.dispatch(bound, case.groups, case.push)
    return {
        place: np.frombuffer(bound[blocks[0].point][0].read(), np.uint8)
        for place, blocks in case.shader.places.items()
    }


def _compare_model(prepared: Prepared, device: vkops.Device) -> Difference | None:
    tuning = device.executor.tuning
    host, execution = HostModel(prepared, tuning), Execution(prepared, device, RunOptions())
    for number, command in enumerate(host.dispatches, 1):
        findings = [f for run in host.runs(command) for f in run.check().findings]
        with execution.ready(command) as dispatch:
            dispatch(lambda *_: None)
        for name, element, wanted, found in _outputs(host, execution, command):
            exact = isinstance(command, BoundDispatch)
            at = _first(wanted, found) if exact else first_difference(wanted, found)
            if at is not None:
                element = element._replace(offset=at * wanted.itemsize)
                traced = trace_model(HostModel(prepared, tuning), number, element)
                label = f"Dispatch {number}, '{command.command.dispatchable.name}': {name}"
                text = _text(label, wanted, found, at, device)
                return Difference(text, traced, findings, device.name)
    return None


def _outputs(
    host: HostModel, execution: Execution, command: Bound
) -> Iterator[tuple[str, Element, Array, Array]]:
    """Yield the outputs of a dispatch by name, as the interpreter and the device made them."""
    if isinstance(command, BoundShader):
        for point, source in command.sources.items():
            block = command.dispatchable.shader.block(point)
            if block is not None and block.kind == "storage" and not block.readonly:
                start, end = source.offset, source.offset + source.nbytes
                data = host.heaps[source.resource.name].data[start:end]
                read = execution.buffers[source.resource.name].read(start, end - start)
                wanted, found = (
                    as_numbers(block, each) for each in (data, np.frombuffer(read, np.uint8))
                )
                yield block.point, Element(block.point, 0, wanted.itemsize), wanted, found
    elif isinstance(command, BoundDispatch):
        dispatchable = command.command.dispatchable
        assert isinstance(dispatchable, DmlDispatchable)
        desc = dispatchable.desc
        numbered = zip(desc.pipeline.outputs, desc.outputs, command.outputs, strict=True)
        for number, (path, tensor), place in numbered:
            if tensor is None or place is None:
                continue
            dtype = dtype_of(tensor.data_type)
            nbytes = tensor.total_tensor_size_in_bytes // dtype.itemsize * dtype.itemsize
            data = host.heaps[place.resource.name].data[place.offset :][:nbytes]
            read = execution.buffers[place.resource.name].read(place.offset, nbytes)
            element = Element(number, 0, dtype.itemsize)
            yield with_dml_names(path), element, data.view(dtype), np.frombuffer(read, dtype)


def _compare_onnx(
    model: Model, inputs: Mapping[str, Any], device: vkops.Device
) -> Difference | None:
    from vkops.onnx import Session
    from vkops.onnx.lowering import LoweredTensor

    tuning = device.executor.tuning
    run, outputs = onnx_run(model, inputs, tuning)
    findings = [f for _, each in run.runs() for f in each.check().findings]
    results = Session(model, device).run(inputs)
    for entry, lowered, result in zip(model.outputs, outputs, results, strict=True):
        if not isinstance(lowered, LoweredTensor) or result.dtype == object:
            continue
        heap, start, nbytes = run.tensors[lowered.number]
        found = np.asarray(result).reshape(-1)
        wanted = heap.data[start : start + nbytes][: found.nbytes].view(found.dtype)
        at = _first(wanted, found)
        if at is not None:
            element = Element(lowered.number, at * found.itemsize, found.itemsize)
            again, _ = onnx_run(model, inputs, tuning)
            text = _text(f"Output '{entry.name}'", wanted, found, at, device)
            return Difference(text, trace_plan(again, element), findings, device.name)
    return None


def _first(a: Array, b: Array) -> int | None:
    """Return the first element of which a bit differs."""
    found = np.flatnonzero(a.view(np.uint8) != b.view(np.uint8))
    return int(found[0]) // a.itemsize if len(found) else None


def _text(name: str, wanted: Array, found: Array, at: int, device: vkops.Device) -> str:
    return (
        f"{name}: element {at} is {wanted[at]} in the interpreter, and {found[at]} on "
        f"'{device.name}'"
    )
