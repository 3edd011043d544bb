"""The table of the memory traffic of plans, and sentences about what is wasteful."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from vkops import console
from vkops.debug.traffic import SEGMENTS, SUBGROUPS, PartTraffic, Totals, plan_traffic
from vkops.explain.explanation import TUNINGS, MovementInfo
from vkops.explain.tables import size_text
from vkops.gpu.kernels.layout import LINE
from vkops.plan.rounding import ceil_div

TOLERATED = 1.15
"""The traffic, divided by the bytes that must move, up to which nothing is wasteful."""

MAX_RATIO = 999
"""The largest ratio that is printed."""

MIN_BYTES = 16 << 10
"""The traffic from which it is worth a sentence."""


def table(parts: Iterable[tuple[str, PartTraffic]]) -> Table:
    """Return a table of the traffic of kernels; ``parts`` have a label each."""
    segments = "/".join(map(str, SEGMENTS))
    columns = (f"{size} invocations:\n{segments} bytes" for size in SUBGROUPS)
    rows = []
    for label, part in parts:
        several = f", {part.dispatches} dispatches" if part.dispatches > 1 else ""
        names = (label, f"{part.kernel}{several}") if label else (f"{part.kernel}{several}", "")
        for name, (verb, totals, must) in zip(names, _loads_and_stores(part), strict=True):
            touched = [
                "/".join([ratio_text(totals.segments[size, segment], must) for segment in SEGMENTS])
                for size in SUBGROUPS
            ]
            memory = ratio_text(totals.memory, must)
            rows.append([name, f"{verb}s", size_text(must), *touched, memory])
    return console.figures(("Kernel", ""), ("Must move", *columns, "Memory"), rows, gap=2)


def ratio_text(nbytes: float, must: int) -> str:
    """Format the traffic divided by the bytes that must move.

    >>> ratio_text(3 << 20, 1 << 20), ratio_text(2 << 20, 1), ratio_text(0, 0)
    ('3.00', '>999', '0.00')
    """
    if nbytes > MAX_RATIO * must:
        return f">{MAX_RATIO}"
    ratio = nbytes / (must or 1)
    return f"{ratio:.2f}" if ratio < 10 else f"{ratio:.1f}" if ratio < 100 else f"{ratio:.0f}"


def render(movement: MovementInfo, cache: int) -> Iterator[RenderableType]:
    """Return the table of the kernels of a plan, and the sentences about them."""
    parts = plan_traffic(movement.plan, TUNINGS["GPU"], cache=cache)
    if not parts:
        yield Text("Traffic: not counted; no shader runs, or the tensors have more than 2 GiB")
        return
    yield Text(
        "Traffic on a GPU: bytes of the segments that accesses of subgroups touch, divided by the "
        "bytes that must move"
    )
    yield table([("", part) for part in parts])
    for part in parts:
        if part.traffic.is_estimate:
            yield Text(f"{part.kernel}: estimated from a part of the workgroups")
        for sentence in wasteful(part):
            yield Text(f"{part.kernel}: {sentence}")


def wasteful(part: PartTraffic) -> Iterator[str]:
    """Say in sentences why accesses of 64 invocations move more than must be moved."""
    size = SUBGROUPS[-1]
    for verb, totals, must in _loads_and_stores(part):
        moved = totals.segments[size, LINE]
        if moved <= TOLERATED * must or moved < MIN_BYTES:
            continue
        touched = moved / LINE / totals.count
        needed = ceil_div(round(totals.requested / totals.count), LINE)
        if touched > TOLERATED * needed:
            yield (
                f"each {verb} of {totals.active / totals.count:.0f} invocations touches "
                f"{touched:.1f} segments of {LINE} bytes, and {needed} would hold its bytes: "
                f"{_neighbours(verb, totals)}"
            )
        if must and totals.requested > TOLERATED * must:
            yield f"{verb}s access each byte {totals.requested / must:.1f} times"
        if totals.active < size / 2 * totals.count:
            average = totals.active / totals.count
            yield f"on average, {average:.1f} of {size} invocations take part in a {verb}"


def _neighbours(verb: str, totals: Totals) -> str:
    """Describe how far apart the addresses of neighbouring invocations are."""
    verb = {"load": "read", "store": "write"}[verb]
    if totals.distances:
        (distance, count), *_ = totals.distances.most_common(1)
        if 2 * count > totals.distances.total():
            return f"neighbouring invocations {verb} {abs(distance):,} bytes apart"
    return f"neighbouring invocations {verb} at irregular distances"


def _loads_and_stores(part: PartTraffic) -> tuple[tuple[str, Totals, int], ...]:
    return (
        ("load", part.traffic.loads, part.must_load),
        ("store", part.traffic.stores, part.must_store),
    )
