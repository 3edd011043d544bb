"""Times of a dispatch and the lines that report them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence


def report(
    name: str, samples: Sequence[float], warmup_samples: int, verbosity: int
) -> Iterator[str]:
    """Yield the lines about a dispatch.

    Args:
        name: of the dispatchable.
        samples: milliseconds per iteration, the first ones being cold.
        warmup_samples: how many samples count as cold at most; one at least is hot.
        verbosity: 0, one line; 1, statistics too; 2, every iteration too.
    """
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
