"""``vkops run``, ``check`` and ``explain``: DxDispatch and ONNX models."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer
from typer import Argument, Option

import vkops
from vkops.cli import options
from vkops.cli.options import MAX_INT
from vkops.errors import ModelError, printable


def _ignored(*names: str) -> Any:
    """Return an option of DxDispatch that only Direct3D 12 or ONNX Runtime needs."""
    return Option(*names, hidden=True)


_Flag = Annotated[bool, Option(hidden=True)]  # as _ignored


def run(
    context: typer.Context,
    model: Annotated[str | None, Argument(metavar="MODEL", help="A .json or .onnx file.")] = None,
    model_option: Annotated[
        str | None, Option("-m", "--model", metavar="MODEL", help="The same as MODEL.")
    ] = None,
    adapter: options.Adapter = "",
    expect: options.Expect = None,
    show_adapters: Annotated[
        bool, Option("-s", "--show_adapters", help="List the adapters.")
    ] = False,
    show_dependencies: Annotated[
        bool, Option("-S", "--show_dependencies", help="List the versions of packages.")
    ] = False,
    debug: options.Debug = False,
    dispatch_iterations: options.Iterations = 1,
    dispatch_repeat: Annotated[
        int, Option("-r", "--dispatch_repeat", min=1, help="Dispatches in each iteration.")
    ] = 1,
    milliseconds_to_run: Annotated[
        int | None,
        Option(
            "-t",
            "--milliseconds_to_run",
            min=0,
            max=MAX_INT,
            help="Dispatch for this many milliseconds; -i has no effect then.",
        ),
    ] = None,
    dispatch_interval: Annotated[
        int,
        Option(
            "-I",
            "--dispatch_interval",
            min=0,
            max=MAX_INT,
            help="Minimum milliseconds for each iteration.",
        ),
    ] = 0,
    warmup_samples: Annotated[
        int, Option("-w", "--warmup_samples", min=0, help="Maximum number of cold samples.")
    ] = 1,
    timing_verbosity: Annotated[
        int, Option("-v", "--timing_verbosity", min=0, max=2, help="Details about times, 0 to 2.")
    ] = 0,
    print_commands: Annotated[
        bool, Option("--print_commands", help="Print when each command starts and ends.")
    ] = False,
    input_path: options.InputPath = None,
    output_path: options.OutputPath = None,
    allow_paths: options.AllowPaths = False,
    strict: options.Strict = False,
    dml_feature_level: options.Level = "5.0",
    onnx_free_dim_name_override: options.FreeNames = None,
    onnx_free_dim_denotation_override: options.FreeDenotations = None,
    binding_shape: options.Shapes = None,
    print_onnx_bindings: Annotated[
        bool, Option("-p", "--print_onnx_bindings", help="Print what ONNX tensors are bound to.")
    ] = False,
    input_: Annotated[
        options.Texts,
        Option(
            "--input",
            metavar="[NAME:]FILE",
            help="Read inputs of a .onnx model from .npy or .npz files; the others are zeros.",
        ),
    ] = None,
    random: Annotated[bool, Option("--random", help="Use random values for other inputs.")] = False,
    seed: Annotated[int, Option("--seed", min=0, help="Seed of --random.")] = 0,
    output: Annotated[
        options.Texts,
        Option(
            "--output",
            metavar="[NAME:]FILE",
            help="Write an output of a .onnx model to a .npy file, or all to a .npz file.",
        ),
    ] = None,
    post_dispatch_barriers: Annotated[
        str, Option("--post_dispatch_barriers", help="No effect: each dispatch is awaited.")
    ] = "uav",
    max_gpu_time_measurements: Annotated[
        int,
        Option(
            "--max_gpu_time_measurements",
            min=0,
            help="Keep the latest so many times that the device measured; 0: it measures none.",
        ),
    ] = 8192,
    queue_type: Annotated[str, _ignored("-q", "--queue_type")] = "direct",
    pix_capture_type: Annotated[str, _ignored("-c", "--pix_capture_type")] = "manual",
    pix_capture_name: Annotated[str, _ignored("-o", "--pix_capture_name")] = "dxdispatch",
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
        options.Texts, _ignored("-e", "--onnx_session_config_entry")
    ] = None,
    onnx_graph_optimization_level: Annotated[
        int, _ignored("-l", "--onnx_graph_optimization_level")
    ] = 99,
    onnx_logging_level: Annotated[int, _ignored("-L", "--onnx_logging_level")] = 2,
    enable_ort_extensions: Annotated[bool, _ignored("-x", "--enable_ort_extensions")] = False,
    enable_onnx_profiling: _Flag = False,
) -> None:
    """Run a DxDispatch model, or an ONNX model of operators that only move data."""
    from vkops.cli import device_commands
    from vkops.debug import dispatch_hooks
    from vkops.runner import RunOptions, model_files
    from vkops.runner.onnx_files import FileOptions

    options.one_of("--queue_type", queue_type, "direct", "compute")
    options.one_of(
        "--post_dispatch_barriers", post_dispatch_barriers, "none", "uav", "uav+aliasing"
    )
    level = options.feature_level(dml_feature_level)
    if show_dependencies:
        for line in device_commands.dependency_lines():
            typer.echo(line)
    if show_adapters:
        for found in vkops.devices():
            typer.echo(device_commands.adapter_block(found))
    path = model if model_option is None else model_option
    if path is None:
        if not (show_dependencies or show_adapters):
            typer.echo(context.get_help())
        return
    overrides = options.overrides(
        onnx_free_dim_name_override, onnx_free_dim_denotation_override, binding_shape
    )
    with dispatch_hooks.from_environment() as around_dispatch:
        model_files.run_model(
            path,
            RunOptions(
                dispatch_iterations=dispatch_iterations,
                dispatch_repeat=dispatch_repeat,
                milliseconds_to_run=milliseconds_to_run,
                dispatch_interval=dispatch_interval,
                warmup_samples=warmup_samples,
                timing_verbosity=timing_verbosity,
                max_gpu_time_measurements=max_gpu_time_measurements,
                print_commands=print_commands,
                print_onnx_bindings=print_onnx_bindings,
                around_dispatch=around_dispatch,
            ),
            adapter=adapter,
            expect=expect,
            feature_level=level,
            debug=debug,
            input_path=input_path,
            output_path=output_path,
            files=FileOptions(overrides, input_ or (), output or (), random, seed),
            allow_paths=allow_paths,
            strict=strict,
        )


def check(
    model: options.Model,
    dml_feature_level: options.Level = "5.0",
    input_path: options.InputPath = None,
    allow_paths: options.AllowPaths = False,
    strict: options.Strict = False,
    onnx_free_dim_name_override: options.FreeNames = None,
    onnx_free_dim_denotation_override: options.FreeDenotations = None,
    binding_shape: options.Shapes = None,
) -> None:
    """Check a model without a device, and print the feature level that its operators need.

    For an ONNX model, print every node that cannot run, or a summary of its plan.
    """
    from vkops.runner import model_files

    overrides = options.overrides(
        onnx_free_dim_name_override, onnx_free_dim_denotation_override, binding_shape
    )
    level = options.feature_level(dml_feature_level)
    model_files.check_model(
        model, level, input_path, overrides, allow_paths=allow_paths, strict=strict
    )


def explain(
    model: options.Model,
    html: Annotated[
        Path | None,
        Option("--html", metavar="FILE", help="Write a page that draws where data moves."),
    ] = None,
    dml_feature_level: options.Level = "5.0",
    input_path: options.InputPath = None,
    allow_paths: options.AllowPaths = False,
    onnx_free_dim_name_override: options.FreeNames = None,
    onnx_free_dim_denotation_override: options.FreeDenotations = None,
    binding_shape: options.Shapes = None,
) -> None:
    """Explain what a model does, without a device: tensors, rules, plans and kernels.

    For an ONNX model, also explain each node.
    """
    from vkops import explain as explanations
    from vkops.runner.console import show

    overrides = options.overrides(
        onnx_free_dim_name_override, onnx_free_dim_denotation_override, binding_shape
    )
    level = options.feature_level(dml_feature_level)
    explanation = explanations.explain(model, level, input_path, overrides, allow_paths=allow_paths)
    show(*explanations.render(explanation))
    if explanation.refusal:
        raise ModelError(explanation.refusal)
    if html is not None:
        explanations.write_page(explanation, html)
        typer.echo(printable(f"Page written to '{html}'"))
