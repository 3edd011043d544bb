"""What a model does, told in the terminal and drawn on a page; no device is needed."""

from __future__ import annotations

from vkops.explain.facts import Explanation, Movement, Node, Run, Section, Tensor
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
