"""Descriptions of models, for the terminal and as HTML pages; no device is needed."""

from __future__ import annotations

from vkops.explain.explanation import Explanation, Movement, Node, Run, Section, Tensor
from vkops.explain.models import explain
from vkops.explain.page import write_page
from vkops.explain.terminal import tell

__all__ = [
    "Explanation",
    "Movement",
    "Node",
    "Run",
    "Section",
    "Tensor",
    "explain",
    "tell",
    "write_page",
]
