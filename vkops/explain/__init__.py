"""Descriptions of models, for the terminal and as HTML pages; no device is needed."""

from __future__ import annotations

from vkops.explain.models import explain
from vkops.explain.page import write_page
from vkops.explain.tables import render
from vkops.models.explanation import Explanation, Tensor

__all__ = ["Explanation", "Tensor", "explain", "render", "write_page"]
