"""Checks of the dispatches of a program: the interpreter runs each shader first."""

from __future__ import annotations

import atexit
import json
import os
import shutil
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from itertools import combinations
from math import prod
from pathlib import Path
from tempfile import mkdtemp
from typing import Any, NamedTuple

import numpy as np

from vkops.arguments.values import ArgumentName, integer
from vkops.console import complain
from vkops.debug.results import TOLERANCE_OF_DEVICES, first_difference, tolerance_of
from vkops.debug.sarif import Result, repository, result, write_results
from vkops.debug.shader_check import MAX_INVOCATIONS, SUBGROUP_SIZES, Case, Report
from vkops.debug.shader_coverage import OutputFile, ShaderCoverage, coverage_file
from vkops.errors import (
    DeviceError,
    InvalidDescError,
    ModelError,
    ShaderCompileError,
    VkopsError,
    one_line,
    show,
)
from vkops.extent import Extent
from vkops.gpu.memory import pinned
from vkops.gpu.memory.pools import living
from vkops.gpu.run.shader_dispatch import BoundCall
from vkops.gpu.run.vulkan_device import VulkanDevice
from vkops.interpreter.addresses import NO_TENSOR
from vkops.interpreter.coverage import Coverage
from vkops.interpreter.findings import Finding
from vkops.interpreter.state import TooManyInstructionsError
from vkops.interpreter.values import SourceLine
from vkops.shaders import compiler
from vkops.shaders.image_formats import FORMATS, Format
from vkops.shaders.module import Block
from vkops.shaders.slot import Slot
from vkops.system.callers import calling_frame
from vkops.system.threads import new_lock

CHECK = "VKOPS_CHECK"
"""The environment variable that enables checks of all dispatches, with the value 1 or strict."""

LIMIT = "VKOPS_CHECK_INSTRUCTIONS"
"""The variable that sets ``max_instructions`` for these checks."""

PLAIN_BARRIERS = "VKOPS_CHECK_PLAIN_BARRIERS"
"""The variable that disables the checks of plain barriers with 0."""

KERNELS = "VKOPS_CHECK_KERNELS"
"""The variable that enables checks of vkops' own kernels with 1."""

SARIF = "VKOPS_CHECK_SARIF"
"""The variable that names a file for all findings; the first process writes it when it ends."""

COVERAGE = "VKOPS_COVERAGE"
"""The variable that names a file to which the first process adds the coverage of shaders."""

TOTALS = "VKOPS_CHECK_TOTALS"
"""The folder for the totals of other processes; the first process sets it, and they inherit it."""

_FORMATS = {each.vulkan: each for each in FORMATS.values()}

MAX_INSTRUCTIONS = 20_000_000
"""The instructions of a checked dispatch, counted per invocation: a few seconds at most."""

MAX_BYTES = 64 << 20
"""The bytes that a dispatch may be bound to: the interpreter needs ten times as many."""


class CheckError(VkopsError, AssertionError):
    """A dispatch has faults; the text has a line for each, and below it those of the source.

    Attributes:
        report: the report of the shader, with the findings.
    """

    def __init__(self, report: Report) -> None:
        self.report: Report = report
        super().__init__(report)

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (replace(self.report, buffers={**self.report.buffers}),)


