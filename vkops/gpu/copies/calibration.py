"""The costs of copies on a device: constants, or measured by timestamps once, and cached."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from dataclasses import astuple, replace
from math import isfinite

import numpy as np

from vkops.gpu.adapters import adapter
from vkops.gpu.adapters.kompute import Kompute, native_state
from vkops.gpu.copies.copy_costs import (
    ALWAYS_REGIONS,
    COPY,
    MAX_REGIONS,
    MAX_VALIDATED_REGIONS,
    UNMEASURED,
    CopyCosts,
    on_cpu,
    wanted_copies,
)
from vkops.gpu.copies.region_copies import RegionCopy
from vkops.gpu.kernels.choice import VECTOR
from vkops.gpu.kernels.encoding import Tuning
from vkops.gpu.memory.heaps import Heap, Range
from vkops.gpu.run.dispatch import EncodedPlan, Work
from vkops.plan.movements import copy
from vkops.plan.region import CopyPlan, Output
from vkops.plan.view import View
from vkops.system.disk_cache import DiskCache

SIZES = (1 << 19, 1 << 21, 1 << 23)
"""Bytes that are copied to measure the time per byte: the first that take long enough, or the
last."""

LONG_ENOUGH_NS = 50e3
"""Nanoseconds of a copy that timestamps and fixed costs hardly change."""

REGIONS = 128
REGION_BYTES = 1 << 12
"""Regions, and bytes of each, that are copied to measure the time per region."""

HEAP_BYTES = 2 * SIZES[-1]
"""Bytes of the memory in which all this happens."""

ROUNDS = 4
"""The number of measurements of each time, of which the shortest counts."""

_VERSION = 1  # of an entry, and of how it is measured: count it up with changes
_on_disk = DiskCache("copy-costs", "cache of copy costs", max_bytes=1 << 12)
_in_process: dict[str, CopyCosts] = {}


def initial_costs(info: adapter.DeviceInfo, kompute: Kompute) -> CopyCosts | None:
    """Return the costs of copies before any are measured; None if shaders copy everything.

    Raises:
        DeviceError: VKOPS_COPY has a wrong value.
    """
    wanted = wanted_copies()
    if wanted == "shader" or not kompute.native:
        return None
    if wanted == "regions":
        return limited(ALWAYS_REGIONS, kompute)
    if info.type == "CPU":
        return limited(_constants(info), kompute)
    return UNMEASURED if kompute.has_timestamps else None


def _constants(info: adapter.DeviceInfo) -> CopyCosts:
    return on_cpu(adapter.threads(), int64=adapter.prefers_int64(info))


def limited(costs: CopyCosts, kompute: Kompute) -> CopyCosts:
    """Add the limits of a device to its costs."""
    limit = MAX_VALIDATED_REGIONS if adapter.under_validation() else MAX_REGIONS
    return replace(costs, max_regions=limit, images=kompute.images)


def costs_of(info: adapter.DeviceInfo, measured: Callable[[], CopyCosts]) -> CopyCosts:
    """Return the costs of an adapter: what the cache has, or else what ``measured`` returns."""
    found = known_costs(info)
    if found is None:
        found = _in_process[_key(info)] = measured()
        numbers = found.shader, found.unaligned, found.copy, found.region, found.command
        _on_disk.store(_key(info), json.dumps(numbers).encode())
    return found


def known_costs(info: adapter.DeviceInfo) -> CopyCosts | None:
    """Return the costs of an adapter if they were measured, by this process or another one."""
    key = _key(info)
    if key not in _in_process:
        found = _read(_on_disk.load(key) or b"")
        if found is None:
            return None
        _in_process[key] = found
    return _in_process[key]


def _key(info: adapter.DeviceInfo) -> str:
    """Hash what costs depend on: adapter, driver, memory, layers; not its place in the list."""
    parts = _VERSION, astuple(replace(info, index=0)), adapter.under_validation()
    return hashlib.sha256(repr(parts).encode()).hexdigest()


def _read(entry: bytes) -> CopyCosts | None:
    """Return the costs of an entry of the cache; None if it is damaged."""
    try:
        numbers = [*map(float, json.loads(entry))]
        shader, unaligned, copied, region, command = numbers
    except (ValueError, TypeError, OverflowError, RecursionError):
        return None
    if not all(isfinite(number) and number >= 0 for number in numbers):
        return None
    return CopyCosts(shader, unaligned, copied, region, command)


def measure(run: Callable[[Work], float | None], heap: Heap, tuning: Tuning) -> CopyCosts:
    """Measure the costs of copies; ``run`` returns the nanoseconds of a copy or a dispatch.

    ``heap`` has HEAP_BYTES of the device's memory, which are overwritten. If the driver allows no
    copies there, the costs are those of ``UNMEASURED``: shaders copy everything.
    """
    if heap.buffer is None:
        return UNMEASURED
    half = SIZES[-1]
    memory = [Range(heap, 0, half)], [Range(heap, half, half)]

    def regions(count: int, nbytes: int) -> Work:
        starts = np.arange(count) * (half // count)
        rows = np.column_stack([starts, starts + half, np.full(count, nbytes)])
        return RegionCopy(heap, heap, rows.astype(np.uint64))

    def shader(nbytes: int, start: int = 0) -> Work:
        packed = View.packed((nbytes,))
        output = Output(nbytes, (copy(packed.shift(start), packed),))
        (dispatch,) = EncodedPlan(CopyPlan(1, (half,), (output,)), tuning).bind(*memory)
        return dispatch

    def times(*work: Work) -> list[float]:
        rounds = [[run(each) for each in work] for _ in range(ROUNDS)]
        shortest: list[float] = np.min(np.array(rounds, float), 0).tolist()
        return shortest

    command, divided, dispatch = times(
        regions(1, VECTOR), regions(REGIONS, REGION_BYTES), shader(VECTOR)
    )
    for nbytes in SIZES:
        copied, aligned, shifted = times(
            regions(1, nbytes), shader(nbytes), shader(nbytes - VECTOR, start=1)
        )
        if copied - command >= LONG_ENOUGH_NS:
            break
    return CopyCosts(
        shader=max(0.0, aligned - dispatch) / nbytes,
        unaligned=max(0.0, shifted - dispatch) / nbytes,
        copy=max(0.0, copied - command) / nbytes,
        region=max(0.0, divided - command) / REGIONS,
        command=command,
    )


def costs_in_words(info: adapter.DeviceInfo) -> str:
    """Say by which costs copies with regions are chosen on an adapter, and where they are from.

    Raises:
        DeviceError: VKOPS_COPY has a wrong value.
    """
    wanted = wanted_copies()
    if native_state() != "active":
        return f"none, shaders copy everything: native operations {native_state()}"
    if wanted != "auto":
        return f"none: {COPY}={wanted}"
    if info.type == "CPU":
        return f"{_constants(info)} (constants of CPU drivers, for {adapter.threads()} threads)"
    found = known_costs(info)
    if found is None:
        return (
            "not measured yet: the first large plan with long contiguous runs does that, if the "
            "device has timestamps"
        )
    if found == UNMEASURED:
        return "none, shaders copy everything: nothing could be measured"
    return f"{found} (measured)"
