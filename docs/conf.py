"""How Sphinx builds the documentation: scripts/docs."""

from __future__ import annotations

import json
import re
import sys
import tempfile
from inspect import isfunction
from pathlib import Path
from typing import Any, ClassVar

from docutils import nodes
from sphinx import addnodes
from sphinx.util.docutils import SphinxDirective

import vkops
from vkops import dml
from vkops.dml import expressions
from vkops.explain import explain
from vkops.explain.page import FIGURE_CSS, FIGURE_SCRIPT, PAGE_CSS, figure
from vkops.rules import RULES

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "scripts"))
import reference_pages  # noqa: E402

project = "vkops"
release = version = vkops.__version__
project_copyright = "the vkops authors"

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "sphinx_copybutton"]
highlight_language = "text"
myst_heading_anchors = 3
smartquotes = False  # which takes a tenth of the time
# Pages are read in the repository, too, and lead to files there; a test follows those links.
# Several classes have an attribute called "type", and Python's type[...] is none of them.
suppress_warnings = ["myst.xref_missing", "ref.python"]

# What is copied are the commands and statements, without prompts and what they print.
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True

pygments_dark_style = "github-dark"
html_theme = "furo"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_js_files = ["site.js"]
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
    ("py:class", "Self"),  # typing.Self, to Sphinx 8
    # The base class of vkops.Device: no part of the reference.
    ("py:class", "vkops.runtime.device.OperatorDevice"),
    ("py:class", "vkops.dml.fields.Kind"),  # whose attributes vkops itself uses
    ("py:class", "vkops.gpu.run.buffer.MemoryView"),  # which tensors make arrays of
]
# Python's and NumPy's own pages list these; building needs no network.
nitpick_ignore_regex = [
    ("py:.*", r"(collections|distributed|enum|numpy|onnx|os|pathlib|types|typing)\..*"),
    # Results with names, which the functions that return them describe.
    ("py:class", r"vkops\.(kernels\.standard\.Unique|tensors\.data_types\.)\w+"),
]


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


def _generate(app: object, name: str, source: list[str]) -> None:
    """Put in what is generated: rules, commands, and in the reference operators and functions."""
    source[0] = reference_pages.expanded(source[0])
    descs = (f".. autoclass:: vkops.dml.{desc.__name__}" for desc in dml.OPERATORS.values())
    source[0] = source[0].replace("{operators}", "\n".join(descs))
    functions = (f".. autofunction:: vkops.dml.{name}" for name in _functions())
    source[0] = source[0].replace("{functions}", "\n".join(functions))
    source[0] = re.sub(r"\{(vkops\.(?:tensors|kernels)\.\w+|numpy)\}", _names, source[0])


def _functions() -> list[str]:
    """The names of DirectMLX's functions, in the order of their module."""
    functions = filter(isfunction, vars(expressions).values())
    return [each.__name__ for each in functions if each.__module__ == dml.__name__]


def _short_navigation(
    app: Any, name: str, template: str, context: dict[str, Any], doctree: object
) -> None:
    """List all pages from their titles, as to copy all headings takes a third of the time."""
    whole, contents = context["toctree"], app.env.tocs

    def toctree(**options: Any) -> str:
        app.env.tocs = _titles(app.env)
        try:
            return str(whole(**options))
        finally:
            app.env.tocs = contents

    context["toctree"] = toctree


def _titles(env: Any) -> dict[str, nodes.bullet_list]:
    """Return the contents of each page without headings, but with lists of other pages."""
    if not hasattr(env, "vkops_titles"):
        env.vkops_titles = {name: toc.deepcopy() for name, toc in env.tocs.items()}
        for toc in env.vkops_titles.values():
            for entry in toc.findall(nodes.list_item):
                if not any(entry.findall(addnodes.toctree)):
                    del entry[1:]
    return env.vkops_titles


# -- pictures of plans -----------------------------------------------------------------------------


def _colours(block: str) -> dict[str, str]:
    """The colours that figures use, from the light or the dark block of the page's style."""
    return dict(re.findall(r"--(\w+): ([^;]+);", block))


_light, _dark = re.findall(r":root \{(.*?)\}", PAGE_CSS, re.DOTALL)
html_theme_options = {
    "light_css_variables": _colours(_light),
    "dark_css_variables": _colours(_dark),
}


