"""Run or check a model file, with DxDispatch's order of steps and messages."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from rich.markup import escape
from rich.table import Table

import vkops
from vkops.dml import FeatureLevel
from vkops.dxdispatch.json_model import DmlDispatchable, Model, Overrides, ShaderDispatchable
from vkops.dxdispatch.model_checks import errors_after, prepare
from vkops.dxdispatch.model_reader import load_model
from vkops.errors import ModelError, one_line
from vkops.runner.console import complain, info, show, table

if TYPE_CHECKING:
    from vkops.runner.dispatch_timing import RunOptions
    from vkops.runner.onnx_files import FileOptions


def run_model(
    path: str,
    options: RunOptions,
    *,
    adapter: str = "",
    expect: str | None = None,
    feature_level: FeatureLevel = FeatureLevel.LEVEL_5_0,
    debug: bool = False,
    input_path: Path | None = None,
    output_path: Path | None = None,
    files: FileOptions | None = None,
    allow_paths: bool = False,
    strict: bool = False,
) -> None:
    """Run a model file, .json or .onnx, on the first adapter whose name contains ``adapter``.

    ``expect`` is passed on to ``Device``, ``allow_paths`` and ``strict`` to ``load_model``.

    Raises:
        VkopsError: in DxDispatch's words, what failed; faults of the model itself before anything
            has been created or written.
    """
    from vkops.runner.model_execution import run
    from vkops.runner.onnx_files import FileOptions, run_file

    files = files or FileOptions()
    is_onnx = _is_onnx(path)
    if not is_onnx and (files.input or files.output or files.random):
        raise ModelError("--input, --output and --random are for .onnx files; a model has its own")
    with _open_device(adapter, expect, feature_level, debug) as device:
        info(f"Running on '{device.name}'")
        if is_onnx:
            run_file(Path(path), device, options, files, allow_paths=allow_paths)
            return
        with errors_after("Failed to parse the model"):
            model = load_model(
                path,
                input_path,
                output_path,
                files.overrides,
                allow_paths=allow_paths,
                strict=strict,
            )
        with errors_after("Failed to execute the model"):
            prepared = prepare(model, feature_level)
            print_warnings(model)
            run(prepared, device, options)


def check_model(
    path: str,
    feature_level: FeatureLevel,
    input_path: Path | None = None,
    overrides: Overrides | None = None,
    *,
    allow_paths: bool = False,
    strict: bool = False,
) -> None:
    """Check a model file without a device; print the feature level that each operator needs.

    For an ONNX model, print its operators and a summary of its plan.

    Raises:
        ModelError: what ``run_model`` would refuse; without the table if no level accepts it.
    """
    if _is_onnx(path):
        from vkops.runner.onnx_files import check_file

        check_file(Path(path), overrides or Overrides(), allow_paths=allow_paths)
        return
    with errors_after("Failed to parse the model"):
        model = load_model(
            path, input_path, None, overrides, allow_paths=allow_paths, strict=strict
        )
    with errors_after("Failed to execute the model"):
        prepare(model, FeatureLevel.LATEST)
        print_warnings(model)
        show(_level_table(model, feature_level))
        prepare(model, feature_level)


def _level_table(model: Model, feature_level: FeatureLevel) -> Table:
    """Return a table of the lowest level that each operator needs."""
    levels = table(None, "Dispatchable", "Operator", "Lowest level", f"At {feature_level}")
    for dispatchable in model.dispatchables.values():
        if isinstance(dispatchable, DmlDispatchable):
            lowest = dispatchable.desc.minimum_feature_level()
            verdict = "accepted" if lowest <= feature_level else "refused"
            cells = dispatchable.desc.operator, str(lowest), verdict
        else:
            is_shader = isinstance(dispatchable, ShaderDispatchable)
            cells = "a shader" if is_shader else "an ONNX model", "none", "accepted"
        levels.add_row(escape(one_line(dispatchable.name)), *cells)
    return levels


def _is_onnx(path: str) -> bool:
    """Return whether a file is an ONNX model, by its name."""
    suffix = Path(path).suffix
    if suffix not in (".json", ".onnx"):
        raise ModelError("Expected a .json or .onnx file")
    return suffix == ".onnx"


def print_warnings(model: Model) -> None:
    """Print the warnings of a model on standard error."""
    for warning in model.warnings:
        complain(f"Warning: {warning}")


def _open_device(
    adapter: str, expect: str | None, feature_level: FeatureLevel, debug: bool
) -> vkops.Device:
    with errors_after("Failed to create adapter"):
        infos = vkops.devices()
    matches = [found.index for found in infos if adapter.lower() in found.name.lower()]
    if not matches:
        raise ModelError(
            f"Failed to create adapter: No adapter found that contains the substring '{adapter}'."
        )
    with errors_after("Failed to create a device"):
        # Without a substring the device class has its own preference among the adapters.
        choice = matches[0] if adapter else None
        return vkops.Device(choice, feature_level, debug=debug, expect=expect)
