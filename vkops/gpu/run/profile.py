"""Profiles: tables and a timeline of the work of the host and the devices in a block."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from html import escape
from pathlib import Path
from time import perf_counter_ns
from typing import Any, NamedTuple, TypeAlias

from vkops import console
from vkops.errors import DeviceError, refuse_reentry
from vkops.gpu.adapters import forks
from vkops.gpu.run.open_device import open_vulkan_devices
from vkops.gpu.run.profile_recorder import (
    ProfiledCall,
    ProfiledOperation,
    ProfiledSubmission,
    ProfileRecorder,
    open_profiles,
    profiles_lock,
    recorders,
)
from vkops.notebook import table_html
from vkops.system.output_files import write_output

_Operations: TypeAlias = Sequence[ProfiledOperation]
_Event: TypeAlias = dict[str, Any]


@dataclass(frozen=True, slots=True)
class ProfileRow:
    """A kernel, or the calls of one line, in a profile.

    Attributes:
        name: of the kernel or the copy, or of the function, operator or shader that was called.
        place: the file and the line of a call.
        count: how often it was executed or called.
        device_ms: milliseconds on the device; None if it has no timestamps.
        host_ms: milliseconds in which the host recorded and submitted calls, or waited; None for
            kernels.
        nbytes: what it read and wrote; 0 if that is not known.
    """

    name: str
    place: str
    count: int
    device_ms: float | None
    host_ms: float | None
    nbytes: int

    @property
    def gigabytes_per_second(self) -> float | None:
        """The bytes divided by the time of the device; None if one is not known."""
        return self.nbytes / self.device_ms / 1e6 if self.nbytes and self.device_ms else None


def _number(value: float | None, digits: int) -> str:
    return f"{value:.{digits}f}" if value else ""


_COLUMNS: dict[str, Callable[[ProfileRow], str]] = {
    "Name": lambda row: row.name,
    "Line": lambda row: re.split(r"[\\/]", row.place)[-1],
    "Host ms": lambda row: _number(row.host_ms, 3),
    "Count": lambda row: str(row.count),
    "Device ms": lambda row: _number(row.device_ms, 3),
    "Mean µs": lambda row: _number((row.device_ms or 0) / row.count * 1e3, 1),
    "MB": lambda row: _number(row.nbytes / 1e6, 2),
    "GB/s": lambda row: _number(row.gigabytes_per_second, 2),
}
"""The columns of the tables; columns without content are left out."""


class _DeviceProfile(NamedTuple):
    """The part of a profile that concerns one device."""

    label: str
    clocks: str
    calls: Sequence[ProfiledCall]
    submissions: Sequence[ProfiledSubmission]


class Profile:
    """A record of all devices and threads in a block; see ``vkops.profile``.

    Attributes:
        seconds: how long the block took, and the wait for the devices at its end.
    """

    def __init__(self) -> None:
        self.seconds: float = 0.0
        self._start = 0
        self._parts: list[_DeviceProfile] | None = None

    def __enter__(self) -> Profile:
        refuse_reentry(profiles_lock, "a profile begins or ends")
        with profiles_lock:
            if self._start:
                raise DeviceError("profile: a profile measures one block, make another one")
            is_first = not (open_profiles or forks.state.forked)  # a forked child has no devices
            for vulkan in open_vulkan_devices() if is_first else ():
                with vulkan.tolerating_loss():
                    vulkan.check_usable()
                    ProfileRecorder(vulkan).start()
            open_profiles.append(self)
            self._start = perf_counter_ns()
        return self

    def __exit__(self, kind: object = None, *_: object) -> None:
        try:
            for recorder in recorders[:]:  # other threads may change the list meanwhile
                vulkan = recorder.vulkan
                with vulkan.tolerating_loss() if kind or vulkan.lost else nullcontext():
                    vulkan.finish()
            end = perf_counter_ns()
            with profiles_lock:
                self._parts = [_collected(each, self._start, end) for each in recorders]
            self.seconds = (end - self._start) / 1e9
        finally:
            with profiles_lock:
                open_profiles.remove(self)
                ended = recorders[:] if not open_profiles else []
                for recorder in ended:
                    with recorder.vulkan.tolerating_loss():
                        recorder.stop()

    # -- results ----------------------------------------------------------------------------------

    @property
    def calls(self) -> list[ProfiledCall]:
        """The calls that submitted work, and the waits, in the order in which they ended."""
        if self._parts is None:
            raise DeviceError("profile: its block has not ended yet")
        return sorted((call for part in self._parts for call in part.calls), key=lambda c: c.end)

    def by_kernel(self) -> list[ProfileRow]:
        """Return a row for each kernel and each kind of copy, the longest time first."""
        operations = (each for call in self.calls for each in call.operations)
        return _rows((each.name, "", [each], 0) for each in operations)

    def by_call(self) -> list[ProfileRow]:
        """Return a row for each line that called a function, an operator or a shader."""
        return _rows((c.name, c.caller.place, c.operations, c.end - c.start) for c in self.calls)

    def __str__(self) -> str:
        return "\n\n".join([self._summary, *(_text(*each) for each in self._tables())])

    def _repr_html_(self) -> str:
        tables = "".join(table_html(*each) for each in self._tables())
        return f"<p>{escape(self._summary)}</p>{tables}"

    def __repr__(self) -> str:
        if self._parts is None:
            return "<vkops.Profile of a block that has not ended>"
        return f"<vkops.Profile of {len(self.calls)} calls in {self.seconds * 1e3:.3f} ms>"

    @property
    def _summary(self) -> str:
        if self._parts is None:
            return repr(self)
        calls, total = self.calls, self.seconds * 1e3
        busy = sum(each.end - each.start for call in calls for each in call.operations) / 1e6
        waits = sum(call.end - call.start for call in calls if not call.number) / 1e6
        return f"{total:.3f} ms: devices worked {busy:.3f} ms, the host waited {waits:.3f} ms"

    def _tables(self) -> Iterator[tuple[str, list[str], list[tuple[str, ...]]]]:
        """Yield the title, the heads of columns and the rows of each table that has rows."""
        tables = {"Kernels and copies": self.by_kernel, "Calls": self.by_call}
        for title, rows in tables.items() if self._parts is not None else ():
            cells = {head: [*map(column, rows())] for head, column in _COLUMNS.items()}
            shown = {head: column for head, column in cells.items() if any(column)}
            if shown:
                yield title, [*shown], [*zip(*shown.values(), strict=True)]

    # -- the timeline -----------------------------------------------------------------------------

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write a timeline, and its folder, in Chrome's trace event format, for ui.perfetto.dev.

        Each thread of the host has a row of calls and waits; each device has one of operations and
        one of submissions. Arrows lead from calls to their operations.
        """
        names = dict.fromkeys(call.thread for call in self.calls)
        threads = {name: number for number, name in enumerate(names, 1)}
        events, clocks = [*_names(1, "host", threads)], {}
        for number, part in enumerate(self._parts or (), 2):
            # A device may be open several times.
            label = part.label if part.label not in clocks else f"{part.label} (process {number})"
            events += _names(number, label, {"operations": 1, "submissions": 2})
            events += _device_events(part, number, threads, self._start)
            clocks[label] = part.clocks
        content = {"traceEvents": events, "displayTimeUnit": "ms", "otherData": {"clocks": clocks}}
        write_output(Path(path), [json.dumps(content).encode()])


