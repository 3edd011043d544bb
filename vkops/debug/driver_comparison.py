"""Results of a driver and of the interpreter: the first element that differs, and its store."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from vkops.debug.host_execution import HostExecution, PlanRun, ShaderRun, Subject
from vkops.debug.model_trace import Element, Trace, trace_dispatch, trace_shader
from vkops.debug.shader_check import Case, check_end, differences, number_at, refuse_images
from vkops.errors import BindingError
from vkops.interpreter.findings import Finding
from vkops.models.model import Bound, Execution, Output, Prepared
from vkops.plan.rounding import round_up

if TYPE_CHECKING:
    import vkops
    from vkops.shaders.module import Block


@dataclass(frozen=True)
class Difference:
    """The first element that differs: what it is, its trace, and the faults that were found."""

    what: str
    trace: Trace
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
    return _compare_model(subject, device)


def _compare_shader(case: Case, device: vkops.Device) -> Difference | None:
    refuse_images(case.shader)
    arrays = [block.point for block in case.shader.blocks if block.length is not None]
    if arrays or case.shader.module.uses_addresses:
        what = "is an array of blocks" if arrays else "buffer references have addresses"
        message = f"{what}, which cannot be compared with a device"
        raise BindingError(case.shader.name, "".join(arrays[:1]), message, "SH-01")
    report = case.check()
    check_end(report.findings)  # which no device should run
    pairs = (
        (Output(block.point, report.buffers[block.point].view(np.uint8), block), output)
        for block, output in _on_device(case, device)
    )
    return _difference(pairs, str, partial(trace_shader, case), report.findings, device)


def _on_device(case: Case, device: vkops.Device) -> Iterator[tuple[Block, Output]]:
    """Run a shader on a device, and return the bytes of each block that it can write."""
    compiled = device.compile_shader(case.shader)
    bound: dict[str, Any] = {}
    given = case.memory()
    for place in case.shader.places:
        data = given[place].contents()
        buffer = device.buffer(round_up(data.size, 4))
        buffer.write(np.pad(data, (0, buffer.nbytes - data.size)))
        bound[case.shader.places[place][0].point] = buffer, 0, data.size
    compiled.dispatch(bound, case.groups, case.push)
    for block in case.shader.blocks:
        if block.kind == "storage" and not block.readonly:
            buffer, _, _ = bound[case.shader.places[block.place][0].point]
            yield block, Output(block.point, np.frombuffer(buffer.read(), np.uint8), block)


def _compare_model(model: Prepared, device: vkops.Device) -> Difference | None:
    findings: list[Finding] = []

    def check(work: PlanRun | ShaderRun) -> None:
        findings[:] = [finding for _, run in work.runs() for finding in run.check().findings]
        check_end(findings)

    host, own = HostExecution(model, device.tuning), Execution(model, device)
    host.execute = check
    for number, bound in enumerate(model.dispatches, 1):

        def label(output: str, number: int = number, bound: Bound = bound) -> str:
            dispatch = f"Dispatch {number}, '{bound.dispatchable.name}': {output}"
            return f"Output '{output}'" if bound.is_alone else dispatch

        def trace(element: Element, number: int = number) -> Trace:
            return trace_dispatch(model, number, lambda _: element, device.tuning)

        pairs = zip(*(_dispatched(bound, each) for each in (host, own)), strict=True)
        found = _difference(pairs, label, trace, findings, device)
        if found is not None:
            return found
    return None


def _dispatched(bound: Bound, execution: Execution) -> list[Output]:
    execution.ready(bound)(None)
    return [*bound.dispatchable.outputs(bound, execution)]


def _difference(
    pairs: Iterable[tuple[Output, Output]],
    label: Callable[[str], str],
    trace: Callable[[Element], Trace],
    findings: Sequence[Finding],
    device: vkops.Device,
) -> Difference | None:
    """Return the first element of which a bit differs, or a character of a string.

    Numbers of a block differ as ``differences`` says.
    """
    for (name, a, block), (_, b, _) in pairs:
        values: tuple[Any, Any]
        nbytes = a.itemsize
        if block is not None:
            nbytes = 4 if block.dtype is None else block.dtype.itemsize
            places = differences(block, a, b)
        elif a.dtype.hasobject:
            places = np.flatnonzero(a != b) * nbytes
        else:
            places = np.flatnonzero(a.view(np.uint8) != b.view(np.uint8))
        for place in places[:1].tolist():
            at = place // nbytes
            if block is not None:
                values = number_at(block, a, place), number_at(block, b, place)
            else:
                values = a[at], b[at]
            text = f"{values[0]} in the interpreter, and {values[1]} on '{device.name}'"
            found = trace(Element(name, at * nbytes, nbytes))
            what = f"{label(name)}: element {at} is {text}"
            return Difference(what, found, findings, device.name)
    return None
