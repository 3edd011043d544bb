"""``vkops bench``."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

import vkops
from vkops.cli import options
from vkops.errors import MissingPackageError

if TYPE_CHECKING:
    from vkops.bench import Report, Workload


@click.command()
@click.argument("workloads", nargs=-1, metavar="[WORKLOAD]...")
@options.adapter
@options.expect
@options.number(
    "--scale", minimum=1, default=1, help="Factor of the first dimension of all inputs."
)
@options.number("--rounds", minimum=1, default=9, help="How often each workload is measured.")
@options.flag(
    "--peers", help="Also measure all other libraries that are installed (scripts/bench only)."
)
@options.texts("--peer", metavar="NAME", help="Also measure torch, onnxruntime, wgpu or ncnn.")
@options.file("--plot", help="Draw the results in a .png or .svg file.")
@options.file("--from", "from_", help="Show a file of --json instead of measuring.")
@options.flag("--traffic", help="Count the memory traffic on a GPU instead of measuring.")
@options.cache
@options.as_json
def bench(
    workloads: options.Texts,
    adapter: str,
    expect: str | None,
    scale: int,
    rounds: int,
    peers: bool,
    peer: options.Texts,
    plot: Path | None,
    from_: Path | None,
    traffic: bool,
    cache: int,
    as_json: bool,
) -> None:
    """Time data movement against NumPy and other libraries.

    The others are memcpy, Kompute's buffer copy, and with `scripts/bench --peers` PyTorch, ONNX
    Runtime, wgpu and ncnn. WORKLOAD is one of W1 to W27; without it, all are measured. With
    `--traffic`, it can also be sum, cumsum, sort, bincount or histogram, which a device runs.
    """
    from rich.console import Console

    from vkops import bench as benchmark
    from vkops.bench import plot as plots

    by_name = {workload.name: workload for workload in benchmark.WORKLOADS}
    if traffic:
        how = {"scale": scale, "cache": cache << 10}
        _show_traffic(workloads, by_name, adapter or None, expect, as_json, how)
        return
    for name in workloads:
        options.one_of("WORKLOAD", name, *by_name)
    chosen = [by_name[name] for name in workloads or by_name]
    libraries: Any = _peers() if peers or peer else None
    for name in peer:
        options.one_of("--peer", name, *libraries.PEERS)
        libraries.require(name)
    if peers and not libraries.installed():
        click.echo("No peers are installed: pip install 'vkops[peers]'", err=True)
    if plot is not None:
        plots.check(plot)
    if from_ is not None:
        report = benchmark.read(from_)
    else:
        names = libraries.installed() if peers else dict.fromkeys(peer)
        with vkops.Device(adapter or None, expect=expect) as device:
            loaded = {name: libraries.load(name, device.info) for name in names}
            report = _measured(device, chosen, loaded, scale=scale, rounds=rounds)
    if plot is not None:
        plots.plot(report, plot)
    if as_json:
        click.echo(json.dumps(report.json_ready(), indent=2))
    else:
        for table in benchmark.tables(report):
            Console().print(table)


def _measured(
    device: vkops.Device, workloads: Sequence[Workload], peers: Mapping[str, Any], **how: int
) -> Report:
    """Measure workloads, with a bar that shows how many are left."""
    from rich.console import Console
    from rich.progress import track

    from vkops import bench as benchmark

    measured = benchmark.measure(device, workloads, peers, **how)
    bar: Any = {"total": len(workloads), "console": Console(stderr=True), "transient": True}
    results = list(track(measured, description=device.name, **bar))
    return benchmark.made_from(device.info, results, peers, **how)


def _show_traffic(
    names: Sequence[str],
    workloads: Mapping[str, Workload],
    adapter: str | None,
    expect: str | None,
    as_json: bool,
    how: Mapping[str, int],
) -> None:
    from vkops import console
    from vkops.bench import traffic
    from vkops.explain.traffic import table

    known = [*workloads, *traffic.KERNELS]
    for name in names:
        options.one_of("WORKLOAD", name, *known)
    chosen = names or known
    others = []
    if calls := [name for name in chosen if name in traffic.KERNELS]:
        with vkops.Device(adapter, expect=expect) as device:
            others = [*traffic.count_kernels(calls, device, **how)]
    counts = traffic.count([workloads[name] for name in chosen if name in workloads], **how)
    counted = [*counts, *others]
    if as_json:
        click.echo(json.dumps(traffic.json_ready(counted), indent=2))
    else:
        console.show(table([(name, part) for name, parts in counted for part in parts]))


def _peers() -> Any:
    """Return the package of the peers, which is not installed with vkops: scripts/bench has it."""
    try:
        return import_module("bench_peers")
    except ImportError as error:
        message = "--peers: only scripts/bench, in a checkout of vkops, measures peers"
        raise MissingPackageError(message, name="bench_peers") from error
