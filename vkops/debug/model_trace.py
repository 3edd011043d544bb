"""The origin of an element of a model's output: region of the plan, kernel and store."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import Any, NamedTuple

import numpy as np

from vkops.debug.host_execution import Bytes, HostTarget, PlanRun, ShaderRun, Subject, dispatches
from vkops.debug.results import number_at
from vkops.debug.shader_check import Case, check_end
from vkops.errors import ModelError
from vkops.gpu.kernels.encoding import GPU, Tuning
from vkops.interpreter.tracing import Line, Tracer
from vkops.models.model import Prepared
from vkops.models.onnx import OnnxFile
from vkops.plan.execute import addresses
from vkops.plan.graph import Step
from vkops.plan.region import Fill, Read, Region
from vkops.plan.view import Ints, View

MAX_INVOCATIONS = 64
"""The number of invocations whose values are recorded."""

MAX_RUNS = 8
"""The number of runs; each one also records the invocations that the last one read from."""


@dataclass(frozen=True)
class Trace:
    """The origin of an element of an output.

    Attributes:
        name: its first number, in the last kernel or shader that stored it; "" if none did.
        value: the value of that number.
        lines: the line of its last store, and those before; none if no invocation stored it.
        facts: what the plan and the dispatch are, as pairs of a name and a text.
        expected: the bytes that the plan allows it to have; none for a shader.
        stored: the bytes that it has after the dispatch.
    """

    name: str = ""
    value: str = ""
    lines: Sequence[Line] = ()
    facts: Sequence[tuple[str, str]] = ()
    expected: Sequence[bytes] = ()
    stored: bytes = b""

    @property
    def differs(self) -> bool:
        """Whether the kernel did something else than the plan says."""
        return bool(self.expected) and self.stored not in self.expected

    @property
    def verdict(self) -> str:
        """A sentence that says how the kernel differs from the plan; empty if it does not."""
        expected = " or ".join(each.hex(" ") for each in self.expected[:2])
        return f"The kernel differs from the plan: got {self.stored.hex(' ')}, must be {expected}"

    def text(self, rows: int) -> str:
        """Describe the trace, with at most ``rows`` lines of the shader."""
        lines = [*(f"{name}: {text}" for name, text in self.facts), *map(str, self.lines[:rows])]
        if self.name and not self.lines:
            lines.append(f"{self.name} = {self.value}, which no invocation stored")
        if len(self.lines) > rows:
            lines.append(f"{len(self.lines) - rows} more (--rows shows them)")
        return "\n".join(lines)


def trace_shader(case: Case, element: Element) -> Trace:
    """Run a shader, and trace a number of a block, an image or a tensor."""
    watched: set[int] = set()
    runs = 0
    while True:
        runs += 1
        tracer = Tracer(watched)
        _, memory = case.run(observers=[tracer])
        check_end(case.findings)
        stored = case.stored(memory)[element.output]
        memory_of_element, at = stored.memory, stored.argument.offset(element.offset)
        name = memory_of_element.element(at)
        value = number_at(stored.block, stored.numbers(), element.offset)
        when, who = memory_of_element.last_change(at)
        if not when:
            return Trace(name, value)
        last = tracer.changes.get((when, who))
        new = {who} if last is None else tracer.unknown(last) - watched
        is_last = not new or len(watched | new) > MAX_INVOCATIONS or runs == MAX_RUNS
        if last is not None and is_last:
            return Trace(name, value, [*tracer.lines(last)])
        watched |= new


def traced(subject: Subject, dispatch: int, output: str, index: Ints) -> Trace:
    """Trace an element of a shader, of a DxDispatch model, or of an ONNX model with its inputs.

    Dispatches are counted from 1. ``output`` is the name of a tensor or of a block; ``""`` means
    the only one. ``index`` has a number for each dimension of a tensor, or one for a block.
    """
    if isinstance(subject, Case):
        return trace_shader(subject, number_of(subject, output, index))
    return trace_dispatch(subject, dispatch, lambda work: _element(work, output, index))


class Element(NamedTuple):
    """Bytes of a tensor or of a block; ``output`` is its name."""

    output: str
    offset: int
    nbytes: int


def trace_dispatch(
    model: Prepared | OnnxFile,
    dispatch: int,
    element_of: Callable[[PlanRun | ShaderRun], Element],
    tuning: Tuning = GPU,
) -> Trace:
    """Run a model up to a dispatch, counted from 1, and trace an element of one of its outputs."""
    target, traces = HostTarget(tuning), []
    listed = dispatches(model, target)
    count = len(listed)
    if not 1 <= dispatch <= count:
        limit = f"must be 1 to {count}" if count else "the model has none"
        raise ModelError(f"--dispatch: got {dispatch}, {limit}")
    *before, last = listed[:dispatch]

    def trace(work: PlanRun | ShaderRun) -> None:
        if isinstance(work, PlanRun):
            traces.append(trace_plans(work, element_of(work)))
        else:
            traces.append(trace_shader(work.case, element_of(work)))

    for each in before:
        each.run()
    target.execute = trace
    last.run()
    return traces[0]


def trace_plans(run: PlanRun, element: Element) -> Trace:
    """Run plans, and trace an element that one of them writes."""
    number = run.outputs[element.output].number
    steps = [step for step in run.steps if number in step.makes]
    if not steps:
        name = run.names.get(number, "an input")
        raise ModelError(f"nothing makes the output: it is {name}, byte {element.offset}")
    facts: list[tuple[str, str]] = []
    expected: list[bytes] = []
    kernel, trace = "none stored it", Trace()
    for step, each in run.runs():
        if step is steps[-1]:
            if not facts:
                facts, expected = _planned(run, step, number, element)
            target = run.tensors[number]
            for block in each.shader.blocks:
                if each.arrays[block.point] is target.resource.data and not block.readonly:
                    place = target.start + element.offset
                    last = trace_shader(each.case, Element(block.point, place, element.nbytes))
                    if last.lines:
                        kernel, trace = each.shader.name, last
                    break
        each.run()
    heap, start, _ = run.tensors[number]
    data = heap.data[start + element.offset :][: element.nbytes].tobytes()
    return replace(trace, facts=[*facts, ("Kernel", kernel)], expected=expected, stored=data)


def _planned(
    run: PlanRun, step: Step, number: int, element: Element
) -> tuple[list[tuple[str, str]], list[bytes]]:
    """Return facts about the region that writes an element, and the bytes that it can store.

    If several elements are scattered to one place, any of them may be stored.
    """
    size = step.plan.element_size
    regions = step.plan.outputs[step.makes.index(number)].regions
    arrays = [heap.data[start:] for heap, start, _ in map(run.tensors.__getitem__, step.reads)]
    writers = [
        (region, at)
        for region in regions
        for at in _sources(region, element.offset // size, arrays)
    ]
    last = [(region, at) for region, at in writers if region.kind == "scatter"] or writers
    if not last:
        message = f"byte {element.offset} belongs to no element: the operator does not write it"
        raise ModelError(message)
    expected = []
    for region, at in last:
        if isinstance(region.source, Fill):
            expected.append(region.source.pattern)
        else:
            data = arrays[region.source.input][at * size + element.offset % size :]
            expected.append(data[: element.nbytes].tobytes())
    region, at = last[0]
    origin = "a constant"
    if region.input is not None:
        name = run.names.get(step.reads[region.input], "an intermediate tensor")
        origin = f"{name}, byte {at * size + element.offset % size}"
    which = f"{regions.index(region) + 1} of {len(regions)}"
    return [("Region", f"{which}: {_text(region)}"), ("Source", origin)], expected


def _sources(region: Region, at: int, inputs: Sequence[Bytes]) -> list[int]:
    """Return the elements of its input that a region copies to element ``at`` of an output.

    There is at most one, unless the region scatters.
    """
    if region.indices is None:
        sources, chosen = _elements(region.source_view), _elements(region.target) == at
    else:
        numbers = inputs[region.indices.input]
        targets, sources, inside = addresses(region, region.indices, numbers)
        chosen = inside & (targets == at)
    return [int(source) for source in sources[chosen]]


def _elements(view: View) -> Any:
    """Return the element number of each element of a view."""
    axes = zip(view.sizes, view.strides, strict=True)
    steps = (np.arange(size) * stride for size, stride in axes)
    return reduce(np.add.outer, steps, np.array(view.offset))


def _text(region: Region) -> str:
    target, source = region.target, region.source
    read = (
        f"input {source.input} at {source.view.offset}, strides {source.view.strides}"
        if isinstance(source, Read)
        else f"constant {source.pattern.hex(' ')}"
    )
    moved = (
        "" if region.indices is None else f", moved by the indices in input {region.indices.input}"
    )
    return f"sizes {target.sizes}, to {target.offset}, strides {target.strides}, from {read}{moved}"


def _element(work: PlanRun | ShaderRun, output: str, index: Ints) -> Element:
    """Return an element of an output of a dispatch; for arguments and errors see ``traced``."""
    if isinstance(work, ShaderRun):
        return number_of(work.case, output, index)
    name = _only(output, list(work.outputs))
    _, sizes, strides, dtype = work.outputs[name]
    _check_index(name, index, sizes)
    elements = sum(i * stride for i, stride in zip(index, strides, strict=True))
    return Element(name, elements * dtype.itemsize, dtype.itemsize)


def number_of(case: Case, output: str, index: Ints) -> Element:
    """Return a number of a block that a shader writes; ``""`` means the only block.

    A block with several types counts as 32-bit words.
    """
    stored = case.stored(case.memory())
    name = _only(output, [name for name, each in stored.items() if not each.is_readonly])
    numbers = stored[name].numbers()
    _check_index(name, index, (numbers.size,))
    return Element(name, index[0] * numbers.itemsize, numbers.itemsize)


def _only(output: str, names: Sequence[str]) -> str:
    """Return the name of an output; it may be omitted if there is only one."""
    if output in names or (not output and len(names) == 1):
        return output or names[0]
    if not names:
        raise ModelError("ELEMENT: there is no output: nothing is stored in buffers or images")
    raise ModelError(f"--output: got {output or 'nothing'}, must be {' or '.join(names)}")


def _check_index(name: str, index: Ints, sizes: Ints) -> None:
    inside = len(index) == len(sizes) and all(
        0 <= i < size for i, size in zip(index, sizes, strict=True)
    )
    if not inside:
        raise ModelError(f"ELEMENT: got {index}, must be in {name}, whose sizes are {sizes}")
