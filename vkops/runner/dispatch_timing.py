"""Dispatch in a loop, and report how long it takes."""

from __future__ import annotations

import time
from array import array
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import partial
from statistics import median_high  # as DxDispatch does
from typing import TYPE_CHECKING

from vkops import console

if TYPE_CHECKING:
    import vkops
    from vkops.gpu.run.streaming import Progress


@dataclass(frozen=True)
class RunOptions:
    """Numbers of dispatches, and what to print; the names are those of the command line."""

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
    tensors: Iterable[str] = (),
    *,
    is_first: bool = True,
) -> None:
    """Dispatch in a loop with a progress bar, and print the times.

    ``is_first`` is whether nothing was dispatched before: a first run compiles the kernel. Profiles
    name the dispatch and its ``tensors``.
    """
    from vkops.gpu.run.profile_recorder import called_by

    device_time = device.measure_dispatches() if options.max_gpu_time_measurements else lambda: None
    caller = called_by(f"dispatch '{console.bounded(name)}'", *tensors)
    with caller, console.progress(name) as progress, options.around_dispatch(name):
        run = partial(dispatch, progress)
        cpu, gpu, lost = _measure(options, run, device.synchronize, device_time)
    is_cold = is_first and len(cpu) == 1 and options.dispatch_repeat == 1
    verbosity = options.timing_verbosity
    for line in report(
        name, cpu, gpu, options.warmup_samples, verbosity, lost=lost, is_cold=is_cold
    ):
        console.info(line)


def _measure(
    options: RunOptions,
    dispatch: Callable[[], object],
    wait: Callable[[], None],
    device_time: Callable[[], float | None],
) -> tuple[array[float], Mapping[int, float], int]:
    """Measure one dispatch in each iteration, in milliseconds.

    Returns:
        The times of the host, the latest of the device by iteration, and the number of its others.
    """
    limit, repeat = options.milliseconds_to_run, max(1, options.dispatch_repeat)
    samples = array("d")
    latest: deque[tuple[int, float]] = deque(maxlen=options.max_gpu_time_measurements)
    measured = 0
    loop_start = time.perf_counter()
    while limit is not None or len(samples) < options.dispatch_iterations:
        start = time.perf_counter()
        for _ in range(options.dispatch_repeat):
            dispatch()
        wait()
        elapsed = (time.perf_counter() - start) * 1000
        if (by_device := device_time()) is not None:
            latest.append((len(samples), by_device / repeat))
            measured += 1
        samples.append(elapsed / repeat)
        pause = max(0.0, options.dispatch_interval - elapsed)
        if limit is not None and (time.perf_counter() - loop_start) * 1000 + pause > limit:
            break
        if pause:
            time.sleep(pause / 1000)
    return samples, dict(latest), measured - len(latest)


def report(
    name: str,
    cpu: Sequence[float],
    gpu: Mapping[int, float],
    warmup_samples: int,
    verbosity: int,
    *,
    lost: int = 0,
    is_cold: bool = False,
) -> Iterator[str]:
    """Yield the lines about a dispatch; none if it never ran.

    Args:
        name: of the dispatchable.
        cpu: milliseconds per iteration, by the host.
        gpu: those of some iterations, by the device.
        warmup_samples: the maximum number of cold samples; at least one is hot.
        verbosity: 0, one line; 1, statistics too; 2, every iteration too.
        lost: the number of times by the device that were not kept.
        is_cold: whether the only sample is of the first run, which is slower.
    """
    if not cpu:
        return
    cold = min(len(cpu) - 1, warmup_samples)
    hot_gpu = [ms for i, ms in gpu.items() if i >= cold]
    start = f"Dispatch '{console.bounded(name)}': {len(cpu)} iterations"
    if verbosity == 0:
        by_device = f", {median_high(hot_gpu):.6f} ms median (GPU)" if hot_gpu else ""
        note = "; the first run, later ones are faster" if is_cold else ""
        yield f"{start}, {median_high(cpu[cold:]):.4f} ms median (CPU){by_device}{note}"
        return
    yield start
    for label, part in (
        ("CPU Timings (Cold)", cpu[:cold]),
        ("GPU Timings (Cold)", [ms for i, ms in gpu.items() if i < cold]),
        ("CPU Timings (Hot) ", cpu[cold:]),
        ("GPU Timings (Hot) ", hot_gpu),
    ):
        if part:
            yield (
                f"{label} : {len(part)} samples, "
                f"{sum(part) / len(part):.4f} ms average, {min(part):.4f} ms min, "
                f"{median_high(part):.4f} ms median, {max(part):.4f} ms max"
            )
    if lost:
        yield f"GPU samples buffer has {lost} samples overwritten."
    if verbosity >= 2:
        yield "The timings of each iteration: "
        for i, sample in enumerate(cpu):
            by_device = f", {gpu[i]:.4f} ms (GPU)" if i in gpu else ""
            yield f"iteration {i}: {sample:.4f} ms (CPU){by_device}"
