"""Dispatch in a loop, and report how long it takes."""

from __future__ import annotations

import time
from array import array
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import partial

from vkops.runner import console

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
    print_commands: bool = False
    print_onnx_bindings: bool = False
    around_dispatch: Callable[[str], AbstractContextManager[object]] = nullcontext
    """Makes the context of each dispatch command from the dispatchable's name."""


def run_timed(name: str, options: RunOptions, dispatch: Callable[[Progress], object]) -> None:
    """Dispatch in a loop with a progress bar, and print the times."""
    with console.progress(name) as progress, options.around_dispatch(name):
        samples = _measure(options, partial(dispatch, progress))
    for line in report(name, samples, options.warmup_samples, options.timing_verbosity):
        console.info(line)


def _measure(options: RunOptions, dispatch: Callable[[], object]) -> array[float]:
    """Return the milliseconds that one dispatch took, for each iteration."""
    limit = options.milliseconds_to_run
    samples = array("d")
    loop_start = time.perf_counter()
    while limit is not None or len(samples) < options.dispatch_iterations:
        start = time.perf_counter()
        for _ in range(options.dispatch_repeat):
            dispatch()
        elapsed = (time.perf_counter() - start) * 1000
        samples.append(elapsed / max(1, options.dispatch_repeat))
        pause = max(0.0, options.dispatch_interval - elapsed)
        if limit is not None and (time.perf_counter() - loop_start) * 1000 + pause > limit:
            break
        if pause:
            time.sleep(pause / 1000)
    return samples


def report(
    name: str, samples: Sequence[float], warmup_samples: int, verbosity: int
) -> Iterator[str]:
    """Yield the lines about a dispatch; none if it never ran.

    Args:
        name: of the dispatchable.
        samples: milliseconds per iteration, the first ones being cold.
        warmup_samples: the maximum number of cold samples; at least one is hot.
        verbosity: 0, one line; 1, statistics too; 2, every iteration too.
    """
    if not samples:
        return
    cold_count = min(len(samples) - 1, warmup_samples)
    cold, hot = samples[:cold_count], samples[cold_count:]
    start = f"Dispatch '{console.bounded(name)}': {len(samples)} iterations"
    if verbosity == 0:
        yield f"{start}, {_median(hot):.4f} ms median (CPU)"
        return
    yield start
    for label, part in (("(Cold)", cold), ("(Hot) ", hot)):
        if part:
            yield (
                f"CPU Timings {label} : {len(part)} samples, "
                f"{sum(part) / len(part):.4f} ms average, {min(part):.4f} ms min, "
                f"{_median(part):.4f} ms median, {max(part):.4f} ms max"
            )
    if verbosity >= 2:
        yield "The timings of each iteration: "
        for i, sample in enumerate(samples):
            yield f"iteration {i}: {sample:.4f} ms (CPU)"


def _median(samples: Sequence[float]) -> float:
    """Return DxDispatch's median, which is the upper one of an even number."""
    return sorted(samples)[len(samples) // 2]
