"""The command line: ``vkops run``, ``check``, ``explain``, ``devices`` and ``bench``.

Everything heavy is imported by the command that needs it: help, and checking a model, work on a
machine without Vulkan.
"""

from __future__ import annotations

import io
import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

import vkops
from vkops.errors import DeviceError, ModelError, VkopsError

if TYPE_CHECKING:
    from vkops.dml import FeatureLevel

# DxDispatch spells its options with underscores; hyphens do as well.
_SETTINGS = {
    "help_option_names": ["-h", "--help"],
    "token_normalize_func": lambda token: token.replace("-", "_"),
}
# ClickException: typer's own or click's, as its version has it.
_UsageError: type[Exception] = next(
    base for base in typer.BadParameter.__mro__ if base.__name__ == "ClickException"
)

app = typer.Typer(
    add_completion=False,
    context_settings=_SETTINGS,
    help="DirectML's data-movement operators on any Vulkan device.",
    pretty_exceptions_enable=False,
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return the exit status; errors are one line on standard error.

    Status 0: done. 1: a model, device or file is at fault. 2: the arguments are. 130: interrupted.
    """
    # A process can be started without them; then nobody reads what it says.
    sys.stdout = sys.stdout or open(os.devnull, "w")  # noqa: SIM115
    sys.stderr = sys.stderr or open(os.devnull, "w")  # noqa: SIM115
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    try:
        command = typer.main.get_command(app)
        arguments = sys.argv[1:] if arguments is None else arguments
        with command.make_context("vkops", list(arguments)) as context:
            command.invoke(context)
        sys.stdout.flush()
    except typer.Exit as exit_:
        return exit_.exit_code
    except _UsageError as error:
        reason = error.format_message()  # type: ignore[attr-defined]
        return _fail(f"Failed to parse command-line arguments: {reason}", 2)
    except BrokenPipeError:
        return _fail("Standard output was closed", 1)
    except (VkopsError, OSError) as error:
        return _fail(str(error), 1)
    except MemoryError:
        return _fail("Out of memory", 1)
    except KeyboardInterrupt:
        return _fail("Interrupted", 130)
    return 0


def _fail(message: str, status: int) -> int:
    try:
        sys.stdout.flush()
    except OSError:
        # Nobody takes it; what is still buffered must not fail again when Python shuts down.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    print(" ".join(message.splitlines()), file=sys.stderr)
    return status


@app.callback(invoke_without_command=True)
def _vkops(
    context: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="Show the version.")] = False,
) -> None:
    if version:
        typer.echo(f"vkops {vkops.__version__}")
    elif context.invoked_subcommand is None:
        typer.echo(context.get_help())


_MODEL_HELP = "A DxDispatch model, .json, or an ONNX model, .onnx."
_Model = Annotated[str | None, typer.Argument(metavar="MODEL", help=_MODEL_HELP)]
_Level = Annotated[
    str, typer.Option("--dml_feature_level", metavar="LEVEL", help="DirectML's, 1.0 to 6.4.")
]
_InputPath = Annotated[
    Path | None,
    typer.Option("--input_path", help="Folder of sourcePath files; default: the model's."),
]
_OutputPath = Annotated[
    Path | None,
    typer.Option("--output_path", help="Folder of targetPath files; default: the current one."),
]
_FreeNames = Annotated[
    list[str] | None,
    typer.Option(
        "-f",
        "--onnx_free_dim_name_override",
        metavar="NAME:SIZE",
        help="Size of a free dimension; 1 if left out.",
    ),
]
_FreeDenotations = Annotated[
    list[str] | None,
    typer.Option(
        "-F",
        "--onnx_free_dim_denotation_override",
        metavar="DENOTATION:SIZE",
        help="The same, by denotation.",
    ),
]
_Shapes = Annotated[
    list[str] | None,
    typer.Option(
        "-b", "--binding_shape", metavar="TENSOR:SHAPE", help="Shape of a tensor, such as x:5,2."
    ),
]
_MAX_INT = 2**31 - 1
_Flag = Annotated[bool, typer.Option(hidden=True)]  # for Direct3D 12; accepted, without effect


@app.command()
def run(
    context: typer.Context,
    model: _Model = None,
    model_option: Annotated[
        str | None, typer.Option("-m", "--model", metavar="MODEL", help="The same.")
    ] = None,
    adapter: Annotated[
        str, typer.Option("-a", "--adapter", help="Part of the adapter's name; first match.")
    ] = "",
    show_adapters: Annotated[
        bool, typer.Option("-s", "--show_adapters", help="List the adapters.")
    ] = False,
    show_dependencies: Annotated[
        bool, typer.Option("-S", "--show_dependencies", help="List versions.")
    ] = False,
    debug: Annotated[
        bool, typer.Option("-d", "--debug", help="Use Vulkan's validation layer.")
    ] = False,
    dispatch_iterations: Annotated[
        int, typer.Option("-i", "--dispatch_iterations", min=0, help="Times to dispatch and wait.")
    ] = 1,
    dispatch_repeat: Annotated[
        int, typer.Option("-r", "--dispatch_repeat", min=1, help="Dispatches per iteration.")
    ] = 1,
    milliseconds_to_run: Annotated[
        int | None,
        typer.Option(
            "-t", "--milliseconds_to_run", min=0, max=_MAX_INT, help="Time limit; overrides -i."
        ),
    ] = None,
    dispatch_interval: Annotated[
        int,
        typer.Option(
            "-I", "--dispatch_interval", min=0, max=_MAX_INT, help="Least ms per iteration."
        ),
    ] = 0,
    warmup_samples: Annotated[
        int, typer.Option("-w", "--warmup_samples", min=0, help="Cold samples at most.")
    ] = 1,
    timing_verbosity: Annotated[
        int, typer.Option("-v", "--timing_verbosity", min=0, max=2, help="How much about times.")
    ] = 0,
    print_commands: Annotated[
        bool, typer.Option("--print_commands", help="Tell when each command starts and ends.")
    ] = False,
    input_path: _InputPath = None,
    output_path: _OutputPath = None,
    dml_feature_level: _Level = "5.0",
    onnx_free_dim_name_override: _FreeNames = None,
    onnx_free_dim_denotation_override: _FreeDenotations = None,
    binding_shape: _Shapes = None,
    print_onnx_bindings: Annotated[
        bool, typer.Option("-p", "--print_onnx_bindings", help="Tell what is bound where.")
    ] = False,
    input_: Annotated[
        list[str] | None,
        typer.Option(
            "--input",
            metavar="[NAME:]FILE",
            help="Inputs of a .onnx model: a .npy file each, or a .npz file; zeros if left out.",
        ),
    ] = None,
    random: Annotated[
        bool, typer.Option("--random", help="Random values for all other inputs.")
    ] = False,
    seed: Annotated[int, typer.Option("--seed", min=0, help="What --random starts from.")] = 0,
    output: Annotated[
        list[str] | None,
        typer.Option(
            "--output",
            metavar="[NAME:]FILE",
            help="Write outputs of a .onnx model: one to a .npy file, or all to a .npz file.",
        ),
    ] = None,
    post_dispatch_barriers: Annotated[
        str, typer.Option("--post_dispatch_barriers", help="No effect: dispatches are awaited.")
    ] = "uav",
    max_gpu_time_measurements: Annotated[
        int, typer.Option("--max_gpu_time_measurements", min=0, help="No effect: CPU times only.")
    ] = 8192,
    queue_type: Annotated[str, typer.Option("-q", "--queue_type", hidden=True)] = "direct",
    pix_capture_type: Annotated[
        str, typer.Option("-c", "--pix_capture_type", hidden=True)
    ] = "manual",
    pix_capture_name: Annotated[
        str, typer.Option("-o", "--pix_capture_name", hidden=True)
    ] = "dxdispatch",
    disable_custom_heaps: _Flag = False,
    clear_shader_caches: _Flag = False,
    disable_gpu_timeout: _Flag = False,
    enable_dred: _Flag = False,
    disable_background_processing: _Flag = False,
    set_stable_power_state: _Flag = False,
    disable_agility_sdk: _Flag = False,
    xbox_allow_precompile: _Flag = False,
    present_separator: _Flag = False,
    print_hlsl_disassembly: _Flag = False,
    onnx_session_config_entry: Annotated[
        list[str] | None, typer.Option("-e", "--onnx_session_config_entry", hidden=True)
    ] = None,
    onnx_graph_optimization_level: Annotated[
        int, typer.Option("-l", "--onnx_graph_optimization_level", hidden=True)
    ] = 99,
    onnx_logging_level: Annotated[int, typer.Option("-L", "--onnx_logging_level", hidden=True)] = 2,
    enable_ort_extensions: Annotated[
        bool, typer.Option("-x", "--enable_ort_extensions", hidden=True)
    ] = False,
    enable_onnx_profiling: _Flag = False,
) -> None:
    """Run a DxDispatch model, or an ONNX model of operators that only move data."""
    from vkops.dxdispatch import RunOptions, listings, session
    from vkops.dxdispatch.onnx_file import FileOptions
    from vkops.dxdispatch.onnx_inputs import parse_overrides

    _one_of("--queue_type", queue_type, "direct", "compute")
    _one_of("--post_dispatch_barriers", post_dispatch_barriers, "none", "uav", "uav+aliasing")
    level = _feature_level(dml_feature_level)
    if show_dependencies:
        for line in listings.dependency_lines():
            typer.echo(line)
    if show_adapters:
        for found in vkops.devices():
            typer.echo(listings.adapter_block(found))
    path = model if model_option is None else model_option
    if path is None:
        if not (show_dependencies or show_adapters):
            typer.echo(context.get_help())
        return
    options = RunOptions(
        dispatch_iterations=dispatch_iterations,
        dispatch_repeat=dispatch_repeat,
        milliseconds_to_run=milliseconds_to_run,
        dispatch_interval=dispatch_interval,
        warmup_samples=warmup_samples,
        timing_verbosity=timing_verbosity,
        print_commands=print_commands,
        print_onnx_bindings=print_onnx_bindings,
    )
    overrides = parse_overrides(
        onnx_free_dim_name_override or (),
        onnx_free_dim_denotation_override or (),
        binding_shape or (),
    )
    session.run_model(
        path,
        options,
        adapter=adapter,
        feature_level=level,
        debug=debug,
        input_path=input_path,
        output_path=output_path,
        files=FileOptions(overrides, input_ or (), output or (), random, seed),
    )


@app.command()
def check(
    model: Annotated[str, typer.Argument(metavar="MODEL", help=_MODEL_HELP)],
    dml_feature_level: _Level = "5.0",
    input_path: _InputPath = None,
    onnx_free_dim_name_override: _FreeNames = None,
    onnx_free_dim_denotation_override: _FreeDenotations = None,
    binding_shape: _Shapes = None,
) -> None:
    """Check a model without any device, and tell which feature level its operators need.

    Of an ONNX model, every node that cannot run, or the plan that it becomes.
    """
    from vkops.dxdispatch import session
    from vkops.dxdispatch.onnx_inputs import parse_overrides

    overrides = parse_overrides(
        onnx_free_dim_name_override or (),
        onnx_free_dim_denotation_override or (),
        binding_shape or (),
    )
    session.check_model(model, _feature_level(dml_feature_level), input_path, overrides)


@app.command()
def explain(
    model: Annotated[str, typer.Argument(metavar="MODEL", help=_MODEL_HELP)],
    html: Annotated[
        Path | None,
        typer.Option("--html", metavar="FILE", help="Write a page that draws what goes where."),
    ] = None,
    dml_feature_level: _Level = "5.0",
    input_path: _InputPath = None,
    onnx_free_dim_name_override: _FreeNames = None,
    onnx_free_dim_denotation_override: _FreeDenotations = None,
    binding_shape: _Shapes = None,
) -> None:
    """Tell what a model does, without any device: tensors, rules, plans, kernels.

    Of an ONNX model, what becomes of every node, too.
    """
    from vkops import explain as explanations
    from vkops.dxdispatch import listings
    from vkops.dxdispatch.onnx_inputs import parse_overrides

    overrides = parse_overrides(
        onnx_free_dim_name_override or (),
        onnx_free_dim_denotation_override or (),
        binding_shape or (),
    )
    level = _feature_level(dml_feature_level)
    explanation = explanations.explain(model, level, input_path, overrides)
    listings.show(*explanations.tell(explanation))
    if explanation.refusal:
        raise ModelError(explanation.refusal)
    if html is not None:
        explanations.write_page(explanation, html)
        typer.echo(f"Page written to '{html}'")


@app.command()
def devices(
    as_json: Annotated[bool, typer.Option("--json", help="For programs to read.")] = False,
) -> None:
    """Show the Vulkan devices, and for each driver found whether it works, or why not."""
    from dataclasses import asdict

    from vkops import gpu

    drivers, problem = gpu.drivers(), None
    try:
        found = vkops.devices()
    except DeviceError as error:
        found, problem = [], error
    if as_json:
        lists = {
            "devices": [asdict(device) for device in found],
            "drivers": [{**asdict(driver), "usable": driver.usable} for driver in drivers],
        }
        typer.echo(json.dumps(lists, indent=2))
    else:
        from vkops.dxdispatch import listings

        tables = [listings.device_table(found)] if found else []
        listings.show(*tables, *([listings.driver_table(drivers)] if drivers else []))
    if problem is not None:
        raise problem


@app.command()
def bench(
    works: Annotated[
        list[str] | None, typer.Argument(metavar="[WORK]...", help="W1 to W18; default: all.")
    ] = None,
    adapter: Annotated[
        str, typer.Option("-a", "--adapter", help="Part of the adapter's name; first match.")
    ] = "",
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
        _one_of("WORK", name, *by_name)
    for name in peer or ():
        _one_of("--peer", name, *libraries.PEERS)
        libraries.require(name)
    if peers and not libraries.installed():
        typer.echo("No peers are installed: pip install 'vkops[peers]'", err=True)
    if plot is not None:
        plots.check(plot)
    if from_ is not None:
        report = benchmark.read(from_)
    else:
        chosen = [by_name[name] for name in works or by_name]
        with vkops.Device(adapter or None) as device:
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


def _feature_level(text: str) -> FeatureLevel:
    from vkops.dml import FeatureLevel

    names = {str(level).replace("_", "."): level for level in FeatureLevel}
    _one_of("--dml_feature_level", text.replace("_", "."), *names)
    return names[text.replace("_", ".")]


def _one_of(option: str, value: str, *allowed: str) -> None:
    if value not in allowed:
        raise typer.BadParameter(
            f"got '{value}', allowed {', '.join(allowed)}", param_hint=f"'{option}'"
        )