class Checks:
    """The dispatches that were checked while ``checking`` was in effect.

    Attributes:
        checked: how many dispatches were checked.
        not_checked: how often a shader was not, by its name and the reason.
    """

    def __init__(
        self,
        *,
        strict: bool,
        max_instructions: int,
        compare: bool,
        plain_barriers: bool,
        kernels: bool,
    ) -> None:
        self._strict, self._most, self._compares = strict, max_instructions, compare
        self._plain_barriers, self._kernels = plain_barriers, kernels
        self._lock = new_lock()
        self.checked: int = 0
        self.not_checked: Counter[str] = Counter()

    def __repr__(self) -> str:
        return f"<Checks: {self.checked} checked, {self.not_checked.total()} not>"

    def _count(self, reason: str = "") -> None:
        """Count a dispatch that was checked, or that was not checked for a reason."""
        with self._lock:
            if reason:
                self.not_checked[reason] += 1
            else:
                self.checked += 1

    def _show(self) -> None:
        """Print the numbers of checked dispatches on standard error."""
        complain(f"dispatches of shaders: {self.checked} checked, {self.not_checked.total()} not")
        for what, count in self.not_checked.items():
            complain(f"not checked: {what}" + f", {count} times" * (count > 1))

    @contextmanager
    def _around(self, device: VulkanDevice, bound: BoundCall) -> Iterator[None]:
        """Check a dispatch before it is submitted in this context, and its results afterwards."""
        if bound.call.shader.is_builtin and not self._kernels:
            yield
            return
        name = bound.call.shader.name
        report: Report | None = None
        bindings: list[BoundResource] = []
        try:
            bindings += [*bindings_of(bound), *_tensors(device, bound)]
            case = self._case(device, bound, bindings)
            report = None if case is None else self._checked(case)
            if report is not None and any(NO_TENSOR in each.message for each in report.findings):
                raise ShaderCompileError("an address belongs to no tensor, or to one that is gone")
        except CheckError:
            raise
        except (VkopsError, TooManyInstructionsError) as error:
            report = None
            reason = str(error) or f"more than {self._most:,} instructions"
            self._count(f"{name}: {reason.removeprefix(f'{name}: ')}")
            if self._strict:
                finding = Finding("not checked", SourceLine(name, 0), reason, (), 1)
                raise CheckError(Report(name, (finding,), {}, (), 0)) from None
        if report is not None and not report.ok:
            raise CheckError(report)
        yield
        if report is not None:
            self._count()
            if self._compares:
                _compare(device, bindings, report)

    def _checked(self, case: Case) -> Report:
        return case.check()

    def _refuse_access(self, message: str) -> None:
        """Raise a CheckError for an access to a pinned array that a device uses."""
        name = "pinned array"
        finding = Finding("early access", SourceLine(name, 0), message, (), 1)
        raise CheckError(Report(name, (finding,), {}, (), 0))

    def _case(
        self, device: VulkanDevice, bound: BoundCall, bindings: Sequence[BoundResource]
    ) -> Case | None:
        """Return the dispatch with copies of its memory; None if it has no workgroups."""
        groups, most = groups_of(bound), device.info.limits.max_compute_work_group_count
        if 0 in groups:
            return None
        shader, size = bound.call.shader, device.info.limits.subgroup_size
        if any(count > limit for count, limit in zip(groups, most, strict=True)):
            text = f"the device reads {groups} as the numbers of workgroups, and has {most} at most"
            finding = Finding("workgroups", SourceLine(shader.name, 0), text, (), 1)
            raise CheckError(Report(shader.name, (finding,), {}, (), 0))
        least = prod(groups) * prod(shader.local_size)
        if least > min(self._most, MAX_INVOCATIONS):
            raise TooManyInstructionsError
        if sum(each.nbytes for each in bindings) > MAX_BYTES:
            raise ShaderCompileError(f"it is bound to more than {MAX_BYTES >> 10:,} KiB")
        for one, other in combinations(bindings, 2):
            if (one.is_written or other.is_written) and one.conflicts(other):
                message = f"{one.point} and {other.point} share some of their bytes"
                raise ShaderCompileError(message)
        known = _shared_bytes(bindings)
        buffers: dict[str, Any] = {}
        tensors: dict[str, Any] = {}
        for each in bindings:
            value = each.read(known)
            if each.block is not None and each.block.is_array:
                buffers.setdefault(each.point.rpartition("[")[0], []).append(value)
            else:
                (buffers if each.block is not None else tensors)[each.point] = value
        own_size = size if size in SUBGROUP_SIZES else None
        case = Case.of(shader, buffers, groups, push=bound.push_constants, subgroup_size=own_size)
        places = tuple(each.address for each in bindings if each.block is None)
        return replace(
            case,
            max_instructions=self._most,
            plain_barriers=self._plain_barriers,
            tensors=tensors,
            addresses=places,
        )


