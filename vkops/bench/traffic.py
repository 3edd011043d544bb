"""The memory traffic of the workloads on a GPU, which is counted without a device."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from vkops.bench.workloads import Workload
from vkops.debug.traffic import SEGMENTS, SUBGROUPS, PartTraffic, Totals, plan_traffic
from vkops.gpu.kernels.encoding import GPU

Counted = tuple[Workload, list[PartTraffic]]


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
            given = {i: indices[number] for i, number in enumerate(step.reads) if number in indices}
            parts += plan_traffic(step.plan, GPU, given, cache)
        yield workload, parts


def json_ready(counted: Iterable[Counted]) -> dict[str, Any]:
    """Return the bytes of the traffic as plain data for JSON, by workload."""
    return {
        workload.name: [
            {
                "kernel": part.kernel,
                "dispatches": part.dispatches,
                "loads": _plain(part.traffic.loads, part.must_load),
                "stores": _plain(part.traffic.stores, part.must_store),
            }
            for part in parts
        ]
        for workload, parts in counted
    }


def _plain(totals: Totals, must: int) -> dict[str, Any]:
    touched = {
        f"subgroups of {size}": {segment: totals.segments[size, segment] for segment in SEGMENTS}
        for size in SUBGROUPS
    }
    return {"must_move": must, **touched, "memory": totals.memory}
