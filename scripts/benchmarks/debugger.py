"""Measure checks of shaders. Usage: scripts/bench --debugger [--against CHECKOUT] [--rounds N].

With another checkout of vkops, both take turns, and the ratio is its time divided by that of this
one: above 1, this one is faster. Times are those of the processor, in seconds.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from time import process_time
from typing import Any

import numpy as np

HEAD = """#version 450
layout(local_size_x = 64) in;
uint own = gl_LocalInvocationIndex, i = gl_GlobalInvocationID.x;
layout(std430, binding = 0) buffer Data { uint data[]; };
layout(std430, binding = 1) buffer Out { uint result[]; };
shared uint part[64];
"""

LOOK_BACK = """
layout(std430, binding = 2) buffer Tickets { uint tickets; };
layout(std430, binding = 3) buffer Aggregates { uint aggregates[]; };
layout(std430, binding = 4) buffer Prefixes { uint prefixes[]; };
layout(std430, binding = 5) buffer States { uint states[]; };
shared uint tile, before;
void publish(uint state) { memoryBarrierBuffer(); atomicExchange(states[tile], state); }
void main() {
    if (own == 0u) tile = atomicAdd(tickets, 1u);
    barrier();
    uint at = tile * 64u + own;
    part[own] = data[at];
    barrier();
    for (uint step = 1u; step < 64u; step *= 2u) {
        uint other = own >= step ? part[own - step] : 0u;
        barrier();
        part[own] += other;
        barrier();
    }
    if (own == 0u) {
        uint sum = 0u;
        if (tile == 0u) {
            prefixes[0] = part[63];
            publish(2u);
        } else {
            aggregates[tile] = part[63];
            publish(1u);
            uint look = tile - 1u;
            while (true) {
                uint state = atomicOr(states[look], 0u);
                memoryBarrierBuffer();
                if (state == 2u) { sum += prefixes[look]; break; }
                if (state == 1u) { sum += aggregates[look]; --look; }
            }
            prefixes[tile] = sum + part[63];
            publish(2u);
        }
        before = sum;
    }
    barrier();
    result[at] = before + part[own];
}"""
"""A scan in one pass, whose workgroups add what the ones before them have published."""

SPIN = """
layout(std430, binding = 2) buffer Turns { uint turn; };
void main() {
    if (own == 0u) {
        while (atomicOr(turn, 0u) != gl_WorkGroupID.x) {}
        memoryBarrierBuffer();
        result[0] += data[i];
        memoryBarrierBuffer();
        atomicExchange(turn, gl_WorkGroupID.x + 1u);
    }
}"""
"""Workgroups that take turns: each but the first waits in a loop for the one before it."""

LOCK = """
layout(std430, binding = 2) buffer Lock { uint lock; };
void main() {
    if (own == 0u) {
        while (atomicCompSwap(lock, 0u, 1u) != 0u) {}
        memoryBarrierBuffer();
        result[0] += data[i];
        memoryBarrierBuffer();
        atomicExchange(lock, 0u);
    }
}"""

SCALE = "void main() { result[i] = data[i] * 3u + own; }"
LOOP = """void main() {
    uint x = data[i];
    for (uint k = 0u; k < 300u; ++k) x = x * 5u + k;
    result[i] = x;
}"""
REDUCTION = """void main() {
    part[own] = data[i];
    barrier();
    for (uint s = 32u; s > 0u; s /= 2u) { if (own < s) part[own] += part[own + s]; barrier(); }
    if (own == 0u) result[gl_WorkGroupID.x] = part[0];
}"""
HISTOGRAM = """void main() {
    if (own < 16u) part[own] = 0u;
    barrier();
    for (uint k = 0u; k < 8u; ++k) atomicAdd(part[data[i] * k % 16u], 1u);
    barrier();
    if (own < 16u) atomicAdd(result[own], part[own]);
}"""
SEARCH = """void main() {
    uint low = 0u, high = data.length();
    while (low < high) {
        uint mid = (low + high) / 2u;
        if (data[mid] < i) low = mid + 1u; else high = mid;
    }
    result[i] = low;
}"""
CALLS = """uint f(uint x) { return x * 7u + own; }
void main() { uint x = data[i]; for (uint k = 0u; k < 60u; ++k) x = f(x) ^ f(k); result[i] = x; }"""

GROUPS = 40
LEAST = 1.0
"""Seconds for which a short check is repeated; the fastest one counts."""


def workloads() -> dict[str, tuple[str, dict[str, Any]]]:
    """Return the shaders and their buffers, by name."""
    count = 64 * GROUPS
    data = {"Data": np.arange(count, dtype=np.uint32), "Out": np.zeros(count, np.uint32)}
    states = {"Tickets": _zeros(1), "Aggregates": 4 * GROUPS, "Prefixes": 4 * GROUPS}
    return {
        "look-back": (LOOK_BACK, {**data, **states, "States": _zeros(GROUPS)}),
        "spin": (SPIN, {**data, "Turns": _zeros(1)}),
        "lock": (LOCK, {**data, "Lock": _zeros(1)}),
        "scale": (SCALE, data),
        "loop": (LOOP, data),
        "reduction": (REDUCTION, data),
        "histogram": (HISTOGRAM, data),
        "search": (SEARCH, data),
        "calls": (CALLS, data),
    }


def _zeros(count: int) -> Any:
    return np.zeros(count, np.uint32)


def measure(name: str) -> dict[str, Any]:
    """Check a workload, and return the seconds that it takes, with the kinds of findings."""
    import vkops.debug
    from vkops import shaders

    text, buffers = workloads()[name]
    shader = shaders.load(HEAD + text, debug=True, name=name)
    vkops.debug.check(shaders.load(HEAD + SCALE, debug=True, name="first"), workloads()["scale"][1])
    seconds: list[float] = []
    while sum(seconds) < LEAST:
        begin = process_time()
        report = vkops.debug.check(shader, buffers, groups=GROUPS)
        seconds.append(process_time() - begin)
    return {"seconds": min(seconds), "found": sorted({f.kind for f in report.findings})}


def _run(name: str, checkout: Path) -> dict[str, Any]:
    environment = {**os.environ, "PYTHONPATH": str(checkout)}
    command = [sys.executable, __file__, "--measure", name]
    done = subprocess.run(command, env=environment, check=True, capture_output=True, text=True)
    result: dict[str, Any] = json.loads(done.stdout)
    return result


def main(argv: Sequence[str] | None = None) -> None:
    """Print the times."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--against", metavar="CHECKOUT", type=Path)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", metavar="NAME", choices=workloads())
    parser.add_argument("--measure", metavar="NAME", help=argparse.SUPPRESS)
    arguments = parser.parse_args(argv)
    if arguments.measure:
        print(json.dumps(measure(arguments.measure)))
        return
    here = Path(__file__).resolve().parents[2]
    checkouts = [here] if arguments.against is None else [here, arguments.against.resolve()]
    for name in [arguments.only] if arguments.only else workloads():
        runs: list[list[dict[str, Any]]] = [[] for _ in checkouts]
        for _ in range(arguments.rounds):
            for each, checkout in zip(runs, checkouts, strict=True):
                each.append(_run(name, checkout))
        seconds = [median(run["seconds"] for run in each) for each in runs]
        found = ", ".join(runs[0][0]["found"]) or "nothing"
        text = f"{name:<12}{seconds[0]:8.3f} s"
        if len(seconds) > 1:
            text += f"{seconds[1]:9.3f} s   ratio {seconds[1] / seconds[0]:6.2f}"
        print(f"{text}   found {found}", flush=True)


if __name__ == "__main__":
    main()