class _ProgramChecks(Checks):
    """The dispatches of a program, with those of the processes that it starts.

    The first process prints the totals when it ends. Each other process appends lines to three
    files of its own: for each dispatch, the reason why it was not checked, or an empty line; if
    ``sarif`` is a file, each finding; if ``coverage`` is a file, the coverage of each dispatch. So
    the totals are right no matter how processes end, and include forked processes.
    """

    def __init__(self, sarif: str = "", coverage: str = "", **how: Any) -> None:
        super().__init__(**how)
        self._coverage, self._covered = coverage, ShaderCoverage()
        self._written_texts: set[tuple[int, str]] = set()  # by process, because forks inherit it
        self._sarif, self._root = sarif and os.path.abspath(sarif), repository()
        self._results: list[Result] = []
        self._folder, self._first = os.environ.get(TOTALS, ""), 0
        if not os.path.isdir(self._folder):  # a program that has ended removed it
            if coverage:
                self._file = _coverage_file(coverage)
            try:
                self._folder = os.environ[TOTALS] = mkdtemp(prefix="vkops-checks-")
            except OSError as error:
                raise DeviceError(f"{CHECK}: no temporary folder: {error.strerror}") from error
            self._first = os.getpid()
            atexit.register(self._end)

    def _count(self, reason: str = "") -> None:
        if os.getpid() == self._first:
            super()._count(reason)
            return
        self._append(one_line(reason))

    @contextmanager
    def _around(self, device: VulkanDevice, bound: BoundCall) -> Iterator[None]:
        with self._keeping(), super()._around(device, bound):
            yield

    def _checked(self, case: Case) -> Report:
        if not self._coverage:
            return super()._checked(case)
        observer = Coverage()
        report = case.check([observer])
        coverage, process = ShaderCoverage.of(observer), os.getpid()
        with self._lock:
            if process == self._first:
                self._covered.add(coverage)
                return report
            known = {name for name in coverage.texts if (process, name) in self._written_texts}
            self._written_texts |= {(process, name) for name in coverage.texts}
            self._append(coverage.to_json(known), ".coverage")
        return report

    def _refuse_access(self, message: str) -> None:
        with self._keeping():
            super()._refuse_access(message)

    @contextmanager
    def _keeping(self) -> Iterator[None]:
        """Keep the findings of a CheckError that ends the block."""
        try:
            yield
        except CheckError as error:
            if self._sarif:
                frame = calling_frame()
                for finding in error.report.findings:
                    self._keep(result(finding.called_from(frame), self._root))
            raise

    def _keep(self, result: Result) -> None:
        if os.getpid() == self._first:
            self._results.append(result)
        else:
            self._append(json.dumps(result), ".json")

    def _append(self, line: str, suffix: str = "") -> None:
        path = Path(self._folder, f"{os.getpid()}{suffix}")
        # The first process may have ended and removed the folder. Each write is a whole line.
        with suppress(OSError), path.open("a", encoding="utf-8", errors="backslashreplace") as file:
            file.write(f"{line}\n")

    def _end(self) -> None:
        """Print the totals of all processes, and write their findings."""
        if os.getpid() != self._first:  # a forked process
            return
        for path in Path(self._folder).iterdir():
            for line in path.read_text("utf-8").split("\n")[:-1]:
                if path.suffix == ".coverage":
                    self._covered.add(ShaderCoverage.from_json(line))
                elif path.suffix:
                    self._keep(json.loads(line))
                else:
                    self._count(line)
        shutil.rmtree(self._folder, ignore_errors=True)
        self._show()
        if self._sarif:
            try:
                write_results(self._sarif, self._results)
            except ModelError as error:
                complain(f"{SARIF}: {error}")
        if self._coverage and not self._covered.files:
            complain("coverage of shaders: no dispatch that was checked has source lines")
        elif self._coverage:
            try:
                complain(self._file.add(self._covered).summary(self._file.path))
            except ModelError as error:
                complain(f"{COVERAGE}: {error}")


class BoundResource(NamedTuple):
    """The memory of a block; or a tensor with an ``address``, whose ``block`` is None.

    ``value`` is an array of bytes, which are texels if there is a ``format``, or another argument
    of ``check``. ``parts`` are the bytes; for an image, the layers of a level.
    """

    point: str
    block: Block | None
    is_written: bool
    value: Any
    parts: Sequence[Extent] = ()
    format: Format | None = None
    address: int = 0

    @property
    def image(self) -> Any:
        """The image, or None if this is not one."""
        value = self.value[0] if type(self.value) is tuple else self.value
        return value if hasattr(value, "mips") else None

    @property
    def nbytes(self) -> int:
        """The number of bytes."""
        value = self.value[0] if type(self.value) is tuple else self.value
        return getattr(value, "nbytes", 0)

    def conflicts(self, other: BoundResource) -> bool:
        """Whether both share bytes in a way that the interpreter cannot represent."""
        if self.block is not None and other.block is not None:
            if isinstance(self.value, Extent) and isinstance(other.value, Extent):
                return False
            levels = [(each.parts, getattr(each.image, "mips", 0)) for each in (self, other)]
            if levels[0] == levels[1]:
                return False
        return any(one.overlaps(two) for one in self.parts for two in other.parts)

    def read(self, known: dict[Any, Any] | None = None) -> Any:
        """Return the argument: a view of its bytes, or what ``known`` has for the same memory."""
        known = {} if known is None else known
        if self.image is not None:
            image = known.setdefault((*self.parts, self.image.mips), self.image)
            return (image, self.value[1]) if type(self.value) is tuple else image
        if not isinstance(self.value, Extent):
            return self.value
        data = known.get(self.value)
        data = self.value.resource.peek(*self.value[1:]) if data is None else data
        if self.format is None:
            return data
        return data.view(self.format.dtype).reshape(-1, self.format.channels)


