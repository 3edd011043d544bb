"""The memory traffic on a GPU of the workloads, and of kernels that any device runs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from vkops import kernels
from vkops.bench.workloads import Workload
from vkops.debug.traffic import SEGMENTS, SUBGROUPS, PartTraffic, Totals, call_traffic, plan_traffic
from vkops.gpu.kernels.encoding import GPU
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
    """Return the bytes of the traffic as plain data for JSON, by workload."""
    return {
        name: [
            {
                "kernel": part.kernel,
                "dispatches": part.dispatches,
                "loads": _plain(part.traffic.loads, part.must_load),
                "stores": _plain(part.traffic.stores, part.must_store),
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
