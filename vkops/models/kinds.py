"""The kinds of dispatchables."""

from __future__ import annotations

from collections.abc import Mapping

from vkops.models.model import Dispatchable
from vkops.models.onnx import OnnxDispatchable
from vkops.models.operator import DmlDispatchable
from vkops.models.shader import ShaderDispatchable

KINDS: Mapping[str, type[Dispatchable]] = {
    name: kind for kind in (OnnxDispatchable, ShaderDispatchable) for name in kind.types
}
"""The class for each value of ``type``."""

OTHER = DmlDispatchable
"""The class for all other types, which are names of operators."""
