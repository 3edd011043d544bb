"""``vkops run`` and ``vkops check`` without their command line: DxDispatch's order and words."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from rich.markup import escape
from rich.table import Table

import vkops
from vkops.dml import FeatureLevel
from vkops.dxdispatch.json_model import DmlDispatchable, Model, ShaderDispatchable
from vkops.dxdispatch.model_checks import prepare
from vkops.dxdispatch.model_reader import load_model
from vkops.dxdispatch.onnx_overrides import Overrides
from vkops.errors import ModelError, VkopsError, one_line
from vkops.runner.console import complain, info, show
from vkops.runner.dispatch_timing import RunOptions
from vkops.runner.model_execution import run
from vkops.runner.onnx_files import FileOptions, check_file, run_file

if TYPE_CHECKING:
    from vkops.device import Device


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
        VkopsError: in DxDispatch's words, what failed; the model's own faults before anything
            has been created or written.
    """
    files = files or FileOptions()
    is_onnx = _is_onnx(path)
    if not is_onnx and (files.input or files.output or files.random):
        raise ModelError("--input, --output and --random are for .onnx files; a model has its own")
    with _open_device(adapter, expect, feature_level, debug) as device:
        info(f"Running on '{device.name}'")
        if is_onnx:
            return run_file(Path(path), device, options, files, allow_paths=allow_paths)
        model = _load(
            path, input_path, output_path, files.overrides, allow_paths=allow_paths, strict=strict
        )
        try:
            prepared = prepare(model, feature_level)
            _warn(model)
            run(prepared, device, options)
        except VkopsError as error:
            raise ModelError(f"Failed to execute the model: {error}") from error


def check_model(
    path: str,
    feature_level: FeatureLevel,
    input_path: Path | None = None,
    overrides: Overrides | None = None,
    *,
    allow_paths: bool = False,
    strict: bool = False,
) -> None:
    """Check a model file without a device; print the feature level each operator needs.

    Of an ONNX model, its operators, and the plan that it becomes.

    Raises:
        ModelError: what ``run_model`` would refuse. What is wrong at every level comes without
            the table.
    """
    overrides = overrides or Overrides()
    if _is_onnx(path):
        return check_file(Path(path), overrides, allow_paths=allow_paths)
    model = _load(path, input_path, None, overrides, allow_paths=allow_paths, strict=strict)
    try:
        prepare(model, FeatureLevel.LATEST)
        _warn(model)
        show(_level_table(model, feature_level))
        prepare(model, feature_level)
    except VkopsError as error:
        raise ModelError(f"Failed to execute the model: {error}") from error


def _level_table(model: Model, feature_level: FeatureLevel) -> Table:
    """Return a table of the lowest level each operator needs; all are valid at the latest."""
    table = Table()
    for heading in ("Dispatchable", "Operator", "Lowest level", f"At {feature_level}"):
        table.add_column(heading, overflow="fold")
    for dispatchable in model.dispatchables.values():
        if not isinstance(dispatchable, DmlDispatchable):
            shader = isinstance(dispatchable, ShaderDispatchable)
            kind = "a shader" if shader else "an ONNX model"
            table.add_row(escape(one_line(dispatchable.name)), kind, "none", "accepted")
            continue
        lowest = dispatchable.desc.minimum_feature_level()
        verdict = "accepted" if lowest <= feature_level else "refused"
        table.add_row(
            escape(one_line(dispatchable.name)), dispatchable.desc.operator, str(lowest), verdict
        )
    return table


def _is_onnx(path: str) -> bool:
    """Which kind of model a file is, by its name."""
    suffix = Path(path).suffix
    if suffix not in (".json", ".onnx"):
        raise ModelError("Expected a .json or .onnx file")
    return suffix == ".onnx"


def _load(
    path: str,
    input_path: Path | None,
    output_path: Path | None,
    overrides: Overrides,
    *,
    allow_paths: bool,
    strict: bool,
) -> Model:
    try:
        return load_model(
            path, input_path, output_path, overrides, allow_paths=allow_paths, strict=strict
        )
    except VkopsError as error:
        raise ModelError(f"Failed to parse the model: {error}") from error


def _warn(model: Model) -> None:
    """Pass on what is odd about a model that is otherwise sound."""
    for warning in model.warnings:
        complain(f"Warning: {warning}")


def _open_device(
    adapter: str, expect: str | None, feature_level: FeatureLevel, debug: bool
) -> Device:
    try:
        infos = vkops.devices()
    except VkopsError as error:
        raise ModelError(f"Failed to create adapter: {error}") from error
    matches = [index for index, found in enumerate(infos) if adapter.lower() in found.name.lower()]
    if not matches:
        raise ModelError(
            f"Failed to create adapter: No adapter found that contains the substring '{adapter}'."
        )
    try:
        # Without a substring the device class has its own preference among the adapters.
        choice = infos[matches[0]].index if adapter else None
        return vkops.Device(choice, feature_level, debug=debug, expect=expect)
    except VkopsError as error:
        raise ModelError(f"Failed to create a device: {error}") from error
