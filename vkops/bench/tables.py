"""A report as tables."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import geometric_mean

from rich import box
from rich.table import Table

from vkops.bench.measure import Result
from vkops.bench.report import Report

_COLUMNS = {"MiB": 5, "ms": 7, "GB/s": 5, "NumPy": 6, "memcpy": 6, "copy": 6, "e2e": 6}
_AGAINST = ("numpy", "memcpy", "buffer_copy")


def tables(report: Report) -> list[Table]:
    """Milliseconds and how many times faster vkops is than each contender; peers by themselves."""
    return [_table(report), *([_peer_table(report)] if report.peers else [])]


def _table(report: Report) -> Table:
    results = report.results
    made = _empty(
        f"{report.device.name} ({report.device.driver})",
        "x: how many times faster than it vkops is, resident; e2e: NumPy to NumPy",
    )
    for heading, width in _COLUMNS.items():
        made.add_column(heading, justify="right", no_wrap=True, min_width=width)
    for r in results:
        made.add_row(
            r.work,
            r.what,
            f"{r.nbytes / 2**20:.1f}",
            f"{r.seconds['vkops'] * 1e3:.3f}",
            f"{r.gigabytes('vkops'):.2f}",
            *(_times([r], against=name) for name in _AGAINST),
            _times([r], "end_to_end"),
        )
    if len(results) > 1:
        made.add_section()
        means = [_times(results, against=name) for name in _AGAINST]
        made.add_row("", "geometric mean", "", "", "", *means, _times(results, "end_to_end"))
    return made


def _peer_table(report: Report) -> Table:
    made = _empty(
        "vkops against other libraries",
        "x: how many times faster than it vkops is, data resident in both; "
        "empty: it cannot do the work",
    )
    made.add_column("ms", justify="right", no_wrap=True, min_width=_COLUMNS["ms"])
    for label in report.peers.values():
        made.add_column(label, justify="right", min_width=7)
    for r in report.results:
        ratios = (_times([r], against=name) for name in report.peers)
        made.add_row(r.work, r.what, f"{r.seconds['vkops'] * 1e3:.3f}", *ratios)
    if len(report.results) > 1:
        made.add_section()
        means = (_times(report.results, against=name) for name in report.peers)
        made.add_row("", "geometric mean", "", *means)
    return made


def _empty(title: str, caption: str) -> Table:
    made = Table(
        title=title,
        caption=caption,
        caption_justify="left",
        box=box.SIMPLE_HEAD,
        pad_edge=False,
        padding=(0, 1, 0, 0),
    )
    made.add_column("", no_wrap=True, min_width=3)
    # Where the terminal is narrow, this column gives way to the figures.
    made.add_column("")
    return made


def _times(results: Sequence[Result], contender: str = "vkops", against: str = "numpy") -> str:
    """The ratio, or the geometric mean of those works that both can do."""
    ratios = [r.ratio(contender, against) for r in results if against in r.seconds]
    return f"{geometric_mean(ratios):.2f}x" if ratios else ""
