"""``vkops bench`` with other libraries, plots, and reports that were saved."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click
from rich.console import Console

import vkops
from benchmarks import peers as libraries
from benchmarks import plot as plots
from vkops.bench import Report, Result, times
from vkops.bench.report import table
from vkops.cli import bench_commands, options
from vkops.errors import VkopsError


class _Script(click.Command):
    """A command of a script of its own."""

    def format_usage(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        formatter.write_usage("scripts/bench", " ".join(self.collect_usage_pieces(ctx)))


@click.command(cls=_Script, params=[*bench_commands.bench.params])
@options.flag("--peers", help="Also measure all other libraries that are installed.")
@options.texts("--peer", metavar="NAME", help="Also measure torch, onnxruntime, wgpu or ncnn.")
@options.file("--plot", help="Draw the results in a .png or .svg file.")
@options.file("--from", "from_", help="Show a file of --json instead of measuring.")
def bench(
    peers: bool, peer: options.OptionValues, plot: Path | None, from_: Path | None, **arguments: Any
) -> None:
    """Time data movement against NumPy, PyTorch, ONNX Runtime, wgpu and ncnn.

    All that `vkops bench` does, and more.
    """
    if arguments["traffic"] or not (peers or peer or plot or from_):
        assert bench_commands.bench.callback is not None
        bench_commands.bench.callback(**arguments)
        return
    chosen = bench_commands.chosen(arguments["workloads"])
    for name in peer:
        options.one_of("--peer", name, *libraries.PEERS)
        libraries.require(name)
    if peers and not libraries.installed():
        click.echo("No peers are installed: pip install 'vkops[peers]'", err=True)
    if plot is not None:
        plots.check(plot)
    if from_ is not None:
        report = read(from_)
    else:
        names = libraries.installed() if peers else dict.fromkeys(peer)
        adapter, expect = arguments["adapter"] or None, arguments["expect"]
        with vkops.Device(adapter, expect=expect) as device:
            loaded = {name: libraries.load(name, device.info) for name in names}
            report = bench_commands.measured(
                device,
                chosen,
                {name: each.prepare for name, each in loaded.items()},
                {name: (each.label, each.version) for name, each in loaded.items()},
                scale=arguments["scale"],
                rounds=arguments["rounds"],
            )
    if plot is not None:
        plots.plot(report, plot)
    if arguments["as_json"]:
        click.echo(json.dumps(report.json_ready(), indent=2))
    else:
        for each in tables(report):
            Console().print(each)


def read(path: Path) -> Report:
    """Read a report that was saved as JSON.

    Raises:
        VkopsError: the file does not hold a report.
        OSError: it cannot be read.
    """
    try:
        data = json.loads(path.read_bytes())
        return Report(results=[_result(**result) for result in data.pop("results")], **data)
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise VkopsError(f"{path}: not a report of `vkops bench --json`: {error}") from error


def _result(*, seconds: Mapping[str, float], **more: Any) -> Result:
    return Result(seconds={name: float(value) for name, value in seconds.items()}, **more)


def tables(report: Report) -> list[Any]:
    """Return tables of milliseconds and ratios; the ratios to peers have a table of their own."""
    result = [times(report)]
    if report.peers:
        empty = "Empty: the library cannot execute the workload"
        columns = {"ms": 7, **dict.fromkeys(report.peers.values(), 7)}
        pairs = [("vkops", name) for name in report.peers]
        title = "vkops against other libraries"
        result.append(table(title, empty, columns, report.results, pairs))
    return result
