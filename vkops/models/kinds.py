"""The kinds of dispatchables, by the values of ``type``."""

from __future__ import annotations

from vkops.models.model import Dispatchable
from vkops.models.onnx import OnnxDispatchable
from vkops.models.operator import DmlDispatchable
from vkops.models.shader import ShaderDispatchable

_CLASSES: tuple[type[Dispatchable], ...] = (OnnxDispatchable, ShaderDispatchable)
_KINDS = {name: kind for kind in _CLASSES for name in kind.types}


def kind_of(type: str) -> type[Dispatchable]:
    """Return the class for a type; all that is not known may be an operator."""
    return _KINDS.get(type.lower(), DmlDispatchable)
