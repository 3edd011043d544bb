"""Descriptions of models, for the terminal and as HTML pages; no device is needed."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from vkops.dml import FeatureLevel
from vkops.errors import ModelError
from vkops.explain.page import write_page
from vkops.explain.tables import render
from vkops.models.explanation import Explanation, Tensor
from vkops.models.model_reader import prepare
from vkops.models.onnx import OnnxDispatchable
from vkops.runner.model_files import is_onnx_file, read_model

if TYPE_CHECKING:
    from vkops.onnx.free_dimensions import Overrides

__all__ = ["Explanation", "Tensor", "explain", "render", "write_page"]


def explain(
    path: str,
    feature_level: FeatureLevel = FeatureLevel.LATEST,
    input_path: Path | None = None,
    overrides: Overrides | None = None,
    *,
    allow_paths: bool = False,
) -> Explanation:
    """Explain a model file, .json or .onnx, even if its operators need a higher feature level.

    ``allow_paths`` is that of ``load_model``.

    Raises:
        ModelError: ``vkops check`` refuses the model at every feature level.

    >>> (section,) = explain("examples/split.json").sections
    >>> section.kind, len(section.movements[0].regions)
    ('SPLIT', 3)
    """
    if is_onnx_file(path):
        onnx = OnnxDispatchable.of_file(Path(path), overrides, allow_paths=allow_paths)
        return Explanation(path, tuple(onnx.sections((), feature_level)))
    latest = FeatureLevel.LATEST
    prepared = read_model(path, latest, input_path, None, overrides, allow_paths=allow_paths)
    sections = tuple(
        section
        for dispatchable in prepared.model.dispatchables.values()
        for section in dispatchable.sections(
            [bound for bound in prepared.dispatches if bound.dispatchable is dispatchable],
            feature_level,
        )
    )
    try:
        prepare(prepared.model, feature_level)
    except ModelError as error:
        return Explanation(path, sections, f"Failed to execute the model: {error}")
    return Explanation(path, sections)
