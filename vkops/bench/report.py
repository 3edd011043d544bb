"""Results as a table or as JSON."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from statistics import geometric_mean
from typing import Any

from rich import box
from rich.table import Table

from vkops.bench.measure import Result
from vkops.gpu.adapter import DeviceInfo

_COLUMNS = {"MiB": 5, "ms": 7, "GB/s": 5, "NumPy": 6, "memcpy": 6, "copy": 6, "e2e": 6}


def table(info: DeviceInfo, results: Sequence[Result]) -> Table:
    """Milliseconds, and how many times faster vkops is than each contender."""
    made = Table(
        title=f"{info.name} ({info.driver})",
        caption="x: how many times faster than it vkops is, resident; e2e: NumPy to NumPy",
        caption_justify="left",
        box=box.SIMPLE_HEAD,
        pad_edge=False,
        padding=(0, 1, 0, 0),
    )
    made.add_column("", no_wrap=True, min_width=3)
    # Where the terminal is narrow, this column gives way to the figures.
    made.add_column("")
    for heading, width in _COLUMNS.items():
        made.add_column(heading, justify="right", no_wrap=True, min_width=width)
    for r in results:
        made.add_row(
            r.work,
            r.what,
            f"{r.nbytes / 2**20:.1f}",
            f"{r.vkops * 1e3:.3f}",
            f"{2 * r.nbytes / r.vkops / 1e9:.2f}",
            *(f"{r.ratio(against=name):.2f}x" for name in ("numpy", "memcpy", "buffer_copy")),
            f"{r.ratio('end_to_end'):.2f}x",
        )
    if len(results) > 1:
        made.add_section()
        made.add_row(
            "",
            "geometric mean",
            "",
            "",
            "",
            *(
                f"{geometric_mean(r.ratio(against=name) for r in results):.2f}x"
                for name in ("numpy", "memcpy", "buffer_copy")
            ),
            f"{geometric_mean(r.ratio('end_to_end') for r in results):.2f}x",
        )
    return made


def json_ready(info: DeviceInfo, results: Sequence[Result]) -> dict[str, Any]:
    """The same as plain data: seconds and bytes."""
    return {"device": asdict(info), "results": [asdict(r) for r in results]}
