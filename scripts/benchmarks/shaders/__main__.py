"""Measure users' shaders. Usage: scripts/bench --shaders [--json] [--rounds N] [--adapter NAME]."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median
from time import perf_counter

import numpy as np
import psutil

import vkops
from benchmarks import is_installed, options, print_json
from benchmarks import shaders as bench_shaders
from benchmarks.shaders import (
    BODIES,
    LARGE,
    LARGE_GROUPS,
    ONE_GROUP,
    STEPS,
    TINY,
    Array,
    Library,
    Runs,
    with_kompute,
    with_vkops,
)
from benchmarks.shaders.with_vkops import MANY
from vkops import console

_WORKLOADS = {
    "tiny": (f"y = a x + y, {TINY} elements", 50),
    "axpy": (f"y = a x + y, {LARGE >> 20} Mi elements", 2),
    "nbody": (f"{STEPS} dependent steps of {BODIES} bodies", 2),
    "compile": ("a shader that was compiled before", 5),
}
"""By name: what is run, and how often in each round."""


@dataclass(frozen=True)
class Result:
    """Median seconds of a variant of vkops, and of the other libraries, by name.

    ``memory`` has the bytes that the process takes in addition while a variant runs.
    """

    work: str
    variant: str
    seconds: Mapping[str, float]
    memory: Mapping[str, int]


def measure(device: vkops.Device, rounds: int) -> Iterator[Result]:
    """Measure all workloads, in each of which the libraries take turns.

    Raises:
        DeviceError: a result differs from NumPy's.
    """
    libraries = _libraries(device)
    random = np.random.default_rng(0)
    for work, count, groups in (("tiny", TINY, ONE_GROUP), ("axpy", LARGE, LARGE_GROUPS)):
        x, y = random.random(count, np.float32), random.random(count, np.float32)
        runs: dict[str, Runs] = {}
        memory: dict[str, int] = {}
        for name, library in libraries.items():
            _run_first(library.axpy(x[:TINY], y[:TINY], ONE_GROUP)[0])  # compiles the shader
            runs[name], result = library.axpy(x, y, groups)
            _run_first(runs[name])
            _compare(work, name, result(), bench_shaders.axpy(x, y))
            if work == "axpy":
                memory |= _memory(name, runs[name])
        yield from _results(work, runs, rounds, memory)
    bodies = random.random((BODIES, 8), np.float32)
    runs = {}
    for name, library in libraries.items():
        runs[name], result = library.nbody(bodies)
        _run_first(runs[name])
        _compare("nbody", name, result(), bench_shaders.nbody(bodies, STEPS))
    yield from _results("nbody", runs, rounds, {})
    runs = {name: library.compilation() for name, library in libraries.items()}
    in_process, *_ = _results("compile", runs, rounds, {})
    yield in_process
    seconds = {**in_process.seconds, "vkops": _from_disk(libraries["vkops"], rounds)}
    yield Result("compile", "from the cache on disk", seconds, {})


def _libraries(device: vkops.Device) -> dict[str, Library]:
    libraries: dict[str, Library] = {"vkops": with_vkops.Contender(device)}
    libraries["kompute"] = with_kompute.Contender(device.info)
    if is_installed("wgpu"):
        from benchmarks.shaders import with_wgpu

        libraries["wgpu"] = with_wgpu.Contender(device.info)
    return libraries


def _run_first(runs: Runs) -> None:
    next(iter(runs.values()))()


def _compare(work: str, name: str, result: Array, expected: Array) -> None:
    if not np.allclose(result, expected, rtol=1e-3, atol=1e-3):
        raise vkops.DeviceError(f"{work}: the result of {name} differs from NumPy's")


def _memory(name: str, runs: Runs) -> dict[str, int]:
    """Bytes that the process takes while each variant runs, beyond what it had; on Linux."""
    status, peaks = Path("/proc/self/status"), {}
    for variant, run in runs.items():
        before = psutil.Process().memory_info().rss
        try:
            Path("/proc/self/clear_refs").write_text("5")  # the peak begins anew
            run()
            peak = next(s for s in status.read_text().splitlines() if s.startswith("VmHWM"))
        except OSError:
            continue
        peaks[f"{name} {variant}".strip()] = max(0, int(peak.split()[1]) * 1024 - before)
    return peaks


def _results(
    work: str, runs: Mapping[str, Runs], rounds: int, memory: Mapping[str, int]
) -> Iterator[Result]:
    """Time all variants in turns; a result has one of vkops, and the alike of the others."""
    _, count = _WORKLOADS[work]
    flat = {(name, variant): run for name, some in runs.items() for variant, run in some.items()}
    samples: dict[tuple[str, str], list[float]] = {key: [] for key in flat}
    for turn in range(rounds + 1):
        for key, run in flat.items():
            times = MANY if "no waits" in key[1] else 1
            for _ in range(max(1, count // times)):
                start = perf_counter()
                run()
                elapsed = perf_counter() - start
                if turn:  # the first turn warms up
                    samples[key].append(elapsed / times)
    seconds = {key: median(values) for key, values in samples.items()}
    for variant in runs["vkops"]:
        result = {"vkops": seconds["vkops", variant], "kompute": seconds["kompute", ""]}
        if "wgpu" in runs:
            alike = "no waits" if "no waits" in variant else ""
            result["wgpu"] = seconds["wgpu", alike]
        peers = ("kompute", "wgpu")
        peaks = {"vkops": memory.get(f"vkops {variant}"), **{n: memory.get(n) for n in peers}}
        taken = {name: nbytes for name, nbytes in peaks.items() if nbytes is not None}
        yield Result(work, variant, result, taken)


def _from_disk(library: Library, rounds: int) -> float:
    assert isinstance(library, with_vkops.Contender)
    command = library.command_from_disk()
    runs = [subprocess.run(command, check=True, capture_output=True) for _ in range(rounds)]
    return median(float(run.stdout) for run in runs)


def report(device: vkops.Device, results: list[Result], rounds: int) -> None:
    """Print a table."""
    ratios = "Ratio: time of the other divided by time of vkops; above 1, vkops is faster"
    console.info(f"{device.name} ({device.info.driver}), {os.cpu_count()} processors")
    console.info(f"{ratios}; MiB: memory that a run takes; medians of {rounds} rounds")
    rows = []
    for result in results:
        of_vkops = result.seconds["vkops"]
        against = [
            f"{result.seconds[name] / of_vkops:.2f}" if name in result.seconds else ""
            for name in ("kompute", "wgpu")
        ]
        more = result.memory.get("vkops")
        mebibytes = "" if more is None else f"{more / 2**20:.1f}"
        ms = f"{1000 * of_vkops:.3g}"
        rows.append([_WORKLOADS[result.work][0], result.variant, ms, *against, mebibytes])
    headings = "workload", "vkops", "ms", "Kompute", "wgpu", "MiB"
    console.show(console.table(None, headings, rows))


def main(argv: Sequence[str] | None = None) -> None:
    """Measure, and print a table or JSON."""
    arguments = options("shaders", __doc__, rounds=9).parse_args(argv)
    device = vkops.Device(arguments.adapter)
    results = list(measure(device, arguments.rounds))
    if arguments.json:
        listed = [asdict(result) for result in results]
        print_json(device, ("kp", "numpy", "wgpu"), rounds=arguments.rounds, results=listed)
    else:
        report(device, results, arguments.rounds)


if __name__ == "__main__":
    main()
