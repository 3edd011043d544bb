"""``vkops bench``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

import vkops
from vkops.cli import options


def bench(
    works: Annotated[
        list[str] | None, typer.Argument(metavar="[WORK]...", help="W1 to W18; default: all.")
    ] = None,
    adapter: options.Adapter = "",
    expect: options.Expect = None,
    scale: Annotated[
        int, typer.Option("--scale", min=1, help="Multiply the first dimension of all inputs.")
    ] = 1,
    rounds: Annotated[int, typer.Option("--rounds", min=1, help="Times each is measured.")] = 9,
    peers: Annotated[
        bool, typer.Option("--peers", help="Against all other libraries installed, too.")
    ] = False,
    peer: Annotated[
        list[str] | None,
        typer.Option("--peer", help="Against this one: torch, onnxruntime, wgpu or ncnn."),
    ] = None,
    plot: Annotated[
        Path | None, typer.Option("--plot", metavar="FILE", help="Plot GB/s: a .png or .svg.")
    ] = None,
    from_: Annotated[
        Path | None,
        typer.Option("--from", metavar="FILE", help="Show what --json saved; measure nothing."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="For programs to read.")] = False,
) -> None:
    """Time data movement against NumPy, memcpy, Kompute's buffer copy, and other libraries."""
    from rich.console import Console
    from rich.progress import track

    from vkops import bench as benchmark
    from vkops.bench import peers as libraries
    from vkops.bench import plot as plots

    by_name = {work.name: work for work in benchmark.WORKS}
    for name in works or ():
        options.one_of("WORK", name, *by_name)
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
        chosen = [by_name[name] for name in works or by_name]
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