def _shared_bytes(bindings: Sequence[BoundResource]) -> dict[Any, Any]:
    """Return the bytes of bindings with bytes in common, as views of the same array."""
    extents = {b.value for b in bindings if isinstance(b.value, Extent) and b.block is not None}
    by_resource: dict[Any, list[Extent]] = {}
    for extent in sorted(extents, key=lambda each: each.start):
        by_resource.setdefault(extent.resource, []).append(extent)
    known: dict[Any, Any] = {}
    for resource, ordered in by_resource.items():
        near: list[Extent] = []
        for extent, following in zip(ordered, (*ordered[1:], None), strict=True):
            near.append(extent)
            start, end = near[0].start, max(each.end for each in near)
            if following is None or following.start >= end:
                data = resource.peek(start, end - start)
                known |= {each: data[each.start - start :][: each.nbytes] for each in near}
                near = []
    return known


def groups_of(bound: BoundCall) -> tuple[int, ...]:
    """Return the numbers of workgroups of a dispatch; if they are in a buffer, they are read."""
    groups = bound.groups
    if isinstance(groups, Extent):
        read = groups.resource.read(groups.start, groups.nbytes)
        return tuple(np.frombuffer(read, np.uint32).tolist())
    return groups


def bindings_of(bound: BoundCall) -> Iterator[BoundResource]:
    """Yield the bindings of a dispatch."""
    # Imported late: commands that need no device import ``vkops.debug``.
    from vkops.runtime.image import Image
    from vkops.runtime.image_copies import ImagePart
    from vkops.runtime.sampler import SETTINGS

    for slot, memory in zip(bound.call.slots, bound.memory, strict=True):
        own, view = (slot.point, slot.block, slot.is_written), slot.view
        if view is not None:
            sizes = memory.sizes(view.level)
            corner = (view.layer * memory.form.has_layers, *[0] * (len(sizes) - 1))
            sizes = (view.layers if memory.form.has_layers else sizes[0], *sizes[1:])
            level = ImagePart(memory, view.level, corner, sizes)
            image = Image(memory.device, level, memory.form.channels, mips=view.levels)
            value = (image, SETTINGS[slot.sampler]) if slot.sampler else image
            # The shader may write another level: the texels sampled there are undefined.
            yield BoundResource(
                *own, value, [Extent((memory.native, view.level), view.layer, view.layers)]
            )
        elif slot.has_memory:
            part = Extent(memory, slot.start, slot.nbytes)
            yield BoundResource(*own, part, [part], _FORMATS.get(slot.format))
        else:
            is_uniform = isinstance(memory, bytes)
            yield BoundResource(
                *own, np.frombuffer(memory, np.uint8) if is_uniform else SETTINGS[memory]
            )


def _tensors(device: VulkanDevice, bound: BoundCall) -> Iterator[BoundResource]:
    """Yield memory with a known address, if a dispatch uses addresses."""
    buffers = living(device.addressed) if bound.call.shader.uses_addresses else ()
    for address, buffer in sorted((each.device_address(), each) for each in buffers):
        part = Extent(buffer, 0, buffer.nbytes)
        yield BoundResource(f"memory at {address:#x}", None, True, part, [part], None, address)


def _compare(device: VulkanDevice, bindings: Sequence[BoundResource], report: Report) -> None:
    """Compare the results of a device with the results of the interpreter."""
    values = [each.value for each in bindings if each.block and "sampler" in each.block.kind]
    samplers = [each[1] if isinstance(each, tuple) else each for each in values]
    tolerance = tolerance_of((each["filter"] for each in samplers), TOLERANCE_OF_DEVICES)
    findings = []
    for each in bindings:
        block = each.block
        if not each.is_written:
            continue
        point = each.point if block is None else Slot(each.point, block, True).name
        one, other = report.buffers[point], each.read()
        other = other.mip(0).numpy() if hasattr(other, "mip") else other
        if difference := first_difference(block, one, other, tolerance):
            text = f"element {difference.element} of {each.point} is {difference.other} on "
            text += f"'{device.info.name}', and {difference.one} in the interpreter"
            findings.append(
                Finding("results", SourceLine(report.name, 0), text, (), difference.count)
            )
    if findings:
        raise CheckError(replace(report, findings=tuple(findings)))


