"""``vkops run``, ``check`` and ``explain``: DxDispatch and ONNX models."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import fields
from functools import partial
from pathlib import Path
from typing import Any

import click

import vkops
from vkops.cli import options
from vkops.cli.options import MAX_INT
from vkops.errors import ModelError, printable


def _ignored(*names: str, **settings: Any) -> Any:
    """Return an option of DxDispatch that only Direct3D 12 or ONNX Runtime needs."""
    return click.option(*names, hidden=True, expose_value=False, **settings)


_IGNORED_FLAGS = """
    disable_custom_heaps clear_shader_caches disable_gpu_timeout enable_dred
    disable_background_processing set_stable_power_state disable_agility_sdk xbox_allow_precompile
    present_separator print_hlsl_disassembly enable_onnx_profiling
"""
_IGNORED = (
    _ignored("-q", "--queue_type", type=click.Choice(["direct", "compute"])),
    _ignored("-c", "--pix_capture_type"),
    _ignored("-o", "--pix_capture_name"),
    _ignored("-e", "--onnx_session_config_entry", multiple=True),
    _ignored("-l", "--onnx_graph_optimization_level", type=int),
    _ignored("-L", "--onnx_logging_level", type=int),
    _ignored("-x", "--enable_ort_extensions", is_flag=True),
    *(_ignored(f"--{name}", is_flag=True) for name in _IGNORED_FLAGS.split()),
)


@click.command()
@click.argument("model", required=False, type=click.Path())
@click.option(
    "-m", "--model", "model_option", type=click.Path(), metavar="MODEL", help="The same as MODEL."
)
@options.adapter
@options.expect
@options.flag("-s", "--show_adapters", help="List the adapters.")
@options.flag("-S", "--show_dependencies", help="List the versions of packages.")
@options.debug
@options.iterations
@options.number(
    "-r", "--dispatch_repeat", minimum=1, default=1, help="Dispatches in each iteration."
)
@options.number(
    "-t",
    "--milliseconds_to_run",
    maximum=MAX_INT,
    help="Dispatch for this many milliseconds; -i has no effect then.",
)
@options.number(
    "-I",
    "--dispatch_interval",
    maximum=MAX_INT,
    default=0,
    help="Minimum milliseconds for each iteration.",
)
@options.number(
    "-w", "--warmup_samples", default=1, help="First iterations that medians leave out."
)
@options.number(
    "-v", "--timing_verbosity", maximum=2, default=0, help="How much to print about times."
)
@options.flag("--profile", help="Print how long each kernel, copy and call takes.")
@options.file("--timeline", help="Write these times to a file that ui.perfetto.dev opens.")
@options.flag("--print_commands", help="Print when each command starts and ends.")
@options.input_path
@options.output_path
@options.allow_paths
@options.strict
@options.level
@click.option(
    "--indices",
    type=click.Choice(["vkops", "directml"]),
    default="vkops",
    help="The rule of indices that are out of range: directml has DirectML's results.",
)
@options.overrides
@options.flag("-p", "--print_onnx_bindings", help="Print what ONNX tensors are bound to.")
@options.flat
@options.texts(
    "--input",
    metavar="[NAME:]FILE",
    help="Read inputs of a .onnx model from .npy or .npz files; the others are zeros.",
)
@options.flag(
    "--random",
    help="Use random values for other inputs; valid ones for indices, sizes, axes and repeats.",
)
@options.number("--seed", default=0, help="Seed of --random.")
@options.texts(
    "--output",
    metavar="[NAME:]FILE",
    help="Write an output of a .onnx model to a .npy file, or all to a .npz file.",
)
@click.option(
    "--post_dispatch_barriers",
    type=click.Choice(["none", "uav", "uav+aliasing"]),
    expose_value=False,
    help="No effect: dispatches run one after the other.",
)
@options.number(
    "--max_gpu_time_measurements",
    default=8192,
    help="Keep this many of the latest times that the device measures; 0 disables them.",
)
@options.all_of(*_IGNORED)
@click.pass_context
def run(
    context: click.Context,
    /,
    *,
    model: str | None,
    model_option: str | None,
    show_adapters: bool,
    show_dependencies: bool,
    profile: bool,
    timeline: Path | None,
    **arguments: Any,
) -> None:
    """Run a DxDispatch or ONNX model.

    MODEL is a DxDispatch model (.json), or an ONNX model (.onnx) whose operators only move data.
    """
    from vkops import console
    from vkops.cli import device_commands
    from vkops.debug import dispatch_hooks
    from vkops.runner.dispatch_timing import RunOptions
    from vkops.runner.model_files import FileOptions, ModelFile, run_model

    if show_dependencies:
        for line in device_commands.dependency_lines():
            click.echo(line)
    if show_adapters:
        for info in vkops.devices():
            click.echo(device_commands.adapter_block(info))
    path = model if model_option is None else model_option
    if path is None:
        if not (show_dependencies or show_adapters):
            click.echo(context.get_help())
        return
    file, files, measured = (
        {field.name: arguments.pop(field.name) for field in fields(cls) if field.name in arguments}
        for cls in (ModelFile, FileOptions, RunOptions)
    )
    times = vkops.profile() if profile or timeline else None
    with dispatch_hooks.from_environment() as around_dispatch, times or nullcontext():
        run_options = RunOptions(**measured, around_dispatch=around_dispatch)
        run_model(ModelFile(path, **file), run_options, FileOptions(**files), **arguments)
    if times and profile:
        console.lines("", str(times))
    if times and timeline:
        times.save(timeline)
        click.echo(printable(f"Timeline written to '{timeline}'"))


@click.command()
@options.model
@options.level
@options.input_path
@options.allow_paths
@options.strict
@options.overrides
def check(model: str, **arguments: Any) -> None:
    """Check a model without a device.

    It prints the feature level that each operator of a DxDispatch model (.json) needs, or the nodes
    of an ONNX model (.onnx) that cannot run, or its plan.
    """
    from vkops.runner.model_files import ModelFile, check_model

    check_model(ModelFile(model, **arguments))


@click.command()
@options.model
@options.file("--html", help="Write a page that draws where data moves.")
@options.flag("--traffic", help="Count the memory traffic on a GPU.")
@options.cache
@options.level
@options.input_path
@options.allow_paths
@options.overrides
def explain(model: str, html: Path | None, traffic: bool, cache: int, **arguments: Any) -> None:
    """Explain what a model does, without a device.

    It prints tensors, rules, plans and kernels. MODEL is a DxDispatch model (.json), or an ONNX
    model (.onnx), of which each node is explained.
    """
    from vkops import explain as explanations
    from vkops.console import show
    from vkops.explain import traffic as memory_traffic

    explanation = explanations.explain(model, **arguments)
    if traffic:
        show(*explanations.render(explanation, partial(memory_traffic.render, cache=cache << 10)))
    else:
        show(*explanations.render(explanation))
    if explanation.refusal:
        raise ModelError(explanation.refusal)
    if html is not None:
        explanations.write_page(explanation, html)
        click.echo(printable(f"Page written to '{html}'"))
