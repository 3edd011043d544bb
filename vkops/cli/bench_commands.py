"""``vkops bench``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer
from typer import Argument, Option

import vkops
from vkops.cli import options


def bench(
    workloads: Annotated[
        options.Texts,
        Argument(metavar="[WORKLOAD]...", help="Workloads, W1 to W27; all by default."),
    ] = None,
    adapter: options.Adapter = "",
    expect: options.Expect = None,
    scale: Annotated[int, Option(min=1, help="Factor of the first dimension of all inputs.")] = 1,
    rounds: Annotated[int, Option(min=1, help="How often each workload is measured.")] = 9,
    peers: Annotated[bool, Option("--peers", help="Also measure all installed peers.")] = False,
    peer: Annotated[
        options.Texts, Option(help="Also measure torch, onnxruntime, wgpu or ncnn.")
    ] = None,
    plot: Annotated[
        Path | None, Option(metavar="FILE", help="Plot GB/s to a .png or .svg file.")
    ] = None,
    from_: Annotated[
        Path | None,
        Option("--from", metavar="FILE", help="Show a file of --json instead of measuring."),
    ] = None,
    as_json: Annotated[bool, Option("--json", help="Print JSON for programs.")] = False,
) -> None:
    """Time data movement against NumPy, memcpy, Kompute's buffer copy, and other libraries."""
    from rich.console import Console
    from rich.progress import track

    from vkops import bench as benchmark
    from vkops.bench import peers as libraries
    from vkops.bench import plot as plots

    by_name = {workload.name: workload for workload in benchmark.WORKLOADS}
    for name in workloads or ():
        options.one_of("WORKLOAD", name, *by_name)
    for name in peer or ():
        options.one_of("--peer", name, *libraries.PEERS)
        libraries.require(name)
    if peers and not libraries.installed():
        typer.echo("No peers are installed: pip install 'vkops[peers]'", err=True)
    if plot is not None:
        plots.check(plot)
    if from_ is not None:
        report = benchmark.read(from_)
    else:
        chosen = [by_name[name] for name in workloads or by_name]
        with vkops.Device(adapter or None, expect=expect) as device:
            loaded = {
                name: libraries.load(name, device.info)
                for name in (libraries.installed() if peers else dict.fromkeys(peer or ()))
            }
            results = list(
                track(
                    benchmark.measure(device, chosen, loaded, scale=scale, rounds=rounds),
                    description=device.name,
                    total=len(chosen),
                    console=Console(stderr=True),
                    transient=True,
                )
            )
        report = benchmark.made_from(device.info, results, loaded, scale=scale, rounds=rounds)
    if plot is not None:
        plots.plot(report, plot)
    if as_json:
        typer.echo(json.dumps(report.json_ready(), indent=2))
    else:
        for table in benchmark.tables(report):
            Console().print(table)
