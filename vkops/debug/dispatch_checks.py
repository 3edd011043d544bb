"""Checks of the dispatches of a program: each shader runs in the interpreter before the device."""

from __future__ import annotations

import atexit
import os
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from itertools import combinations
from math import prod

import numpy as np

from vkops.arguments.values import Place, integer
from vkops.console import complain
from vkops.debug.shader_check import (
    MAX_INVOCATIONS,
    SUBGROUP_SIZES,
    TOLERANCE_OF_DEVICES,
    Case,
    Report,
    differences,
    number_at,
)
from vkops.errors import DeviceError, InvalidDescError, ShaderCompileError, VkopsError, show
from vkops.extent import Extent
from vkops.gpu.run.shader_dispatch import BoundCall
from vkops.gpu.run.vulkan_device import VulkanDevice
from vkops.interpreter.findings import Finding
from vkops.interpreter.limit import TooManyInstructionsError
from vkops.interpreter.state import UNSUPPORTED
from vkops.interpreter.values import Place as Line
from vkops.shaders import compiler

CHECK = "VKOPS_CHECK"
"""With 1 or strict in this environment variable, all dispatches of shaders are checked."""

LIMIT = "VKOPS_CHECK_INSTRUCTIONS"
"""The variable that sets ``max_instructions`` for these."""

MAX_INSTRUCTIONS = 20_000_000
"""Instructions of a dispatch, counted for each invocation: at most a few seconds."""

MAX_BYTES = 64 << 20
"""Bytes that a dispatch is bound to: the interpreter takes ten times as many."""


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

    def __init__(self, *, strict: bool, max_instructions: int, compare: bool) -> None:
        self._strict, self._most, self._compares = strict, max_instructions, compare
        self.checked: int = 0
        self.not_checked: Counter[str] = Counter()

    def _show(self) -> None:
        """Print what was checked on standard error."""
        complain(f"dispatches of shaders: {self.checked} checked, {self.not_checked.total()} not")
        for what, count in self.not_checked.items():
            complain(f"not checked: {what}" + f", {count} times" * (count > 1))

    @contextmanager
    def _around(self, device: VulkanDevice, bound: BoundCall) -> Iterator[None]:
        """Check a dispatch before it is submitted in this context, and its results afterwards.

        Raises:
            CheckError: there are faults, or the results differ.
        """
        name = bound.call.shader.name
        report: Report | None = None
        try:
            case = self._case(device, bound)
            report = None if case is None else case.check()
        except (VkopsError, TooManyInstructionsError) as error:
            reason = str(error) or f"more than {self._most:,} instructions"
            self.not_checked[f"{name}: {reason.removeprefix(f'{name}: ')}"] += 1
            if self._strict:
                finding = Finding("not checked", Line(name, 0), reason, (), 1)
                raise CheckError(Report(name, (finding,), {}, (), 0)) from None
        if report is not None and not report.ok:
            raise CheckError(report)
        yield
        if report is not None:
            self.checked += 1
            if self._compares:
                _compare(device, bound, report)

    def _case(self, device: VulkanDevice, bound: BoundCall) -> Case | None:
        """Return the dispatch with copies of its buffers; None if it has no workgroups."""
        call, memory, groups, push = bound
        if isinstance(groups, Extent):
            read = groups.resource.read(groups.start, groups.nbytes)
            groups = tuple(np.frombuffer(read, np.uint32).tolist())
        if 0 in groups:
            return None
        shader, size = call.shader, device.info.limits.subgroup_size
        least = prod(groups) * prod(shader.module.local_size)
        if least > min(self._most, MAX_INVOCATIONS):
            raise TooManyInstructionsError
        if shader.module.uses_addresses:
            raise ShaderCompileError(f"a buffer reference {UNSUPPORTED}")
        for point, block, _ in call.slots:
            if block.kind not in ("storage", "uniform"):
                raise ShaderCompileError(f"the {block.kind} {point} {UNSUPPORTED}")
        places = _parts(bound)
        if sum(part.nbytes for part in places.values()) > MAX_BYTES:
            raise ShaderCompileError(f"it is bound to more than {MAX_BYTES >> 10:,} KiB")
        written = {n for n, slot in enumerate(call.slots) if slot.is_written}
        for (one, a), (other, b) in combinations(places.items(), 2):
            if a != b and a.overlaps(b) and not written.isdisjoint((one, other)):
                points = call.slots[one].point, call.slots[other].point
                raise ShaderCompileError("{} and {} share some of their bytes".format(*points))
        # The same array for the same bytes.
        parts = {part: part.resource.peek(*part[1:]) for part in places.values()}
        buffers = {
            slot.point: parts[places[n]] if n in places else np.frombuffer(own, np.uint8)
            for n, (slot, own) in enumerate(zip(call.slots, memory, strict=True))
        }
        own_size = size if size in SUBGROUP_SIZES else None
        case = Case.of(shader, buffers, groups, push=push, subgroup_size=own_size)
        return replace(case, max_instructions=self._most)


