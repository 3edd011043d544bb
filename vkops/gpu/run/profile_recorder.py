"""Records of calls, waits and operations while profiles are open."""

from __future__ import annotations

import linecache
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from threading import RLock, current_thread
from time import perf_counter_ns
from types import CodeType, FrameType
from typing import Any

from vkops.gpu.adapters.kompute import Native
from vkops.gpu.run.timestamps import profile_operations
from vkops.gpu.run.vulkan_device import SubmissionObserver, VulkanDevice
from vkops.notebook import place_of
from vkops.system.callers import calling_frame
from vkops.system.threads import new_lock


@dataclass(frozen=True, slots=True)
class Caller:
    """The line of a program that called vkops, and the tensors and images that the line names."""

    place: str = ""
    text: str = ""
    tensors: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ProfiledOperation:
    """A dispatch or a copy on the device: nanoseconds of the host's clock, and bytes.

    ``nbytes`` is what it reads and writes; of a shader, the bytes that it is bound to; 0 if that is
    not known.
    """

    name: str
    nbytes: int
    start: float
    end: float


@dataclass(slots=True)
class ProfiledCall:
    """A call that submitted work, or waited: when, where, and what the device did.

    Attributes:
        name: of the function, operator or shader, or ``"wait"``.
        caller: the line that called it.
        thread: the name of the thread.
        start: nanoseconds of ``time.perf_counter_ns``.
        end: the same, when the host had recorded or submitted it, or had waited.
        number: that of the call on its device; 0 if it waited.
        operations: the device's part, with timestamps.
    """

    name: str
    caller: Caller
    thread: str
    start: int
    end: int
    number: int = 0
    operations: list[ProfiledOperation] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class ProfiledSubmission:
    """Calls that were submitted together: the number of the last one, and nanoseconds.

    ``end`` is when the device had executed them; 0 if it has no timestamps.
    """

    last: int
    start: float
    end: float


profiles_lock: RLock = new_lock()
"""Held while profiles begin, take what was recorded, and end, and devices get recorders."""

open_profiles: list[object] = []
"""The profiles whose blocks run: while there are some, each device has a recorder."""

recorders: list[ProfileRecorder] = []
"""The recorders of all devices that were open during a profile; they keep the devices open."""


def record_if_profiled(vulkan: VulkanDevice) -> None:
    """Start a recorder for a device that was just opened, if profiles are open and it has none."""
    with profiles_lock:
        if open_profiles and all(recorder.vulkan is not vulkan for recorder in recorders):
            ProfileRecorder(vulkan).start()


_given: ContextVar[Caller | None] = ContextVar("caller", default=None)
"""The caller that is recorded instead of the line of a call."""


@contextmanager
def called_by(place: str, *tensors: str) -> Iterator[None]:
    """In this block, report this place and these tensors for calls, instead of a line."""
    token = _given.set(Caller(place, "", tensors))
    try:
        yield
    finally:
        _given.reset(token)


