"""Descriptions of models, for the terminal and as HTML pages; no device is needed."""

from __future__ import annotations

from vkops.explain.explanation import Explanation, Tensor
from vkops.explain.models import explain
from vkops.explain.page import write_page
from vkops.explain.tables import render

__all__ = ["Explanation", "Tensor", "explain", "render", "write_page"]
