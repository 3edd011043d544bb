"""Read and check a model file as ``vkops check`` does, and explain it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from vkops.dml import FeatureLevel
from vkops.dxdispatch import load_model
from vkops.dxdispatch.json_model import DmlDispatchable, Overrides, ShaderDispatchable
from vkops.dxdispatch.model_checks import Prepared, prepare
from vkops.dxdispatch.onnx_dispatchable import BoundOnnx, read_onnx
from vkops.errors import ModelError, VkopsError
from vkops.explain.dml_operators import operator_section
from vkops.explain.explanation import Explanation, Section
from vkops.explain.onnx_models import dispatch_sections, model_section
from vkops.runner.console import complain
from vkops.shaders.listing import describe


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
    overrides = overrides or Overrides()
    suffix = Path(path).suffix
    if suffix == ".onnx":
        graph = read_onnx(Path(path), allow_paths=allow_paths)
        overrides.check(graph)
        return Explanation(path, (model_section(Path(path).stem, graph, overrides),))
    if suffix != ".json":
        raise ModelError("Expected a .json or .onnx file")
    try:
        model = load_model(path, input_path, None, overrides, allow_paths=allow_paths)
    except VkopsError as error:
        raise ModelError(f"Failed to parse the model: {error}") from error
    try:
        prepared = prepare(model, FeatureLevel.LATEST)
    except VkopsError as error:
        raise ModelError(_refusal(error)) from error
    for warning in model.warnings:
        complain(f"Warning: {warning}")
    sections = tuple(_sections(prepared, feature_level))
    try:
        prepare(model, feature_level)
    except VkopsError as error:
        return Explanation(path, sections, _refusal(error))
    return Explanation(path, sections)


def _refusal(error: VkopsError) -> str:
    return f"Failed to execute the model: {error}"


def _sections(prepared: Prepared, level: FeatureLevel) -> Iterator[Section]:
    for dispatchable in prepared.model.dispatchables.values():
        if isinstance(dispatchable, DmlDispatchable):
            yield operator_section(dispatchable, level)
        elif isinstance(dispatchable, ShaderDispatchable):
            facts = describe(dispatchable.shader.module)
            kind = f"compute shader {dispatchable.shader.name}"
            yield Section(dispatchable.name, kind, facts, ())
        else:
            bound = [b for b in prepared.commands if isinstance(b, BoundOnnx)]
            own = [b for b in bound if b.dispatchable is dispatchable]
            yield from dispatch_sections(dispatchable, own)
