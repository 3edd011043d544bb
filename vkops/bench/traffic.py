"""The memory traffic and the operations on a GPU of workloads, and of other kernels."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from functools import cache as cached
from functools import partial
from typing import Any

import numpy as np
from rich.table import Table

from vkops import console, kernels
from vkops.bench.workloads import Workload
from vkops.debug.driver_compiler import compile_for
from vkops.debug.traffic import SEGMENTS, SUBGROUPS, PartTraffic, Totals, call_traffic, plan_traffic
from vkops.errors import DeviceError
from vkops.gpu.kernels.choice import VECTOR
from vkops.gpu.kernels.encoding import GPU
from vkops.shaders.shader import Shader
from vkops.tensors.tensor import Device

Counted = tuple[str, list[PartTraffic]]

KERNELS: dict[str, tuple[int, Callable[[Any], Any]]] = {
    "sum": (1 << 24, kernels.sum),
    "cumsum": (1 << 24, kernels.cumsum),
    "sort": (1 << 20, kernels.sort),
    "bincount": (1 << 24, lambda x: kernels.bincount(x.view("int32"), size=256, dtype="int32")),
    "histogram": (1 << 20, lambda x: kernels.histogram(x, 256, (0, 1), dtype="int32")[0]),
}
"""Calls for float32 numbers from 0 to 1, and how many of these they are given."""


FAMILY = "navi31"
"""The GPU for which Mesa compiles the kernels."""

BANDWIDTH = 3.94e12
"""Bytes in a second that a copy loads and stores on an H200."""

OPERATIONS = 132 * 4 * 32 * 1.98e9
"""Scalar operations in a second of an H200: of its processors' four schedulers, at full clock."""

COLUMNS = {
    "operations": ("Operations", 1),
    "accesses": ("Accesses", 2),
    "Instructions": ("Machine\ninstructions", 0),
    "VGPRs": ("VGPRs", 0),
    "Subgroups per SIMD": ("Subgroups", 0),
}
"""The headings of the figures of ``work``, and how many decimal places they have."""


def count(workloads: Iterable[Workload], *, scale: int, cache: int) -> Iterator[Counted]:
    """Count the traffic of workloads whose plans shaders execute alone, with random indices."""
    for workload in workloads:
        case = workload.case.scaled(scale)
        pipeline = case.desc.pipeline
        indices = {
            pipeline.inputs[number]: array
            for number, array in case.indices(np.random.default_rng(0)).items()
        }
        parts: list[PartTraffic] = []
        for step in pipeline.steps:
            known = {i: indices[number] for i, number in enumerate(step.reads) if number in indices}
            parts += plan_traffic(step.plan, GPU, known, cache)
        yield workload.name, parts


def count_kernels(
    names: Iterable[str], device: Device, *, scale: int, cache: int
) -> Iterator[Counted]:
    """Count the traffic of kernels as on a GPU, while a device of the caller's own runs them."""
    tuning = device.tuning  # that of a GPU with the same limits
    device.tuning = replace(GPU, sources=tuning.sources, invocations=tuning.invocations)
    random = np.random.default_rng(0)
    for name in names:
        size, call = KERNELS[name]
        x = device.tensor(random.random(size * scale, np.float32))
        result, traffic, dispatches = call_traffic(partial(call, x), cache)
        yield name, [PartTraffic("all", dispatches, x.nbytes, result.nbytes, traffic)]


def json_ready(counted: Iterable[Counted]) -> dict[str, Any]:
    """Return the bytes of the traffic and the work as plain data for JSON, by workload."""
    return {
        name: [
            {
                "kernel": part.kernel,
                "dispatches": part.dispatches,
                "loads": _plain(part.traffic.loads, part.must_load),
                "stores": _plain(part.traffic.stores, part.must_store),
                "work": work(part),
            }
            for part in parts
        ]
        for name, parts in counted
    }


def _plain(totals: Totals, must: int) -> dict[str, Any]:
    touched = {
        f"subgroups of {size}": {segment: totals.segments[size, segment] for segment in SEGMENTS}
        for size in SUBGROUPS
    }
    return {"must_move": must, **touched, "memory": totals.memory}


def work(part: PartTraffic) -> Mapping[str, float]:
    """Return the work of a part: operations and accesses for each 16 bytes that must move.

    The figures of a single shader are with it, if Mesa's driver for AMD GPUs is installed and
    compiles without one.
    """
    traffic = part.traffic
    vectors = (part.must_load + part.must_store) / VECTOR or 1
    compiled = _compiled(*traffic.operations) if len(traffic.operations) == 1 else {}
    return {
        "operations": traffic.instructions[SUBGROUPS[0]] / vectors,
        "accesses": (traffic.loads.active + traffic.stores.active) / vectors,
        **{name: compiled[name] for name in COLUMNS if name in compiled},
    }


def roof(parts: Iterable[PartTraffic]) -> float:
    """Return twice the bytes of a result in a second, if only an H200's limits held parts up.

    Each part takes as long as the slower of memory and operations. What a scatter writes over the
    results of other parts is no more of a result.
    """
    seconds, stored, scattered = 0.0, 0, 0
    for part in parts:
        memory = part.traffic.loads.memory + part.traffic.stores.memory
        operations = part.traffic.instructions[SUBGROUPS[0]]
        seconds += max(memory / BANDWIDTH, operations / OPERATIONS)
        if part.kernel.startswith("scatter"):
            scattered += part.must_store
        else:
            stored += part.must_store
    stored = stored or scattered
    return 2 * stored / seconds if seconds else 0.0


@cached
def _compiled(shader: Shader) -> Mapping[str, float]:
    try:
        return compile_for(FAMILY, [shader]).programs[0].figures
    except DeviceError:
        return {}


def work_table(counted: Iterable[Counted]) -> Table:
    """Return a table of the work of kernels, and of the roofs of workloads."""
    rows = []
    for name, parts in counted:
        limit = f"{roof(parts) / 1e9:,.0f}"
        for part in parts:
            figures = work(part)
            texts = [
                f"{figures[key]:,.{places}f}" if key in figures else ""
                for key, (_, places) in COLUMNS.items()
            ]
            rows.append([name, part.kernel, *texts, limit])
            name = limit = ""
    headings = [heading for heading, _ in COLUMNS.values()]
    return console.figures(("", "Kernel"), [*headings, "Roof,\nGB/s"], rows, gap=2)
