"""Run or check a model file, with DxDispatch's order of steps and messages."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.markup import escape
from rich.table import Table

import vkops
from vkops.console import complain, info, show, table
from vkops.dml import FeatureLevel
from vkops.errors import ModelError, one_line
from vkops.models.model import Model, Prepared
from vkops.models.model_reader import load_model, prepare
from vkops.models.resources import errors_after

if TYPE_CHECKING:
    from vkops.models.model import RunOptions
    from vkops.onnx.free_dimensions import Overrides
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
        VkopsError: in DxDispatch's words, what failed; faults of the model itself before a device
            is opened, and before anything has been written.
    """
    from vkops.runner.model_execution import run
    from vkops.runner.onnx_files import FileOptions, run_file

    files = files or FileOptions()
    open_device = partial(_open_device, adapter, expect, feature_level, debug)
    if is_onnx_file(path):
        run_file(Path(path), open_device, options, files, allow_paths=allow_paths)
        return
    if files.input or files.output or files.random:
        raise ModelError("--input, --output and --random are for .onnx files; a model has its own")
    folders = input_path, output_path
    prepared = read_model(
        path, feature_level, *folders, files.overrides, allow_paths=allow_paths, strict=strict
    )
    with open_device() as device, errors_after("Failed to execute the model"):
        run(prepared, device, options)


def read_model(path: str, feature_level: FeatureLevel, *given: Any, **options: Any) -> Prepared:
    """Read a .json model as ``load_model`` does, check it, and print its warnings."""
    with errors_after("Failed to parse the model"):
        model = load_model(path, *given, **options)
    with errors_after("Failed to execute the model"):
        prepared = prepare(model, feature_level)
    for warning in model.warnings:
        complain(f"Warning: {warning}")
    return prepared


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
    if is_onnx_file(path):
        from vkops.runner.onnx_files import check_file

        check_file(Path(path), overrides, allow_paths=allow_paths)
        return
    options = {"allow_paths": allow_paths, "strict": strict}
    model = read_model(path, FeatureLevel.LATEST, input_path, None, overrides, **options).model
    show(_level_table(model, feature_level))
    with errors_after("Failed to execute the model"):
        prepare(model, feature_level)


def _level_table(model: Model, feature_level: FeatureLevel) -> Table:
    """Return a table of the lowest level that each operator needs."""
    levels = table(None, "Dispatchable", "Operator", "Lowest level", f"At {feature_level}")
    for dispatchable in model.dispatchables.values():
        lowest = dispatchable.lowest_level
        verdict = "accepted" if lowest is None or lowest <= feature_level else "refused"
        cells = dispatchable.kind, "none" if lowest is None else str(lowest), verdict
        levels.add_row(escape(one_line(dispatchable.name)), *cells)
    return levels


def is_onnx_file(path: str) -> bool:
    """Whether a file is an ONNX model, by its name."""
    suffix = Path(path).suffix
    if suffix not in (".json", ".onnx"):
        raise ModelError("Expected a .json or .onnx file")
    return suffix == ".onnx"


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
        device = vkops.Device(choice, feature_level, debug=debug, expect=expect)
    info(f"Running on '{device.name}'")
    return device