def profile() -> Profile:
    """Measure what devices and the host do in a block: ``with vkops.profile() as profile``.

    It measures all devices and all threads, also several profiles at a time, and waits for the
    devices at the end of the block. Then ``print(profile)`` shows kernels and calls,
    ``profile.save("trace.json")`` writes a timeline, and ``by_kernel()``, ``by_call()`` and
    ``calls`` have the numbers.

    >>> import numpy as np
    >>> import vkops
    >>> x = vkops.asarray(np.arange(6))
    >>> with vkops.profile() as profile:
    ...     y = vkops.roll(x, 1)
    >>> [row.name for row in profile.by_call() if row.name != "wait"]
    ['roll']
    """
    return Profile()


def _collected(recorder: ProfileRecorder, start: int, end: int) -> _DeviceProfile:
    """Return the records of a recorder that are in the time of a profile."""
    with recorder.vulkan.tolerating_loss():
        recorder.vulkan.call(recorder.collect)
    calls = [call for call in recorder.calls if start <= call.start and call.end <= end]
    numbers = {call.number for call in calls}
    submissions = [each for each in recorder.submissions if each.last in numbers]
    return _DeviceProfile(recorder.vulkan.info.name, recorder.clocks, calls, submissions)


def _rows(entries: Iterable[tuple[str, str, _Operations, int]]) -> list[ProfileRow]:
    """Add up entries: a name, a place, operations, and nanoseconds of the host, if any."""
    groups: dict[tuple[str, str], list[tuple[_Operations, int]]] = {}
    for name, place, operations, host in entries:
        groups.setdefault((name, place), []).append((operations, host))
    rows = []
    for key, group in groups.items():
        executed = [each for operations, _ in group for each in operations]
        device = sum(each.end - each.start for each in executed) / 1e6 if executed else None
        on_host = sum(host for _, host in group) / 1e6 or None
        nbytes = sum(each.nbytes for each in executed)
        rows.append(ProfileRow(*key, len(group), device, on_host, nbytes))
    return sorted(rows, key=lambda row: (-(row.device_ms or 0), -(row.host_ms or 0)))


