"""How Sphinx builds the documentation: scripts/docs."""

from __future__ import annotations

from typing import Any

import vkops
from vkops import dml

project = "vkops"
release = version = vkops.__version__
project_copyright = "the vkops authors"

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
highlight_language = "text"
myst_heading_anchors = 3
# Pages are read in the repository, too, and lead to files there; a test follows those links.
# Several classes have an attribute called "type", and Python's type[...] is none of them.
suppress_warnings = ["myst.xref_missing", "ref.python"]

html_theme = "furo"
html_title = f"vkops {release}"
html_show_copyright = False
html_show_sphinx = False
html_copy_source = False

# Each name is documented where it is public, not where it is defined.
add_module_names = False
toc_object_entries_show_parents = "hide"
autodoc_member_order = "bysource"
autodoc_preserve_defaults = True
autodoc_typehints_format = "short"
python_use_unqualified_type_names = True
napoleon_numpy_docstring = False

autodoc_default_options = {"members": True}

nitpicky = True
nitpick_ignore = [
    ("py:class", "Array"),  # an alias inside an alias, to Sphinx 8
    # The base class of vkops.Device, and what Tensor.make takes: no part of the reference.
    ("py:class", "vkops.runtime.device.OperatorDevice"),
    ("py:class", "vkops.tensors.array_plan.ArrayPlan"),
]
# Python's and NumPy's own pages list these; building needs no network.
nitpick_ignore_regex = [("py:.*", r"(collections|enum|numpy|onnx|os|pathlib|types|typing)\..*")]


def _say_nothing_of_types(
    app: object, what: str, name: str, item: object, options: object, lines: list[str]
) -> None:
    """Keep Napoleon from taking "What to run: one plan" for a type and what it means."""
    if what in {"attribute", "property"} and lines:
        lines[0] = f":{lines[0]}"


def _show_public_bases(
    app: object, name: str, item: type, options: object, bases: list[Any]
) -> None:
    bases[:] = [
        shown
        for base in bases
        for shown in (base.__bases__ if base.__name__.startswith("_") else (base,))
    ]


def _list_operators(app: object, name: str, source: list[str]) -> None:
    """Put the descriptors of all operators into the reference."""
    descs = (f".. autoclass:: vkops.dml.{desc.__name__}" for desc in dml.OPERATORS.values())
    source[0] = source[0].replace("{operators}", "\n".join(descs))


def setup(app: Any) -> None:
    """Called by Sphinx."""
    app.connect("source-read", _list_operators)
    app.connect("autodoc-process-docstring", _say_nothing_of_types, priority=400)
    app.connect("autodoc-process-bases", _show_public_bases)
