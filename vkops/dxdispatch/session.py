"""``vkops run`` and ``vkops check`` without their command line: DxDispatch's order and words."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import vkops
from vkops.dml import FeatureLevel
from vkops.dxdispatch.checks import prepare
from vkops.dxdispatch.executor import RunOptions, run
from vkops.dxdispatch.listings import level_table, show
from vkops.dxdispatch.model import Model
from vkops.dxdispatch.output import complain, info
from vkops.dxdispatch.parse import load_model
from vkops.errors import ModelError, VkopsError

if TYPE_CHECKING:
    from vkops.device import Device


def run_model(
    path: str,
    options: RunOptions,
    *,
    adapter: str = "",
    feature_level: FeatureLevel = FeatureLevel.LEVEL_5_0,
    debug: bool = False,
    input_path: Path | None = None,
    output_path: Path | None = None,
) -> None:
    """Run a model file on the first adapter whose name contains ``adapter``.

    Raises:
        VkopsError: in DxDispatch's words, what failed; the model's own faults before anything
            has been created or written.
    """
    _check_extension(path)
    with _open_device(adapter, feature_level, debug) as device:
        info(f"Running on '{device.name}'")
        model = _load(path, input_path, output_path)
        try:
            prepared = prepare(model, feature_level)
            _warn(model)
            run(prepared, device, options)
        except VkopsError as error:
            raise ModelError(f"Failed to execute the model: {error}") from error


def check_model(path: str, feature_level: FeatureLevel, input_path: Path | None = None) -> None:
    """Check a model file without a device; print the feature level each operator needs.

    Raises:
        ModelError: what ``run_model`` would refuse. What is wrong at every level comes without
            the table.
    """
    _check_extension(path)
    model = _load(path, input_path, None)
    try:
        prepare(model, FeatureLevel.LATEST)
        _warn(model)
        show(level_table(model, feature_level))
        prepare(model, feature_level)
    except VkopsError as error:
        raise ModelError(f"Failed to execute the model: {error}") from error


def _check_extension(path: str) -> None:
    """Refuse files that are no JSON models, by their name."""
    suffix = Path(path).suffix
    if suffix == ".onnx":
        raise ModelError("ONNX models are not available; expected a .json file")
    if suffix != ".json":
        raise ModelError("Expected a .json or .onnx file")


def _load(path: str, input_path: Path | None, output_path: Path | None) -> Model:
    try:
        return load_model(path, input_path, output_path)
    except VkopsError as error:
        raise ModelError(f"Failed to parse the model: {error}") from error


def _warn(model: Model) -> None:
    """Pass on what is odd about a model that is otherwise sound."""
    for warning in model.warnings:
        complain(f"Warning: {warning}")


def _open_device(adapter: str, feature_level: FeatureLevel, debug: bool) -> Device:
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
        return vkops.Device(choice, feature_level=feature_level, debug=debug)
    except VkopsError as error:
        raise ModelError(f"Failed to create a device: {error}") from error
