"""The documentation builds without warnings and without Vulkan, and lists every public name."""

import json
import re
from dataclasses import fields, is_dataclass
from pathlib import Path
from pydoc import locate

import pytest
from browser import needs_chromium, probe
from processes import ROOT, outcome
from sphinx.pycode import ModuleAnalyzer

import vkops
from vkops import dml, onnx, plan
from vkops.gpu.adapters.adapter_limits import Limits
from vkops.onnx import backend
from vkops.rules import RULES

pytestmark = pytest.mark.wine("Debian builds the documentation")


@pytest.fixture(scope="module")
def built(tmp_path_factory) -> Path:
    """Build the documentation as scripts/docs does, and return the folder."""
    folder = tmp_path_factory.mktemp("docs")
    script = (ROOT / "scripts/docs").read_text()
    options = re.search(r"-m sphinx (.*) \"\$@\"", script)[1].split()
    command = ["-m", "sphinx", *options, "--doctree-dir", folder / ".doctrees"]
    nowhere = {"VK_DRIVER_FILES": "/nowhere", "VK_ICD_FILENAMES": "/nowhere"}
    assert outcome(*command, ROOT / "docs", folder, **nowhere) == (0, "", "")
    return folder


def test_every_page_is_built(built):
    sources = [page.relative_to(ROOT / "docs") for page in (ROOT / "docs").rglob("*.md")]
    assert [page for page in sources if not (built / page.with_suffix(".html")).exists()] == []


def reference(built):
    return "".join(page.read_text() for page in (built / "api").glob("*.html"))


def same_function(name):
    """Whether a function of ``vkops.kernels`` is one of ``vkops``, too."""
    own = getattr(vkops, name, None) if name in vkops.__all__ else None
    return own is not None and own is getattr(vkops.kernels, name, None)


def test_the_reference_lists_every_public_name(built):
    anchors = set(re.findall(r'id="(?:module-)?([\w.]+)"', reference(built)))
    public = {
        f"{each.__name__}.{name}" for each in (vkops, dml, onnx, plan) for name in each.__all__
    }
    public |= {f"{backend.__name__}.{name}" for name in ("VkopsBackend", "VkopsRep")}
    kernels = {each.removeprefix("vkops.kernels.") for each in anchors}
    public -= {f"vkops.{name}" for name in kernels if same_function(name)}
    assert sorted(public - anchors) == []


INTERNAL = "check_usable", "make_ready", "fits", "submit", "wait"
"""Methods that what runs on a device uses."""


def test_the_reference_lists_every_method(built):
    anchors = set(re.findall(r'id="([\w.]+)"', reference(built)))
    methods = {
        f"vkops.{kind.__name__}.{name}"
        for kind in (vkops.Device, vkops.CompiledOperator, vkops.BoundOperator, vkops.Tensor)
        for base in kind.__mro__[:-1]
        for name, value in vars(base).items()
        if not name.startswith("_") and (callable(value) or isinstance(value, property))
    }
    internal = {f"vkops.Device.{name}" for name in INTERNAL}
    assert methods - anchors == {"vkops.Tensor.placed", *internal}  # a view of a plan


SELF_EXPLAINING = re.compile(r"(U?INT|FLOAT|LEVEL_)\d\w*|(from|graph|to)_\w+_index")
"""Names that say all, such as FLOAT32, LEVEL_5_0 and to_node_index."""


def test_the_reference_explains_every_field():
    """In a docstring of the field, in that of its class, or below the class on the page."""
    text = "".join(page.read_text() for page in (ROOT / "docs/api").glob("*.md"))
    entries = re.findall(r"^\.\. autoclass:: ([\w.]+).*\n((?: .*\n|\n(?= ))*)", text, re.MULTILINE)
    classes = {locate(name): said for name, said in entries}
    classes |= dict.fromkeys(dml.OPERATORS.values(), "")
    missing = []
    for kind, said in classes.items():
        names = [*getattr(kind, "__members__", ()), *getattr(kind, "_fields", ())]
        names += [field.name for field in fields(kind)] if is_dataclass(kind) else []
        analyzer = ModuleAnalyzer.for_module(kind.__module__)
        analyzer.analyze()
        about = f"{kind.__doc__} {said}"
        missing += [
            f"{kind.__name__}.{name}"
            for name in names
            if not name.startswith("_") and not SELF_EXPLAINING.fullmatch(name)
            if kind is not Limits  # whose names are Vulkan's
            if (kind.__qualname__, name) not in analyzer.attr_docs
            if not re.search(rf"\b{name}\b", about)
        ]
    assert len(classes) > 60
    assert missing == []


def test_every_rule_has_an_address_that_texts_link_to(built):
    anchors = re.findall(r'<a class="rule" id="([\w-]+)"', (built / "rules.html").read_text())
    assert sorted(anchors) == sorted(RULES)
    api = reference(built)
    assert '<a class="reference external" href="../rules.html#DEV-03">DEV-03</a>' in api
    linked = re.findall(r'href="(?:../rules.html)?#([A-Z]\w*-\d+)"', api)
    assert set(linked) <= {*RULES}


@pytest.mark.parametrize(
    ("words", "pages"),
    [
        ("texture", {"tutorials/images"}),
        ("shared memory", {"tutorials/shaders"}),
        ("random", {"kernels", "api/kernels"}),
        ("reduction", {"kernels", "api/kernels"}),
    ],
)
def test_the_search_finds_a_page_by_its_headings(built, words, pages):
    """Sphinx puts pages with the words in a heading first, so only these pages may have them there."""
    text = (built / "searchindex.js").read_text()
    index = json.loads(text.removeprefix("Search.setIndex(").removesuffix(")"))
    assert pages == {
        index["docnames"][number]
        for title, places in index["alltitles"].items()
        if words in title.lower()
        for number, _ in places
    }


FITS = """
  const cut = [...document.querySelectorAll(".table-wrapper, pre, figure")];
  return {
    cut: cut.filter((box) => box.scrollWidth > box.clientWidth + 1).map((box) => box.textContent),
    pages: document.documentElement.scrollWidth <= innerWidth,
    figures: [...document.querySelectorAll("figure")].filter((figure) => figure.querySelector("i")).length,
    buttons: document.querySelectorAll("button.copybtn").length,
  };
"""


@needs_chromium
@pytest.mark.parametrize(
    ("page", "figures", "buttons"), [("index", 1, 1), ("how_it_works", 3, 0), ("rules", 0, 1)]
)
def test_pages_on_a_narrow_screen(built, tmp_path, page, figures, buttons):
    seen = probe(built / f"{page}.html", tmp_path, FITS)
    assert (seen["cut"], seen["pages"]) == ([], True)
    assert seen["figures"] >= figures  # others are drawn when they come into view
    assert seen["buttons"] == buttons
