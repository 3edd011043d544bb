"""Read and check a model file as ``vkops check`` does, and explain it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from vkops.dml import FeatureLevel
from vkops.dxdispatch.json_model import DmlDispatchable, ShaderDispatchable
from vkops.dxdispatch.model_checks import Prepared, prepare
from vkops.dxdispatch.onnx_dispatchable import BoundOnnx
from vkops.errors import ModelError
from vkops.explain.dml_operators import operator_section
from vkops.explain.explanation import Explanation, Section
from vkops.runner.model_files import is_onnx_file, read_model
from vkops.runner.onnx_files import read_onnx_file
from vkops.shaders.listing import describe

if TYPE_CHECKING:
    from vkops.onnx.free_dimensions import Overrides


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
        graph, given = read_onnx_file(Path(path), overrides, allow_paths=allow_paths)
        from vkops.explain.onnx_models import model_section

        return Explanation(path, (model_section(Path(path).stem, graph, given),))
    latest = FeatureLevel.LATEST
    prepared = read_model(path, latest, input_path, None, overrides, allow_paths=allow_paths)
    sections = tuple(_sections(prepared, feature_level))
    try:
        prepare(prepared.model, feature_level)
    except ModelError as error:
        return Explanation(path, sections, f"Failed to execute the model: {error}")
    return Explanation(path, sections)


def _sections(prepared: Prepared, level: FeatureLevel) -> Iterator[Section]:
    for dispatchable in prepared.model.dispatchables.values():
        if isinstance(dispatchable, DmlDispatchable):
            yield operator_section(dispatchable, level)
        elif isinstance(dispatchable, ShaderDispatchable):
            facts = describe(dispatchable.shader.module)
            kind = f"compute shader {dispatchable.shader.name}"
            yield Section(dispatchable.name, kind, facts, ())
        else:
            from vkops.explain.onnx_models import dispatch_sections

            bound = [b for b in prepared.commands if isinstance(b, BoundOnnx)]
            own = [b for b in bound if b.dispatchable is dispatchable]
            yield from dispatch_sections(dispatchable, own)