class ProfileRecorder(SubmissionObserver):
    """Records calls, waits, submissions and operations of a device, for all profiles that are open.

    Attributes:
        vulkan: the device.
        calls: those that ended.
        submissions: those whose operations ended.
        clocks: how the times of the device are converted to those of the host.
    """

    def __init__(self, vulkan: VulkanDevice) -> None:
        self.vulkan: VulkanDevice = vulkan
        self.calls: list[ProfiledCall] = []
        self.submissions: list[ProfiledSubmission] = []
        self._native: Native = vulkan.native
        self._callers: dict[tuple[CodeType, int], Caller] = {}
        self._mask: int = (1 << vulkan.info.limits.timestamp_valid_bits) - 1
        self.clocks: str = (
            "no operation was measured" if self._mask else "the device has no timestamps"
        )
        self._offset: int = perf_counter_ns() - vulkan.module.now()
        self._measured: list[tuple[int, int, list[tuple[int, str, int, int, int]]]] = []
        self._first: tuple[int, int] | None = self._native.calibrated

    def start(self) -> None:
        """Have the device measure each operation, and report calls and waits to this recorder."""
        recorders.append(self)
        self.vulkan.submission_observers.append(self)
        profile_operations(self.vulkan, wanted=True)

    def stop(self) -> None:
        """Stop recording."""
        recorders.remove(self)
        self.vulkan.submission_observers.remove(self)
        profile_operations(self.vulkan, wanted=False)

    def submitted(self, device: VulkanDevice, name: str, number: int, began: int) -> None:
        """Add a call that ends now."""
        self._add(began, name, number)

    def waited(self, device: VulkanDevice, began: int) -> None:
        """Add a wait that ends now."""
        self._add(began, "wait")

    def _add(self, began: int, name: str, number: int = 0) -> None:
        ended, thread = perf_counter_ns(), current_thread().name
        self.calls.append(ProfiledCall(name, self._caller(), thread, began, ended, number))

    def _caller(self) -> Caller:
        """Return the line from which this thread entered vkops."""
        if (caller := _given.get()) is not None:
            return caller
        frame = calling_frame()
        if frame is None:
            return Caller()
        key = frame.f_code, frame.f_lineno
        if key not in self._callers:
            self._callers[key] = _described(frame)
        return self._callers[key]

    def collect(self) -> None:
        """Add what the device has measured since the last time; all work has ended."""
        self._measured += self._native.take_measured()
        submissions = []
        calls = {call.number: call for call in self.calls if call.number}
        operations_of: dict[int, list[ProfiledOperation]] = {number: [] for number in calls}
        times = self._times()  # not used without operations
        for since, last, operations in self._measured:
            end = 0.0
            for number, name, nbytes, *_ in operations if self._mask else ():
                start, end = next(times), next(times)
                if (owner := calls.get(number)) is not None:
                    operation = ProfiledOperation(name or owner.name, nbytes, start, end)
                    operations_of[number].append(operation)
            submissions.append(ProfiledSubmission(last, since + self._offset, end))
        self.submissions = submissions
        for number, call in calls.items():  # profiles that have ended are read meanwhile
            call.operations = operations_of[number]

    def _times(self) -> Iterator[float]:
        """Yield the host's nanoseconds of the start and the end of each operation in order."""
        period = self._native.timestamp_period
        ticks, at, half = [], 0, self._mask // 2 + 1
        first = self._first[0] if self._first else 0
        for *_, operations in self._measured:
            for *_, start, end in operations:
                # Ticks start again at 0 after their highest value. Add the difference from the
                # last tick, and take it as negative if it is more than half of all values: an
                # operation may start before the one before it has ended.
                for each in (start, end):
                    at += ((each - first - at + half) & self._mask) - half
                    ticks.append(at)
        now = self._native.calibrated
        if self._first and now:
            self.clocks = "calibrated timestamps of the device"
            passed = (now[0] - first - ticks[-1] + half & self._mask) - half + ticks[-1]
            rate = (now[1] - self._first[1]) / passed if passed > 0 else period
            base: float = self._first[1]
        else:
            self.clocks = "shifted so that no submission starts before the host submitted it"
            rate, number, base = period, 0, -sys.float_info.max
            for since, _, operations in self._measured:
                if operations:
                    base = max(base, since - ticks[number] * rate)
                    number += 2 * len(operations)
        yield from (base + self._offset + each * rate for each in ticks)


def _described(frame: FrameType) -> Caller:
    """Describe the line that a frame is at."""
    file, number = frame.f_code.co_filename, frame.f_lineno
    text = linecache.getline(file, number, frame.f_globals).strip()
    known = {**frame.f_globals, **frame.f_locals}
    tensors = []
    for name in dict.fromkeys(re.findall(r"[^\W\d]\w*", text)):
        value: Any = known.get(name)
        if type(value).__module__.startswith("vkops.") and hasattr(value, "dtype"):
            tensors.append(f"{name}: {value.dtype} {tuple(value.shape)}")
    return Caller(place_of(file, number), text, tuple(tensors))