class Explain(SphinxDirective):
    """The figures of ``vkops explain --html``.

    The argument is a model file; without one, the content is a dispatchable in JSON, or an ONNX
    model as text.
    """

    optional_arguments = 1
    has_content = True
    option_spec: ClassVar = {}

    def run(self) -> list[nodes.Node]:
        """Return the figures as HTML."""
        if self.arguments:
            self.env.note_dependency(str(ROOT / self.arguments[0]))
            return self._figures(ROOT / self.arguments[0])
        content = "\n".join(self.content)
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder, "model.json")
            if content.startswith("{"):
                dispatchables = {"model": json.loads(content)}
                model = {"resources": {}, "dispatchables": dispatchables, "commands": []}
                file.write_text(json.dumps(model))
            else:
                import onnx

                file = file.with_suffix(".onnx")
                onnx.save(onnx.parser.parse_model(content), file)
            return self._figures(file)

    def _figures(self, file: Path) -> list[nodes.Node]:
        sections = explain(str(file), dml.FeatureLevel.LATEST).sections
        return [
            nodes.raw("", figure(movement), format="html")
            for section in sections
            for movement in section.movements
        ]


def _bring_scripts(
    app: object, name: str, template: str, context: dict[str, Any], doctree: object
) -> None:
    """Give the pages that have figures their style and their script."""
    if 'class="plan"' in context.get("body", ""):
        context["body"] += f"<style>{FIGURE_CSS}</style>\n<script>{FIGURE_SCRIPT}</script>\n"


# -- rules -----------------------------------------------------------------------------------------

_RULE_ID = re.compile(rf"\b({'|'.join(sorted(RULES, key=len, reverse=True))})\b")


def _anchor_rules(app: object, name: str, source: list[str]) -> None:
    """Make each rule a place that links lead to, such as rules.html#SPLIT-05."""
    if name == "rules":
        anchor = r'<a class="rule" id="\g<0>" href="#\g<0>">\g<0></a>'
        source[0] = re.sub(
            r"^- [A-Z]\w*-\d+[^:†]*[:†]",
            lambda ids: re.sub(r"\w+-\d+", anchor, ids[0]),
            source[0],
            flags=re.MULTILINE,
        )


_NO_LINKS = (nodes.reference, nodes.literal, nodes.FixedTextElement, nodes.title)
"""Nodes whose texts are left as they are."""


def _link_rules(app: Any, doctree: nodes.document, name: str) -> None:
    """Make the identifiers of rules in texts, though not in code, links to the rules."""
    page = app.builder.get_relative_uri(name, "rules") if name != "rules" else ""
    for text in list(doctree.findall(nodes.Text)):
        above = text.parent
        while above and not isinstance(above, _NO_LINKS):
            above = above.parent
        if not above and _RULE_ID.search(text):
            parts = _RULE_ID.split(text)
            parts[1::2] = [
                nodes.reference("", rule, refuri=f"{page}#{rule}") for rule in parts[1::2]
            ]
            parts[::2] = [nodes.Text(part) for part in parts[::2]]
            text.parent.replace(text, parts)


def _names(module: re.Match[str]) -> str:
    """Return the directives of a module's public names."""
    directives = [
        _directive(name, getattr(vkops, name))
        for name, place in vkops._MODULES.items()
        if place == module[1]
    ]
    return "\n".join([".. py:currentmodule:: vkops", "", *directives])


def _directive(name: str, item: Any) -> str:
    if not isfunction(item):
        return f".. py:data:: {name}\n\n   NumPy's.\n"
    if item.__name__ != name:
        return f".. py:function:: {name}\n\n   The same as `{item.__name__}`.\n"
    return f".. autofunction:: vkops.{name}"


def setup(app: Any) -> None:
    """Called by Sphinx."""
    app.add_directive("explain", Explain)
    app.connect("html-page-context", _bring_scripts)
    app.connect("html-page-context", _short_navigation, priority=400)
    app.connect("source-read", _generate)
    app.connect("source-read", _anchor_rules)
    app.connect("doctree-resolved", _link_rules)
    app.connect("autodoc-process-docstring", _say_nothing_of_types, priority=400)
    app.connect("autodoc-process-bases", _show_public_bases)
