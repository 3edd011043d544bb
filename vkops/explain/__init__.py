"""Descriptions of models, for the terminal and as HTML pages; no device is needed."""

from __future__ import annotations

from typing import Any

from vkops.dml import FeatureLevel
from vkops.errors import ModelError
from vkops.explain.explanation import Explanation
from vkops.explain.explanation import TensorInfo as Tensor
from vkops.explain.page import write_page
from vkops.explain.sections import sections
from vkops.explain.tables import render
from vkops.models.model_reader import prepare
from vkops.runner.model_files import ModelFile

__all__ = ["Explanation", "Tensor", "explain", "render", "write_page"]


def explain(
    path: str, feature_level: FeatureLevel = FeatureLevel.LATEST, **options: Any
) -> Explanation:
    """Explain a model file, .json or .onnx, even if its operators need a higher feature level.

    ``options`` are further fields of ``ModelFile``.

    Raises:
        ModelError: ``vkops check`` refuses the model at every feature level.

    >>> (section,) = explain("examples/split.json").sections
    >>> section.kind, len(section.movements[0].regions)
    ('SPLIT', 3)
    """
    file = ModelFile(path, feature_level, **options)
    if file.is_onnx:
        name, model, overrides, _ = file.read_onnx()
        from vkops.explain.onnx_sections import section

        return Explanation(path, (section(name, model, overrides.types(model)),))
    prepared = file.read_json(FeatureLevel.LATEST)
    explained = tuple(
        section
        for dispatchable in prepared.model.dispatchables.values()
        for section in sections(
            dispatchable,
            [bound for bound in prepared.dispatches if bound.dispatchable is dispatchable],
            feature_level,
        )
    )
    try:
        prepare(prepared.model, feature_level)
    except ModelError as error:
        return Explanation(path, explained, f"Failed to execute the model: {error}")
    return Explanation(path, explained)
