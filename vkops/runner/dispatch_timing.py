"""Dispatch in a loop, and report how long it takes."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from vkops.runner import console

if TYPE_CHECKING:
    import vkops

Progress = Callable[[int, int], None]
"""A function that is told of the bytes done and of all bytes."""


@dataclass(frozen=True)
class RunOptions:
    """How often to dispatch, and what to print; the names are those of the command line."""

    dispatch_iterations: int = 1
    dispatch_repeat: int = 1
    milliseconds_to_run: int | None = None
    dispatch_interval: int = 0
    warmup_samples: int = 1
    timing_verbosity: int = 0
    max_gpu_time_measurements: int = 8192
    print_commands: bool = False
    print_onnx_bindings: bool = False
    flat: bool = False
    around_dispatch: Callable[[str], AbstractContextManager[object]] = nullcontext
    """Makes the context of each dispatch command from the dispatchable's name."""


def run_timed(
    name: str,
    options: RunOptions,
    dispatch: Callable[[Progress], object],
    device: vkops.Device,
    *,
    is_first: bool = True,
) -> None:
    """Dispatch in a loop with a progress bar, and print the times.

    ``is_first`` is whether nothing was dispatched before: a first run compiles the kernel.
    """
    most = options.max_gpu_time_measurements
    device_time = device.measure_dispatches() if most else lambda: None
    with console.progress(name) as progress, options.around_dispatch(name):
        samples = _measure(options, partial(dispatch, progress), device_time)
    cpu = Samples("CPU", dict(enumerate(cpu for cpu, _ in samples)))
    measured = {i: gpu for i, (_, gpu) in enumerate(samples) if gpu is not None}
    kept = dict(list(measured.items())[-most:]) if most else {}
    gpu = Samples("GPU", kept, len(measured) - len(kept))
    is_cold = is_first and len(samples) == 1 and options.dispatch_repeat == 1
    verbosity = options.timing_verbosity
    for line in report(name, cpu, gpu, options.warmup_samples, verbosity, is_cold=is_cold):
        console.info(line)


def _measure(
    options: RunOptions, dispatch: Callable[[], object], device_time: Callable[[], float | None]
) -> list[tuple[float, float | None]]:
    """Return the milliseconds that one dispatch took for each iteration, also by the device."""
    limit = options.milliseconds_to_run
    samples: list[tuple[float, float | None]] = []
    loop_start = time.perf_counter()
    while limit is not None or len(samples) < options.dispatch_iterations:
        start = time.perf_counter()
        for _ in range(options.dispatch_repeat):
            dispatch()
        elapsed = (time.perf_counter() - start) * 1000
        samples.append((elapsed / max(1, options.dispatch_repeat), device_time()))
        pause = max(0.0, options.dispatch_interval - elapsed)
        if limit is not None and (time.perf_counter() - loop_start) * 1000 + pause > limit:
            break
        if pause:
            time.sleep(pause / 1000)
    return samples


class Samples(NamedTuple):
    """Milliseconds by iteration, from one clock; ``lost`` is the number that were not kept."""

    clock: str
    by_iteration: Mapping[int, float]
    lost: int = 0


def report(
    name: str,
    cpu: Samples,
    gpu: Samples,
    warmup_samples: int,
    verbosity: int,
    *,
    is_cold: bool = False,
) -> Iterator[str]:
    """Yield the lines about a dispatch; none if it never ran.

    Args:
        name: of the dispatchable.
        cpu: what the host measured in all iterations.
        gpu: what the device measured, if it did.
        warmup_samples: the maximum number of cold samples; at least one is hot.
        verbosity: 0, one line; 1, statistics too; 2, every iteration too.
        is_cold: whether the only sample is of the first run, which is slower.
    """
    count = len(cpu.by_iteration)
    if not count:
        return
    cold_count = min(count - 1, warmup_samples)
    start = f"Dispatch '{console.bounded(name)}': {count} iterations"
    if verbosity == 0:
        hot = [[ms for i, ms in by.by_iteration.items() if i >= cold_count] for by in (cpu, gpu)]
        digits = zip(hot, (cpu.clock, gpu.clock), (4, 6), strict=True)
        medians = (f"{_median(ms):.{n}f} ms median ({clock})" for ms, clock, n in digits if ms)
        note = "; the first run, later ones are faster" if is_cold else ""
        yield ", ".join([start, *medians]) + note
        return
    yield start
    for label, wanted in (
        ("(Cold)", range(cold_count)),
        ("(Hot) ", range(cold_count, count)),
    ):
        for clock, by_iteration, _ in (cpu, gpu):
            part = [by_iteration[i] for i in wanted if i in by_iteration]
            if part:
                yield (
                    f"{clock} Timings {label} : {len(part)} samples, "
                    f"{sum(part) / len(part):.4f} ms average, {min(part):.4f} ms min, "
                    f"{_median(part):.4f} ms median, {max(part):.4f} ms max"
                )
    if gpu.lost:
        yield f"GPU samples buffer has {gpu.lost} samples overwritten."
    if verbosity >= 2:
        yield "The timings of each iteration: "
        for i, sample in cpu.by_iteration.items():
            found = [(sample, "CPU"), *([(gpu[1][i], "GPU")] if i in gpu[1] else [])]
            yield f"iteration {i}: " + ", ".join(f"{ms:.4f} ms ({clock})" for ms, clock in found)


def _median(samples: Sequence[float]) -> float:
    """Return DxDispatch's median, which is the upper one of an even number."""
    return sorted(samples)[len(samples) // 2]
