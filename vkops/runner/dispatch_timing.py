"""Times of a dispatch and the lines that report them."""

from __future__ import annotations

import time
from array import array
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass


@dataclass(frozen=True)
class RunOptions:
    """How often to dispatch, and what to tell; the names are those of the command line."""

    dispatch_iterations: int = 1
    dispatch_repeat: int = 1
    milliseconds_to_run: int | None = None
    dispatch_interval: int = 0
    warmup_samples: int = 1
    timing_verbosity: int = 0
    print_commands: bool = False
    print_onnx_bindings: bool = False
    around_dispatch: Callable[[str], AbstractContextManager[object]] = nullcontext
    """What each dispatch command is run within, given the dispatchable's name."""


def measure(name: str, options: RunOptions, dispatch: Callable[[], object]) -> array[float]:
    """Dispatch in a loop; return the milliseconds one dispatch took, per iteration."""
    with options.around_dispatch(name):
        return _measure(options, dispatch)


def _measure(options: RunOptions, dispatch: Callable[[], object]) -> array[float]:
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
    """Yield the lines about a dispatch; none where there was none.

    Args:
        name: of the dispatchable.
        samples: milliseconds per iteration, the first ones being cold.
        warmup_samples: how many samples count as cold at most; one at least is hot.
        verbosity: 0, one line; 1, statistics too; 2, every iteration too.
    """
    if not samples:
        return
    cold_count = min(len(samples) - 1, warmup_samples)
    cold, hot = samples[:cold_count], samples[cold_count:]
    start = f"Dispatch '{name}': {len(samples)} iterations"
    if verbosity == 0:
        yield f"{start}, {_median(hot):.4f} ms median (CPU)"
        return
    yield start
    for which, some in (("(Cold)", cold), ("(Hot) ", hot)):
        if some:
            yield (
                f"CPU Timings {which} : {len(some)} samples, "
                f"{sum(some) / len(some):.4f} ms average, {min(some):.4f} ms min, "
                f"{_median(some):.4f} ms median, {max(some):.4f} ms max"
            )
    if verbosity >= 2:
        yield "The timings of each iteration: "
        for i, sample in enumerate(samples):
            yield f"iteration {i}: {sample:.4f} ms (CPU)"


def _median(samples: Sequence[float]) -> float:
    """Return DxDispatch's median: the upper one of an even number."""
    return sorted(samples)[len(samples) // 2]
