"""A report of measurements: device, date, versions and results; as JSON and as tables."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import date
from importlib import metadata
from statistics import geometric_mean
from typing import Any

from rich import box
from rich.table import Table

from vkops.bench.measure import Result
from vkops.gpu.adapters.adapter import DeviceInfo

LABELS = {"vkops": "vkops", "numpy": "NumPy", "memcpy": "memcpy", "buffer_copy": "Kompute copy"}
"""Labels of the contenders that are always measured; the last two are plain copies."""

_PAIRS = (
    *(("vkops", name) for name in ("numpy", "numpy_into", "memcpy", "buffer_copy")),
    ("end_to_end", "numpy"),
)
_RATIOS = "Ratios: time of the other divided by time of vkops; above 1, vkops is faster"


@dataclass(frozen=True)
class RunReport:
    """The results of one run."""

    device: str
    """The adapter's name."""
    driver: str
    date: str
    """ISO 8601."""
    processors: int
    versions: Mapping[str, str]
    """The versions of the packages that were measured, by name."""
    peers: Mapping[str, str]
    """The labels of the peers, by name."""
    scale: int
    rounds: int
    results: Sequence[Result]

    def json_ready(self) -> dict[str, Any]:
        """Return the report as plain data for JSON, in seconds and bytes."""
        return asdict(self)


def made_from(
    device: DeviceInfo,
    results: Sequence[Result],
    peers: Mapping[str, tuple[str, str]] | None = None,
    *,
    scale: int = 1,
    rounds: int = 9,
) -> RunReport:
    """Make the report of results that were just measured on this machine.

    ``peers`` are the label and the version of each library, by name.
    """
    peers = peers or {}
    return RunReport(
        device=device.name,
        driver=device.driver,
        date=date.today().isoformat(),
        processors=os.cpu_count() or 1,
        versions={
            **{name: metadata.version(name) for name in ("vkops", "kp", "numpy")},
            **{name: version for name, (_, version) in peers.items()},
        },
        peers={name: label for name, (label, _) in peers.items()},
        scale=scale,
        rounds=rounds,
        results=results,
    )


# -- tables ---------------------------------------------------------------------------------------


def times(report: RunReport) -> Table:
    """Return the table of milliseconds, and of ratios to what is always measured."""
    explained = (
        "NumPy: makes new arrays; into: NumPy, into arrays that exist; "
        "e2e: from NumPy to NumPy, compared with NumPy"
    )
    widths = {"NumPy": 6, "into": 6, "memcpy": 6, "copy": 6, "e2e": 6}
    title = f"{report.device} ({report.driver})"
    return table(title, explained, {"MiB": 5, "ms": 7, **widths}, report.results, _PAIRS)


def table(
    title: str,
    caption: str,
    columns: Mapping[str, int],
    results: Sequence[Result],
    pairs: Sequence[tuple[str, str]],
) -> Table:
    """Make a table of results and of their means; ``columns`` are headings with least widths."""
    grid = Table(
        title=title,
        caption=f"{_RATIOS}. {caption}",
        caption_justify="left",
        box=box.SIMPLE_HEAD,
        pad_edge=False,
        padding=(0, 1, 0, 0),
    )
    grid.add_column("", no_wrap=True, min_width=3)
    grid.add_column("")  # where the terminal is narrow, this column is wrapped
    for heading, width in columns.items():
        grid.add_column(heading, justify="right", no_wrap=len(heading) <= width, min_width=width)
    for r in results:
        size = [f"{r.nbytes / 2**20:.1f}"] * ("MiB" in columns)
        grid.add_row(r.work, r.what, *size, f"{r.seconds['vkops'] * 1e3:.3f}", *_ratios([r], pairs))
    if len(results) > 1:
        grid.add_section()
        empty = [""] * (1 + ("MiB" in columns))
        grid.add_row("", "geometric mean", *empty, *_ratios(results, pairs))
    return grid


def _ratios(results: Sequence[Result], pairs: Sequence[tuple[str, str]]) -> Iterator[str]:
    """Format the ratios of pairs, or geometric means for the workloads that both can execute."""
    for contender, against in pairs:
        ratios = [r.ratio(contender, against) for r in results if against in r.seconds]
        yield f"{geometric_mean(ratios):.2f}x" if ratios else ""