def _text(title: str, heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    texts = 2 if "Line" in heads else 1
    return console.text(console.figures(heads[:texts], heads[texts:], rows, title=title, gap=2))


def _names(process: int, name: str, threads: dict[str, int]) -> Iterator[_Event]:
    """Yield the events that name a process and its rows."""
    named = [("process_name", 0, name), *(("thread_name", n, row) for row, n in threads.items())]
    for kind, thread, row in named:
        yield {"ph": "M", "name": kind, "pid": process, "tid": thread, "args": {"name": row}}


def _device_events(
    part: _DeviceProfile, process: int, threads: dict[str, int], zero: int
) -> Iterator[_Event]:
    """Yield the events of a device, and those of the host that belong to it."""

    def event(phase: str, name: str, row: Any, at: float, end: float = 0, **more: Any) -> _Event:
        start = round(at - zero)  # whole nanoseconds: Perfetto drops events that overlap by one
        if end:
            more["dur"] = (round(end - zero) - start) / 1e3
        common = {"ph": phase, "name": name, "cat": "vkops", "pid": row[0], "tid": row[1]}
        return {**common, "ts": start / 1e3, **more}

    device, submissions = (process, 1), (process, 2)
    for call in part.calls:
        host, caller = (1, threads[call.thread]), call.caller
        known = {"line": caller.place, "text": caller.text, "tensors": caller.tensors}
        known = {key: value for key, value in known.items() if value}
        yield event("X", call.name, host, call.start, call.end, args=known)
        for each in call.operations:
            args = {**known, "call": call.name, **({"bytes": each.nbytes} if each.nbytes else {})}
            yield event("X", each.name, device, each.start, each.end, args=args)
        for each in call.operations[:1]:
            arrow = {"id": process << 40 | call.number}
            yield event("s", "submit", host, call.start, **arrow)
            yield event("f", "submit", device, each.start, bp="e", **arrow)
    first = min([call.number for call in part.calls if call.number], default=1)
    for one in part.submissions:
        calls = f"{first} to {one.last}" if one.last > first else f"{first}"
        # Submissions overlap in time, so they are asynchronous events: Perfetto shows those
        # with one name and ids of the process in one row.
        key: Any = {"id2": {"local": hex(one.last)}, "args": {"calls": calls}}
        yield event("b", "submission", submissions, one.start, **key)
        yield event("e", "submission", submissions, one.end or one.start, **key)
        first = one.last + 1