def _parts(bound: BoundCall) -> dict[int, Extent]:
    """Return the bytes of each binding to a buffer, by its number."""
    return {
        number: Extent(own, place[0], place[1])
        for number, (place, own) in enumerate(zip(bound.call.places, bound.memory, strict=True))
        if place is not None and isinstance(place[0], int) and not isinstance(own, bytes)
    }


def _compare(device: VulkanDevice, bound: BoundCall, report: Report) -> None:
    """Compare the results of a device with those of the interpreter."""
    findings = []
    for number, (own, start, nbytes) in _parts(bound).items():
        point, block, is_written = bound.call.slots[number]
        one, other = report.buffers.get(block.point), own.peek(start, nbytes)
        if one is None or not is_written:
            continue
        one, other = one.view(np.uint8), other[: one.nbytes]
        places = differences(block, one, other, TOLERANCE_OF_DEVICES)
        if len(places):
            at = int(places[0])
            here, there = (number_at(block, data, at) for data in (one, other))
            element = at // (block.dtype.itemsize if block.dtype else 4)
            text = f"element {element} of {point} is {there} on '{device.info.name}', and {here} "
            where, count = Line(report.name, 0), len(places)
            findings.append(Finding("results", where, f"{text}in the interpreter", (), count))
    if findings:
        raise CheckError(replace(report, findings=tuple(findings)))


@contextmanager
def checking(
    *, strict: bool = False, max_instructions: int = MAX_INSTRUCTIONS, compare: bool = True
) -> Iterator[Checks]:
    """Check the dispatches of users' shaders and kernels in this block, on all devices.

    Each dispatch first runs in the interpreter, on copies of what it is bound to, as ``check`` does
    with subgroups of the device's size. If there are faults, it is not submitted, and the call
    raises. Otherwise it is waited for, and what it writes is compared. The steps of a recorded
    program are checked when it runs. Shaders that are compiled in the block have source lines.

    Dispatches with images, texel buffers, arrays of blocks or addresses, of too many instructions,
    or bound to more than 64 MiB are not checked. They are listed on standard error at the end. The
    environment variable ``VKOPS_CHECK`` has the effect of a block around the whole program: with
    ``1``, or with ``strict``. ``VKOPS_CHECK_INSTRUCTIONS`` sets the number of instructions.

    Args:
        strict: raise for a dispatch that is not checked.
        max_instructions: instructions of a dispatch, counted for each invocation.
        compare: compare results; floats may differ by a thousandth, and by 1/2048 of the largest.

    Yields:
        The ``Checks``, which count the dispatches.

    Raises:
        CheckError: a dispatch has faults, its results differ, or with ``strict`` it is not checked.
        InvalidDescError: ``max_instructions`` is not an integer from 1 (SH-07).
    """
    count = integer(max_instructions, Place("", "max_instructions", "SH-07"))
    if count < 1:
        message = f"got {show(max_instructions)}, must be an integer from 1"
        raise InvalidDescError("", "max_instructions", message, "SH-07")
    checks = Checks(strict=strict, max_instructions=count, compare=compare)
    before = VulkanDevice.around_call, compiler.keeps_lines
    VulkanDevice.around_call, compiler.keeps_lines = checks._around, True
    try:
        yield checks
    finally:
        VulkanDevice.around_call, compiler.keeps_lines = before
        if checks.not_checked:
            checks._show()


def check_all() -> None:
    """Check all dispatches of this process, as environment variables say.

    Raises:
        DeviceError: a variable has a wrong value.
    """
    wanted, most = os.environ[CHECK], os.environ.get(LIMIT) or str(MAX_INSTRUCTIONS)
    if wanted not in ("1", "strict"):
        raise DeviceError(f"{CHECK}: got {show(wanted)}, must be 1 or strict")
    if not most.isdecimal() or not int(most):
        raise DeviceError(f"{LIMIT}: got {show(most)}, must be an integer from 1")
    checks = Checks(strict=wanted == "strict", max_instructions=int(most), compare=True)
    VulkanDevice.around_call, compiler.keeps_lines = checks._around, True
    atexit.register(checks._show)
