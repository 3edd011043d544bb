"""``vkops run``, ``check`` and ``explain``: models of DxDispatch and ONNX."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

import vkops
from vkops.cli import options
from vkops.errors import ModelError, printable


def run(
    context: typer.Context,
    model: options.Model = None,
    model_option: Annotated[
        str | None, typer.Option("-m", "--model", metavar="MODEL", help="The same.")
    ] = None,
    adapter: options.Adapter = "",
    expect: options.Expect = None,
    show_adapters: Annotated[
        bool, typer.Option("-s", "--show_adapters", help="List the adapters.")
    ] = False,
    show_dependencies: Annotated[
        bool, typer.Option("-S", "--show_dependencies", help="List versions.")
    ] = False,
    debug: options.Debug = False,
    dispatch_iterations: options.Iterations = 1,
    dispatch_repeat: Annotated[
        int, typer.Option("-r", "--dispatch_repeat", min=1, help="Dispatches per iteration.")
    ] = 1,
    milliseconds_to_run: Annotated[
        int | None,
        typer.Option(
            "-t",
            "--milliseconds_to_run",
            min=0,
            max=options.MAX_INT,
            help="Time limit; overrides -i.",
        ),
    ] = None,
    dispatch_interval: Annotated[
        int,
        typer.Option(
            "-I", "--dispatch_interval", min=0, max=options.MAX_INT, help="Least ms per iteration."
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
    input_path: options.InputPath = None,
    output_path: options.OutputPath = None,
    allow_paths: options.AllowPaths = False,
    strict: options.Strict = False,
    dml_feature_level: options.Level = "5.0",
    onnx_free_dim_name_override: options.FreeNames = None,
    onnx_free_dim_denotation_override: options.FreeDenotations = None,
    binding_shape: options.Shapes = None,
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
    disable_custom_heaps: options.Flag = False,
    clear_shader_caches: options.Flag = False,
    disable_gpu_timeout: options.Flag = False,
    enable_dred: options.Flag = False,
    disable_background_processing: options.Flag = False,
    set_stable_power_state: options.Flag = False,
    disable_agility_sdk: options.Flag = False,
    xbox_allow_precompile: options.Flag = False,
    present_separator: options.Flag = False,
    print_hlsl_disassembly: options.Flag = False,
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
    enable_onnx_profiling: options.Flag = False,
) -> None:
    """Run a DxDispatch model, or an ONNX model of operators that only move data."""
    from vkops.cli import device_listings
    from vkops.debug import around
    from vkops.runner import RunOptions, model_files
    from vkops.runner.onnx_files import FileOptions

    options.one_of("--queue_type", queue_type, "direct", "compute")
    options.one_of(
        "--post_dispatch_barriers", post_dispatch_barriers, "none", "uav", "uav+aliasing"
    )
    level = options.feature_level(dml_feature_level)
    if show_dependencies:
        for line in device_listings.dependency_lines():
            typer.echo(line)
    if show_adapters:
        for found in vkops.devices():
            typer.echo(device_listings.adapter_block(found))
    path = model if model_option is None else model_option
    if path is None:
        if not (show_dependencies or show_adapters):
            typer.echo(context.get_help())
        return
    overrides = options.overrides(
        onnx_free_dim_name_override, onnx_free_dim_denotation_override, binding_shape
    )
    with around.from_environment() as around_dispatch:
        run_options = RunOptions(
            dispatch_iterations=dispatch_iterations,
            dispatch_repeat=dispatch_repeat,
            milliseconds_to_run=milliseconds_to_run,
            dispatch_interval=dispatch_interval,
            warmup_samples=warmup_samples,
            timing_verbosity=timing_verbosity,
            print_commands=print_commands,
            print_onnx_bindings=print_onnx_bindings,
            around_dispatch=around_dispatch,
        )
        model_files.run_model(
            path,
            run_options,
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
    model: Annotated[str, typer.Argument(metavar="MODEL", help=options.MODEL_HELP)],
    dml_feature_level: options.Level = "5.0",
    input_path: options.InputPath = None,
    allow_paths: options.AllowPaths = False,
    strict: options.Strict = False,
    onnx_free_dim_name_override: options.FreeNames = None,
    onnx_free_dim_denotation_override: options.FreeDenotations = None,
    binding_shape: options.Shapes = None,
) -> None:
    """Check a model without any device, and tell which feature level its operators need.

    Of an ONNX model, every node that cannot run, or the plan that it becomes.
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
    model: Annotated[str, typer.Argument(metavar="MODEL", help=options.MODEL_HELP)],
    html: Annotated[
        Path | None,
        typer.Option("--html", metavar="FILE", help="Write a page that draws what goes where."),
    ] = None,
    dml_feature_level: options.Level = "5.0",
    input_path: options.InputPath = None,
    allow_paths: options.AllowPaths = False,
    onnx_free_dim_name_override: options.FreeNames = None,
    onnx_free_dim_denotation_override: options.FreeDenotations = None,
    binding_shape: options.Shapes = None,
) -> None:
    """Tell what a model does, without any device: tensors, rules, plans, kernels.

    Of an ONNX model, how each node is done, too.
    """
    from vkops import explain as explanations
    from vkops.runner.console import show

    overrides = options.overrides(
        onnx_free_dim_name_override, onnx_free_dim_denotation_override, binding_shape
    )
    level = options.feature_level(dml_feature_level)
    explanation = explanations.explain(model, level, input_path, overrides, allow_paths=allow_paths)
    show(*explanations.tell(explanation))
    if explanation.refusal:
        raise ModelError(explanation.refusal)
    if html is not None:
        explanations.write_page(explanation, html)
        typer.echo(printable(f"Page written to '{html}'"))
