"""Results of a driver and of the interpreter: the first element that differs, and its store."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from vkops.debug.interpreter.findings import Finding
from vkops.debug.model_dispatches import HostModel, PlanOutput, PlanRun, onnx_plans
from vkops.debug.model_trace import (
    Element,
    ModelTrace,
    trace_model,
    trace_plans,
    trace_shader,
)
from vkops.debug.shader_check import Case, check_end, differences, number_at
from vkops.dxdispatch.json_model import BindingSource
from vkops.dxdispatch.model_checks import BoundDispatch, Prepared
from vkops.dxdispatch.onnx_dispatchable import BoundOnnx
from vkops.dxdispatch.shader_dispatchable import BoundShader
from vkops.plan.rounding import round_up
from vkops.runner.dispatch_timing import RunOptions
from vkops.runner.model_execution import Execution

if TYPE_CHECKING:
    import vkops
    from vkops.debug.model_dispatches import Subject
    from vkops.onnx import Model
    from vkops.shaders.module import Block

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class Difference:
    """The first element that differs: what it is, its trace, and the faults that were found."""

    what: str
    trace: ModelTrace
    findings: Sequence[Finding]
    device: str

    @property
    def verdict(self) -> str:
        """The sentence that says what is probably at fault."""
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
    report = case.check()
    check_end(report.findings)  # which no device should run
    outcome = _on_device(case, device)
    for block in case.shader.blocks:
        if block.kind != "storage" or block.readonly:
            continue
        wanted = report.buffers[block.point].view(np.uint8)
        for name, element, values in _difference(block, wanted, outcome[block.place]):
            text = _text(name, element, values, device)
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
    tuning = device.tuning
    host, execution = HostModel(prepared, tuning), Execution(prepared, device, RunOptions())
    for number, command in enumerate(host.dispatches, 1):
        plans = host.plans(command)
        findings = [f for run in host.runs(command, plans) for f in run.check().findings]
        check_end(findings)
        with execution.ready(command) as dispatch:
            dispatch(None)
        if isinstance(command, BoundShader):
            outputs = _blocks(host, execution, command)
        else:
            assert plans is not None
            outputs = _tensors(plans, execution, command)
        for name, element, values in outputs:
            traced = trace_model(HostModel(prepared, tuning), number, element)
            label = f"Dispatch {number}, '{command.command.dispatchable.name}': {name}"
            text = _text(label, element, values, device)
            return Difference(text, traced, findings, device.name)
    return None


_Output = tuple[str, Element, tuple[Any, Any]]
"""The name of an output that differs, the first element that does, and its two values.

The first value is that of the interpreter, the second that of the device.
"""


def _difference(block: Block, wanted: Array, found: Array) -> Iterator[_Output]:
    nbytes = 4 if block.dtype is None else block.dtype.itemsize
    for at in differences(block, wanted, found)[:1].tolist():
        values = number_at(block, wanted, at), number_at(block, found, at)
        yield block.point, Element(block.point, at // nbytes * nbytes, nbytes), values


def _blocks(host: HostModel, execution: Execution, bound: BoundShader) -> Iterator[_Output]:
    for point, source in bound.sources.items():
        block = bound.dispatchable.shader.block(point)
        if block is not None and block.kind == "storage" and not block.readonly:
            start, end = source.offset, source.offset + source.nbytes
            wanted = host.heaps[source.resource.name].data[start:end]
            read = execution.buffers[source.resource.name].read(start, end - start)
            yield from _difference(block, wanted, np.frombuffer(read, np.uint8))


def _tensors(
    plans: PlanRun, execution: Execution, bound: BoundDispatch | BoundOnnx
) -> Iterator[_Output]:
    sources: list[BindingSource | None]
    if isinstance(bound, BoundDispatch):
        sources = [source for source in bound.outputs if source is not None]
    else:
        bindings = {binding.entry.name: binding for binding in bound.outputs}
        sources = [bindings[name].source for name in plans.outputs]
    for (name, output, wanted), source in zip(plans.results(), sources, strict=True):
        if source is None:
            continue
        buffer = execution.buffers.get(source.resource.name)
        if buffer is None:
            found = np.ascontiguousarray(execution.deferred[source.resource.name]).reshape(-1)
        else:
            found = np.frombuffer(buffer.read(source.offset, wanted.nbytes), wanted.dtype)
        yield from _other_bit(name, output, wanted, found)


def _compare_onnx(
    model: Model, inputs: Mapping[str, Any], device: vkops.Device
) -> Difference | None:
    from vkops.onnx import Session

    tuning = device.tuning
    plans = onnx_plans(model, inputs, tuning)
    findings = [f for _, run in plans.runs() for f in run.check().findings]
    made = Session(model, device).run(inputs)
    results = dict(zip([entry.name for entry in model.outputs], made, strict=True))
    for name, output, wanted in plans.results():
        found = np.asarray(results[name]).reshape(-1)
        for label, element, values in _other_bit(f"Output '{name}'", output, wanted, found):
            traced = trace_plans(onnx_plans(model, inputs, tuning), element)
            text = _text(label, element, values, device)
            return Difference(text, traced, findings, device.name)
    return None


def _other_bit(name: str, output: PlanOutput, a: Array, b: Array) -> Iterator[_Output]:
    """Yield the first element of which a bit differs, or a character of a string."""
    parts = 1 if a.dtype.hasobject else a.itemsize
    differs = a != b if a.dtype.hasobject else a.view(np.uint8) != b.view(np.uint8)
    for at in (np.flatnonzero(differs)[:1] // parts).tolist():
        yield name, Element(output.number, at * a.itemsize, a.itemsize), (a[at], b[at])


def _text(name: str, element: Element, values: tuple[Any, Any], device: vkops.Device) -> str:
    at = element.offset // element.nbytes
    wanted, found = values
    return f"{name}: element {at} is {wanted} in the interpreter, and {found} on '{device.name}'"