@contextmanager
def checking(
    *,
    strict: bool = False,
    max_instructions: int = MAX_INSTRUCTIONS,
    compare: bool = True,
    plain_barriers: bool = True,
    kernels: bool = False,
) -> Iterator[Checks]:
    """Check the dispatches of users' shaders and kernels in this block, on all devices.

    Each dispatch first runs in the interpreter, on copies of what it is bound to, as ``check`` does
    with subgroups of the device's size. If there are faults, it is not submitted, and the call
    raises. Otherwise it is waited for, and what it writes is compared. The steps of a recorded
    program are checked when it runs. Shaders that are compiled in the block have source lines.
    Dispatches of all threads are checked. Blocks can overlap in any order: each checks them. A call
    that uses a pinned array while a transfer with ``wait=False`` uses it, which nobody has waited
    for, raises as well.

    Dispatches of too many instructions, or bound to more than 64 MiB or to parts of images that
    overlap, are not checked. They are listed on standard error at the end. The environment variable
    ``VKOPS_CHECK`` has the effect of a block around the whole program: with ``1``, or with
    ``strict``. ``VKOPS_CHECK_INSTRUCTIONS`` sets the number of instructions,
    ``VKOPS_CHECK_PLAIN_BARRIERS=0`` leaves out plain barriers, ``VKOPS_CHECK_KERNELS=1`` checks
    vkops' own kernels, ``VKOPS_CHECK_SARIF`` names a file that gets all findings in SARIF, and
    ``VKOPS_COVERAGE`` names one to which the coverage of the shaders is added.

    Args:
        strict: raise for a dispatch that is not checked.
        max_instructions: instructions of a dispatch, counted for each invocation.
        compare: compare results; floats may differ by a thousandth, and by 1/2048 of the largest.
        plain_barriers: report accesses of a buffer that only a plain ``barrier()`` separates.
        kernels: check vkops' own kernels, too, such as those of ``vkops.kernels``.

    Yields:
        The ``Checks``, which count the dispatches.

    Raises:
        CheckError: a dispatch has faults, its results differ, or with ``strict`` it is not checked;
            or a pinned array is used too early.
        InvalidDescError: ``max_instructions`` is not an integer from 1 (SH-07).
    """
    count = integer(max_instructions, ArgumentName("", "max_instructions", "SH-07"))
    if count < 1:
        message = f"got {show(max_instructions)}, must be an integer from 1"
        raise InvalidDescError("", "max_instructions", message, "SH-07")
    how = {"strict": strict, "compare": compare, "plain_barriers": plain_barriers}
    checks = Checks(max_instructions=count, kernels=kernels, **how)
    compiler.line_users.append(checks)
    VulkanDevice.observers.append(checks._around)
    pinned.observers.append(checks._refuse_access)
    try:
        yield checks
    finally:
        pinned.observers.remove(checks._refuse_access)
        VulkanDevice.observers.remove(checks._around)
        compiler.line_users.remove(checks)
        if checks.not_checked:
            checks._show()


def check_all() -> None:
    """Check all dispatches of this process, as the environment variables say."""
    mode, most = os.environ.get(CHECK, ""), os.environ.get(LIMIT) or str(MAX_INSTRUCTIONS)
    coverage = os.environ.get(COVERAGE, "")
    if coverage and not mode:
        message = f"{COVERAGE}: {CHECK} must be 1 or strict, too: checks count what runs"
        raise DeviceError(message)
    if mode not in ("1", "strict"):
        raise DeviceError(f"{CHECK}: got {show(mode)}, must be 1 or strict")
    if not most.isdecimal() or not int(most):
        raise DeviceError(f"{LIMIT}: got {show(most)}, must be an integer from 1")
    checks = _ProgramChecks(
        os.environ.get(SARIF, ""),
        coverage,
        strict=mode == "strict",
        max_instructions=int(most),
        compare=True,
        plain_barriers=_is_on(PLAIN_BARRIERS, "1"),
        kernels=_is_on(KERNELS, "0"),
    )
    compiler.line_users.append(checks)
    VulkanDevice.observers.append(checks._around)
    pinned.observers.append(checks._refuse_access)


def _coverage_file(path: str) -> OutputFile:
    """Return the file that coverage is added to, after checking that it can be written."""
    try:
        file = coverage_file(Path(path))
        file.check()
        return file
    except VkopsError as error:
        raise DeviceError(f"{COVERAGE}: {error}") from error


def _is_on(name: str, default: str) -> bool:
    """Whether an environment variable is 1; an error if it is neither 1 nor 0."""
    value = os.environ.get(name) or default
    if value not in ("0", "1"):
        raise DeviceError(f"{name}: got {show(value)}, must be 0 or 1")
    return value == "1"
