"""A comparison of a driver with the interpreter: the first different element, and its store."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from vkops.debug import results
from vkops.debug.arguments import Argument, OpaqueArgument
from vkops.debug.host_execution import Bytes, HostTarget, PlanRun, ShaderRun, Subject, dispatches
from vkops.debug.model_trace import Element, Trace, trace_dispatch, trace_shader
from vkops.debug.results import TOLERANCE, first_difference, tolerance_of
from vkops.debug.shader_check import Case, check_end, result_name
from vkops.errors import ModelError
from vkops.interpreter.addresses import BASE, PLACE
from vkops.interpreter.findings import Finding
from vkops.models.model import OutputArray, Prepared
from vkops.models.onnx import OnnxFile
from vkops.models.target import DeviceTarget
from vkops.plan.rounding import round_up

if TYPE_CHECKING:
    import vkops
    from vkops.shaders.module import Block


@dataclass(frozen=True)
class Difference:
    """The first element that differs: its name, its trace, and the faults that were found."""

    what: str
    trace: Trace
    findings: Sequence[Finding]
    device: str

    @property
    def verdict(self) -> str:
        """A sentence that names the probable cause."""
        if self.trace.differs:
            return self.trace.verdict
        if self.findings:
            return "The shader is at fault: the interpreter found faults, which are above"
        return f"The interpreter found no fault: the driver of '{self.device}' is probably at fault"

    def text(self, rows: int) -> str:
        """Describe the difference, with at most ``rows`` lines of the shader."""
        return "\n".join([self.what, self.trace.text(rows), *map(str, self.findings)])


def compare(subject: Subject, device: vkops.Device) -> Difference | None:
    """Run a shader or a model in the interpreter and on a device; None if all results are equal."""
    if isinstance(subject, Case):
        return _compare_shader(subject, device)
    return _compare_model(subject, device)


def _compare_shader(case: Case, device: vkops.Device) -> Difference | None:
    report = case.check()
    check_end(report.findings)  # no device should run an endless loop
    for finding in report.findings if case.shader.uses_addresses else ():
        if finding.kind == "out of bounds":
            raise ModelError(str(finding))
    given = (each for arguments in case.given.values() for each in arguments)
    samplers = (
        each.sampler for each in given if isinstance(each, OpaqueArgument) and each.has_sampler
    )
    tolerance = tolerance_of((each.filter for each in samplers), TOLERANCE)
    expected = report.buffers
    pairs = (
        (name, expected[name], first_difference(block, expected[name], result, tolerance))
        for name, block, result in _on_device(case, device)
    )
    return _difference(pairs, str, partial(trace_shader, case), report.findings, device)


def _on_device(
    case: Case, device: vkops.Device
) -> Iterator[tuple[str, Block | None, npt.NDArray[Any]]]:
    """Run a shader on a device; yield each result with the block or tensor that it is stored to."""
    compiled, memory = device.compile_shader(case.shader), case.memory()
    resources: dict[str, Any] = {name: device.tensor(array) for name, array in case.tensors.items()}
    tensor_memory = memory[PLACE]
    moved = {
        BASE + tensor_memory.start(name): each.device_address for name, each in resources.items()
    }
    bound: dict[str, Any] = {}
    for place, (block, *_) in case.shader.places.items():
        memories = memory[place] if block.is_array else [memory[place]]
        pairs = zip(case.arguments(place), memories, strict=True)
        elements = [_bound(block, each, one.contents(), device, moved) for each, one in pairs]
        bound[block.point] = block.bound_to(elements)
        resources |= {result_name(block, n): each for n, each in enumerate(elements)}
    compiled.dispatch(bound, case.groups, _with_addresses(case.push, moved))
    for name, stored in case.stored(memory).items():
        if not stored.is_readonly:
            written = resources[name]
            data = written[0].read() if isinstance(written, tuple) else written.numpy().tobytes()
            yield name, stored.block, np.frombuffer(data, stored.numbers().dtype)


def _bound(
    block: Block, argument: Argument, data: Bytes, device: vkops.Device, moved: Mapping[int, int]
) -> Any:
    """Return the value to bind on a device for an argument and its bytes."""
    if not isinstance(argument, OpaqueArgument):
        buffer = device.buffer(round_up(len(data), 4))
        buffer.write(_with_addresses(data.tobytes(), moved).ljust(buffer.nbytes, b"\0"))
        return buffer, 0, len(data)
    filter_, address, normalized = argument.sampler
    declared, levels = block.image, argument.arrays
    resources: list[Any] = []
    if declared and len(levels) > 1:
        form: Any = {"dims": declared.dims, "layers": declared.has_layers, "mips": len(levels)}
        resources.append(device.image(levels[0].shape, levels[0].dtype, **form))
        for number, each in enumerate(levels):
            resources[0].mip(number)[...] = each
    else:
        resources += map(device.tensor, levels)
    if argument.has_sampler:
        resources.append(device.sampler(filter_, address, normalized=normalized))
    return resources[0] if len(resources) == 1 else tuple(resources)


def _with_addresses(data: bytes, moved: Mapping[int, int]) -> bytes:
    """Return values in which addresses of the interpreter are replaced by those of a device."""
    words = np.frombuffer(data[: len(data) // 8 * 8], np.uint64)
    for old, new in moved.items():
        words = np.where(words == old, np.uint64(new), words)
    return words.tobytes() + data[words.nbytes :]


def _compare_model(model: Prepared | OnnxFile, device: vkops.Device) -> Difference | None:
    findings: list[Finding] = []

    def check(work: PlanRun | ShaderRun) -> None:
        findings[:] = [finding for _, run in work.runs() for finding in run.check().findings]
        check_end(findings)

    host, on_device = HostTarget(device.tuning), DeviceTarget(device)
    host.execute = check
    both = zip(dispatches(model, host), dispatches(model, on_device), strict=True)
    for number, (interpreted, run) in enumerate(both, 1):
        name = interpreted.name[:1].upper() + interpreted.name[1:]

        def label(output: str, name: str = name) -> str:
            return f"{name}: {output}" if name else f"Output '{output}'"

        def trace(element: Element, number: int = number) -> Trace:
            return trace_dispatch(model, number, lambda _: element, device.tuning)

        filters = (each["filter"] for settings in run.samplers.values() for each in settings)
        tolerance = tolerance_of(filters, TOLERANCE)
        pairs = zip(interpreted.run(), run.run(), strict=True)
        named = (
            (one.name, one.array, _first_difference(one, other, tolerance)) for one, other in pairs
        )
        difference = _difference(named, label, trace, findings, device)
        if difference is not None:
            return difference
    return None


def _first_difference(
    one: OutputArray, other: OutputArray, tolerance: results.Tolerance
) -> results.NumberDifference | None:
    """Return the first element that differs in a bit, or the first string that differs.

    Numbers of a block are compared by ``differences``.
    """
    a, b = one.array, other.array
    if one.block is not None:
        return first_difference(one.block, a, b, tolerance)
    differs = a != b
    if not a.dtype.hasobject:
        unlike = a.view(np.uint8) != b.view(np.uint8)
        differs = unlike.reshape(a.size, -1).any(1)
    if not differs.any():
        return None
    at = int(differs.argmax())
    return results.NumberDifference(at * a.itemsize, at, str(a[at]), str(b[at]), 1)


def _difference(
    pairs: Iterable[tuple[str, npt.NDArray[Any], results.NumberDifference | None]],
    label: Callable[[str], str],
    trace: Callable[[Element], Trace],
    findings: Sequence[Finding],
    device: vkops.Device,
) -> Difference | None:
    """Describe the first difference of named results; the array is the interpreter's."""
    for name, array, difference in pairs:
        if difference is not None:
            traced = trace(Element(name, difference.at, array.itemsize))
            text = f"{difference.one} in the interpreter, and {difference.other} on '{device.name}'"
            what = f"{label(name)}: element {difference.element} is {text}"
            return Difference(what, traced, findings, device.name)
    return None
