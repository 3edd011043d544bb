"""``vkops bench``."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click

import vkops
from vkops.cli import options

if TYPE_CHECKING:
    from vkops.bench import Report, Workload
    from vkops.bench.measure import Prepare


@click.command()
@click.argument("workloads", nargs=-1, metavar="[WORKLOAD]...")
@options.adapter
@options.expect
@options.number(
    "--scale", minimum=1, default=1, help="Factor of the first dimension of all inputs."
)
@options.number("--rounds", minimum=1, default=9, help="How often each workload is measured.")
@options.flag(
    "--traffic", help="Count memory traffic and operations on a GPU instead of measuring."
)
@options.cache
@options.as_json
def bench(
    workloads: options.OptionValues,
    adapter: str,
    expect: str | None,
    scale: int,
    rounds: int,
    traffic: bool,
    cache: int,
    as_json: bool,
) -> None:
    """Time data movement against NumPy and plain copies.

    The copies are memcpy and Kompute's buffer copy; `scripts/bench`, in a checkout of vkops, also
    measures other libraries. WORKLOAD is one of W1 to W27; without it, all are measured. With
    `--traffic`, it can also be sum, cumsum, sort, bincount or histogram, which a device runs.
    """
    from rich.console import Console

    from vkops import bench as benchmark

    if traffic:
        how = {"scale": scale, "cache": cache << 10}
        _show_traffic(workloads, adapter or None, expect, as_json, how)
        return
    listed = chosen(workloads)
    with vkops.Device(adapter or None, expect=expect) as device:
        report = measured(device, listed, scale=scale, rounds=rounds)
    if as_json:
        click.echo(json.dumps(report.json_ready(), indent=2))
    else:
        Console().print(benchmark.times(report))


def chosen(names: Sequence[str], *others: str) -> list[Workload]:
    """Return the workloads of these names, of which ``others`` are none; all without names."""
    from vkops.bench import WORKLOADS

    by_name = {workload.name: workload for workload in WORKLOADS}
    for name in names:
        options.one_of("WORKLOAD", name, *by_name, *others)
    return [by_name[name] for name in names or by_name if name in by_name]


def measured(
    device: vkops.Device,
    workloads: Sequence[Workload],
    prepare: Mapping[str, Prepare] | None = None,
    peers: Mapping[str, tuple[str, str]] | None = None,
    **how: int,
) -> Report:
    """Measure workloads, with a bar that shows how many are left.

    Other libraries ``prepare`` workloads; ``peers`` are those of ``made_from``.
    """
    from rich.console import Console
    from rich.progress import track

    from vkops import bench as benchmark

    results = benchmark.measure(device, workloads, prepare, **how)
    bar: Any = {"total": len(workloads), "console": Console(stderr=True), "transient": True}
    listed = list(track(results, description=device.name, **bar))
    return benchmark.made_from(device.info, listed, peers, **how)


def _show_traffic(
    names: Sequence[str],
    adapter: str | None,
    expect: str | None,
    as_json: bool,
    how: Mapping[str, int],
) -> None:
    from vkops import console
    from vkops.bench import traffic
    from vkops.explain.traffic import table

    workloads, others = chosen(names, *traffic.KERNELS), []
    if calls := [name for name in names or traffic.KERNELS if name in traffic.KERNELS]:
        with vkops.Device(adapter, expect=expect) as device:
            others = [*traffic.count_kernels(calls, device, **how)]
    counts = traffic.count(workloads, **how)
    counted = [*counts, *others]
    if as_json:
        click.echo(json.dumps(traffic.json_ready(counted), indent=2))
    else:
        console.show(table([(name, part) for name, parts in counted for part in parts]))
        console.show(traffic.work_table(counted))
