"""Profiles: tables and a timeline of what the host and the devices did in a block."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from contextlib import nullcontext, suppress
from dataclasses import dataclass
from itertools import starmap
from pathlib import Path
from threading import RLock
from time import perf_counter_ns
from typing import TYPE_CHECKING, Any

from vkops import console
from vkops.errors import DeviceError
from vkops.gpu.run.open_device import open_vulkan_devices
from vkops.gpu.run.profile_recorder import (
    ProfiledCall,
    ProfiledOperation,
    Recorder,
    Submission,
    open_profiles,
    recorders,
)
from vkops.notebook import table_html

if TYPE_CHECKING:
    from typing_extensions import Self

_lock = RLock()


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


@dataclass(frozen=True, slots=True)
class _Part:
    """The part of a profile that concerns one device."""

    label: str
    clocks: str
    calls: Sequence[ProfiledCall]
    submissions: Sequence[Submission]


class Profile:
    """A record of all devices and threads in a block; see ``vkops.profile``.

    Attributes:
        seconds: how long the block took, and the wait for the devices at its end.
    """

    def __init__(self) -> None:
        self.seconds: float = 0.0
        self._start = 0
        self._parts: list[_Part] | None = None

    def __enter__(self) -> Self:
        with _lock:
            if self._start:
                raise DeviceError("profile: a profile measures one block, make another one")
            for vulkan in open_vulkan_devices() if not open_profiles else ():
                with suppress(DeviceError):  # it is lost
                    vulkan.check()
                    vulkan.record_profile(Recorder(vulkan))
            open_profiles.append(self)
            self._start = perf_counter_ns()
        return self

    def __exit__(self, kind: object = None, *_: object) -> None:
        parts = []
        try:
            for recorder in recorders:
                with suppress(DeviceError) if kind or recorder.vulkan.lost else nullcontext():
                    recorder.vulkan.finish()
            end = perf_counter_ns()
            for recorder in recorders:
                with suppress(DeviceError):  # it is lost
                    recorder.vulkan.call(recorder.collect)
                parts.append(_part_of(recorder, self._start, end))
            self.seconds = (end - self._start) / 1e9
            self._parts = parts
        finally:
            with _lock:
                open_profiles.remove(self)
                ended = recorders[:] if not open_profiles else []
                for recorder in ended:
                    recorders.remove(recorder)
                    with suppress(DeviceError):
                        recorder.vulkan.call(recorder.vulkan.record_profile, None)

    # -- results ----------------------------------------------------------------------------------

    @property
    def calls(self) -> list[ProfiledCall]:
        """The calls that submitted work, and the waits, in the order in which they ended."""
        if self._parts is None:
            raise DeviceError("profile: its block has not ended yet")
        return sorted((call for part in self._parts for call in part.calls), key=lambda c: c.end)

    def by_kernel(self) -> list[ProfileRow]:
        """Return a row for each kernel and each kind of copy, the longest time first."""
        return _rows(
            (operation.name, "", [operation], None)
            for call in self.calls
            for operation in call.operations
        )

    def by_call(self) -> list[ProfileRow]:
        """Return a row for each line that called a function, an operator or a shader."""
        return _rows(
            (c.name, c.caller.place, c.operations, (c.end - c.start) / 1e6) for c in self.calls
        )

    def __str__(self) -> str:
        return f"{self._summary}\n\n{console.text(*starmap(_console, self._tables()))}"

    def _repr_html_(self) -> str:
        return table_html(self._summary, (), ()) + "".join(starmap(table_html, self._tables()))

    def __repr__(self) -> str:
        if self._parts is None:
            return "<vkops.Profile of a block that has not ended>"
        return f"<vkops.Profile of {len(self.calls)} calls in {self.seconds * 1e3:.3f} ms>"

    @property
    def _summary(self) -> str:
        calls, total = self.calls, self.seconds * 1e3
        busy = sum(each.end - each.start for call in calls for each in call.operations) / 1e6
        waits = sum(call.end - call.start for call in calls if not call.number) / 1e6
        return f"{total:.3f} ms: devices worked {busy:.3f} ms, the host waited {waits:.3f} ms"

    def _tables(self) -> Iterator[tuple[str, tuple[str, ...], list[list[str]]]]:
        """Yield the title, the heads of columns and the rows of each table."""
        figures = "Count", "Device ms", "Mean µs", "MB", "GB/s"
        if kernels := self.by_kernel():
            rows = [[row.name, *_figures(row)] for row in kernels]
            yield "Kernels and copies", ("Name", *figures), rows
        rows = [
            [row.name, _short(row.place), f"{row.host_ms or 0:.3f}", *_figures(row)]
            for row in self.by_call()
        ]
        yield "Calls", ("Name", "Line", "Host ms", *figures), rows

    # -- the timeline -----------------------------------------------------------------------------

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write a timeline in Chrome's trace event format, which ui.perfetto.dev opens.

        Each thread of the host has a row of calls and waits; each device has one of operations and
        one of submissions. Arrows lead from calls to their operations.
        """
        calls = self.calls
        assert self._parts is not None
        threads = {name: n for n, name in enumerate(dict.fromkeys(c.thread for c in calls), 1)}
        events = [*_names(1, "host", threads)]
        for number, part in enumerate(self._parts, 2):
            events += _names(number, part.label, {"operations": 1, "submissions": 2})
            events += _device_events(part, number, threads, self._start)
        clocks = {part.label: part.clocks for part in self._parts}
        content = {"traceEvents": events, "displayTimeUnit": "ms", "otherData": {"clocks": clocks}}
        Path(path).write_text(json.dumps(content), encoding="utf-8")


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


