"""Results as a table or as JSON."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from statistics import geometric_mean
from typing import Any

from rich.table import Table

from vkops.bench.measure import Result
from vkops.gpu.adapter import DeviceInfo


def table(info: DeviceInfo, results: Sequence[Result]) -> Table:
    """Milliseconds, and how many times faster vkops is than each contender."""
    made = Table(
        title=f"{info.name} ({info.driver})",
        caption="x: how many times faster than it vkops is, resident; end to end against NumPy",
        caption_justify="left",
    )
    made.add_column("Work")
    made.add_column("")
    for heading in ("MiB", "vkops ms", "GB/s", "NumPy", "memcpy", "copy", "end to end"):
        made.add_column(heading, justify="right")
    for r in results:
        made.add_row(
            r.work,
            r.what,
            f"{r.nbytes / 2**20:.3g}",
            f"{r.vkops * 1e3:.3f}",
            f"{2 * r.nbytes / r.vkops / 1e9:.3g}",
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