def _part_of(recorder: Recorder, start: int, end: int) -> _Part:
    """Return what a recorder has of the time of a profile."""
    calls = [call for call in recorder.calls if start <= call.start and call.end <= end]
    numbers = {call.number for call in calls}
    submissions = [each for each in recorder.submissions if each.last in numbers]
    return _Part(recorder.vulkan.info.name, recorder.clocks, calls, submissions)


def _rows(
    entries: Iterator[tuple[str, str, Sequence[ProfiledOperation], float | None]],
) -> list[ProfileRow]:
    """Add up entries with the same name and place."""
    found: dict[tuple[str, str], list[tuple[Sequence[ProfiledOperation], float | None]]] = {}
    for name, place, some, ms in entries:
        found.setdefault((name, place), []).append((some, ms))
    rows = []
    for (name, place), group in found.items():
        operations = [operation for some, _ in group for operation in some]
        device = sum(each.end - each.start for each in operations) / 1e6 if operations else None
        host = None if group[0][1] is None else sum(ms or 0 for _, ms in group)
        nbytes = sum(each.nbytes for each in operations)
        rows.append(ProfileRow(name, place, len(group), device, host, nbytes))
    return sorted(rows, key=lambda row: (-(row.device_ms or 0), -(row.host_ms or 0)))


def _figures(row: ProfileRow) -> list[str]:
    speed, device = row.gigabytes_per_second, row.device_ms
    times = ["", ""] if device is None else [f"{device:.3f}", f"{device / row.count * 1e3:.1f}"]
    nbytes = f"{row.nbytes / 1e6:.2f}" if row.nbytes else ""
    return [str(row.count), *times, nbytes, "" if speed is None else f"{speed:.2f}"]


def _short(place: str) -> str:
    """Return a place with the name of its file alone."""
    return place.replace("\\", "/").rpartition("/")[2]


def _console(title: str, heads: Sequence[str], rows: list[list[str]]) -> Any:
    texts = 2 if "Line" in heads else 1
    return console.figures(heads[:texts], heads[texts:], rows, title=title, gap=2)


def _names(process: int, name: str, threads: dict[str, int]) -> Iterator[dict[str, Any]]:
    """Yield the events that name a process and its rows."""
    named = [("process_name", 0, name), *(("thread_name", n, own) for own, n in threads.items())]
    for kind, thread, own in named:
        yield {"ph": "M", "name": kind, "pid": process, "tid": thread, "args": {"name": own}}


def _device_events(
    part: _Part, process: int, threads: dict[str, int], zero: int
) -> Iterator[dict[str, Any]]:
    """Yield the events of a device, and those of the host that belong to it."""

    def event(
        phase: str,
        name: str,
        row: tuple[int, int],
        at: float,
        end: float | None = None,
        **more: Any,
    ) -> dict[str, Any]:
        pid, tid = row
        start = round(at - zero)  # whole nanoseconds: Perfetto drops events that overlap by one
        if end is not None:
            more["dur"] = (round(end - zero) - start) / 1e3
        return {"ph": phase, "name": name, "cat": "vkops", "pid": pid, "tid": tid,
                "ts": start / 1e3, **more}  # fmt: skip

    device = process, 1
    for call in part.calls:
        host = 1, threads[call.thread]
        caller = {"line": call.caller.place, "text": call.caller.text}
        known: dict[str, Any] = {key: text for key, text in caller.items() if text}
        if call.caller.tensors:
            known["tensors"] = list(call.caller.tensors)
        yield event("X", call.name, host, call.start, call.end, args=known)
        for n, each in enumerate(call.operations):
            more = {**known, "call": call.name, **({"bytes": each.nbytes} if each.nbytes else {})}
            yield event("X", each.name, device, each.start, each.end, args=more)
            if not n:
                arrow = {"id": process << 40 | call.number}
                yield event("s", "submit", host, call.start, **arrow)
                yield event("f", "submit", device, each.start, bp="e", **arrow)
    first = min([call.number for call in part.calls if call.number], default=1)
    for one in part.submissions:
        calls = f"{first} to {one.last}" if one.last > first else f"{first}"
        # They overlap. Perfetto shows those of one name, with ids of the process, in one row.
        key: Any = {"id2": {"local": hex(one.last)}, "args": {"calls": calls}}
        yield event("b", "submission", (process, 2), one.start, **key)
        yield event("e", "submission", (process, 2), one.end or one.start, **key)
        first = one.last + 1
